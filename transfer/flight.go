package transfer

import (
	"sort"

	"github.com/ackbits/ackbits"
	"github.com/ackbits/ackbits/internal/ring"
	"github.com/ackbits/ackbits/internal/rtt"
)

// The chunks that were sent and what became of them: delivered, lost or undecided.
// What is sent again, and when, is for outgoing.go and due.go to say.

const (
	// maxFlight is how many chunks are remembered, those taken for lost included:
	// 8 MiB in flight are 500 Mbit/s over 130 ms. More takes more memory, 64 bytes
	// each; less limits fast paths.
	maxFlight = 1 << 13
	minFlight = 16

	// The tolerance is by how much later a chunk must have been sent than one that
	// is not acknowledged, for its own acknowledgement to show that the other is
	// lost. It starts as an eighth of a round trip (RFC 9002, 6.1.2), and grows
	// with each chunk that arrives after all, so that a path that reorders costs
	// a few needless repeats. Less would repeat more of them, more would find out
	// about losses later.
	toleranceShare = 8
	minTolerance   = int64(2e6) // ns

	// minPatience is the least that the sender waits for an answer beyond the
	// round trip; firstPatience is what it waits before it knows the round trip.
	// Shorter repeats for nothing where the peer answers on a tick; longer
	// makes the loss of the last chunk more expensive.
	minPatience   = int64(20e6)
	firstPatience = int64(250e6)
	maxPatience   = int64(2e9)
)

type chunkState uint8

const (
	flying  chunkState = iota
	arrived            // acknowledged
	missing            // taken for lost, and to be sent again or sent again already
)

// chunk is one chunk that was sent.
type chunk struct {
	file   *Outgoing
	number int64 // of the datagram, as the session's sequence is its low 16 bits
	sentAt int64
	sum    int64 // wire bytes of all chunks sent up to this one
	unit   int64
	units  uint8
	state  chunkState
	ask    bool
	told   bool   // the answer came
	size   uint16 // on the wire
}

// flight remembers the chunks that are in flight, by serial, and finds out which
// of them were lost.
//
// Invariant: first <= open <= count; none before open is flying.
type flight struct {
	chunks             ring.Ring[chunk]
	first, open, count int64
	flying             int64 // bytes
	sent, got, gone    int64 // bytes of all chunks ever: that left, arrived, were taken for lost
	newestAt           int64 // when the newest chunk was sent that is known to have arrived
	heardAt            int64 // when that was learned
	tolerance          int64
	reorders           bool // the tolerance was learned
	rtt                rtt.Estimator
	quietAt            int64 // when an answer was last waited for, or came
	tries              int   // repeats since something arrived
	repeats, needless  uint64
}

// full reports whether another chunk cannot be remembered.
func (f *flight) full() bool {
	return f.count-f.first == maxFlight && f.chunks.At(f.first).state == flying
}

// add notes a chunk that leaves; the flight must not be full.
func (f *flight) add(c chunk) {
	if n := len(f.chunks); f.count-f.first == int64(n) {
		if n < maxFlight {
			f.chunks = f.chunks.Resized(max(2*n, minFlight), f.first, f.count)
		} else {
			f.forget()
		}
	}
	if f.open == f.count || c.ask {
		f.quietAt = c.sentAt
	}
	f.flying += int64(c.size)
	f.sent += int64(c.size)
	c.sum = f.sent
	*f.chunks.At(f.count) = c
	f.count++
}

// forget drops the oldest chunk, which is not flying.
func (f *flight) forget() {
	*f.chunks.At(f.first) = chunk{}
	f.first++
	f.open = max(f.open, f.first)
}

// rest gives back what a transfer took, once nothing is flying.
func (f *flight) rest() {
	if f.open == f.count && len(f.chunks) > 0 {
		f.chunks, f.first = nil, f.count
	}
}

