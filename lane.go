package ackbits

import (
	"math"
	"strconv"
	"time"
)

// OrderedLane: a reliable, ordered stream of events over a transport of the caller's
// own, by Go-Back-N. It uses nothing of Session or ReliableChannel. Its queue and the
// memory that the queue takes are in lane_queue.go.

// The defaults of LaneConfig, from chapter 12 of docs/protocol.md. The two ends may
// differ in them.
const (
	// Shorter than the round-trip time, and every event is sent twice; longer, and one
	// lost event delays all later ones for longer.
	laneResendDelay = 250 * time.Millisecond
	// Shorter, and the budget allows more retransmissions a second; longer, and they
	// come in larger bursts with longer waits between.
	laneWakeInterval = 100 * time.Millisecond
	// One lost event makes every later one due. Smaller, and a busy lane fills faster
	// than it retransmits and never catches up; larger, and a full lane floods a path
	// that is already losing packets.
	laneResendBudget = 32
	// Smaller, and a short outage refuses chat lines that would have arrived;
	// larger, and less room is left for the events that must not be refused.
	laneSoftLimit = 256
	// Smaller, and a burst ends a connection that was only slow; larger, and a peer
	// that acknowledges nothing makes this side hold more memory for longer.
	laneHardLimit = 512
	// Shorter, and a connection ends in an outage that it would have survived; longer,
	// and one whose events never arrive looks alive for longer.
	laneStallTimeout = 15 * time.Second
)

// Priority says what Send does with an event when the lane fills up. A value other than
// Droppable counts as Critical.
type Priority uint8

const (
	// Critical is for events without which the peer's state would be wrong. They are
	// queued up to HardLimit; one that finds no room ends the lane.
	Critical Priority = iota
	// Droppable is for events that the peer can do without. From SoftLimit on
	// they are refused, which never ends the lane.
	Droppable
)

// LaneConfig configures an OrderedLane. The zero value of every field is its default,
// the protocol's own; NewOrderedLane refuses negative values with ErrConfig.
type LaneConfig struct {
	// Clock is read once in every call that depends on time. If nil, the system's.
	Clock Clock
	// ResendDelay is how long after its last copy an event is retransmitted. If zero,
	// 250 ms. At StallTimeout or more nothing is ever retransmitted.
	ResendDelay time.Duration
	// WakeInterval is the length of the intervals, counted from NewOrderedLane, in each
	// of which at most ResendBudget retransmissions are made. If zero, 100 ms. It
	// delays nothing as long as the budget lasts, and the caller need not call at
	// these moments.
	WakeInterval time.Duration
	// ResendBudget is how many retransmissions one WakeInterval allows, however many
	// calls it has. If zero, 32. What is not used expires; first copies neither use it
	// nor wait for it.
	ResendBudget int
	// SoftLimit is how many undelivered events make Send refuse a Droppable one. If
	// zero, 256, or HardLimit where that is lower.
	SoftLimit int
	// HardLimit is one more than the number of events that may be undelivered. If
	// zero, 512: so 511 may be undelivered, and the Critical event that would be the
	// 512th ends the lane instead, while a Droppable one is refused. It must be at
	// least 2, and at least SoftLimit.
	HardLimit int
	// StallTimeout is how long the oldest undelivered event may stay the oldest before
	// the lane ends with ErrStalled. If zero, 15 s.
	StallTimeout time.Duration
}

// LaneEvent is an event to send now. Both fields go into one packet, whose layout is the
// caller's.
type LaneEvent struct {
	// ID is the event's number in the stream. The first is 1.
	ID uint32
	// Data is the lane's own copy. It is valid until the event is acknowledged and must
	// not be written to.
	Data []byte
}

