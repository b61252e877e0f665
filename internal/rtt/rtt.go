// Package rtt smooths round trip times as RFC 6298, section 2, does (P-7.1.2).
package rtt

// Estimator holds the smoothed round trip time and its variation, both in
// nanoseconds. The zero value has seen no sample.
type Estimator struct {
	smoothed, variation int64
	sampled             bool
}

// Add takes in one sample. The first one, R, sets the smoothed time to R and
// the variation to R/2 (2.2). For each later one the variation moves first, by a
// quarter of its distance from |smoothed − R|, then the smoothed time by an
// eighth of its distance from R (2.3). A negative sample counts as 0.
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

// Sampled reports whether there was a sample.
func (e *Estimator) Sampled() bool { return e.sampled }
