package ackbits

import (
	"math"
	"time"
)

// What keeps proactive copies from doing harm (P-17.1.1): where a queue stands they stop,
// and where much is lost without one, a trial tells whether they are the cause.

// restraint says until when no proactive copies go, and how the last trial of that
// came out.
type restraint struct {
	until int64
	pause int64 // for how long at the last onset of a queue

	highSince int64 // since when the loss is high; 0: it is not
	from      int64 // the first datagram of the trial that is running; 0: none is
	length    int64 // of the trial
	lost      int64 // of the trial's datagrams
	before    int64 // the loss before it, in millionths
	guilty    int64 // for how long copies stay away when they were last convicted
	next      int64 // no trial before
	innocent  int64 // how far apart trials are after one that found nothing
}

// The constants, and what breaks in each direction:
const (
	// leastRestraint is for how long copies stop when a queue is seen first; each
	// further onset doubles it up to mostRestraint. Shorter, and on a link with room
	// for one copy of each event and not for two the queue would fill every second;
	// longer, and loss that has nothing to do with it would be felt for longer.
	leastRestraint = int64(time.Second)
	mostRestraint  = 32 * int64(time.Second)
	// highLoss is what copies are suspected of causing. At a policer they make it a
	// half; at a quarter, trials on links that lose 30 % by themselves were felt at
	// p99.
	highLoss = million * 35 / 100
	// highFor is for how long it must last: chance has 24 losses in 60 datagrams
	// for a second. Copies that were guilty before get a quarter of that.
	highFor = 2 * int64(time.Second)
	// In a trial events get one copy each. It is short at first: shortTrial datagrams
	// are hardly felt where 30 % are lost anyway. Where the loss in it is below
	// suspectBelow of that before, in percent, another of longTrial follows, and below
	// guiltyBelow in that copies are convicted: at 30 % of true loss one innocent in a
	// thousand. Copies that were convicted before are again below suspectBelow.
	shortTrial, longTrial     = 30, 60
	suspectBelow, guiltyBelow = 80, 45
	// firstGuilty and firstInnocent are the consequences, doubled each time up to
	// the last: a policer that stays is tried again every two minutes, a link that
	// loses that much by itself every ten.
	firstGuilty, lastGuilty     = 8 * int64(time.Second), 2 * int64(time.Minute)
	firstInnocent, lastInnocent = 2 * int64(time.Minute), 10 * int64(time.Minute)
)

// doubled returns twice a duration, between the least and the most.
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

// tryWithout looks whether proactive copies cause the loss that they are to make up
// for, as they do at a policer or a queue too short to be seen. Where the loss is high
// for seconds, no event gets more than one for some datagrams.
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

// rhythm is when acknowledgements come.
type rhythm struct {
	last  int64 // when the newest came that told something
	gap   int64 // how far apart they are, smoothed
	until int64 // a silence has ended, but what was sent in it may not be settled
}

// silentBeats is how many heartbeats without an acknowledgement are a silence: with
// two, two lost acknowledgements in a row would be one, which at 30 % loss happens
// each second; with four an outage of 300 ms is over before.
const silentBeats = 3

// mostGap is the longest gap that counts for the rhythm; more is an outage.
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

// broken reports whether nothing of what was sent since the oldest undelivered event
// was is acknowledged, though it should be, in a silence or right after one. News of
// datagrams from before it do not count: that may be all that an outage let through.
func (r *rhythm) broken(oldest *pending, p *path, heartbeat, now int64) bool {
	return p.samples > 0 && p.passedAt < oldest.first && now-oldest.first >= saturatingAdd(p.floor(), heartbeat) &&
		(now < r.until || r.silent(heartbeat, now))
}

// refusal notices a peer that withholds application datagrams: they stay
// unacknowledged while the library's own among them do not. They are not lost then.
type refusal struct {
	on     bool
	missed int // application datagrams since the last that was acknowledged
	own    int // of the library's that were, since then

	counted int // of those missed: how many count as lost
}

// A peer withholds after so many of both. Fewer, and chance at 30 % loss would look
// like it once in some minutes; more, and each event of half a second more would go
// twice.
const (
	missedApplication = 6
	passedOwn         = 2
)

// passed notes that a datagram was delivered, and reports whether this shows that the
// peer withholds.
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

// lost notes that a datagram was not, and reports whether it is withheld.
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
