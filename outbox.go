package ackbits

import (
	"math/bits"

	"github.com/ackbits/ackbits/internal/ring"
)

// pending is an event that was handed to Send and is not known to be delivered, or
// waits for an older one to be.
type pending struct {
	first, last int64  // when it was sent first, and last
	run         uint32 // the run of its last copy
	start       uint32 // of its bytes in the arena
	size        uint16
	delivered   bool
	planned     bool  // the copy that is due goes ahead of a loss
	ahead       ahead // copies still to be sent ahead of a loss
	resends     uint8 // how often it came due because a copy was not acknowledged; up to soloAfter
}

// soloAfter is how often an event is resent until it no longer goes in bundles: a
// peer may withhold those, and acknowledge everything else.
const soloAfter = 2

func (e *pending) noteResend() { e.resends = min(e.resends+1, soloAfter) }

// fits reports whether an event may follow so many bytes in a list of at most
// limit.
func (e *pending) fits(used, limit int, in carrier) bool {
	return used+eventOverhead+int(e.size) <= limit && (in == ownDatagram || e.resends < soloAfter)
}

// A run is a range of events that one datagram carries: first … first+n−1.
type run struct {
	first uint32 // number of an event, shortened
	seq   uint16 // the datagram
	n     uint16
}

// outbox holds the sender's events. It numbers them in int64; an event's id is
// the low 16 bits.
//
// Invariants: base <= fresh <= end. Events before base are delivered; those
// before fresh were sent; those from fresh on wait. fresh − base <= nearSpan,
// so that the receiver never takes a copy for an old one (R1).
type outbox struct {
	base        int64 // the oldest undelivered
	fresh       int64 // the next to be sent for the first time
	end         int64 // the next to be given out
	undelivered int
	events      ring.Ring[pending]
	bytes       arena

	// Every copy sent, in the order of sending, as runs. A datagram's
	// acknowledgement finds its events here, and since a delay after the last
	// copy passes for all events in the order of their last copies, this is also
	// the queue of every kind of resend, each with a cursor. So nothing is ever
	// searched for.
	runs     ring.Ring[run]
	firstRun int64
	endRun   int64
	resends  cursor
	near     cursor // the copies ahead of a loss, with Adaptive only
	far      cursor
	due      idSet // events of which a further copy is due
	cargo    cargo // where the runs of a datagram begin

	mostEvents, mostBytes, mostRuns peak
}

func (o *outbox) get(number int64) *pending { return o.events.At(number) }

// minEvents is what rings for events take at first: enough for a game's usual tick.
const minEvents = 8

// add queues an event.
func (o *outbox) add(event []byte) (id uint16) {
	if o.end-o.base == int64(len(o.events)) {
		o.events = o.events.Resized(max(2*len(o.events), minEvents), o.base, o.end)
	}
	start, ok := o.bytes.alloc(len(event))
	if !ok {
		o.moveBytes(ring.Ceil(max(2*len(o.bytes.buf), o.bytes.used()+len(event)+1, minBytes)))
		start, _ = o.bytes.alloc(len(event))
	}
	copy(o.bytes.buf[start:], event)
	*o.get(o.end) = pending{start: uint32(start), size: uint16(len(event))}
	o.end++
	o.undelivered++
	return uint16(o.end - 1)
}

// moveBytes gives the arena a new size.
func (o *outbox) moveBytes(size int) {
	old := o.bytes
	o.bytes = arena{buf: make([]byte, size)}
	for k := o.base; k < o.end; k++ {
		e := o.get(k)
		start, _ := o.bytes.alloc(int(e.size))
		copy(o.bytes.buf[start:], old.buf[e.start:e.start+uint32(e.size)])
		e.start = uint32(start)
	}
}

// freshDue reports whether an event may be sent for the first time: it waits
// and is inside the span.
func (o *outbox) freshDue() bool { return o.fresh < o.end && o.fresh < o.base+nearSpan }

// A cursor is a place in the order of sending: so many events into a run.
type cursor struct {
	run  int64
	skip uint16
}

// live moves a cursor to the next copy that is the last one of an event that is
// not delivered, and returns the event.
func (o *outbox) live(c *cursor) (number int64, e *pending) {
	for c.run < o.endRun {
		r := o.runs.At(c.run)
		if o.settled(r) {
			c.skip = r.n
		}
		for ; c.skip < r.n; c.skip++ {
			if number, e := o.onWire(r.first + uint32(c.skip)); e != nil && !e.delivered && e.run == uint32(c.run) {
				return number, e
			}
		}
		*c = cursor{run: c.run + 1}
	}
	return 0, nil
}

