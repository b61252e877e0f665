package transfer

import (
	"time"

	"github.com/ackbits/ackbits"
)

// maxStep is the longest step forward that counts as time, as in a session: a
// longer one is a clock being set.
const maxStep = 24 * time.Hour

// timeline turns the readings of a clock into nanoseconds that never run back. A
// step back, or of more than maxStep, counts as none.
type timeline struct {
	clock ackbits.Clock
	last  time.Time
	now   int64
}

type systemClock struct{}

func (systemClock) Now() time.Time { return time.Now() }

func (l *timeline) start(clock ackbits.Clock) {
	if l.clock = clock; clock == nil {
		l.clock = systemClock{}
	}
	l.last = l.clock.Now()
}

func (l *timeline) read() int64 {
	now := l.clock.Now()
	if step := now.Sub(l.last); step > 0 && step <= maxStep {
		l.now += int64(step)
	}
	l.last = now
	return l.now
}

// time returns the instant of an offset, counted from the last reading.
func (l *timeline) time(offset int64) time.Time { return l.last.Add(time.Duration(offset - l.now)) }
