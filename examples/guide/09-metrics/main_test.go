package main

import (
	"io"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ackbits/ackbits"
)

func Example() {
	main()
	// Output:
	// game_acks_outrun_total 0
	// game_bytes_sent_total 374348
	// game_datagrams_delivered_total 8753
	// game_datagrams_lost_total 437
	// game_events_resent_total 1152
	// game_events_sent_total 1539
	// game_foreign_total 1
	// game_forged_total 0
	// game_joins_total 20
	// game_players 19
	// game_rtt_worst_seconds 0.200000007
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

func TestServeRefusesAnAddressThatIsTaken(t *testing.T) {
	require.ErrorContains(t, scrape("http://127.0.0.1:0/metrics", io.Discard), "127.0.0.1:0")
	_, _, err := new(exporter).serve("no address")
	require.Error(t, err)
}
