package ackbits

import "time"

// The queue of an OrderedLane and the memory that it takes. Which event is due, the
// budget and acknowledgements are in lane.go.

const (
	// What a queue keeps once it has been used: 1.75 KiB. Smaller, and a lane with an
	// event now and then allocates for each; larger, and idle lanes hold memory for
	// nothing.
	laneMinSlots = 32
	laneMinBytes = 1024
	// How long the queue must have used no more than a quarter of its memory before the
	// rest is freed. Shorter, and bursts that follow each other allocate each time;
	// longer, and the memory of a burst is held for longer.
	laneQuiet = 10 * time.Second
)

// laneQueue is a queue of events that owns copies of their bytes. Records and bytes lie
// in a ring each; the rings grow with what is queued and shrink after a burst. The
// bytes of a queued event are never overwritten, and neither is an array that was
// replaced. So a slice of an event's bytes stays valid while it is queued. The zero
// value is an empty queue that holds no memory.
type laneQueue struct {
	slots   []laneSlot
	head, n int // the n queued ones begin at head and go on at the start of slots
	slotUse laneUse

	buf     []byte
	tail    uint64 // the position at which the next event's bytes may begin
	live    int    // how many bytes the queued events have
	byteUse laneUse
}

// laneSlot is the record of one event.
type laneSlot struct {
	at   int64  // when its last copy was sent; before the first, when it was queued
	pos  uint64 // the position at which its bytes begin; positions never wrap: in buf, take it modulo len(buf)
	size int
}

// slot returns the record of the event that has i older ones in the queue.
func (q *laneQueue) slot(i int) *laneSlot {
	i += q.head
	if i >= len(q.slots) {
		i -= len(q.slots)
	}
	return &q.slots[i]
}

// data returns the bytes of an event. Its capacity is its length, so that an append
// copies instead of overwriting the next event.
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
		// Twice what is needed is more than there was, and it suffices even if place
		// has to skip bytes at the end of the ring.
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

// place returns the position of size free bytes in one piece, if there are any.
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

// trim frees memory that was not needed for a while. It must be called before each
// change, so that it sees every length that the queue had for some time. It copies at
// most a quarter of what it frees.
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

// laneUse records how much of an array was used lately.
type laneUse struct {
	busyAt int64 // when more than a quarter was used last
	peak   int   // the most that was used since then
}

// fit notes that used of size elements are in use, and returns how many the array should
// have; at least least.
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
