package ackbits

import (
	"math"
	"math/bits"
	"time"

	"github.com/ackbits/ackbits/internal/ring"
	"github.com/ackbits/ackbits/internal/trim"
)

// The log of datagrams that we sent: their numbers, when they were sent and what
// became of them. Who writes outcomes into it, and when, is acknowledge.go's.

const (
	// rememberedSent is how many newer datagrams must have been sent before one
	// that was taken for lost may be forgotten. Fewer would turn acknowledgements
	// that come late into needless resends; more costs every session on a link
	// that loses 8 bytes each. One that was acknowledged has nothing more to tell.
	rememberedSent = 256
	// lateMemory is for how long a datagram that was taken for lost is remembered
	// besides while it carries undelivered events. It is the longest round trip at
	// which events are still delivered: beyond, every acknowledgement would come
	// too late, and there would be no sample of the round trip to learn from.
	// Longer keeps memory past the 10 s of quiet in which it is to be given back.
	lateMemory = 6 * int64(time.Second)
	// maxRememberedSent bounds the memory at what an acknowledgement can name. A
	// datagram that falls out undecided can never be acknowledged: it is lost.
	maxRememberedSent = 1 << 15
	minRememberedSent = 16
	// lossyFor is for how long after a loss there is still room for those that must
	// be remembered of the next. Less would take that memory anew for every loss of
	// a link that seldom loses; more would let sessions keep it that lost one
	// datagram in a bad moment.
	lossyFor = int64(time.Minute)
)

// A stamp is what is remembered of one datagram sent, in 8 bytes: the time it
// was sent, in nanoseconds, above four bits of state.
type stamp int64

const (
	stampBits = 4

	outcomeMask stamp = 0b011
	undecided   stamp = 0b000
	delivered   stamp = 0b001 // acknowledged, even if it was taken for lost before
	lost        stamp = 0b010

	carriesEvents   stamp = 0b0100
	fromApplication stamp = 0b1000 // not the library's own
)

func (s stamp) sentAt() int64 { return int64(s) >> stampBits }

// sentLog numbers the datagrams that leave and remembers the newest of them. It
// counts in int64; lookup is the one place that deals with the wire's 16 bits.
//
// Invariant: first <= open <= count, every number before open has its outcome, and
// that does not change, but for a lost datagram whose acknowledgement comes
// late (I2).
type sentLog struct {
	first int64 // the oldest remembered
	open  int64 // the oldest undecided
	count int64 // numbered so far: the number of the next one

	// By number, both of one length.
	stamps ring.Ring[stamp]
	types  ring.Ring[Type] // nil unless outcomes are wanted

	// What the peer acknowledged before: top is the newest number that it named,
	// and bit n of known says that top − 1 − n has been looked at, as have all
	// before the first. This spares a datagram the bits that it shares with the
	// one before it.
	top   int64
	known uint64

	most trim.Peak // in flight, from one that was acknowledged just now to the newest
}

// losses says how much room the log of what was sent should keep for the next loss.
// It lies apart, since few datagrams touch it.
type losses struct {
	reach      trim.Peak // from a datagram that was taken for lost to the newest
	until      int64     // the time until which another must be expected
	sentAtTrim int64     // how many datagrams had been sent at the last trim
}

func (s *sentLog) init(outcomes bool) {
	s.top, s.known = -1, math.MaxUint64
	s.stamps = make(ring.Ring[stamp], minRememberedSent)
	if outcomes {
		s.types = make(ring.Ring[Type], minRememberedSent)
	}
}

// full reports whether the next datagram pushes out the oldest.
func (s *sentLog) full() bool { return s.count-s.first == int64(len(s.stamps)) }

// mayForgetOldest reports whether the oldest is delivered. open may not have come
// past it yet.
func (s *sentLog) mayForgetOldest() bool {
	return *s.stamps.At(s.first)&outcomeMask == delivered
}

// add numbers a datagram (P-3.1.1). It forgets the oldest if there is no room.
func (s *sentLog) add(t Type, now int64) (seq uint16) {
	if s.full() {
		s.forgetOldest()
	}
	at := s.stamps.At(s.count)
	*at = stamp(now << stampBits)
	if t.application() {
		*at |= fromApplication
	}
	if s.types != nil {
		*s.types.At(s.count) = t
	}
	s.count++
	return uint16(s.count - 1)
}

// forgetOldest makes room for one. Its outcome may not have been looked at yet.
func (s *sentLog) forgetOldest() {
	s.first++
	s.open = max(s.open, s.first)
}

// resize changes how many datagrams can be remembered, forgetting the oldest
// where there is no room for them.
func (s *sentLog) resize(n int) {
	s.first = max(s.first, s.count-int64(n))
	s.open = max(s.open, s.first)
	s.stamps = s.stamps.Resized(n, s.first, s.count)
	if s.types != nil {
		s.types = s.types.Resized(n, s.first, s.count)
	}
}

// freeIfDecided gives back all memory once every datagram has its outcome. Nothing
// more may be sent.
func (s *sentLog) freeIfDecided() {
	if s.open == s.count {
		s.stamps, s.types = nil, nil
	}
}

// lookup returns the number of a sequence that is not newer than the last one
// sent. It is not ok for a newer one, and for one exactly 32768 before. Whether
// the number is remembered, or not negative, is for the caller to look at.
func (s *sentLog) lookup(seq uint16) (n int64, ok bool) {
	age := uint16(s.count-1) - seq
	return s.count - 1 - int64(age), age < 1<<15
}

// remembered reports whether a number that is less than count is remembered.
func (s *sentLog) remembered(n int64) bool { return n >= s.first }

// news returns which of the acknowledgements ack and bits, by numbers, were not
// seen before, and notes them as seen.
func (s *sentLog) news(ack int64, ackBits uint64) (ackNew bool, bitsNew uint64) {
	if step := ack - s.top; step > 0 {
		s.known = s.known<<step | 1<<(step-1)
		s.top = ack
		bitsNew = ackBits &^ s.known
		s.known |= ackBits
		return true, bitsNew
	}
	back := s.top - ack
	ackNew = back > 0 && s.known>>(back-1)&1 == 0
	bitsNew = ackBits &^ (s.known >> back)
	if back > 0 {
		s.known |= 1 << (back - 1)
	}
	s.known |= ackBits << back
	return ackNew, bitsNew
}

// oldest returns the highest bit of a set of acknowledgements.
func oldest(ackBits uint64) int { return bits.Len64(ackBits) - 1 }
