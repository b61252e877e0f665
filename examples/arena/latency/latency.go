// Package latency counts durations in buckets that are 6 % wide, from a
// microsecond to hours.
package latency

import (
	"math"
	"math/bits"
	"time"
)

const (
	subBits = 4 // sixteen buckets between two powers of two
	buckets = 40 << subBits
)

// Histogram is ready to use as it is. It is not safe for concurrent use.
type Histogram struct {
	counts [buckets]uint64
	total  uint64
}

// Add counts a duration; a negative one counts as zero.
func (h *Histogram) Add(d time.Duration) {
	h.counts[bucket(d)]++
	h.total++
}

// Merge adds what other has counted.
func (h *Histogram) Merge(other *Histogram) {
	for i, n := range other.counts {
		h.counts[i] += n
	}
	h.total += other.total
}

// Count returns how many durations were added.
func (h *Histogram) Count() uint64 { return h.total }

// Quantile returns the upper end of the bucket in which the given share of all
// durations lies, 0 if there are none.
func (h *Histogram) Quantile(q float64) time.Duration {
	if h.total == 0 {
		return 0
	}
	rank := max(uint64(math.Ceil(q*float64(h.total))), 1) - 1
	for i, n := range h.counts {
		if rank < n {
			return ceiling(i)
		}
		rank -= n
	}
	return ceiling(buckets - 1)
}

// bucket numbers microseconds: the first sixteen one by one, then sixteen
// buckets for each power of two.
func bucket(d time.Duration) int {
	us := uint64(max(d.Microseconds(), 0))
	if us < 1<<subBits {
		return int(us)
	}
	shift := bits.Len64(us) - 1 - subBits
	return min((shift+1)<<subBits+int(us>>shift&(1<<subBits-1)), buckets-1)
}

// ceiling returns the end of a bucket.
func ceiling(i int) time.Duration {
	if i < 1<<subBits {
		return time.Duration(i+1) * time.Microsecond
	}
	shift := i>>subBits - 1
	return time.Duration(1<<subBits+i&(1<<subBits-1)+1) << shift * time.Microsecond
}