// OrderedLane is one end of a reliable, ordered stream of events in each direction, by
// Go-Back-N with cumulative acknowledgements: an event is delivered once every older
// one was; one that arrives earlier is discarded, and the peer retransmits it. It is
// for events that must keep their order and may wait for each other; for those that
// need not there is Session.
//
// The lane neither sends nor receives packets. The caller's loop is
//
//	for each packet that has arrived {
//		an event: deliver, ack := lane.Receive(id); send ack; if deliver, apply it
//		an acknowledgement: err := lane.ReceiveAck(ack)
//	}
//	id, err := lane.Send(event, ackbits.Critical)
//	for ev, ok := lane.NextDue(max); ok; ev, ok = lane.NextDue(max) { send ev }
//	if lane.Err() != nil { close the connection }
//
// Each connection needs a new lane at both ends, since ids start at 1 (P-12.1.1).
// Packets of an earlier connection or another sender must be kept from it: a forged
// acknowledgement clears the queue (P-12.2.8). Methods may be called in any order. A lane
// is not safe for concurrent use; only NewOrderedLane makes one.
//
// The lane ends with ErrStalled or ErrLaneOverflow. Either means that the peer will
// never get some of the events. From then on Send and ReceiveAck return the reason,
// NextDue and Receive return false, and the queued events are freed.
type OrderedLane struct {
	cfg   LaneConfig // complete
	clock timeline
	err   error // why the lane has ended

	delivered uint32 // receiving: all ids up to this one were delivered

	// Sending: acked ≤ sent ≤ last. The queue holds acked+1 … last. Those above sent
	// were never sent.
	acked, sent, last uint32
	queue             laneQueue
	movedAt           int64 // when the oldest event became the oldest

	// A retransmission makes every later event that was sent due, because the receiver
	// has discarded it or is going to. So retransmission goes through the queue in
	// passes (P-12.2.2). In the current pass, events up to cursor have been
	// retransmitted, and cursor+1 … passEnd are due. Those above passEnd were first
	// sent after the last retransmission and are due by age alone.
	//
	// Except for cursor+1 … passEnd, a higher id was sent later. So of all that are due
	// by age, the oldest event comes first, and only its age matters.
	cursor, passEnd uint32
	retransmittedAt int64 // when the last retransmission was made

	intervalEnd int64 // the end of the WakeInterval of the last retransmission
	spent       int   // retransmissions in that interval
}

// NewOrderedLane returns a lane that has sent and received nothing. If a value of cfg
// is negative or contradicts another, the error is ErrConfig and names it.
func NewOrderedLane(cfg LaneConfig) (*OrderedLane, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	l := &OrderedLane{cfg: cfg}
	l.clock.start(cfg.Clock)
	return l, nil
}

// validate replaces zeros by the defaults and checks the values.
func (c *LaneConfig) validate() error {
	bad := func(detail string) error { return &valueError{ErrConfig, "LaneConfig." + detail} }
	switch {
	case c.ResendDelay < 0:
		return bad("ResendDelay " + c.ResendDelay.String() + " is negative")
	case c.WakeInterval < 0:
		return bad("WakeInterval " + c.WakeInterval.String() + " is negative")
	case c.StallTimeout < 0:
		return bad("StallTimeout " + c.StallTimeout.String() + " is negative")
	case c.ResendBudget < 0:
		return bad("ResendBudget " + strconv.Itoa(c.ResendBudget) + " is negative")
	case c.SoftLimit < 0:
		return bad("SoftLimit " + strconv.Itoa(c.SoftLimit) + " is negative")
	case c.HardLimit < 0:
		return bad("HardLimit " + strconv.Itoa(c.HardLimit) + " is negative")
	}
	laneDefault(&c.ResendDelay, laneResendDelay)
	laneDefault(&c.WakeInterval, laneWakeInterval)
	laneDefault(&c.StallTimeout, laneStallTimeout)
	laneDefault(&c.ResendBudget, laneResendBudget)
	laneDefault(&c.HardLimit, laneHardLimit)
	laneDefault(&c.SoftLimit, min(laneSoftLimit, c.HardLimit))
	switch {
	case c.HardLimit < 2:
		return bad("HardLimit " + strconv.Itoa(c.HardLimit) + " leaves room for no event")
	case c.SoftLimit > c.HardLimit:
		return bad("SoftLimit " + strconv.Itoa(c.SoftLimit) + " is above HardLimit " + strconv.Itoa(c.HardLimit))
	}
	return nil
}

