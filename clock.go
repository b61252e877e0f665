package ackbits

import (
	"math"
	"time"
)

// Clocks, and the timeline that turns their readings into offsets that never
// decrease. No other file reads a clock.

// Clock tells the time. Every call of this package that depends on time reads its
// clock exactly once, so a test, a replay, or a server that sets the time once a tick
// decides what "now" means. The clocks of github.com/jonboulle/clockwork and
// github.com/benbjohnson/clock satisfy it as they are.
type Clock interface{ Now() time.Time }

// ManualClock is a Clock that moves only when told to. The zero value is ready to use
// and shows the zero time. It is for tests in virtual time, replays, and servers that
// read the time once a tick for all of their sessions. To give datagrams the time at
// which they arrived, set it before each Receive, in the order of arrival. If the clock
// is set back and then forward, the forward part counts as elapsed time.
//
// It is not safe for concurrent use: sessions that share a clock share a goroutine.
// Change it by its methods only; sessions do not notice an assignment.
type ManualClock struct {
	t     time.Time
	moved int64 // the sum of all movements in nanoseconds, which spares sessions the comparison of times; it may wrap
}

// Now returns the time that was set last.
func (c *ManualClock) Now() time.Time { return c.t }

// Set sets the clock to t, which may be earlier than Now.
func (c *ManualClock) Set(t time.Time) {
	c.moved += int64(t.Sub(c.t))
	c.t = t
}

// Advance moves the clock by d, which may be negative.
func (c *ManualClock) Advance(d time.Duration) {
	c.moved += int64(d)
	c.t = c.t.Add(d)
}

// maxStep is the longest step forward that counts as elapsed time. A longer one is
// taken for a clock that was set: a ManualClock that was read before its first Set, or
// a machine that learned the date. Were it larger, such a step would end every session
// by timeout; were it smaller, a real pause would go unnoticed, and a laptop does sleep
// for a night.
const maxStep = 24 * time.Hour

// timeline turns the readings of a Clock into an offset in nanoseconds that never
// decreases (I4). Each reading adds the difference to the one before; a step back, or
// one of more than maxStep, adds nothing. In either case the next difference counts
// from the new reading, so no timer fires early or late because a clock was set
// (P-1.1.1).
type timeline struct {
	clock  Clock
	manual *ManualClock // clock, if it is a ManualClock: servers read it several times per tick and session
	moved  int64        // manual.moved at the last reading
	last   time.Time    // the last reading; of a ManualClock, moved stands for it
	now    int64
}

// systemClock is the default of Config.Clock.
type systemClock struct{}

func (systemClock) Now() time.Time { return time.Now() }

// start takes the first reading, which becomes the offset 0.
func (l *timeline) start(clock Clock) {
	if clock == nil {
		clock = systemClock{}
	}
	l.clock, l.last = clock, clock.Now()
	if l.manual, _ = clock.(*ManualClock); l.manual != nil {
		l.moved = l.manual.moved
	}
}

// read takes a reading and returns its offset. The short way is for a ManualClock
// that has not moved since, which most calls of a tick find.
func (l *timeline) read() int64 {
	if l.manual != nil && l.manual.moved == l.moved {
		return l.now
	}
	return l.reread()
}

// reread is read for a clock that may have moved.
func (l *timeline) reread() int64 {
	var step time.Duration
	if m := l.manual; m != nil {
		step = time.Duration(m.moved - l.moved)
		l.moved = m.moved
	} else {
		t := l.clock.Now()
		step = t.Sub(l.last)
		l.last = t
	}
	if step > 0 && step <= maxStep {
		l.now += int64(step)
	}
	return l.now
}

// time returns the offset as a time of the clock, counted from the last reading.
func (l *timeline) time(offset int64) time.Time {
	last := l.last
	if m := l.manual; m != nil {
		last = m.t.Add(time.Duration(l.moved - m.moved))
	}
	return last.Add(time.Duration(offset - l.now))
}

// saturatingAdd returns offset + d, or the largest int64 if that is less (P-1.1.3).
// Neither may be negative.
func saturatingAdd(offset, d int64) int64 {
	if d > math.MaxInt64-offset {
		return math.MaxInt64
	}
	return offset + d
}
