package ackbits

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// --- 5.1: what headers say

// Fault: "0" used for "nothing received".
func TestFirstHeaderAcknowledgesNothing(t *testing.T) {
	inBothForms(t, func(t *testing.T, wide bool) {
		p := solo(t, Config{Wide: wide, Outcomes: true})
		p.send("event 0")
		k := p.wantEventsOut(0)
		require.Zero(t, k.Sequence)
		require.EqualValues(t, 65535, k.Ack)
		require.Zero(t, k.AckBits)
		p.emit(TypeInput)
		p.emit(TypeInput)
		p.sleep(10 * ms)
		p.ack(65535, 0)
		p.wantInFlight(1)
		require.Zero(t, p.s.RTT())
		p.wantNoOutcome()
		p.wantAcks(0, 0) // sequence 0 was received, and counts from now on
		p.sleep(10 * time.Second)
		for range 4 {
			p.fetchOutcomes()
		}
		p.outcomes = nil
	})
}

// Fault: bit convention off by one, both sides of the worked example.
func TestWorkedExampleOfSection51(t *testing.T) {
	inBothForms(t, func(t *testing.T, wide bool) {
		p := solo(t, Config{Wide: wide})
		for _, seq := range []uint16{0, 1, 4} {
			p.take(p.datagram(TypeInput, seq, nothingYet, 0))
		}
		require.Equal(t, Late, p.take(p.datagram(TypeInput, 3, nothingYet, 0)).Arrival)
		p.wantAcks(4, 0b1101)

		p = solo(t, Config{Wide: wide})
		for i := range 5 {
			p.send(fmt.Sprint(i))
			p.wantEventsOut(uint16(i))
		}
		p.ack(4, 0b1101)
		p.wantInFlight(1)
		p.sleep(100 * ms)
		p.wantEventsOut(2)
	})
}

// Number zero counts.
func TestEventZeroInDatagramZeroIsAcknowledged(t *testing.T) {
	inBothForms(t, func(t *testing.T, wide bool) {
		a, b := duo(t, Config{Wide: wide})
		a.send("zero")
		b.deliver(a.wantEventsOut(0))
		b.wantEvents("zero")
		k := b.emit(TypeInput)
		require.Zero(t, k.Ack)
		require.Zero(t, k.AckBits)
		a.deliver(k)
		a.wantInFlight(0)
	})
}

// Duplicates of events are acknowledged all the same.
func TestDatagramOfKnownEventsIsAcknowledged(t *testing.T) {
	a, b := duo(t, Config{})
	a.send("e")
	b.deliver(a.wantEventsOut(0))
	drop(b.emit(TypeInput)) // its acknowledgement is lost
	a.sleep(100 * ms)
	again := a.wantEventsOut(0)
	require.Empty(t, b.deliver(again).Events)
	b.wantEvents("e")
	k := b.emit(TypeInput)
	require.Equal(t, again.Sequence, k.Ack)
	a.deliver(k)
	a.wantInFlight(0)
}

// One scenario from every edge of sequences and ids: loss, reordering, a
// duplicate and resends, in both directions of the wrap.
func TestSameStoryFromEveryStart(t *testing.T) {
	inBothForms(t, func(t *testing.T, wide bool) {
		for _, seq := range edges {
			for _, id := range edges {
				a, b := duo(t, Config{Wide: wide, Outcomes: true})
				a.startAt(seq, id)
				b.expectFrom(seq, id)
				a.send("a")
				d0 := a.wantEventsOut(id)
				require.Equal(t, seq, d0.Sequence)
				a.send("b")
				d1 := a.wantEventsOut(id + 1)
				a.send("c")
				d2 := a.wantEventsOut(id + 2)
				drop(d1)
				require.Equal(t, Newest, b.deliver(d2).Arrival)
				require.Equal(t, Late, b.deliver(d0).Arrival)
				require.Equal(t, Duplicate, b.deliver(d0).Arrival)
				b.wantEvents("c", "a")
				a.sleep(30 * ms)
				back := b.emit(TypeInput)
				require.Equal(t, seq+2, back.Ack)
				require.EqualValues(t, 0b10, back.AckBits&0b11)
				a.deliver(back)
				a.wantInFlight(1)
				a.wantOutcome(Outcome{seq, TypeEvent, true, 30 * ms})
				a.wantOutcome(Outcome{seq + 2, TypeEvent, true, 30 * ms})
				a.sleep(70 * ms)
				b.deliver(a.wantEventsOut(id + 1))
				b.wantEvents("b")
				a.deliver(b.emit(TypeInput))
				a.wantInFlight(0)
				a.wantOutcome(Outcome{seq + 3, TypeEvent, true, 0})
				a.sleep(5 * time.Second)
				a.wantOutcome(Outcome{seq + 1, TypeEvent, false, 0})
				b.wantOutcome(Outcome{0, TypeInput, true, 70 * ms})
				b.wantOutcome(Outcome{1, TypeInput, false, 0})
			}
		}
	})
}

// --- R1, the sender: a span, not a count

// Fault: a straggler outside the id window is lost in silence (R1).
func TestEventOutsideTheSpanWaitsForTheStraggler(t *testing.T) {
	inBothForms(t, func(t *testing.T, wide bool) {
		for _, id := range edges {
			a, b := duo(t, Config{Wide: wide})
			a.startAt(0, id)
			b.expectFrom(0, id)
			a.send("straggler")
			drop(a.wantEventsOut(id))
			a.sleep(10 * ms)
			a.sendN(255, 0)
			b.deliver(a.flush()...)
			b.wantCount(255)
			a.sleep(30 * ms)
			a.deliver(b.emit(TypeInput))
			a.wantInFlight(1)
			a.sleep(10 * ms)
			a.send("256")
			a.wantNothing()
			a.wantDeadline(60 * ms) // the heartbeat
			a.sleep(50 * ms)
			resent := a.wantEventsOut(id)
			a.wantNothing()
			b.deliver(resent)
			b.wantEvents("straggler")
			a.deliver(b.emit(TypeInput))
			b.deliver(a.wantEventsOut(id + 256))
			b.wantEvents("256")
			a.deliver(b.emit(TypeInput))
			a.wantInFlight(0)
		}
	})
}

// A list counts its events in a byte, whether they are copies, new, or both.
func TestListHoldsAtMost255Events(t *testing.T) {
	for _, early := range []int{256, 100, 0} {
		c, clock := newChannel(t, Config{})
		list := func() (events int) {
			h, _ := c.NextHeader(TypeEvent)
			if payload := c.AppendDueEvents(nil, h.Sequence, maxListSize); payload != nil {
				parsed, err := ParseEvents(nil, payload)
				require.NoError(t, err)
				events = len(parsed)
			}
			return events
		}
		for range early {
			c.Send(nil)
		}
		for list() > 0 {
		}
		for range nearSpan - early {
			c.Send(nil)
		}
		clock.Advance(100 * ms)
		require.Equal(t, 255, list())
		require.Equal(t, 1, list())
	}
}

