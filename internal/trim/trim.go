// Package trim is the rule of how much memory a ring, list or arena keeps.
//
// Whatever grows does so when it must, by doubling. Every Period its owner asks
// Peak.Room for how many elements there should be room, and gives back what is
// beyond Length of that:
//
//   - What was held at most in this period and the one before is always kept for,
//     so that a load that comes and goes within seconds takes no memory anew.
//   - While the session is busy, room beyond that is kept, too, but halves once a
//     minute: so a link that loses a datagram in half a minute takes no memory anew
//     for each loss. It is at most four times the need of the moment or a modest
//     amount; what a burst took beyond goes after two periods.
//   - When nothing but heartbeats flow, nothing beyond the need is kept.
package trim

import (
	"time"

	"github.com/ackbits/ackbits/internal/ring"
)

// Period is how often memory is given back, in nanoseconds; what was needed neither
// in this period nor in the one before goes first. So a quiet session has given back
// all of it within 10 s, if its heartbeats, which give the occasion, are no rarer than
// three a second. Shorter would take the moments between a game's events for quiet;
// longer would let a server keep its worst moment for longer.
const Period = 3 * int64(time.Second)

// The modest amounts that a busy session may keep room for are what a loss takes at a
// game's usual rates. More would let every session keep its worst moments; less would
// take memory anew for each of them.
const (
	ModestElements = 64
	ModestBytes    = 4096
)

// halving is after how many periods room that was not needed halves. Sooner would take
// memory anew for losses that are a little rarer; later would let a session keep its
// worst moments.
const halving = int32(time.Minute / time.Duration(Period))

// Peak tells for how much there should be room, by what was held lately. The zero
// value is ready to use. No session holds 2³¹ of anything.
type Peak struct {
	now, before int32 // the most in this period, and in the one before
	kept        int32 // for how much there is room
	age         int32 // periods since so much was held, or since it was halved
}

// Note notes that n are held now.
func (p *Peak) Note(n int) { p.now = max(p.now, int32(n)) }

// Room begins a new period, with held already there, and returns for how much there
// should be room: the most of the last two, or what is kept beyond.
func (p *Peak) Room(held, modest int, busy bool) int {
	most := max(p.now, p.before)
	p.now, p.before = int32(held), p.now
	p.age++
	if p.age == halving {
		p.kept, p.age = p.kept/2, 0
	}
	if !busy {
		p.kept = 0
	}
	p.kept = min(p.kept, max(4*most, int32(modest)))
	if most >= p.kept {
		p.kept, p.age = most, 0
	}
	return int(p.kept)
}

// Length returns the length of a ring that has room for n elements: a power of two, for
// twice as many and at least the floor, so that a load that varies a little does not
// make it shrink and grow in turn. It is 0 for none.
func Length(n, floor int) int {
	if n == 0 {
		return 0
	}
	return max(ring.Ceil(2*n), floor)
}
