package ackbits

import (
	"math"
	"time"
)

// Config.Adaptive resends events by evidence and sends copies ahead of loss. Its
// constants, and what breaks in each direction:
const (
	// minResend is the shortest timer. Below it, a tick of the peer's would pass
	// for a loss on a local network; above it, the tail of a burst on such a
	// network would wait for nothing.
	minResend = 20 * int64(time.Millisecond)
	// maxBackoff is how often the timer doubles while nothing at all is
	// acknowledged. More would leave a link that comes back unused for seconds,
	// fewer would pour copies into one that is dead.
	maxBackoff = 3

	// nearGap keeps two copies out of one tick, so that they do not share one
	// hiccup: at 60 Hz the second goes a tick after the first. Above a tick it
	// would go two after.
	nearGap = 10 * int64(time.Millisecond)
	// farGap parts copies where losses come in bursts. Shorter than a burst it
	// wins little; longer, the last copy arrives no sooner than a resend would.
	farGap = 75 * int64(time.Millisecond)
	// burstTail is the longest round trip at which the end of a plan for bursts is
	// seldom sent. Above it, every event would be sent nine times.
	burstTail = 150 * int64(time.Millisecond)
	// maxHold is how much longer a planned copy may wait for an application
	// datagram that will carry it, if one is expected. Shorter, and at 60 Hz a
	// copy would go in a datagram of its own just before; longer, and it would
	// wait for those of a 20 Hz server.
	maxHold = 15 * int64(time.Millisecond)
	// tolerated is the share of new events that may need a round trip more: 5 of
	// 1,000. A tenth of that costs another copy at 10 % loss; ten times as many
	// would show at p99.
	tolerated = 5 * million / 1000
	// maxAhead is the most copies ahead of an event where losses are independent:
	// enough for that at 34 % of loss. Where more is lost, more copies would
	// only add to it.
	maxAhead = 4

	// sampledLosses is how many losses an estimate rests on, so that it is right
	// to about a fifth: with fewer the number of copies would waver, with more
	// it would follow slowly.
	sampledLosses = 24
	// recentLosses: an estimate from the newest 8 losses notices a link that turns
	// bad within half a second. Being so few, they count for recentTrust, 60 %, of
	// what they say: more would mistake chance for change, less would be late.
	recentLosses = 8
	recentTrust  = million * 6 / 10
	// minSampled is the fewest datagrams that a loss is measured against, lest
	// the first one of a session look like a bad link.
	minSampled = 100
	// lossMemory is after how many datagrams a loss is forgotten: at 60 a second,
	// 40 s. It is what lets 1 % of loss still be seen as such, and the time for
	// which a link that has become clean gets copies that it does not need.
	lossMemory = 2400
	// replanEvery is after how many datagrams without a loss the plan is looked
	// at again. It only saves work.
	replanEvery = 16
	// burstiness is the share of losses right after another from which losses
	// count as coming in bursts, if it is also twice what chance would give.
	burstiness = million / 4

	// reorderMemory is after how many datagrams without reordering a link counts
	// as keeping order again.
	reorderMemory = 2400
	// reorderSteps divide a smoothed round trip, the longest that evidence waits
	// for a datagram that may only be late (RFC 8985, section 6.2).
	reorderSteps = 4

	// million is the unit of rates: whole numbers give every machine the same
	// answer.
	million = 1_000_000
)

// burstPlan is for losses that come in bursts: a copy near, one that is likely to
// be past the burst and one near that, then as many as bridge a long burst. An
// acknowledgement ends the plan, so the latter are seldom sent where it comes in
// time; where the round trip is longer than burstTail, longPlan leaves them out.
// Without them, what a long burst swallows waits for a round trip after its end.
var (
	burstPlan = ahead{left: 8, far: 0b00001010}
	longPlan  = ahead{left: 3, far: 0b010}
)

// ahead is a plan for the copies of an event that go before a loss is known: how
// many are left and, in the low bits, which of them go far from the one before.
type ahead struct{ left, far uint8 }

// near and distant report how the next copy goes, if there is one.
func (a ahead) near() bool    { return a.left > 0 && a.far&1 == 0 }
func (a ahead) distant() bool { return a.left > 0 && a.far&1 != 0 }

// spend takes the next copy off the plan.
func (a *ahead) spend() {
	if a.left > 0 {
		a.left--
		a.far >>= 1
	}
}

// adaptation is what Config.Adaptive knows of the link. It looks once at each
// datagram that we sent, in their order, as soon as it is acknowledged or
// presumed lost.
type adaptation struct {
	heartbeat int64
	assessed  int64 // the number of the next datagram to look at

	lossesAt [sampledLosses]uint32 // the newest losses, by shortened numbers, a ring
	newest   int                   // the place of the newest of them
	losses   int                   // how many of them there are
	plan     ahead                 // for new events, by these

	latestRTT   int64 // of the newest datagram acknowledged
	reorderStep int64 // how many steps evidence waits
	reorderedAt int64 // the number assessed at the last reordering

	carriedAt  int64 // when the last application datagram was sent, if they can carry events
	carrierGap int64 // and how long after the one before

	backoff int
	firedAt int64 // when the timer last fired
	silent  bool  // nothing was acknowledged since then
}

