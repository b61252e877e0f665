// Package trim has the rule of how much memory a ring, list or arena keeps. The memory
// itself is its owner's: trim only counts.
//
// The owner doubles the memory when it is full. Once every Period it asks Peak.Room for
// how many elements to keep room, and frees what is beyond Length of that:
//
//   - Room is always kept for the most elements held in this period and the one before,
//     so that a load that comes and goes within seconds allocates nothing.
//   - While the session is busy, room beyond that is kept, too, but halves once a
//     minute, so that on a link that loses a datagram every half minute the losses
//     allocate nothing. It is at most four times the need of the moment, or a modest
//     amount; what a burst took beyond that is freed after two periods.
//   - While nothing but heartbeats are sent and received, nothing beyond the need is
//     kept.
package trim

import (
	"time"

	"github.com/ackbits/ackbits/internal/ring"
)

// Period is how often memory is freed, in nanoseconds. Memory that was needed neither in
// this period nor in the one before goes first. So a quiet session has freed all of it
// within 10 s, if it sends at least three heartbeats a second, since sending is the
// occasion to trim. Shorter, and the pauses between a game's events count as quiet;
// longer, and a server keeps the memory of its worst moment for longer.
const Period = 3 * int64(time.Second)

// The modest amounts that a busy session may keep: what a loss takes at a game's usual
// rates. Larger, and every session keeps the memory of its worst moments; smaller, and
// each loss allocates.
const (
	ModestElements = 64
	ModestBytes    = 4096
)

// halving is after how many periods room that was not needed halves. Smaller, and losses
// that are a little rarer allocate; larger, and a session keeps the memory of its worst
// moments for longer.
const halving = int32(time.Minute / time.Duration(Period))

// Peak says how many elements to keep room for, by how many were held lately. The zero
// value is ready to use. No session holds 2³¹ of anything.
type Peak struct {
	now, before int32 // the most in this period, and in the one before
	kept        int32 // for how many there is room
	age         int32 // how many periods ago that many were held, or kept was halved
}

// Note notes that n are held now.
func (p *Peak) Note(n int) { p.now = max(p.now, int32(n)) }

// Room begins a new period, in which held elements are held so far, and returns for how
// many there should be room: the most of the last two periods, or what is kept beyond.
// modest is the modest amount; busy says that the session is not quiet.
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

// Length returns the length of a ring with room for n elements, 0 if n is 0. It is a
// power of two, for twice as many elements and at least floor, so that a load that
// varies a little does not make the ring shrink and grow in turn.
func Length(n, floor int) int {
	if n == 0 {
		return 0
	}
	return max(ring.Ceil(2*n), floor)
}