func TestOnlyIdsBelowOldestUndeliveredPlus256AreSent(t *testing.T) {
	p := solo(t, Config{Backlog: 1000})
	p.sendN(1000, 0)
	var ids []uint16
	for _, k := range p.flush() {
		ids = append(ids, k.ids()...)
	}
	require.Len(t, ids, 256)
	require.EqualValues(t, 255, ids[255])
	p.ack(1, 0) // datagram 1 carried id 255 alone: the span does not move
	p.wantNothing()
	p.ack(0, 0)
	p.wantInFlight(744)
	ids = nil
	for _, k := range p.flush() {
		ids = append(ids, k.ids()...)
	}
	require.Len(t, ids, 256)
	require.EqualValues(t, 256, ids[0])
}

func TestWaitingEventsGoOutInTheOrderOfTheirIds(t *testing.T) {
	a, b := duo(t, Config{Backlog: 500})
	for i := range 700 {
		a.send(fmt.Sprintf("event %d", i))
	}
	for a.s.InFlight() > 0 {
		b.deliver(a.flush()...)
		a.deliver(b.flush()...)
		a.sleep(50 * ms)
	}
	b.wantEvents(numbered(0, 700)...)
	drop(append(slices.Clone(a.flying), b.flying...)...)
}

func TestSendBeyondTheCapEndsTheSessionAndQueuesNothing(t *testing.T) {
	for _, backlog := range []int{0, 1, 1000, 65024} {
		p := solo(t, Config{Backlog: backlog})
		require.Equal(t, 256+backlog, p.s.Room())
		p.sendN(256+backlog, 0)
		require.Zero(t, p.s.Room())
		p.wantAlive()
		p.sendFails(ErrUnacknowledged)
		p.wantErr(ErrUnacknowledged)
		p.wantInFlight(256 + backlog)
		p.wantNothing()
	}
}

// The cap is on the count: behind a straggler up to 255 events may wait.
func TestBacklogOfZeroLetsEventsWaitBehindAStraggler(t *testing.T) {
	p := solo(t, Config{})
	p.send("straggler")
	p.wantEventsOut(0)
	p.sendN(255, 0)
	p.flush()
	p.ack(1, 0) // 1…255
	require.Equal(t, 255, p.s.Room())
	p.sendN(255, 0)
	p.wantNothing()
	p.sendFails(ErrUnacknowledged)
}

// Fault: a duplicate filter that is too short.
func TestOldCopyIsNotHandedOverAgain(t *testing.T) {
	a, b := duo(t, Config{})
	var copies []*packet
	for range 5 {
		a.sendN(100, 1)
		out := a.flush()
		copies = append(copies, out...)
		b.deliver(out...)
		a.deliver(b.emit(TypeInput))
	}
	b.wantCount(500)
	for i, k := range copies {
		// As a new datagram, which the tracker does not know.
		d := b.datagram(TypeEvent, uint16(1000+i), nothingYet, 0, k.payload...)
		require.Empty(t, b.take(d).Events)
	}
	require.EqualValues(t, 500, b.s.Stats().EventsDuplicate)
}

func TestReceiverJudgesIdsByTheOldestItMisses(t *testing.T) {
	for _, ordered := range []bool{false, true} {
		span := uint16(4096)
		if ordered {
			span = 256
		}
		for _, base := range edges {
			p := solo(t, Config{Ordered: ordered})
			p.expectFrom(0, base)
			list := func(ids ...uint16) []byte {
				var events []Event
				for _, id := range ids {
					events = append(events, Event{base + id, nil})
				}
				return p.datagram(TypeEvent, p.foreign, nothingYet, 0, eventList(events...)...)
			}
			refuse := func(ids ...uint16) { p.refuse(ErrWindow, list(ids...)); p.foreign-- }
			refuse(span)
			refuse(32767)
			refuse(32768)
			require.Empty(t, p.take(list(32769)).Events) // 32767 before: old
			require.Empty(t, p.take(list(65535)).Events)
			p.take(list(span - 1))
			p.take(list(span-1, span-1))
			refuse(1, span, 0)       // judged before 0 is in
			p.take(list(0, span))    // in list order: 0 is in
			p.take(list(1, 2, 2, 0)) // some known
			refuse(span+3, 3)        // base is 3
			refuse(3, 32768+4)
			p.take(list(3, span+3, 32769+4))
			require.EqualValues(t, 7, p.s.Stats().EventsReceived)
			p.events = nil
		}
	}
}

// Only Newest and Late datagrams hand anything over, and a Stale one's events
// come again.
func TestStaleAndDuplicateDatagramsHandNothingOver(t *testing.T) {
	inBothForms(t, func(t *testing.T, wide bool) {
		p := solo(t, Config{Wide: wide})
		p.foreign = 200
		p.hear(TypeInput)
		payload := eventList(Event{0, []byte("x")})
		for _, stale := range []uint16{200 - 65, 200 + 32768} {
			in := p.take(p.datagram(TypeEvent, stale, nothingYet, 0, payload...))
			require.Equal(t, Stale, in.Arrival)
			require.Empty(t, in.Events)
			in = p.take(p.datagram(TypeInput, stale, nothingYet, 0, 1))
			require.Nil(t, in.Payload)
			require.False(t, in.Latest)
		}
		in := p.take(p.datagram(TypeInput, 200, nothingYet, 0, 1))
		require.Equal(t, Duplicate, in.Arrival)
		require.Nil(t, in.Payload)
		in = p.take(p.datagram(TypeEvent, 200-64, nothingYet, 0, payload...))
		require.Equal(t, Late, in.Arrival)
		p.wantEvents("x")
		st := p.s.Stats()
		require.EqualValues(t, 1, st.EventsReceived)
		require.Zero(t, st.EventsDuplicate)
		require.EqualValues(t, 4, st.Stale)
		require.EqualValues(t, 1, st.Duplicates)
	})
}

// Latest, not Arrival, is what latest-wins state must check.
func TestLatestIsByType(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		p := solo(rt, Config{Wide: rapid.Bool().Draw(rt, "wide")})
		start := rapid.SampledFrom(edges).Draw(rt, "start")
		p.expectFrom(start, 0)
		newest := map[Type]int{}
		top := 0
		for range 60 {
			at := top + rapid.IntRange(-66, 30).Draw(rt, "step")
			if at < 0 || at > 20_000 {
				continue
			}
			typ := rapid.SampledFrom([]Type{TypeInput, TypeSnapshot, 200, TypeHeartbeat}).Draw(rt, "type")
			in := p.take(p.datagram(typ, start+uint16(at), nothingYet, 0))
			handed := in.Payload != nil
			seen, ok := newest[typ]
			require.Equal(rt, handed && (!ok || at > seen), in.Latest)
			if handed {
				newest[typ] = max(seen, at)
			}
			top = max(top, at)
		}
	})
}

