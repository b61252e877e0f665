package ackbits

import (
	"bytes"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// What AppendDue and Due send, in which order, how a datagram is filled, and that Deadline
// says exactly when there is something to do.

// drawnTimers draws whatever decides when something is due.
func drawnTimers(rt *rapid.T) Config {
	return Config{
		Wide:         rapid.Bool().Draw(rt, "wide"),
		Ordered:      rapid.Bool().Draw(rt, "ordered"),
		Backlog:      rapid.SampledFrom([]int{0, 3}).Draw(rt, "backlog"),
		PollInterval: rapid.SampledFrom([]time.Duration{0, 16 * ms, 200 * ms}).Draw(rt, "P"),
		Heartbeat:    rapid.SampledFrom([]time.Duration{0, time.Second}).Draw(rt, "heartbeat"),
		ResendDelay:  rapid.SampledFrom([]time.Duration{0, 7 * ms}).Draw(rt, "retransmission"),
		StallTimeout: rapid.SampledFrom([]time.Duration{0, -1, 30 * ms, time.Second}).Draw(rt, "stall"),
		Adaptive:     rapid.Bool().Draw(rt, "adaptive"),
		Bundle:       rapid.Bool().Draw(rt, "bundle"),
		EventRate:    rapid.SampledFrom([]int{0, 0, 700}).Draw(rt, "rate"),
	}
}

func (y *story) waitUpTo(rt *rapid.T, most time.Duration) {
	y.clock.Advance(time.Duration(rapid.Int64Range(0, int64(most)).Draw(rt, "d")))
}

// probe calls AppendDue, which must do something exactly if the deadline has come.
func (y *story) probe(rt *rapid.T, p *actor) bool {
	p.s.NextOutcome() // a reading
	due := p.s.Err() == nil && p.deadline() <= y.now()
	alive := p.s.Err() == nil
	out, ok := p.s.AppendDue(nil)
	require.Equal(rt, due, ok || alive && p.s.Err() != nil, "%v, deadline %v", y.now(), p.deadline())
	if ok {
		p.packet(out)
	}
	p.check()
	p.events = nil
	return ok
}

// probeEdge goes to the deadline: nothing is due a nanosecond before.
func (y *story) probeEdge(rt *rapid.T, p *actor) {
	for n := 0; y.probe(rt, p); n++ {
		require.Less(rt, n, 1000)
	}
	if left := p.deadline() - y.now(); p.s.Err() == nil {
		require.Positive(rt, left)
		y.clock.Advance(left - 1)
		require.False(rt, y.probe(rt, p))
		require.NoError(rt, p.s.Err())
		y.clock.Advance(1)
		require.True(rt, y.probe(rt, p) || p.s.Err() != nil)
	}
}

// Deadline is the earliest of them, exact, after any history.
// P-6.6.1.
func TestAppendDueDoesSomethingExactlyFromDeadlineOn(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		cfg := drawnTimers(rt)
		y := newStory(rt)
		a, b := y.enter("A", cfg), y.enter("B", cfg)
		pick := func(label string) *actor { return rapid.SampledFrom([]*actor{a, b}).Draw(rt, label) }
		peer := func(p *actor) *actor { return map[*actor]*actor{a: b, b: a}[p] }
		travel := func(rt *rapid.T, keep bool) {
			from := pick("from")
			if len(from.flying) == 0 {
				return
			}
			k := rapid.SampledFrom(from.flying).Draw(rt, "packet")
			if !keep {
				k.drop()
			}
			peer(from).s.Receive(slices.Clone(k.bytes))
		}
		rt.Repeat(map[string]func(*rapid.T){
			"send": func(rt *rapid.T) {
				p := pick("who")
				for range rapid.SampledFrom([]int{1, 1, 3, 100}).Draw(rt, "n") {
					p.s.Send(make([]byte, rapid.SampledFrom([]int{0, 5, 600}).Draw(rt, "size")))
				}
			},
			"emit": func(rt *rapid.T) {
				p := pick("who")
				if out, _, err := p.s.AppendDatagram(nil, TypeInput, nil); err == nil {
					p.packet(out)
				}
			},
			"deliver":   func(rt *rapid.T) { travel(rt, false) },
			"duplicate": func(rt *rapid.T) { travel(rt, true) },
			"all arrive": func(rt *rapid.T) {
				for _, k := range slices.Concat(a.flying, b.flying) {
					k.drop()
					peer(k.from).s.Receive(k.bytes)
				}
			},
			"burst": func(rt *rapid.T) {
				p := pick("who")
				for range 40 {
					if out, _, err := p.s.AppendDatagram(nil, TypeInput, nil); err == nil {
						peer(p).s.Receive(out)
					}
				}
			},
			"pass":      func(rt *rapid.T) { y.waitUpTo(rt, 120*ms) },
			"pass long": func(rt *rapid.T) { y.waitUpTo(rt, 2*time.Second) },
			"step back": func(rt *rapid.T) { y.clock.Advance(-time.Hour) },
			"close": func(rt *rapid.T) {
				if rapid.IntRange(0, 9).Draw(rt, "really") == 0 {
					pick("who").s.Close()
				}
			},
			"poll once": func(rt *rapid.T) { y.probe(rt, pick("who")) },
			"edge":      func(rt *rapid.T) { y.probeEdge(rt, pick("who")) },
		})
	})
}

