package ackbits

import (
	"time"

	"github.com/ackbits/ackbits/internal/trim"
)

// The channel that joins the sending half (sender.go) and the receiving half
// (receiver.go), and ReliableChannel, which is that for callers with a header of
// their own. Whatever concerns one half alone is not here.

// Incoming is what one datagram brought.
type Incoming struct {
	Header
	Arrival Arrival // among all datagrams of the peer, whatever their type
	// Latest: Payload is delivered and no newer datagram of this Type was.
	// This is what state of which only the newest counts must check, not
	// Arrival: a snapshot that is Late behind a heartbeat is still the latest
	// snapshot.
	Latest bool
	// Payload is that of an application datagram that is Newest or Late. It is
	// nil for every other datagram, and for one that Accept withheld; an empty
	// payload that is to be processed is not nil.
	Payload []byte
	Events  []Event // each delivered once; valid until the next Receive and while the datagram's bytes are unchanged
}

// channel joins the two halves and is what Session and ReliableChannel stand on. It
// is the only struct that reaches into both: a datagram that comes in is the
// receiver's, the acknowledgements in its header are the sender's, and one that goes
// out gets its number from the sender and its acknowledgements from the receiver. It
// takes the time as an offset and reads no clock.
//
// A server with more sessions than its caches hold waits for each line that a
// datagram touches. So what every datagram touches comes first, here and in either
// half; BenchmarkServerTick shows what moving a field costs.
type channel struct {
	err     error
	wide    bool
	recheck bool // something may be due that quietUntil does not tell
	busy    bool // something but heartbeats was sent or received since the last trim
	// Before this time a session has nothing to do, unless recheck is set: whatever
	// it was the time of only moves away, and what comes up lowers it.
	quietUntil int64
	trimAt     int64

	receiver receiver
	sender   sender
}

// init takes a Config that was completed.
func (c *channel) init(cfg *Config) {
	c.wide = cfg.Wide
	c.trimAt = trim.Period
	c.receiver.init(cfg)
	c.sender.init(cfg)
	if stall := int64(cfg.StallTimeout); stall >= 0 {
		c.sender.patience = min(c.sender.patience, stall)
	}
}

// end stops the channel and frees what is kept to send events, but for those that are
// undelivered (P-8.5.1). Outcomes stay.
func (c *channel) end(reason error) {
	c.err = reason
	c.sender.end()
	c.receiver.end()
}

// send queues an event, or ends the channel if there is no room for it (P-5.2.3).
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

// room returns how many events may be queued.
func (c *channel) room() int {
	if c.err != nil {
		return 0
	}
	return c.sender.room()
}

// nextHeader numbers a datagram and fills in the header of it, which acknowledges
// what was received. What is overdue is judged first (P-7.2.3).
func (c *channel) nextHeader(h *Header, t Type, now int64) {
	c.sender.judge(now)
	if now >= c.trimAt {
		c.trim(now)
	}
	c.busy = c.busy || t != TypeHeartbeat
	h.Type = t
	h.Sequence = c.sender.number(t, now)
	h.Wide = c.wide
	c.receiver.acknowledge(h)
}

// appendEvents appends a list of the events that are due, as carried by the datagram
// seq; see sender.appendEvents.
func (c *channel) appendEvents(dst []byte, seq uint16, limit int, in carrier, now int64) []byte {
	out := c.sender.appendEvents(dst, seq, limit, in, now)
	c.quietUntil = min(c.quietUntil, saturatingAdd(now, c.sender.patience))
	c.recheck = c.sender.outbox.freshDue()
	return out
}

// carrierSent notes that an application datagram is sent now that can carry events.
func (c *channel) carrierSent(now int64) {
	if c.sender.rule.carrierSent(now) {
		c.recheck = true
	}
}

// receive takes the datagram whose header is in in, and fills in the rest. Everything
// is checked before anything is changed, and the acknowledgements are read at last.
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

// nextOutcome judges and returns the next outcome. After the end nothing more is
// sent, so once all is decided nobody asks for the log again.
func (c *channel) nextOutcome(now int64) (Outcome, bool) {
	c.sender.judge(now)
	if c.err != nil {
		c.sender.log.freeIfDecided()
	}
	return c.sender.outcomes.pop()
}

// trim gives back memory that was not needed lately.
func (c *channel) trim(now int64) {
	c.trimAt = saturatingAdd(now, trim.Period)
	c.sender.trim(c.busy, now)
	c.receiver.trim(c.busy)
	c.busy = false
}

// snapshot returns the counters.
func (c *channel) snapshot() (s Stats) {
	c.sender.snapshot(&s)
	c.receiver.snapshot(&s)
	return s
}

