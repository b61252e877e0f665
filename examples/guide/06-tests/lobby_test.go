package lobby

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/ackbits/ackbits"
	"github.com/ackbits/ackbits/examples/guide/sim"
	"github.com/ackbits/ackbits/simnet"
)

// README: begin guide-test

// Whatever the network does, both start at the same time, and soon. rapid draws the
// network, and when a test fails it looks for a simpler one that fails, too.
func TestBothStartAtTheSameTime(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		bad := simnet.Config{
			Delay:     time.Duration(rapid.IntRange(0, 200).Draw(t, "delay in ms")) * time.Millisecond,
			Jitter:    time.Duration(rapid.IntRange(0, 100).Draw(t, "jitter in ms")) * time.Millisecond,
			Loss:      rapid.Float64Range(0, 0.5).Draw(t, "loss"),
			Duplicate: rapid.Float64Range(0, 0.5).Draw(t, "duplicate"),
		}
		clock := new(ackbits.ManualClock)
		clock.Set(time.Unix(0, 0))
		alice, a := newPlayer(clock)
		bob, b := newPlayer(clock)
		pair := simnet.NewPair(rapid.Uint64().Draw(t, "seed"), clock, a, b, bad, bad)

		alice.Ready(time.Unix(10, 0))
		pair.At(200*time.Millisecond, func() { bob.Ready(time.Unix(12, 0)) })
		pair.Run(8 * time.Second)

		require.NoError(t, a.Err())
		require.Equal(t, time.Unix(12, 0), alice.start)
		require.Equal(t, alice.start, bob.start)
	})
}

func newPlayer(clock ackbits.Clock) (*Lobby, *sim.Peer) {
	l := new(Lobby)
	p := sim.NewPeer(ackbits.Config{Clock: clock, Adaptive: true}, l.Receive)
	l.session = p.Session
	return l, p
}

// README: end guide-test

// The peer may send what it likes.
func TestNonsenseStartsNothing(t *testing.T) {
	l, _ := newPlayer(new(ackbits.ManualClock))
	for _, data := range [][]byte{nil, []byte("start!"), make([]byte, 9)} {
		l.Receive(ackbits.Incoming{Events: []ackbits.Event{{Data: data}}})
	}
	require.Zero(t, l.start)
}
