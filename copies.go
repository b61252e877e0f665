package ackbits

import (
	"math"
	"time"
)

// When copies of an event are due: the questions that the sending half asks, and the
// protocol's own answers, which follow a fixed delay. With Config.Adaptive the answers
// are those of adaptive.go. How copies are packed is in packing.go.

// copyRule decides when an event is sent again and how many proactive copies it gets,
// which is the sender's choice (P-17.1.1). A sender has one rule, chosen in init, and
// does not depend on which. The rule is told what it needs with each question, and keeps
// none of it.
type copyRule interface {
	// wake is called when there are events again; it returns the window that limits
	// them, or nil. rest is called when there have been none for a while. The questions
	// down to withheld are asked only between the two.
	wake(log *sentLog, p *path) *window
	rest()

	// plan returns the proactive copies of an event that is now sent for the first
	// time.
	plan(now int64) copyPlan
	// proactiveAt returns when the next proactive copy of an event may go in a datagram
	// of this kind; the event's plan must have one.
	proactiveAt(e *pending, in carrier) int64
	// presumeLost reports whether the last copy of an event must be presumed lost by
	// now, and if so, gives the event its next plan. overtaken says that a datagram
	// sent after the last copy is acknowledged, and the copy's is not.
	presumeLost(e *pending, overtaken bool, p *path, now int64) cause
	// presumeLostAt returns when presumeLost will say so, if nothing is
	// acknowledged until then.
	presumeLostAt(e *pending, overtaken bool, p *path) int64
	// backsOff returns how long an event whose copies are lost again and again must
	// wait, at least, from its last copy to the next.
	backsOff(e *pending, p *path) int64
	// cutOff reports whether nothing is acknowledged any more, so that the oldest
	// events ride in whatever is sent anyway; oldest was sent.
	cutOff(oldest *pending, p *path, now int64) bool
	// withheld reports whether the peer withholds application datagrams, so that
	// events must not go in them. It may be asked at any time.
	withheld() bool

	// timedOut notes that events were just presumed lost by timeout.
	timedOut(p *path, now int64)
	// carrierSent notes that an application datagram was sent, which could carry
	// events. Each of the notes from here on reports whether a copy may now be due
	// earlier than the answers said so far.
	carrierSent(now int64) (sooner bool)
	// acknowledged notes that the peer acknowledged datagrams for the first time; the
	// log has their outcomes, the path the newest sample.
	acknowledged(log *sentLog, p *path, now int64) (sooner bool)
	// reordered notes that a datagram was acknowledged by bit, and for the first
	// time, after newer ones were.
	reordered(number int64, p *path)
}

// cause is why a copy is presumed lost.
type cause uint8

const (
	notLost      cause = iota
	byOvertaking       // datagrams that were sent later arrived
	byTimeout
	byDelay // of the fixed rule
)

// copyPlan says how many proactive copies of an event are left, those which go before
// a loss is known, and in the low bits of far, which of them go far from the one
// before. The zero value plans none.
type copyPlan struct{ left, far uint8 }

// near and distant report how the next copy goes, if there is one.
func (p copyPlan) near() bool    { return p.left > 0 && p.far&1 == 0 }
func (p copyPlan) distant() bool { return p.left > 0 && p.far&1 != 0 }

// spend takes the next copy off the plan.
func (p *copyPlan) spend() {
	if p.left > 0 {
		p.left--
		p.far >>= 1
	}
}

// carrier says what kind of datagram takes events along.
type carrier bool

const (
	ownDatagram carrier = false
	bundle      carrier = true
)

// fixedRule is the protocol's own rule (P-6.4.1): an event is sent again when delay has
// passed since its last copy, until it is delivered (P-5.2.4). It has no proactive copies.
// While a queue stands on the path, the delay is at least as long as an acknowledgement may
// take, and events back off; otherwise the copies themselves would feed the queue
// (P-17.1.1).
type fixedRule struct{ delay, heartbeat int64 }

func (*fixedRule) wake(*sentLog, *path) *window { return nil }
func (*fixedRule) rest()                        {}

func (*fixedRule) plan(int64) copyPlan { return copyPlan{} }

func (*fixedRule) proactiveAt(*pending, carrier) int64 { return math.MaxInt64 }

// delayOn is the delay on the path in its present state.
func (r *fixedRule) delayOn(p *path) int64 {
	if !p.stands {
		return r.delay
	}
	return max(r.delay, p.patience(r.heartbeat))
}

func (r *fixedRule) presumeLost(e *pending, _ bool, p *path, now int64) cause {
	if now-e.last < r.delayOn(p) {
		return notLost
	}
	return byDelay
}

func (r *fixedRule) presumeLostAt(e *pending, _ bool, p *path) int64 {
	return saturatingAdd(e.last, r.delayOn(p))
}

func (r *fixedRule) backsOff(e *pending, p *path) int64 {
	if !p.stands {
		return 0
	}
	return backoff(e.tries, p.patience(r.heartbeat))
}

func (*fixedRule) cutOff(*pending, *path, int64) bool       { return false }
func (*fixedRule) withheld() bool                           { return false }
func (*fixedRule) timedOut(*path, int64)                    {}
func (*fixedRule) carrierSent(int64) bool                   { return false }
func (*fixedRule) acknowledged(*sentLog, *path, int64) bool { return false }
func (*fixedRule) reordered(int64, *path)                   {}

// After patientTries copies in a row without an acknowledgement, the wait of an event
// doubles with each further copy, up to mostBackoff. Fewer tries delay events that were
// lost by mere chance: at 30 % loss one event in 400 is lost five times. More let a peer
// that never acknowledges draw more copies out of a session.
const (
	patientTries = 4
	mostBackoff  = int64(time.Second)
)

// backoff is how long an event waits after so many tries.
func backoff(tries uint8, patience int64) int64 {
	if tries <= patientTries {
		return 0
	}
	return min(min(patience, mostBackoff)<<min(tries-patientTries, 16), mostBackoff)
}
