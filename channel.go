package ackbits

import (
	"errors"
	"time"

	"github.com/ackbits/ackbits/internal/rtt"
)

// Incoming is what one datagram brought.
type Incoming struct {
	Header
	Arrival Arrival // among all datagrams of the peer, whatever their type
	// Latest: Payload is handed over and no newer datagram of this Type was.
	// This is what state of which only the newest counts must check, not
	// Arrival: a snapshot that is Late behind a heartbeat is still the latest
	// snapshot.
	Latest bool
	// Payload is that of an application datagram that is Newest or Late. It is
	// nil for every other datagram, and for one that Accept withheld; an empty
	// payload that is to be processed is not nil.
	Payload []byte
	Events  []Event // each handed over once; valid until the next Receive and while the datagram's bytes are unchanged
}

// Datagrams named by one header: ack itself and its bits.
const (
	narrowAcks = 1 + 32
	wideAcks   = 1 + 64
)

// channel is the machine behind Session and ReliableChannel. It takes the time
// as an offset and reads no clock.
type channel struct {
	// What every datagram touches comes first and together: a server with more
	// sessions than its caches hold waits for each line of this.
	received  AckTracker // the peer's datagrams
	unnamed   unnamed    // of these, the ones that no header of ours has named yet
	wide      bool
	stirred   bool   // something may be due that quietUntil does not tell
	busy      bool   // something but heartbeats was sent or received since the last trim
	bits      uint16 // the acknowledgements of a header beside ack itself
	judgeFrom int64  // no datagram sent can be taken for lost before
	// Before this time a session has nothing to do, unless stirred: whatever it
	// was the time of only moves away, and what comes up lowers it.
	quietUntil int64
	trimAt     int64
	err        error
	accept     func(Header, []byte) error
	adapt      *adaptation // nil: resend after resendDelay
	sent       sentLog     // our datagrams
	rtt        rtt.Estimator
	asOf       int64 // what was due at this time is collected
	oldestAt   int64 // when the oldest undelivered event became the oldest
	stats      Stats
	types      [historySize]Type

	outbox      outbox
	inbox       inbox
	outcomes    outcomeQueue
	losses      losses
	resendDelay int64
	patience    int64 // until a copy that is sent now may call for something
	lossDelay   int64
	maxEvent    int
	maxUnacked  int
	budget      budget
	rejected    rejection
}

// init takes a Config that was completed.
func (c *channel) init(cfg *Config) {
	c.wide, c.bits = cfg.Wide, narrowAcks-1
	if c.wide {
		c.bits = wideAcks - 1
	}
	c.resendDelay = int64(cfg.ResendDelay)
	c.patience = c.resendDelay
	if stall := int64(cfg.StallTimeout); stall >= 0 {
		c.patience = min(c.patience, stall)
	}
	c.lossDelay = int64(cfg.LossDelay)
	c.maxEvent = cfg.MaxEvent
	c.maxUnacked = nearSpan + cfg.Backlog
	c.accept = cfg.Accept
	c.budget.rate = int64(cfg.EventRate)
	if cfg.Adaptive {
		c.adapt = &adaptation{heartbeat: int64(cfg.Heartbeat)}
	}
	c.sent.init(cfg.Outcomes)
	c.inbox.init(cfg.Ordered)
	c.trimAt = trimPeriod
	c.judgeFrom = c.lossDelay
}

// end stops the channel and frees what its events took. Fates stay.
func (c *channel) end(reason error) {
	c.err = reason
	c.outbox.clear()
	c.inbox = inbox{}
}

// send queues an event.
func (c *channel) send(event []byte) (id uint16, err error) {
	if len(event) > c.maxEvent {
		return 0, tooLarge(ErrEventTooLarge, len(event), c.maxEvent)
	}
	if c.outbox.undelivered == c.maxUnacked {
		c.end(ErrUnacknowledged)
		return 0, ErrUnacknowledged
	}
	c.stirred = true
	c.budget.note(len(event))
	return c.outbox.add(event), nil
}

