package ackbits

import "math/bits"

// The receiver's window of event ids (R1): ids from the oldest missing one on
// are judged by whether they were received, those before it are old.
const (
	// nearSpan is what a sender of this library keeps to, and all that Ordered
	// takes.
	nearSpan = 256
	// farSpan is for a sender that counts undelivered events instead of keeping
	// to a span, as section 5.3 reads by the letter. With 256 such a session
	// would die of refused datagrams under load; beyond 4096 a copy that was
	// delayed past a wrap of the ids could be taken for a new event.
	farSpan = 4096
)

// idWindow knows which event ids were received.
//
// Invariant: base is the oldest id not received; bit id is set exactly when an
// id of base … base+span−1 was received.
type idWindow struct {
	base uint16
	span uint16
	near [nearSpan / 64]uint64
	far  []uint64 // of farSpan bits; replaces near once an id needs it
}

// verdict is what an event id means to the receiver.
type verdict uint8

const (
	idNew verdict = iota
	idKnown
	idOutside
)

func (w *idWindow) words() []uint64 {
	if w.far != nil {
		return w.far
	}
	return w.near[:]
}

// judge says what an id means. Base is new by definition; what is up to 32767
// before it was received long ago.
func (w *idWindow) judge(id uint16) verdict {
	ahead := id - w.base
	switch {
	case ahead == 0:
		return idNew
	case ahead > 1<<15:
		return idKnown
	case ahead >= w.span:
		return idOutside
	case w.far == nil && ahead >= nearSpan:
		return idNew
	}
	if w.received(id) {
		return idKnown
	}
	return idNew
}

// received reports whether an id was received that lies from base on, inside
// what words hold.
func (w *idWindow) received(id uint16) bool {
	words := w.words()
	return words[int(id>>6)&(len(words)-1)]>>(id&63)&1 != 0
}

// accept takes in an id inside the window, and reports whether it is new.
func (w *idWindow) accept(id uint16) (isNew bool) {
	if id == w.base {
		w.base++
		if w.received(w.base) {
			w.advance()
		}
		return true
	}
	if w.judge(id) != idNew {
		return false
	}
	if w.far == nil && id-w.base >= nearSpan {
		far := make([]uint64, farSpan/64)
		w.widen(far)
		w.far = far
	}
	words := w.words()
	words[int(id>>6)&(len(words)-1)] |= 1 << (id & 63)
	return true
}

// advance moves base past the ids that were received and forgets them.
func (w *idWindow) advance() {
	words := w.words()
	for {
		word := &words[int(w.base>>6)&(len(words)-1)]
		shift := w.base & 63
		n := bits.TrailingZeros64(^(*word >> shift))
		*word &^= (1<<n - 1) << shift
		w.base += uint16(n)
		if n == 0 || w.base&63 != 0 {
			return
		}
	}
}

// widen copies near to far, which holds farSpan zero bits. The words of the two
// spans do not line up, so the bits move one by one.
func (w *idWindow) widen(far []uint64) {
	for ahead := range uint16(nearSpan) {
		if id := w.base + ahead; w.near[id>>6&(nearSpan/64-1)]>>(id&63)&1 != 0 {
			far[id>>6&(farSpan/64-1)] |= 1 << (id & 63)
		}
	}
}

// narrow gives back what widen took, if nothing needs it any more.
func (w *idWindow) narrow() {
	if w.far == nil {
		return
	}
	var near [nearSpan / 64]uint64
	left := 0
	for _, word := range w.far {
		left += bits.OnesCount64(word)
	}
	for ahead := range uint16(nearSpan) {
		if id := w.base + ahead; w.far[id>>6&(farSpan/64-1)]>>(id&63)&1 != 0 {
			near[id>>6&(nearSpan/64-1)] |= 1 << (id & 63)
			left--
		}
	}
	if left == 0 {
		w.near, w.far = near, nil
	}
}

// admits reports whether all ids of a list are in the window or old. They are
// judged in the list's order, each as if those before it had been taken in,
// which moves base: never by more than one list and the whole span, so ids
// clear of both edges need no second look.
func (w *idWindow) admits(events []Event) bool {
	const slack = farSpan + maxListEvents
	for i := range events {
		ahead := events[i].ID - w.base
		if ahead >= w.span && ahead <= 1<<15+slack {
			return w.admitsOneByOne(events)
		}
	}
	return true
}

func (w *idWindow) admitsOneByOne(events []Event) bool {
	var far [farSpan / 64]uint64
	if w.far == nil {
		w.widen(far[:])
	} else {
		copy(far[:], w.far)
	}
	trial := *w
	trial.far = far[:]
	for i := range events {
		if trial.judge(events[i].ID) == idOutside {
			return false
		}
		trial.accept(events[i].ID)
	}
	return true
}

// inbox takes in events: each once (I3), with Ordered in the order of their
// ids.
type inbox struct {
	ids     idWindow
	ordered bool
	parsed  []Event // of the datagram at hand
	takenAt uint64  // how many datagrams had been received when events were last handed over

	// Ordered:
	reorder *reorder // nil while nothing was ahead of a gap lately
	out     []Event

	mostEvents peak
}

func (b *inbox) init(ordered bool) {
	b.ordered = ordered
	b.ids.span = farSpan
	if ordered {
		b.ids.span = nearSpan
	}
}

// take takes in a list that ids.admits. It returns the events to hand over and
// how many were new.
func (b *inbox) take(events []Event) (out []Event, fresh int) {
	b.mostEvents.note(len(events))
	if b.ordered {
		return b.takeOrdered(events)
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

func (b *inbox) takeOrdered(events []Event) (out []Event, fresh int) {
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
	b.mostEvents.note(len(b.out))
	return b.out, fresh
}

// trim gives back memory that was not needed lately, and lets go of the caller's
// datagrams and of copies, to which the lists point. What was handed over last stays as
// it is as long as received says that no other datagram came.
func (b *inbox) trim(busy bool, received uint64) {
	b.ids.narrow()
	n := roomFor(b.mostEvents.room(0, modestEvents, busy), 1)
	if n < cap(b.parsed) {
		b.parsed = make([]Event, 0, n)
	}
	if n < cap(b.out) {
		b.out = make([]Event, 0, n)
	}
	clear(b.parsed[len(b.parsed):cap(b.parsed)]) // of lists before the last
	if b.takenAt != received {
		clear(b.parsed)
		clear(b.out)
	}
	if b.reorder != nil && b.reorder.trim(b.ids.base, busy) {
		b.reorder = nil
	}
}
