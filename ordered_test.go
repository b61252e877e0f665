package ackbits

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// Events in id order, copies of those behind a gap.

// P-9.1.1.
func TestOrderedEventsWaitForTheGap(t *testing.T) {
	inBothForms(t, func(t *testing.T, wide bool) {
		for _, id := range edges {
			a, b := duo(t, Config{Wide: wide, Ordered: true})
			a.startAt(0, id)
			b.expectFrom(0, id)
			a.send("0")
			gap := a.wantEventsOut(id)
			a.send("1", "2")
			pair := a.wantEventsOut(id+1, id+2)
			a.send("3")
			last := a.wantEventsOut(id + 3)
			b.deliver(last)
			b.wantNoEvents()
			b.deliver(pair, last)
			b.wantNoEvents()
			in := b.deliver(gap)
			for i, e := range in.Events {
				require.Equal(t, id+uint16(i), e.ID)
			}
			b.wantEvents("0", "1", "2", "3")
			a.send("4")
			b.deliver(a.wantEventsOut(id + 4))
			b.wantEvents("4")
			a.deliver(b.emit(TypeInput))
			a.wantInFlight(0)
		}
	})
}

// They are acknowledged while they wait: nothing changes on the wire.
// P-9.1.2.
func TestOrderedEventsAreAcknowledgedWhileTheyWait(t *testing.T) {
	a, b := duo(t, Config{Ordered: true})
	a.send("0")
	drop(a.wantEventsOut(0))
	a.send("1")
	b.deliver(a.wantEventsOut(1))
	a.deliver(b.emit(TypeInput))
	a.wantInFlight(1)
	require.EqualValues(t, 1, b.s.Stats().EventsReceived)
	a.sleep(100 * ms)
	b.deliver(a.wantEventsOut(0))
	b.wantEvents("0", "1")
	a.deliver(b.emit(TypeInput))
}

func TestWaitingEventsAreCopies(t *testing.T) {
	p := solo(t, Config{Ordered: true})
	d := p.datagram(TypeEvent, 0, nothingYet, 0, eventList(Event{2, []byte("two")}, Event{1, []byte("one")})...)
	_, err := p.s.Receive(d)
	require.NoError(t, err)
	clear(d)
	p.hear(TypeEvent, eventList(Event{0, []byte("zero")})...)
	p.wantEvents("zero", "one", "two")
}

// What was delivered stays valid until the next Receive, whatever is called in
// between.
func TestOrderedEventsStayValidUntilTheNextReceive(t *testing.T) {
	p := solo(t, Config{Ordered: true})
	p.hear(TypeEvent, eventList(Event{1, []byte("one")}, Event{2, []byte("two")})...)
	in, err := p.s.Receive(p.datagram(TypeEvent, p.foreign, nothingYet, 0, eventList(Event{0, []byte("zero")})...))
	require.NoError(t, err)
	for range 300 {
		p.send("x")
		p.flush()
		if p.s.Room() == 0 {
			break
		}
		p.sleep(20 * ms)
	}
	got := ""
	for _, e := range in.Events {
		got += string(e.Data)
	}
	require.Equal(t, "zeroonetwo", got)
}

// P-9.1.2, P-9.1.3, P-17.1.6.
func TestOrderedKeepsAtMost255Ahead(t *testing.T) {
	p := solo(t, Config{Ordered: true})
	for id := uint16(255); id > 0; id-- {
		p.hear(TypeEvent, eventList(Event{id, []byte(fmt.Sprintf("event %d", id))})...)
	}
	p.wantNoEvents()
	p.refuse(ErrWindow, p.datagram(TypeEvent, p.foreign, nothingYet, 0, eventList(Event{256, nil})...))
	p.hear(TypeEvent, eventList(Event{0, []byte("event 0")})...)
	p.wantEvents(numbered(0, 256)...)
}

// P-9.1.1.
func TestOrderedAgreesWithAModel(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		p := solo(rt, Config{Ordered: true})
		start := rapid.SampledFrom(edges).Draw(rt, "start")
		p.expectFrom(0, start)
		have := map[int]bool{}
		base := 0
		for range 80 {
			var list []Event
			trial, at := map[int]bool{}, base
			fits := true
			for range rapid.IntRange(1, 5).Draw(rt, "n") {
				id := max(0, base+rapid.OneOf(rapid.IntRange(-3, 6), rapid.IntRange(240, 260)).Draw(rt, "id"))
				list = append(list, Event{start + uint16(id), []byte(fmt.Sprintf("event %d", id))})
				fits = fits && id < at+256
				trial[id] = true
				for have[at] || trial[at] {
					at++
				}
			}
			d := p.datagram(TypeEvent, p.foreign, p.neverSent(), 0, eventList(list...)...)
			if !fits {
				p.refuse(ErrWindow, d)
				p.foreign--
				continue
			}
			p.take(d)
			require.Equal(rt, numbered(base, at-base), p.events)
			p.events = nil
			for id := range trial {
				have[id] = true
			}
			base = at
		}
	})
}
