package ackbits

import (
	"math"
	"time"
)

// The timers of a session: heartbeat, timeout, stall and leaving (chapters 6 and 8 of
// docs/protocol.md). When events are due is in copies.go and due.go; session.go asks
// the timers and builds the datagrams.

// liveness holds the timers of a session. Times and durations are in nanoseconds, and
// every limit is inclusive (P-1.1.2). Each is written once, as the time at which it is
// reached, so that what AppendDue does and what Deadline says cannot differ.
type liveness struct {
	beat    int64 // the maximum interval without sending, PollInterval taken into account
	timeout int64 // the peer is declared lost after this long without a datagram
	stall   int64 // the longest that an event may wait; negative: for ever

	sentAt  int64 // when we last sent a datagram of any type, or the start
	heardAt int64 // when the peer's last Newest or Late datagram arrived, or the start

	draining    bool  // Shutdown was called: leave once nothing is in flight,
	leaveBy     int64 // and at this time at the latest
	leaving     bool  // Close was called, or draining is over
	leftAt      int64
	disconnects int // how many Disconnects are still to be sent
}

// disconnectCopies is how many Disconnects a leaving peer sends in a row, since they are
// not retransmitted (P-8.4.5). With three, at 10 % of independent loss, the peer of one
// session in a thousand has to wait for its timeout. Fewer, and more of them have to;
// more cost datagrams for little.
const disconnectCopies = 3

func (l *liveness) init(cfg *Config) {
	l.timeout = int64(cfg.Timeout)
	l.stall = int64(cfg.StallTimeout)
	// A caller that polls at an interval of P would be up to P late. So a heartbeat is
	// sent early if the next poll would come too late for it. But not within P/2 of the
	// last datagram, or with a large P one would be sent at every poll (P-6.3.2).
	heartbeat, poll := int64(cfg.Heartbeat), int64(cfg.PollInterval)
	l.beat = min(heartbeat, max(heartbeat-poll+1, poll/2+poll%2))
}

// beatsAt returns when a heartbeat is due, timesOutAt when the peer is declared lost, if
// nothing is sent or received until then.
func (l *liveness) beatsAt() int64    { return saturatingAdd(l.sentAt, l.beat) }
func (l *liveness) timesOutAt() int64 { return saturatingAdd(l.heardAt, l.timeout) }

// drain begins to wait until nothing is in flight, for at most patience. A second call
// can only shorten the wait (P-8.4.6).
func (l *liveness) drain(now int64, patience time.Duration) {
	by := saturatingAdd(now, max(int64(patience), 0))
	if !l.draining || by < l.leaveBy {
		l.draining, l.leaveBy = true, by
	}
}

// drained reports whether the wait is over, given how many events are in flight.
func (l *liveness) drained(inFlight int) bool { return l.draining && inFlight == 0 }

// leave begins to leave: only events that were never sent, and then the Disconnects,
// remain to be sent (P-8.4.2).
func (l *liveness) leave(now int64) {
	l.draining, l.leaving, l.leftAt, l.disconnects = false, true, now, disconnectCopies
}

// closing reports whether the application has closed the session, so that it may send
// nothing more.
func (l *liveness) closing() bool { return l.draining || l.leaving }

// reason returns the error with which a session ends that must end for the given
// reason. While it is leaving, that is ErrClosed whatever the reason.
func (l *liveness) reason(reason error) error {
	if l.leaving {
		return ErrClosed
	}
	return reason
}

// expired returns the error with which the session must end now, by timeout or stall
// (P-8.1.1, P-8.2.1), or nil.
func (s *Session) expired(now int64) error {
	switch {
	case now >= s.live.timesOutAt():
		return ErrTimeout
	case now >= s.stallsAt():
		return ErrStalled
	}
	return nil
}

// stallsAt returns when the session will end by a stall, if its oldest event is not
// delivered until then; the largest int64 if no event is on the wire.
func (s *Session) stallsAt() int64 {
	first, ok := s.channel.waitsSince()
	if !ok || s.live.stall < 0 {
		return math.MaxInt64
	}
	return saturatingAdd(first, s.live.stall)
}

// heartbeatDue reports whether a datagram must be sent for its acknowledgements alone:
// because none was sent for too long (P-6.3.1), or because after a burst the next
// datagrams would push the first ones out of the ack window (P-6.3.3).
func (s *Session) heartbeatDue(now int64) bool {
	return now >= s.live.beatsAt() || s.channel.ackDue()
}
