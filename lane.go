package ackbits

import (
	"math"
	"strconv"
	"time"
)

// OrderedLane: events in order, one after the other, over a transport of the caller's
// own. It stands alone; what it keeps is lane_queue.go's.

// Defaults of LaneConfig, from the protocol. Both ends may differ in them: none
// is on the wire.
const (
	// Shorter than the round trip, and every event goes out twice; longer, and
	// one lost event holds up all later ones for that much more.
	laneResendDelay = 250 * time.Millisecond
	// Shorter, and the same budget lets more resends through in a second;
	// longer, and they come in larger bursts with longer waits between them.
	laneWakeInterval = 100 * time.Millisecond
	// One lost event makes every later one due. Smaller, and a busy lane fills
	// faster than it is resent and never catches up; larger, and a full lane
	// floods a path that is losing datagrams already.
	laneResendBudget = 32
	// Smaller, and a short outage refuses chat lines that would have arrived;
	// larger, and less room is left for the events that must not be refused.
	laneSoftLimit = 256
	// Smaller, and a burst ends a connection that was only slow; larger, and a
	// peer that acknowledges nothing holds more memory for longer.
	laneHardLimit = 512
	// Shorter, and a connection dies of an outage it would have survived;
	// longer, and one whose events never arrive looks alive for that long.
	laneStallTimeout = 15 * time.Second
)

// Priority says what becomes of an event when the lane is filling up. A value
// other than Droppable counts as Critical.
type Priority uint8

const (
	// Critical is for events whose loss would break the peer's state. They are
	// queued up to HardLimit, and one that finds no room ends the lane.
	Critical Priority = iota
	// Droppable is for events that the peer can do without. From SoftLimit on
	// they are refused, which never ends the lane.
	Droppable
)

// LaneConfig configures an OrderedLane. The zero value of every field is its
// default, the protocol's own; a negative value is an error.
type LaneConfig struct {
	// Clock tells the time. If nil, the system's does.
	Clock Clock
	// ResendDelay is the age, counted from its last send, at which an event is
	// sent again. If zero, 250 ms. At StallTimeout or more nothing is resent.
	ResendDelay time.Duration
	// WakeInterval is the width of the grid, counted from NewOrderedLane, that
	// ResendBudget is given out by. If zero, 100 ms. It delays nothing as long
	// as the budget lasts, and the caller need not call at these moments.
	WakeInterval time.Duration
	// ResendBudget is how many resends one WakeInterval allows, however many
	// calls ask for them. If zero, 32. What is not used is gone; first sends
	// neither use it nor wait for it.
	ResendBudget int
	// SoftLimit is the number of undelivered events from which a Droppable one
	// is refused. If zero, 256, or HardLimit where that is lower.
	SoftLimit int
	// HardLimit is the number of undelivered events that the lane never
	// reaches: with 512, which zero stands for, 511 may be undelivered, and the
	// Critical event that would be the 512th ends the lane instead. A Droppable
	// one is refused there at the latest. It is at least 2 and SoftLimit.
	HardLimit int
	// StallTimeout is how long events may be undelivered without an
	// acknowledgement that moves the queue before the lane has ended. If zero,
	// 15 s.
	StallTimeout time.Duration
}

// LaneEvent is an event to put on the wire: both go into one packet, laid out
// as the caller likes.
type LaneEvent struct {
	// ID is where the event stands in the stream, from 1.
	ID uint32
	// Data is the lane's own copy, unchanged until the event is acknowledged.
	// It must not be written to.
	Data []byte
}

