package ackbits

import (
	"iter"
	"strconv"
	"time"
)

// Config says how a Session or ReliableChannel works. The zero value of every
// field stands for the protocol's own choice. Both peers need the same Token and
// the same Wide; Bundle needs this library at the other end, not the same value.
type Config struct {
	// Token names the session. Take a fresh random one from the handshake: with
	// the token of an earlier session, everything looks Stale. 0 is a token like
	// any other. Both directions share it, so a datagram that comes back to its
	// sender looks like the peer's: let the socket layer check addresses.
	Token uint64
	// Clock is what every call reads once; nil is the system's.
	Clock Clock

	// Wide: headers of 22 bytes that carry 65 acknowledgements instead of 18
	// that carry 33, for rates at which 33 datagrams pass within a round trip or
	// between two datagrams of the other side. A session speaks one form.
	Wide bool
	// Ordered hands events over in the order of their ids. It keeps copies of
	// up to 255 that are ahead of a gap; nothing changes on the wire, but the
	// sender must keep to the span of 256 ids, as this library does. Events are
	// acknowledged when they arrive, so those that wait for a gap when a session
	// ends were delivered to this side but never handed over.
	Ordered bool

	// Heartbeat is the longest silence of ours; 0: 50 ms. Shorter costs
	// datagrams, longer delays acknowledgements until the peer resends for
	// nothing.
	Heartbeat time.Duration
	// Timeout is the longest silence of the peer; 0: 5 s. It must exceed
	// Heartbeat. Shorter ends sessions over a bad moment of the network, longer
	// leaves ghosts in the game.
	Timeout time.Duration
	// ResendDelay is how long an event waits for its acknowledgement until it is
	// sent again; 0: 100 ms. Below the round trip, which includes the peer's wait
	// for its next datagram, every event is sent more than once; far above it a
	// loss costs more than it must. Adaptive follows the round trip instead.
	ResendDelay time.Duration
	// LossDelay is how long after the projected arrival of its acknowledgement,
	// which is one smoothed round trip after it was sent, a datagram is taken
	// for lost; 0: 1 s. Shorter takes reordered and waiting acknowledgements for
	// losses; longer tells of losses late. Stats count a delivery at once and a
	// loss only then, so a young session seems to lose less than it does.
	LossDelay time.Duration
	// StallTimeout ends a session whose oldest undelivered event was first sent
	// so long ago, though datagrams arrive; 0: 15 s, negative: never.
	StallTimeout time.Duration
	// PollInterval is the tick of a caller that calls AppendDue on a tick rather
	// than at Deadline. Heartbeats then go early by up to that much, so that the
	// silence is never longer than Heartbeat; 0: the caller follows Deadline.
	PollInterval time.Duration

	// Backlog is how many events may be undelivered beyond the 256 that may be
	// on the wire; 65,024 at most. With 0 Send ends the session at 257.
	Backlog int
	// Outcomes queues an Outcome for every datagram sent, see NextOutcome.
	Outcomes bool

	// Adaptive resends an event when there is evidence or reason for it instead
	// of after ResendDelay: when datagrams sent after its last copy are
	// acknowledged and it is not, or nothing is for a round trip and some more;
	// and where the link is seen to lose, it sends copies of new events ahead.
	// It changes nothing on the wire and needs nothing of the peer.
	Adaptive bool
	// Bundle lets application datagrams carry events that are due (type 8), so
	// that an event costs its bytes and no datagram of its own. Call Send before
	// AppendDatagram, and AppendDue after it, for new events to ride along. A
	// peer that is not this library drops such datagrams. An event that was
	// resent twice goes in datagrams of its own from then on, for a peer that
	// withholds the ones it rode in.
	Bundle bool
	// EventRate is how many bytes of events a second, 4 + n each, resends and
	// extra copies may use, with one second of burst, half of which copies ahead
	// of a loss leave to the others; 0: no limit. First copies always go.
	EventRate int
	// MaxEvent is the largest event that Send takes, in bytes; 0, or more than
	// fits: MaxEventSize, or MaxWideEventSize.
	MaxEvent int

	// Accept decides on an application datagram before it is acknowledged; nil
	// accepts all. It is asked about Newest and Late ones only. When it returns
	// nil, this Receive commits and hands over exactly that payload, so decode
	// in it. With ErrWithhold the datagram is not acknowledged and hands over
	// nothing, the events of a bundle included, but its own acknowledgements are
	// read; any other error drops it whole. Accept must not call the session, and
	// may keep payload no longer than the caller of Receive leaves it unchanged.
	Accept func(h Header, payload []byte) error
}

