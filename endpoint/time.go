package endpoint

import (
	"time"

	"github.com/ackbits/ackbits"
)

// maxStep is the longest step forward that counts as time, as in a session: a
// longer one is a clock that was set.
const maxStep = 24 * time.Hour

// timeline turns the readings of a clock into nanoseconds since the start that
// never move back.
type timeline struct {
	clock ackbits.Clock
	last  time.Time
	now   int64
}

// systemClock is the Clock of a configuration without one.
type systemClock struct{}

func (systemClock) Now() time.Time { return time.Now() }

func (l *timeline) start(clock ackbits.Clock) {
	if clock == nil {
		clock = systemClock{}
	}
	l.clock, l.last = clock, clock.Now()
}

func (l *timeline) read() int64 {
	t := l.clock.Now()
	if step := t.Sub(l.last); step > 0 && step <= maxStep {
		l.now += int64(step)
	}
	l.last = t
	return l.now
}

// time returns the instant of an offset, counted from the last reading.
func (l *timeline) time(offset int64) time.Time {
	return l.last.Add(time.Duration(offset - l.now))
}

// allowance lets something happen so often a second, and so many at once.
type allowance struct {
	interval int64 // between two, in the long run
	burst    int64 // how many may come at once
	paid     int64 // the time up to which what happened is paid for
}

func newAllowance(perSecond, burst int) allowance {
	return allowance{interval: int64(time.Second) / int64(perSecond), burst: int64(burst)}
}

// take reports whether one more may happen now, and counts it if so.
func (a *allowance) take(now int64) bool {
	paid := max(a.paid, now) + a.interval
	if paid-now > a.burst*a.interval {
		return false
	}
	a.paid = paid
	return true
}
