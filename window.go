package ackbits

import (
	"math"
	"time"
)

// With Config.Adaptive: how many bytes of events may be in flight, and how fast they are
// sent (P-17.1.1). The signals come from path.go; what a datagram carries is decided in
// packing.go. State datagrams are the application's and never wait. The fixed rule has no
// window, and neither has a session without events: it is nil then, and everything may be
// sent.

// window limits the bytes of events in flight, first copies and retransmissions alike, and
// spreads them over time. While all undelivered events fit, everything may be sent at once.
// An event counts from its first copy until it is delivered or its last copy is presumed
// lost. Proactive copies do not count, since they are sent only while everything fits.
type window struct {
	size     int64 // bytes
	load     int64 // bytes of the undelivered events, waiting ones included
	inFlight int64 // bytes of those in flight
	arrived  int64 // bytes of all events delivered so far
	permit   bool  // a copy was presumed lost: one datagram may go though the window is full

	// Pacing: a datagram is paid for by the time that its bytes take at the pace.
	pace      int64 // nanoseconds a byte
	paidUntil int64
	poll      int64 // how far apart the calls are that send

	jitter    int64 // the path's jitter when everything fitted, which is no queue
	steady    bool  // the start is over: a queue or losses were seen
	step      int64 // by how much it grows
	lossAt    int64 // when it was last cut for losses without a queue
	limitedAt int64 // when something last waited for it
	round     round
	blamed    lossy  // the round for which it was cut then
	usual     shares // of the datagrams lost in rounds that the window did not limit
}

// round is a round trip: it ends when a datagram is acknowledged that was sent after
// it began.
type round struct {
	end     int64 // the number of the first such datagram
	arrived int64 // window.arrived at the last acknowledgement
	most    int64 // the most bytes in flight
	deepest int64 // the deepest queue that a sample showed
	limited bool  // something waited for the window
	shares
}

// lossy is what a round lost, and how many bytes were in flight at most.
type lossy struct {
	most int64
	shares
}

// shares counts datagrams whose outcome is known, and those lost of them.
type shares struct{ of, lost int64 }

// percent returns the share that was lost.
func (s shares) percent() int64 { return s.lost * 100 / max(s.of, 1) }

// The constants, and what breaks in each direction:
const (
	// firstWindow is what goes before anything is known: bursts up to here go at
	// once. 10 KB spread 200 events of a tick over two; 32 KB fill the queue of a
	// link of 1 Mbit/s for a quarter of a second.
	firstWindow = 16 << 10
	// leastWindow keeps the oldest event moving: with less a single loss would
	// leave nothing in flight that tells of it.
	leastWindow = 4 * MaxDatagramSize
	// mostWindow is above what 256 events of the largest size take.
	mostWindow = 1 << 19
	// startQuarters is by how many quarters of what is delivered the window grows
	// at the start: 4 double it each round trip, and 256 large events on a link
	// without limit take 370 ms at a round trip of 60, not 340; with 6 it overshoots
	// a queue of 50 ms by half.
	startQuarters = 5
	// startQueue is the sample that ends the start: at 16 ms what one tick of 60 Hz
	// sends looks like a queue, and 256 large events at 10 Mbit/s take 620 ms in one run
	// of 24 instead of 450; from 18 on growth overshoots the queue of that link, and from
	// 20 on a sixth of them is lost in one run of four.
	startQueue = 17 * int64(time.Millisecond)
	// startSamples and steadySamples are over how many samples a queue is judged.
	// The first overshoot must be seen at once; later, with as few, the bursts of
	// others on the link would take the window down again and again.
	startSamples, steadySamples = 2, 4
	// cutAbove is from what queue on a window that is the limit is cut.
	cutAbove = 30 * int64(time.Millisecond)
	// mostJitter bounds the jitter that cutAbove allows for besides. Without it, 1,024
	// large events take 13.9 s, not 6.2, over a link without limit whose delay varies by
	// 100 ms. It is taken while everything fits, since a queue that grows looks like
	// jitter, too. More, and a peer that acknowledges unevenly could hide a deeper queue.
	// The end of the start allows for none: 6 ms, which a game's ticks make, were a round
	// more of growth, and 300 KiB at once through 2 Mbit/s made state p99 158 ms, not 93.
	mostJitter = 40 * int64(time.Millisecond)
	// queueTarget is how much queue is left when one is cut: with none the link is
	// idle between acknowledgements, which come 50 ms apart, with 40 ms state is
	// late.
	queueTarget = 20 * int64(time.Millisecond)
	// stepShare bounds a step of growth to an eighth. Steps double while nothing
	// stands, so a link that becomes free is taken within a second; a quarter fills
	// the queue of a narrow one within a round.
	stepShare = 8
	// lossStep is the share by which it grows after it was cut for losses: with a
	// 16th of the window a queue that holds two datagrams overflows twice as often,
	// with a 64th a link is found again only after some ten seconds.
	lossStep = 32
	// excessLoss is how many percent above the usual show that the window overflows
	// a queue too short to be seen. Chance gives half of that in a round of 30
	// datagrams at 5 %; with 20 a tenth of all state is lost. graveLoss says so
	// whatever the queue.
	excessLoss, graveLoss = 10, 40
	// chance is what the square of that excess must be, besides, in variances of the share
	// lost. With none, one round of fourteen on a link that loses 30 % would cut the window,
	// and one of eight runs of 1.26 MB at 16 % takes 64 s, not 19; with two still 29. With
	// four, a peer that acknowledges every other datagram draws 200 KB/s, not 152.
	chance = 3
	// fewestLost and fewestSent keep chance out of it where little is usual.
	fewestLost, fewestSent = 3, 8
	// smoothFor is for how long after such a cut one datagram goes at a time: a
	// queue that holds two has no room for more.
	smoothFor = 10 * int64(time.Second)
	// paceShare is in how many fifths of a round trip a window goes out. In all of
	// it, the link is idle while acknowledgements wait at the peer; in three, a
	// window makes a queue by itself.
	paceShare = 4
	// idleFor is after how long without a queue in which nothing waited a small
	// window is forgotten: a burst later starts anew. Sooner, and a link that is
	// narrow all the time would be flooded again and again; later, and bursts of a
	// game would be spread over round trips for the queue of a moment.
	idleFor = 2 * int64(time.Second)
	// limitedFor is for how long after something waited for the window a queue is
	// put down to events.
	limitedFor = int64(time.Second)
	// leastPoll is for callers who follow Deadline: what they may send at once, so
	// that a timer which is late by that much loses nothing.
	leastPoll = 4 * int64(time.Millisecond)
	// usualMemory is of how many datagrams the usual loss is remembered.
	usualMemory = 256
)