// OrderedLane is one end of a reliable, ordered stream of events in each
// direction, by Go-Back-N with a cumulative acknowledgement: an event is handed
// over when every older one has been, and one that arrives early is discarded
// and comes again. It is for events that must keep their order and may wait for
// each other; a Session carries events that need not.
//
// The lane knows no datagrams. Its loop is
//
//	for each packet that has arrived {
//		an event: deliver, ack := lane.Receive(id); send ack; if deliver, apply it
//		an acknowledgement: err := lane.ReceiveAck(ack)
//	}
//	id, err := lane.Send(event, ackbits.Critical)
//	for ev, ok := lane.NextDue(max); ok; ev, ok = lane.NextDue(max) { send ev }
//	if lane.Err() != nil { the connection is to be closed }
//
// A connection needs a new lane at each end, since ids start at 1 (P-12.1.1), and
// packets of an earlier connection or another sender must be kept from it: a forged
// acknowledgement clears the queue (P-12.2.8). Any order of calls is legal. A lane is not
// safe for concurrent use and is made by NewOrderedLane only.
//
// The lane ends with ErrStalled or ErrLaneOverflow, both meaning that the peer
// has missed events for good. From then on Send and ReceiveAck return the
// reason, NextDue and Receive return false, and the queued events are released.
type OrderedLane struct {
	cfg   LaneConfig // defaults filled in
	clock timeline
	err   error // why the lane has ended

	delivered uint32 // receiving: the highest id handed over, without a gap

	// Sending: acked ≤ sent ≤ last. The queue holds acked+1 … last, and those
	// above sent were never on the wire.
	acked, sent, last uint32
	queue             laneQueue
	movedAt           int64 // the last acknowledgement that moved the queue, or when it became non-empty

	// A resend makes every later event that was on the wire due, because the
	// receiver has discarded it or is going to: that is a pass over the queue (P-12.2.2).
	// Events up to cursor have had their turn in it, those above it and up to
	// passEnd are due, and those above passEnd were first sent after the last
	// resend and are due by age alone.
	//
	// Outside of cursor+1 … passEnd later ids were sent later, so the oldest
	// event is the first to come of age and no other age has to be looked at.
	cursor, passEnd uint32
	resentAt        int64 // the last resend

	gridEnd int64 // the end of the WakeInterval that the last resend was in
	spent   int   // resends in it
}

// NewOrderedLane returns a lane that has sent and received nothing. A negative
// or contradictory value is an error that matches ErrConfig and names it.
func NewOrderedLane(cfg LaneConfig) (*OrderedLane, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	l := &OrderedLane{cfg: cfg}
	l.clock.start(cfg.Clock)
	return l, nil
}

// validate fills in the defaults.
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

func laneDefault[T int | time.Duration](value *T, zero T) {
	if *value == 0 {
		*value = zero
	}
}

// Send queues a copy of event, of any size, and returns its id; NextDue returns
// it from now on. An error means that nothing was queued and no id was used
// (P-12.2.1):
//
//   - ErrLaneFull: the event is Droppable and SoftLimit events are undelivered,
//     or one less than HardLimit.
//   - ErrLaneOverflow: the event is Critical and would be the one that HardLimit
//     excludes, which ends the lane; or id 4,294,967,295 is used up, which does
//     not: Err stays nil, and what is queued goes on to be delivered.
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

