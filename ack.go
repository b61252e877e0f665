package ackbits

import "strconv"

// Which of two sequences is newer, and which datagrams of the peer were received, in
// the form that headers carry. Which of them no header of ours has acknowledged yet is
// in pendingacks.go; what the peer acknowledges is in acknowledge.go.

// Arrival says how the sequence of a datagram relates to those received before
// (P-4.1.2).
type Arrival uint8

const (
	Newest    Arrival = iota + 1 // newer than all before; it becomes the ack
	Late                         // 1 to 64 before the ack, and not received before
	Duplicate                    // the ack, or 1 to 64 before it, and received before
	Stale                        // too old to tell whether it was received
)

var arrivalNames = [...]string{"None", "Newest", "Late", "Duplicate", "Stale"}

// String returns the arrival's name.
func (a Arrival) String() string {
	if int(a) < len(arrivalNames) {
		return arrivalNames[a]
	}
	return "Arrival(" + strconv.Itoa(int(a)) + ")"
}

// newer reports whether sequence a is newer than b: (a−b) mod 65536 is 1 to 32767.
// So 2 is newer than 65533, by 5. Of two sequences exactly 32768 apart neither is newer
// (P-3.1.2).
func newer(a, b uint16) bool { return a-b-1 < 1<<15-1 }

// historySize is how many sequences before the newest one a tracker remembers: as many
// as the wide header carries. The narrow header carries the nearest 32 only; the
// other 32 still tell a late datagram from a duplicate.
const historySize = 64

// AckTracker records which datagrams of a peer were received, in the form that headers
// carry. The zero value has received nothing: its ack is 65535, the sequence before
// the peer's first one, and does not count as received (P-4.1.1). It is not safe for
// concurrent use.
//
// Invariant: bit n of history is set exactly when sequence ack − 1 − n was
// received (I1).
type AckTracker struct {
	history uint64
	next    uint16 // ack + 1, so that zero stands for an ack of 65535
	started bool   // whether ack itself was received
}

// Classify returns what Receive would return, and changes nothing (P-4.1.2).
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

// Receive records a sequence as received and returns how it relates to those before
// it. A Duplicate or Stale one changes nothing (P-4.1.4).
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

// advance makes seq the ack (P-4.1.3). The history is shifted by the difference, and
// the previous ack becomes the bit of its distance. Say ack is 65534, the history is
// empty, and 1 is received: the difference is 3, so bit 2 is set, and stands for
// 1−1−2, which is 65534. A shift by 64 or more leaves no bit. Nor does the initial
// ack, which was never received.
func (t *AckTracker) advance(seq uint16) {
	history := t.history << 1
	if t.started {
		history |= 1
	}
	t.history = history << (seq - t.Ack() - 1)
	t.next = seq + 1
	t.started = true
}

// received reports whether the sequence that is back before the ack was received; back
// is at most 64.
func (t *AckTracker) received(back uint16) bool {
	if back == 0 {
		return t.started
	}
	return t.history>>(back-1)&1 != 0
}

// Ack returns the newest sequence received; 65535 before any was.
func (t *AckTracker) Ack() uint16 { return t.next - 1 }

// AckBits returns the 32 bits of a narrow header: bit n stands for sequence Ack()−1−n.
func (t *AckTracker) AckBits() uint32 { return uint32(t.history) }

// WideAckBits returns the 64 bits of a wide header, in the same order.
func (t *AckTracker) WideAckBits() uint64 { return t.history }
