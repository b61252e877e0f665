package main

import (
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ackbits/ackbits"
)

func measure(t *testing.T, s setting, open func(ackbits.Config) (end, error)) result {
	t.Helper()
	r, err := s.measure(open)
	require.NoError(t, err) // each event arrived
	return r
}

func TestWhatTheWaysCost(t *testing.T) {
	s := setting{loss: 0.05, rtt: 80 * time.Millisecond, rate: 60, events: 2000, seed: 1}
	unordered, ordered, lane := measure(t, s, openUnordered), measure(t, s, openOrdered), measure(t, s, openLane)

	require.Equal(t, unordered.copies, ordered.copies, "nothing changes on the wire")
	require.Equal(t, unordered.bytes, ordered.bytes)
	require.Equal(t, unordered.waiting, ordered.waiting)
	require.Zero(t, unordered.held)
	require.Positive(t, ordered.held)
	require.Zero(t, lane.held)

	require.Less(t, unordered.mean(), ordered.mean())
	require.Less(t, ordered.mean(), lane.mean())
	require.Greater(t, lane.copies, ordered.copies)
	for _, r := range []result{unordered, ordered, lane} {
		require.GreaterOrEqual(t, r.quantile(0), 40*time.Millisecond)
	}
}

func TestWithoutLossAllWaysAreEqual(t *testing.T) {
	s := setting{rtt: 40 * time.Millisecond, rate: 20, events: 500, seed: 1}
	for _, open := range []func(ackbits.Config) (end, error){openUnordered, openOrdered, openLane} {
		r := measure(t, s, open)
		require.Equal(t, 20*time.Millisecond, r.quantile(0))
		require.Equal(t, 20*time.Millisecond, r.quantile(1))
		require.InDelta(t, 1, r.copies, 0.001)
		require.Zero(t, r.held)
	}
}

// fullDisk is where nothing more can be written.
type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, syscall.ENOSPC }

func TestRun(t *testing.T) {
	var out, errOut strings.Builder
	require.Zero(t, run([]string{"-events", "300", "-loss", "0.2", "-rtt", "50ms", "-rate", "30", "-seed", "7"}, &out, &errOut), errOut.String())
	for _, want := range []string{"300 events", "20 %", "seed 7", "unordered  ", "ordered  ", "lane  ", "Which to take"} {
		require.Contains(t, out.String(), want)
	}
	var again strings.Builder
	require.Zero(t, run([]string{"-events", "300", "-loss", "0.2", "-rtt", "50ms", "-rate", "30", "-seed", "7"}, &again, &errOut))
	require.Equal(t, out.String(), again.String())

	for _, args := range [][]string{{"-loss", "1"}, {"-loss", "NaN"}, {"-rtt", "-1s"}, {"-rate", "0"}, {"-events", "0"}, {"-events", "x"}, {"rest"}} {
		require.Equal(t, 2, run(args, &out, &errOut), args)
	}
	require.Zero(t, run([]string{"-h"}, &out, &errOut))

	errOut.Reset()
	require.Equal(t, 1, run([]string{"-events", "10"}, fullDisk{}, &errOut))
	require.Equal(t, "ordering: no space left on device\n", errOut.String())
}
