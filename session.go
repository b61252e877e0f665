package ackbits

import (
	"iter"
	"time"
)

// Session is one peer's side of a connection: bytes in, bytes out. The package
// comment shows the loop. No order of calls is illegal. It is not safe for
// concurrent use.
type Session struct {
	time       timeline
	live       liveness
	token      uint64
	format     byte // of every datagram, ours and the peer's
	bundle     bool
	ordered    bool
	maxPayload int
	sealing    *sealing // nil: bare
	channel    channel
}

// NewSession returns a session that begins now. A value of cfg that is negative
// or contradicts another is ErrConfig, and the error names it.
func NewSession(cfg Config) (*Session, error) {
	if err := cfg.complete(); err != nil {
		return nil, err
	}
	s := &Session{
		token: cfg.Token, format: format(cfg.Wide, cfg.Seal != nil), bundle: cfg.Bundle, ordered: cfg.Ordered,
		maxPayload: cfg.maxPayload(), sealing: newSealing(&cfg),
	}
	s.time.start(cfg.Clock)
	s.channel.init(&cfg)
	s.live.init(&cfg)
	return s, nil
}

// Receive takes in a datagram of the peer. With an error of input (ErrShort,
// ErrOversize, ErrFormat, ErrToken, ErrReplayed, ErrForged, ErrType, ErrPayload,
// ErrWindow, ErrRejected) it was dropped: it is not acknowledged and nothing but a
// counter changed, and if it opened, that it cannot come again. Of a session that
// has ended Receive returns the reason.
//
// Receive does not keep datagram, but what it returns is part of it, and valid
// until the next Receive. A sealed session opens it in place, and so overwrites it,
// after ErrForged too. Call AppendDue after each Receive: otherwise a burst could
// outrun the acknowledgements (P-6.1.2).
//
// A Disconnect ends the session: Receive returns nil, Err returns ErrPeerLeft.
func (s *Session) Receive(datagram []byte) (in Incoming, err error) {
	now := s.time.read()
	if s.channel.err != nil {
		return Incoming{}, s.channel.err
	}
	payload, err := in.parse(datagram)
	if err != nil || datagram[0] != s.format || in.Token != s.token { // P-2.1.4, P-2.1.5
		s.channel.receiver.stats.Rejected++
		return Incoming{}, s.refusal(datagram, err)
	}
	if s.sealing != nil {
		if payload, err = s.open(datagram, payload, in.Sequence); err != nil {
			return Incoming{}, err
		}
	}
	if err := s.channel.receive(&in, payload, len(datagram), now); err != nil {
		return Incoming{}, err
	}
	if in.Arrival == Newest || in.Arrival == Late { // else an echo would keep a session alive (P-8.1.1)
		s.live.heardAt = now
	}
	if in.Type == TypeDisconnect && in.Arrival == Newest { // as a true one always is (P-8.4.4), and after its acknowledgements (P-2.3.6)
		s.channel.end(ErrPeerLeft)
	} else if s.live.drained(s.InFlight()) {
		s.leave(now)
	}
	return in, nil
}

// refusal returns the error for a datagram that is not of this session, err
// being what its header alone gave rise to. Another format is refused as such
// before anything else is said of it, but for its size (P-2.3.2).
func (s *Session) refusal(datagram []byte, err error) error {
	switch n := len(datagram); {
	case n < HeaderSize || n > MaxDatagramSize:
		return err
	case datagram[0] != s.format:
		return ErrFormat
	case s.sealing != nil && n < s.sealing.least():
		return ErrShort
	case err != nil:
		return err
	}
	return ErrToken
}

// open opens a datagram of a sealed session.
func (s *Session) open(datagram, payload []byte, seq uint16) (plain []byte, err error) {
	if len(datagram) < s.sealing.least() {
		s.channel.receiver.stats.Rejected++
		return nil, ErrShort
	}
	plain, err = s.sealing.open(datagram, payload, seq)
	if err == nil {
		return plain, nil
	}
	s.channel.receiver.stats.Rejected++
	if err == ErrReplayed {
		s.channel.receiver.stats.Replayed++
		return nil, err
	}
	s.channel.receiver.stats.Forged++
	if s.channel.receiver.stats.Forged >= maxForged {
		s.channel.end(s.live.reason(ErrKeyExhausted))
	}
	return nil, err
}

