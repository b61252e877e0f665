package transfer

import (
	"sort"

	"github.com/ackbits/ackbits"
	"github.com/ackbits/ackbits/internal/ring"
	"github.com/ackbits/ackbits/internal/rtt"
)

// The chunks that were sent, and their outcomes: delivered, lost or undecided. What is
// sent again, and when, is in outgoing.go and due.go.

const (
	// maxFlight is how many chunks are remembered, including those presumed lost: 8 MiB
	// in flight are 500 Mbit/s over 130 ms. More takes more memory, 64 bytes each; less
	// limits fast paths.
	maxFlight = 1 << 13
	minFlight = 16

	// A chunk is presumed lost when one that was sent later by more than the tolerance is
	// acknowledged before it. The tolerance starts at an eighth of a round trip (RFC
	// 9002, 6.1.2) and grows with each chunk that arrives after all, so that a path that
	// reorders costs a few needless retransmissions only. Smaller causes more of those;
	// larger detects losses later.
	toleranceShare = 8
	minTolerance   = int64(2e6) // ns

	// minPatience is how long the sender waits for an answer, at least, beyond the round
	// trip; firstPatience is how long it waits before it knows the round trip;
	// maxPatience is the longest wait. Shorter retransmits needlessly where the peer
	// answers on a tick; longer delays the retransmission of the last chunk.
	minPatience   = int64(20e6)
	firstPatience = int64(250e6)
	maxPatience   = int64(2e9)
)

type chunkState uint8

const (
	flying  chunkState = iota
	arrived            // acknowledged
	missing            // presumed lost; sent again, or queued to be
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

// flight remembers the chunks that are in flight, by serial, and detects which of them
// were lost.
//
// Invariant: first <= open <= count, and no chunk before open has the state flying.
type flight struct {
	chunks             ring.Ring[chunk]
	first, open, count int64
	flying             int64 // bytes in flight
	sent, got, gone    int64 // bytes of all chunks so far: sent, delivered, presumed lost
	newestAt           int64 // when the newest of the delivered chunks was sent
	heardAt            int64 // when its acknowledgement came
	tolerance          int64
	reorders           bool // the tolerance has grown: it follows RTT no more
	rtt                rtt.Estimator
	quietAt            int64 // the start of the silence: an answer came, or the wait for one began
	tries              int   // retransmissions since the latest acknowledgement
	repeats, needless  uint64
}

// full reports whether there is no room to remember another chunk.
func (f *flight) full() bool {
	return f.count-f.first == maxFlight && f.chunks.At(f.first).state == flying
}

// add notes a chunk that is sent; the flight must not be full.
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

// rest frees the memory of the flight, once nothing is in flight.
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

// bySerial returns the chunk with a serial on the wire; nil if it is forgotten or was
// never sent.
func (f *flight) bySerial(serial uint16) (*chunk, int64) {
	k := f.count - 1 - int64(uint16(f.count-1)-serial)
	if k < f.first || k >= f.count {
		return nil, 0
	}
	return f.chunks.At(k), k
}

// outcome notes the outcome of the datagram that carried c.
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

// heard notes that the chunk c was delivered.
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

// lostAt returns when the oldest chunk in flight is to be presumed lost. If a chunk sent
// later was delivered, that is when the older one's acknowledgement is overdue by the
// tolerance, counted from that of the later one (RFC 8985, 6.2). Otherwise it is after a
// silence, which doubles each time (RFC 9002, 6.2). ok is false while nothing is in
// flight.
func (f *flight) lostAt() (at int64, ok bool) {
	if f.open == f.count {
		return 0, false
	}
	if c := f.chunks.At(f.open); c.sentAt < f.newestAt {
		return f.heardAt - (f.newestAt - c.sentAt) + f.tolerance, true
	}
	return f.quietAt + min(f.patience()<<min(f.tries, 6), maxPatience), true
}

// detect presumes lost the chunks whose time has come. After a silence it is the oldest
// alone: its retransmission then asks for an answer.
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

// skip moves open to the oldest chunk that is in flight.
func (f *flight) skip() {
	for f.open < f.count && f.chunks.At(f.open).state != flying {
		f.open++
	}
}

// missing returns how many of the n chunks after the serial a, up to b, did not arrive.
func (f *flight) missing(a, b int64) (lost, n int64) {
	for k := max(a+1, f.first); k <= b; k++ {
		if f.chunks.At(k).state != arrived {
			lost++
		}
	}
	return lost, b - a
}
