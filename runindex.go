package ackbits

import "github.com/ackbits/ackbits/internal/ring"

// runIndex tells for a datagram's number at which run in the copyLog its events begin.
// It covers the numbers first … end − 1, from the oldest datagram on that has runs, and
// so takes little where events are rare. Of a number in between that carried nothing
// it may say anything: ask only for one that did (carriesEvents). If the runs of that
// one were released, those that are found in their place have other sequences.
type runIndex struct {
	runs       ring.Ring[uint32]
	first, end int64
}

// minIndex is what it takes at first: an event and its retransmission some datagrams
// later.
const minIndex = 16

// note notes where the runs of datagram n begin. Datagrams before oldest are
// forgotten; if alone, no other has runs.
func (x *runIndex) note(n, run, oldest int64, alone bool) {
	first, end := min(max(x.first, oldest), n), max(x.end, n+1)
	if alone {
		first, end = n, n+1
	}
	if span := int(end - first); span > len(x.runs) {
		x.runs = x.runs.Resized(ring.Ceil(max(span, minIndex)), max(x.first, first), x.end)
	}
	x.first, x.end = first, end
	*x.runs.At(n) = uint32(run)
}

// of returns where the runs of a datagram begin that was noted. It is not ok when
// they are gone.
func (x *runIndex) of(n int64) (run uint32, ok bool) {
	if n < x.first || n >= x.end {
		return 0, false
	}
	return *x.runs.At(n), true
}

// shrink keeps room for at most n datagrams, the newest.
func (x *runIndex) shrink(n int) {
	if n < len(x.runs) {
		x.first = max(x.first, x.end-int64(n))
		x.runs = x.runs.Resized(n, x.first, x.end)
	}
}