// Section 5.6 and the source of the verdicts; see Config for what breaks when
// they are smaller or larger.
const (
	defaultHeartbeat    = 50 * time.Millisecond
	defaultTimeout      = 5 * time.Second
	defaultResendDelay  = 100 * time.Millisecond
	defaultLossDelay    = time.Second
	defaultStallTimeout = 15 * time.Second

	// maxBacklog keeps the ids that are in use, delivered ones behind a
	// straggler included, below 65,536.
	maxBacklog = 1<<16 - 2*nearSpan
)

// complete checks the values and puts the defaults in the place of zeros.
func (cfg *Config) complete() error {
	for _, d := range []struct {
		field string
		value *time.Duration
		zero  time.Duration
	}{
		{"Heartbeat", &cfg.Heartbeat, defaultHeartbeat},
		{"Timeout", &cfg.Timeout, defaultTimeout},
		{"ResendDelay", &cfg.ResendDelay, defaultResendDelay},
		{"LossDelay", &cfg.LossDelay, defaultLossDelay},
		{"PollInterval", &cfg.PollInterval, 0},
	} {
		if *d.value < 0 {
			return invalid(d.field, d.value.String(), "is negative")
		}
		if *d.value == 0 {
			*d.value = d.zero
		}
	}
	if cfg.StallTimeout == 0 {
		cfg.StallTimeout = defaultStallTimeout
	}
	if cfg.Heartbeat >= cfg.Timeout {
		return invalid("Heartbeat", cfg.Heartbeat.String(), "is not below Timeout, "+cfg.Timeout.String())
	}
	for _, n := range []struct {
		field string
		value int
	}{{"Backlog", cfg.Backlog}, {"EventRate", cfg.EventRate}, {"MaxEvent", cfg.MaxEvent}} {
		if n.value < 0 {
			return invalid(n.field, strconv.Itoa(n.value), "is negative")
		}
	}
	if cfg.Backlog > maxBacklog {
		return invalid("Backlog", strconv.Itoa(cfg.Backlog), "is more than "+strconv.Itoa(maxBacklog))
	}
	fits := MaxEventSize
	if cfg.Wide {
		fits = MaxWideEventSize
	}
	if cfg.MaxEvent == 0 || cfg.MaxEvent > fits {
		cfg.MaxEvent = fits
	}
	return nil
}

func invalid(field, value, why string) error {
	return &valueError{ErrConfig, field + " of " + value + " " + why}
}

// Session is one peer's side of a connection: bytes in, bytes out. The package
// comment shows the loop. No order of calls is illegal. It is not safe for
// concurrent use.
type Session struct {
	time    timeline
	live    liveness
	token   uint64
	bundle  bool
	channel channel
}

// NewSession returns a session that begins now. A value of cfg that is negative
// or contradicts another is ErrConfig, and the error names it.
func NewSession(cfg Config) (*Session, error) {
	if err := cfg.complete(); err != nil {
		return nil, err
	}
	s := &Session{token: cfg.Token, bundle: cfg.Bundle}
	s.time.start(cfg.Clock)
	s.channel.init(&cfg)
	s.live.init(&cfg)
	return s, nil
}

