package ackbits

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// Heartbeats: when one is due, what puts it off, and that they acknowledge bursts.

// Fault: a deadline sampled on a coarse tick.
// P-1.1.2, P-6.3.1.
func TestHeartbeatIsDueAtExactlyItsTime(t *testing.T) {
	inBothForms(t, func(t *testing.T, wide bool) {
		p := solo(t, Config{Wide: wide})
		p.wantDeadline(50 * ms)
		for _, at := range []time.Duration{16700 * time.Microsecond, 33300 * time.Microsecond, 49900 * time.Microsecond, 50*ms - 1} {
			p.sleepUntil(at)
			p.wantNothing()
			p.wantDeadline(50 * ms)
		}
		p.sleepUntil(50 * ms)
		k := p.wantDatagram(TypeHeartbeat)
		require.Empty(t, k.payload)
		p.wantNothing()
		p.wantDeadline(100 * ms)

		p = solo(t, Config{Wide: wide})
		p.sleepUntil(50*ms - 1) // the first look
		p.wantNothing()
	})
}

// P-6.3.1.
func TestAnyDatagramPutsTheHeartbeatOff(t *testing.T) {
	p := solo(t, Config{})
	p.sleep(20 * ms)
	p.emit(TypeInput)
	p.wantDeadline(70 * ms)
	p.advance(30 * ms)
	p.send("x")
	p.wantEventsOut(0)
	p.wantDeadline(100 * ms)
	p.advance(20 * ms)
	p.hear(TypeInput) // nothing that comes in does
	p.wantDeadline(100 * ms)
	p.advance(30 * ms)
	p.wantDatagram(TypeHeartbeat)
}

// A side that never sent must start by itself.
// P-6.3.1.
func TestFirstHeartbeatNeedsNoDatagramBefore(t *testing.T) {
	p := solo(t, Config{})
	p.advance(50 * ms)
	k := p.wantDatagram(TypeHeartbeat)
	require.Zero(t, k.Sequence)
	require.EqualValues(t, 65535, k.Ack)
	require.Zero(t, k.AckBits)
}

// No flood.
func TestIdleSessionSendsOneHeartbeatASilence(t *testing.T) {
	inBothForms(t, func(t *testing.T, wide bool) {
		p := solo(t, Config{Wide: wide})
		for p.now() < 4*time.Second { // in which more come in than a header can name
			p.clock.Advance(ms)
			if p.now()%(50*ms) == 20*ms {
				p.hear(TypeHeartbeat) // is not answered
			}
			if p.now()%(50*ms) == 0 {
				p.wantDatagram(TypeHeartbeat)
			}
			p.wantNothing()
		}
		require.Len(t, p.flying, 80)
	})
}

// PollInterval: early when the next poll would be late, never before P/2.
// P-6.3.2.
func TestPollIntervalMovesHeartbeatsEarly(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		heartbeat := time.Duration(rapid.Int64Range(1, 1000).Draw(rt, "heartbeat"))
		poll := time.Duration(rapid.OneOf(rapid.Int64Range(0, 3*int64(heartbeat)), rapid.Just[int64](math.MaxInt64)).Draw(rt, "P"))
		p := solo(rt, Config{Heartbeat: heartbeat, PollInterval: poll})
		due := func(silence time.Duration) bool {
			return silence >= heartbeat || poll > heartbeat-silence && silence >= poll-silence
		}
		last := p.now()
		for range 20 {
			if due(p.now() - last) {
				p.wantDatagram(TypeHeartbeat)
				last = p.now()
			}
			p.wantNothing()
			at := p.deadline() - last
			require.True(rt, due(at) && !due(at-1))
			step := at + last - p.now() - time.Duration(rapid.Int64Range(0, 1).Draw(rt, "early"))
			if rapid.Bool().Draw(rt, "any time") {
				step = time.Duration(rapid.Int64Range(0, 400).Draw(rt, "step"))
			}
			p.sleep(step)
		}
	})
}

func TestJitteryTickWithPollIntervalKeepsTheHeartbeat(t *testing.T) {
	const tick = time.Second / 60
	p := solo(t, Config{PollInterval: tick})
	last, sent := time.Duration(0), 0
	for i := range 600 {
		p.clock.Set(p.began.Add(time.Duration(i)*tick + time.Duration(i%3)*ms/10))
		p.hear(TypeHeartbeat)
		for range p.flush() {
			require.LessOrEqual(t, p.now()-last, 50*ms)
			last = p.now()
			sent++
		}
	}
	require.LessOrEqual(t, sent, 600/2, "not one every poll")
}

