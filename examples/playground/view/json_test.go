package view

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ackbits/ackbits/examples/playground/sim"
)

func TestEncodeIsJSON(t *testing.T) {
	b := start(t, "loss=10&dup=5&vs=none&sealed=1")
	b.Advance(3 * time.Second)
	r := b.Run(0)
	e, ok := r.Event(sim.Client, 2)
	require.True(t, ok)
	for _, v := range []any{
		Parsed{Error: "\"quoted\" \\ and\n\x01 – odd", Values: map[string]int{"b": 1, "a": -2}, Versus: map[string]int{}},
		EventDetail{eventOf(r, e), life(r, e)}, r.Figures(), sim.Infos, Scenes, []float64{0, -1, 1.0 / 3, 1e21, 4e-9}, [2]Peer{},
		map[string]any{"a": []string{}, "b": true}, Shot{},
	} {
		want, err := json.Marshal(v)
		require.NoError(t, err)
		require.JSONEq(t, string(want), string(encode(v)))
	}
	require.Equal(t, "[]", string(encode([]int(nil))), "what is empty is not null")
	require.Panics(t, func() { encode(make(chan int)) })
}