// Receive takes in a datagram of the peer. With an error of input (ErrShort,
// ErrOversize, ErrFormat, ErrToken, ErrType, ErrPayload, ErrWindow, ErrRejected)
// it was dropped: it is not acknowledged and nothing but a counter changed. Of a
// session that has ended Receive returns the reason.
//
// Receive does not keep datagram, but what it returns is part of it, and valid
// until the next Receive. Call AppendDue after each Receive: otherwise a burst
// could outrun the acknowledgements.
//
// A Disconnect ends the session: Receive returns nil, Err returns ErrPeerLeft.
func (s *Session) Receive(datagram []byte) (in Incoming, err error) {
	now := s.time.read()
	if s.channel.err != nil {
		return Incoming{}, s.channel.err
	}
	payload, err := in.parse(datagram)
	if err != nil || in.Token != s.token || in.Wide != s.channel.wide {
		s.channel.receiver.stats.Rejected++
		return Incoming{}, s.refusal(datagram, err)
	}
	if err := s.channel.receive(&in, payload, len(datagram), now); err != nil {
		return Incoming{}, err
	}
	s.live.heardAt = now
	if in.Type == TypeDisconnect && in.Arrival == Newest {
		s.channel.end(ErrPeerLeft)
	}
	return in, nil
}

// refusal returns the error for a datagram that is not of this session, err
// being what its header alone gave rise to. The other form is refused as such
// before anything else is said of it, but for its size.
func (s *Session) refusal(datagram []byte, err error) error {
	n := len(datagram)
	if n >= HeaderSize && n <= MaxDatagramSize && (datagram[0] == formatWide) != s.channel.wide {
		return ErrFormat
	}
	if err == nil {
		return ErrToken
	}
	return err
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
// ErrDatagramTooLarge; once the session was closed or has ended, the error is the
// reason. On an error dst comes back as it was. The payload must not lie in dst's
// spare capacity.
func (s *Session) AppendDatagram(dst []byte, t Type, payload []byte) (out []byte, seq uint16, err error) {
	now := s.time.read()
	if err := s.closed(); err != nil {
		return dst, 0, err
	}
	if !t.application() {
		return dst, 0, &valueError{ErrReservedType, t.String()}
	}
	if len(payload) > s.MaxPayload() {
		return dst, 0, tooLarge(ErrDatagramTooLarge, len(payload), s.MaxPayload())
	}
	if s.bundle {
		s.channel.carrierSent(now)
	}
	var h Header
	s.assign(&h, t, now)
	limit := s.MaxPayload() - len(payload) - bundleOverhead
	if !s.bundle || !s.channel.sender.fits(limit, bundle, now) {
		return s.finish(dst, append(h.appendTo(dst), payload...)), h.Sequence, nil
	}
	h.Type = TypeBundle
	out = append(h.appendTo(dst), byte(t))
	out = s.channel.appendEvents(out, h.Sequence, limit, bundle, now)
	return s.finish(dst, append(out, payload...)), h.Sequence, nil
}

// AppendDue appends the next datagram that is due to dst: events, a heartbeat,
// or after Close what is still to be said. It is not ok if none is due, and dst
// comes back as it was; call it until then, or use Due. It is here that a
// session finds out that it has timed out or stalled: after a pause hand in what
// has arrived first.
func (s *Session) AppendDue(dst []byte) (out []byte, ok bool) {
	now := s.time.read()
	if now < s.channel.quietUntil && !s.channel.recheck || s.channel.err != nil {
		return dst, false
	}
	s.channel.sender.judge(now)
	if s.live.leaving {
		return s.appendFarewell(dst, now)
	}
	if reason := s.expired(now); reason != nil {
		s.channel.end(reason)
		return dst, false
	}
	if s.channel.sender.eventsDue(now) {
		return s.appendEvents(dst, now), true
	}
	if s.heartbeatDue(now) {
		return s.appendEmpty(dst, TypeHeartbeat, now), true
	}
	s.channel.quietUntil = min(s.dueAt(), s.channel.sender.judgeAt)
	s.channel.recheck = false
	return dst, false
}

// dueAt returns when something will be due, if nothing comes up until then.
func (s *Session) dueAt() int64 {
	at := min(s.live.timesOutAt(), s.stallsAt(), s.live.beatsAt())
	if events, ok := s.channel.sender.nextEvents(s.time.now); ok {
		at = min(at, events)
	}
	if s.channel.receiver.ackDue() {
		at = min(at, s.time.now)
	}
	return at
}

// appendFarewell appends what a closed session still sends: events that were
// never sent, as far as the span allows, then the Disconnects. After the last
// the session ends.
func (s *Session) appendFarewell(dst []byte, now int64) (out []byte, ok bool) {
	switch {
	case s.live.farewell == farewells && s.channel.sender.freshDue(now):
		return s.appendEvents(dst, now), true
	case s.live.farewell > 0:
		s.live.farewell--
		return s.appendEmpty(dst, TypeDisconnect, now), true
	}
	s.channel.end(ErrClosed)
	return dst, false
}

// appendEvents appends an Event datagram; an event must be due.
func (s *Session) appendEvents(dst []byte, now int64) []byte {
	var h Header
	s.assign(&h, TypeEvent, now)
	return s.finish(dst, s.channel.appendEvents(h.appendTo(dst), h.Sequence, s.MaxPayload(), ownDatagram, now))
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
	s.live.sentAt = now
}

// finish counts the bytes of a datagram that was appended to dst.
func (s *Session) finish(dst, out []byte) []byte {
	s.channel.sender.stats.BytesSent += uint64(len(out) - len(dst))
	return out
}

// Due yields every datagram that is due, each built from buf[:0] and valid until
// the next: the loop over AppendDue. A buf of MaxDatagramSize bytes fits them
// all. Breaking off leaves the rest due.
func (s *Session) Due(buf []byte) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		for {
			datagram, ok := s.AppendDue(buf[:0])
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
// at the last call; any call of Send, AppendDatagram, Receive, AppendDue or
// Close may change it. It is not ok when the session has ended.
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
// to be sure of them, wait until InFlight is 0 first.
func (s *Session) Close() {
	now := s.time.read()
	if s.channel.err != nil || s.live.leaving {
		return
	}
	s.live.leave(now)
	s.channel.quietUntil = 0 // from now on AppendDue always has something to do
	s.channel.sender.outbox.due = idSet{}
}

// closed returns the reason for which nothing can be sent.
func (s *Session) closed() error {
	if s.channel.err == nil && s.live.leaving {
		return ErrClosed
	}
	return s.channel.err
}

// Err returns the reason for which the session has ended; nil while it lives. It
// tells what the last call found and reads no clock.
func (s *Session) Err() error { return s.channel.err }

// RTT returns the smoothed round trip time (RFC 6298); 0 before the first
// sample.
func (s *Session) RTT() time.Duration { return time.Duration(s.channel.sender.path.rtt.Smoothed()) }

// MaxPayload returns how many bytes an application datagram may carry.
func (s *Session) MaxPayload() int {
	if s.channel.wide {
		return MaxDatagramSize - WideHeaderSize
	}
	return MaxDatagramSize - HeaderSize
}

// MaxEvent returns how many bytes an event may have.
func (s *Session) MaxEvent() int { return s.channel.sender.maxEvent }

// InFlight returns how many events are not known to be delivered, those included
// that were not sent yet. After the end it tells how many stayed so.
func (s *Session) InFlight() int { return s.channel.sender.outbox.undelivered }

// Room returns how many events Send takes before it ends the session with
// ErrUnacknowledged, for callers who would rather slow down; 0 once the session
// was closed or has ended.
func (s *Session) Room() int {
	if s.live.leaving {
		return 0
	}
	return s.channel.room()
}

// Stats returns the counters.
func (s *Session) Stats() Stats { return s.channel.snapshot() }