// A ReliableChannel acknowledges datagrams and delivers events under a header of
// the caller's own: the machine of a Session without bytes, token and timers.
// It has no heartbeat, timeout, stall or Close, and a Disconnect is an ordinary
// datagram to it.
//
// To send, take a header from NextHeader and put its fields where the format at
// hand has them; for a datagram of TypeEvent, let AppendDueEvents write the
// payload. To receive, fill in a Header and hand it in with the payload. Where
// the room for a list is below 1182 bytes, set Config.MaxEvent to that room less
// 5: an event that never fits would stay due for ever. A ReliableChannel is not
// safe for concurrent use.
type ReliableChannel struct {
	time timeline
	channel
}

// NewReliableChannel returns a channel. Of cfg it uses Clock, Wide, Ordered,
// ResendDelay, LossDelay, Backlog, Outcomes, Adaptive, EventRate, MaxEvent and
// Accept. A value that is negative or contradicts another is ErrConfig, but for
// MaxDatagram, Seal and Open, which say nothing here: it has no bytes.
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

// Send queues an event and returns its id. It copies the bytes. Once the
// channel has ended, it returns the reason; ErrEventTooLarge ends nothing; the event
// that would make more than 256 + Backlog undelivered ends the channel with
// ErrUnacknowledged and is not queued.
func (c *ReliableChannel) Send(event []byte) (id uint16, err error) {
	c.time.read()
	if c.err != nil {
		return 0, c.err
	}
	return c.channel.send(event)
}

// NextHeader numbers a datagram of any type and notes that it is sent now. The
// header it returns has no token. It is not ok after the end, which it may find
// itself: a channel ends with ErrStalled before the 32,768th datagram since the
// newest acknowledged one (P-3.1.4).
func (c *ReliableChannel) NextHeader(t Type) (h Header, ok bool) {
	now := c.time.read()
	if c.err == nil && c.sender.halfway() {
		c.end(ErrStalled)
	}
	if c.err != nil {
		return Header{}, false
	}
	c.nextHeader(&h, t, now)
	return h, true
}

// EventsDue reports whether an event is due and a list with the oldest such
// event fits into max bytes.
func (c *ReliableChannel) EventsDue(max int) bool {
	now := c.time.read()
	return c.err == nil && c.sender.fits(max, ownDatagram, now)
}

// AppendDueEvents appends a list of the events that are due to dst, the lowest
// id first, up to the first that does not fit into max bytes, 1182 at most; or
// nothing, if none is due and fits. seq is the sequence, from NextHeader, of the
// datagram that will carry it. One datagram may get several lists as long as no
// other gets one in between and not all of its events were delivered meanwhile; one
// that is acknowledged or taken for lost already gets none. Receive takes a
// datagram's events as one list, of at most 255: where there were several, the peer
// makes one of them, or all but the first are lost as parts of a duplicate.
func (c *ReliableChannel) AppendDueEvents(dst []byte, seq uint16, max int) []byte {
	now := c.time.read()
	if c.err != nil {
		return dst
	}
	if !c.sender.eventsDue(now) {
		return dst
	}
	return c.appendEvents(dst, seq, max, ownDatagram, now)
}

// AckDue reports whether so many datagrams came in since NextHeader that the
// acknowledgements of further ones could be outrun: 32, or 64 in the wide form.
// Send one now, a heartbeat if there is nothing else.
func (c *ReliableChannel) AckDue() bool { return c.err == nil && c.receiver.ackDue() }

// Deadline returns when AppendDueEvents next has something to append; not ok if
// nothing is waiting.
func (c *ReliableChannel) Deadline() (t time.Time, ok bool) {
	if c.err != nil {
		return time.Time{}, false
	}
	at, ok := c.sender.nextEvents(c.time.now)
	if !ok {
		return time.Time{}, false
	}
	return c.time.time(at), true
}

// Receive takes in a datagram. h.Wide says how many of AckBits count. An error
// of input (ErrType, ErrPayload, ErrWindow, ErrRejected) means that it was
// dropped and nothing but a counter changed; once the channel has ended, the error
// is the reason. Payload and Events are parts of payload, not copies.
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

// RTT returns the smoothed round trip time; 0 before the first sample.
func (c *ReliableChannel) RTT() time.Duration { return time.Duration(c.sender.path.rtt.Smoothed()) }

// InFlight returns how many events are not known to be delivered, those included
// that were not sent yet.
func (c *ReliableChannel) InFlight() int { return c.sender.outbox.undelivered }

// Room returns how many events Send takes before ErrUnacknowledged.
func (c *ReliableChannel) Room() int { return c.room() }

// Err returns why the channel has ended, nil while it lives.
func (c *ReliableChannel) Err() error { return c.err }

// Stats returns the counters.
func (c *ReliableChannel) Stats() Stats { return c.snapshot() }