// init sets the window up. poll is the tick of the caller; 0: it wakes at Deadline.
func (w *window) init(poll int64) {
	*w = window{
		size: firstWindow, step: MaxDatagramSize, poll: max(poll, leastPoll),
		lossAt: math.MinInt64 / 2, limitedAt: math.MinInt64 / 2,
	}
}

// allowFor notes the path's jitter, which must not be taken for a queue.
func (w *window) allowFor(p *path) { w.jitter = min(int64(p.jitter)*jitterUnit, mostJitter) }

// crowded reports whether the undelivered events do not all fit.
func (w *window) crowded() bool { return w != nil && w.load > w.size }

// full reports whether nothing may be sent before something is delivered or lost.
func (w *window) full() bool { return w.inFlight >= w.size && !w.permit }

// opensAt returns when the pace allows the next datagram with events: when a whole one is paid
// for.
func (w *window) opensAt() int64 { return w.paidUntil + w.datagram() }

// datagram returns the time that a datagram of full size takes at the pace.
func (w *window) datagram() int64 { return MaxDatagramSize * w.pace }

// open reports whether a datagram with events may be sent.
func (w *window) open(now int64) bool {
	if !w.crowded() {
		return true
	}
	if w.full() || now < w.opensAt() {
		w.round.limited = true
		return false
	}
	return true
}

// sent notes that a datagram with so many bytes of events was sent. Unused time is saved up,
// for one poll and one datagram, so that the caller's tick does not slow the pace down.
func (w *window) sent(bytes int, now int64) {
	if w == nil {
		return
	}
	w.permit = false
	w.round.most = max(w.round.most, w.inFlight)
	saved := w.poll + w.datagram()
	if w.smooth(now) {
		saved = max(w.poll, w.datagram())
	}
	w.paidUntil = max(w.paidUntil, now-saved) + int64(bytes)*w.pace
}

func (w *window) smooth(now int64) bool { return now-w.lossAt < smoothFor }

// queue, fly, miss and arrive note that events of so many bytes were passed to Send, were sent,
// were presumed lost, and were delivered. Of the delivered bytes, inFlight were in flight.
func (w *window) queue(bytes int) {
	if w != nil {
		w.load += int64(bytes)
	}
}

func (w *window) fly(bytes int) {
	if w != nil {
		w.inFlight += int64(bytes)
	}
}

func (w *window) miss(bytes int) {
	if w != nil {
		w.inFlight -= int64(bytes)
		w.permit = true
	}
}

