package ackbits

import (
	"iter"
	"time"
)

// Session: the calls of an application, in the order in which datagrams and events
// travel. The protocol's rules are in the halves that channel.go joins, its timers in
// heartbeat.go, the configuration in config.go.

// Session is one peer's side of a connection: bytes in, bytes out. The package comment
// shows the loop. Its methods may be called in any order. It is not safe for concurrent
// use.
type Session struct {
	time       timeline
	live       liveness
	token      uint64
	format     byte // the first byte of every datagram of this session
	bundle     bool
	ordered    bool
	maxPayload int
	sealing    *sealing // nil: bare
	bytesSent  uint64
	channel    channel
}

// NewSession returns a session that begins now. If a value of cfg is negative or
// contradicts another, the error is ErrConfig and names it.
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

// Receive accepts or refuses a datagram of the peer. On an error of input (ErrShort,
// ErrOversize, ErrFormat, ErrToken, ErrReplayed, ErrForged, ErrType, ErrPayload,
// ErrWindow, ErrRejected) the datagram was dropped: it is not acknowledged, and only a
// counter changed; a sealed datagram that was authentic is also remembered, so that it
// cannot be replayed. Once the session has ended, the error is the reason.
//
// Receive does not keep datagram, but what it returns is part of it, and valid until
// the next Receive. A sealed session opens the datagram in place, and so overwrites it,
// even if the result is ErrForged. Call AppendDue or Due after each Receive; otherwise
// a burst could push datagrams out of the ack window before they are acknowledged
// (P-6.1.2).
//
// A Disconnect ends the session: Receive returns nil, and Err then ErrPeerLeft.
func (s *Session) Receive(datagram []byte) (in Incoming, err error) {
	now := s.time.read()
	if s.channel.err != nil {
		return Incoming{}, s.channel.err
	}
	payload, err := in.parse(datagram)
	if err != nil || datagram[0] != s.format || in.Token != s.token { // P-2.1.4, P-2.1.5
		err = s.refusal(datagram, err)
		s.channel.refuse(err)
		return Incoming{}, err
	}
	if s.sealing != nil {
		if payload, err = s.open(datagram, payload, in.Sequence); err != nil {
			return Incoming{}, err
		}
	}
	if err := s.channel.receive(&in, payload, len(datagram), now); err != nil {
		return Incoming{}, err
	}
	if in.Arrival == Newest || in.Arrival == Late { // or a reflection would keep the session alive (P-8.1.1)
		s.live.heardAt = now
	}
	if in.Type == TypeDisconnect && in.Arrival == Newest { // a genuine one always is Newest (P-8.4.4); its acknowledgements were read before (P-2.3.6)
		s.channel.end(ErrPeerLeft)
	} else if s.live.drained(s.InFlight()) {
		s.leave(now)
	}
	return in, nil
}

// refusal returns the error for a datagram that is not of this session. err is the error
// of parsing its header. The format is checked right after the size (P-2.3.2).
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

// open opens a datagram of a sealed session, and counts those that it refuses.
func (s *Session) open(datagram, payload []byte, seq uint16) (plain []byte, err error) {
	err = ErrShort
	if len(datagram) >= s.sealing.least() {
		if plain, err = s.sealing.open(datagram, payload, seq); err == nil {
			return plain, nil
		}
	}
	if s.channel.refuse(err); s.channel.forged() >= maxForged {
		s.channel.end(s.live.reason(ErrKeyExhausted))
	}
	return nil, err
}

// Send queues a copy of event, which may be empty, and returns its id; AppendDue sends
// it. On an error nothing was queued: ErrEventTooLarge for more than MaxEvent bytes;
// ErrUnacknowledged, which ends the session, if 256 + Backlog events are undelivered
// already (see Room); ErrClosed after Close or Shutdown; the reason, if the session has
// ended.
func (s *Session) Send(event []byte) (id uint16, err error) {
	s.time.read()
	if err := s.closed(); err != nil {
		return 0, err
	}
	return s.channel.send(event)
}

