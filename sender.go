package ackbits

import (
	"math"
	"time"

	"github.com/ackbits/ackbits/internal/trim"
)

// The sending half of a channel: it numbers our datagrams, packs events into them
// when its copyRule says so, and reads in the peer's acknowledgements what became of
// both (acknowledge.go). What the peer sends besides is receiver.go's; bytes on the
// wire, heartbeats and the end are for the owner to see to.

// sender is that half. What every datagram touches comes first; see channel.
type sender struct {
	rule     copyRule // when copies go
	judgeAt  int64    // no datagram sent can be taken for lost before
	oldestAt int64    // when the oldest undelivered event became the oldest
	log      sentLog  // our datagrams
	path     path
	stats    senderStats
	window   *window // how much may be in flight; nil: any
	budget   budget  // how many bytes of further copies a second
	outbox   outbox  // our events
	outcomes outcomeQueue
	losses   losses

	asOf           int64 // what was due at this time is collected
	patience       int64 // until a copy that is sent now may call for another
	lossDelay      int64
	maxUndelivered int
	maxEvent       int16
	overhead       int16  // bytes of a datagram beside its payload
	queueAbove     uint16 // from what delay on a queue stands for the rule, in milliseconds
	awake          bool   // the rule looks after events
}

// senderStats are the counters of this half; see Stats.
type senderStats struct {
	DatagramsSent, BytesSent                   uint64
	Delivered, Lost, LateAcks, OutcomesDropped uint64
	EventsSent, EventsResent, EventsAhead      uint64
	EventsDelivered                            uint64
}

// init takes a Config that was completed.
func (s *sender) init(cfg *Config) {
	s.queueAbove = standsAboveMillis
	if cfg.Adaptive {
		s.rule = &adaptiveRule{
			delay: int64(cfg.ResendDelay), heartbeat: int64(cfg.Heartbeat), poll: int64(cfg.PollInterval),
		}
	} else {
		s.rule = &fixedRule{delay: int64(cfg.ResendDelay), heartbeat: int64(cfg.Heartbeat)}
		s.queueAbove = uint16(min(max(standsAbove, int64(cfg.Heartbeat))/int64(time.Millisecond), math.MaxUint16))
		s.patience = int64(cfg.ResendDelay)
	}
	s.lossDelay = int64(cfg.LossDelay)
	s.judgeAt = s.lossDelay
	s.maxEvent = int16(cfg.MaxEvent)
	s.overhead = int16(cfg.MaxDatagram - cfg.maxPayload())
	s.maxUndelivered = eventWindow + cfg.Backlog
	s.budget.rate = int64(cfg.EventRate)
	s.log.init(cfg.Outcomes)
}

// room returns how many events may be queued.
func (s *sender) room() int { return s.maxUndelivered - s.outbox.undelivered }

// add queues an event.
func (s *sender) add(event []byte) (id uint16) {
	if !s.awake {
		s.window, s.awake = s.rule.wake(&s.log, &s.path), true
	}
	s.budget.note(len(event))
	s.window.queue(eventOverhead + len(event))
	return s.outbox.add(event)
}

// number gives a datagram of type t that leaves now its sequence.
func (s *sender) number(t Type, now int64) (seq uint16) {
	if s.log.full() && !s.log.mayForgetOldest() {
		s.makeRoom(now)
	}
	s.stats.DatagramsSent++
	return s.log.add(t, now)
}

// halfway reports whether the next datagram would be half of all sequences after
// the newest one acknowledged: from there on an old acknowledgement might name a
// datagram of a turn later, and count its events as delivered (P-3.1.4).
func (s *sender) halfway() bool { return s.log.count-s.log.top >= 1<<15 }

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
	return (s.outbox.freshDue() || s.copyDue()) && s.window.open(now)
}

// fits reports whether an event may go in a list of so many bytes: the oldest that is
// due, or in a bundle, while nothing is acknowledged, the oldest.
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

// ride reports whether the oldest events ride in a bundle with room for so many bytes
// of a list, because nothing is acknowledged any more.
func (s *sender) ride(limit int, now int64) bool {
	o := &s.outbox
	if o.base == o.fresh || now < s.budget.allowedAt() {
		return false
	}
	e := o.get(o.base)
	return listOverhead+e.cost() <= min(limit, maxRiders) && s.rule.cutOff(e, &s.path, now)
}

// collect marks the events of which a further copy is due now in such a datagram;
// copyDue goes by that time.
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
	before := *e // which is put back: a copy to look ahead with would be allocated
	s.noteTry(e, s.rule.presumeLost(e, s.overtaken(e), &s.path, at))
	at = max(at, saturatingAdd(e.last, s.rule.backsOff(e, &s.path)))
	*e = before
	return at
}

// makeDue makes an event due of which the last copy is presumed lost.
func (s *sender) makeDue(number int64, e *pending) {
	s.outbox.due.add(uint16(number))
	if e.inFlight() {
		e.state &^= isInFlight
		s.window.miss(e.cost())
	}
}

