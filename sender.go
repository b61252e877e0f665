package ackbits

import (
	"math"
	"time"

	"github.com/ackbits/ackbits/internal/trim"
)

// The sending half of a channel: it numbers our datagrams, decides which events are due
// (due.go), packs them (packing.go), and reads from the peer's acknowledgements which of
// both were delivered (acknowledge.go). The peer's own data is in receiver.go; bytes on
// the wire, heartbeats and the end are the owner's part.

// sender is that half. What every datagram touches comes first; see channel.
type sender struct {
	rule     copyRule // when copies go
	judgeAt  int64    // before this time no datagram is presumed lost
	oldestAt int64    // when the oldest undelivered event became the oldest
	log      sentLog  // our datagrams
	path     path
	stats    senderStats
	window   *window // how much may be in flight; nil: any
	budget   budget  // limits the bytes of further copies a second
	outbox   outbox  // our events
	outcomes outcomeQueue
	losses   losses

	asOf           int64 // what was due at this time is collected
	patience       int64 // until a copy that is sent now may call for another
	lossDelay      int64
	maxUndelivered int
	maxEvent       int16
	overhead       int16  // bytes of a datagram beside its payload
	queueAbove     uint16 // the delay, in milliseconds, above which the rule takes a queue to stand
	awake          bool   // the rule was woken: there are or were events
}

// senderStats are the counters of this half; see Stats.
type senderStats struct {
	DatagramsSent                              uint64
	Delivered, Lost, LateAcks, OutcomesDropped uint64
	EventsSent, EventsResent, EventsAhead      uint64
	EventsDelivered                            uint64
}

// init sets the sender up. cfg must be complete.
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

// number numbers a datagram of type t that is sent now, and returns its sequence.
func (s *sender) number(t Type, now int64) (seq uint16) {
	switch {
	case !s.log.full():
	case s.log.mayForgetOldest():
		s.log.forgetOldest()
	default:
		s.makeRoom(now)
	}
	s.stats.DatagramsSent++
	return s.log.add(t, now)
}

// halfway reports whether the next datagram would be the 32,768th since the newest one
// acknowledged. From there on an old acknowledgement might name a datagram of a later
// turn of the sequences, and its events would wrongly count as delivered (P-3.1.4).
func (s *sender) halfway() bool { return s.log.count-s.log.top >= 1<<15 }

// numbered returns how many datagrams were numbered, which is the number of the next one.
func (s *sender) numbered() int64 { return s.log.count }

// inFlight returns how many events are not known to be delivered.
func (s *sender) inFlight() int { return s.outbox.undelivered }

// eventLimit returns how many bytes an event may have.
func (s *sender) eventLimit() int { return int(s.maxEvent) }

// smoothedRTT returns the smoothed round-trip time; 0 before the first sample.
func (s *sender) smoothedRTT() time.Duration { return time.Duration(s.path.rtt.Smoothed()) }

// withheld reports whether events must not go in application datagrams.
func (s *sender) withheld() bool { return s.rule.withheld() }

// waiting yields the undelivered events; see outbox.waiting.
func (s *sender) waiting(ordered bool, yield func(Event) bool) { s.outbox.waiting(ordered, yield) }

// trim frees memory that was not needed lately.
func (s *sender) trim(busy bool, now int64) {
	if s.awake && !busy && s.outbox.undelivered == 0 {
		s.rule.rest()
		s.window, s.awake = nil, false
	}
	s.trimLog(busy, now)
	s.outbox.trim(busy)
	s.outcomes.trim(busy)
}

// trimLog frees memory of the log of datagrams sent, except for those that must be
// remembered and for the room that the next loss would take.
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

// end frees all memory for events except the undelivered ones. Outcomes stay.
func (s *sender) end() { s.outbox.clear() }

// snapshot fills in the counters of this half.
func (s *sender) snapshot(to *Stats) {
	n := &s.stats
	to.DatagramsSent = n.DatagramsSent
	to.Delivered, to.Lost, to.LateAcks, to.OutcomesDropped = n.Delivered, n.Lost, n.LateAcks, n.OutcomesDropped
	to.EventsSent, to.EventsResent, to.EventsAhead = n.EventsSent, n.EventsResent, n.EventsAhead
	to.EventsDelivered = n.EventsDelivered
	to.Undecided = int(n.DatagramsSent - n.Delivered - n.Lost)
	to.RTT = s.smoothedRTT()
	to.RTTVar = time.Duration(s.path.rtt.Variation())
	to.MinRTT = time.Duration(s.path.floor())
	to.QueueDelay = time.Duration(s.path.queue(newestSamples))
}