// 64 steps back is the farthest Late one; its type must not pass for that of the
// newest.
func TestFarthestLateDatagramLeavesTheNewestTypeAlone(t *testing.T) {
	p := solo(t, Config{})
	p.take(p.datagram(TypeSnapshot, 64, nothingYet, 0))
	require.True(t, p.take(p.datagram(TypeInput, 0, nothingYet, 0)).Latest)
	require.False(t, p.take(p.datagram(TypeSnapshot, 63, nothingYet, 0)).Latest)
	require.True(t, p.take(p.datagram(TypeInput, 1, nothingYet, 0)).Latest)
}

// One step nearer its type counts.
func TestTypeOf63StepsBackIsRemembered(t *testing.T) {
	p := solo(t, Config{})
	p.take(p.datagram(TypeHeartbeat, 64, nothingYet, 0))
	require.True(t, p.take(p.datagram(TypeInput, 1, nothingYet, 0)).Latest)
	require.False(t, p.take(p.datagram(TypeInput, 0, nothingYet, 0)).Latest)
}

// What is owed stays owed, whatever a Stale datagram acknowledges.
func TestStaleDatagramDoesNotPayForAcknowledgements(t *testing.T) {
	p := solo(t, Config{})
	p.send("x")
	p.wantEventsOut(0)
	p.wantNothing()
	for i := range uint16(32) {
		p.take(p.datagram(TypeInput, 200+i, nothingYet, 0))
	}
	require.Equal(t, Stale, p.take(p.datagram(TypeInput, 100, 0, 0)).Arrival)
	p.wantInFlight(0)
	p.wantDatagram(TypeHeartbeat)
}

// --- R3: whose acknowledgements count

func TestAcknowledgementsOfEveryArrivalAreRead(t *testing.T) {
	inBothForms(t, func(t *testing.T, wide bool) {
		p := solo(t, Config{Wide: wide})
		p.foreign = 100
		p.hear(TypeInput)
		for i, seq := range []uint16{101, 99, 101, 50000} {
			p.send("x")
			p.wantEventsOut(uint16(i))
			p.take(p.datagram(TypeInput, seq, uint16(i), 0))
			p.wantInFlight(0)
		}
	})
}

func TestAckNewerThanTheLastSentVoidsTheWholePair(t *testing.T) {
	inBothForms(t, func(t *testing.T, wide bool) {
		for _, start := range edges {
			p := solo(t, Config{Wide: wide})
			p.startAt(start, 0)
			p.send("x")
			p.wantEventsOut(0)
			for _, ahead := range []uint16{1, 2, 256, 1024, 4096, 32767, 32768} {
				p.ack(start+ahead, math.MaxUint64)
			}
			p.wantInFlight(1)
			require.Zero(t, p.s.RTT())
			p.ack(start, 0)
			p.wantInFlight(0)
		}
	})
}

// Fault: bits for sequences that were never sent.
func TestBitsOfSequencesNeverSentAreSkipped(t *testing.T) {
	inBothForms(t, func(t *testing.T, wide bool) {
		p := solo(t, Config{Wide: wide})
		p.send("0")
		p.wantEventsOut(0)
		p.send("1")
		p.wantEventsOut(1)
		p.sleep(20 * ms)
		p.ack(0, math.MaxUint64)
		p.wantInFlight(1)
		require.Equal(t, 20*ms, p.s.RTT())
		require.EqualValues(t, 1, p.s.Stats().Delivered)
	})
}

// Fault: an ack outside the window hits another entry through the index mask.
func TestAckOutsideTheWindowHitsNoOtherDatagram(t *testing.T) {
	inBothForms(t, func(t *testing.T, wide bool) {
		p := solo(t, Config{Wide: wide})
		for i := range 10 {
			p.send("x")
			p.wantEventsOut(uint16(i))
		}
		for _, ack := range []uint16{9 + 256, 9 + 1024, 9 + 4096, 65500} {
			p.ack(ack, 0)
			p.ack(ack, math.MaxUint64)
		}
		p.wantInFlight(10)
		require.Zero(t, p.s.Stats().Delivered)
	})
}

func TestAckOfForgottenDatagramSaysNothing(t *testing.T) {
	inBothForms(t, func(t *testing.T, wide bool) {
		p := solo(t, Config{Wide: wide, LossDelay: 1})
		p.send("x")
		p.wantEventsOut(0)
		p.sleep(time.Duration(lateMemory))
		for range 256 {
			p.sleep(1)
			p.emit(TypeInput)
		}
		p.ack(0, math.MaxUint64)
		p.wantInFlight(1)
		require.Zero(t, p.s.RTT())
		require.Zero(t, p.s.Stats().LateAcks)
	})
}

// Fault: one with a very high number makes all honest acknowledgements too old.
func TestPoisonedAckDeliversNothing(t *testing.T) {
	inBothForms(t, func(t *testing.T, wide bool) {
		p := solo(t, Config{Wide: wide})
		for range 59 {
			p.emit(TypeInput)
		}
		p.send("x")
		p.wantEventsOut(0) // sequence 59
		for i := range 50 {
			p.sleep(100 * ms)
			p.take(p.datagram(TypeInput, uint16(i), 32826, 0))
			p.wantEventsOut(0)
		}
		p.wantInFlight(1)
		require.Zero(t, p.s.Stats().Delivered)
		p.send("y")
		p.ack(p.wantEventsOut(1).Sequence, 0) // an honest one still counts
		p.wantInFlight(1)
		p.sendN(255, 0)
		p.sendFails(ErrUnacknowledged)
	})
}

// 65535 with no bits is how a peer says that it has received nothing, until it
// has said otherwise.
func TestAck65535CountsOnceAnotherWasAccepted(t *testing.T) {
	inBothForms(t, func(t *testing.T, wide bool) {
		story := func(first func(p *actor), inFlight int) {
			p := solo(t, Config{Wide: wide})
			p.startAt(65533, 0)
			for i := range 3 {
				p.send("x")
				p.wantEventsOut(uint16(i)) // in 65533, 65534, 65535
			}
			p.s.channel.sent.top = -1 // nothing was ever acknowledged
			first(p)
			p.ack(65535, 0)
			p.wantInFlight(inFlight)
		}
		story(func(p *actor) {}, 3)
		story(func(p *actor) { p.ack(65533, 0) }, 1)
		story(func(p *actor) { p.s.channel.sent.top = 0 }, 2)      // none but the first was, long ago
		story(func(p *actor) { p.ack(1, math.MaxUint64) }, 3)      // never sent: not accepted
		story(func(p *actor) { p.ack(60000, 0) }, 3)               // not remembered: nor this
		story(func(p *actor) { p.ack(65535, 0b10) }, 1)            // with bits it counts
		story(func(p *actor) { p.ack(65535, 1<<40) }, 3-b2i(wide)) // whose bits those are
	})
}

