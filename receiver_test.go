package ackbits

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// Fault: "0" used for "nothing received".
// P-4.1.5.
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
// P-4.1.5.
func TestWorkedExampleOfTheTracker(t *testing.T) {
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

// Fault: a duplicate filter that is too short.
func TestOldCopyIsNotDeliveredAgain(t *testing.T) {
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

// P-5.3.1.
func TestReceiverJudgesIdsByTheOldestItMisses(t *testing.T) {
	for _, ordered := range []bool{false, true} {
		window := uint16(4096)
		if ordered {
			window = 256
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
			refuse(window)
			refuse(32767)
			refuse(32768)
			require.Empty(t, p.take(list(32769)).Events) // 32767 before: old
			require.Empty(t, p.take(list(65535)).Events)
			p.take(list(window - 1))
			p.take(list(window-1, window-1))
			refuse(1, window, 0)     // judged before 0 is in
			p.take(list(0, window))  // in list order: 0 is in
			p.take(list(1, 2, 2, 0)) // some known
			refuse(window+3, 3)      // base is 3
			refuse(3, 32768+4)
			p.take(list(3, window+3, 32769+4))
			require.EqualValues(t, 7, p.s.Stats().EventsReceived)
			p.events = nil
		}
	}
}

// Only Newest and Late datagrams deliver anything; the events of a Stale one
// are retransmitted.
// P-2.3.4, P-5.3.4.
func TestStaleAndDuplicateDatagramsDeliverNothing(t *testing.T) {
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
// P-2.3.7.
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
