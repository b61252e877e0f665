package ackbits

import "math"

// Which events are due, and when the next will be. These are methods of the sending half.
// When copies are due is decided by its copyRule (copies.go); how they are packed is in
// packing.go.

// freshDue reports whether an event may be sent for the first time.
func (s *sender) freshDue() bool { return s.outbox.freshDue() }

// sendNoCopies forgets which copies are due.
func (s *sender) sendNoCopies() { s.outbox.due = idSet{} }

// copyDue reports whether a further copy of an event is due and may be sent; the
// budget holds back copies only, and the oldest event not for long.
func (s *sender) copyDue() bool {
	o := &s.outbox
	return o.due.n > 0 && (s.asOf >= s.budget.allowedAt() ||
		o.due.has(uint16(o.base)) && s.asOf >= s.budget.owedAt(o.get(o.base)))
}

// owedAt returns when a copy of the oldest event is due that the budget does not
// hold back; it must have been sent.
func (s *sender) owedAt() int64 {
	o := &s.outbox
	e := o.get(o.base)
	at := s.budget.owedAt(e)
	if !o.due.has(uint16(o.base)) {
		at = max(at, s.againAt(e))
	}
	return at
}

// presumeLostAt returns when the last copy of an event will be presumed lost.
func (s *sender) presumeLostAt(e *pending) int64 {
	return s.rule.presumeLostAt(e, s.overtaken(e), &s.path)
}

// eventsDue reports whether an event is due and the window open.
func (s *sender) eventsDue(now int64) bool {
	s.collect(now, ownDatagram)
	return (s.freshDue() || s.copyDue()) && s.window.open(now)
}

// fits reports whether a list of at most limit bytes has room for an event: for the oldest
// that is due, or, in a bundle while nothing is acknowledged, for the oldest.
func (s *sender) fits(limit int, in carrier, now int64) bool {
	o := &s.outbox
	if o.undelivered == 0 {
		return false
	}
	limit = min(limit, maxListSize)
	if in == bundle && s.ride(limit, now) {
		s.asOf = now
		return true
	}
	s.collect(now, in)
	number := o.fresh
	if s.copyDue() {
		number = o.lowestDue()
	} else if !o.freshDue() {
		return false
	}
	return o.get(number).fits(listOverhead, limit, in) && s.window.open(now)
}

// ride reports whether the oldest events ride in a bundle, whose list may have limit bytes,
// because nothing is acknowledged any more.
func (s *sender) ride(limit int, now int64) bool {
	o := &s.outbox
	if o.base == o.fresh || now < s.budget.allowedAt() {
		return false
	}
	e := o.get(o.base)
	return listOverhead+e.cost() <= min(limit, maxRiders) && s.rule.cutOff(e, &s.path, now)
}

// collect marks the events of which a further copy is due now in a datagram of this kind.
// copyDue then answers for this time.
func (s *sender) collect(now int64, in carrier) {
	s.asOf = now
	o := &s.outbox
	if o.held > 0 && now >= o.heldUntil {
		s.release(now)
	}
	if o.log.planned && !s.window.crowded() {
		s.collectPlanned(&o.log.near, false, now, in)
		s.collectPlanned(&o.log.far, true, now, in)
	}
	timedOut := false
	for cursor := &o.log.retransmits; ; cursor.skip++ {
		number, e := o.lastCopy(cursor)
		if e == nil {
			break
		}
		cause := s.rule.presumeLost(e, s.overtaken(e), &s.path, now)
		if cause == notLost {
			break
		}
		timedOut = timedOut || cause == byTimeout
		o.log.planned = o.log.planned || e.plan.left > 0
		e.noteRetransmit(s.path.passedAt > e.first)
		s.presumedLost(number, e, cause, now)
	}
	if timedOut {
		s.rule.timedOut(&s.path, now)
	}
}

// presumedLost makes an event due again, now or when it has backed off.
func (s *sender) presumedLost(number int64, e *pending, cause cause, now int64) {
	o := &s.outbox
	s.noteTry(e, cause)
	e.state &^= isProactive
	if at := saturatingAdd(e.last, s.rule.backsOff(e, &s.path)); at > now {
		if o.held == 0 || at < o.heldUntil {
			o.heldUntil = at
		}
		o.held++
		e.state |= isHeld
		o.due.remove(uint16(number)) // where a proactive copy was due
		return
	}
	s.makeDue(number, e)
}

// noteTry counts how often an event was sent without an acknowledgement.
func (s *sender) noteTry(e *pending, cause cause) {
	if s.oldestAt >= e.last {
		e.tries = 0
	}
	if cause != byTimeout { // a timeout backs off by itself
		e.tries = min(e.tries+1, math.MaxUint8-1)
	}
}