// AppendDatagram appends an application datagram to dst, for the caller to send once and
// now, and returns its sequence. t must be 1 to 4 or 16 to 255, else ErrReservedType;
// payload at most MaxPayload bytes, else ErrDatagramTooLarge. After Close or Shutdown
// the error is ErrClosed; once the session has ended it is the reason, and this call
// may find it (ErrStalled, ErrKeyExhausted; P-2.2.4). On an error dst is returned
// unchanged. payload is copied and must not lie in the spare capacity of dst.
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
		s.exhaust()
		return dst, 0, s.channel.err
	}
	carries := s.bundle && t > TypeAccept && !s.channel.withheld() // a server must recognise a Connect from strangers (P-10.1.6)
	if carries {
		s.channel.carrierSent(now)
	}
	h := Header{Type: t}
	s.assign(&h, now) // once and never again (P-6.2.1)
	limit := s.maxPayload - len(payload) - bundleOverhead
	if !carries || !s.channel.fits(limit, bundle, now) {
		return s.finish(append(h.appendTo(dst), payload...), len(dst)), h.Sequence, nil
	}
	h.Type = TypeBundle // P-10.1.4
	out = append(h.appendTo(dst), byte(t))
	out = s.channel.appendEvents(out, h.Sequence, limit, bundle, now)
	return s.finish(append(out, payload...), len(dst)), h.Sequence, nil
}

// AppendDue appends the next datagram that is due to dst: events, a heartbeat, or, while
// the session is leaving, a Disconnect. If none is due, ok is false and dst is returned
// unchanged. Only AppendDue and Due detect a timeout or stall: after a pause, pass what
// has arrived to Receive first (P-6.1.4).
//
// Due is an iterator over AppendDue. A loop of your own must bound its time: if writing
// is slow, more becomes due while it writes, and it might never return to receiving.
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

// appendDue appends the next datagram that was due at asOf; it is sent now. It checks
// what is due in the order of P-6.1.1; Event datagrams follow each other as long as
// events are due (P-6.4.3).
func (s *Session) appendDue(dst []byte, asOf, now int64) (out []byte, ok bool) {
	if now < s.channel.quietUntil && !s.channel.recheck || s.channel.err != nil {
		return dst, false
	}
	s.channel.judge(now)
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
	events := s.channel.eventsDue(asOf)
	if !events && !s.heartbeatDue(asOf) {
		s.channel.quiet(s.dueAt())
		return dst, false
	}
	if s.exhausted() {
		s.exhaust()
		return dst, false
	}
	if events {
		return s.appendEvents(dst, now), true
	}
	return s.appendEmpty(dst, TypeHeartbeat, now), true
}

// dueAt returns when something will be due, if nothing is called until then (P-6.6.1).
func (s *Session) dueAt() int64 {
	at := min(s.live.timesOutAt(), s.stallsAt(), s.live.beatsAt())
	if s.live.draining {
		at = min(at, s.live.leaveBy)
	}
	if events, ok := s.channel.nextEvents(s.time.now); ok {
		at = min(at, events)
	}
	if s.channel.ackDue() {
		at = min(at, s.time.now)
	}
	return at
}

