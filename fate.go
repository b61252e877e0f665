package ackbits

import (
	"math"
	"time"
)

// The fates of our datagrams: what the peer acknowledges, and what time decides
// (I2).

// acknowledge reads the acknowledgements of a valid datagram (R3). One of a
// sequence that was never sent, or is no longer remembered, says nothing, and
// if that is ack itself, its bits say nothing either: they lie further back. Nor
// does a header say anything that repeats the one before.
func (c *channel) acknowledge(h *Header, now int64) {
	ackBits := h.AckBits
	if !h.Wide {
		ackBits &= math.MaxUint32
	}
	ack, ok := c.sent.lookup(h.Ack)
	if !ok || !c.sent.remembered(ack) || ack == c.sent.top && ackBits&^c.sent.known == 0 {
		return
	}
	if c.sent.top < 0 && h.Ack == math.MaxUint16 && ackBits == 0 {
		return // the peer's way to say that it has received nothing
	}
	top := c.sent.top
	ackNew, ackBits := c.sent.news(ack, ackBits)
	news, settled := false, 0
	for ackBits != 0 {
		bit := oldest(ackBits)
		ackBits &^= 1 << bit
		number := ack - 1 - int64(bit)
		first, n := c.confirm(number, now)
		settled += n
		news = news || first
		if first && c.adapt != nil && number < top {
			// The headers so far named top and not this one: it was overtaken.
			c.adapt.forgive(number)
		}
	}
	if ackNew {
		first, n := c.confirm(ack, now)
		settled += n
		if first {
			// Only ack itself gives a sample: the bits would add the time for
			// which the peer had nothing to send (R4, RFC 9002 section 5.1).
			sample := now - c.sent.stamps.At(ack).sentAt()
			c.rtt.Add(sample)
			if c.adapt != nil {
				c.adapt.latestRTT = sample
			}
			news = true
		}
	}
	if settled > 0 {
		c.stats.EventsDelivered += uint64(settled)
		before := c.outbox.base
		if c.outbox.settle(); c.outbox.base != before {
			c.oldestAt = now
			c.stirred = c.stirred || c.budget.rate != 0 // it may be owed a copy
		}
		c.stirred = c.stirred || c.outbox.freshDue()
	}
	if news && c.adapt != nil {
		c.stirred = true
		c.assess(now)
	}
}

// confirm takes a datagram as delivered, and reports whether it was not known
// as such, and how many events that settles.
func (c *channel) confirm(number int64, now int64) (first bool, events int) {
	if !c.sent.remembered(number) {
		return false, 0
	}
	s := c.sent.stamps.At(number)
	switch *s & fateMask {
	case delivered:
		return false, 0
	case lost:
		c.stats.LateAcks++
	default:
		c.stats.Delivered++
		if c.sent.types != nil {
			c.report(number, Outcome{Delivered: true, RTT: time.Duration(now - s.sentAt())})
		}
	}
	*s = *s&^fateMask | delivered
	c.sent.most.note(int(c.sent.count - number))
	if *s&carriesEvents != 0 {
		if run, ok := c.outbox.cargo.of(number); ok {
			events = c.outbox.deliver(run, uint16(number))
		}
	}
	return true, events
}

// nextOutcome judges and returns the next outcome.
func (c *channel) nextOutcome(now int64) (Outcome, bool) {
	c.judge(now)
	return c.outcomes.pop()
}

// makeRoom lets the log of what was sent grow if the oldest datagram, which is not
// delivered, must still be remembered, up to a bound: there it gets its verdict
// early, since no acknowledgement can name it when the next one is sent.
func (c *channel) makeRoom(now int64) {
	n := len(c.sent.stamps)
	switch {
	case n >= rememberedSent && !c.awaited(c.sent.first, now):
	case n < maxRememberedSent:
		c.sent.resize(2 * n)
	case c.sent.open == c.sent.first:
		c.lose(now)
	}
}

// awaited reports whether a datagram must be remembered however many are sent
// after it.
func (c *channel) awaited(number, now int64) bool {
	switch s := *c.sent.stamps.At(number); s & fateMask {
	case undecided:
		return true
	case lost:
		if s&carriesEvents != 0 && now-s.sentAt() < lateMemory {
			run, ok := c.outbox.cargo.of(number)
			return ok && c.outbox.awaits(run, uint16(number))
		}
	}
	return false
}

// judge gives the datagrams whose acknowledgement is overdue their verdict
// (R9). Time alone decides: that later datagrams were acknowledged may be
// reordering.
func (c *channel) judge(now int64) {
	if now >= c.judgeFrom {
		c.judgeOldest(now)
	}
}

// judgeOldest notes when judge can next have something to do, whatever becomes
// of the round trip time until then.
func (c *channel) judgeOldest(now int64) {
	patience := saturatingAdd(c.lossDelay, c.rtt.Smoothed())
	for c.sent.open < c.sent.count {
		s := *c.sent.stamps.At(c.sent.open)
		if s&fateMask != undecided {
			c.sent.open++
		} else if now-s.sentAt() >= patience {
			c.lose(now)
		} else {
			c.judgeFrom = saturatingAdd(s.sentAt(), c.lossDelay)
			return
		}
	}
	c.judgeFrom = saturatingAdd(now, c.lossDelay)
	if c.err != nil {
		c.sent.stamps, c.sent.types = nil, nil // all is decided, and nothing more is sent
	}
}

// lose takes the oldest undecided datagram for lost.
func (c *channel) lose(now int64) {
	*c.sent.stamps.At(c.sent.open) |= lost
	c.losses.reach.note(int(c.sent.count - c.sent.open))
	c.losses.until = saturatingAdd(now, lossyFor)
	c.stats.Lost++
	if c.sent.types != nil {
		c.report(c.sent.open, Outcome{})
	}
	c.sent.open++
}

// report queues the outcome of a datagram.
func (c *channel) report(number int64, o Outcome) {
	o.Sequence = uint16(number)
	o.Type = *c.sent.types.At(number)
	if c.outcomes.push(o) {
		c.stats.OutcomesDropped++
	}
}
