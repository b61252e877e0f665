package ackbits

import (
	"math"
	"time"
)

// Clock tells the time. Everything in this package that depends on time reads
// one, and reads it once a call, so a test, a replay or a server that fixes the
// time once a tick decides what "now" means. clockwork's and benbjohnson's
// clocks satisfy it as they are.
type Clock interface{ Now() time.Time }

// ManualClock is a Clock that moves only when told to. The zero value is ready
// and stands at the zero time. It suits tests in virtual time, replays, and
// servers that read the time once a tick for all of their sessions: set it
// before each Receive to stamp datagrams with the moment they arrived.
//
// It is not safe for concurrent use: sessions that share one share a goroutine.
type ManualClock struct{ t time.Time }

// Now returns the time that was set last.
func (c *ManualClock) Now() time.Time { return c.t }

// Set moves the clock to t, forward or back.
func (c *ManualClock) Set(t time.Time) { c.t = t }

// Advance moves the clock by d, which may be negative.
func (c *ManualClock) Advance(d time.Duration) { c.t = c.t.Add(d) }

// maxStep is the longest step forward that counts as time. A longer one is a
// clock being set: a ManualClock that was read at zero before its first Set, or
// a machine that learned the date. A larger limit would let such a step end
// every session by its timeout; a smaller one would hide a real pause, and a
// laptop does sleep for a night.
const maxStep = 24 * time.Hour

// timeline turns the readings of a Clock into an offset in nanoseconds that
// never moves back (I4): it grows by the difference between two readings, and a
// step back or of more than maxStep counts as no time at all. Time goes on from
// the new reading either way, so no timer fires or sleeps because a clock was
// set.
type timeline struct {
	clock  Clock        // nil: the system's
	manual *ManualClock // clock, if it is one: servers read it several times a tick and session
	last   time.Time
	now    int64
}

// start takes the first reading; it is the offset zero.
func (l *timeline) start(clock Clock) {
	l.clock = clock
	l.manual, _ = clock.(*ManualClock)
	l.last = l.reading()
}

func (l *timeline) reading() time.Time {
	switch {
	case l.manual != nil:
		return l.manual.t
	case l.clock != nil:
		return l.clock.Now()
	}
	return time.Now()
}

// read takes a reading and returns the offset of now.
func (l *timeline) read() int64 {
	// All calls of one tick read the same time. That equal readings have equal
	// words is the common case, not a rule, hence no more than a shortcut.
	if t := l.reading(); t != l.last {
		if d := t.Sub(l.last); d > 0 && d <= maxStep {
			l.now += int64(d)
		}
		l.last = t
	}
	return l.now
}

// time returns the instant of an offset, counted from the last reading.
func (l *timeline) time(offset int64) time.Time {
	return l.last.Add(time.Duration(offset - l.now))
}

// saturatingAdd returns offset + d, at most the end of time. Neither is negative.
func saturatingAdd(offset, d int64) int64 {
	if d > math.MaxInt64-offset {
		return math.MaxInt64
	}
	return offset + d
}
