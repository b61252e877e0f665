package ackbits

import (
	"time"

	"github.com/ackbits/ackbits/internal/ring"
)

// trimPeriod is how often memory is given back; what was needed neither in this
// period nor in the one before goes first. So a quiet session has given back all of it
// within 10 s, if its heartbeats, which give the occasion, are no rarer than three a
// second. Shorter would take the moments between a game's events for quiet; longer
// would let a server keep its worst moment for longer.
const trimPeriod = 3 * int64(time.Second)

// trim gives back memory that was not needed lately.
func (c *channel) trim(now int64) {
	c.trimAt = saturatingAdd(now, trimPeriod)
	c.trimSent(now)
	c.outbox.trim(c.busy)
	c.inbox.trim(c.busy, c.stats.DatagramsReceived)
	c.outcomes.trim(c.busy)
	c.busy = false
}

// trimSent gives back memory of the log of what was sent.
func (c *channel) trimSent(now int64) {
	oldest := c.sent.first
	for oldest < c.sent.count && !c.awaited(oldest, now) {
		oldest++
	}
	floor := minRememberedSent
	if now < c.losses.until {
		floor = rememberedSent
	}
	inFlight := min(c.sent.most.room(0, modestEvents, c.busy), rememberedSent/2) // no more than a loss would take
	sent := int(c.sent.count - c.losses.sentAtTrim)
	toALoss := min(c.losses.reach.room(0, maxRememberedSent, c.busy), sent) // less where less is sent by now
	need := max(int(c.sent.count-oldest), inFlight, toALoss, 1)
	c.losses.sentAtTrim = c.sent.count
	if n := roomFor(need, floor); n < len(c.sent.stamps) {
		c.sent.resize(n)
		c.outbox.cargo.shrink(n)
	}
}

// peak tells for how much there should be room, by what was held lately. No session
// holds 2²⁹ of anything.
type peak struct {
	now, before int32 // the most in this trim period, and in the one before
	kept        int32 // for how much there is room
	age         int32 // trim periods since so much was held, or since it was halved
}

// While a session is busy, room that is not needed halves once a minute, so that a
// link which loses a datagram in half a minute does not take it anew each time: room
// for up to four times the need of the moment, or a modest amount, which is what a
// loss takes at a game's usual rates. What a burst took beyond that goes after two
// periods, and so does all when nothing but heartbeats flow. Halving sooner would take
// memory anew for losses that are a little rarer; later, or from more, would let a
// session keep its worst moments.
const (
	halving      = int32(time.Minute / time.Duration(trimPeriod))
	modestEvents = 64
	modestBytes  = 4096
)

func (p *peak) note(n int) { p.now = max(p.now, int32(n)) }

// room begins a new period, with held already there, and returns for how much there
// should be room: the most of the last two, or what is kept beyond.
func (p *peak) room(held, modest int, busy bool) int {
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

// roomFor returns the length that a ring keeps in which there were up to n
// elements: room for twice as many and at least the floor, so that a load that
// varies a little does not make it shrink and grow in turn.
func roomFor(n, floor int) int {
	if n == 0 {
		return 0
	}
	return max(ring.Ceil(2*n), floor)
}