// byNumber returns the chunk that a datagram carried; nil if it carried none.
func (f *flight) byNumber(number int64) *chunk {
	i := sort.Search(int(f.count-f.first), func(i int) bool { return f.chunks.At(f.first+int64(i)).number >= number })
	if k := f.first + int64(i); k < f.count && f.chunks.At(k).number == number {
		return f.chunks.At(k)
	}
	return nil
}

// bySerial returns the chunk of a serial on the wire; nil if it is forgotten or
// was never sent.
func (f *flight) bySerial(serial uint16) (*chunk, int64) {
	k := f.count - 1 - int64(uint16(f.count-1)-serial)
	if k < f.first || k >= f.count {
		return nil, 0
	}
	return f.chunks.At(k), k
}

// outcome learns what became of the datagram of c.
func (f *flight) outcome(c *chunk, o ackbits.Outcome, now int64) {
	switch {
	case !o.Delivered:
		f.lose(c)
	case c.state == flying:
		c.state = arrived
		f.flying -= int64(c.size)
		f.got += int64(c.size)
		c.file.arrived(c)
		f.heard(c, o, now)
	case c.state == missing:
		f.needless++
		c.state = arrived
		c.file.arrivedLate(c)
		f.reorders = true
		late := now - c.sentAt - f.rtt.Smoothed()
		f.tolerance = max(f.tolerance, late) * 5 / 4
		f.heard(c, o, now)
	}
	f.skip()
	for f.first < f.open && (f.chunks.At(f.first).state == arrived || now-f.chunks.At(f.first).sentAt > 4*f.patience()) {
		f.forget()
	}
}

// heard notes a sign that the path works.
func (f *flight) heard(c *chunk, o ackbits.Outcome, now int64) {
	if c.sentAt >= f.newestAt {
		f.newestAt, f.heardAt = c.sentAt, now
	}
	f.quietAt, f.tries = now, 0
	if c.ask {
		f.rtt.Add(int64(o.RTT))
	}
	if !f.reorders {
		f.tolerance = max(minTolerance, f.rtt.Smoothed()/toleranceShare)
	}
	f.tolerance = min(f.tolerance, f.patience())
}

func (f *flight) lose(c *chunk) {
	if c.state == flying {
		c.state = missing
		f.flying -= int64(c.size)
		f.gone += int64(c.size)
		c.file.lost(c)
	}
}

// patience is how long an answer may take.
func (f *flight) patience() int64 {
	if !f.rtt.Sampled() {
		return firstPatience
	}
	return f.rtt.Smoothed() + max(4*f.rtt.Variation(), minPatience)
}

// lostAt returns when the oldest chunk is to be taken for lost: when its
// acknowledgement is later than the tolerance, counted from that of a chunk that was
// sent after it (RFC 8985, 6.2). Where there is none, a silence decides, which gets
// twice as long each time (RFC 9002, 6.2). It is not ok while nothing is flying.
func (f *flight) lostAt() (at int64, ok bool) {
	if f.open == f.count {
		return 0, false
	}
	if c := f.chunks.At(f.open); c.sentAt < f.newestAt {
		return f.heardAt - (f.newestAt - c.sentAt) + f.tolerance, true
	}
	return f.quietAt + min(f.patience()<<min(f.tries, 6), maxPatience), true
}

// detect takes those for lost whose time has come. After a silence it is the oldest
// alone, to have something to ask with.
func (f *flight) detect(now int64) {
	for {
		at, ok := f.lostAt()
		if !ok || now < at {
			return
		}
		c := f.chunks.At(f.open)
		if c.sentAt >= f.newestAt {
			f.quietAt = now
			f.tries++
		}
		f.lose(c)
		f.skip()
	}
}

// skip moves open to the oldest chunk that is flying.
func (f *flight) skip() {
	for f.open < f.count && f.chunks.At(f.open).state != flying {
		f.open++
	}
}

// missing returns how many of the chunks after the serial a, up to b, did not arrive.
func (f *flight) missing(a, b int64) (lost, n int64) {
	for k := max(a+1, f.first); k <= b; k++ {
		if f.chunks.At(k).state != arrived {
			lost++
		}
	}
	return lost, b - a
}
