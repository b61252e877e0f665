package main

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Every carrier brings the file, whole and in order, and the game's states and events
// beside it.
func TestCarriersBringTheFile(t *testing.T) {
	for _, c := range carriers {
		var r fileResult
		t.Run(c.name, func(t *testing.T) { c.play(t, 1, brokenLink(0.02), 100<<10, &r) })
		require.NoError(t, r.err, c.name)
		require.Len(t, r.took, 1, c.name)
		require.NotEmpty(t, r.states, c.name)
		require.NotEmpty(t, r.events, c.name)
		require.GreaterOrEqual(t, slices.Min(r.states), 50*ms, c.name)
		require.GreaterOrEqual(t, slices.Min(r.events), 50*ms, c.name)
	}
}

// On a narrow link and on a fast one none does the game less harm than package transfer,
// and none that is faster is so by more than a quarter.
func TestATransferDoesTheLeastHarm(t *testing.T) {
	for _, l := range []int{1, 4} {
		l := fileLinks[l]
		results := map[string]fileResult{}
		fastest := time.Hour
		for _, c := range carriers {
			var r fileResult
			t.Run(l.name+"/"+c.name, func(t *testing.T) { c.play(t, 1, l.link, l.size, &r) })
			require.NoError(t, r.err, c.name)
			slices.Sort(r.states)
			results[c.name] = r
			fastest = min(fastest, r.took[0])
		}
		p99 := func(of []time.Duration) time.Duration { return of[len(of)*99/100] }
		ours := results["ackbits transfer"]
		for name, r := range results {
			require.LessOrEqual(t, p99(ours.states), p99(r.states)+time.Millisecond, "%s, %s", l.name, name)
		}
		require.LessOrEqual(t, ours.took[0], fastest*5/4, l.name)
	}
}