// Send queues an event for AppendDue and returns its id. It copies the bytes,
// of which there may be none. Once the session was closed or has ended, it
// returns the reason; ErrEventTooLarge, for more than MaxEvent bytes, ends
// nothing; the event that would make more than 256 + Backlog undelivered ends
// the session with ErrUnacknowledged and is not queued.
func (s *Session) Send(event []byte) (id uint16, err error) {
	s.time.read()
	if err := s.closed(); err != nil {
		return 0, err
	}
	return s.channel.send(event)
}

// AppendDatagram appends a datagram of the application's to dst, for the caller
// to send, and returns its sequence. The type is 1 to 4 or 16 to 255, else
// ErrReservedType; the payload is at most MaxPayload bytes, else
// ErrDatagramTooLarge; once the session was closed or has ended, which this call may
// find (ErrStalled, ErrKeyExhausted), the error is the reason (P-2.2.4). On an error
// dst comes back as it was. The payload must not lie in dst's spare capacity.
func (s *Session) AppendDatagram(dst []byte, t Type, payload []byte) (out []byte, seq uint16, err error) {
	now := s.time.read()
	if err := s.closed(); err != nil {
		return dst, 0, err
	}
	if !t.application() {
		return dst, 0, &valueError{ErrReservedType, t.String()}
	}
	if len(payload) > s.maxPayload {
		return dst, 0, tooLarge(ErrDatagramTooLarge, len(payload), s.maxPayload)
	}
	if s.exhausted() {
		return dst, 0, s.channel.err
	}
	carries := s.bundle && t > TypeAccept // a server looks for a Connect from strangers (P-10.1.6)
	if carries {
		s.channel.carrierSent(now)
	}
	var h Header
	s.assign(&h, t, now) // once and never again (P-6.2.1)
	limit := s.maxPayload - len(payload) - bundleOverhead
	if !carries || !s.channel.sender.fits(limit, bundle, now) {
		return s.finish(dst, append(h.appendTo(dst), payload...)), h.Sequence, nil
	}
	h.Type = TypeBundle // P-10.1.4
	out = append(h.appendTo(dst), byte(t))
	out = s.channel.appendEvents(out, h.Sequence, limit, bundle, now)
	return s.finish(dst, append(out, payload...)), h.Sequence, nil
}

// AppendDue appends the next datagram that is due to dst: events, a heartbeat,
// or after Close what is still to be said. It is not ok if none is due, and dst
// comes back as it was. It is here that a session finds out that it has timed out
// or stalled: after a pause hand in what has arrived first (P-6.1.4).
//
// Due is the loop over it. One by hand must end by itself where writing is slow,
// or what comes due while it writes keeps it from what has arrived:
//
//	for began := time.Now(); time.Since(began) < 10*time.Millisecond; {
//		datagram, ok := s.AppendDue(buf[:0])
//		if !ok {
//			break
//		}
//		conn.Write(datagram)
//	}
func (s *Session) AppendDue(dst []byte) (out []byte, ok bool) {
	now := s.time.read()
	return s.appendDue(dst, now, now)
}

// appendDue appends the next datagram of what was due at asOf, sent now: the first of
// what P-6.1.1 names, Event datagrams as long as events are due (P-6.4.3).
func (s *Session) appendDue(dst []byte, asOf, now int64) (out []byte, ok bool) {
	if now < s.channel.quietUntil && !s.channel.recheck || s.channel.err != nil {
		return dst, false
	}
	s.channel.sender.judge(now)
	if s.live.draining && asOf >= s.live.leaveBy {
		s.leave(now)
	}
	if s.live.leaving {
		return s.appendLeaving(dst, now)
	}
	if reason := s.expired(asOf); reason != nil {
		s.channel.end(reason)
		return dst, false
	}
	events := s.channel.sender.eventsDue(asOf)
	if !events && !s.heartbeatDue(asOf) {
		s.channel.quietUntil = min(s.dueAt(), s.channel.sender.judgeAt)
		s.channel.recheck = false
		return dst, false
	}
	if s.exhausted() {
		return dst, false
	}
	if events {
		return s.appendEvents(dst, now), true
	}
	return s.appendEmpty(dst, TypeHeartbeat, now), true
}

