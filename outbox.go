package ackbits

import (
	"github.com/ackbits/ackbits/internal/arena"
	"github.com/ackbits/ackbits/internal/ring"
	"github.com/ackbits/ackbits/internal/trim"
)

// The events passed to Send, until they are delivered, and their bytes. Which copies were
// sent, in which datagrams, is in copylog.go; when copies are due is decided in
// copies.go.

// pending is an event that was passed to Send and is not known to be delivered, or that
// was delivered while an older one was not.
type pending struct {
	first, last int64  // when it was sent first, and last
	run         uint32 // the run of its last copy
	start       uint32 // where its bytes begin in the arena
	size        uint16
	state       eventState
	plan        copyPlan // proactive copies still to be sent
	retransmits uint8    // how often it came due because a copy was not acknowledged; up to soloAfter
	passedBy    uint8    // of these, how often a datagram that was sent after it was acknowledged; up to aloneAfter
	tries       uint8    // copies without an acknowledgement since an older event was delivered, timeouts apart
}

// eventState is what is known of an event, as bits.
type eventState uint8

const (
	isDelivered eventState = 1 << iota
	isInFlight             // sent, not delivered and its last copy not presumed lost
	isProactive            // the copy that is due goes before a loss is known
	isHeld                 // a copy would be due, but backs off
)

func (e *pending) delivered() bool { return e.state&isDelivered != 0 }
func (e *pending) inFlight() bool  { return e.state&isInFlight != 0 }
func (e *pending) proactive() bool { return e.state&isProactive != 0 }

// soloAfter is how often an event is retransmitted until it no longer goes in
// bundles: a peer may withhold those, and acknowledge everything else (P-10.1.5).
const soloAfter = 2

// If later datagrams are delivered and the same event is lost again and again, the path
// may drop large datagrams, or a queue may have room for small ones only. So from its
// third such retransmission on an event goes in datagrams of at most smallDatagram bytes,
// and from the sixth on alone. Sooner costs headers on links that merely lose much; later
// delays what would fit by a second more.
const (
	smallAfter    = 3
	smallDatagram = 576
	aloneAfter    = 6
)

// noteRetransmit counts a copy that is presumed lost.
func (e *pending) noteRetransmit(passed bool) {
	e.retransmits = min(e.retransmits+1, soloAfter)
	if passed {
		e.passedBy = min(e.passedBy+1, aloneAfter)
	}
}

// cost is how many bytes the event takes in a list.
func (e *pending) cost() int { return eventOverhead + int(e.size) }

// fits reports whether an event may follow so many bytes in a list of at most
// limit.
func (e *pending) fits(used, limit int, in carrier) bool {
	return used+e.cost() <= limit && (in == ownDatagram || e.retransmits < soloAfter)
}

// outbox holds the events to be sent. It numbers them in int64; an event's id is
// the low 16 bits.
//
// Invariants: base <= fresh <= end. Events before base are delivered; those
// before fresh were sent; those from fresh on wait. fresh − base <= eventWindow,
// so that the receiver never takes a copy for an old one (P-5.2.2).
type outbox struct {
	base        int64 // the oldest undelivered
	fresh       int64 // the next to be sent for the first time
	end         int64 // the next number that Send gives out
	undelivered int
	events      ring.Ring[pending]
	bytes       arena.Arena
	due         idSet // events of which a further copy is due
	held        int   // how many events back off although a further copy would be due
	heldUntil   int64 // when the first of these is due
	log         copyLog

	mostEvents, mostBytes trim.Peak
}

func (o *outbox) get(number int64) *pending { return o.events.At(number) }

// minEvents is the first length of the rings for events: enough for a game's usual tick.
const minEvents = 8

// add queues an event and gives it the next id (P-5.2.1).
func (o *outbox) add(event []byte) (id uint16) {
	if o.end-o.base == int64(len(o.events)) {
		o.events = o.events.Resized(max(2*len(o.events), minEvents), o.base, o.end)
	}
	start, ok := o.bytes.Put(event)
	if !ok {
		o.moveBytes(ring.Ceil(max(2*o.bytes.Size(), o.bytes.Used()+len(event)+1, arena.MinSize)))
		start, _ = o.bytes.Put(event)
	}
	*o.get(o.end) = pending{start: uint32(start), size: uint16(len(event))}
	o.end++
	o.undelivered++
	return uint16(o.end - 1)
}

// moveBytes gives the arena a new size.
func (o *outbox) moveBytes(size int) {
	moved := arena.New(size)
	for k := o.base; k < o.end; k++ {
		e := o.get(k)
		start, _ := moved.Put(o.data(e))
		e.start = uint32(start)
	}
	o.bytes = moved
}

// data returns the bytes of an event.
func (o *outbox) data(e *pending) []byte { return o.bytes.Piece(e.start, e.size) }

// freshDue reports whether an event may be sent for the first time, as far as the
// window of ids goes: it waits and is inside.
func (o *outbox) freshDue() bool { return o.fresh < o.end && o.fresh < o.base+eventWindow }

// lowestDue returns the lowest event of which a further copy is due; there must
// be one.
func (o *outbox) lowestDue() (number int64) {
	return o.base + int64(o.due.lowest(uint16(o.base))-uint16(o.base))
}

// advance moves base past the events that are delivered and frees their bytes. It reports
// whether another event is now the oldest.
func (o *outbox) advance() (moved bool) {
	o.notePeaks()
	before := o.base
	for o.base < o.fresh && o.get(o.base).delivered() {
		o.base++
	}
	if o.base < o.end {
		o.bytes.FreeBefore(o.get(o.base).start)
	} else {
		o.bytes.FreeAll()
	}
	if o.base == o.fresh {
		o.log.clear()
	}
	return o.base != before
}

// notePeaks notes how much the outbox holds, before events are freed.
func (o *outbox) notePeaks() {
	o.mostEvents.Note(int(o.end - o.base))
	o.mostBytes.Note(o.bytes.Used())
	o.log.notePeak()
}

// trim frees memory that was not needed lately.
func (o *outbox) trim(busy bool) {
	o.notePeaks()
	if n := trim.Length(o.mostEvents.Room(int(o.end-o.base), trim.ModestElements, busy), minEvents); n < len(o.events) {
		o.events = o.events.Resized(n, o.base, o.end)
	}
	if n := trim.Length(o.mostBytes.Room(o.bytes.Used(), trim.ModestBytes, busy), arena.MinSize); n < o.bytes.Size() {
		o.moveBytes(n)
	}
	o.log.trim(busy)
}

// waiting yields the events that are not known to be delivered; if ordered, all events from
// the oldest of these on.
func (o *outbox) waiting(all bool, yield func(Event) bool) {
	for number := o.base; number < o.end; number++ {
		if e := o.get(number); all || !e.delivered() {
			if !yield(Event{uint16(number), o.data(e)}) {
				return
			}
		}
	}
}

// clear frees all memory except for the undelivered events.
func (o *outbox) clear() {
	if o.undelivered == 0 {
		*o = outbox{}
		return
	}
	*o = outbox{base: o.base, fresh: o.fresh, end: o.end, undelivered: o.undelivered, events: o.events, bytes: o.bytes}
}