// NextDue returns the event to be sent next, which counts as sent from then on,
// or false if none is due: call it until then. Resends come first, lowest id
// first, as far as the budget goes, then first sends (P-12.2.3). An event is due again at
// the age of ResendDelay, and as soon as an older one has been resent since its
// last send, because the receiver discards what comes after a gap.
//
// If the next event is longer than max bytes, the answer is false, nothing
// counts as sent and no later event is looked at. NextDue alone finds a stall;
// after a pause, hand in what has arrived first. Its cost does not depend on
// how much is queued.
func (l *OrderedLane) NextDue(max int) (LaneEvent, bool) {
	now := l.read()
	if l.err != nil || l.InFlight() == 0 {
		return LaneEvent{}, false
	}
	if now >= l.stallAt() {
		l.end(ErrStalled)
		return LaneEvent{}, false
	}
	resend := l.resendAt() <= now
	var id uint32
	switch {
	case resend && l.agesAt() <= now:
		id = l.acked + 1
	case resend:
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
	if resend {
		l.noteResend(id, now)
	} else {
		l.sent = id
	}
	return LaneEvent{ID: id, Data: l.queue.data(event)}, true
}

// noteResend takes one resend off the budget and makes all that is on the wire
// after it due (P-12.2.4).
func (l *OrderedLane) noteResend(id uint32, now int64) {
	if now >= l.gridEnd {
		width := int64(l.cfg.WakeInterval)
		l.gridEnd = saturatingAdd(now-now%width, int64(l.cfg.WakeInterval))
		l.spent = 0
	}
	l.spent++
	l.cursor, l.passEnd, l.resentAt = id, l.sent, now
}

// Receive judges the id of an event that has arrived, and deliver says whether
// it is the next in order and has to be applied, which happens once for each
// id (P-12.1.2). The ack is for the peer and has to be sent whatever deliver says,
// since it may repair the loss of an earlier one: every event up to it was
// delivered (P-12.1.3).
// No id is an error, and id 0 is never delivered.
//
// A caller whose event may turn out to be malformed compares the id with
// Ack()+1 before the call; an event once delivered does not come again.
func (l *OrderedLane) Receive(id uint32) (deliver bool, ack uint32) {
	l.read()
	deliver = l.err == nil && id != 0 && id == l.delivered+1
	if deliver {
		l.delivered = id
	}
	return deliver, l.delivered
}

// Ack returns the highest id delivered without a gap, 0 before the first; it
// stays after the end.
func (l *OrderedLane) Ack() uint32 { return l.delivered }

// ReceiveAck takes an acknowledgement of the peer: every event up to ack was
// delivered and is released. An old one, or one that says nothing new, is no
// error and changes nothing. One above the highest id that NextDue has returned
// is ErrAck and changes nothing either: the peer is broken or not the peer. If
// the lane has ended, the reason is returned (P-12.2.5).
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

// InFlight returns how many events were queued and are not known to be delivered.
// After the end it tells how many stayed so.
func (l *OrderedLane) InFlight() int { return int(l.last - l.acked) }

// Deadline returns when NextDue has something to do next, returning an event or
// ending the lane, to the nanosecond; a moment that is past means now. It is
// false while nothing is undelivered, and after the end. Send, NextDue and
// ReceiveAck may change it. It is counted from the last reading of the clock
// (P-12.2.7).
func (l *OrderedLane) Deadline() (t time.Time, ok bool) {
	if l.err != nil || l.InFlight() == 0 {
		return time.Time{}, false
	}
	at := min(l.stallAt(), l.resendAt())
	if l.sent < l.last {
		at = min(at, l.slot(l.sent+1).at)
	}
	return l.clock.time(at), true
}

// Err returns why the lane has ended, or nil while it lives. It says what the
// last call found and reads no clock.
func (l *OrderedLane) Err() error { return l.err }

// resendAt returns when the next resend is due and the budget allows it, or
// the end of time if nothing is on the wire.
func (l *OrderedLane) resendAt() int64 {
	if l.acked == l.sent {
		return math.MaxInt64
	}
	at := l.agesAt()
	if l.cursor < l.passEnd {
		at = min(at, l.resentAt)
	}
	if l.spent >= l.cfg.ResendBudget {
		at = max(at, l.gridEnd)
	}
	return at
}

// agesAt returns when the oldest event comes of age; one must be on the wire.
func (l *OrderedLane) agesAt() int64 {
	return saturatingAdd(l.slot(l.acked+1).at, int64(l.cfg.ResendDelay))
}

// stallAt returns when the lane ends by a stall (P-12.2.6); one event must be queued.
func (l *OrderedLane) stallAt() int64 { return saturatingAdd(l.movedAt, int64(l.cfg.StallTimeout)) }

// slot returns the record of a queued event.
func (l *OrderedLane) slot(id uint32) *laneSlot { return l.queue.slot(int(id - l.acked - 1)) }

// read takes the one reading of the clock that a call has (I4).
func (l *OrderedLane) read() int64 {
	now := l.clock.read()
	l.queue.trim(now)
	return now
}

// end ends the lane. What the getters tell stays.
func (l *OrderedLane) end(reason error) {
	l.err = reason
	l.queue = laneQueue{}
}
