package ackbits

import (
	"fmt"
	"testing"
	"time"

	"github.com/ackbits/ackbits/internal/trim"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// P-4.2.5.
func TestDeliveredAtItsFirstAcknowledgement(t *testing.T) {
	inBothForms(t, func(t *testing.T, wide bool) {
		p := solo(t, Config{Wide: wide, Outcomes: true})
		p.emit(TypeSnapshot)
		p.send("x")
		p.wantEventsOut(0)
		p.sleep(50 * ms)
		p.wantDatagram(TypeHeartbeat)
		p.sleep(10 * ms)
		p.ack(2, 0b11)
		p.ack(2, 0b11)
		p.wantOutcome(Outcome{0, TypeSnapshot, true, 60 * ms}) // oldest sequence first
		p.wantOutcome(Outcome{1, TypeEvent, true, 60 * ms})
		p.wantOutcome(Outcome{2, TypeHeartbeat, true, 10 * ms})
		p.sleep(time.Hour)
		p.wantNoOutcome()
		require.EqualValues(t, 3, p.s.Stats().Delivered)
	})
}

// P-7.2.2.
func TestLostExactlyLossDelayAfterTheProjectedArrival(t *testing.T) {
	for _, delay := range []time.Duration{0, 200 * ms} {
		patience := delay
		if delay == 0 {
			patience = time.Second
		}
		p := solo(t, Config{LossDelay: delay, Outcomes: true})
		p.emit(TypeInput) // no sample: an RTT of 0
		p.sleep(patience - 1)
		p.wantNoOutcome()
		p.sleep(1)
		p.wantOutcome(Outcome{0, TypeInput, false, 0})

		p.emit(TypeInput)
		p.sleep(80 * ms)
		p.ack(1, 0)
		p.wantOutcome(Outcome{1, TypeInput, true, 80 * ms})
		p.emit(TypeInput)
		p.sleep(80*ms + patience - 1)
		p.wantNoOutcome()
		p.sleep(1)
		p.wantOutcome(Outcome{2, TypeInput, false, 0})
	}
}

// The smoothed RTT is that of the moment of judging, not that of sending.
// P-7.2.2.
func TestLossIsJudgedByTheRTTOfTheMoment(t *testing.T) {
	p := solo(t, Config{Outcomes: true})
	p.emit(TypeInput)
	p.emit(TypeInput)
	p.sleep(400 * ms)
	p.ack(1, 0)
	p.wantOutcome(Outcome{1, TypeInput, true, 400 * ms})
	p.sleepUntil(1400*ms - 1)
	p.wantNoOutcome()
	p.sleep(1)
	p.wantOutcome(Outcome{0, TypeInput, false, 0})
}

// Calling late must not turn an acknowledgement that had arrived into a loss.
// P-7.2.3.
func TestReceiveJudgesNothing(t *testing.T) {
	inBothForms(t, func(t *testing.T, wide bool) {
		p := solo(t, Config{Wide: wide, Outcomes: true})
		p.emit(TypeInput)
		p.emit(TypeInput)
		p.sleep(4 * time.Second)
		p.hear(TypeInput)
		require.Equal(t, 2, p.s.Stats().Undecided)
		p.ack(0, 0)
		p.send("nor does Send")
		require.Equal(t, 1, p.s.Stats().Undecided)
		p.wantOutcome(Outcome{0, TypeInput, true, 4 * time.Second})
		p.sleep(time.Second)
		p.wantOutcome(Outcome{1, TypeInput, false, 0})
		p.wantNoOutcome()
	})
}

// P-7.2.3, P-6.2.1.
func TestSendingCallsAndNextOutcomeJudge(t *testing.T) {
	for name, call := range map[string]func(p *actor){
		"AppendDatagram":       func(p *actor) { p.emit(TypeInput) },
		"AppendDue":            func(p *actor) { p.wantDatagram(TypeHeartbeat) },
		"AppendDue of nothing": func(p *actor) { p.emit(TypeInput); p.sleep(800 * ms); p.wantNothing() },
		"NextOutcome":          func(p *actor) { p.s.NextOutcome() },
	} {
		t.Run(name, func(t *testing.T) {
			p := solo(t, Config{Heartbeat: 900 * ms, LossDelay: 1200 * ms})
			p.emit(TypeInput)
			p.sleep(600 * ms)
			if name != "AppendDue of nothing" {
				p.sleep(600 * ms)
			}
			require.Zero(t, p.s.Stats().Lost)
			call(p)
			require.EqualValues(t, 1, p.s.Stats().Lost)
		})
	}
	clock := new(ManualClock)
	c, err := NewReliableChannel(Config{Clock: clock})
	require.NoError(t, err)
	c.NextHeader(TypeInput)
	clock.Advance(time.Second)
	c.NextHeader(TypeInput)
	require.EqualValues(t, 1, c.Stats().Lost)
}

// A zero bit alone is no loss: datagrams are reordered.
// P-7.2.2.
func TestZeroBitIsNoLoss(t *testing.T) {
	inBothForms(t, func(t *testing.T, wide bool) {
		p := solo(t, Config{Wide: wide, Outcomes: true})
		for range 200 {
			p.emit(TypeInput)
		}
		p.sleep(10 * ms)
		p.ack(199, 0)
		p.wantOutcome(Outcome{199, TypeInput, true, 10 * ms})
		p.wantNoOutcome()
		p.ack(0, 0)
		p.wantOutcome(Outcome{0, TypeInput, true, 10 * ms})
		p.wantNoOutcome()
		require.Equal(t, 198, p.s.Stats().Undecided)
		p.s.Close()
		p.sleep(2 * time.Second)
		for range 198 {
			p.fetchOutcomes()
		}
		p.outcomes = nil
	})
}

// P-4.2.5, P-7.2.4.
func TestAckAfterALossDeliversTheEventsButReportsNothing(t *testing.T) {
	inBothForms(t, func(t *testing.T, wide bool) {
		p := solo(t, Config{Wide: wide, Outcomes: true, ResendDelay: time.Hour})
		p.send("x")
		p.wantEventsOut(0)
		p.sleep(time.Second)
		p.wantOutcome(Outcome{0, TypeEvent, false, 0})
		for range 255 {
			p.emit(TypeInput)
		}
		p.ack(0, 0) // fewer than 256 newer ones were sent: it is remembered
		p.ack(0, 0)
		p.ack(100, 0)
		p.ack(0, 0) // now far behind the newest
		p.wantInFlight(0)
		st := p.s.Stats()
		require.EqualValues(t, 1, st.Lost)
		require.EqualValues(t, 1, st.LateAcks)
		require.EqualValues(t, 1, st.Delivered)
		require.Equal(t, 875*ms, st.RTT, "it is a first acknowledgement")
		p.wantOutcome(Outcome{100, TypeInput, true, 0})
		p.wantNoOutcome()
		p.s.Close()
		p.sleep(10 * time.Second)
		p.fetchOutcomes()
		require.Len(t, p.outcomes, 254)
		p.outcomes = nil
	})
}

// P-4.2.6.
func TestDatagramIsRememberedUntilItHasItsOutcome(t *testing.T) {
	inBothForms(t, func(t *testing.T, wide bool) {
		p := solo(t, Config{Wide: wide, Outcomes: true, LossDelay: time.Hour})
		p.send("x")
		p.wantEventsOut(0)
		for range 20_000 {
			p.s.AppendDatagram(nil, TypeInput, nil)
		}
		p.sleep(90 * ms)
		p.ack(0, 0)
		p.wantOutcome(Outcome{0, TypeEvent, true, 90 * ms})
		p.wantNoOutcome()
		p.wantInFlight(0)
	})
}

// What is 32,768 or more behind can no longer be named by any acknowledgement.
// P-4.2.6.
func TestDatagramThatNoAckCanNameIsLost(t *testing.T) {
	p := solo(t, Config{LossDelay: time.Hour})
	for seq := range uint16(40_000) {
		p.s.AppendDatagram(nil, TypeInput, nil)
		if seq == 20_000 {
			p.ack(seq, 0) // or sending would end
		}
	}
	p.check()
	require.Equal(t, 32767, p.s.Stats().Undecided)
	p.ack(uint16(40_000-32768-1), 0)
	require.EqualValues(t, 1, p.s.Stats().Delivered+p.s.Stats().LateAcks)
	p.ack(uint16(40_000-32768), 0)
	require.EqualValues(t, 2, p.s.Stats().Delivered)
}

// Outcomes decided by one Receive come oldest first, from every start.
// P-4.2.4, P-7.2.4.
func TestOutcomesOfOneReceiveComeOldestFirst(t *testing.T) {
	for wide, window := range map[bool]int{false: 33, true: 65} {
		for _, start := range edges {
			p := solo(t, Config{Wide: wide, Outcomes: true})
			p.startAt(start, 0)
			for range window {
				p.emit(TypeInput)
			}
			p.ack(start+uint16(window)-1, ^uint64(0))
			for i := range window {
				p.wantOutcome(Outcome{start + uint16(i), TypeInput, true, 0})
			}
		}
	}
}

// P-7.2.5.
func TestQueueHolds1024OutcomesAndDropsTheOldest(t *testing.T) {
	p := solo(t, Config{Outcomes: true})
	for range 1024 {
		p.emit(TypeInput)
	}
	p.sleep(2 * time.Second)
	p.s.AppendDue(nil)
	require.Zero(t, p.s.Stats().OutcomesDropped)
	p.emit(TypeInput)
	p.emit(TypeInput)
	p.sleep(2 * time.Second)
	p.s.AppendDue(nil)
	require.EqualValues(t, 3, p.s.Stats().OutcomesDropped) // with the heartbeat above, two and it
	p.fetchOutcomes()
	require.Len(t, p.outcomes, 1024)
	for i, o := range p.outcomes {
		require.EqualValues(t, i+3, o.Sequence)
		require.False(t, o.Delivered)
	}
	p.outcomes = nil
	p.sleep(2 * time.Second)
	p.wantOutcome(Outcome{1027, TypeHeartbeat, false, 0})
}

// Outcomes changes only the queue, not the counters.
func TestCountersAreKeptWithoutOutcomes(t *testing.T) {
	for _, queue := range []bool{false, true} {
		p := solo(t, Config{Outcomes: queue})
		for range 3 {
			p.emit(TypeInput)
		}
		p.ack(1, 0)
		p.sleep(time.Second)
		p.emit(TypeInput)
		p.ack(0, 0)
		st := p.s.Stats()
		require.Equal(t, []uint64{1, 2, 1, 1}, []uint64{st.Delivered, st.Lost, st.LateAcks, uint64(st.Undecided)})
		if !queue {
			p.sleep(time.Hour)
			p.wantNoOutcome()
		}
		p.fetchOutcomes()
		p.sleep(time.Hour)
		p.fetchOutcomes()
		p.outcomes = nil
	}
}

// P-6.6.1.
func TestDeadlineDoesNotIncludeOutcomes(t *testing.T) {
	p := solo(t, Config{Heartbeat: 4 * time.Second, Outcomes: true})
	p.emit(TypeInput)
	p.wantDeadline(4 * time.Second)
	p.sleep(2 * time.Second)
	p.wantNothing()
	p.wantDeadline(4 * time.Second)
	p.wantOutcome(Outcome{0, TypeInput, false, 0})
}

// I2: one outcome per sequence, against a model, from every start.
// P-7.2.1.
func TestEveryDatagramGetsOneOutcome(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		p := solo(rt, Config{Wide: rapid.Bool().Draw(rt, "wide"), Outcomes: true, Timeout: time.Hour})
		start := rapid.SampledFrom(edges).Draw(rt, "start")
		p.startAt(start, 0)
		type datagram struct {
			at        time.Duration
			delivered bool
			lost      bool
		}
		var sent []*datagram
		var want []Outcome
		judge := func() {
			for i, f := range sent {
				if !f.delivered && !f.lost && p.now() >= f.at+p.s.RTT()+time.Second {
					f.lost = true
					want = append(want, Outcome{start + uint16(i), TypeInput, false, 0})
				}
			}
		}
		for range 80 {
			switch rapid.IntRange(0, 3).Draw(rt, "what") {
			case 0:
				judge()
				for range rapid.SampledFrom([]int{1, 2, 40}).Draw(rt, "n") {
					p.emit(TypeInput)
					sent = append(sent, &datagram{at: p.now()})
				}
			case 1:
				p.sleep(time.Duration(rapid.IntRange(0, 700).Draw(rt, "ms")) * ms)
			case 2:
				if len(sent) == 0 {
					break
				}
				ack := len(sent) - 1 - rapid.IntRange(0, min(200, len(sent)-1)).Draw(rt, "back")
				ackBits := rapid.Uint64Range(0, 1<<32-1).Draw(rt, "bits") | 1
				p.ack(start+uint16(ack), ackBits)
				for n := 31; n >= -1; n-- {
					if i := ack - 1 - n; i >= 0 && (n < 0 || ackBits>>n&1 != 0) && !sent[i].delivered {
						sent[i].delivered = true
						if !sent[i].lost {
							want = append(want, Outcome{start + uint16(i), TypeInput, true, p.now() - sent[i].at})
						}
					}
				}
			case 3:
				judge()
				p.fetchOutcomes()
				require.Equal(rt, want, p.outcomes)
				p.outcomes, want = nil, nil
			}
		}
		p.s.Close()
		p.sleep(10 * time.Minute)
		p.fetchOutcomes()
		p.outcomes = nil
		require.Zero(rt, p.s.Stats().Undecided)
	})
}