// AppendDue does nothing at Deadline − 1 ns. With EventRate, a due event
// that the budget holds back hides a lower, smaller one that comes due earlier.
func TestDeadlineIsExactWithEventRate(t *testing.T) {
	p := solo(t, Config{EventRate: 100, Heartbeat: 4 * time.Second})
	p.send("", long(200))
	p.wantEventsOut(0, 1)
	for range 6 {
		at := p.deadline()
		require.Greater(t, at, p.now())
		p.sleepUntil(at - 1)
		p.wantNothing()
		p.sleepUntil(at)
		out, ok := p.s.AppendDue(nil)
		require.True(t, ok)
		p.packet(out)
		p.flush()
		if at > 1300*ms {
			break
		}
	}
}

// P-6.1.1.
func TestTimeoutAndStallComeBeforeAnythingElse(t *testing.T) {
	p := solo(t, Config{})
	p.send("due", "due")
	p.wantEventsOut(0, 1)
	p.sleep(5 * time.Second)
	p.wantNothing()
	p.wantErr(ErrTimeout)

	p = solo(t, Config{})
	p.send("due")
	p.wantEventsOut(0)
	p.sleep(15 * time.Second)
	p.wantNothing()
	p.wantErr(ErrTimeout) // both have come; timeout first

	p = solo(t, Config{})
	p.send("due")
	p.wantEventsOut(0)
	p.sleep(15 * time.Second)
	p.hear(TypeHeartbeat)
	p.send("fresh")
	p.wantNothing()
	p.wantErr(ErrStalled)
}

// P-6.1.1, P-6.4.3.
func TestEventsComeBeforeTheHeartbeatLowestIdFirst(t *testing.T) {
	inBothForms(t, func(t *testing.T, wide bool) {
		p := solo(t, Config{Wide: wide})
		p.send("0", "1", "2")
		p.wantEventsOut(0, 1, 2)
		p.sleep(10 * ms)
		p.send("3")
		p.wantEventsOut(3)
		p.sleep(10 * ms)
		p.ack(1, 0) // 3 arrived
		p.sleepUntil(100 * ms)
		p.send("4", "5")
		p.wantEventsOut(0, 1, 2, 4, 5) // retransmissions first, since older
		p.wantNothing()                // they were the heartbeat
		p.wantDeadline(150 * ms)
	})
}

