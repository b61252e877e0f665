package ackbits

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// One scenario from every edge of sequences and ids: loss, reordering, a
// duplicate and retransmissions, in both directions of the wrap.
// P-5.2.1.
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

// Fault: an old event outside the id window is lost in silence (18.8 of docs/protocol.md).
// P-5.2.2.
func TestEventOutsideTheWindowWaitsForTheOldEvent(t *testing.T) {
	inBothForms(t, func(t *testing.T, wide bool) {
		for _, id := range edges {
			a, b := duo(t, Config{Wide: wide})
			a.startAt(0, id)
			b.expectFrom(0, id)
			a.send("old event")
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
			retransmitted := a.wantEventsOut(id)
			a.wantNothing()
			b.deliver(retransmitted)
			b.wantEvents("old event")
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
		for range eventWindow - early {
			c.Send(nil)
		}
		clock.Advance(100 * ms)
		require.Equal(t, 255, list())
		require.Equal(t, 1, list())
	}
}

// P-5.2.2.
func TestOnlyIdsBelowOldestUndeliveredPlus256AreSent(t *testing.T) {
	p := solo(t, Config{Backlog: 1000})
	p.sendN(1000, 0)
	var ids []uint16
	for _, k := range p.flush() {
		ids = append(ids, k.ids()...)
	}
	require.Len(t, ids, 256)
	require.EqualValues(t, 255, ids[255])
	p.ack(1, 0) // datagram 1 carried id 255 alone: the window does not move
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

// P-6.4.3.
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

// P-5.2.3.
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

// The cap is on the count: behind an old event up to 255 events may wait.
// P-5.2.3.
func TestBacklogOfZeroLetsEventsWaitBehindAnOldEvent(t *testing.T) {
	p := solo(t, Config{})
	p.send("old event")
	p.wantEventsOut(0)
	p.sendN(255, 0)
	p.flush()
	p.ack(1, 0) // 1…255
	require.Equal(t, 255, p.s.Room())
	p.sendN(255, 0)
	p.wantNothing()
	p.sendFails(ErrUnacknowledged)
}

// Retransmissions by the clock alone, and the edge of the delay.
// P-5.2.4.
func TestEventIsRetransmittedEach100msInSilence(t *testing.T) {
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

// P-6.4.1, P-6.4.4.
func TestRetransmissionIsDueAtExactly100msSinceThatEventWasLastSent(t *testing.T) {
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

// A retransmission has the bytes of the first send.
// P-5.2.1.
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

// sentEvent is an event as the model of TestEventsInFlightAgreeWithAModel knows it.
type sentEvent struct {
	data      string
	last      time.Duration // when its last copy was sent; -1: never
	delivered bool
}

// sentAgain notes a copy, which must not come too early, and reports whether it is the first.
func (e *sentEvent) sentAgain(rt *rapid.T, data []byte, now time.Duration) (first bool) {
	require.False(rt, e.delivered)
	require.Equal(rt, e.data, string(data))
	first = e.last < 0
	require.True(rt, first || now-e.last >= 100*ms)
	e.last = now
	return first
}

// list returns the events that a datagram carries.
func (k *packet) list(rt *rapid.T) []Event {
	if k.Type != TypeEvent {
		return nil
	}
	events, err := ParseEvents(nil, k.payload)
	require.NoError(rt, err)
	return events
}

// Against a model of the sender: which events each datagram carries, under any
// acknowledgements.
func TestEventsInFlightAgreeWithAModel(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		p := solo(rt, Config{Wide: rapid.Bool().Draw(rt, "wide"), Backlog: 300, StallTimeout: -1})
		seq, id := rapid.SampledFrom(edges).Draw(rt, "seq"), rapid.SampledFrom(edges).Draw(rt, "id")
		p.startAt(seq, id)
		var events []*sentEvent
		base, sent := 0, 0
		carried := map[uint16][]int{}
		var out []uint16
		for range 60 {
			switch rapid.IntRange(0, 3).Draw(rt, "what") {
			case 0:
				for range min(rapid.SampledFrom([]int{1, 2, 90}).Draw(rt, "n"), p.s.Room()) {
					e := &sentEvent{data: fmt.Sprintf("%d %s", len(events), long(rapid.SampledFrom([]int{0, 0, 40, 1100}).Draw(rt, "size"))), last: -1}
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
					for _, g := range k.list(rt) {
						n := int(g.ID - id)
						require.Less(rt, n, base+256)
						if events[n].sentAgain(rt, g.Data, p.now()) {
							require.Equal(rt, sent, n)
							sent++
						}
						carried[k.Sequence] = append(carried[k.Sequence], n)
					}
				}
				if p.s.channel.sender.path.stands {
					break // copies wait for longer
				}
				for n, e := range events[:min(len(events), base+256)] { // nothing due is left
					require.True(rt, e.delivered || e.last >= 0 && p.now()-e.last < 100*ms, n)
				}
			}
			for base < len(events) && events[base].delivered {
				base++
			}
			undelivered := 0
			for _, e := range events[base:] {
				undelivered += b2i(!e.delivered)
			}
			require.Equal(rt, undelivered, p.s.InFlight())
			require.Equal(rt, 556-undelivered, p.s.Room())
		}
	})
}

// A run of copies that the cursor of retransmissions has passed must not grow: the copy
// added to it would never come due again. It takes a budget that holds back the
// older event, so that the newer one is sent first in a datagram that was begun
// before.
func TestCopyAddedToAPassedRunIsRetransmitted(t *testing.T) {
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
	retransmitted := next()
	require.Len(t, carry(retransmitted), 1)
	send("due")
	open := next()
	require.Len(t, carry(open), 1)
	clock.Advance(100 * time.Millisecond)
	require.False(t, c.EventsDue(maxListSize), "the budget is spent")
	send("newer")
	events := carry(open)
	require.Len(t, events, 1)
	require.EqualValues(t, 2, events[0].ID)
	_, err = c.Receive(Header{Type: TypeHeartbeat, Ack: retransmitted}, nil)
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

// A list ends before the first event that does not fit: what comes after it, be it
// new and small, waits.
// P-6.4.2.
func TestListEndsAtTheFirstEventThatDoesNotFit(t *testing.T) {
	c, clock := newChannel(t, Config{})
	list := func(size int) (ids []uint16) {
		h, _ := c.NextHeader(TypeEvent)
		if payload := c.AppendDueEvents(nil, h.Sequence, size); payload != nil {
			events, err := ParseEvents(nil, payload)
			require.NoError(t, err)
			for _, e := range events {
				ids = append(ids, e.ID)
			}
		}
		return ids
	}
	for _, size := range []int{10, 500, 10} {
		c.Send(make([]byte, size))
	}
	require.Equal(t, []uint16{0}, list(100))
	require.Empty(t, list(100))
	require.Equal(t, []uint16{1, 2}, list(1000))
	c.Send(nil)
	clock.Advance(100 * ms)
	require.Equal(t, []uint16{0}, list(100))
	require.Empty(t, list(100))
	require.EqualValues(t, 3, c.sender.outbox.log.end)
	require.Equal(t, []uint16{1, 2, 3}, list(1000))
}