// room returns how many events may be queued.
func (c *channel) room() int {
	if c.err != nil {
		return 0
	}
	return c.maxUnacked - c.outbox.undelivered
}

// assign numbers a datagram and fills in the header of it, which thereby names
// what was received.
func (c *channel) assign(h *Header, t Type, now int64) {
	c.judge(now)
	if now >= c.trimAt {
		c.trim(now)
	}
	if c.sent.full() && !c.sent.mayForgetOldest() {
		c.makeRoom(now)
	}
	c.busy = c.busy || t != TypeHeartbeat
	h.Wide = c.wide
	h.Type = t
	h.Sequence = c.sent.add(t, now)
	h.Ack = c.received.Ack()
	if c.wide {
		h.AckBits = c.received.WideAckBits()
	} else {
		h.AckBits = uint64(c.received.AckBits())
	}
	c.unnamed.clear()
	c.stats.DatagramsSent++
}

// halfway reports whether the next datagram would be half of all sequences after
// the newest one acknowledged: from there on an old acknowledgement might name a
// datagram of a turn later, and count its events as delivered (R8).
func (c *channel) halfway() bool { return c.sent.count-c.sent.top >= 1<<15 }

// plan returns the copies that a new event gets beside the first.
func (c *channel) plan() ahead {
	if c.adapt == nil {
		return ahead{}
	}
	return c.adapt.plan
}

// carrier says what kind of datagram takes events along.
type carrier bool

const (
	ownDatagram carrier = false
	bundle      carrier = true
)

// collect marks the events of which a further copy is due now; copyDue and
// appendDueEvents go by that time.
func (c *channel) collect(now int64, in carrier) {
	c.asOf = now
	if c.adapt != nil {
		c.collectAdaptive(now, in)
		return
	}
	o := &c.outbox
	for {
		number, e := o.live(&o.resends)
		if e == nil || now-e.last < c.resendDelay {
			return
		}
		o.due.add(uint16(number))
		o.resends.skip++
		e.noteResend()
	}
}

// owedEvery is how often the oldest undelivered event is resent whatever the
// budget says (R8). Rarer, and a small budget would end sessions by their stall
// timeout; more often, and it would be none.
const owedEvery = int64(time.Second)

// copyDue reports whether a further copy of an event is due and may be sent; the
// budget holds back copies only, and the oldest event not for long.
func (c *channel) copyDue() bool {
	o := &c.outbox
	return o.due.n > 0 && (c.asOf >= c.budget.allowedAt() ||
		o.due.has(uint16(o.base)) && c.asOf >= saturatingAdd(o.get(o.base).last, owedEvery))
}

// owedAt returns when a copy of the oldest event is due that the budget does not
// hold back; it must have been sent.
func (c *channel) owedAt() int64 {
	o := &c.outbox
	e := o.get(o.base)
	at := saturatingAdd(e.last, owedEvery)
	if !o.due.has(uint16(o.base)) {
		at = max(at, c.resendAt(e))
	}
	return at
}

// resendAt returns when an event is to be resent.
func (c *channel) resendAt(e *pending) int64 {
	if c.adapt == nil {
		return saturatingAdd(e.last, c.resendDelay)
	}
	at := saturatingAdd(e.last, c.timer())
	if evidence, overtaken := c.evidenceAt(e); overtaken {
		at = min(at, evidence)
	}
	return at
}

// eventsDue reports whether an event is due.
func (c *channel) eventsDue(now int64) bool {
	c.collect(now, ownDatagram)
	return c.copyDue() || c.outbox.freshDue()
}

// fits reports whether the oldest due event may go in a list of so many bytes.
func (c *channel) fits(limit int, in carrier, now int64) bool {
	o := &c.outbox
	c.collect(now, in)
	number := o.fresh
	if c.copyDue() {
		number = o.lowestDue()
	} else if !o.freshDue() {
		return false
	}
	return o.get(number).fits(listOverhead, min(limit, maxListSize), in)
}