// appendLeaving appends what a leaving session still sends: the events that were never
// sent, as far as the window allows, then the Disconnects. After the last of them the
// session ends (P-8.4.2).
func (s *Session) appendLeaving(dst []byte, now int64) (out []byte, ok bool) {
	switch {
	case s.exhausted():
		s.exhaust()
		return dst, false
	case s.live.disconnects == disconnectCopies && s.channel.freshDue():
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
	h.Type = TypeEvent
	s.assign(&h, now)
	return s.finish(s.channel.appendEvents(h.appendTo(dst), h.Sequence, s.maxPayload, ownDatagram, now), len(dst))
}

// appendEmpty appends a datagram of a type without payload.
func (s *Session) appendEmpty(dst []byte, t Type, now int64) []byte {
	h := Header{Type: t}
	s.assign(&h, now)
	return s.finish(h.appendTo(dst), len(dst))
}

// assign numbers a datagram and fills in the rest of its header.
func (s *Session) assign(h *Header, now int64) {
	s.channel.nextHeader(h, now)
	h.Token = s.token
	h.Sealed = s.sealing != nil
	s.live.sentAt = now
}

// exhausted reports whether no further datagram may be numbered. The session must end
// then; see exhaust.
func (s *Session) exhausted() bool {
	return s.channel.halfway() || s.sealing != nil && s.channel.numbered() >= maxSealed
}

// exhaust ends a session that is exhausted.
func (s *Session) exhaust() {
	reason := ErrKeyExhausted
	if s.channel.halfway() {
		reason = ErrStalled
	}
	s.channel.end(s.live.reason(reason))
}

// finish seals the datagram that begins at start, which was numbered last, and counts
// its bytes.
func (s *Session) finish(out []byte, start int) []byte {
	if s.sealing != nil {
		out = s.seal(out, start)
	}
	s.bytesSent += uint64(len(out) - start)
	return out
}

// seal is apart so that finish can be inlined.
//
//go:noinline
func (s *Session) seal(out []byte, start int) []byte {
	return s.sealing.seal(out, start, s.channel.numbered()-1)
}

// Due yields every datagram that is due: an iterator over AppendDue. Each is built in
// buf, from its start, and valid until the next; MaxDatagramSize bytes suffice for all.
// If the loop breaks, the rest stays due.
//
// Due yields what is due when the loop begins, so that it ends even if writing is slow.
// Each datagram counts as sent when it is yielded. An event that is passed to Send
// inside the loop may still be sent in it (P-6.1.3).
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

// NextOutcome returns the next outcome, in the order in which they were decided; ok is
// false if there is none, or Config.Outcomes is not set. Every datagram sent gets one
// outcome: delivered at its first acknowledgement, or lost smoothed RTT + LossDelay
// after it was sent. The queue holds 1,024 outcomes; beyond that the oldest is dropped
// and counted in Stats.OutcomesDropped. NextOutcome works after the end, too.
func (s *Session) NextOutcome() (o Outcome, ok bool) { return s.channel.nextOutcome(s.time.read()) }

// Deadline returns when AppendDue next has something to do, as far as the last call
// knew; any call of Send, AppendDatagram, Receive, AppendDue, Due, Shutdown or Close may
// change it. ok is false once the session has ended.
func (s *Session) Deadline() (t time.Time, ok bool) {
	if s.channel.err != nil {
		return time.Time{}, false
	}
	if s.live.leaving {
		return s.time.time(s.live.leftAt), true
	}
	return s.time.time(s.dueAt()), true
}

// Close begins to leave. From then on there is no timeout, stall, retransmission or
// heartbeat. AppendDue returns the events that were never sent, as far as the window
// allows, then three Disconnects, all without delay, and then ends the session with
// ErrClosed. Until then Receive works as before. Events sent just before Close are sent
// once; to be sure that they are delivered, use Shutdown.
func (s *Session) Close() {
	now := s.time.read()
	if s.channel.err == nil && !s.live.leaving {
		s.leave(now)
	}
}

// Shutdown waits until all events of this side are delivered, for at most patience, and
// then leaves as Close does. From now on Send and AppendDatagram return ErrClosed;
// everything else goes on while it waits: receiving, retransmissions, heartbeats,
// timeout and stall. A second call can only shorten the wait, Close ends it, and a
// patience of 0 or less is the same as Close. When both sides shut down, the first
// whose events are all delivered leaves; what the other had not delivered by then is in
// its Undelivered.
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

// leave begins to leave; nothing is retransmitted from now on (P-8.4.1, P-8.4.3).
func (s *Session) leave(now int64) {
	s.live.leave(now)
	s.channel.quietUntil = 0 // from now on AppendDue always has something to do
	s.channel.sendNoCopies()
}

// closed returns why the application can send nothing more, or nil if it can.
func (s *Session) closed() error {
	if s.channel.err == nil && s.live.closing() {
		return ErrClosed
	}
	return s.channel.err
}

// Undelivered yields the events that are not known to be delivered, by id, including
// those that were never sent: to send them again over a new session, or to log them. It
// works after the end, too. With Config.Ordered, which should be set alike at both ends,
// it yields every event from the oldest undelivered one on, because the peer delivers
// nothing behind a missing event. Some of them may have arrived, since the peer's last
// acknowledgements are lost with the session: the application must tolerate an event
// that comes twice, or recognise it by its contents.
//
// Data is valid until the next call of a method of the session, which the loop must not
// make; after the end it stays valid.
func (s *Session) Undelivered() iter.Seq[Event] {
	return func(yield func(Event) bool) {
		s.channel.waiting(s.ordered, yield)
	}
}

// Err returns why the session has ended, or nil if it has not. It reports what the last
// call found and reads no clock.
func (s *Session) Err() error { return s.channel.err }

// RTT returns the smoothed round-trip time (RFC 6298); 0 before the first sample. It
// includes the peer's wait for its next datagram, up to a tick.
func (s *Session) RTT() time.Duration { return s.channel.smoothedRTT() }

// MaxPayload returns how many bytes of payload an application datagram may have.
func (s *Session) MaxPayload() int { return s.maxPayload }

// MaxEvent returns how many bytes an event may have.
func (s *Session) MaxEvent() int { return s.channel.eventLimit() }

// InFlight returns how many events are not known to be delivered, including those that
// were not sent yet. After the end it is how many were so at the end.
func (s *Session) InFlight() int { return s.channel.inFlight() }

// Room returns how many more events Send accepts before it ends the session with
// ErrUnacknowledged, for callers who would rather slow down; 0 after Close, Shutdown or
// the end.
func (s *Session) Room() int {
	if s.live.closing() {
		return 0
	}
	return s.channel.room()
}

// Stats returns the counters.
func (s *Session) Stats() Stats {
	st := s.channel.snapshot()
	st.BytesSent = s.bytesSent
	return st
}
