package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ackbits/ackbits"
)

func Example() {
	main()
	// Output:
	// 11 metrics
	// 19 players, 20 have joined
	// 5 % of the datagrams lost
	// 1.1 copies of an event
	// 0 received, never acknowledged
}

// A counter never falls, though sessions end while it is read.
func TestCountersDoNotFall(t *testing.T) {
	e := new(exporter)
	play(e)
	require.NotZero(t, e.ended.EventsSent)
	require.Greater(t, e.total.EventsSent, e.live.EventsSent)
	want := e.live
	want.Add(e.ended)
	require.Equal(t, want, e.total)
	require.NotEqual(t, ackbits.Stats{}, e.total)
}

func TestNobodyServes(t *testing.T) {
	_, err := scrape("http://127.0.0.1:0/metrics")
	require.Error(t, err)
	_, _, err = new(exporter).serve("no address")
	require.Error(t, err)
}