// loss returns the i-th newest loss.
func (a *adaptation) loss(i int) *uint32 {
	return &a.lossesAt[(a.newest+sampledLosses-i)%sampledLosses]
}

// age returns how many datagrams ago the i-th newest loss was.
func (a *adaptation) age(i int) int64 { return int64(uint32(a.assessed) - *a.loss(i)) }

// lose notes a loss.
func (a *adaptation) lose(number int64) {
	a.newest = (a.newest + 1) % sampledLosses
	a.losses = min(a.losses+1, sampledLosses)
	*a.loss(0) = uint32(number)
}

// lossRate estimates the share of datagrams lost, in millionths, and of losses
// that follow right after another.
func (a *adaptation) lossRate() (rate, pairs int64) {
	n := 0
	for n < a.losses && a.age(n) <= lossMemory {
		if n > 0 && a.age(n)-a.age(n-1) == 1 {
			pairs++
		}
		n++
	}
	span := max(min(a.assessed, lossMemory), minSampled) // with fewer losses than wanted, all that was sent
	if n == sampledLosses {
		span = a.age(n - 1)
	}
	rate = min(int64(n)*million/max(span, 1), million)
	if n < recentLosses {
		return rate, 0
	}
	return rate, pairs * million / int64(n)
}

// replan draws up the plan. Copies a tick apart share the fate of a burst, so
// where losses come in bursts one copy follows near and the others far. Most of
// the far ones are never sent, because the acknowledgement comes first.
func (a *adaptation) replan() {
	a.plan = ahead{}
	rate, pairs := a.lossRate()
	bursty := pairs > max(burstiness, 2*rate)
	if !bursty && a.losses >= recentLosses {
		recent := recentLosses * recentTrust / max(a.age(recentLosses-1), 1)
		rate = min(max(rate, recent), million)
	}
	switch {
	case rate <= tolerated:
	case bursty && a.latestRTT > burstTail:
		a.plan = longPlan
	case bursty:
		a.plan = burstPlan
	default:
		for left := rate; left > tolerated && a.plan.left < maxAhead; left = left * rate / million {
			a.plan.left++
		}
	}
}

// noteCarrier notes an application datagram that can carry events. Of several at
// one time the first counts.
func (a *adaptation) noteCarrier(now int64) {
	if now > a.carriedAt {
		a.carriedAt, a.carrierGap = now, now-a.carriedAt
	}
}

// plannedAt returns when a planned copy is due, a gap after the last one. One in a
// datagram of its own waits a little if an application datagram that can carry
// it is about to come, counting on that to be up to a quarter late.
func (a *adaptation) plannedAt(e *pending, gap int64, in carrier) int64 {
	at := e.last + gap
	if next := a.carriedAt + a.carrierGap + a.carrierGap/4; in == ownDatagram && next > at && next <= at+maxHold {
		return next
	}
	return at
}

// forgive takes note of reordering: it takes back the loss, if the datagram was
// counted as one, and lets evidence wait longer, by a step more where the wait
// was too short.
func (a *adaptation) forgive(number int64) {
	a.reorderedAt = a.assessed
	a.reorderStep = max(a.reorderStep, 1)
	for i := range a.losses {
		if *a.loss(i) != uint32(number) {
			continue
		}
		for ; i > 0; i-- {
			*a.loss(i) = *a.loss(i - 1)
		}
		a.newest = (a.newest + sampledLosses - 1) % sampledLosses
		a.losses--
		a.reorderStep = min(a.reorderStep+1, reorderSteps)
		a.replan()
		return
	}
}

// fired notes that the timer fired, and lets it back off if nothing at all was
// acknowledged since it did so before.
func (a *adaptation) fired(now, timer int64) {
	if now-a.firedAt < timer && a.silent {
		return // one silence, many events
	}
	if a.silent {
		a.backoff = min(a.backoff+1, maxBackoff)
	}
	a.firedAt, a.silent = now, true
}

// assess looks at the datagrams that an acknowledgement has settled: a datagram
// is presumed lost once it counts as overtaken.
func (c *channel) assess(now int64) {
	a, s := c.adapt, &c.sent
	a.backoff, a.silent = 0, false
	before, lost := a.assessed, false
	for a.assessed = max(a.assessed, s.first); a.assessed < s.top; a.assessed++ {
		stamp := *s.stamps.At(a.assessed)
		if stamp&fateMask != delivered {
			if at, ok := c.overtakenAt(a.assessed, stamp.sentAt()); !ok || now < at {
				break
			}
			a.lose(a.assessed)
			lost = true
		}
	}
	if a.assessed-a.reorderedAt > reorderMemory {
		a.reorderStep = 0
	}
	if lost || a.assessed/replanEvery != before/replanEvery {
		a.replan()
	}
}

