package ackbits

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// The dumb model: a map, and what it may have forgotten.
func TestCargoIsAMap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var c cargo
		model := map[int64]uint32{}
		oldest, next, run := int64(0), int64(0), int64(0)
		forget := func(before int64) {
			oldest = max(oldest, before)
			for n := range model {
				if n < oldest {
					delete(model, n)
				}
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"load": func(t *rapid.T) {
				next += rapid.Int64Range(1, 40).Draw(t, "datagrams")
				n := next - rapid.SampledFrom([]int64{0, 0, 0, 0, 3, 30}).Draw(t, "back")
				if n < oldest {
					return
				}
				forget(next - 100)
				if n = max(n, oldest); rapid.IntRange(0, 4).Draw(t, "alone") == 0 {
					clear(model)
				}
				run += 7
				c.load(n, run, oldest, len(model) == 0)
				model[n] = uint32(run)
			},
			"shrink": func(t *rapid.T) {
				n := rapid.SampledFrom([]int{16, 64, 128}).Draw(t, "room")
				before := len(c.runs)
				c.shrink(n)
				require.Len(t, c.runs, min(n, before))
				forget(c.end - int64(n))
				_, ok := c.of(c.end - int64(n) - 1)
				require.False(t, ok, "no room for it")
			},
			"": func(t *rapid.T) {
				for n, want := range model {
					got, ok := c.of(n)
					require.True(t, ok)
					require.Equal(t, want, got)
				}
				_, ok := c.of(oldest - 1)
				require.False(t, ok && len(model) == 0)
				require.LessOrEqual(t, len(c.runs), 128)
			},
		})
	})
}

func TestCargoCoversFromTheFirstToTheLast(t *testing.T) {
	var c cargo
	c.load(7, 70, 0, true)
	require.Len(t, c.runs, minCargo)
	require.Zero(t, testing.AllocsPerRun(1, func() { c.shrink(minCargo) }))
	_, ok := c.of(8)
	require.False(t, ok)
	c.load(7+15, 71, 0, false)
	require.Len(t, c.runs, minCargo)
	c.load(7+16, 72, 0, false)
	require.Len(t, c.runs, 32)
	run, ok := c.of(7)
	require.True(t, ok)
	require.EqualValues(t, 70, run)
	c.load(7+32, 73, 8, false) // 7 is forgotten
	require.Len(t, c.runs, 32)
}

// Where events are rare, a datagram takes no more room for what is between.
func TestCargoOfRareEventsStaysSmall(t *testing.T) {
	var c cargo
	for n := int64(0); n < 1e6; n += 1000 {
		c.load(n, n, n-256, true)
		c.load(n+10, n, n-256, false)
		_, ok := c.of(n - 1)
		require.False(t, ok, "its runs are gone")
	}
	require.Len(t, c.runs, 16)
}