// laneDefault replaces a zero by its default.
func laneDefault[T int | time.Duration](value *T, zero T) {
	if *value == 0 {
		*value = zero
	}
}

// Send queues a copy of event, which may have any size, and returns its id. From now on
// NextDue may return it. On an error nothing was queued and no id was used (P-12.2.1):
//
//   - ErrLaneFull: the event is Droppable, and SoftLimit or HardLimit−1 events are
//     undelivered.
//   - ErrLaneOverflow: the event is Critical and HardLimit−1 events are undelivered,
//     which ends the lane; or the last id, 4,294,967,295, was used, which does not: Err
//     stays nil, and what is queued is still delivered.
//   - the reason, if the lane has ended.
func (l *OrderedLane) Send(event []byte, p Priority) (id uint32, err error) {
	now := l.read()
	n := l.InFlight()
	switch full := n >= l.cfg.HardLimit-1; {
	case l.err != nil:
		return 0, l.err
	case l.last == math.MaxUint32:
		return 0, ErrLaneOverflow
	case p == Droppable && (full || n >= l.cfg.SoftLimit):
		return 0, ErrLaneFull
	case full:
		l.end(ErrLaneOverflow)
		return 0, l.err
	case n == 0:
		l.movedAt = now
	}
	l.queue.push(event, now)
	l.last++
	return l.last, nil
}

// NextDue returns the event to send next, and counts it as sent; or false if none is
// due. Call it until then. Retransmissions come first, lowest id first, as far as the
// budget allows; then events that were never sent (P-12.2.3). An event is due again
// ResendDelay after its last copy, or as soon as an older event was retransmitted since
// then, because the receiver discards what comes after a missing event.
//
// If the next event is longer than max bytes, NextDue returns false, nothing counts as
// sent, and no later event is tried. Only NextDue detects a stall: after a pause, pass
// what has arrived to ReceiveAck first. Its cost does not depend on how much is queued.
func (l *OrderedLane) NextDue(max int) (LaneEvent, bool) {
	now := l.read()
	if l.err != nil || l.InFlight() == 0 {
		return LaneEvent{}, false
	}
	if now >= l.stallAt() {
		l.end(ErrStalled)
		return LaneEvent{}, false
	}
	retransmit := l.retransmitAt() <= now
	var id uint32
	switch {
	case retransmit && l.agesAt() <= now:
		id = l.acked + 1
	case retransmit:
		id = l.cursor + 1
	case l.sent < l.last:
		id = l.sent + 1
	default:
		return LaneEvent{}, false
	}
	event := l.slot(id)
	if event.size > max {
		return LaneEvent{}, false
	}
	event.at = now
	if retransmit {
		l.noteRetransmission(id, now)
	} else {
		l.sent = id
	}
	return LaneEvent{ID: id, Data: l.queue.data(event)}, true
}

// noteRetransmission takes one retransmission off the budget (P-12.2.4) and makes every
// later event that was sent due.
func (l *OrderedLane) noteRetransmission(id uint32, now int64) {
	if now >= l.intervalEnd {
		width := int64(l.cfg.WakeInterval)
		l.intervalEnd = saturatingAdd(now-now%width, int64(l.cfg.WakeInterval))
		l.spent = 0
	}
	l.spent++
	l.cursor, l.passEnd, l.retransmittedAt = id, l.sent, now
}

