package ackbits

import "time"

// The queue of an OrderedLane and the memory that it takes. Budgets, resends and
// acknowledgements are lane.go's.

const (
	// What a queue keeps once it has been used: 1.75 KiB. Smaller, and a lane
	// with an event now and then allocates for each of them; larger, and ten
	// thousand idle lanes hold memory for nothing.
	laneMinSlots = 32
	laneMinBytes = 1024
	// How long the queue must have used no more than a quarter of its memory
	// before the rest is given back. Shorter, and bursts that follow each other
	// allocate each time; longer, and the memory of a burst is held longer.
	laneQuiet = 10 * time.Second
)

// laneQueue is a queue of events that owns a copy of their bytes. Records and
// bytes are in a ring each, which grow with what is queued and shrink after the
// burst. An array that was replaced is never written to again, and neither are
// the bytes of an event that is queued, so that slices of them stay as they
// are. The zero value is an empty queue that holds no memory.
type laneQueue struct {
	slots   []laneSlot
	head, n int // the queued ones are n from head on, around the end
	slotUse laneUse

	buf     []byte
	tail    uint64 // where the next event's bytes may begin
	live    int    // bytes of the queued events
	byteUse laneUse
}

// laneSlot is the record of one event.
type laneSlot struct {
	at   int64  // when it was sent last, or queued if it never was
	pos  uint64 // where its bytes begin: counted on without wrapping, so modulo len(buf)
	size int
}

// slot returns the record of the event with i events before it.
func (q *laneQueue) slot(i int) *laneSlot {
	i += q.head
	if i >= len(q.slots) {
		i -= len(q.slots)
	}
	return &q.slots[i]
}

// data returns the bytes of an event, which an append cannot grow into those of
// the next.
func (q *laneQueue) data(s *laneSlot) []byte {
	from := int(s.pos % uint64(len(q.buf)))
	return q.buf[from : from+s.size : from+s.size]
}

// push appends a copy of event.
func (q *laneQueue) push(event []byte, now int64) {
	if q.n == len(q.slots) {
		q.resize(max(laneMinSlots, 2*q.n), len(q.buf), now)
	}
	pos, ok := q.place(len(event))
	if !ok {
		// Twice what is needed is more than there was, and leaves an event of
		// any size queued so far the room that place skips.
		q.resize(len(q.slots), max(laneMinBytes, 2*(q.live+len(event))), now)
		pos, _ = q.place(len(event))
	}
	s := q.slot(q.n)
	*s = laneSlot{at: now, pos: pos, size: len(event)}
	copy(q.data(s), event)
	q.n++
	q.tail = pos + uint64(len(event))
	q.live += len(event)
}

// place finds room for size bytes in one piece.
func (q *laneQueue) place(size int) (pos uint64, ok bool) {
	if len(q.buf) == 0 {
		return 0, false
	}
	length, need := uint64(len(q.buf)), uint64(size)
	pos = q.tail
	if rest := length - pos%length; rest < need {
		pos += rest
	}
	first := q.tail
	if q.n > 0 {
		first = q.slots[q.head].pos
	}
	return pos, pos+need-first <= length
}

// drop removes the k oldest events.
func (q *laneQueue) drop(k int) {
	for range k {
		q.live -= q.slots[q.head].size
		if q.head++; q.head == len(q.slots) {
			q.head = 0
		}
	}
	if q.n -= k; q.n == 0 {
		q.tail = 0
	}
}

// trim gives back what has not been needed for a while. It has to be called
// before each change, so that it sees every length the queue had for a time,
// and copies at most a quarter of what it gives back.
func (q *laneQueue) trim(now int64) {
	slots := q.slotUse.fit(q.n, len(q.slots), laneMinSlots, now)
	bytes := q.byteUse.fit(q.live, len(q.buf), laneMinBytes, now)
	if slots != len(q.slots) || bytes != len(q.buf) {
		q.resize(slots, bytes, now)
	}
}

// resize moves the queue to arrays of the given lengths.
func (q *laneQueue) resize(slots, bytes int, now int64) {
	to := laneQueue{
		slots: q.slots, head: q.head, slotUse: q.slotUse,
		buf: q.buf, tail: q.tail, byteUse: q.byteUse,
		n: q.n, live: q.live,
	}
	if slots != len(q.slots) {
		to.slots, to.head, to.slotUse = make([]laneSlot, slots), 0, laneUse{busyAt: now}
		for i := range q.n {
			to.slots[i] = *q.slot(i)
		}
	}
	if bytes != len(q.buf) {
		to.buf, to.tail, to.byteUse = make([]byte, bytes), 0, laneUse{busyAt: now}
		for i := range q.n {
			s := to.slot(i)
			data := q.data(s)
			s.pos = to.tail
			to.tail += uint64(copy(to.buf[to.tail:], data))
		}
	}
	*q = to
}

// laneUse follows how much of an array is used.
type laneUse struct {
	busyAt int64 // when more than a quarter was used last
	peak   int   // the most since then
}

// fit notes that used of size are in use and returns the size that the array
// should have.
func (u *laneUse) fit(used, size, least int, now int64) int {
	if used > size/4 {
		u.busyAt, u.peak = now, 0
		return size
	}
	u.peak = max(u.peak, used)
	if size <= least || now-u.busyAt < int64(laneQuiet) {
		return size
	}
	return max(least, 2*u.peak)
}
