package ackbits

import (
	"math"
	"time"
)

// The outcomes of our datagrams (I2): what the peer acknowledges, and what time decides.
// These are methods of the sending half. The log that they write to is in sentlog.go, the
// queue of outcomes in outcome.go.

// acknowledge reads the acknowledgements of a valid datagram (P-4.2.1), and reports
// whether an event may be due earlier because of them. An acknowledgement of a sequence
// that was never sent, or is no longer remembered, is ignored. If that is ack itself, its
// bits are ignored, too, since they lie further back (P-4.2.2). So is a header that
// repeats the one before.
func (s *sender) acknowledge(h *Header, now int64) (sooner bool) {
	ackBits := h.AckBits
	if !h.Wide {
		ackBits &= math.MaxUint32
	}
	log := &s.log
	ack, ok := log.lookup(h.Ack)
	if !ok || !log.remembered(ack) || ack == log.top && ackBits&^log.known == 0 {
		return false
	}
	if log.top < 0 && h.Ack == math.MaxUint16 && ackBits == 0 {
		return false // the peer's way to say that it has received nothing
	}
	top := log.top
	ackNew, ackBits := log.news(ack, ackBits)
	news, settled := false, 0
	if ackBits != 0 {
		news, settled = s.acknowledgeBits(ack, ackBits, top, now)
	}
	if ackNew {
		first, n := s.confirm(ack, now)
		settled += n
		if first {
			// Only ack itself gives a sample: the bits would add the time for
			// which the peer had nothing to send (P-7.1.1; RFC 9002, 5.1).
			sooner = s.path.sample(log.stamps.At(ack).sentAt(), now, s.queueAbove)
			news = true
		}
	}
	if settled > 0 {
		s.stats.EventsDelivered += uint64(settled)
		if s.outbox.advance() {
			s.oldestAt = now
			sooner = sooner || s.outbox.held > 0 || s.budget.rate != 0 // the oldest may be owed a copy
		}
		sooner = sooner || s.outbox.freshDue()
	}
	if news && s.rule.acknowledged(log, &s.path, now) {
		sooner = true
	}
	if sooner && s.outbox.held > 0 {
		s.release(now) // they may back off for less now
	}
	return sooner
}

// acknowledgeBits reads the bits before ack (P-4.2.3), the oldest datagram first
// (P-4.2.4). Datagrams before top that are acknowledged only now, although newer ones
// were acknowledged before, were overtaken.
func (s *sender) acknowledgeBits(ack int64, ackBits uint64, top, now int64) (news bool, settled int) {
	for ackBits != 0 {
		bit := oldest(ackBits)
		ackBits &^= 1 << bit
		number := ack - 1 - int64(bit)
		first, n := s.confirm(number, now)
		settled += n
		news = news || first
		if first && number < top {
			s.rule.reordered(number, &s.path)
		}
	}
	return news, settled
}

// confirm records a datagram as delivered. It returns whether that was news, and how many
// events are delivered by it (P-4.2.5).
func (s *sender) confirm(number int64, now int64) (first bool, events int) {
	if !s.log.remembered(number) {
		return false, 0
	}
	stamp := s.log.stamps.At(number)
	switch *stamp & outcomeMask {
	case delivered:
		return false, 0
	case lost:
		s.stats.LateAcks++
	default:
		s.stats.Delivered++
		if s.log.types != nil {
			s.report(number, Outcome{Delivered: true, RTT: time.Duration(now - stamp.sentAt())})
		}
	}
	*stamp = *stamp&^outcomeMask | delivered
	s.log.most.Note(int(s.log.count - number))
	if *stamp&carriesEvents != 0 {
		if run, ok := s.outbox.log.index.of(number); ok {
			var bytes, inFlight int
			events, bytes, inFlight = s.outbox.deliver(run, uint16(number))
			s.window.arrive(bytes, inFlight)
		}
	}
	return true, events
}

// makeRoom makes room in the log of datagrams sent. If the oldest one is not delivered
// and must still be remembered, the log grows, up to a bound. At the bound that datagram
// is presumed lost early: once the next one is sent, no acknowledgement can name it any
// more.
func (s *sender) makeRoom(now int64) {
	n := len(s.log.stamps)
	switch {
	case n >= rememberedSent && !s.awaited(s.log.first, now):
	case n < maxRememberedSent:
		s.log.resize(2 * n)
	case s.log.open == s.log.first:
		s.lose(now)
	}
	if s.log.full() {
		s.log.forgetOldest()
	}
}

// awaited reports whether a datagram must be remembered however many are sent
// after it (P-4.2.6).
func (s *sender) awaited(number, now int64) bool {
	switch stamp := *s.log.stamps.At(number); stamp & outcomeMask {
	case undecided:
		return true
	case lost:
		if stamp&carriesEvents != 0 && now-stamp.sentAt() < lateMemory {
			run, ok := s.outbox.log.index.of(number)
			return ok && s.outbox.log.awaits(run, uint16(number), s.outbox.base)
		}
	}
	return false
}

// judge presumes those datagrams lost whose acknowledgement is overdue (P-7.2.2). Time
// alone decides: that later datagrams were acknowledged may be reordering.
func (s *sender) judge(now int64) {
	if now >= s.judgeAt {
		s.judgeOldest(now)
	}
}

// judgeOldest notes the earliest time at which judge may have something to do, whatever
// becomes of the round-trip time until then.
func (s *sender) judgeOldest(now int64) {
	patience := saturatingAdd(s.lossDelay, s.path.rtt.Smoothed())
	for s.log.open < s.log.count {
		stamp := *s.log.stamps.At(s.log.open)
		if stamp&outcomeMask != undecided {
			s.log.open++
		} else if now-stamp.sentAt() >= patience {
			s.lose(now)
		} else {
			s.judgeAt = saturatingAdd(stamp.sentAt(), s.lossDelay)
			return
		}
	}
	s.judgeAt = saturatingAdd(now, s.lossDelay)
}

// lose presumes the oldest undecided datagram lost, which is its one outcome (P-7.2.1).
func (s *sender) lose(now int64) {
	*s.log.stamps.At(s.log.open) |= lost
	s.losses.reach.Note(int(s.log.count - s.log.open))
	s.losses.until = saturatingAdd(now, lossyFor)
	s.stats.Lost++
	if s.log.types != nil {
		s.report(s.log.open, Outcome{})
	}
	s.log.open++
}

// report queues the outcome of a datagram (P-7.2.4).
func (s *sender) report(number int64, o Outcome) {
	o.Sequence = uint16(number)
	o.Type = *s.log.types.At(number)
	if s.outcomes.push(o) {
		s.stats.OutcomesDropped++
	}
}