// Receive records that the event with this id has arrived. If deliver is true, it is the
// next in order and the caller must apply it; that happens once for each id (P-12.1.2).
// ack says that every event up to it was delivered, and must be sent to the peer
// whatever deliver is, because an earlier ack may have been lost (P-12.1.3). No id is
// an error, and id 0 is never delivered.
//
// If an event may turn out to be malformed, compare its id with Ack()+1 and check it
// before the call: an event that Receive has called deliverable is acknowledged, and
// does not come again.
func (l *OrderedLane) Receive(id uint32) (deliver bool, ack uint32) {
	l.read()
	deliver = l.err == nil && id != 0 && id == l.delivered+1
	if deliver {
		l.delivered = id
	}
	return deliver, l.delivered
}

// Ack returns the id up to which all events were delivered, 0 before the first. It
// stays the same after the end.
func (l *OrderedLane) Ack() uint32 { return l.delivered }

// ReceiveAck accepts an acknowledgement of the peer: every event up to ack was delivered
// and is freed. An ack that is old or says nothing new changes nothing and is no error.
// An ack above the highest id that NextDue has returned is ErrAck and changes nothing:
// the peer is faulty, or it is not the peer's. If the lane has ended, ReceiveAck returns
// the reason (P-12.2.5).
func (l *OrderedLane) ReceiveAck(ack uint32) error {
	now := l.read()
	switch {
	case l.err != nil:
		return l.err
	case ack > l.sent:
		return ErrAck
	case ack <= l.acked:
		return nil
	}
	l.queue.drop(int(ack - l.acked))
	l.acked = ack
	l.cursor = max(l.cursor, ack)
	l.movedAt = now
	return nil
}

// InFlight returns how many events were queued and are not known to be delivered. After
// the end it is how many were so at the end.
func (l *OrderedLane) InFlight() int { return int(l.last - l.acked) }

// Deadline returns when NextDue next has something to do: an event to return, or the
// lane to end. It is exact to the nanosecond and counted from the last reading of the
// clock; a time in the past means now (P-12.2.7). ok is false if nothing is undelivered,
// and after the end. Send, NextDue and ReceiveAck may change it.
func (l *OrderedLane) Deadline() (t time.Time, ok bool) {
	if l.err != nil || l.InFlight() == 0 {
		return time.Time{}, false
	}
	at := min(l.stallAt(), l.retransmitAt())
	if l.sent < l.last {
		at = min(at, l.slot(l.sent+1).at)
	}
	return l.clock.time(at), true
}

// Err returns why the lane has ended, or nil if it has not. It reports what the last
// call found and reads no clock.
func (l *OrderedLane) Err() error { return l.err }

// retransmitAt returns when the next retransmission is due and the budget allows it, or
// the largest int64 if there is nothing to retransmit.
func (l *OrderedLane) retransmitAt() int64 {
	if l.acked == l.sent {
		return math.MaxInt64
	}
	at := l.agesAt()
	if l.cursor < l.passEnd {
		at = min(at, l.retransmittedAt)
	}
	if l.spent >= l.cfg.ResendBudget {
		at = max(at, l.intervalEnd)
	}
	return at
}

// agesAt returns when the oldest event is due by age; it must have been sent.
func (l *OrderedLane) agesAt() int64 {
	return saturatingAdd(l.slot(l.acked+1).at, int64(l.cfg.ResendDelay))
}

// stallAt returns when the lane ends by a stall (P-12.2.6); an event must be queued.
func (l *OrderedLane) stallAt() int64 { return saturatingAdd(l.movedAt, int64(l.cfg.StallTimeout)) }

// slot returns the record of a queued event.
func (l *OrderedLane) slot(id uint32) *laneSlot { return l.queue.slot(int(id - l.acked - 1)) }

// read reads the clock, once a call (I4).
func (l *OrderedLane) read() int64 {
	now := l.clock.read()
	l.queue.trim(now)
	return now
}

// end ends the lane. The values of the getters stay.
func (l *OrderedLane) end(reason error) {
	l.err = reason
	l.queue = laneQueue{}
}
