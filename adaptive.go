package ackbits

import (
	"math"
	"time"
)

// The copyRule of Config.Adaptive: it retransmits by evidence and sends proactive
// copies where the link loses. All that it knows of the link is here; what it is
// asked, and by whom, is in copies.go.

// The constants, and what breaks in each direction:
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
	// wins little; longer, the last copy arrives no sooner than a retransmission would.
	farGap = 75 * int64(time.Millisecond)
	// burstTail is the longest round trip at which the end of a plan for bursts is
	// seldom sent. Above it, every event would be sent four times or more; at a
	// round trip of 86 ms the plan of longPlan has p99 later by a tick.
	burstTail = 108 * int64(time.Millisecond)
	// longNearGap and longFarGap are the gaps of longPlan: with ticks of 60 Hz its
	// copies go after 50 and 117 ms, past a burst of 80 ms in five of six cases that
	// a copy a tick after the first is not.
	longNearGap = 45 * int64(time.Millisecond)
	longFarGap  = 62 * int64(time.Millisecond)
	// maxHold is how much longer a planned copy may wait for an application
	// datagram that will carry it, if one is expected. Shorter, and at 60 Hz a
	// copy would go in a datagram of its own just before; longer, and it would
	// wait for those of a 20 Hz server.
	maxHold = 15 * int64(time.Millisecond)
	// tolerated is the share of new events that may need a round trip more: 5 of
	// 1,000. A tenth of that costs another copy at 10 % loss; ten times as many
	// would show at p99.
	tolerated = 5 * million / 1000
	// maxAhead is the most proactive copies of an event where losses are independent:
	// enough for that at 34 % of loss. Where more is lost, more copies would
	// only add to it.
	maxAhead = 4

	// sampledLosses is how many losses an estimate rests on, so that it is right
	// to about a fifth: with fewer the number of copies would waver, with more
	// it would follow slowly.
	sampledLosses = 24
	// An estimate from the newest recentLosses losses notices within half a second that a
	// link turns bad. As they are few, only recentTrust, 60 %, of this estimate counts:
	// more would mistake chance for change, less would react late.
	recentLosses = 8
	recentTrust  = million * 6 / 10
	// cleanTrust limits the estimate by how many datagrams were delivered since the last
	// loss: at a loss of p, one of 1/p datagrams is lost on average, and one of twice as
	// many almost surely. So a link that has become clean gets no more copies after 400
	// datagrams, ten seconds of a game. With 3 it would be fifteen; with 1 the number of
	// copies would waver on a link whose loss does not change. A run shorter than cleanRun
	// says nothing: at 10 % loss one run in two hundred is 50 long by chance.
	cleanTrust, cleanRun = 2, 50
	// longestRow is how many losses in a row count at most: more are an outage, which says
	// nothing about the time after it. Smaller would underrate true bursts.
	longestRow = 8
	// minSampled is the least number of datagrams that losses are related to, so that the
	// first loss of a session does not look like a bad link.
	minSampled = 100
	// lossMemory is after how many datagrams a loss is forgotten: at 60 a second,
	// 40 s. It is what lets 1 % of loss still be seen as such, and the time for
	// which a link that has become clean gets copies that it does not need.
	lossMemory = 2400
	// replanEvery is after how many datagrams without a loss the plan is looked
	// at again. It only saves work.
	replanEvery = 16
	// burstiness is the share of losses right after another loss above which losses count
	// as coming in bursts, if it is also twice what chance would give.
	burstiness = million / 4

	// reorderMemory is after how many datagrams without reordering a link counts
	// as keeping order again.
	reorderMemory = 2400
	// Evidence of a loss waits at most a smoothed round trip, in reorderSteps steps, for
	// a datagram that may only be late (RFC 8985, section 6.2).
	reorderSteps = 4

	// million is the unit of rates: whole numbers give every machine the same
	// answer.
	million = 1_000_000
)

// burstPlan is for losses that come in bursts: a copy near, one that is likely to
// be past the burst and one near that, then as many as bridge a long burst. An
// acknowledgement ends the plan, so the latter are seldom sent where it comes in
// time. Where the round trip is longer than burstTail, all of them would be: longPlan
// has two, apart by about half a burst each, the most that a burst of 80 ms lets
// through within 120 ms. What a longer one swallows waits for a round trip after its
// end.
var (
	burstPlan = copyPlan{left: 8, far: 0b00001010}
	longPlan  = copyPlan{left: 2, far: 0b10}
)

// adaptiveRule is what Config.Adaptive knows of the link. It looks once at each
// datagram that we sent, in their order, as soon as it is acknowledged or
// presumed lost.
type adaptiveRule struct {
	delay     int64 // the timer before the first sample
	heartbeat int64
	poll      int64 // the time between calls that send
	flow      *flow // nil as long as there are no events
	assessed  int64 // the number of the next datagram to look at

	lossesAt [sampledLosses]uint32 // the newest losses, by shortened numbers, a ring
	newest   int                   // the place of the newest of them
	losses   int                   // how many of them there are
	inARow   int                   // how many datagrams were lost up to the one assessed
	current  copyPlan              // of new events, which follows from these losses

	reorderStep int64 // how many steps evidence waits
	reorderedAt int64 // the number assessed at the last reordering

	carriedAt  int64 // when the last application datagram was sent, if they can carry events
	carrierGap int64 // the time from the one before to that one

	backoff int
	firedAt int64 // when the timer last fired
	silent  bool  // nothing was acknowledged since then
}

