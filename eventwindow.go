package ackbits

import "math/bits"

// Which event ids were received, and which may be: the receiver's window. Ids
// from the oldest missing one on are judged by whether they were received, those
// before it are old. The events themselves are inbox.go's.

const (
	// nearSpan is the window that a sender of this library keeps to, and all that
	// Ordered accepts.
	nearSpan = 256
	// farSpan is for a sender that counts undelivered events instead of keeping
	// to a window (P-17.1.6). With 256 such a session
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

// idState is what an event id means to the receiver.
type idState uint8

const (
	idNew idState = iota
	idKnown
	idOutside
)

func (w *idWindow) words() []uint64 {
	if w.far != nil {
		return w.far
	}
	return w.near[:]
}

// judge says what an id means (P-5.3.1). Base is new by definition; what is up to
// 32767 before it was received long ago. Ids compare like sequences (P-3.1.3).
func (w *idWindow) judge(id uint16) idState {
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

// accept takes an id that is inside the window, and reports whether it is new
// (P-5.3.3). Ids may come in any order (P-17.1.2).
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
// judged in the list's order, each as if those before it had been accepted,
// which moves base: never by more than one list and the whole span, so ids
// clear of both edges need no second look (P-5.3.2).
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
