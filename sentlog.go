package ackbits

import (
	"math"
	"math/bits"
	"time"

	"github.com/ackbits/ackbits/internal/ring"
	"github.com/ackbits/ackbits/internal/trim"
)

// The log of datagrams that we sent: their numbers, when they were sent, and their
// outcomes. Outcomes are decided in acknowledge.go; which events a datagram carries is
// in copylog.go.

const (
	// rememberedSent is how many newer datagrams must have been sent before one that
	// was declared lost may be forgotten (P-4.2.6). Smaller, and late acknowledgements
	// are not recognised, so that events are retransmitted needlessly; larger costs
	// every session on a lossy link 8 bytes each. One that was acknowledged may be
	// forgotten at once.
	rememberedSent = 256
	// lateMemory is for how long, besides, a datagram that was declared lost is
	// remembered while it carries undelivered events. It is the longest round trip at
	// which events are still delivered: beyond it every acknowledgement would come too
	// late, and there would never be an RTT sample. Longer, and memory could not be
	// freed within 10 s of quiet.
	lateMemory = 6 * int64(time.Second)
	// maxRememberedSent is how many datagrams an acknowledgement can name, and so the
	// most that are remembered. One that is forgotten undecided can never be
	// acknowledged: it is lost.
	maxRememberedSent = 1 << 15
	minRememberedSent = 16
	// lossyFor is for how long after a loss the room is kept that the next loss will
	// need. Shorter, and a link that loses rarely allocates for every loss; longer, and
	// sessions that lost a single datagram keep the memory for nothing.
	lossyFor = int64(time.Minute)
)

// stamp is what is remembered of one datagram sent, in 8 bytes: the time it
// was sent, in nanoseconds, above four bits of state.
type stamp int64

const (
	stampBits = 4

	outcomeMask stamp = 0b011
	undecided   stamp = 0b000
	delivered   stamp = 0b001 // acknowledged, even if it was declared lost before
	lost        stamp = 0b010

	carriesEvents   stamp = 0b0100
	fromApplication stamp = 0b1000 // not the library's own
)

// sentAt returns when the datagram was sent.
func (s stamp) sentAt() int64 { return int64(s) >> stampBits }

// sentLog numbers the datagrams that we send and remembers the newest of them. Numbers
// are int64 and do not wrap; only lookup deals with the wire's 16 bits.
//
// Invariant: first <= open <= count, and every number below open has its outcome. An
// outcome does not change (I2), except that a lost datagram is marked delivered here
// when its acknowledgement comes late; it was reported as lost all the same.
type sentLog struct {
	first int64 // the oldest remembered
	open  int64 // the oldest undecided
	count int64 // how many were numbered: the number of the next one

	// By number, both of the same length.
	stamps ring.Ring[stamp]
	types  ring.Ring[Type] // nil unless outcomes are wanted

	// What the peer acknowledged before: top is the newest number acknowledged, and bit
	// n of known says that the acknowledgement of top − 1 − n has been read. Numbers
	// below 0 count as read. So only the new bits of each header are read.
	top   int64
	known uint64

	most trim.Peak // datagrams in flight: from one that was just acknowledged to the newest
}

// losses says how much room the log should keep for the next loss. It is a struct of
// its own, since few datagrams touch it.
type losses struct {
	reach      trim.Peak // datagrams from one that was declared lost to the newest
	until      int64     // until when the room for another loss is kept
	sentAtTrim int64     // how many datagrams had been sent at the last trim
}

// init sets the log up; outcomes says whether the types are needed.
func (s *sentLog) init(outcomes bool) {
	s.top, s.known = -1, math.MaxUint64
	s.stamps = make(ring.Ring[stamp], minRememberedSent)
	if outcomes {
		s.types = make(ring.Ring[Type], minRememberedSent)
	}
}

// full reports whether adding a datagram would forget the oldest.
func (s *sentLog) full() bool { return s.count-s.first == int64(len(s.stamps)) }

// mayForgetOldest reports whether the oldest datagram was delivered, even if open has
// not moved past it yet.
func (s *sentLog) mayForgetOldest() bool {
	return *s.stamps.At(s.first)&outcomeMask == delivered
}

// add numbers a datagram (P-3.1.1) and returns its sequence. There must be room.
func (s *sentLog) add(t Type, now int64) (seq uint16) {
	stamp := stamp(now << stampBits)
	if t.application() {
		stamp |= fromApplication
	}
	*s.stamps.At(s.count) = stamp
	if s.types != nil {
		*s.types.At(s.count) = t
	}
	s.count++
	return uint16(s.count - 1)
}

// forgetOldest makes room for one datagram, even if open has not moved past the oldest.
func (s *sentLog) forgetOldest() {
	s.first++
	s.open = max(s.open, s.first)
}

// resize changes how many datagrams can be remembered to n, and forgets the oldest ones
// for which there is no room.
func (s *sentLog) resize(n int) {
	s.first = max(s.first, s.count-int64(n))
	s.open = max(s.open, s.first)
	s.stamps = s.stamps.Resized(n, s.first, s.count)
	if s.types != nil {
		s.types = s.types.Resized(n, s.first, s.count)
	}
}

// freeIfDecided frees all memory if every datagram has its outcome. Nothing may be sent
// afterwards.
func (s *sentLog) freeIfDecided() {
	if s.open == s.count {
		s.stamps, s.types = nil, nil
	}
}

// lookup returns the number of a sequence that we sent. ok is false for a sequence that
// is newer than the last one sent, or exactly 32768 before it. The number may be
// forgotten, or negative: the caller must check.
func (s *sentLog) lookup(seq uint16) (n int64, ok bool) {
	age := uint16(s.count-1) - seq
	return s.count - 1 - int64(age), age < 1<<15
}

// remembered reports whether a number below count is remembered.
func (s *sentLog) remembered(n int64) bool { return n >= s.first }

// news returns which of the acknowledgements ack and ackBits were not read before, and
// marks them as read. ack is a number.
func (s *sentLog) news(ack int64, ackBits uint64) (ackNew bool, bitsNew uint64) {
	if step := ack - s.top; step > 0 {
		known := (s.known<<1 | 1) << (step - 1)
		s.top, s.known = ack, known|ackBits
		return true, ackBits &^ known
	}
	back := s.top - ack
	if back > 0 {
		ackNew = s.known>>(back-1)&1 == 0
		s.known |= 1 << (back - 1)
	}
	bitsNew = ackBits &^ (s.known >> back)
	s.known |= ackBits << back
	return ackNew, bitsNew
}

// oldest returns the index of the highest bit, which stands for the oldest datagram.
func oldest(ackBits uint64) int { return bits.Len64(ackBits) - 1 }
