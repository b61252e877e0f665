package ackbits

// How events are packed into a datagram. These are methods of the sending half. Which
// events are due was decided in due.go; which datagram carried which is recorded in
// copylog.go.

// packing is the list of events that is being packed into a datagram.
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

// narrow limits the list to a small size for an event that was retransmitted often, and
// reports whether the event may be added to it.
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

// appendEvents appends a list of the events that were collected, and of new ones, for the
// datagram seq: at most limit bytes, lowest id first, up to the first event that does not
// fit. If none is due and fits, it appends nothing (P-6.4.2). A datagram whose outcome is
// known, or that was never numbered, carries nothing. Nor does one that has a list
// already if another datagram got a list since.
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
// acknowledged. Fewer, and the first datagram that passes would not carry all events of
// half a second; more, and ten times as much would be sent while nothing may arrive
// anyway.
const maxRiders = 600

// appendRiders adds the oldest undelivered events, and new ones after them. Copies of
// events that were sent before are extra ones here: they do not change when copies in
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

// noteRun notes that a datagram carries n events, in the run that runFor returned. If the
// log is full, runs that are not needed any more are released first.
func (s *sender) noteRun(at, number int64, n int, seq uint16) {
	if at == s.outbox.log.end && s.outbox.log.full() {
		s.releaseRuns()
	}
	s.outbox.log.note(at, number, n, seq)
}

// releaseRuns frees the oldest runs that are not needed any more: their events are
// delivered, or their datagram is forgotten and the cursors have passed them.
func (s *sender) releaseRuns() {
	o := &s.outbox
	for passed := o.passed(); o.log.first < passed; o.log.first++ {
		r := o.log.runs.At(o.log.first)
		if n, ok := s.log.lookup(r.seq); !r.settled(o.base) && ok && s.log.remembered(n) {
			return
		}
	}
}
