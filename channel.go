package ackbits

import (
	"time"

	"github.com/ackbits/ackbits/internal/trim"
)

// The channel joins the sending half (sender.go) and the receiving half (receiver.go).
// ReliableChannel is the channel for callers with a header of their own. What concerns
// only one half is not here.

// Incoming is what one datagram brought.
type Incoming struct {
	Header
	Arrival Arrival // among all datagrams of the peer, whatever their type
	// Latest says that Payload is delivered, and that no newer datagram of this Type
	// was delivered before. State of which only the newest counts must check Latest,
	// not Arrival: a snapshot that is Late because a heartbeat overtook it is still the
	// latest snapshot (P-2.3.7).
	Latest bool
	// Payload is the payload of an application datagram that is Newest or Late. For
	// every other datagram it is nil, and for one that Accept withheld; a delivered
	// payload is never nil, even if it is empty. It is part of the datagram's bytes and
	// valid as long as they are.
	Payload []byte
	Events  []Event // each delivered exactly once; valid until the next Receive, and while the datagram's bytes are unchanged
}

// channel joins the two halves; Session and ReliableChannel are built on it. It is the
// only struct that reaches into both: its owners call methods, its own and those of the
// halves, which it embeds. A datagram received goes to the receiver, the
// acknowledgements in its header to the sender. A datagram sent gets its number from
// the sender and its acknowledgements from the receiver. The channel reads no clock:
// the time is an argument, as an offset in nanoseconds.
//
// A server with more sessions than its caches hold waits for each cache line that a
// datagram touches. So the fields that every datagram touches come first, here and in
// both halves. BenchmarkServerTick shows what moving a field costs.
type channel struct {
	err     error
	wide    bool
	recheck bool // something may be due before quietUntil
	busy    bool // anything but heartbeats was sent or received since the last trim
	// Before this time nothing is due, unless recheck is set. It is a lower bound: what
	// was due at this time may have moved to a later one, and whatever becomes due
	// earlier lowers it.
	quietUntil int64
	trimAt     int64

	receiver
	sender
}

// init sets the channel up. cfg must be complete.
func (c *channel) init(cfg *Config) {
	c.wide = cfg.Wide
	c.trimAt = trim.Period
	c.receiver.init(cfg)
	c.sender.init(cfg)
	if stall := int64(cfg.StallTimeout); stall >= 0 {
		c.sender.patience = min(c.sender.patience, stall)
	}
}

// end ends the channel and frees its memory, except for undelivered events (P-8.5.1)
// and outcomes. It happens once, and inlined it would take room in every hot call.
//
//go:noinline
func (c *channel) end(reason error) {
	c.err = reason
	c.sender.end()
	c.receiver.end()
}

// send queues an event and returns its id, or ends the channel if there is no room
// (P-5.2.3).
func (c *channel) send(event []byte) (id uint16, err error) {
	s := &c.sender
	if len(event) > int(s.maxEvent) {
		return 0, tooLarge(ErrEventTooLarge, len(event), int(s.maxEvent))
	}
	if s.room() == 0 {
		c.end(ErrUnacknowledged)
		return 0, ErrUnacknowledged
	}
	c.recheck = true
	return s.add(event), nil
}

// room returns how many more events may be queued.
func (c *channel) room() int {
	if c.err != nil {
		return 0
	}
	return c.sender.room()
}

// nextHeader numbers a datagram, whose type is in h, and fills in its acknowledgements of
// what was received. Outcomes that are due are decided first (P-7.2.3).
func (c *channel) nextHeader(h *Header, now int64) {
	c.sender.judge(now)
	if now >= c.trimAt {
		c.trim(now)
	}
	c.busy = c.busy || h.Type != TypeHeartbeat
	h.Sequence = c.sender.number(h.Type, now)
	h.Wide = c.wide
	c.receiver.acknowledge(h)
}

