package ackbits

import (
	"time"

	"github.com/ackbits/ackbits/internal/ring"
	"github.com/ackbits/ackbits/internal/trim"
)

// Outcomes as the application reads them, and the queue in which they wait. They are
// decided in acknowledge.go.

// Outcome says whether a datagram that we sent was delivered (P-7.2.1).
type Outcome struct {
	Sequence  uint16
	Type      Type          // of a Bundle: the type that was given to AppendDatagram
	Delivered bool          // false: presumed lost
	RTT       time.Duration // from sending the datagram to its first acknowledgement; 0 if it was lost
}

// outcomeQueue holds the outcomes that the application has not read yet. It is bounded,
// since the application may never read them.
type outcomeQueue struct {
	ring       ring.Ring[Outcome]
	first, end int64
	most       trim.Peak // how many waited
}

// maxOutcomes is how many outcomes may wait (P-7.2.5): those of 17 seconds at 60
// datagrams a second. Fewer, and a caller that reads them rarely misses some; more, and
// a caller that never does holds memory for nothing. minOutcomes is the first size.
const (
	maxOutcomes = 1024
	minOutcomes = 8
)

// push appends an outcome, and reports whether the oldest was dropped for it (P-7.2.5).
func (q *outcomeQueue) push(o Outcome) (dropped bool) {
	n := len(q.ring)
	if q.end-q.first == int64(n) {
		if n == maxOutcomes {
			q.first++
			dropped = true
		} else {
			q.ring = q.ring.Resized(max(2*n, minOutcomes), q.first, q.end)
		}
	}
	*q.ring.At(q.end) = o
	q.end++
	q.most.Note(int(q.end - q.first))
	return dropped
}

// pop removes and returns the oldest outcome.
func (q *outcomeQueue) pop() (Outcome, bool) {
	if q.first == q.end {
		return Outcome{}, false
	}
	o := *q.ring.At(q.first)
	q.first++
	return o, true
}

// trim frees memory that was not needed lately.
func (q *outcomeQueue) trim(busy bool) {
	if n := trim.Length(q.most.Room(int(q.end-q.first), trim.ModestElements, busy), minOutcomes); n < len(q.ring) {
		q.ring = q.ring.Resized(n, q.first, q.end)
	}
}
