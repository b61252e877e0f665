package ackbits

import (
	"time"

	"github.com/ackbits/ackbits/internal/ring"
	"github.com/ackbits/ackbits/internal/trim"
)

// Outcomes as the application fetches them, and the queue in which they wait. How
// they are decided is acknowledge.go's.

// Outcome says what became of one datagram sent.
type Outcome struct {
	Sequence  uint16
	Type      Type          // of a bundle: the inner type
	Delivered bool          // false: presumed lost
	RTT       time.Duration // from sending it to learning of its delivery; 0 for a lost one
}

// outcomeQueue holds outcomes that were not fetched yet. It is bounded, for a
// caller that never fetches them.
type outcomeQueue struct {
	ring       ring.Ring[Outcome]
	first, end int64
	most       trim.Peak
}

// maxOutcomes is how many wait at most (P-7.2.5): at 60 datagrams a second, for 17
// seconds. More would serve nobody who fetches them at all.
const (
	maxOutcomes = 1024
	minOutcomes = 8
)

// push appends an outcome, and reports whether the oldest had to go (P-7.2.5).
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

func (q *outcomeQueue) pop() (Outcome, bool) {
	if q.first == q.end {
		return Outcome{}, false
	}
	o := *q.ring.At(q.first)
	q.first++
	return o, true
}

// trim gives back memory that was not needed lately.
func (q *outcomeQueue) trim(busy bool) {
	if n := trim.Length(q.most.Room(int(q.end-q.first), trim.ModestElements, busy), minOutcomes); n < len(q.ring) {
		q.ring = q.ring.Resized(n, q.first, q.end)
	}
}