// The base of the bits is the ack, not the packet's own sequence.
func TestBitsCountFromTheAck(t *testing.T) {
	p := solo(t, Config{Wide: true, LossDelay: time.Hour, Outcomes: true})
	p.startAt(900, 0)
	for range 101 {
		p.emit(TypeInput)
	}
	p.take(p.datagram(TypeInput, 10, 1000, 1<<0|1<<2)) // the text's bits 1 and 3
	p.wantOutcome(Outcome{997, TypeInput, true, 0})
	p.wantOutcome(Outcome{999, TypeInput, true, 0})
	p.wantOutcome(Outcome{1000, TypeInput, true, 0})
	p.wantNoOutcome()
}

// A header that comes again is no news, even when it names nothing of the newest
// 65: neither a sample nor a sign of reordering. What was not named before is.
func TestHeaderOfLongAgoNamesWhatIsKnown(t *testing.T) {
	p := solo(t, Config{Wide: true, Adaptive: true})
	for seq := range uint16(300) {
		p.emit(TypeInput)
		if seq != 100 && seq != 200 { // so that the log begins at 100
			p.ack(seq, 0)
		}
	}
	p.sleep(20 * ms)
	a := p.s.channel.adapt
	a.reorderStep, a.backoff = 0, 2
	p.ack(120, math.MaxUint64&^(1<<(120-1-100))) // those before 100 are forgotten
	require.Zero(t, p.s.RTT())
	require.Zero(t, a.reorderStep)
	require.Equal(t, 2, a.backoff)
	p.ack(210, math.MaxUint64)
	require.Zero(t, p.s.RTT())
	require.EqualValues(t, 299, p.s.Stats().Delivered)
	require.Zero(t, a.backoff)
}

// After 65,536 datagrams a sequence comes again. What the one before carried is
// not delivered with it, whether it carries events itself, and is the one whose
// copy fills the log, or not.
func TestAckDeliversNothingOfTheSequenceBeforeAWrap(t *testing.T) {
	for _, carries := range []bool{false, true} {
		c, _ := newChannel(t, Config{})
		for seq := range 1<<16 + 1 {
			h, _ := c.NextHeader(TypeInput)
			if seq < 7 || seq == 1<<16 && carries {
				c.Send([]byte("x"))
				require.NotEmpty(t, c.AppendDueEvents(nil, h.Sequence, 100))
			}
			if seq > 0 {
				c.Receive(Header{Type: TypeInput, Sequence: uint16(seq), Ack: h.Sequence}, nil)
			}
		}
		require.EqualValues(t, 1<<16, c.Stats().Delivered)
		require.Equal(t, 1, c.InFlight())
	}
}

// Nor if that datagram carried none itself, the one a wrap before is long forgotten,
// and its event is on the wire to this day.
func TestAckOfADatagramWithoutEventsDeliversNoneOfAWrapBefore(t *testing.T) {
	c, clock := newChannel(t, Config{LossDelay: ms})
	resend := func() {
		clock.Advance(100 * ms)
		h, _ := c.NextHeader(TypeEvent)
		require.NotEmpty(t, c.AppendDueEvents(nil, h.Sequence, 100))
	}
	peer := uint16(0)
	acknowledged := func() {
		h, _ := c.NextHeader(TypeInput)
		c.Receive(Header{Type: TypeInput, Sequence: peer, Ack: h.Sequence}, nil)
		peer++
	}
	c.Send([]byte("x"))
	resend() // 0
	for range 1<<16 - 2 {
		acknowledged()
	}
	resend() // 65535
	h, _ := c.NextHeader(TypeInput)
	require.Zero(t, h.Sequence)
	resend()
	c.Receive(Header{Type: TypeInput, Sequence: peer, Ack: h.Sequence}, nil)
	require.Equal(t, 1, c.InFlight())
}

// The whole window in one ack.
func TestWholeWindowInOneAck(t *testing.T) {
	for wide, window := range map[bool]int{false: 33, true: 65} {
		p := solo(t, Config{Wide: wide})
		for i := range window + 1 {
			p.send("x")
			p.wantEventsOut(uint16(i))
		}
		p.ack(uint16(window), math.MaxUint64)
		p.wantInFlight(1) // the one before the window
		p.sleep(100 * ms)
		p.wantEventsOut(0)

		p = solo(t, Config{Wide: wide})
		for i := range window {
			p.send("x")
			p.wantEventsOut(uint16(i))
		}
		p.ack(uint16(window)-1, math.MaxUint64)
		p.wantInFlight(0)
		for range 4 {
			p.sleep(50 * ms)
			p.wantDatagram(TypeHeartbeat)
			p.wantNothing()
		}
	}
}

func TestNarrowHeaderOfAChannelHas32Bits(t *testing.T) {
	c, err := NewReliableChannel(Config{Clock: new(ManualClock)})
	require.NoError(t, err)
	for range 65 {
		c.NextHeader(TypeInput)
	}
	_, err = c.Receive(Header{Type: TypeInput, Ack: 64, AckBits: math.MaxUint64}, nil)
	require.NoError(t, err)
	require.EqualValues(t, 33, c.Stats().Delivered)
	_, err = c.Receive(Header{Wide: true, Type: TypeInput, Sequence: 1, Ack: 64, AckBits: math.MaxUint64}, nil)
	require.NoError(t, err)
	require.EqualValues(t, 65, c.Stats().Delivered)

	for seq := range uint16(64) {
		c.Receive(Header{Type: TypeInput, Ack: 64, Sequence: 1 + seq}, nil)
	}
	h, _ := c.NextHeader(TypeInput)
	require.Equal(t, uint64(math.MaxUint32), h.AckBits)
}

// Against a model: a set of sequences that were sent and are remembered, in any
// order of headers.
func TestAcknowledgementsAgreeWithAModel(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		wide := rapid.Bool().Draw(rt, "wide")
		p := solo(rt, Config{Wide: wide, LossDelay: 24 * time.Hour})
		start := rapid.SampledFrom(edges).Draw(rt, "start")
		p.startAt(start, 0)
		sent, accepted := 0, start != 0
		delivered := map[int]bool{}
		width := 32
		if wide {
			width = 64
		}
		for range 50 {
			for range rapid.SampledFrom([]int{0, 1, 3, 70}).Draw(rt, "n") {
				p.emit(TypeInput)
				sent++
			}
			ack := sent - 1 - rapid.IntRange(-3, 150).Draw(rt, "back")
			ackBits := rapid.Uint64().Draw(rt, "bits")
			if rapid.Bool().Draw(rt, "no bits") {
				ackBits = 0
			}
			p.ack(start+uint16(ack), ackBits)
			if ack >= 0 && ack < sent && (accepted || start+uint16(ack) != 65535 || ackBits != 0) {
				accepted = true
				delivered[ack] = true
				for n := range width {
					if seq := ack - 1 - n; seq >= 0 && ackBits>>n&1 != 0 {
						delivered[seq] = true
					}
				}
			}
			require.EqualValues(rt, len(delivered), p.s.Stats().Delivered)
		}
	})
}

// --- 5.3 and R5: resends