// Fault: a message that can never fit blocks everything.
// P-5.1.2.
func TestLargestEventFillsADatagramAndALargerOneIsRefused(t *testing.T) {
	for wide, largest := range map[bool]int{false: 1177, true: 1173} {
		p := solo(t, Config{Wide: wide})
		_, err := p.s.Send(make([]byte, largest+1))
		require.ErrorIs(t, err, ErrEventTooLarge)
		p.wantInFlight(0)
		p.send(long(largest), "")
		k := p.wantEventsOut(0)
		require.Len(t, k.bytes, 1200)
		p.wantEventsOut(1)
		p.wantNothing()
	}
}

// P-6.4.2.
func TestDatagramIsFilledUntilTheFirstDueEventThatDoesNotFit(t *testing.T) {
	inBothForms(t, func(t *testing.T, wide bool) {
		p := solo(t, Config{Wide: wide})
		room := p.s.MaxPayload() - 1 - 4 - 4 // beside two events
		p.send(long(600), long(room-600), "")
		require.Len(t, p.wantEventsOut(0, 1).bytes, 1200)
		p.wantEventsOut(2)
		p.send(long(600), long(room-600+1), "small")
		p.wantEventsOut(3) // 4 does not fit, and 5 does not overtake it
		p.wantEventsOut(4, 5)
	})
}

// P-6.4.2.
func TestDatagramHoldsAtMost255Events(t *testing.T) {
	p := solo(t, Config{})
	p.sendN(256, 0)
	require.Len(t, p.wantDatagram(TypeEvent).ids(), 255)
	p.wantEventsOut(255)
}

func TestDueBreaksOffAndGoesOn(t *testing.T) {
	p := solo(t, Config{})
	p.send(long(1000), long(1000), long(1000))
	for datagram := range p.s.Due(nil) {
		require.Equal(t, []uint16{0}, p.packet(datagram).ids())
		break
	}
	p.wantEventsOut(1)
	p.wantEventsOut(2)
	p.wantNothing()
}

// A round trip beyond the outcomes: every datagram is declared lost before its
// acknowledgement comes, and the retransmissions push it out of memory. Events must
// still be delivered, and the round trip be learned.
func TestRoundTripBeyondTheOutcomesIsNotALivelock(t *testing.T) {
	for _, rtt := range []time.Duration{2500 * time.Millisecond, 4 * time.Second} {
		var clock ManualClock
		clock.Set(time.Unix(1000, 0))
		type flight struct {
			at       time.Time
			datagram []byte
		}
		var ends [2]*Session
		var links [2][]flight
		for i := range ends {
			ends[i], _ = NewSession(Config{Clock: &clock, Timeout: 10 * time.Second, Heartbeat: 20 * time.Millisecond})
		}
		buf := make([]byte, MaxDatagramSize)
		received := 0
		const ticks, wanted = 60 * 40, 100
		for tick := range ticks {
			clock.Advance(time.Second / 60)
			for i, s := range ends {
				for len(links[1-i]) > 0 && !clock.Now().Before(links[1-i][0].at) {
					in, err := s.Receive(links[1-i][0].datagram)
					require.NoError(t, err, rtt)
					links[1-i] = links[1-i][1:]
					if i == 1 {
						received += len(in.Events)
					}
				}
				if i == 0 && tick < wanted {
					_, err := s.Send([]byte("event"))
					require.NoError(t, err)
				}
				for datagram := range s.Due(buf) {
					links[i] = append(links[i], flight{clock.Now().Add(rtt / 2), bytes.Clone(datagram)})
				}
				require.NoError(t, s.Err(), rtt)
			}
		}
		require.Equal(t, wanted, received)
		require.Zero(t, ends[0].InFlight())
		require.InDelta(t, rtt.Seconds(), ends[0].RTT().Seconds(), 0.2)
	}
}

// A call before anything can be due costs a comparison, also when there is no
// datagram left to judge.
func TestLookWithNothingToJudgeIsTheLastForAWhile(t *testing.T) {
	p := solo(t, Config{Heartbeat: 4 * time.Second})
	p.emit(TypeInput)
	p.ack(0, 0)
	p.advance(time.Second)
	p.wantNothing()
	require.Equal(t, int64(2*time.Second), p.s.channel.quietUntil)
}
