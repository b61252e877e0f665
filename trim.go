package ackbits

import (
	"time"

	"github.com/ackbits/ackbits/internal/ring"
)

// trimPeriod is how often memory is given back that was not needed in this
// period and the one before: within 10 s of quiet. Shorter would free and take
// again what a game needs every few seconds; longer would let a server keep its
// worst moment for longer.
const trimPeriod = 3 * int64(time.Second)

// trim gives back memory that was not needed lately.
func (c *channel) trim(now int64) {
	c.trimAt = saturatingAdd(now, trimPeriod)
	c.trimSent(now)
	if c.outbox.trim() {
		c.sent.cargo = nil
	}
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
	if c.sent.count < c.sent.lossyUntil {
		floor = rememberedSent
	}
	// What was in flight lately keeps no more room than a loss would take.
	need := max(int(c.sent.count-oldest), min(c.sent.most.pass(0), rememberedSent/2), 1)
	if n := roomFor(need, floor); n < len(c.sent.stamps) {
		c.sent.resize(n)
	}
}

// peak is the most that something held in this trim period and the one before.
// No session holds 2³¹ of anything.
type peak struct{ now, before int32 }

func (p *peak) note(n int) { p.now = max(p.now, int32(n)) }

// pass begins a new period, with n held already, and returns the peak until then.
func (p *peak) pass(n int) (most int) {
	most = int(max(p.now, p.before))
	*p = peak{now: int32(n), before: p.now}
	return most
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
