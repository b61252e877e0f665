package ackbits

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestCopyOfAWaitingEventTakesTheSmallestBufferThatFits(t *testing.T) {
	var r reorder
	for _, size := range []int{256, 64, 128, 64, 2048, 256} {
		r.lent = append(r.lent, make([]byte, 3, size))
	}
	r.reclaim()
	for _, tc := range []struct{ n, size, left int }{
		{65, 128, 5}, {64, 64, 4}, {0, 64, 3}, {1, 256, 2}, {256, 256, 1}, {257, 2048, 0},
		{257, 512, 0}, {0, 64, 0}, {64, 64, 0}, {65, 128, 0}, {MaxEventSize, 2048, 0},
	} {
		buf := r.buffer(tc.n)
		require.Empty(t, buf)
		require.Equal(t, tc.size, cap(buf), tc)
		require.Equal(t, tc.left, r.spares, tc)
	}
}

// What was lent comes back at the next datagram, not before.
func TestLentBuffersAreNotWrittenTo(t *testing.T) {
	var r reorder
	r.keep(Event{7, []byte("seven")})
	seven := r.release(7)
	r.keep(Event{8, []byte("eight")})
	require.Equal(t, "seven", string(seven))
	require.Nil(t, r.waiting[7])
	r.reclaim()
	require.Empty(t, r.lent)
	require.Nil(t, r.lent[:1][0], "nobody holds it twice")
	r.keep(Event{9, []byte("nine!")})
	require.Equal(t, "nine!", string(seven), "used again")
	require.Equal(t, "eight", string(r.release(8)))
}

// Of too many buffers the smaller ones go.
func TestSpareBuffersAreBounded(t *testing.T) {
	var r reorder
	for _, size := range []int{2048, 64, 512} {
		for range 200 {
			r.lent = append(r.lent, make([]byte, size))
		}
		r.reclaim()
		require.LessOrEqual(t, r.spares, nearSpan)
	}
	require.Len(t, r.spare[5], 200)
	require.Len(t, r.spare[3], 56)
	require.Empty(t, r.spare[0])
	require.Nil(t, r.spare[0][:1][0], "nobody holds it")
	r.shrink(150)
	require.Equal(t, 150, r.spares)
	require.Len(t, r.spare[5], 150)
	require.Empty(t, r.spare[3])
}