// flow is what is known of the link while events flow.
type flow struct {
	window    window
	restraint restraint // when no proactive copies may go
	rhythm    rhythm
	refusal   refusal
}

// wake begins to watch the link, for events that are to be sent.
func (a *adaptiveRule) wake(log *sentLog, p *path) *window {
	a.flow = &flow{rhythm: rhythm{gap: min(a.heartbeat, mostGap)}}
	a.flow.window.init(a.poll)
	a.flow.window.allowFor(p)
	a.flow.window.round.end = log.count
	a.flow.window.setPace(0, p, 0)
	return &a.flow.window
}

// rest forgets the flow, after a while without events.
func (a *adaptiveRule) rest() { a.flow = nil }

// loss returns the i-th newest loss.
func (a *adaptiveRule) loss(i int) *uint32 {
	return &a.lossesAt[(a.newest+sampledLosses-i)%sampledLosses]
}

// age returns how many datagrams ago the i-th newest loss was.
func (a *adaptiveRule) age(i int) int64 { return int64(uint32(a.assessed) - *a.loss(i)) }

// lose notes a loss.
func (a *adaptiveRule) lose(number int64) {
	a.newest = (a.newest + 1) % sampledLosses
	a.losses = min(a.losses+1, sampledLosses)
	*a.loss(0) = uint32(number)
}

// takeBack forgets the newest n losses.
func (a *adaptiveRule) takeBack(n int) {
	n = min(n, a.losses)
	a.newest = (a.newest + sampledLosses - n) % sampledLosses
	a.losses -= n
}

// lossRate estimates the share of datagrams lost, in millionths, and of losses
// that follow right after another.
func (a *adaptiveRule) lossRate() (rate, pairs int64) {
	n := 0
	for n < a.losses && a.age(n) <= lossMemory {
		if n > 0 && a.age(n)-a.age(n-1) == 1 {
			pairs++
		}
		n++
	}
	sent := max(min(a.assessed, lossMemory), minSampled) // with fewer losses than wanted, all that was sent
	if n == sampledLosses {
		sent = a.age(n - 1)
	}
	rate = a.bounded(int64(n) * million / max(sent, 1))
	if n < recentLosses {
		return rate, 0
	}
	return rate, pairs * million / int64(n)
}

// bounded limits a rate by the run without losses since the last one (cleanTrust).
func (a *adaptiveRule) bounded(rate int64) int64 {
	if a.losses > 0 && a.age(0) >= cleanRun {
		rate = min(rate, cleanTrust*million/a.age(0))
	}
	return min(rate, million)
}

// replan decides the plan for new events. Copies a tick apart are lost in the same burst, so
// if losses come in bursts, one copy follows near and the others far. Most of the far ones are
// never sent, because the acknowledgement comes first.
func (a *adaptiveRule) replan(p *path) {
	a.current = copyPlan{}
	rate, pairs := a.lossRate()
	bursty := pairs > max(burstiness, 2*rate)
	if !bursty && a.losses >= recentLosses {
		recent := recentLosses * recentTrust / max(a.age(recentLosses-1), 1)
		rate = a.bounded(max(rate, recent))
	}
	switch {
	case rate <= tolerated:
	case bursty && p.latest > burstTail:
		a.current = longPlan
	case bursty:
		a.current = burstPlan
	default:
		for left := rate; left > tolerated && a.current.left < maxAhead; left = left * rate / million {
			a.current.left++
		}
	}
}

// carrierSent notes when carriers are sent; of several at one time the first counts.
func (a *adaptiveRule) carrierSent(now int64) (sooner bool) {
	if now > a.carriedAt {
		a.carriedAt, a.carrierGap = now, now-a.carriedAt
	}
	return true
}

// proactiveAt returns the time a gap after the last copy. A copy in a datagram of its own waits
// a little longer if an application datagram that can carry it is expected, which may be late
// by up to a quarter.
func (a *adaptiveRule) proactiveAt(e *pending, in carrier) int64 {
	at := max(e.last+a.gap(e), a.flow.restraint.until)
	if next := a.carriedAt + a.carrierGap + a.carrierGap/4; in == ownDatagram && next > at && next <= at+maxHold {
		return next
	}
	return at
}

// gap is how far a proactive copy goes from the last one.
func (a *adaptiveRule) gap(e *pending) int64 {
	switch long := a.current == longPlan; {
	case e.plan.distant() && long:
		return longFarGap
	case e.plan.distant():
		return farGap
	case long:
		return longNearGap
	}
	return nearGap
}

// reordered takes back the loss, if the datagram was counted as one, and lets
// evidence wait longer, by a step more where the wait was too short.
func (a *adaptiveRule) reordered(number int64, p *path) {
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
		a.replan(p)
		return
	}
}

