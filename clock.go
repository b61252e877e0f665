package ackbits

import (
	"math"
	"time"
)

// Clocks, and the timeline that turns their readings into offsets that only grow.
// No other file reads a clock.

// Clock tells the time. Everything in this package that depends on time reads
// one, and reads it once a call, so a test, a replay or a server that fixes the
// time once a tick decides what "now" means. clockwork's and benbjohnson's
// clocks satisfy it as they are.
type Clock interface{ Now() time.Time }

// ManualClock is a Clock that moves only when told to. The zero value is ready
// and stands at the zero time. It suits tests in virtual time, replays, and
// servers that read the time once a tick for all of their sessions: set it
// before each Receive to stamp datagrams with the moment they arrived, in the order
// of these moments. Back and forth again counts the way forth as time.
//
// It is not safe for concurrent use: sessions that share one share a goroutine.
// Move it by its methods; sessions do not notice when it is assigned anew.
type ManualClock struct {
	t     time.Time
	moved int64 // by all calls of Set and Advance together, in nanoseconds, so that sessions need not compare times; it wraps
}

// Now returns the time that was set last.
func (c *ManualClock) Now() time.Time { return c.t }

// Set moves the clock to t, forward or back.
func (c *ManualClock) Set(t time.Time) {
	c.moved += int64(t.Sub(c.t))
	c.t = t
}

// Advance moves the clock by d, which may be negative.
func (c *ManualClock) Advance(d time.Duration) {
	c.moved += int64(d)
	c.t = c.t.Add(d)
}

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
// set (P-1.1.1).
type timeline struct {
	clock  Clock
	manual *ManualClock // clock, if it is one: servers read it several times a tick and session
	moved  int64        // what manual had moved by at the last reading
	last   time.Time    // the last reading
	now    int64
}

// systemClock is the Clock of a Config without one.
type systemClock struct{}

func (systemClock) Now() time.Time { return time.Now() }

// start takes the first reading; it is the offset zero.
func (l *timeline) start(clock Clock) {
	if clock == nil {
		clock = systemClock{}
	}
	l.clock, l.last = clock, clock.Now()
	if l.manual, _ = clock.(*ManualClock); l.manual != nil {
		l.moved = l.manual.moved
	}
}

// read takes a reading and returns the offset of now. Most calls of a tick find
// a ManualClock where it was.
func (l *timeline) read() int64 {
	if l.manual != nil && l.manual.moved == l.moved {
		return l.now
	}
	return l.reread()
}

func (l *timeline) reread() int64 {
	var step time.Duration
	if m := l.manual; m != nil {
		step = time.Duration(m.moved - l.moved)
		l.moved, l.last = m.moved, m.t
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

// time returns the instant of an offset, counted from the last reading.
func (l *timeline) time(offset int64) time.Time {
	return l.last.Add(time.Duration(offset - l.now))
}

// saturatingAdd returns offset + d, at most the end of time (P-1.1.3). Neither is
// negative.
func saturatingAdd(offset, d int64) int64 {
	if d > math.MaxInt64-offset {
		return math.MaxInt64
	}
	return offset + d
}
