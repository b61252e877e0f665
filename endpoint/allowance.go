package endpoint

import "time"

// How often something that costs work may happen: computing for a client, admitting one,
// answering an unknown session. The limits themselves are in gate.go and knock.go.

// allowance is a token bucket: something may happen so often a second, and so many at
// once.
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
