package ackbits

import "time"

// The budget for copies of events. Which copies need it is decided in due.go and copies.go.

// budget is the token bucket of Config.EventRate. It limits further copies only: first
// copies spend nothing. Amounts are counted as the time in which the rate refills them.
// The zero value has no limit.
//
// A further copy may be sent once there is enough for the largest event so far. This
// moment is the same for all events, so the deadline does not depend on which event is
// the lowest.
type budget struct {
	rate    int64 // bytes a second; 0: no limit
	even    int64 // when the bucket will be full again
	largest int64 // the cost of the largest event so far
	owed    int64 // when a copy was last sent although the budget did not allow it
}

// burst is the depth of the bucket.
const burst = int64(time.Second)

// owedEvery is how often the oldest undelivered event is sent again whatever the budget
// (P-17.1.1). Rarer, a small budget would let sessions end by their stall timeout; more
// often, it would be no limit.
const owedEvery = int64(time.Second)

// cost is the time in which the rate refills what a copy of an event takes.
func (b *budget) cost(event int) int64 {
	return (int64(eventOverhead+event)*int64(time.Second) + b.rate - 1) / b.rate
}

// note notes the size of a new event.
func (b *budget) note(event int) {
	if b.rate != 0 {
		b.largest = max(b.largest, b.cost(event))
	}
}

// allowedAt returns when a further copy may be sent. If an event costs more than the whole
// bucket, that is when the bucket is full.
func (b *budget) allowedAt() int64 { return b.even + min(0, b.largest-burst) }

// spareAt returns when a proactive copy may be sent. Proactive copies leave half of the
// bucket to retransmissions, since an event that is known to be missing comes first.
func (b *budget) spareAt() int64 { return b.even + min(0, b.largest-burst/2) }

// spare reports whether a proactive copy may be sent on top of n others.
func (b *budget) spare(n int, now int64) bool {
	return n == 0 && now >= b.spareAt() || max(b.even, now)+int64(n+1)*b.largest <= now+burst/2
}

// owedAt returns when a copy of the oldest undelivered event may be sent whatever the
// budget. Such copies are owedEvery apart, whichever event is the oldest.
func (b *budget) owedAt(oldest *pending) int64 {
	return saturatingAdd(max(oldest.last, b.owed), owedEvery)
}

// spend pays for a copy of an event that was due at asOf.
func (b *budget) spend(event int, asOf, now int64) {
	if b.rate != 0 {
		if asOf < b.allowedAt() {
			b.owed = now
		}
		b.even = max(b.even, now) + b.cost(event)
	}
}