// appendEvents appends a list of the events that are due, which datagram seq carries;
// see sender.appendEvents.
func (c *channel) appendEvents(dst []byte, seq uint16, limit int, in carrier, now int64) []byte {
	out := c.sender.appendEvents(dst, seq, limit, in, now)
	c.quietUntil = min(c.quietUntil, saturatingAdd(now, c.sender.patience))
	c.recheck = c.sender.freshDue()
	return out
}

// carrierSent notes that an application datagram that can carry events is sent now.
func (c *channel) carrierSent(now int64) {
	if c.sender.rule.carrierSent(now) {
		c.recheck = true
	}
}

// quiet notes that nothing is due before until, but for outcomes.
func (c *channel) quiet(until int64) {
	c.quietUntil = min(until, c.sender.judgeAt)
	c.recheck = false
}

// receive accepts or refuses the datagram whose header is in in, and fills in the rest
// of in. The acknowledgements in the header are read last, and not at all if the
// datagram is refused.
func (c *channel) receive(in *Incoming, payload []byte, size int, now int64) error {
	switch err := c.receiver.receive(in, payload, size); err {
	case nil:
		c.busy = c.busy || in.Type != TypeHeartbeat
	case ErrWithhold:
	default:
		return err
	}
	if c.sender.acknowledge(&in.Header, now) {
		c.quietUntil = 0
	}
	if c.receiver.ackDue() {
		c.recheck = true
	}
	return nil
}

// nextOutcome decides the outcomes that are due and returns the next one. After the
// end nothing more is sent, so the log is freed once all outcomes are decided.
func (c *channel) nextOutcome(now int64) (Outcome, bool) {
	c.sender.judge(now)
	if c.err != nil {
		c.sender.log.freeIfDecided()
	}
	return c.sender.outcomes.pop()
}

// trim frees memory that was not needed lately, in both halves.
func (c *channel) trim(now int64) {
	c.trimAt = saturatingAdd(now, trim.Period)
	c.sender.trim(c.busy, now)
	c.receiver.trim(c.busy)
	c.busy = false
}

// snapshot returns the counters of both halves.
func (c *channel) snapshot() (s Stats) {
	c.sender.snapshot(&s)
	c.receiver.snapshot(&s)
	return s
}

// ReliableChannel acknowledges datagrams and delivers events under a header of the
// caller's own. It is a Session without wire format, token and timers: it has no
// heartbeat, timeout, stall or Close, and a Disconnect is an ordinary datagram to it.
//
// To send, take a header from NextHeader and write its fields where your format has
// them; for a datagram of TypeEvent, AppendDueEvents writes the payload. To receive,
// fill in a Header and pass it to Receive with the payload. If your datagrams have room
// for fewer than 1182 bytes of payload, set Config.MaxEvent to that room less 5: an
// event that never fits would stay due for ever. A ReliableChannel is not safe for
// concurrent use.
type ReliableChannel struct {
	time timeline
	channel
}

// NewReliableChannel returns a channel that has sent and received nothing. Of cfg it
// uses Clock, Wide, Ordered, ResendDelay, LossDelay, Backlog, Outcomes, Adaptive,
// EventRate, MaxEvent and Accept. MaxDatagram, Seal and Open are ignored. If any other
// value is negative or contradicts another, the error is ErrConfig and names it.
func NewReliableChannel(cfg Config) (*ReliableChannel, error) {
	cfg.MaxDatagram, cfg.Seal, cfg.Open = 0, nil, nil
	if err := cfg.complete(); err != nil {
		return nil, err
	}
	c := new(ReliableChannel)
	c.time.start(cfg.Clock)
	c.channel.init(&cfg)
	return c, nil
}

// Send queues a copy of event and returns its id. On an error it queued nothing:
// ErrEventTooLarge for more than MaxEvent bytes; ErrUnacknowledged, which ends the
// channel, if 256 + Backlog events are undelivered already; the reason, if the channel
// has ended.
func (c *ReliableChannel) Send(event []byte) (id uint16, err error) {
	c.time.read()
	if c.err != nil {
		return 0, c.err
	}
	return c.channel.send(event)
}

