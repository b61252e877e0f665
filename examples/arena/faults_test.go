package main

import (
	"errors"
	"testing"
	"time"

	"github.com/ackbits/ackbits"
	"github.com/ackbits/ackbits/examples/arena/link"
	"github.com/stretchr/testify/require"
)

// A bot that is frozen for 4.9 s goes on with its session; one that is frozen
// for 5.1 s has lost it, finds out, and joins again.
func TestFrozen(t *testing.T) {
	t.Parallel()
	f := newField(t, 8, 8, link.Weather{RTT: 20 * time.Millisecond})
	const short, long = 3, 4
	kept, lost := f.swarm.Token(short), f.swarm.Token(long)
	f.swarm.Freeze(short, 4900*time.Millisecond)
	f.swarm.Freeze(long, 5100*time.Millisecond)
	time.Sleep(4 * time.Second)
	require.Equal(t, 8, f.server.Players(), "nobody is given up before 5 s")
	f.waitFor(2*time.Second, "the server to give up one", func() bool { return f.server.Players() == 7 })

	// It hears from a server that went silent at its own 5 s only that it is
	// silent, so it takes as long again.
	f.waitFor(6500*time.Millisecond, "the other to join again", func() bool {
		token := f.swarm.Token(long)
		return token != 0 && token != lost && f.swarm.Sum().Playing == 8
	})
	ends := f.swarm.Ends(long)
	require.Len(t, ends, 1)
	require.ErrorIs(t, ends[0].Err, ackbits.ErrTimeout)
	require.Equal(t, kept, f.swarm.Token(short))
	require.Empty(t, f.swarm.Ends(short))
	f.wantLedgersClean()
}

// Three seconds in which every link loses everything end nothing, and no event.
func TestBlackout(t *testing.T) {
	t.Parallel()
	f := newField(t, 16, 16, mild)
	time.Sleep(500 * time.Millisecond)
	f.swarm.SetWeather(link.Weather{Loss: 1})
	time.Sleep(500 * time.Millisecond) // for what was under way
	before := f.swarm.Sum()
	time.Sleep(2500 * time.Millisecond)
	require.Equal(t, before.DatagramsIn, f.swarm.Sum().DatagramsIn, "it is dark")
	f.swarm.SetWeather(mild)
	f.waitFor(time.Second, "events to come through again", func() bool {
		return f.swarm.Sum().Stats.EventsReceived > before.Stats.EventsReceived
	})
	time.Sleep(time.Second)
	for i := range 16 {
		require.Empty(t, f.swarm.Ends(i))
	}
	r := f.wantLedgersClean()
	require.Equal(t, 16, r.Sessions)
}

// A client whose address changes has become somebody else: the server drops what
// comes from there, the client times out at both ends within 5 s, and joins
// again with a new token.
func TestAddressChange(t *testing.T) {
	t.Parallel()
	f := newField(t, 4, 4, mild)
	token := f.swarm.Token(2)
	moved := time.Now()
	require.NoError(t, f.swarm.Move(2))
	f.waitFor(6*time.Second, "it to join again", func() bool {
		now := f.swarm.Token(2)
		return now != 0 && now != token
	})
	require.Positive(t, f.server.Counters().Foreign.Load())
	ends := f.swarm.Ends(2)
	require.ErrorIs(t, ends[0].Err, ackbits.ErrTimeout)
	require.InDelta(t, 5, ends[0].At.Sub(moved).Seconds(), 0.5)
	f.waitFor(time.Second, "the old session to end", func() bool { return f.server.Players() == 4 })
	r := f.wantLedgersClean()
	require.Equal(t, 5, r.Sessions)
}

// Everything that a link can do to datagrams, short of silence, costs no event.
func TestBadWeather(t *testing.T) {
	t.Parallel()
	f := newField(t, 16, 16, link.Weather{Loss: 0.2, RTT: 60 * time.Millisecond, Jitter: 30 * time.Millisecond})
	time.Sleep(3 * time.Second)
	r := f.wantLedgersClean()
	require.Equal(t, 16, r.Sessions)
}

// The command line refuses what makes no sense, in words.
func TestCommandLine(t *testing.T) {
	for _, args := range [][]string{{"dance"}, {"bots", "-loss", "2"}, {"serve", "extra"}, {"bots", "-n", "x"}, {"compare", "one"}} {
		require.ErrorIs(t, run(t.Context(), args), errUsage, "%q", args)
	}
	require.Error(t, run(t.Context(), []string{"bots", "-join", "nowhere"}))
	require.False(t, errors.Is(run(t.Context(), []string{"compare", "/nonexistent/a", "/nonexistent/b"}), errUsage))
}