// Resends by the clock alone, and the edge of the delay.
func TestEventIsResentEach100msInSilence(t *testing.T) {
	inBothForms(t, func(t *testing.T, wide bool) {
		p := solo(t, Config{Wide: wide})
		p.send("same bytes")
		var at []time.Duration
		var first []byte
		var seq uint16
		for range 46 {
			for _, k := range p.flush() {
				require.Equal(t, seq, k.Sequence)
				seq++
				if k.Type == TypeEvent {
					at = append(at, p.now())
					if first == nil {
						first = k.payload
					}
					require.Equal(t, first, k.payload)
				}
			}
			p.sleep(10 * ms)
		}
		require.Equal(t, []time.Duration{0, 100 * ms, 200 * ms, 300 * ms, 400 * ms}, at)

		p = solo(t, Config{Wide: wide})
		p.send("x")
		p.wantEventsOut(0)
		p.sleep(99 * ms)
		p.ack(0, 0)
		for range 20 {
			p.sleep(50 * ms)
			p.wantDatagram(TypeHeartbeat)
		}
	})
}

func TestResendIsDueAtExactly100msSinceThatEventWasLastSent(t *testing.T) {
	p := solo(t, Config{})
	p.send("0")
	p.wantEventsOut(0)
	p.sleep(40 * ms)
	p.send("1")
	p.wantEventsOut(1)
	p.sleepUntil(90 * ms)
	p.wantDatagram(TypeHeartbeat)
	p.wantDeadline(100 * ms)
	p.sleepUntil(100*ms - 1)
	p.wantNothing()
	p.sleep(1)
	p.wantEventsOut(0)
	p.wantDeadline(140 * ms)
	p.sleepUntil(170 * ms)
	p.wantEventsOut(1)
	p.sleepUntil(200 * ms)
	p.wantEventsOut(0)
	p.sleepUntil(270*ms - 1)
	p.wantDatagram(TypeHeartbeat)
	p.sleepUntil(270 * ms)
	p.wantEventsOut(1)
}

// A resend has the bytes of the first send.
func TestSendCopies(t *testing.T) {
	p := solo(t, Config{})
	buf := []byte("original")
	_, err := p.s.Send(buf)
	require.NoError(t, err)
	copy(buf, "scribble")
	want := eventList(Event{0, []byte("original")})
	require.Equal(t, want, p.wantEventsOut(0).payload)
	p.sleep(100 * ms)
	require.Equal(t, want, p.wantEventsOut(0).payload)
}

// An event that was delivered by one copy is not sent again, whichever copy.
func TestAckOfAnyCopySettlesTheEvent(t *testing.T) {
	for copies := range 20 {
		p := solo(t, Config{})
		p.send("0", "1")
		var seqs []uint16
		for range 20 {
			seqs = append(seqs, p.wantEventsOut(0, 1).Sequence)
			p.sleep(100 * ms)
		}
		p.ack(seqs[copies], 0)
		p.wantInFlight(0)
		p.wantDatagram(TypeHeartbeat)
		for range 2 {
			p.sleep(50 * ms)
			p.wantDatagram(TypeHeartbeat)
		}
	}
}

func TestAckOfAnEventThatIsDueTakesItOffTheList(t *testing.T) {
	p := solo(t, Config{})
	p.send(long(1000), long(1000))
	p.flush()
	p.sleep(100 * ms)
	p.wantEventsOut(0) // 1 is due as well
	p.ack(1, 0)
	p.wantNothing()
}

// Against a model of the sender: which events each datagram carries, under any
// acknowledgements.
func TestEventsInFlightAgreeWithAModel(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		p := solo(rt, Config{Wide: rapid.Bool().Draw(rt, "wide"), Backlog: 300, StallTimeout: -1})
		seq, id := rapid.SampledFrom(edges).Draw(rt, "seq"), rapid.SampledFrom(edges).Draw(rt, "id")
		p.startAt(seq, id)
		type event struct {
			data      string
			last      time.Duration
			delivered bool
		}
		var events []*event
		base, sent := 0, 0
		carried := map[uint16][]int{}
		var out []uint16
		for range 60 {
			switch rapid.IntRange(0, 3).Draw(rt, "what") {
			case 0:
				for range rapid.SampledFrom([]int{1, 2, 90}).Draw(rt, "n") {
					if p.s.Room() == 0 {
						break
					}
					e := &event{data: fmt.Sprintf("%d %s", len(events), long(rapid.SampledFrom([]int{0, 0, 40, 1100}).Draw(rt, "size"))), last: -1}
					events = append(events, e)
					p.send(e.data)
				}
			case 1:
				p.sleep(time.Duration(rapid.IntRange(0, 60).Draw(rt, "ms")) * ms)
				p.hear(TypeHeartbeat)
			case 2:
				if len(out) > 0 {
					ack := out[len(out)-1-rapid.IntRange(0, min(len(out)-1, 40)).Draw(rt, "ack")]
					p.ack(ack, 0)
					for _, n := range carried[ack] {
						events[n].delivered = true
					}
				}
			case 3:
				for _, k := range p.flush() {
					out = append(out, k.Sequence)
					if k.Type != TypeEvent {
						continue
					}
					got, err := ParseEvents(nil, k.payload)
					require.NoError(rt, err)
					for _, g := range got {
						n := int(g.ID - id)
						e := events[n]
						require.False(rt, e.delivered)
						require.Equal(rt, e.data, string(g.Data))
						require.Less(rt, n, base+256)
						if e.last >= 0 {
							require.GreaterOrEqual(rt, p.now()-e.last, 100*ms)
						} else {
							require.Equal(rt, sent, n)
							sent++
						}
						e.last = p.now()
						carried[k.Sequence] = append(carried[k.Sequence], n)
					}
				}
				for n, e := range events[:min(len(events), base+256)] { // nothing due is left
					require.True(rt, e.delivered || e.last >= 0 && p.now()-e.last < 100*ms, n)
				}
			}
			for base < len(events) && events[base].delivered {
				base++
			}
			undelivered := 0
			for _, e := range events {
				undelivered += b2i(!e.delivered)
			}
			require.Equal(rt, undelivered, p.s.InFlight())
			require.Equal(rt, 556-undelivered, p.s.Room())
		}
	})
}

// --- R4: RTT

// One sample per acknowledged datagram.
func TestSameAckIsSampledOnce(t *testing.T) {
	inBothForms(t, func(t *testing.T, wide bool) {
		p := solo(t, Config{Wide: wide})
		p.emit(TypeInput) // is never acknowledged, and keeps the next one from being forgotten
		p.emit(TypeInput)
		require.Zero(t, p.s.RTT())
		for _, at := range []time.Duration{80 * ms, 130 * ms, 500 * ms} {
			p.sleepUntil(at)
			p.ack(1, 0)
			require.Equal(t, 80*ms, p.s.RTT())
			require.Equal(t, 40*ms, p.s.Stats().RTTVar)
		}
		p.sleepUntil(600 * ms)
		for range 100 {
			p.emit(TypeInput)
		}
		p.sleep(80 * ms)
		p.ack(1, 0)
		require.Equal(t, 80*ms, p.s.RTT())
		p.ack(101, 0)
		p.sleep(time.Second)
		p.ack(1, 0) // now far behind the newest
		require.Equal(t, 80*ms, p.s.RTT())
		p.flush() // what is lost is no sample
		require.NotZero(t, p.s.Stats().Lost)
		require.Equal(t, 80*ms, p.s.RTT())
	})
}