// release makes those events due that have backed off, or need not any more because
// an older one was delivered since.
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
	if at = now; !s.outbox.freshDue() || full {
		at, ok = s.nextCopy(now, full)
		if !ok {
			return at, false
		}
	}
	if crowded {
		at = max(at, s.window.opensAt())
	}
	return at, true
}

// nextCopy returns when a further copy of an event will be due and may be sent;
// math.MaxInt64 and not ok if none will. full says that those which are due may not.
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
		at = allowed
		if o.base < o.fresh {
			at = min(at, s.owedAt())
		}
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

// packing is the list of events that the datagram at hand gets.
type packing struct {
	out   []byte
	limit int // of the length of out
	small int // the limit for events that were retransmitted often
	count int
	in    carrier
	seq   uint16
	first int64 // where the datagram's runs begin
}

// takes reports whether an event fits after those that are in the list.
func (l *packing) takes(e *pending) bool {
	return l.count < maxListEvents && e.fits(len(l.out), l.limit, l.in)
}

// narrow keeps the list small for an event that was retransmitted often, and reports
// whether the event may come after those that are in it.
func (l *packing) narrow(e *pending) (ok bool) {
	whole := len(l.out) + e.cost()
	switch {
	case e.passedBy < smallAfter:
	case e.passedBy >= aloneAfter:
		l.limit = min(l.limit, whole)
		return l.count == 0
	case l.count == 0:
		l.limit = min(l.limit, max(l.small, whole))
	default:
		l.limit = min(l.limit, l.small)
	}
	return true
}

// appendEvents appends a list of the events that were collected, and of new ones, at
// most limit bytes, as carried by the datagram seq: lowest id first, up to the first
// that does not fit, or nothing if none is due and fits (P-6.4.2). A datagram whose outcome is
// known, or that was never numbered, carries nothing; nor does one that has a list
// already when another datagram got one since.
func (s *sender) appendEvents(dst []byte, seq uint16, limit int, in carrier, now int64) []byte {
	number, ok := s.log.lookup(seq)
	if !ok || !s.log.remembered(number) {
		return dst
	}
	stamp := s.log.stamps.At(number)
	if *stamp&outcomeMask != undecided {
		return dst
	}
	carries := *stamp&carriesEvents != 0
	first, ok := s.outbox.log.firstRunFor(seq, carries)
	if !ok {
		return dst
	}
	var l packing // set field by field: a literal would be copied, right after it was written
	l.out, l.limit = append(dst, 0), len(dst)+min(limit, maxListSize)
	l.small = len(dst) + smallDatagram - int(s.overhead)
	l.in, l.seq, l.first = in, seq, first
	switch {
	case in == bundle && s.ride(min(limit, maxListSize), s.asOf):
		s.appendRiders(&l, now)
	case s.outbox.due.n == 0 || s.appendCopies(&l, now):
		s.appendFirstCopies(&l, now)
	}
	if l.count == 0 {
		return dst
	}
	s.window.sent(len(l.out)-len(dst), now)
	l.out[len(dst)] = byte(l.count)
	if !carries {
		s.outbox.log.index.note(number, first, s.log.first, first == s.outbox.log.first)
		*stamp |= carriesEvents
	}
	return l.out
}

// appendCopies adds the further copies that are due, and reports whether all of them
// found room. All count as sent now (P-6.4.4).
func (s *sender) appendCopies(l *packing, now int64) (all bool) {
	o := &s.outbox
	for s.copyDue() {
		number := o.lowestDue()
		e := o.get(number)
		if !l.narrow(e) || !l.takes(e) {
			return false
		}
		l.out = appendEvent(l.out, uint16(number), o.data(e))
		l.count++
		at := o.log.runFor(number, l.first)
		e.last, e.run = now, uint32(at)
		s.depart(e)
		e.plan.spend()
		s.noteRun(at, number, 1, l.seq)
		o.due.remove(uint16(number))
		s.budget.spend(int(e.size), s.asOf, now)
		s.stats.EventsResent++
		if e.proactive() {
			s.stats.EventsAhead++
		}
	}
	return true
}

// appendFirstCopies adds events that were never sent, as far as the window of ids and
// the rule let them go.
func (s *sender) appendFirstCopies(l *packing, now int64) {
	o := &s.outbox
	if !o.freshDue() {
		return
	}
	plan := s.rule.plan(now)
	number, out, bytes := o.fresh, l.out, 0 // in registers: this loop is what events cost
	limit, in := l.limit, l.in
	at := o.log.runFor(number, l.first)
	end := min(o.end, o.base+eventWindow, number+int64(maxListEvents-l.count))
	for ; number < end; number++ {
		e := o.get(number)
		if !e.fits(len(out), limit, in) {
			break
		}
		out = appendEvent(out, uint16(number), o.data(e))
		e.first, e.last, e.run, e.plan, e.state = now, now, uint32(at), plan, isInFlight
		bytes += e.cost()
	}
	if n := int(number - o.fresh); n > 0 {
		s.noteRun(at, o.fresh, n, l.seq)
		o.fresh = number
		s.window.fly(bytes)
		o.log.planned = o.log.planned || plan.left > 0
		s.stats.EventsSent += uint64(n)
		l.out = out
		l.count += n
	}
}

