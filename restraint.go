package ackbits

import (
	"math"
	"time"
)

// What keeps proactive copies from doing harm (P-17.1.1). While a queue stands they stop.
// If many datagrams are lost without a queue, a trial shows whether the copies are the
// cause.

// restraint says until when no proactive copies are sent, and how the latest trial came out.
type restraint struct {
	until int64
	pause int64 // how long they stopped at the last onset of a queue

	highSince int64 // since when the loss is high; 0: it is not
	from      int64 // the first datagram of the trial that is running; 0: none is
	length    int64 // of the trial
	lost      int64 // how many of the trial's datagrams were lost
	before    int64 // the loss before the trial, in millionths
	guilty    int64 // how long copies stopped when they were last found to be the cause
	next      int64 // when the next trial may begin
	innocent  int64 // the time between trials that find copies not to be the cause
}

// The constants, and what breaks in each direction:
const (
	// leastRestraint is how long copies stop at the first onset of a queue. Each further
	// onset doubles it, up to mostRestraint. Shorter, a link that has room for one copy
	// of each event but not for two fills its queue every second; longer, losses of other
	// causes delay events for longer.
	leastRestraint = int64(time.Second)
	mostRestraint  = 32 * int64(time.Second)
	// highLoss is the loss that copies are suspected of causing. At a policer they cause
	// a half. With a suspicion from a quarter on, trials on links that lose 30 % by
	// themselves showed at p99.
	highLoss = million * 35 / 100
	// highFor is how long the loss must be high before a trial: by chance it is, with 24
	// losses in 60 datagrams, for a second. For copies that were the cause before, a
	// quarter of it is enough.
	highFor = 2 * int64(time.Second)
	// In a trial events get one copy each. The first takes shortTrial datagrams, which is
	// hardly felt where 30 % are lost anyway. If its loss is below suspectBelow percent of
	// the loss before, a second of longTrial datagrams follows. If the loss in that is below
	// guiltyBelow percent, copies are the cause; at a true loss of 30 % this is wrong once
	// in a thousand trials. For copies that were the cause before, suspectBelow is enough.
	shortTrial, longTrial     = 30, 60
	suspectBelow, guiltyBelow = 80, 45
	// firstGuilty is how long copies then stop, firstInnocent how long the next trial is put
	// off if they are not the cause. Both double each time, up to the last values: a policer
	// that stays is tried again every two minutes, a link that loses that much by itself
	// every ten.
	firstGuilty, lastGuilty     = 8 * int64(time.Second), 2 * int64(time.Minute)
	firstInnocent, lastInnocent = 2 * int64(time.Minute), 10 * int64(time.Minute)
)

// doubled returns twice a duration, limited to least and most.
func doubled(d, least, most int64) int64 { return min(max(2*d, least), most) }

// onset notes that a queue stands.
func (r *restraint) onset(now int64) {
	if now < r.until-r.pause/2 {
		return
	}
	if now > r.until+2*r.pause {
		r.pause = 0 // it was long ago
	}
	r.pause = doubled(r.pause, leastRestraint, mostRestraint)
	r.until = max(r.until, saturatingAdd(now, r.pause))
}

// tryWithout finds out whether proactive copies cause the very loss that they are meant to
// repair, as they do at a policer or at a queue too short to be seen. When the loss has been
// high for seconds, events get one copy each for some datagrams.
func (a *adaptiveRule) tryWithout(outcomes shares, log *sentLog, now int64) {
	r := &a.flow.restraint
	if r.from > 0 {
		if a.assessed > r.from {
			r.lost += outcomes.lost
		}
		if n := a.assessed - r.from; n >= r.length {
			a.judgeTrial(r.lost*million/n, log, now)
		}
		return
	}
	if a.current.left == 0 || now < r.until {
		r.highSince = 0
		return
	}
	rate, _ := a.lossRate()
	if rate <= highLoss {
		r.highSince = 0
		return
	}
	patience := highFor
	if r.guilty > 0 {
		patience /= 4
	}
	if r.highSince == 0 {
		r.highSince = now
	}
	if now-r.highSince >= patience && now >= r.next {
		r.before = rate
		r.begin(shortTrial, log)
	}
}

