package ackbits

import "github.com/ackbits/ackbits/internal/ring"

// cargo tells for a datagram's number at which run in the outbox its events begin. It
// covers the numbers first … end − 1, from the oldest datagram on that has runs, and
// so takes little where events are rare. Of a number in between that carried nothing
// it may say anything: ask only for one that did (carriesEvents). If the runs of that
// one were released, those that are found in their place have other sequences.
type cargo struct {
	runs       ring.Ring[uint32]
	first, end int64
}

// minCargo is what it takes at first: an event and its resend some datagrams later.
const minCargo = 16

// load notes where the runs of datagram n begin. Datagrams before oldest are
// forgotten; if alone, no other has runs.
func (c *cargo) load(n, run, oldest int64, alone bool) {
	first, end := min(max(c.first, oldest), n), max(c.end, n+1)
	if alone {
		first, end = n, n+1
	}
	if span := int(end - first); span > len(c.runs) {
		c.runs = c.runs.Resized(ring.Ceil(max(span, minCargo)), max(c.first, first), c.end)
	}
	c.first, c.end = first, end
	*c.runs.At(n) = uint32(run)
}

// of returns where the runs of a datagram begin that was loaded. It is not ok when
// they are gone.
func (c *cargo) of(n int64) (run uint32, ok bool) {
	if n < c.first || n >= c.end {
		return 0, false
	}
	return *c.runs.At(n), true
}

// shrink keeps room for at most n datagrams, the newest.
func (c *cargo) shrink(n int) {
	if n < len(c.runs) {
		c.first = max(c.first, c.end-int64(n))
		c.runs = c.runs.Resized(n, c.first, c.end)
	}
}