// overtakenAt returns when a datagram that is not acknowledged counts as
// overtaken: at once when a later one is acknowledged, or a while after, if the
// link was seen to reorder.
func (c *channel) overtakenAt(number, sentAt int64) (at int64, ok bool) {
	if number >= c.sent.top {
		return 0, false
	}
	return sentAt + c.adapt.latestRTT + c.rtt.Smoothed()*c.adapt.reorderStep/reorderSteps, true
}

// timer is how long an event waits without any evidence.
func (c *channel) timer() int64 {
	timer := c.resendDelay
	if c.rtt.Sampled() {
		timer = max(c.rtt.Smoothed()+max(4*c.rtt.Variation(), c.adapt.heartbeat), minResend)
	}
	return min(timer, math.MaxInt64>>maxBackoff) << c.adapt.backoff
}

// collectAdaptive marks the events of which a further copy is due.
func (c *channel) collectAdaptive(now int64, in carrier) {
	o := &c.outbox
	for _, q := range []struct {
		cursor *cursor
		far    bool
		gap    int64
	}{{&o.near, false, nearGap}, {&o.far, true, farGap}} {
		for {
			number, e := o.planned(q.cursor, q.far)
			if e == nil || now < c.adapt.plannedAt(e, q.gap, in) || !c.budget.spare(o.due.n, now) {
				break
			}
			o.due.add(uint16(number))
			e.planned = true
			q.cursor.skip++
		}
	}
	fired := false
	for {
		number, e := o.live(&o.resends)
		if e == nil {
			break
		}
		if at, ok := c.evidenceAt(e); ok && now >= at {
			e.ahead = c.adapt.plan // of which this copy is the first
			e.noteResend()
		} else if now >= saturatingAdd(e.last, c.timer()) {
			e.ahead = ahead{}
			e.noteResend()
			fired = true
		} else {
			break
		}
		o.due.add(uint16(number))
		e.planned = false
		o.resends.skip++
	}
	if fired {
		c.adapt.fired(now, c.timer())
	}
}

// evidenceAt returns when an event's last copy counts as overtaken: not before a
// peer that acknowledged what it cannot have yet could do so for ever.
func (c *channel) evidenceAt(e *pending) (at int64, ok bool) {
	number, ok := c.sent.lookup(c.outbox.runs.At(int64(e.run)).seq)
	if !ok {
		return 0, false
	}
	at, ok = c.overtakenAt(number, e.last)
	return max(at, e.last+minResend), ok
}

// nextAdaptive returns when collectAdaptive next has something to mark.
func (c *channel) nextAdaptive() (at int64, ok bool) {
	o := &c.outbox
	at = math.MaxInt64
	if _, e := o.planned(&o.near, false); e != nil {
		at, ok = max(c.adapt.plannedAt(e, nearGap, ownDatagram), c.budget.spareAt()), true
	}
	if _, e := o.planned(&o.far, true); e != nil {
		at, ok = min(at, max(c.adapt.plannedAt(e, farGap, ownDatagram), c.budget.spareAt())), true
	}
	if _, e := o.live(&o.resends); e != nil {
		at, ok = min(at, c.resendAt(e)), true
	}
	return at, ok
}

// budget is what Config.EventRate leaves for copies. The zero value spends freely.
//
// A copy may be sent when the largest event so far could be: the same moment for
// all events, so that which one is the lowest does not move the deadline.
type budget struct {
	rate    int64 // bytes a second; 0: no limit
	even    int64 // when all that was spent will have come in again
	largest int64 // the cost of the largest event so far, in time
}

// burst is how far a budget may be overdrawn.
const burst = int64(time.Second)

// cost is the time in which a copy of an event comes in again.
func (b *budget) cost(event int) int64 {
	return (int64(eventOverhead+event)*int64(time.Second) + b.rate - 1) / b.rate
}

// note takes in the size of a new event.
func (b *budget) note(event int) {
	if b.rate != 0 {
		b.largest = max(b.largest, b.cost(event))
	}
}

// allowedAt returns when a copy may be sent; where events are worth more than a
// whole burst, when all has come in.
func (b *budget) allowedAt() int64 { return b.even + min(0, b.largest-burst) }

// spareAt returns when a planned copy may be sent. Those leave half of the burst
// to resends: an event that is known to be missing comes first.
func (b *budget) spareAt() int64 { return b.even + min(0, b.largest-burst/2) }

// spare reports whether a planned copy may be sent on top of n others.
func (b *budget) spare(n int, now int64) bool {
	return n == 0 && now >= b.spareAt() || max(b.even, now)+int64(n+1)*b.largest <= now+burst/2
}

// spend takes a copy of an event off the budget.
func (b *budget) spend(event int, now int64) {
	if b.rate != 0 {
		b.even = max(b.even, now) + b.cost(event)
	}
}