func TestPollIntervalMovesHeartbeatsOnly(t *testing.T) {
	p := solo(t, Config{PollInterval: 40 * ms})
	p.send("x")
	p.wantEventsOut(0)
	p.sleep(20 * ms)
	p.wantDatagram(TypeHeartbeat)
	p.sleepUntil(100*ms - 1)
	p.wantDatagram(TypeHeartbeat)
	p.wantNothing()
	p.sleep(1)
	p.wantEventsOut(0)
	p.sleepUntil(5*time.Second - 1)
	p.flush()
	p.wantAlive()
}

// P-6.3.3.
func TestBurstIsAcknowledgedAfter32Datagrams64Wide(t *testing.T) {
	for wide, burst := range map[bool]int{false: 32, true: 64} {
		p := solo(t, Config{Wide: wide, Accept: func(h Header, _ []byte) error {
			if h.Type == TypeSnapshot {
				return ErrWithhold
			}
			return nil
		}})
		seq := uint16(1000)
		hear := func(n int) { // 2n that count and some that do not
			for range n {
				seq += 2
				for _, back := range []uint16{0, 1, 1, 200} { // Newest, Late, Duplicate, Stale
					p.take(p.datagram(TypeInput, seq-back, nothingYet, 0))
				}
				p.take(p.datagram(TypeSnapshot, seq+1, nothingYet, 0)) // Withheld
			}
			p.foreign = seq + 1
		}
		hear(burst/2 - 1)
		p.hear(TypeInput)
		p.wantNothing()
		p.hear(TypeInput)
		seq += 2
		p.wantDeadline(0)
		p.wantDatagram(TypeHeartbeat)
		p.wantNothing()
		hear(burst/2 - 1)
		p.emit(TypeInput) // any datagram acknowledges
		hear(burst/2 - 1)
		p.send("x")
		p.wantEventsOut(0)
		p.hear(TypeInput)
		seq++
		p.wantNothing()
		hear(burst / 2)
		p.send("y")
		p.wantEventsOut(1) // an Event datagram does it too
		p.wantNothing()
	}
}

// 256 large events, flushed after every Receive.
// P-6.1.2.
func TestBurstOfLargeEventsNeedsNoRetransmission(t *testing.T) {
	inBothForms(t, func(t *testing.T, wide bool) {
		a, b := duo(t, Config{Wide: wide})
		a.sendN(256, 1100)
		out := a.flush()
		require.Len(t, out, 256)
		a.sleep(30 * ms)
		var back []*packet
		for _, k := range out {
			b.deliver(k)
			back = append(back, b.flush()...)
		}
		b.wantCount(256)
		a.sleep(30 * ms)
		a.deliver(back...)
		for range 5 {
			drop(a.flush()...)
			a.sleep(20 * ms)
		}
		drop(b.flush()...)
		b.deliver(a.flush()...)
		require.Zero(t, b.s.Stats().AcksOutrun)
		for range 3 {
			a.deliver(b.flush()...)
			b.deliver(a.flush()...)
			a.sleep(50 * ms)
		}
		a.deliver(b.flush()...)
		drop(a.flush()...)
		require.LessOrEqual(t, a.s.Stats().EventsResent, uint64(256%32))
	})
}

// Acks travel on anything.
func TestOneWayEventsAreAcknowledgedByHeartbeats(t *testing.T) {
	inBothForms(t, func(t *testing.T, wide bool) {
		a, b := duo(t, Config{Wide: wide, Backlog: 300})
		a.sendN(500, 8)
		for i := 0; a.s.InFlight() > 0; i++ {
			require.Less(t, i, 50)
			out, back := a.flush(), b.flush()
			a.sleep(15 * ms)
			b.deliver(out...)
			a.deliver(back...)
			a.sleep(15 * ms)
		}
		b.wantCount(500)
		require.Zero(t, a.s.Stats().EventsResent)
		require.Zero(t, b.s.Stats().EventsSent)
		drop(append(slices.Clone(a.flying), b.flying...)...)
	})
}

// Lost heartbeats are nobody's business.
func TestLostHeartbeatsCostNothing(t *testing.T) {
	a, b := duo(t, Config{})
	for range 90 {
		a.sleep(50 * ms)
		drop(a.flush()...)
		a.deliver(b.flush()...)
	}
	for range 100 {
		a.sleep(50 * ms)
		b.deliver(a.flush()...)
		a.deliver(b.flush()...)
	}
	a.wantAlive()
	b.wantAlive()
	a.wantInFlight(0)
	st := a.s.Stats()
	require.Zero(t, st.EventsSent+st.EventsResent)
	require.EqualValues(t, 190, st.DatagramsSent, "no datagram more than one each 50 ms")
}
