package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ackbits/ackbits"
)

func TestAccept(t *testing.T) {
	c := &client{worlds: map[byte]world{0: {}}}
	h := ackbits.Header{Type: ackbits.TypeSnapshot}
	require.NoError(t, c.accept(h, []byte{1, 0, 7, 70}))
	require.NoError(t, c.accept(h, []byte{3, 1, 8, 80}))
	require.Equal(t, byte(70), c.worlds[3][7])
	require.Equal(t, byte(80), c.worlds[3][8])
	require.ErrorIs(t, c.accept(h, []byte{2, 0, 7, 70}), ackbits.ErrWithhold, "late: 0 is forgotten")
	for _, nonsense := range [][]byte{nil, {4}, {4, 3, 1}, {4, 3, 100, 1}} {
		require.ErrorIs(t, c.accept(h, nonsense), errSnapshot)
	}
	require.NoError(t, c.accept(ackbits.Header{Type: ackbits.TypeInput}, nil), "no snapshot: not its business")
	require.Len(t, c.worlds, 2)
}
