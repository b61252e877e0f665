package ackbits

import "github.com/ackbits/ackbits/internal/trim"

// The events that datagrams bring: inbox delivers each once (I3), with Ordered in the
// order of their ids. What waits for a gap to close is reorder.go's, which ids are
// new eventwindow.go's.

type inbox struct {
	ids         idWindow
	ordered     bool
	parsed      []Event // of the datagram at hand
	deliveredAt uint64  // how many datagrams had been received when events were last delivered

	// Ordered:
	reorder *reorder // nil while nothing was ahead of a gap lately
	out     []Event

	mostEvents trim.Peak
}

func (b *inbox) init(ordered bool) {
	b.ordered = ordered
	b.ids.span = farSpan
	if ordered { // copies of no more than 255 wait (P-9.1.2)
		b.ids.span = nearSpan
	}
}

// accept takes a list that ids.admits. It returns the events to deliver and how many
// were new: of those with one id the first (P-5.1.3).
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

// acceptOrdered delivers in the order of ids (P-9.1.1).
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

// trim gives back memory that was not needed lately, and lets go of the caller's
// datagrams and of copies, to which the lists point. What was delivered last stays as
// it is as long as received says that no other datagram came.
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
