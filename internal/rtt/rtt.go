// Package rtt computes the smoothed round-trip time by RFC 6298, section 2 (P-7.1.2).
// Which round trips are samples is not decided here (acknowledge.go of the root package).
package rtt

// Estimator holds the smoothed round-trip time and its variation, both in nanoseconds.
// The zero value has no sample.
type Estimator struct {
	smoothed, variation int64
	sampled             bool
}

// Add adds a sample R, in nanoseconds; a negative one counts as 0. The first sample sets
// the smoothed time to R and the variation to R/2 (2.2). Each later one first moves the
// variation a quarter of the way to |smoothed − R|, then the smoothed time an eighth of
// the way to R (2.3).
func (e *Estimator) Add(sample int64) {
	sample = max(sample, 0)
	if !e.sampled {
		*e = Estimator{smoothed: sample, variation: sample / 2, sampled: true}
		return
	}
	e.variation += (max(e.smoothed-sample, sample-e.smoothed) - e.variation) / 4
	e.smoothed += (sample - e.smoothed) / 8
}

// Smoothed returns SRTT: 0 before the first sample.
func (e *Estimator) Smoothed() int64 { return e.smoothed }

// Variation returns RTTVAR: 0 before the first sample.
func (e *Estimator) Variation() int64 { return e.variation }

// Sampled reports whether a sample was added.
func (e *Estimator) Sampled() bool { return e.sampled }