// P-7.2.5.
func TestOutcomesBeyond1024PushOutTheOldest(t *testing.T) {
	var q outcomeQueue
	for i := range 1024 {
		require.False(t, q.push(Outcome{Sequence: uint16(i)}))
	}
	require.True(t, q.push(Outcome{Sequence: 1024}))
	for i := 1; i <= 1024; i++ {
		o, ok := q.pop()
		require.True(t, ok)
		require.Equal(t, uint16(i), o.Sequence)
	}
	o, ok := q.pop()
	require.False(t, ok)
	require.Zero(t, o)
}

func TestOutcomeQueueTakesNoMemoryUntilItIsUsedAndAfter(t *testing.T) {
	var q outcomeQueue
	require.Zero(t, cap(q.ring))
	for range 100 {
		q.push(Outcome{})
	}
	q.trim(false)
	require.Len(t, q.ring, 128, "100 wait")
	for range 100 {
		q.pop()
	}
	q.trim(false)
	require.Len(t, q.ring, 128, "100 waited a moment ago")
	q.trim(false)
	require.Len(t, q.ring, 128, "and in the period before")
	q.trim(false)
	require.Empty(t, q.ring)
	q.push(Outcome{Sequence: 7})
	o, ok := q.pop()
	require.True(t, ok)
	require.Equal(t, uint16(7), o.Sequence)
}