// planned moves a cursor to the next event of which a copy is planned, near the
// last one or far from it.
func (o *outbox) planned(c *cursor, far bool) (number int64, e *pending) {
	for {
		number, e = o.live(c)
		if e == nil || !far && e.ahead.near() || far && e.ahead.distant() {
			return number, e
		}
		c.skip++
	}
}

// onWire returns the event of a shortened number, if it was sent and is not
// before base.
func (o *outbox) onWire(short uint32) (number int64, e *pending) {
	offset := int64(short - uint32(o.base)) // far beyond the span for one before base
	if offset >= o.fresh-o.base {
		return 0, nil
	}
	return o.base + offset, o.get(o.base + offset)
}

// fill appends the payload of an Event datagram, whose runs are those from first
// on: the events that are due and may be sent, lowest id first, up to the first
// that does not fit into limit bytes. Without any it appends nothing.
func (o *outbox) fill(dst []byte, seq uint16, first int64, limit int, in carrier, now int64, c *channel) (out []byte, filled bool) {
	out = append(dst, 0)
	limit += len(dst)
	count := 0
	room := true // nothing was left out for its size
	for room && c.copyDue() {
		number := o.lowestDue()
		e := o.get(number)
		if room = count < maxListEvents && e.fits(len(out), limit, in); room {
			out = appendEvent(out, uint16(number), o.data(e))
			count++
			at := o.runFor(number, first)
			e.last, e.run = now, uint32(at)
			e.ahead.spend()
			o.noteRun(at, number, 1, seq, &c.sent)
			o.due.remove(uint16(number))
			c.budget.spend(int(e.size), now)
			c.stats.EventsResent++
			if e.planned {
				c.stats.EventsAhead++
			}
		}
	}
	if room {
		number := o.fresh
		end := min(o.end, o.base+nearSpan, number+int64(maxListEvents-count))
		at := o.runFor(number, first)
		plan := c.plan()
		for ; number < end; number++ {
			e := o.get(number)
			if !e.fits(len(out), limit, in) {
				break
			}
			out = appendEvent(out, uint16(number), o.data(e))
			e.first, e.last, e.run, e.ahead = now, now, uint32(at), plan
		}
		if n := int(number - o.fresh); n > 0 {
			o.noteRun(at, o.fresh, n, seq, &c.sent)
			o.fresh = number
			c.stats.EventsSent += uint64(n)
			count += n
		}
	}
	if count == 0 {
		return dst, false
	}
	out[len(dst)] = byte(count)
	return out, true
}

// data returns the bytes of an event.
func (o *outbox) data(e *pending) []byte { return o.bytes.buf[e.start : e.start+uint32(e.size)] }

// lowestDue returns the lowest event of which a further copy is due; there must
// be one.
func (o *outbox) lowestDue() (number int64) {
	return o.base + int64(o.due.lowest(uint16(o.base))-uint16(o.base))
}

// runFor returns the run for a copy of an event in a datagram whose runs are those
// from first on: the last one, if it ends right before the event, or the next. A
// run that a cursor has passed does not grow, which would hide the copy from it.
func (o *outbox) runFor(number, first int64) (at int64) {
	if o.endRun > max(first, o.resends.run, o.near.run, o.far.run) {
		if r := o.runs.At(o.endRun - 1); r.first+uint32(r.n) == uint32(number) {
			return o.endRun - 1
		}
	}
	return o.endRun
}

// noteRun notes that a datagram carries n events, the first of which is given, in
// the run that runFor returned.
func (o *outbox) noteRun(at, number int64, n int, seq uint16, s *sentLog) {
	if at < o.endRun {
		o.runs.At(at).n += uint16(n)
		return
	}
	if o.endRun-o.firstRun == int64(len(o.runs)) {
		o.releaseRuns(s)
	}
	if o.endRun-o.firstRun == int64(len(o.runs)) {
		o.runs = o.runs.Resized(max(2*len(o.runs), minEvents), o.firstRun, o.endRun)
	}
	*o.runs.At(at) = run{first: uint32(number), seq: seq, n: uint16(n)}
	o.endRun++
}

// releaseRuns drops the oldest runs that nobody will ask for: their events are
// delivered, or their datagram is forgotten and the cursors are past them.
func (o *outbox) releaseRuns(s *sentLog) {
	for _, c := range []*cursor{&o.resends, &o.near, &o.far} {
		o.live(c)
	}
	passed := min(o.resends.run, o.near.run, o.far.run)
	for ; o.firstRun < passed; o.firstRun++ {
		r := o.runs.At(o.firstRun)
		if n, ok := s.lookup(r.seq); !o.settled(r) && ok && s.remembered(n) {
			return
		}
	}
}

// runsFrom returns the place of a datagram's first run, or of the first that was
// not released.
func (o *outbox) runsFrom(run uint32) int64 {
	return max(o.firstRun, o.endRun-int64(uint32(o.endRun)-run))
}