// acknowledged looks at the datagrams that an acknowledgement has settled: one is
// presumed lost once it counts as overtaken.
func (a *adaptiveRule) acknowledged(log *sentLog, p *path, now int64) (sooner bool) {
	a.backoff, a.silent = 0, false
	before := max(a.assessed, log.first)
	lost, replan := a.assess(log, p, now)
	if a.assessed-a.reorderedAt > reorderMemory {
		a.reorderStep = 0
	}
	if f := a.flow; f != nil {
		f.rhythm.acknowledged(p, a.heartbeat, now)
		outcomes := shares{of: a.assessed - before, lost: lost}
		if f.window.acknowledged(outcomes, f.rhythm.gap, log, p, now) || p.deep {
			f.restraint.onset(now)
		}
		a.tryWithout(outcomes, log, now)
	}
	if replan || a.assessed/replanEvery != before/replanEvery {
		a.replan(p)
	}
	return true
}

// assess looks at the datagrams that are settled. It returns how many of them were lost, not
// counting those that the peer withholds, and whether that changes the estimate.
func (a *adaptiveRule) assess(log *sentLog, p *path, now int64) (lost int64, changed bool) {
	for a.assessed = max(a.assessed, log.first); a.assessed < log.top; a.assessed++ {
		stamp := *log.stamps.At(a.assessed)
		own := stamp&fromApplication == 0
		if stamp&outcomeMask == delivered {
			a.inARow = 0
			if f := a.flow; f != nil && f.refusal.passed(own) {
				a.takeBack(f.refusal.counted)
				changed = true
			}
			continue
		}
		if now < a.overtakenAt(stamp.sentAt(), p) {
			break
		}
		if f := a.flow; f != nil && f.refusal.lost(own) {
			continue
		}
		lost++
		if a.inARow++; a.inARow > longestRow {
			continue
		}
		a.lose(a.assessed)
		if f := a.flow; f != nil {
			f.refusal.count(own)
		}
		changed = true
	}
	return lost, changed
}

// overtakenAt returns when a datagram that is not acknowledged, while a later one
// is, counts as overtaken: at once, or a while after if the link was seen to
// reorder.
func (a *adaptiveRule) overtakenAt(sentAt int64, p *path) int64 {
	return sentAt + p.latest + p.rtt.Smoothed()*a.reorderStep/reorderSteps
}

// evidenceAt returns when the last copy of an event that was overtaken counts as
// lost: not before a peer that acknowledged what it cannot have yet could do so for
// ever.
func (a *adaptiveRule) evidenceAt(e *pending, p *path) int64 {
	return max(a.overtakenAt(e.last, p), e.last+minResend)
}

// timeoutAt returns when an event counts as lost without any evidence.
func (a *adaptiveRule) timeoutAt(e *pending, p *path) int64 {
	return saturatingAdd(e.last, a.timer(p))
}

// timer returns how long an event waits without any evidence of a loss.
func (a *adaptiveRule) timer(p *path) int64 {
	timer := a.delay
	if p.rtt.Sampled() {
		// Where the queue grows within a round trip, the smoothed one lags behind, and
		// what waits in it would be sent again (RFC 9002, section 6.1.2).
		timer = max(p.patience(a.heartbeat), p.latest+a.heartbeat)
	}
	return min(timer, math.MaxInt64>>maxBackoff) << a.backoff
}

func (a *adaptiveRule) presumeLost(e *pending, overtaken bool, p *path, now int64) cause {
	switch {
	case overtaken && now >= a.evidenceAt(e, p):
		e.plan = a.plan(now) // of which this copy is the first
		return byOvertaking
	case now >= a.timeoutAt(e, p):
		e.plan = copyPlan{}
		e.retransmits = max(e.retransmits, soloAfter-1) // alone it tells whether bundles are withheld
		return byTimeout
	}
	return notLost
}

func (a *adaptiveRule) presumeLostAt(e *pending, overtaken bool, p *path) int64 {
	at := a.timeoutAt(e, p)
	if overtaken {
		at = min(at, a.evidenceAt(e, p))
	}
	return at
}

// timedOut makes the timer back off if nothing at all was acknowledged since it fired before.
func (a *adaptiveRule) timedOut(p *path, now int64) {
	if now-a.firedAt < a.timer(p) && a.silent {
		return // one silence, many events
	}
	if a.silent {
		a.backoff = min(a.backoff+1, maxBackoff)
	}
	a.firedAt, a.silent = now, true
}

func (a *adaptiveRule) plan(now int64) copyPlan {
	switch {
	case now < a.flow.restraint.until:
		return copyPlan{}
	case a.flow.restraint.from > 0:
		return copyPlan{left: min(1, a.current.left)}
	}
	return a.current
}

func (a *adaptiveRule) backsOff(e *pending, p *path) int64 {
	return backoff(e.tries, p.patience(a.heartbeat))
}

func (a *adaptiveRule) cutOff(oldest *pending, p *path, now int64) bool {
	return a.flow.rhythm.broken(oldest, p, a.heartbeat, now)
}

func (a *adaptiveRule) withheld() bool { return a.flow != nil && a.flow.refusal.on }
