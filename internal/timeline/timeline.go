// Package timeline turns the readings of a clock into offsets that never decrease, for
// the packages that stand on ackbits. The root package has one of its own, which is
// quicker with a ManualClock and which nothing outside can reach.
package timeline

import (
	"time"

	"github.com/ackbits/ackbits"
)

// maxStep is the longest step forward that counts as time, as in a session: a longer
// one is a clock that was set (P-1.1.1).
const maxStep = 24 * time.Hour

// Timeline counts nanoseconds since Start. A step back, or one of more than maxStep,
// counts as none, and time goes on from there.
type Timeline struct {
	clock ackbits.Clock
	Last  time.Time // the last reading
	Now   int64     // its offset; to move it is to let time pass
}

type systemClock struct{}

func (systemClock) Now() time.Time { return time.Now() }

// Start takes the first reading, which becomes the offset 0. A nil clock is the
// system's.
func (l *Timeline) Start(clock ackbits.Clock) {
	if clock == nil {
		clock = systemClock{}
	}
	l.clock, l.Last = clock, clock.Now()
}

// Read takes a reading and returns its offset.
func (l *Timeline) Read() int64 {
	t := l.clock.Now()
	if step := t.Sub(l.Last); step > 0 && step <= maxStep {
		l.Now += int64(step)
	}
	l.Last = t
	return l.Now
}

// Time returns an offset as a time of the clock, counted from the last reading.
func (l *Timeline) Time(offset int64) time.Time {
	return l.Last.Add(time.Duration(offset - l.Now))
}