// The arithmetic of RFC 6298.
func TestRTTFollowsRFC6298(t *testing.T) {
	p := solo(t, Config{})
	for i, c := range []struct{ sample, srtt, rttvar time.Duration }{
		{100 * ms, 100 * ms, 50 * ms},
		{120 * ms, 102500 * time.Microsecond, 42500 * time.Microsecond},
		{80 * ms, 99687500, 37500 * time.Microsecond},
		{300 * ms, 124726562, 78203125},
		{5 * time.Second, 734135741, 1277470703}, // beyond 32 bits of nanoseconds
		{ms, 642493774, 1141386963},
	} {
		p.emit(TypeInput)
		p.sleep(c.sample)
		p.ack(uint16(i), 0)
		require.Equal(t, c.srtt, p.s.RTT())
		require.Equal(t, c.rttvar, p.s.Stats().RTTVar)
	}
}

func TestBitsGiveNoSample(t *testing.T) {
	p := solo(t, Config{})
	p.emit(TypeInput)
	p.sleep(500 * ms)
	p.emit(TypeInput)
	p.sleep(20 * ms)
	p.ack(1, 0b1) // 0 waited for 520 ms
	require.Equal(t, 20*ms, p.s.RTT())
	p.emit(TypeInput)
	p.emit(TypeInput)
	p.sleep(20 * ms)
	p.ack(3, 0b1)
	p.sleep(time.Second)
	p.ack(2, 0) // acknowledged by a bit before: not for the first time
	require.Equal(t, 20*ms, p.s.RTT())
}

func TestSampleOfZeroCounts(t *testing.T) {
	p := solo(t, Config{})
	p.emit(TypeInput)
	p.sleep(-time.Hour) // a clock that steps back makes no negative sample
	p.ack(0, 0)
	require.Zero(t, p.s.RTT())
	p.emit(TypeInput)
	p.sleep(80 * ms)
	p.ack(1, 0)
	require.Equal(t, 10*ms, p.s.RTT(), "an eighth, not a first sample")
}

func TestResentEventsGiveSamplesToo(t *testing.T) { // no Karn exception
	p := solo(t, Config{})
	p.send("x")
	p.wantEventsOut(0)
	p.sleep(100 * ms)
	p.wantEventsOut(0)
	p.sleep(30 * ms)
	p.ack(1, 0)
	require.Equal(t, 30*ms, p.s.RTT())
}

// Fault: a stalled reader poisons the estimate, unless it stamps arrivals.
func TestSharedClockStampsArrivals(t *testing.T) {
	p := solo(t, Config{})
	p.emit(TypeInput)
	d := p.datagram(TypeInput, 0, 0, 0)
	p.clock.Set(p.began.Add(50 * ms)) // when it arrived, read at 3 s
	p.take(d)
	p.clock.Set(p.began.Add(3 * time.Second))
	p.flush()
	require.Equal(t, 50*ms, p.s.RTT())
}

// --- ReliableChannel: the same machine without bytes, tokens and timers

func newChannel(t *testing.T, cfg Config) (*ReliableChannel, *ManualClock) {
	t.Helper()
	clock := &ManualClock{}
	cfg.Clock = clock
	c, err := NewReliableChannel(cfg)
	require.NoError(t, err)
	return c, clock
}

func TestChannelNumbersAndAcknowledges(t *testing.T) {
	inBothForms(t, func(t *testing.T, wide bool) {
		c, clock := newChannel(t, Config{Wide: wide, Token: 77, Outcomes: true})
		h, ok := c.NextHeader(TypeSnapshot)
		require.True(t, ok)
		require.Equal(t, Header{Wide: wide, Type: TypeSnapshot, Ack: 65535}, h, "no token")
		for _, seq := range []uint16{0, 1, 4, 3} {
			_, err := c.Receive(Header{Wide: wide, Type: TypeInput, Sequence: seq, Ack: 65535}, nil)
			require.NoError(t, err)
		}
		h, _ = c.NextHeader(TypeInput)
		require.Equal(t, Header{Wide: wide, Type: TypeInput, Sequence: 1, Ack: 4, AckBits: 0b1101}, h)
		clock.Advance(30 * ms)
		in, err := c.Receive(Header{Wide: wide, Type: 255, Token: 3, Sequence: 5, Ack: 1}, []byte("p"))
		require.NoError(t, err)
		require.Equal(t, Incoming{Header: Header{Wide: wide, Type: 255, Token: 3, Sequence: 5, Ack: 1}, Arrival: Newest, Latest: true, Payload: []byte("p")}, in)
		require.Equal(t, 30*ms, c.RTT())
		o, ok := c.NextOutcome()
		require.True(t, ok)
		require.Equal(t, Outcome{1, TypeInput, true, 30 * ms}, o)
		_, ok = c.NextOutcome()
		require.False(t, ok)
		require.Zero(t, c.Stats().BytesReceived+c.Stats().BytesSent)
	})
}

func TestChannelAppendsAWholePayloadOrNothing(t *testing.T) {
	c, clock := newChannel(t, Config{})
	_, ok := c.Deadline()
	require.False(t, ok)
	c.Send([]byte("abc"))
	c.Send(nil)
	at, ok := c.Deadline() // includes first copies
	require.True(t, ok)
	require.Equal(t, clock.Now(), at)
	h, _ := c.NextHeader(TypeEvent)
	for _, short := range []int{math.MinInt, -1, 0, 1, 7} {
		require.False(t, c.EventsDue(short))
		require.Equal(t, "kept", string(c.AppendDueEvents([]byte("kept"), h.Sequence, short)))
	}
	require.True(t, c.EventsDue(8))
	require.Equal(t, append([]byte("kept"), eventList(Event{0, []byte("abc")})...), c.AppendDueEvents([]byte("kept"), h.Sequence, 8))
	require.True(t, c.EventsDue(5))
	h, _ = c.NextHeader(TypeEvent)
	require.Equal(t, eventList(Event{1, nil}), c.AppendDueEvents(nil, h.Sequence, math.MaxInt))
	require.False(t, c.EventsDue(math.MaxInt))
	require.Empty(t, c.AppendDueEvents(nil, h.Sequence, math.MaxInt))
	at, _ = c.Deadline()
	require.Equal(t, clock.Now().Add(100*ms), at)
	clock.Advance(100*ms - 1)
	require.False(t, c.EventsDue(math.MaxInt))
	clock.Advance(1)
	require.True(t, c.EventsDue(12))
	h, _ = c.NextHeader(TypeEvent)
	require.Equal(t, eventList(Event{0, []byte("abc")}, Event{1, nil}), c.AppendDueEvents(nil, h.Sequence, 12))
	require.Equal(t, 2, c.InFlight())
	c.Receive(Header{Type: TypeInput, Ack: 2}, nil)
	require.Zero(t, c.InFlight())
	_, ok = c.Deadline()
	require.False(t, ok)
}