// A busy session keeps room for a modest number of outcomes beyond what waited lately.
func TestOutcomeQueueOfABusySessionKeepsModestRoom(t *testing.T) {
	var q outcomeQueue
	for range 200 {
		q.push(Outcome{})
	}
	for range 200 {
		q.pop()
	}
	for range 3 {
		q.trim(true)
	}
	require.Len(t, q.ring, 2*trim.ModestElements)
}

// The dumb model: a slice.
func TestOutcomeQueueIsASlice(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var q outcomeQueue
		var model []Outcome
		next := uint16(0)
		for range rapid.IntRange(1, 20).Draw(t, "steps") {
			switch rapid.IntRange(0, 4).Draw(t, "action") {
			case 0, 1:
				for range rapid.OneOf(rapid.IntRange(0, 40), rapid.IntRange(900, 1100)).Draw(t, "pushes") {
					o := Outcome{Sequence: next, Type: Type(next), Delivered: next%2 == 0, RTT: time.Duration(next)}
					next++
					require.Equal(t, len(model) == 1024, q.push(o))
					model = append(model, o)
					model = model[max(0, len(model)-1024):]
				}
			case 2, 3:
				for range rapid.IntRange(0, 1200).Draw(t, "pops") {
					o, ok := q.pop()
					require.Equal(t, len(model) > 0, ok)
					if !ok {
						break
					}
					require.Equal(t, model[0], o)
					model = model[1:]
				}
			case 4:
				q.trim(false)
			}
			require.LessOrEqual(t, len(q.ring), 1024)
		}
	})
}

func TestOutcomesCostNoAllocationOnceWarm(t *testing.T) {
	var q outcomeQueue
	round := func() {
		for range 1100 {
			q.push(Outcome{})
		}
		for range 1024 {
			q.pop()
		}
	}
	round()
	require.Zero(t, testing.AllocsPerRun(5, round), fmt.Sprint(len(q.ring)))
}

func TestOutcomesSurviveThatTheirQueueShrinks(t *testing.T) {
	var q outcomeQueue
	for n := range uint16(100) {
		q.push(Outcome{Sequence: n})
	}
	for range 100 {
		q.pop()
	}
	q.push(Outcome{Sequence: 0})
	for range 3 {
		q.trim(false)
	}
	require.Len(t, q.ring, minOutcomes)
	for n := uint16(1); n < 100; n++ {
		q.push(Outcome{Sequence: n})
	}
	for n := range uint16(100) {
		o, ok := q.pop()
		require.True(t, ok)
		require.Equal(t, n, o.Sequence)
	}
}
