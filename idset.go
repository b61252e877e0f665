package ackbits

import "math/bits"

// A set of event ids: a container, which knows nothing of what the ids stand for.

// idSet is a set of event ids that lie within one window of 256 ids.
type idSet struct {
	n     int // how many ids it has
	words [eventWindow / 64]uint64
}

func (s *idSet) add(id uint16) {
	word := &s.words[id%eventWindow/64]
	s.n += int(^*word >> (id % 64) & 1)
	*word |= 1 << (id % 64)
}

func (s *idSet) has(id uint16) bool { return s.words[id%eventWindow/64]>>(id%64)&1 != 0 }

func (s *idSet) remove(id uint16) {
	word := &s.words[id%eventWindow/64]
	s.n -= int(*word >> (id % 64) & 1)
	*word &^= 1 << (id % 64)
}

// lowest returns the lowest id, counted from base, where the window begins. The set must
// not be empty.
func (s *idSet) lowest(base uint16) (id uint16) {
	at := base % eventWindow / 64
	if w := s.words[at] >> (base % 64); w != 0 {
		return base + uint16(bits.TrailingZeros64(w))
	}
	id = base - base%64
	for {
		at = (at + 1) % (eventWindow / 64)
		id += 64
		if w := s.words[at]; w != 0 {
			return id + uint16(bits.TrailingZeros64(w))
		}
	}
}
