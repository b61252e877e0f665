package arena

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// The dumb model: a queue of what was given out, filled with its own bytes.
func TestArenaGivesOutBytesThatNobodyElseHas(t *testing.T) {
	type piece struct {
		start int
		data  []byte
	}
	rapid.Check(t, func(t *rapid.T) {
		a := Arena{buf: make([]byte, rapid.SampledFrom([]int{0, 1, 2, 16, 64}).Draw(t, "size"))}
		var live []piece
		total := 0
		for step := range rapid.IntRange(1, 80).Draw(t, "steps") {
			if rapid.IntRange(0, 2).Draw(t, "action") > 0 {
				n := rapid.OneOf(rapid.IntRange(0, 8), rapid.IntRange(0, 70)).Draw(t, "n")
				before := a
				data := bytes.Repeat([]byte{byte(step + 1)}, n)
				start, ok := a.Put(data)
				if ok {
					live = append(live, piece{start, data})
					total += n
				} else {
					require.Equal(t, before, a, "a refusal changes nothing")
					require.Less(t, gap(before), n, "there was room")
				}
			} else if len(live) > 0 { // in the order of giving out, as settle does
				total -= len(live[0].data)
				if live = live[1:]; len(live) > 0 {
					a.head = live[0].start
				} else {
					a.head, a.tail = 0, 0
				}
			}
			for _, p := range live {
				require.Equal(t, string(p.data), string(a.buf[p.start:p.start+len(p.data)]))
			}
			require.GreaterOrEqual(t, a.Used(), total)
			require.LessOrEqual(t, a.Used(), len(a.buf))
		}
	})
}

// gap returns the largest piece that an arena must be able to give out: all
// that is free in one piece, but for the byte that keeps a tail that went around
// from head.
func gap(a Arena) int {
	if a.tail < a.head {
		return a.head - a.tail - 1
	}
	return max(len(a.buf)-a.tail, a.head-1)
}

func TestArenaFillsUpToTheLastByte(t *testing.T) {
	a := Arena{buf: make([]byte, 10)}
	start, ok := a.Put(make([]byte, 10))
	require.True(t, ok)
	require.Zero(t, start)
	require.Equal(t, 10, a.Used())
	_, ok = a.Put(make([]byte, 1))
	require.False(t, ok)
	start, ok = a.Put(make([]byte, 0))
	require.True(t, ok)
	require.Equal(t, 10, start)
}

func TestArenaGoesAroundButNotIntoItsHead(t *testing.T) {
	a := Arena{buf: make([]byte, 10), head: 4, tail: 8}
	_, ok := a.Put(make([]byte, 4))
	require.False(t, ok, "then tail would be at head, as if all were free")
	start, ok := a.Put(make([]byte, 3))
	require.True(t, ok)
	require.Zero(t, start)
	require.Equal(t, 9, a.Used(), "two at the end are wasted")
	_, ok = a.Put(make([]byte, 1))
	require.False(t, ok)
}
