package ackbits

import "math/bits"

// The receiver's window of event ids: which ids were received, and which are accepted
// (chapter 5.3 of docs/protocol.md). The events themselves are in inbox.go; the
// sender's side of the window is in outbox.go.

const (
	// eventWindow is the window that senders keep to, in ids, and the receiver's window
	// with Ordered. Smaller, and fewer events fit into a round trip; larger, and
	// peers that keep to 256 would refuse them.
	eventWindow = 256
	// maxEventWindow is the receiver's window without Ordered. It is for a peer that counts
	// 256 undelivered events instead of keeping to a window (P-17.1.6). Smaller, and
	// under load so many of that peer's datagrams would be refused that its session
	// ends; larger, and a copy that was delayed past a wrap of the ids could be taken
	// for a new event.
	maxEventWindow = 4096
)

// idWindow records which event ids were received.
//
// Invariant: base is the oldest id not received, and for each id of base …
// base+size−1, bit id (modulo the number of bits) is set exactly when that id was
// received.
type idWindow struct {
	base uint16
	size uint16 // of the window, in ids
	near [eventWindow / 64]uint64
	far  []uint64 // maxEventWindow bits, in place of near from the first id on that needs them
}

// idState is what an event id means to the receiver.
type idState uint8

const (
	idNew     idState = iota
	idKnown           // received before
	idOutside         // neither in the window nor old
)

// words returns the bits in use.
func (w *idWindow) words() []uint64 {
	if w.far != nil {
		return w.far
	}
	return w.near[:]
}

// judge classifies an id (P-5.3.1). base is new by definition; the 32767 ids before it
// were received. Ids are compared like sequences (P-3.1.3).
func (w *idWindow) judge(id uint16) idState {
	ahead := id - w.base
	switch {
	case ahead == 0:
		return idNew
	case ahead > 1<<15:
		return idKnown
	case ahead >= w.size:
		return idOutside
	case w.far == nil && ahead >= eventWindow:
		return idNew
	}
	if w.received(id) {
		return idKnown
	}
	return idNew
}

// received reports whether an id at or after base was received; words must have a bit
// for it.
func (w *idWindow) received(id uint16) bool {
	words := w.words()
	return words[int(id>>6)&(len(words)-1)]>>(id&63)&1 != 0
}

// accept records an id, which must not be outside the window, as received, and reports
// whether it is new (P-5.3.3). Ids may arrive in any order (P-17.1.2).
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
	if w.far == nil && id-w.base >= eventWindow {
		far := make([]uint64, maxEventWindow/64)
		w.widen(far)
		w.far = far
	}
	words := w.words()
	words[int(id>>6)&(len(words)-1)] |= 1 << (id & 63)
	return true
}

// advance moves base to the oldest id not received and clears the bits on the way.
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

// widen copies the bits of near to far, which has maxEventWindow bits, all zero. An id has
// different places in the two, so the bits are copied one by one.
func (w *idWindow) widen(far []uint64) {
	for ahead := range uint16(eventWindow) {
		if id := w.base + ahead; w.near[id>>6&(eventWindow/64-1)]>>(id&63)&1 != 0 {
			far[id>>6&(maxEventWindow/64-1)] |= 1 << (id & 63)
		}
	}
}

// narrow returns from far to near if no id received needs far, and frees far. This is not
// the rule of internal/trim: far is needed or it is not, there is no size to choose, and
// a Peak would add 16 bytes to every session for what only a peer that keeps to no window
// of 256 ids can cause. Such a peer makes this side allocate the 512 bytes of far once in
// trim.Period at most.
func (w *idWindow) narrow() {
	if w.far == nil {
		return
	}
	var near [eventWindow / 64]uint64
	left := 0
	for _, word := range w.far {
		left += bits.OnesCount64(word)
	}
	for ahead := range uint16(eventWindow) {
		if id := w.base + ahead; w.far[id>>6&(maxEventWindow/64-1)]>>(id&63)&1 != 0 {
			near[id>>6&(eventWindow/64-1)] |= 1 << (id & 63)
			left--
		}
	}
	if left == 0 {
		w.near, w.far = near, nil
	}
}

// admits reports whether all ids of a list are in the window or old. Each is judged as
// if those before it in the list had been accepted (P-5.3.2). That may move base, but
// by no more than a list and the whole window. So only ids near the two edges of the
// window must be judged one by one.
func (w *idWindow) admits(events []Event) bool {
	const slack = maxEventWindow + maxListEvents
	for i := range events {
		ahead := events[i].ID - w.base
		if ahead >= w.size && ahead <= 1<<15+slack {
			return w.admitsOneByOne(events)
		}
	}
	return true
}

// admitsOneByOne is admits on a copy of the window.
func (w *idWindow) admitsOneByOne(events []Event) bool {
	var far [maxEventWindow / 64]uint64
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