// depart notes that an event is in flight.
func (s *sender) depart(e *pending) {
	if !e.inFlight() {
		e.state |= isInFlight
		s.window.fly(e.cost())
	}
}

// maxRiders is how many bytes of events ride in each datagram while nothing is
// acknowledged: fewer, and those of half a second would not all be in the first that
// passes; more, and what is sent into the dark anyway would grow tenfold.
const maxRiders = 600

// appendRiders adds the oldest undelivered events, and new ones after them. The copies
// of the former are extra ones: they leave the times as they are at which copies in
// datagrams of their own are due.
func (s *sender) appendRiders(l *packing, now int64) {
	o := &s.outbox
	most := l.limit
	l.limit = min(most, len(l.out)-listOverhead+maxRiders)
	for number := o.base; number < o.fresh && s.asOf >= s.budget.allowedAt(); number++ {
		e := o.get(number)
		if e.delivered() {
			continue
		}
		if l.count == maxListEvents || len(l.out)+e.cost() > l.limit {
			return
		}
		l.out = appendEvent(l.out, uint16(number), o.data(e))
		l.count++
		s.noteRun(o.log.runFor(number, l.first), number, 1, l.seq)
		s.budget.spend(int(e.size), s.asOf, now)
		s.stats.EventsResent++
	}
	if l.limit = most; s.window.open(s.asOf) {
		s.appendFirstCopies(l, now)
	}
}

// noteRun notes that a datagram carries n events, in the run that runFor returned. A
// full log first lets go of what nobody will ask for.
func (s *sender) noteRun(at, number int64, n int, seq uint16) {
	if at == s.outbox.log.end && s.outbox.log.full() {
		s.releaseRuns()
	}
	s.outbox.log.note(at, number, n, seq)
}

// releaseRuns drops the oldest runs that nobody will ask for: their events are
// delivered, or their datagram is forgotten and the cursors are past them.
func (s *sender) releaseRuns() {
	o := &s.outbox
	for passed := o.passed(); o.log.first < passed; o.log.first++ {
		r := o.log.runs.At(o.log.first)
		if n, ok := s.log.lookup(r.seq); !r.settled(o.base) && ok && s.log.remembered(n) {
			return
		}
	}
}

// trim gives back memory that was not needed lately.
func (s *sender) trim(busy bool, now int64) {
	if s.awake && !busy && s.outbox.undelivered == 0 {
		s.rule.rest()
		s.window, s.awake = nil, false
	}
	s.trimLog(busy, now)
	s.outbox.trim(busy)
	s.outcomes.trim(busy)
}

// trimLog gives back memory of the log of what was sent, but for what must be
// remembered and what the next loss would take.
func (s *sender) trimLog(busy bool, now int64) {
	oldest := s.log.first
	for oldest < s.log.count && !s.awaited(oldest, now) {
		oldest++
	}
	floor := minRememberedSent
	if now < s.losses.until {
		floor = rememberedSent
	}
	inFlight := min(s.log.most.Room(0, trim.ModestElements, busy), rememberedSent/2) // no more than a loss would take
	sent := int(s.log.count - s.losses.sentAtTrim)
	toALoss := min(s.losses.reach.Room(0, maxRememberedSent, busy), sent) // less where less is sent by now
	need := max(int(s.log.count-oldest), inFlight, toALoss, 1)
	s.losses.sentAtTrim = s.log.count
	if n := trim.Length(need, floor); n < len(s.log.stamps) {
		s.log.resize(n)
		s.outbox.log.index.shrink(n)
	}
}

// end frees what is kept to send events, but for those that are undelivered.
// Outcomes stay.
func (s *sender) end() { s.outbox.clear() }

// snapshot fills in the counters of this half.
func (s *sender) snapshot(to *Stats) {
	n := &s.stats
	to.DatagramsSent, to.BytesSent = n.DatagramsSent, n.BytesSent
	to.Delivered, to.Lost, to.LateAcks, to.OutcomesDropped = n.Delivered, n.Lost, n.LateAcks, n.OutcomesDropped
	to.EventsSent, to.EventsResent, to.EventsAhead = n.EventsSent, n.EventsResent, n.EventsAhead
	to.EventsDelivered = n.EventsDelivered
	to.Undecided = int(n.DatagramsSent - n.Delivered - n.Lost)
	to.RTT = time.Duration(s.path.rtt.Smoothed())
	to.RTTVar = time.Duration(s.path.rtt.Variation())
	to.MinRTT = time.Duration(s.path.floor())
	to.QueueDelay = time.Duration(s.path.queue(newestSamples))
}