// dueAt returns when something will be due, if nothing comes up until then (P-6.6.1).
func (s *Session) dueAt() int64 {
	at := min(s.live.timesOutAt(), s.stallsAt(), s.live.beatsAt())
	if s.live.draining {
		at = min(at, s.live.leaveBy)
	}
	if events, ok := s.channel.sender.nextEvents(s.time.now); ok {
		at = min(at, events)
	}
	if s.channel.receiver.ackDue() {
		at = min(at, s.time.now)
	}
	return at
}

// appendLeaving appends what a closed session still sends: events that were
// never sent, as far as the span allows, then the Disconnects. After the last
// the session ends (P-8.4.2).
func (s *Session) appendLeaving(dst []byte, now int64) (out []byte, ok bool) {
	switch {
	case s.exhausted():
		return dst, false
	case s.live.disconnects == disconnectCopies && s.channel.sender.freshDue(now):
		return s.appendEvents(dst, now), true
	case s.live.disconnects > 0:
		s.live.disconnects--
		return s.appendEmpty(dst, TypeDisconnect, now), true
	}
	s.channel.end(ErrClosed)
	return dst, false
}

// appendEvents appends an Event datagram; an event must be due.
func (s *Session) appendEvents(dst []byte, now int64) []byte {
	var h Header
	s.assign(&h, TypeEvent, now)
	return s.finish(dst, s.channel.appendEvents(h.appendTo(dst), h.Sequence, s.maxPayload, ownDatagram, now))
}

// appendEmpty appends a datagram without payload.
func (s *Session) appendEmpty(dst []byte, t Type, now int64) []byte {
	var h Header
	s.assign(&h, t, now)
	return s.finish(dst, h.appendTo(dst))
}

// assign numbers a datagram and fills in its header.
func (s *Session) assign(h *Header, t Type, now int64) {
	s.channel.nextHeader(h, t, now)
	h.Token = s.token
	h.Sealed = s.sealing != nil
	s.live.sentAt = now
}

// exhausted reports whether no further datagram may be numbered, which ends the
// session; one that was leaving has left.
func (s *Session) exhausted() bool {
	switch {
	case s.channel.sender.halfway():
		s.channel.end(s.live.reason(ErrStalled))
	case s.sealing != nil && s.channel.sender.log.count >= maxSealed:
		s.channel.end(s.live.reason(ErrKeyExhausted))
	default:
		return false
	}
	return true
}

// finish seals the datagram that was numbered last and appended to dst, and counts
// its bytes.
func (s *Session) finish(dst, out []byte) []byte {
	if s.sealing != nil {
		out = s.sealing.seal(out, len(dst), s.channel.sender.log.count-1)
	}
	s.channel.sender.stats.BytesSent += uint64(len(out) - len(dst))
	return out
}

// Due yields every datagram that is due, each built from buf[:0] and valid until
// the next: the loop over AppendDue. A buf of MaxDatagramSize bytes fits them
// all. Breaking off leaves the rest due.
//
// What is due is decided by the time at which the loop begins, so that it ends
// however slow writing is; each datagram is sent at the time at which it is asked
// for. An event that is sent inside the loop may still go in it (P-6.1.3).
func (s *Session) Due(buf []byte) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		asOf := s.time.read()
		for now := asOf; ; now = s.time.read() {
			datagram, ok := s.appendDue(buf[:0], asOf, now)
			if !ok || !yield(datagram) {
				return
			}
		}
	}
}

// NextOutcome returns the next outcome in the order in which they were decided,
// if Config.Outcomes is set: every datagram sent gets one, Delivered at its
// first acknowledgement, or lost when that is LossDelay overdue. The queue holds
// 1,024; beyond that the oldest is dropped and counted in OutcomesDropped. It
// goes on working after the end.
func (s *Session) NextOutcome() (Outcome, bool) { return s.channel.nextOutcome(s.time.read()) }

