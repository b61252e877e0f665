package ackbits

import (
	"math"
	"time"

	"github.com/ackbits/ackbits/internal/rtt"
)

// What is known of the path: round trips, the queue on it, and how long an
// acknowledgement may take. What follows from this for copies is in adaptive.go, for the
// window in window.go.

// path is what acknowledgements tell about the way to the peer and back, whichever rule
// decides on copies. Times are in nanoseconds, except for the small fields: every session
// has a path.
type path struct {
	rtt    rtt.Estimator
	latest int64 // the newest sample; it contains the peer's wait for its next datagram

	// The queue that stands on the path: the least of the newest samples less the
	// floor. The floor is the least of the last 10 to 20 seconds: the round trip without
	// a queue. One sample alone says little, since it contains the peer's wait; the
	// least of several does not, and neither does the floor.
	passedAt int64 // when the newest datagram that is acknowledged was sent

	turnsAt int64     // when the next period of floorSpan begins
	stoodAt int64     // when the queue was last longer than stoodBelow
	floors  [2]uint32 // the least sample of this period, and of the one before, in microseconds
	newest  [newestSamples]uint16
	jitter  uint32 // by how much a sample differs from the one before, smoothed, in jitterUnit
	samples uint8  // how many samples there were; from twice newestSamples it goes back by newestSamples
	deep    bool   // a queue stood at the newest sample
	stands  bool   // a queue stands now, or did lately
}

const (
	// floorSpan is how long a floor counts at least, and half of how long it counts at
	// most. Shorter, a lasting queue is taken for the path itself; longer, a path that
	// has become longer is taken for a queue for that time.
	floorSpan = 10 * int64(time.Second)
	// newestSamples is the number of samples whose least shows whether a queue stands.
	// Fewer, jitter, reordering and lost acknowledgements are taken for a queue; more,
	// a queue is noticed half a second later for each eight.
	newestSamples = 8
	// sampleUnit is what the newest samples are counted in; 6.5 s are the most.
	sampleUnit    = int64(100 * time.Microsecond)
	microsPerUnit = uint32(sampleUnit / int64(time.Microsecond))
	// jitterUnit is what the jitter is counted in, about 1 µs: a power of two, since
	// each sample is divided by it.
	jitterUnit = 1 << 10
	// standsAbove is the delay above which Adaptive takes a queue to stand. Two ticks of
	// 60 Hz are below it: if both ends read their sockets on ticks, a datagram may be late
	// by that much without a queue. At 60 ms, state would be that late before anything was
	// done about it. The fixed rule uses the heartbeat interval if that is longer: a peer
	// that sends nothing else may delay each of eight acknowledgements by it, and without
	// a queue the rule's delay must not change by a nanosecond.
	standsAbove       = standsAboveMillis * int64(time.Millisecond)
	standsAboveMillis = 35
	// deepJitters is how many times the jitter a queue must exceed in addition. With two,
	// 100 ms of jitter each way is taken for a queue once a second. While a queue grows,
	// jitter is small: one sample differs little from the next.
	deepJitters = 3
	// A queue is gone once it has been below stoodBelow for standsFor. If it were gone at
	// once, whatever stops for a queue would start again as soon as it drains, and the
	// fixed rule would send every event twice for half of the time.
	stoodBelow = standsAbove / 4
	standsFor  = 2 * int64(time.Second)
)

// sample notes the round trip of a datagram that is acknowledged now, and reports whether
// a queue stands or stood. above, in milliseconds, is the delay above which a queue counts as
// standing; it is more than stoodBelow.
func (p *path) sample(sentAt, now int64, above uint16) (changed bool) {
	p.passedAt = max(p.passedAt, sentAt)
	roundTrip := now - sentAt
	if p.samples > 0 {
		differs := min(uint64(max(roundTrip-p.latest, p.latest-roundTrip))/jitterUnit, math.MaxUint32)
		p.jitter += uint32((int64(differs) - int64(p.jitter)) >> 5)
	}
	p.rtt.Add(roundTrip)
	p.latest = roundTrip
	micros := uint32(min(uint64(roundTrip)/uint64(time.Microsecond), math.MaxUint32))
	p.lowerFloor(micros, now)
	p.newest[p.samples%newestSamples] = uint16(min(micros/microsPerUnit, math.MaxUint16))
	if p.samples++; p.samples == 2*newestSamples {
		p.samples = newestSamples // the same place
	}
	if micros-min(p.floors[0], p.floors[1]) < uint32(stoodBelow/int64(time.Microsecond)) && !p.stands {
		return false // none stands, and it is no more than this sample shows
	}
	return p.judgeQueue(int64(above)*int64(time.Millisecond), now)
}

// judgeQueue judges whether a queue stands, and reports whether one does now or did before.
func (p *path) judgeQueue(above, now int64) bool {
	stood, queue := p.stands, p.queue(newestSamples)
	if queue > stoodBelow {
		p.stoodAt = now
	}
	p.deep = queue > max(above, deepJitters*int64(p.jitter)*jitterUnit)
	p.stands = p.deep || stood && now-p.stoodAt <= standsFor
	return p.stands || stood
}

// lowerFloor takes a sample into account for the floor.
func (p *path) lowerFloor(micros uint32, now int64) {
	switch {
	case now < p.turnsAt:
		p.floors[0] = min(p.floors[0], micros)
		return
	case p.samples == 0:
		p.floors[1] = micros
	default:
		p.floors[1] = p.floors[0]
	}
	p.floors[0] = micros
	p.turnsAt = saturatingAdd(now, floorSpan)
}

// floor returns the least sample of the last 10 to 20 seconds; 0 before the first.
func (p *path) floor() int64 {
	return int64(min(p.floors[0], p.floors[1])) * int64(time.Microsecond)
}

// queue returns by how much the least of the newest n samples exceeds the floor; 0 while
// there are fewer.
func (p *path) queue(n uint8) int64 {
	if p.samples < n {
		return 0
	}
	least := p.newest[(p.samples-1)%newestSamples]
	for i := uint8(2); i <= n; i++ {
		least = min(least, p.newest[(p.samples-i)%newestSamples])
	}
	return max(int64(least)*sampleUnit-p.floor(), 0)
}

// patience is how long an acknowledgement may take: the round trip, and what its
// variation or the peer's silence adds.
func (p *path) patience(heartbeat int64) int64 {
	return max(p.rtt.Smoothed()+max(4*p.rtt.Variation(), heartbeat), minResend)
}
