package ackbits

import (
	"time"

	"github.com/ackbits/ackbits/internal/ring"
)

// trimPeriod is how often memory is given back, most of it when it was not needed
// in this period and the one before: within 10 s of quiet. Shorter would take the
// moments between a game's events for quiet; longer would let a server keep its
// worst moment for longer.
const trimPeriod = 3 * int64(time.Second)

// trim gives back memory that was not needed lately.
func (c *channel) trim(now int64) {
	c.trimAt = saturatingAdd(now, trimPeriod)
	c.trimSent(now)
	c.outbox.trim()
	c.inbox.trim()
	c.outcomes.trim()
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
	inFlight := min(c.sent.most.pass(0), rememberedSent/2) // no more than a loss would take
	sent := int(c.sent.count - c.losses.trimmed)
	toALoss := min(c.losses.reach.fade(0, maxRememberedSent, true), sent) // less where less is sent by now
	need := max(int(c.sent.count-oldest), inFlight, toALoss)
	c.losses.trimmed = c.sent.count
	if n := roomFor(need, floor); n < len(c.sent.stamps) {
		c.sent.resize(n)
		c.outbox.cargo.shrink(n)
	}
}

// peak tells for how much there should be room, by what was held lately. No session
// holds 2³¹ of anything.
type peak struct {
	now, before int32 // the most in this trim period, and in the one before
	kept        int32 // the most in those before, fading
}

// While there is something to do, room that was needed fades over minutes, so that a
// link which loses one datagram in half a minute does not take it anew each time: up
// to four times the need of the moment, or a modest amount, which is what a loss takes
// at a game's usual rates. What a burst took beyond that is given back with the rest.
// Fading faster would take memory anew for losses that are a little rarer; slower, or
// from more, would let a session keep its worst moments.
const (
	fading       = 32 // each trim period takes this part of it
	modestEvents = 64
	modestBytes  = 4096
)

func (p *peak) note(n int) { p.now = max(p.now, int32(n)) }

// any reports whether something was held in this period or the one before.
func (p *peak) any() bool { return p.now > 0 || p.before > 0 }

// pass begins a new period, with held already there, and returns the most of the
// last two.
func (p *peak) pass(held int) (most int) {
	most = int(max(p.now, p.before))
	p.now, p.before = int32(held), p.now
	return most
}

// fade does so too, and while busy returns more if there was more, as it fades.
func (p *peak) fade(held, modest int, busy bool) (need int) {
	most := p.pass(held)
	kept := int(p.kept) - (int(p.kept)+fading-1)/fading
	if !busy {
		kept = 0
	}
	kept = max(most, min(kept, max(4*most, modest)))
	p.kept = int32(kept)
	return kept
}

// roomFor returns the length that a ring keeps in which there were up to n
// elements: room for twice as many and at least the floor, so that a load that
// varies a little does not make it shrink and grow in turn. What the floor takes is
// kept for the next event.
func roomFor(n, floor int) int { return max(ring.Ceil(max(2*n, 1)), floor) }