// appendDueEvents appends a list of the events that were collected, and of new
// ones, at most limit bytes, as carried by the datagram seq. A datagram that has its fate, or was
// never numbered, carries nothing; nor does one that has a list already when
// another datagram got one since, because a datagram's copies lie in a row.
func (c *channel) appendDueEvents(dst []byte, seq uint16, limit int, in carrier, now int64) []byte {
	n, ok := c.sent.lookup(seq)
	if !ok || !c.sent.remembered(n) {
		return dst
	}
	s := c.sent.stamps.At(n)
	if *s&fateMask != undecided {
		return dst
	}
	o := &c.outbox
	first := o.endRun
	if *s&carriesEvents != 0 {
		if o.endRun == o.firstRun || o.runs.At(o.endRun-1).seq != seq {
			return dst
		}
		first-- // the datagram's last run may grow
	}
	out, filled := o.fill(dst, seq, first, min(limit, maxListSize), in, now, c)
	c.quietUntil = min(c.quietUntil, saturatingAdd(now, c.patience))
	c.stirred = c.adapt != nil || o.freshDue()
	if filled && *s&carriesEvents == 0 {
		o.cargo.load(n, first, c.sent.first, first == o.firstRun)
		*s |= carriesEvents
	}
	return out
}

// nextEvents returns when appendDueEvents next has something to do.
func (c *channel) nextEvents(now int64) (at int64, ok bool) {
	o := &c.outbox
	if o.freshDue() {
		return now, true
	}
	switch {
	case o.due.n > 0:
		at, ok = now, true
	case c.adapt != nil:
		at, ok = c.nextAdaptive()
	default:
		if _, e := o.live(&o.resends); e != nil {
			at, ok = c.resendAt(e), true
		}
	}
	if allowed := c.budget.allowedAt(); ok && at < allowed {
		at = allowed
		if o.base < o.fresh {
			at = min(at, c.owedAt())
		}
	}
	return at, ok
}

// waitsSince returns since when the oldest undelivered event has been both the
// oldest and on the wire (R8).
func (c *channel) waitsSince() (first int64, ok bool) {
	o := &c.outbox
	if o.base == o.fresh {
		return 0, false
	}
	return max(o.get(o.base).first, c.oldestAt), true
}

// ackDue reports whether so many datagrams came in since one was sent that the
// acknowledgements of further ones could be outrun (R6).
func (c *channel) ackDue() bool { return c.unnamed.count >= int(c.bits) }

// receive takes in the datagram whose header is in in, and fills in the rest.
// Everything is checked before anything is changed (R2).
func (c *channel) receive(in *Incoming, payload []byte, size int, now int64) (err error) {
	h := &in.Header
	var events []Event
	switch {
	case h.Type.application():
		if payload == nil {
			payload = []byte{}
		}
	case h.Type == TypeEvent:
		events, err = ParseEvents(c.inbox.parsed[:0], payload)
		payload = nil
	case h.Type == TypeHeartbeat, h.Type == TypeDisconnect:
		if len(payload) != 0 {
			err = ErrPayload
		}
		payload = nil
	case h.Type == TypeBundle:
		h.Type, events, payload, err = parseBundle(c.inbox.parsed[:0], payload)
	default:
		err = ErrType
	}
	if err != nil {
		c.stats.Rejected++
		return err
	}
	in.Arrival = c.received.Classify(h.Sequence)
	isNew := in.Arrival == Newest || in.Arrival == Late
	if events != nil {
		c.inbox.parsed = events
		if isNew && !c.inbox.ids.admits(events) {
			c.stats.Rejected++
			return ErrWindow
		}
	}
	if c.accept != nil && isNew && payload != nil {
		if refusal := c.accept(*h, payload); errors.Is(refusal, ErrWithhold) {
			c.stats.Withheld++
			c.acknowledge(h, now)
			return nil
		} else if refusal != nil {
			c.stats.Rejected++
			c.rejected.cause = refusal
			return &c.rejected
		}
	}

	c.busy = c.busy || h.Type != TypeHeartbeat
	c.stats.DatagramsReceived++
	c.stats.BytesReceived += uint64(size)
	switch in.Arrival {
	case Newest:
		c.stats.AcksOutrun += c.unnamed.newest(h.Sequence-c.received.Ack(), c.bits)
		c.received.advance(h.Sequence)
		in.Latest = payload != nil
	case Late:
		c.stats.AcksOutrun += c.unnamed.late(c.received.Ack()-h.Sequence, c.bits)
		c.received.Receive(h.Sequence)
		in.Latest = payload != nil && c.latest(h.Sequence, h.Type)
	case Duplicate:
		c.stats.Duplicates++
	case Stale:
		c.stats.Stale++
	}
	if isNew {
		in.Payload = payload
		c.stirred = c.stirred || c.ackDue()
		c.noteType(h.Sequence, h.Type)
		if events != nil {
			var fresh int
			in.Events, fresh = c.inbox.take(events)
			c.inbox.takenAt = c.stats.DatagramsReceived
			c.stats.EventsReceived += uint64(fresh)
			c.stats.EventsDuplicate += uint64(len(events) - fresh)
		}
	}
	c.acknowledge(h, now)
	return nil
}