// againAt returns when a further copy of an event that is not due will be: when its
// last copy is presumed lost, and the event has backed off.
func (s *sender) againAt(e *pending) int64 {
	if e.state&isHeld != 0 {
		return saturatingAdd(e.last, s.rule.backsOff(e, &s.path))
	}
	at := s.presumeLostAt(e)
	if e.tries < patientTries {
		return at // it will not back off
	}
	before := *e // put back below: a second pending to look ahead with would be allocated
	s.noteTry(e, s.rule.presumeLost(e, s.overtaken(e), &s.path, at))
	at = max(at, saturatingAdd(e.last, s.rule.backsOff(e, &s.path)))
	*e = before
	return at
}

// makeDue makes an event due whose last copy is presumed lost.
func (s *sender) makeDue(number int64, e *pending) {
	s.outbox.due.add(uint16(number))
	if e.inFlight() {
		e.state &^= isInFlight
		s.window.miss(e.cost())
	}
}

// release makes those events due whose backoff is over, or has ended early because an older
// event was delivered.
func (s *sender) release(now int64) {
	o := &s.outbox
	o.heldUntil = math.MaxInt64
	for number := o.base; number < o.fresh && o.held > 0; number++ {
		e := o.get(number)
		if e.state&isHeld == 0 {
			continue
		}
		at := saturatingAdd(e.last, s.rule.backsOff(e, &s.path))
		if at <= now || s.oldestAt >= e.last {
			o.held--
			e.state &^= isHeld
			s.makeDue(number, e)
		} else {
			o.heldUntil = min(o.heldUntil, at)
		}
	}
}

// collectPlanned marks the events of which a proactive copy is due, near the last one
// or far from it.
func (s *sender) collectPlanned(cursor *cursor, far bool, now int64, in carrier) {
	o := &s.outbox
	for ; ; cursor.skip++ {
		number, e := o.nextPlanned(cursor, far)
		if e == nil || now < s.rule.proactiveAt(e, in) || !s.budget.spare(o.due.n, now) {
			return
		}
		e.state |= isProactive
		o.due.add(uint16(number))
	}
}

// overtaken reports whether a datagram is acknowledged that was sent after the one
// with the last copy of an event.
func (s *sender) overtaken(e *pending) bool {
	number, ok := s.log.lookup(s.outbox.log.runs.At(int64(e.run)).seq)
	return ok && number < s.log.top
}

// nextEvents returns when an event will be due, if nothing happens until then.
func (s *sender) nextEvents(now int64) (at int64, ok bool) {
	crowded := s.window.crowded()
	full := crowded && s.window.full() // until something is presumed lost
	switch fresh := s.freshDue(); {
	case !fresh:
		at, ok = s.nextCopy(now, full)
	case full: // a loss lets first copies go, which no budget holds back
		at, ok = s.nextLoss()
	default:
		at, ok = now, true
	}
	if !ok {
		return at, false
	}
	if crowded {
		at = max(at, s.window.opensAt())
	}
	return at, true
}

// nextCopy returns when a further copy of an event will be due and may be sent; if none
// will, math.MaxInt64 and not ok. full says that the copies which are due must wait.
func (s *sender) nextCopy(now int64, full bool) (at int64, ok bool) {
	o := &s.outbox
	if o.due.n > 0 && !full {
		at = now
	} else if at, ok = s.nextLoss(); !ok {
		return math.MaxInt64, false // nor is a proactive one, then
	} else if o.log.planned && !s.window.crowded() {
		at = min(at, s.nextProactive(&o.log.near, false), s.nextProactive(&o.log.far, true))
	}
	if allowed := s.budget.allowedAt(); at < allowed {
		if o.base < o.fresh {
			allowed = min(allowed, s.owedAt())
		}
		at = max(at, allowed)
	}
	return at, true
}

// nextLoss returns when the next copy will be presumed lost and its event due. It looks
// past those that will back off.
func (s *sender) nextLoss() (at int64, ok bool) {
	o := &s.outbox
	at = math.MaxInt64
	if o.held > 0 {
		at, ok = o.heldUntil, true
	}
	o.lastCopy(&o.log.retransmits)
	for cursor := o.log.retransmits; ; cursor.skip++ {
		_, e := o.lastCopy(&cursor)
		if e == nil {
			return at, ok
		}
		lost := s.presumeLostAt(e)
		if lost >= at {
			return at, ok // nor is any behind it
		}
		again := s.againAt(e)
		at, ok = min(at, again), true
		if again == lost {
			return at, ok
		}
	}
}

// nextProactive returns when a proactive copy will be due, near the last one or far
// from it; math.MaxInt64 if none is planned.
func (s *sender) nextProactive(cursor *cursor, far bool) int64 {
	_, e := s.outbox.nextPlanned(cursor, far)
	if e == nil {
		return math.MaxInt64
	}
	return max(s.rule.proactiveAt(e, ownDatagram), s.budget.spareAt())
}

// waitsSince returns since when the oldest undelivered event has been both the
// oldest and on the wire (P-8.2.1).
func (s *sender) waitsSince() (since int64, ok bool) {
	o := &s.outbox
	if o.base == o.fresh {
		return 0, false
	}
	return max(o.get(o.base).first, s.oldestAt), true
}
