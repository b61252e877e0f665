package ackbits

import (
	"github.com/ackbits/ackbits/internal/ring"
	"github.com/ackbits/ackbits/internal/trim"
)

// The copies of events that were sent, in the order of sending: which datagram carried
// which, and which event has the next further copy. The events themselves are in
// outbox.go.

// run is a range of events that one datagram carries: first … first+n−1.
type run struct {
	first uint32 // number of an event, shortened
	seq   uint16 // the datagram
	n     uint16
}

// settled reports whether all events of a run lie before base.
func (r *run) settled(base int64) bool { return int32(uint32(base)-r.first) >= int32(r.n) }

// copyLog holds every copy that was sent, as runs. When a datagram is acknowledged, its
// events are found here. The log is also the queue of further copies: a delay after the
// last copy ends for all events in the order of their last copies, so a cursor for each
// kind of further copy suffices, and nothing is ever searched for.
type copyLog struct {
	runs       ring.Ring[run]
	first, end int64
	index      runIndex // where the runs of a datagram begin

	retransmits cursor
	near, far   cursor // proactive copies
	planned     bool   // some event may have a plan; until then near and far do not move

	most trim.Peak
}

// cursor is a place in the order of sending: a run, and how many of its events come before.
type cursor struct {
	run  int64
	skip uint16
}

// clear forgets all runs.
func (l *copyLog) clear() {
	l.first = l.end
	end := cursor{run: l.end}
	l.retransmits, l.near, l.far = end, end, end
	l.planned = false
}

// runFor returns the run for a copy of an event in a datagram whose runs begin at first:
// the last run, if it ends right before the event, or a new one. A run that a cursor has
// passed must not grow, or the cursor would miss the copy.
func (l *copyLog) runFor(number, first int64) (at int64) {
	if l.end > max(first, l.retransmits.run, l.near.run, l.far.run) {
		if r := l.runs.At(l.end - 1); r.first+uint32(r.n) == uint32(number) {
			return l.end - 1
		}
	}
	return l.end
}

// full reports whether the next run needs more room.
func (l *copyLog) full() bool { return l.end-l.first == int64(len(l.runs)) }

// note notes that a datagram carries n events from number on, in the run that runFor
// returned.
func (l *copyLog) note(at, number int64, n int, seq uint16) {
	if at < l.end {
		l.runs.At(at).n += uint16(n)
		return
	}
	if l.full() {
		l.runs = l.runs.Resized(max(2*len(l.runs), minEvents), l.first, l.end)
	}
	*l.runs.At(at) = run{first: uint32(number), seq: seq, n: uint16(n)}
	l.end++
}

// firstRunFor returns where the runs of a datagram that gets a list begin. A datagram
// that has a list already (another) may get one more only if no other datagram got one
// since: the copies of a datagram lie in a row, and its last run may grow.
func (l *copyLog) firstRunFor(seq uint16, another bool) (first int64, ok bool) {
	if !another {
		return l.end, true
	}
	return l.end - 1, l.end != l.first && l.runs.At(l.end-1).seq == seq
}

// from returns the place of a datagram's first run, or of the first that was not
// released.
func (l *copyLog) from(run uint32) int64 {
	return max(l.first, l.end-int64(uint32(l.end)-run))
}

// awaits reports whether a datagram, whose runs begin at run, carries events that are not
// before base.
func (l *copyLog) awaits(run uint32, seq uint16, base int64) bool {
	for at := l.from(run); at < l.end; at++ {
		r := l.runs.At(at)
		if r.seq != seq {
			break
		}
		if !r.settled(base) {
			return true
		}
	}
	return false
}

func (l *copyLog) notePeak() { l.most.Note(int(l.end - l.first)) }

// trim frees memory that was not needed lately.
func (l *copyLog) trim(busy bool) {
	if n := trim.Length(l.most.Room(int(l.end-l.first), trim.ModestElements, busy), minEvents); n < len(l.runs) {
		l.runs = l.runs.Resized(n, l.first, l.end)
	}
	if len(l.runs) == 0 {
		l.index = runIndex{}
	}
}

// lastCopy moves a cursor to the next copy that is the last one of an undelivered event,
// and returns the event.
func (o *outbox) lastCopy(c *cursor) (number int64, e *pending) {
	for c.run < o.log.end {
		r := o.log.runs.At(c.run)
		if r.settled(o.base) {
			c.skip = r.n
		}
		for ; c.skip < r.n; c.skip++ {
			if number, e := o.onWire(r.first + uint32(c.skip)); e != nil && !e.delivered() && e.run == uint32(c.run) {
				return number, e
			}
		}
		*c = cursor{run: c.run + 1}
	}
	return 0, nil
}

// nextPlanned moves a cursor to the next event with a proactive copy planned, near its last
// copy or far from it. An event that backs off keeps its plan for later.
func (o *outbox) nextPlanned(c *cursor, far bool) (number int64, e *pending) {
	for {
		number, e = o.lastCopy(c)
		if e == nil || e.state&isHeld == 0 && (!far && e.plan.near() || far && e.plan.distant()) {
			return number, e
		}
		c.skip++
	}
}

// onWire returns the event of a shortened number, if it was sent and is not
// before base.
func (o *outbox) onWire(short uint32) (number int64, e *pending) {
	offset := int64(short - uint32(o.base)) // if it is before base, far beyond the window
	if offset >= o.fresh-o.base {
		return 0, nil
	}
	return o.base + offset, o.get(o.base + offset)
}

// passed moves all cursors on as far as possible and returns the first run that any of them
// still needs.
func (o *outbox) passed() int64 {
	l := &o.log
	for _, c := range []*cursor{&l.retransmits, &l.near, &l.far} {
		o.lastCopy(c)
	}
	return min(l.retransmits.run, l.near.run, l.far.run)
}

// deliver records the events of a datagram, whose runs begin at run, as delivered, for
// good (P-5.2.6). It returns how many were not delivered before, how many bytes these
// take in a list, and how many of these bytes were in flight.
func (o *outbox) deliver(run uint32, seq uint16) (fresh, bytes, inFlight int) {
	for at := o.log.from(run); at < o.log.end; at++ {
		r := o.log.runs.At(at)
		if r.seq != seq {
			break
		}
		first := o.base + int64(int32(r.first-uint32(o.base)))
		for number := max(first, o.base); number < first+int64(r.n); number++ {
			e := o.get(number)
			if e.delivered() {
				continue
			}
			fresh++
			bytes += e.cost()
			if e.inFlight() {
				inFlight += e.cost()
			}
			if e.state&isHeld != 0 {
				o.held--
			}
			e.state = isDelivered
			if o.due.n > 0 {
				o.due.remove(uint16(number))
			}
		}
	}
	o.undelivered -= fresh
	return fresh, bytes, inFlight
}