// awaits reports whether a datagram, whose runs begin at the one given, carries
// events from base on.
func (o *outbox) awaits(run uint32, seq uint16) bool {
	for at := o.runsFrom(run); at < o.endRun; at++ {
		r := o.runs.At(at)
		if r.seq != seq {
			break
		}
		if !o.settled(r) {
			return true
		}
	}
	return false
}

// settled reports whether all events of a run lie before base.
func (o *outbox) settled(r *run) bool { return int32(uint32(o.base)-r.first) >= int32(r.n) }

// deliver takes the events of a datagram as delivered, whose runs begin at the
// one given. It returns how many were not known to be.
func (o *outbox) deliver(run uint32, seq uint16) (fresh int) {
	for at := o.runsFrom(run); at < o.endRun; at++ {
		r := o.runs.At(at)
		if r.seq != seq {
			break
		}
		first := o.base + int64(int32(r.first-uint32(o.base)))
		for number := max(first, o.base); number < first+int64(r.n); number++ {
			if e := o.get(number); !e.delivered {
				e.delivered = true
				fresh++
				if o.due.n > 0 {
					o.due.remove(uint16(number))
				}
			}
		}
	}
	o.undelivered -= fresh
	return fresh
}

// settle moves base past what is delivered.
func (o *outbox) settle() {
	o.notePeaks()
	for o.base < o.fresh && o.get(o.base).delivered {
		o.base++
	}
	if o.base < o.end {
		o.bytes.head = int(o.get(o.base).start)
	} else {
		o.bytes.head, o.bytes.tail = 0, 0
	}
	if o.base == o.fresh {
		o.firstRun = o.endRun
		end := cursor{run: o.endRun}
		o.resends, o.near, o.far = end, end, end
	}
}

// notePeaks notes what the outbox holds, before events are let go.
func (o *outbox) notePeaks() {
	o.mostEvents.note(int(o.end - o.base))
	o.mostBytes.note(o.bytes.used())
	o.mostRuns.note(int(o.endRun - o.firstRun))
}

// trim gives back memory that was not needed lately.
func (o *outbox) trim(busy bool) {
	o.notePeaks()
	if n := roomFor(o.mostEvents.room(int(o.end-o.base), modestEvents, busy), minEvents); n < len(o.events) {
		o.events = o.events.Resized(n, o.base, o.end)
	}
	if n := roomFor(o.mostBytes.room(o.bytes.used(), modestBytes, busy), minBytes); n < len(o.bytes.buf) {
		o.moveBytes(n)
	}
	if n := roomFor(o.mostRuns.room(int(o.endRun-o.firstRun), modestEvents, busy), minEvents); n < len(o.runs) {
		o.runs = o.runs.Resized(n, o.firstRun, o.endRun)
	}
	if len(o.runs) == 0 {
		o.cargo = cargo{}
	}
}

// waiting yields the events that are not known to be delivered, or all from the
// oldest of these on.
func (o *outbox) waiting(all bool, yield func(Event) bool) {
	for number := o.base; number < o.end; number++ {
		if e := o.get(number); all || !e.delivered {
			data := o.data(e)
			if !yield(Event{uint16(number), data[:len(data):len(data)]}) {
				return
			}
		}
	}
}

// clear frees what is kept to send events, but for those that are undelivered.
func (o *outbox) clear() {
	if o.undelivered == 0 {
		*o = outbox{}
		return
	}
	*o = outbox{base: o.base, fresh: o.fresh, end: o.end, undelivered: o.undelivered, events: o.events, bytes: o.bytes}
}

// idSet is a set of event ids that lie within nearSpan of each other.
type idSet struct {
	n     int
	words [nearSpan / 64]uint64
}

func (s *idSet) add(id uint16) {
	word := &s.words[id%nearSpan/64]
	s.n += int(^*word >> (id % 64) & 1)
	*word |= 1 << (id % 64)
}

func (s *idSet) has(id uint16) bool { return s.words[id%nearSpan/64]>>(id%64)&1 != 0 }

func (s *idSet) remove(id uint16) {
	word := &s.words[id%nearSpan/64]
	s.n -= int(*word >> (id % 64) & 1)
	*word &^= 1 << (id % 64)
}

// lowest returns the first id of a set that is not empty, from base on.
func (s *idSet) lowest(base uint16) (id uint16) {
	at := base % nearSpan / 64
	if w := s.words[at] >> (base % 64); w != 0 {
		return base + uint16(bits.TrailingZeros64(w))
	}
	id = base - base%64
	for {
		at = (at + 1) % (nearSpan / 64)
		id += 64
		if w := s.words[at]; w != 0 {
			return id + uint16(bits.TrailingZeros64(w))
		}
	}
}
