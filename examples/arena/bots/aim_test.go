package bots

import (
	"testing"

	"github.com/ackbits/ackbits/examples/arena/game"
	"github.com/stretchr/testify/require"
)

// A bot aims at the nearest of the others who are alive.
func TestAim(t *testing.T) {
	var state game.State
	state[0] = game.Body{Present: true, Alive: true, X: 1000, Y: 500}
	_, ok := aim(&state, 0)
	require.False(t, ok, "there is nobody")
	state[1] = game.Body{Present: true, X: 1001, Y: 500} // not alive
	state[2] = game.Body{Present: true, Alive: true, X: 400, Y: 510}
	state[3] = game.Body{Present: true, Alive: true, X: 1300, Y: 800}
	for _, want := range []uint8{1, 4} { // right and down, then left
		facing, ok := aim(&state, 0)
		require.True(t, ok)
		require.Equal(t, want, facing)
		state[3].Alive = false
	}
}
