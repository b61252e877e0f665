package ackbits

import "strconv"

// Which sequence is newer, and which datagrams of a peer were received, in the form
// that headers carry. Which of them we still have to acknowledge is pendingacks.go's.

// Arrival says how a sequence relates to those received before it.
type Arrival uint8

const (
	Newest    Arrival = iota + 1 // newer than all before: moves ack
	Late                         // 1 to 64 steps before ack, and new
	Duplicate                    // known to have been received
	Stale                        // everything else: nothing can be said of it
)

var arrivalNames = [...]string{"None", "Newest", "Late", "Duplicate", "Stale"}

// String returns the arrival's name.
func (a Arrival) String() string {
	if int(a) < len(arrivalNames) {
		return arrivalNames[a]
	}
	return "Arrival(" + strconv.Itoa(int(a)) + ")"
}

// newer reports whether sequence a is more recent than b: (a−b) mod 65536 is 1
// to 32767. So 2 is newer than 65533, by 5; of two sequences exactly 32768 apart
// neither is newer (P-3.1.2).
func newer(a, b uint16) bool { return a-b-1 < 1<<15-1 }

// historySize is how many sequences before the newest a tracker remembers: as
// many as the wide header shows. The narrow header shows the nearest 32, but
// knowing 64 tells a late datagram from a duplicate twice as far back.
const historySize = 64

// AckTracker keeps which datagrams of a peer were received, in the form that
// headers carry. The zero value has received nothing: its ack is 65535, the
// sequence before the peer's first one, which does not count as received
// (P-4.1.1).
//
// Invariant: bit n of history is set exactly when sequence ack − 1 − n was
// received (I1).
type AckTracker struct {
	history uint64
	next    uint16 // ack + 1, so that zero stands for an ack of 65535
	started bool   // whether ack itself was received
}

// Classify says what Receive would answer, and changes nothing (P-4.1.2).
func (t *AckTracker) Classify(seq uint16) Arrival {
	ack := t.Ack()
	if newer(seq, ack) {
		return Newest
	}
	if !t.started {
		return Stale
	}
	switch back := ack - seq; {
	case back == 0:
		return Duplicate
	case back > historySize:
		return Stale
	case t.history>>(back-1)&1 != 0:
		return Duplicate
	}
	return Late
}

// Receive takes in a sequence and says how it relates to those before it.
// Duplicate and Stale change nothing (P-4.1.4).
func (t *AckTracker) Receive(seq uint16) Arrival {
	arrival := t.Classify(seq)
	switch arrival {
	case Newest:
		t.advance(seq)
	case Late:
		t.history |= 1 << (t.Ack() - seq - 1)
	}
	return arrival
}

// advance makes seq the newest (P-4.1.3). The history moves by the difference and the
// previous ack becomes the bit of its distance: with ack 65534 and no history,
// receiving 1 is a step of 3, so bit 2 is set and stands for 1−1−2, 65534.
// A shift by 64 or more leaves nothing, and an ack that was never received
// leaves no bit.
func (t *AckTracker) advance(seq uint16) {
	step := seq - t.Ack()
	t.history <<= step
	if t.started {
		t.history |= 1 << (step - 1)
	}
	t.next = seq + 1
	t.started = true
}

// received reports whether a sequence up to 64 steps before ack was received.
func (t *AckTracker) received(back uint16) bool {
	if back == 0 {
		return t.started
	}
	return t.history>>(back-1)&1 != 0
}

// Ack returns the newest sequence received; 65535 before any was.
func (t *AckTracker) Ack() uint16 { return t.next - 1 }

// AckBits returns the 32 bits of the narrow header.
func (t *AckTracker) AckBits() uint32 { return uint32(t.history) }

// WideAckBits returns the 64 bits of the wide header.
func (t *AckTracker) WideAckBits() uint64 { return t.history }