func (w *window) arrive(bytes, inFlight int) {
	if w != nil {
		w.load -= int64(bytes)
		w.inFlight -= int64(inFlight)
		w.arrived += int64(bytes)
	}
}

// acknowledged takes acknowledgements into account: the samples in the path, the outcomes that
// became known, and what was delivered. It reports whether the link is too narrow for what is
// sent. ackGap is the time between acknowledgements.
func (w *window) acknowledged(outcomes shares, ackGap int64, log *sentLog, p *path, now int64) (narrow bool) {
	if !w.crowded() {
		w.allowFor(p)
	}
	r := &w.round
	r.of += outcomes.of
	r.lost += outcomes.lost
	if w.load == 0 && !r.limited {
		return false // nothing to be learned, and nothing to be held back
	}
	fresh := w.arrived - r.arrived
	r.arrived = w.arrived
	sample := p.queue(1)
	r.deepest = max(r.deepest, sample)
	if sample > startQueue {
		w.steady = true
	}
	if !w.steady && r.limited {
		w.size = min(w.size+fresh*startQuarters/4, mostWindow)
	}
	queue := w.standing(p)
	if r.limited {
		w.limitedAt = now
	}
	narrow = now-w.limitedAt < limitedFor && p.queue(startSamples) > standsAbove || r.limited && 4*r.lost > r.of
	if log.top >= r.end {
		w.turn(queue, p, now)
		*r = round{end: log.count, arrived: w.arrived, most: w.inFlight}
	}
	w.setPace(ackGap, p, now)
	return narrow
}

// setPace spreads the window over most of a round trip; while it is sent smoothly, over the
// time for which an event counts as in flight.
func (w *window) setPace(ackGap int64, p *path, now int64) {
	lifetime := p.rtt.Smoothed() * paceShare / 5
	if w.smooth(now) {
		lifetime = p.rtt.Smoothed() + ackGap
	}
	w.pace = lifetime / w.size
}

// standing returns the queue by which the window is sized.
func (w *window) standing(p *path) int64 {
	if w.steady {
		return p.queue(steadySamples)
	}
	return p.queue(startSamples)
}

// blameless reports whether the loss is not caused by the window: the window was cut for losses,
// and with half as much in flight as much is still lost. A peer that acknowledges one datagram
// of two looks the same, so this counts up to graveLoss only.
func (w *window) blameless() bool {
	lost := w.round.percent()
	return 2*w.round.most <= w.blamed.most && 4*lost >= 3*w.blamed.percent() && lost <= graveLoss
}

// unusual reports whether so many percent above the usual are more than chance gives.
func (w *window) unusual(excess int64) bool {
	usual := w.usual.percent()
	return excess > excessLoss && excess*excess*w.round.of > chance*usual*(100-usual)
}

// turn adapts the window to the round that ends.
func (w *window) turn(queue int64, p *path, now int64) {
	r := &w.round
	if !r.limited || w.size == leastWindow && r.percent() <= graveLoss { // with so little in flight, the link's doing
		w.usual.of, w.usual.lost = w.usual.of+r.of, w.usual.lost+r.lost
		if w.usual.of > usualMemory {
			w.usual.of, w.usual.lost = w.usual.of/2, w.usual.lost/2
		}
	}
	lost := r.percent() - w.usual.percent()
	overflows := r.limited && r.lost >= fewestLost && r.of >= fewestSent &&
		w.unusual(lost) && (r.deepest < standsAbove || lost > graveLoss)
	switch {
	case overflows && w.blameless():
		w.usual.of, w.usual.lost = w.usual.of+r.of, w.usual.lost+r.lost
		w.lossAt = math.MinInt64 / 2
	case overflows:
		if !w.smooth(now) || 2*r.most <= w.blamed.most {
			w.blamed = lossy{r.most, r.shares}
		}
		w.size = r.most * (100 - lost) / 100
		w.step = w.size / lossStep
		w.steady, w.lossAt = true, now
	case queue > cutAbove+w.jitter && r.limited || p.deep:
		w.size = min(w.size, r.most*(p.floor()+queueTarget)/(p.floor()+queue))
		w.step = MaxDatagramSize
		w.steady = true
	case r.limited && w.steady:
		w.size += w.step
		if !w.smooth(now) {
			w.step = min(2*w.step, max(w.size/stepShare, MaxDatagramSize))
		}
	case w.size < firstWindow && now-w.limitedAt > idleFor:
		w.size, w.steady = firstWindow, false
	}
	w.size = min(max(w.size, leastWindow), mostWindow)
}