// latest reports whether no datagram of a type was received that is newer than
// seq, which is at most historySize steps before the newest.
func (c *channel) latest(seq uint16, t Type) bool {
	for back := range c.received.Ack() - seq {
		if c.received.received(back) && c.types[(c.received.Ack()-back)%historySize] == t {
			return false
		}
	}
	return true
}

// noteType remembers the type of a datagram received. The one at the far end of
// the history would take the place of the newest; nobody will ask for it.
func (c *channel) noteType(seq uint16, t Type) {
	if c.received.Ack()-seq < historySize {
		c.types[seq%historySize] = t
	}
}

// snapshot returns the counters.
func (c *channel) snapshot() Stats {
	s := c.stats
	s.Undecided = int(s.DatagramsSent - s.Delivered - s.Lost)
	s.RTT = time.Duration(c.rtt.Smoothed())
	s.RTTVar = time.Duration(c.rtt.Variation())
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
	return c.send(event)
}

// NextHeader numbers a datagram of any type and notes that it is sent now. The
// header it returns has no token. It is not ok after the end, which it may find
// itself: a channel ends with ErrStalled before the 32,768th datagram since the
// newest acknowledged one (R8).
func (c *ReliableChannel) NextHeader(t Type) (h Header, ok bool) {
	now := c.time.read()
	if c.err == nil && c.halfway() {
		c.end(ErrStalled)
	}
	if c.err != nil {
		return Header{}, false
	}
	c.assign(&h, t, now)
	return h, true
}

// EventsDue reports whether an event is due and a list with the oldest such
// event fits into max bytes.
func (c *ReliableChannel) EventsDue(max int) bool {
	now := c.time.read()
	return c.err == nil && c.fits(max, ownDatagram, now)
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
	c.collect(now, ownDatagram)
	return c.appendDueEvents(dst, seq, max, ownDatagram, now)
}

// AckDue reports whether so many datagrams came in since NextHeader that the
// acknowledgements of further ones could be outrun: 32, or 64 in the wide form.
// Send one now, a heartbeat if there is nothing else.
func (c *ReliableChannel) AckDue() bool { return c.err == nil && c.ackDue() }

// Deadline returns when AppendDueEvents next has something to append; not ok if
// nothing is waiting.
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
func (c *ReliableChannel) RTT() time.Duration { return time.Duration(c.rtt.Smoothed()) }

// InFlight returns how many events are not known to be delivered, those included
// that were not sent yet.
func (c *ReliableChannel) InFlight() int { return c.outbox.undelivered }

// Room returns how many events Send takes before ErrUnacknowledged.
func (c *ReliableChannel) Room() int { return c.room() }

// Err returns why the channel has ended, nil while it lives.
func (c *ReliableChannel) Err() error { return c.err }

// Stats returns the counters.
func (c *ReliableChannel) Stats() Stats { return c.snapshot() }
