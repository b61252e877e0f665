package ackbits

import "time"

// The budget for copies of events. Which copies ask for it is in due.go and copies.go.

// budget is the token bucket of Config.EventRate, for copies alone: first copies
// spend nothing. It counts in time: what was spent is the time in which it comes in
// again. The zero value spends freely.
//
// A copy may be sent when the largest event so far could be: the same moment for
// all events, so that which one is the lowest does not move the deadline.
type budget struct {
	rate    int64 // bytes a second; 0: no limit
	even    int64 // when all that was spent will have come in again
	largest int64 // the cost of the largest event so far, in time
	owed    int64 // when a copy was last sent that it did not allow
}

// burst is the depth of the bucket: how far a budget may be overdrawn.
const burst = int64(time.Second)

// owedEvery is how often the oldest undelivered event is sent again whatever the
// budget says (P-17.1.1). Rarer, and a small budget would end sessions by their stall
// timeout; more often, and it would be none.
const owedEvery = int64(time.Second)

// cost is the time in which a copy of an event comes in again.
func (b *budget) cost(event int) int64 {
	return (int64(eventOverhead+event)*int64(time.Second) + b.rate - 1) / b.rate
}

// note notes the size of a new event.
func (b *budget) note(event int) {
	if b.rate != 0 {
		b.largest = max(b.largest, b.cost(event))
	}
}

// allowedAt returns when a copy may be sent; where events are worth more than a
// whole burst, when all has come in.
func (b *budget) allowedAt() int64 { return b.even + min(0, b.largest-burst) }

// spareAt returns when a proactive copy may be sent. Those leave half of the burst
// to retransmissions: an event that is known to be missing comes first.
func (b *budget) spareAt() int64 { return b.even + min(0, b.largest-burst/2) }

// spare reports whether a proactive copy may be sent on top of n others.
func (b *budget) spare(n int, now int64) bool {
	return n == 0 && now >= b.spareAt() || max(b.even, now)+int64(n+1)*b.largest <= now+burst/2
}

// owedAt returns when a copy of the oldest undelivered event may be sent all the
// same. Those copies are owedEvery apart, whichever event is the oldest.
func (b *budget) owedAt(oldest *pending) int64 {
	return saturatingAdd(max(oldest.last, b.owed), owedEvery)
}

// spend takes a copy of an event, which was due at asOf, off the budget.
func (b *budget) spend(event int, asOf, now int64) {
	if b.rate != 0 {
		if asOf < b.allowedAt() {
			b.owed = now
		}
		b.even = max(b.even, now) + b.cost(event)
	}
}
