package ackbits

import "github.com/ackbits/ackbits/internal/ring"

// An index into the log of copies (copylog.go): from a datagram's number to its runs.

// runIndex maps the number of a datagram to the position of its first run in the
// copyLog. It covers the numbers first … end − 1, beginning at the oldest datagram that
// has runs, and so takes little memory where events are rare. Ask only for datagrams
// that carried events (carriesEvents): for others the answer is undefined. If the runs
// of that datagram were freed, the position holds runs of another sequence.
type runIndex struct {
	runs       ring.Ring[uint32]
	first, end int64
}

// minIndex is its first size, enough for an event and its retransmission some datagrams
// later. Smaller, and it would grow at once; larger, and sessions with few events hold
// memory for nothing.
const minIndex = 16

// note notes where the runs of datagram n begin. Datagrams before oldest are forgotten,
// and if alone is true, all others.
func (x *runIndex) note(n, run, oldest int64, alone bool) {
	first, end := min(max(x.first, oldest), n), max(x.end, n+1)
	if alone {
		first, end = n, n+1
	}
	if covered := int(end - first); covered > len(x.runs) {
		x.runs = x.runs.Resized(ring.Ceil(max(covered, minIndex)), max(x.first, first), x.end)
	}
	x.first, x.end = first, end
	*x.runs.At(n) = uint32(run)
}

// of returns where the runs of a datagram begin. ok is false if it was forgotten.
func (x *runIndex) of(n int64) (run uint32, ok bool) {
	if n < x.first || n >= x.end {
		return 0, false
	}
	return *x.runs.At(n), true
}

// shrink reduces the room to n datagrams, and forgets the oldest ones beyond.
func (x *runIndex) shrink(n int) {
	if n < len(x.runs) {
		x.first = max(x.first, x.end-int64(n))
		x.runs = x.runs.Resized(n, x.first, x.end)
	}
}