// Deadline returns when AppendDue next has something to do, as far as is known
// at the last call; any call of Send, AppendDatagram, Receive, AppendDue,
// Shutdown or Close may change it. It is not ok when the session has ended.
func (s *Session) Deadline() (t time.Time, ok bool) {
	if s.channel.err != nil {
		return time.Time{}, false
	}
	if s.live.leaving {
		return s.time.time(s.live.leftAt), true
	}
	return s.time.time(s.dueAt()), true
}

// Close begins to leave. From then on there is no timeout, stall, resend or
// heartbeat: AppendDue returns the events that were never sent, as far as the
// span allows, then three Disconnects, all at once, and then ends the session with
// ErrClosed. Until then Receive works in full. Events sent just before go out once:
// to be sure of them, use Shutdown, or wait until InFlight is 0 first.
func (s *Session) Close() {
	now := s.time.read()
	if s.channel.err == nil && !s.live.leaving {
		s.leave(now)
	}
}

// Shutdown leaves once everything is delivered, or when patience has passed, as
// Close does. From now on Send and AppendDatagram return ErrClosed; until it
// leaves, all else goes on: receiving, resends, heartbeats, timeout and stall. A
// second call can only shorten the wait, Close ends it, and a patience of 0 or less
// is Close. It tells of this side's events only: when both sides shut down, the
// first that has delivered all of its own leaves, and what the other still had is in
// the other's Undelivered.
func (s *Session) Shutdown(patience time.Duration) {
	now := s.time.read()
	if s.channel.err != nil || s.live.leaving {
		return
	}
	if s.live.drain(now, patience); s.live.drained(s.InFlight()) {
		s.leave(now)
	}
	s.channel.quietUntil = min(s.channel.quietUntil, s.live.leaveBy)
}

// leave begins the farewell, in which nothing is sent again (P-8.4.1, P-8.4.3).
func (s *Session) leave(now int64) {
	s.live.leave(now)
	s.channel.quietUntil = 0 // from now on AppendDue always has something to do
	s.channel.sender.outbox.due = idSet{}
}

// closed returns the reason for which nothing can be sent.
func (s *Session) closed() error {
	if s.channel.err == nil && s.live.closing() {
		return ErrClosed
	}
	return s.channel.err
}

// Undelivered yields the events that are not known to be delivered, those that
// were never sent included, by id: what to send again over a new session, or to
// log. It works after the end, too. With Config.Ordered, which should be set alike
// at both ends, it yields all from the oldest of them on, because the peer hands
// over nothing behind a gap. Some of them may have arrived: the peer's
// acknowledgements of the last round trip are lost with a session, so the
// application must bear an event twice, or tell by its contents.
//
// Data is valid until the next call of the session, which the loop must not make;
// after the end, for good.
func (s *Session) Undelivered() iter.Seq[Event] {
	return func(yield func(Event) bool) {
		s.channel.sender.outbox.waiting(s.ordered, yield)
	}
}

// Err returns the reason for which the session has ended; nil while it lives. It
// tells what the last call found and reads no clock.
func (s *Session) Err() error { return s.channel.err }

// RTT returns the smoothed round trip time (RFC 6298); 0 before the first
// sample. It includes the peer's wait for its next datagram, up to a tick.
func (s *Session) RTT() time.Duration { return time.Duration(s.channel.sender.path.rtt.Smoothed()) }

// MaxPayload returns how many bytes an application datagram may carry.
func (s *Session) MaxPayload() int { return s.maxPayload }

// MaxEvent returns how many bytes an event may have.
func (s *Session) MaxEvent() int { return s.channel.sender.maxEvent }

// InFlight returns how many events are not known to be delivered, those included
// that were not sent yet. After the end it tells how many stayed so.
func (s *Session) InFlight() int { return s.channel.sender.outbox.undelivered }

// Room returns how many events Send takes before it ends the session with
// ErrUnacknowledged, for callers who would rather slow down; 0 once the session
// was closed or has ended.
func (s *Session) Room() int {
	if s.live.closing() {
		return 0
	}
	return s.channel.room()
}

// Stats returns the counters.
func (s *Session) Stats() Stats { return s.channel.snapshot() }
