package ackbits

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// The dumb model: a map, and what it may have forgotten.
func TestRunIndexIsAMap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var x runIndex
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
			"note": func(t *rapid.T) {
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
				x.note(n, run, oldest, len(model) == 0)
				model[n] = uint32(run)
			},
			"shrink": func(t *rapid.T) {
				n := rapid.SampledFrom([]int{16, 64, 128}).Draw(t, "room")
				before := len(x.runs)
				x.shrink(n)
				require.Len(t, x.runs, min(n, before))
				forget(x.end - int64(n))
				_, ok := x.of(x.end - int64(n) - 1)
				require.False(t, ok, "no room for it")
			},
			"": func(t *rapid.T) {
				for n, want := range model {
					got, ok := x.of(n)
					require.True(t, ok)
					require.Equal(t, want, got)
				}
				_, ok := x.of(oldest - 1)
				require.False(t, ok && len(model) == 0)
				require.LessOrEqual(t, len(x.runs), 128)
			},
		})
	})
}

func TestRunIndexCoversFromTheFirstToTheLast(t *testing.T) {
	var x runIndex
	x.note(7, 70, 0, true)
	require.Len(t, x.runs, minIndex)
	require.Zero(t, testing.AllocsPerRun(1, func() { x.shrink(minIndex) }))
	_, ok := x.of(8)
	require.False(t, ok)
	x.note(7+15, 71, 0, false)
	require.Len(t, x.runs, minIndex)
	x.note(7+16, 72, 0, false)
	require.Len(t, x.runs, 32)
	run, ok := x.of(7)
	require.True(t, ok)
	require.EqualValues(t, 70, run)
	x.note(7+32, 73, 8, false) // 7 is forgotten
	require.Len(t, x.runs, 32)
}

// Where events are rare, a datagram takes no more room for what is between.
func TestRunIndexOfRareEventsStaysSmall(t *testing.T) {
	var x runIndex
	for n := int64(0); n < 1e6; n += 1000 {
		x.note(n, n, n-256, true)
		x.note(n+10, n, n-256, false)
		_, ok := x.of(n - 1)
		require.False(t, ok, "its runs are gone")
	}
	require.Len(t, x.runs, 16)
}