// begin begins a trial of so many datagrams with the next one.
func (r *restraint) begin(length int64, log *sentLog) {
	r.from, r.length, r.lost = log.count, length, 0
}

// judgeTrial judges a trial in which such a share was lost.
func (a *adaptiveRule) judgeTrial(share int64, log *sentLog, now int64) {
	r := &a.flow.restraint
	suspect := share*100 < r.before*suspectBelow
	if suspect && r.length == shortTrial {
		r.begin(longTrial, log)
		return
	}
	r.from, r.highSince = 0, 0
	if suspect && (r.guilty > 0 || share*100 < r.before*guiltyBelow) {
		r.guilty = doubled(r.guilty, firstGuilty, lastGuilty)
		r.until = saturatingAdd(now, r.guilty)
		a.losses = 0 // they were the copies'
		return
	}
	r.innocent = doubled(r.innocent, firstInnocent, lastInnocent)
	r.next = saturatingAdd(now, r.innocent)
}

// rhythm is how regularly acknowledgements come.
type rhythm struct {
	last  int64 // when the last news came
	gap   int64 // the time between them, smoothed
	until int64 // until then, datagrams that were sent in a silence may be undecided although it has ended
}

// silentBeats is how many heartbeat intervals without an acknowledgement are a silence. With
// two, two lost acknowledgements in a row are one, which at 30 % loss happens every second;
// with four, an outage of 300 ms is over before it is noticed.
const silentBeats = 3

// mostGap is the longest gap that counts for the rhythm; a longer one is an outage.
const mostGap = 100 * int64(time.Millisecond)

// acknowledged notes that something was acknowledged.
func (r *rhythm) acknowledged(p *path, heartbeat, now int64) {
	if now == r.last {
		return
	}
	if r.last > 0 {
		if r.silent(heartbeat, now) {
			r.until = saturatingAdd(now, p.floor())
		}
		r.gap += (min(now-r.last, mostGap) - r.gap) / 8
	}
	r.last = now
}

func (r *rhythm) silent(heartbeat, now int64) bool {
	return now-r.last >= min(heartbeat, math.MaxInt64/silentBeats)*silentBeats
}

// broken reports whether the path seems interrupted: in a silence, or right after one, none of
// the datagrams sent since the oldest undelivered event is acknowledged although it should be.
// News of earlier datagrams do not count: they may be all that an outage let through.
func (r *rhythm) broken(oldest *pending, p *path, heartbeat, now int64) bool {
	return p.samples > 0 && p.passedAt < oldest.first && now-oldest.first >= saturatingAdd(p.floor(), heartbeat) &&
		(now < r.until || r.silent(heartbeat, now))
}

// refusal detects a peer that withholds application datagrams: these stay unacknowledged while
// the library's own datagrams among them are acknowledged. They do not count as lost then.
type refusal struct {
	on     bool
	missed int // application datagrams since the last one that was acknowledged
	own    int // acknowledged datagrams of the library's own since then

	counted int // of missed: how many count as lost
}

// A peer is taken to withhold after so many of both. Fewer, chance at 30 % loss looks like it
// once in some minutes; more, the events of half a second more are sent twice.
const (
	missedApplication = 6
	passedOwn         = 2
)

// passed notes that a datagram was delivered, and reports whether that shows that the peer
// withholds.
func (r *refusal) passed(own bool) (found bool) {
	if !own {
		*r = refusal{}
		return false
	}
	r.own++
	if r.on || r.missed < missedApplication || r.own < passedOwn {
		return false
	}
	r.on = true
	return true
}

// lost notes that a datagram was not delivered, and reports whether it was withheld.
func (r *refusal) lost(own bool) (withheld bool) {
	if own {
		return false
	}
	r.missed = min(r.missed+1, sampledLosses)
	return r.on
}

// count notes that one counts as lost.
func (r *refusal) count(own bool) {
	if !own {
		r.counted = min(r.counted+1, sampledLosses)
	}
}