// NextHeader numbers a datagram of any type, counts it as sent now and returns its
// header, without a token. ok is false after the end, which NextHeader may detect
// itself: the channel ends with ErrStalled before the 32,768th datagram since the newest
// acknowledged one (P-3.1.4).
func (c *ReliableChannel) NextHeader(t Type) (h Header, ok bool) {
	now := c.time.read()
	if c.err == nil && c.halfway() {
		c.end(ErrStalled)
	}
	if c.err != nil {
		return Header{}, false
	}
	h.Type = t
	c.nextHeader(&h, now)
	return h, true
}

// EventsDue reports whether an event is due and a list of the oldest such event fits
// into max bytes.
func (c *ReliableChannel) EventsDue(max int) bool {
	now := c.time.read()
	return c.err == nil && c.fits(max, ownDatagram, now)
}

// AppendDueEvents appends to dst a list of the events that are due, lowest id first, up
// to the first that does not fit into max bytes; 1182 bytes at most. If none is due, or
// the first does not fit, it appends nothing. seq is the sequence, from NextHeader, of
// the datagram that will carry the list.
//
// One call per datagram is the rule. A datagram may get several lists, but only as long
// as no other datagram gets one in between, some of its events are undelivered, and it
// is neither acknowledged nor declared lost. The peer must then join the lists into
// one, of at most 255 events, before Receive: a second Receive with the same sequence
// is a duplicate and delivers nothing.
func (c *ReliableChannel) AppendDueEvents(dst []byte, seq uint16, max int) []byte {
	now := c.time.read()
	if c.err != nil {
		return dst
	}
	if !c.eventsDue(now) {
		return dst
	}
	return c.appendEvents(dst, seq, max, ownDatagram, now)
}

// AckDue reports whether 32 datagrams, 64 in the wide form, were accepted since the last
// NextHeader. If more are received before a datagram is sent, some will never be
// acknowledged: send one now, a heartbeat if there is nothing else (P-6.3.3).
func (c *ReliableChannel) AckDue() bool { return c.err == nil && c.ackDue() }

// Deadline returns when AppendDueEvents next has something to append, as far as is known
// now; Send, Receive and AppendDueEvents may change it. ok is false if no event is
// undelivered, and after the end.
func (c *ReliableChannel) Deadline() (t time.Time, ok bool) {
	if c.err != nil {
		return time.Time{}, false
	}
	at, ok := c.nextEvents(c.time.now)
	if !ok {
		return time.Time{}, false
	}
	return c.time.time(at), true
}

// Receive accepts or refuses a datagram of the peer. h.Wide says whether 32 or 64 bits
// of h.AckBits are read. On an error of input (ErrType, ErrPayload, ErrWindow,
// ErrRejected) the datagram was dropped and only a counter changed. Once the channel
// has ended, the error is the reason. The Payload and Events returned are parts of
// payload, not copies.
func (c *ReliableChannel) Receive(h Header, payload []byte) (Incoming, error) {
	now := c.time.read()
	if c.err != nil {
		return Incoming{}, c.err
	}
	in := Incoming{Header: h}
	if err := c.receive(&in, payload, 0, now); err != nil {
		return Incoming{}, err
	}
	return in, nil
}

// NextOutcome returns the next outcome, in the order in which they were decided;
// see Session.NextOutcome.
func (c *ReliableChannel) NextOutcome() (Outcome, bool) { return c.nextOutcome(c.time.read()) }

// RTT returns the smoothed round-trip time (RFC 6298); 0 before the first sample.
func (c *ReliableChannel) RTT() time.Duration { return c.smoothedRTT() }

// InFlight returns how many events are not known to be delivered, including those that
// were not sent yet.
func (c *ReliableChannel) InFlight() int { return c.inFlight() }

// Room returns how many more events Send accepts before ErrUnacknowledged; 0 after the
// end.
func (c *ReliableChannel) Room() int { return c.room() }

// Err returns why the channel has ended, or nil if it has not.
func (c *ReliableChannel) Err() error { return c.err }

// Stats returns the counters.
func (c *ReliableChannel) Stats() Stats { return c.snapshot() }