func TestAppendDueEventsFindsResendsByItself(t *testing.T) {
	c, clock := newChannel(t, Config{})
	c.Send([]byte("x"))
	for seq := range uint16(3) {
		h, _ := c.NextHeader(TypeEvent)
		require.Equal(t, seq, h.Sequence)
		require.NotEmpty(t, c.AppendDueEvents(nil, seq, 100))
		require.Empty(t, c.AppendDueEvents(nil, seq, 100))
		clock.Advance(100 * ms)
	}
}

func TestDatagramThatHasItsFateCarriesNothingMore(t *testing.T) {
	c, clock := newChannel(t, Config{})
	acked, _ := c.NextHeader(TypeEvent)
	lost, _ := c.NextHeader(TypeEvent)
	c.Receive(Header{Type: TypeInput, Ack: acked.Sequence}, nil)
	c.Send(nil)
	require.Empty(t, c.AppendDueEvents(nil, acked.Sequence, 100))
	clock.Advance(time.Second)
	c.NextOutcome()
	require.Empty(t, c.AppendDueEvents(nil, lost.Sequence, 100))
	require.True(t, c.EventsDue(100))
}

// Whatever was appended for a datagram is delivered with it.
func TestSecondListOfADatagramIsDeliveredWithIt(t *testing.T) {
	for _, between := range []bool{false, true} {
		c, _ := newChannel(t, Config{})
		first, _ := c.NextHeader(TypeEvent)
		other, _ := c.NextHeader(TypeEvent)
		c.Send([]byte("a"))
		require.NotEmpty(t, c.AppendDueEvents(nil, first.Sequence, 100))
		if between {
			c.Send([]byte("b"))
			require.NotEmpty(t, c.AppendDueEvents(nil, other.Sequence, 100))
		}
		c.Send([]byte("c"))
		second := c.AppendDueEvents(nil, first.Sequence, 100)
		left := 1
		if len(second) > 0 {
			left = 0
		}
		c.Receive(Header{Type: TypeInput, Ack: first.Sequence}, nil)
		require.Equal(t, left+b2i(between), c.InFlight())
		require.Equal(t, left > 0, c.EventsDue(100), "and else it is still due")
	}
}

// Both lists of a datagram are, also where the first one's events lie apart.
func TestSecondListAfterOneWithAGap(t *testing.T) {
	c, clock := newChannel(t, Config{})
	for range 3 {
		h, _ := c.NextHeader(TypeEvent)
		c.Send(nil)
		require.NotEmpty(t, c.AppendDueEvents(nil, h.Sequence, 100))
	}
	c.Receive(Header{Type: TypeInput, Ack: 1}, nil)
	clock.Advance(100 * ms)
	h, _ := c.NextHeader(TypeEvent)
	require.Len(t, c.AppendDueEvents(nil, h.Sequence, 100), 1+2*4, "0 and 2")
	c.Send(nil)
	require.Len(t, c.AppendDueEvents(nil, h.Sequence, 100), 1+4)
	c.Receive(Header{Type: TypeInput, Sequence: 1, Ack: h.Sequence}, nil)
	require.Zero(t, c.InFlight())
}

// What is said of bundles is none of a channel's business.
func TestChannelEventStaysDueHoweverOftenItIsResent(t *testing.T) {
	c, clock := newChannel(t, Config{Bundle: true})
	c.Send(make([]byte, MaxEventSize))
	for range 5 {
		require.True(t, c.EventsDue(MaxDatagramSize))
		h, _ := c.NextHeader(TypeEvent)
		require.NotEmpty(t, c.AppendDueEvents(nil, h.Sequence, MaxDatagramSize))
		require.False(t, c.EventsDue(MaxDatagramSize))
		clock.Advance(100 * ms)
	}
}

// No datagram's list is longer than one holds, whatever room the caller has.
func TestChannelListsFitADatagram(t *testing.T) {
	for second, want := range map[int]int{573: 1182, 574: 605, 600: 605} {
		c, _ := newChannel(t, Config{})
		c.Send(make([]byte, 600))
		c.Send(make([]byte, second))
		h, _ := c.NextHeader(TypeEvent)
		require.Len(t, c.AppendDueEvents(nil, h.Sequence, 1<<20), want, second)
	}
}

// A datagram without a fate may outlive the log of its events.
func TestDatagramWhoseCopiesWereForgottenCarriesNothingMore(t *testing.T) {
	c, clock := newChannel(t, Config{LossDelay: time.Hour})
	c.Send([]byte("a"))
	first, _ := c.NextHeader(TypeEvent)
	require.NotEmpty(t, c.AppendDueEvents(nil, first.Sequence, 100))
	clock.Advance(100 * ms)
	second, _ := c.NextHeader(TypeEvent)
	require.NotEmpty(t, c.AppendDueEvents(nil, second.Sequence, 100))
	c.Receive(Header{Type: TypeInput, Ack: first.Sequence}, nil)
	require.Zero(t, c.InFlight())
	for range 4 {
		clock.Advance(time.Duration(trimPeriod))
		c.NextHeader(TypeHeartbeat)
	}
	require.Empty(t, c.outbox.runs)
	c.Send([]byte("b"))
	require.Empty(t, c.AppendDueEvents(nil, second.Sequence, 100))
	require.True(t, c.EventsDue(100))
	c.Receive(Header{Type: TypeInput, Sequence: 1, Ack: second.Sequence}, nil)
	require.Equal(t, 1, c.InFlight())
}

func TestChannelIgnoresASequenceItNeverNumbered(t *testing.T) {
	c, _ := newChannel(t, Config{})
	c.Send(nil)
	for _, seq := range []uint16{0, 1, 65535, 32768} {
		require.Empty(t, c.AppendDueEvents(nil, seq, 1000))
	}
	require.True(t, c.EventsDue(1000), "and the event is still due")
}

func TestChannelEventsTravelInApplicationDatagrams(t *testing.T) {
	// A caller with a format of his own may number a datagram of any type.
	c, clock := newChannel(t, Config{})
	c.Send([]byte("x"))
	h, _ := c.NextHeader(TypeInput)
	require.NotEmpty(t, c.AppendDueEvents(nil, h.Sequence, 100))
	c.Receive(Header{Type: TypeInput, Ack: h.Sequence}, nil)
	require.Zero(t, c.InFlight())
	clock.Advance(time.Minute)
	require.False(t, c.EventsDue(100))
}

