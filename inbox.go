package ackbits

import "github.com/ackbits/ackbits/internal/trim"

// The events that datagrams bring: inbox delivers each once (I3), with Ordered in the
// order of ids. Which ids are new is decided in eventwindow.go; events that wait for a
// missing one are kept in reorder.go.

// inbox holds the state of event delivery at the receiver.
type inbox struct {
	ids         idWindow
	ordered     bool
	parsed      []Event // the events of the datagram that was received last
	deliveredAt uint64  // how many datagrams had been received when events were last delivered

	// Only with Ordered:
	reorder *reorder // nil if no event had to wait lately
	out     []Event  // the events that were delivered last

	mostEvents trim.Peak // the length of parsed and out
}

func (b *inbox) init(ordered bool) {
	b.ordered = ordered
	b.ids.size = maxEventWindow
	if ordered { // so no more than 255 wait (P-9.1.2)
		b.ids.size = eventWindow
	}
}

// accept records the events of a list that ids admits. It returns those to deliver now
// and how many of the list were new; of several with one id only the first is new
// (P-5.1.3).
func (b *inbox) accept(events []Event) (out []Event, fresh int) {
	b.mostEvents.Note(len(events))
	if b.ordered {
		return b.acceptOrdered(events)
	}
	for i := range events {
		if b.ids.accept(events[i].ID) {
			if fresh != i {
				events[fresh] = events[i]
			}
			fresh++
		}
	}
	return events[:fresh], fresh
}

// acceptOrdered is accept with Ordered: it delivers in the order of ids (P-9.1.1).
func (b *inbox) acceptOrdered(events []Event) (out []Event, fresh int) {
	if b.reorder != nil {
		b.reorder.reclaim(b.ids.base)
	}
	clear(b.out)
	b.out = b.out[:0]
	for _, e := range events {
		next := b.ids.base
		if !b.ids.accept(e.ID) {
			continue
		}
		fresh++
		if e.ID != next {
			if b.reorder == nil {
				b.reorder = newReorder()
			}
			b.reorder.keep(e, next)
			continue
		}
		b.out = append(b.out, e)
		for next++; next != b.ids.base; next++ {
			b.out = append(b.out, Event{next, b.reorder.release(next)})
		}
	}
	b.mostEvents.Note(len(b.out))
	return b.out, fresh
}

// trim frees memory that was not needed lately, and clears the lists, which keep the
// caller's datagrams and our copies alive. The events that were delivered last stay
// valid until another datagram is received; received, how many there were, tells.
func (b *inbox) trim(busy bool, received uint64) {
	b.ids.narrow()
	n := trim.Length(b.mostEvents.Room(0, trim.ModestElements, busy), 1)
	if n < cap(b.parsed) {
		b.parsed = make([]Event, 0, n)
	}
	if n < cap(b.out) {
		b.out = make([]Event, 0, n)
	}
	clear(b.parsed[len(b.parsed):cap(b.parsed)]) // of lists before the last
	if b.deliveredAt != received {
		clear(b.parsed)
		clear(b.out)
	}
	if b.reorder != nil && b.reorder.trim(b.ids.base, busy) {
		b.reorder = nil
	}
}
