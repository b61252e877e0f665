package ackbits

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ackbits/ackbits/simnet"
)

// exact is an end of a pair that is called a nanosecond before its deadline and at it,
// and looks whether AppendDue has something to do exactly from then on.
type exact struct {
	*Session
	t      *testing.T
	clock  *ManualClock
	looked time.Time // the deadline before which it looked
}

func (e *exact) Receive(datagram []byte) { _, _ = e.Session.Receive(datagram) }

func (e *exact) Deadline() (time.Time, bool) {
	at, ok := e.Session.Deadline()
	if ok && !at.Equal(e.looked) && at.After(e.clock.Now()) {
		at = at.Add(-1)
	}
	return at, ok
}

func (e *exact) Due(send func([]byte)) {
	now := e.clock.Now()
	for {
		at, alive := e.Session.Deadline()
		if !alive {
			return
		}
		crowded, ahead := e.channel.sender.window.crowded(), e.Stats().EventsAhead
		datagram, ok := e.AppendDue(nil)
		if crowded {
			require.Equal(e.t, ahead, e.Stats().EventsAhead, "proactive copies go only while everything fits")
		}
		require.Equal(e.t, !at.After(now), ok || e.Err() != nil, "%v from the deadline on", now.Sub(at))
		if !ok {
			e.looked = at
			return
		}
		send(datagram)
	}
}

// Deadline is exact where the link is the limit, too: bursts that overflow a queue, with
// losses, proactive copies and a budget for copies.
// P-6.6.1.
func TestDeadlineIsExactWhereTheLinkIsTheLimit(t *testing.T) {
	for seed := range uint64(12) {
		var clock ManualClock
		clock.Set(time.Unix(1000, 0))
		var ends [2]*exact
		for i := range ends {
			s, err := NewSession(Config{
				Clock: &clock, Adaptive: true, Backlog: 400, Bundle: seed%4 == 1,
				EventRate: []int{0, 0, 0, 20_000}[seed%4], Heartbeat: []time.Duration{0, 20 * ms}[seed%2],
			})
			require.NoError(t, err)
			ends[i] = &exact{Session: s, clock: &clock, t: t}
		}
		network := simnet.Config{
			Delay: []time.Duration{10 * ms, 60 * ms}[seed/6], Jitter: 7 * ms, Loss: 0.06,
			Rate: []int{0, 60_000, 250_000}[seed%3], Queue: []int{6000, 20_000}[seed%2],
		}
		p := simnet.NewPair(seed, &clock, ends[0], ends[1], network, network)
		p.Every(30, 3*time.Second, func() {
			for i, e := range ends {
				if out, _, err := e.AppendDatagram(nil, TypeInput, make([]byte, 60)); err == nil {
					p.Send(simnet.Direction(i), out)
				}
			}
		})
		for k := range 6 {
			p.At(time.Duration(k)*777*ms, func() {
				for range min(150, ends[0].Room()) {
					_, err := ends[0].Send(make([]byte, 300+100*k))
					require.NoError(t, err)
				}
			})
		}
		p.Run(20 * time.Second)
		require.NoError(t, ends[0].Err())
		require.Zero(t, ends[0].InFlight(), seed)
	}
}

// With a window that is full and a budget that is used up, nothing may go before a loss is
// found, though the oldest event is owed a copy: Deadline does not spin until then.
func TestDeadlineOfAnOwedCopyWaitsForTheWindow(t *testing.T) {
	for seed := range uint64(8) {
		var clock ManualClock
		clock.Set(time.Unix(1000, 0))
		var ends [2]*exact
		for i := range ends {
			s, err := NewSession(Config{Clock: &clock, Adaptive: true, EventRate: 134})
			require.NoError(t, err)
			ends[i] = &exact{Session: s, clock: &clock, t: t}
		}
		line := simnet.Config{Delay: 252 * ms, Loss: 0.04}
		p := simnet.NewPair(seed, &clock, ends[0], ends[1], line, line)
		p.Every(27, time.Second, func() {
			for ends[0].Room() > 0 {
				_, err := ends[0].Send(make([]byte, 1120))
				require.NoError(t, err)
			}
		})
		p.Run(20 * time.Second)
	}
}