func TestChannelReadsEitherForm(t *testing.T) {
	inBothForms(t, func(t *testing.T, wide bool) {
		c, _ := newChannel(t, Config{Wide: !wide})
		_, err := c.Receive(Header{Wide: wide, Type: TypeInput}, nil)
		require.NoError(t, err)
	})
}

func TestChannelChecksFraming(t *testing.T) {
	refuse := errors.New("no")
	c, _ := newChannel(t, Config{Accept: func(h Header, _ []byte) error {
		if h.Type == TypeSnapshot {
			return refuse
		}
		return nil
	}})
	for _, bad := range []Type{0, 9, 10, 11, 12, 13, 14, 15} {
		_, err := c.Receive(Header{Type: bad}, nil)
		require.ErrorIs(t, err, ErrType)
	}
	for typ, payload := range map[Type][]byte{TypeEvent: {0}, TypeHeartbeat: {0}, TypeDisconnect: {0}, TypeBundle: {0}} {
		_, err := c.Receive(Header{Type: typ}, payload)
		require.ErrorIs(t, err, ErrPayload)
	}
	_, err := c.Receive(Header{Type: TypeEvent}, eventList(Event{4096, nil}))
	require.ErrorIs(t, err, ErrWindow)
	_, err = c.Receive(Header{Type: TypeSnapshot}, nil)
	require.ErrorIs(t, err, ErrRejected)
	require.ErrorIs(t, err, refuse)
	require.EqualValues(t, 14, c.Stats().Rejected)
	in, err := c.Receive(Header{Type: TypeInput}, nil)
	require.NoError(t, err)
	require.Equal(t, Newest, in.Arrival)
	require.NotNil(t, in.Payload)
	in, err = c.Receive(Header{Type: TypeBundle, Sequence: 1}, append(append([]byte{200}, eventList(Event{0, []byte("e")})...), "rest"...))
	require.NoError(t, err)
	require.EqualValues(t, 200, in.Type)
	require.Equal(t, "rest", string(in.Payload))
	require.Equal(t, []Event{{0, []byte("e")}}, in.Events)
}

func TestDisconnectIsAnOrdinaryDatagramToAChannel(t *testing.T) {
	c, clock := newChannel(t, Config{})
	in, err := c.Receive(Header{Type: TypeDisconnect}, nil)
	require.NoError(t, err)
	require.Equal(t, Newest, in.Arrival)
	require.NoError(t, c.Err())
	clock.Advance(time.Hour) // nor has it a timeout or a stall
	c.Send(nil)
	h, ok := c.NextHeader(TypeDisconnect)
	require.True(t, ok)
	require.Zero(t, h.Ack)
	c.AppendDueEvents(nil, h.Sequence, 100)
	clock.Advance(time.Hour)
	require.True(t, c.EventsDue(100))
	require.NoError(t, c.Err())
}

func TestChannelAckDueAfter32Datagrams64Wide(t *testing.T) {
	for wide, burst := range map[bool]uint16{false: 32, true: 64} {
		c, _ := newChannel(t, Config{Wide: wide})
		for seq := range 2 * burst {
			if seq == burst {
				c.NextHeader(TypeHeartbeat)
			}
			require.False(t, c.AckDue())
			c.Receive(Header{Wide: wide, Type: TypeInput, Sequence: seq, Ack: 65535}, nil)
			require.Equal(t, seq%burst == burst-1, c.AckDue())
		}
	}
}

func TestEndedChannelAnswersEveryCallWithTheReason(t *testing.T) {
	c, clock := newChannel(t, Config{Outcomes: true, Backlog: 4})
	require.Equal(t, 260, c.Room())
	h, _ := c.NextHeader(TypeInput)
	for range 260 {
		c.Send(nil)
	}
	for range 40 {
		c.Receive(Header{Type: TypeInput, Ack: 65535, Sequence: uint16(c.Stats().DatagramsReceived)}, nil)
	}
	require.True(t, c.AckDue())
	for _, event := range [][]byte{nil, make([]byte, 2000)} {
		id, err := c.Send(event)
		require.Equal(t, ErrUnacknowledged, err)
		require.Zero(t, id)
		require.Equal(t, ErrUnacknowledged, c.Err())
		require.Zero(t, c.Room())
		require.Equal(t, 260, c.InFlight())
		next, ok := c.NextHeader(TypeInput)
		require.False(t, ok)
		require.Zero(t, next)
		require.False(t, c.EventsDue(1000))
		require.False(t, c.AckDue())
		require.Equal(t, "kept", string(c.AppendDueEvents([]byte("kept"), h.Sequence, 1000)))
		in, err := c.Receive(Header{Type: TypeInput}, nil)
		require.Equal(t, ErrUnacknowledged, err)
		require.Zero(t, in)
		at, ok := c.Deadline()
		require.False(t, ok)
		require.Zero(t, at)
	}
	clock.Advance(time.Minute)
	o, ok := c.NextOutcome()
	require.True(t, ok)
	require.Equal(t, Outcome{0, TypeInput, false, 0}, o)
	require.Equal(t, "kept", string(c.AppendDueEvents([]byte("kept"), h.Sequence, 1000)), "all fates are known")
}

// A run of copies that the cursor of resends has passed must not grow: the copy
// added to it would never come due again. It takes a budget that holds back the
// older event, so that the newer one is sent first in a datagram that was begun
// before.
func TestCopyAddedToAPassedRunIsResent(t *testing.T) {
	var clock ManualClock
	clock.Set(time.Unix(1000, 0))
	c, err := NewReliableChannel(Config{Clock: &clock, EventRate: 10})
	require.NoError(t, err)
	carry := func(seq uint16) []Event {
		events, err := ParseEvents(nil, c.AppendDueEvents(nil, seq, maxListSize))
		require.NoError(t, err)
		return events
	}
	next := func() uint16 {
		h, ok := c.NextHeader(TypeEvent)
		require.True(t, ok)
		return h.Sequence
	}
	send := func(data string) {
		_, err := c.Send([]byte(data))
		require.NoError(t, err)
	}
	// A copy of event 0 uses up the budget, so that event 1, though due, waits.
	send("older")
	carry(next())
	clock.Advance(100 * time.Millisecond)
	resent := next()
	require.Len(t, carry(resent), 1)
	send("due")
	open := next()
	require.Len(t, carry(open), 1)
	clock.Advance(100 * time.Millisecond)
	require.False(t, c.EventsDue(maxListSize), "the budget is spent")
	send("newer")
	events := carry(open)
	require.Len(t, events, 1)
	require.EqualValues(t, 2, events[0].ID)
	_, err = c.Receive(Header{Type: TypeHeartbeat, Ack: resent}, nil)
	require.NoError(t, err)
	for _, want := range []uint16{1, 2} {
		clock.Advance(time.Minute)
		seq := next()
		events := carry(seq)
		require.Len(t, events, 1)
		require.Equal(t, want, events[0].ID)
		_, err = c.Receive(Header{Type: TypeHeartbeat, Sequence: want, Ack: seq}, nil)
		require.NoError(t, err)
	}
}
