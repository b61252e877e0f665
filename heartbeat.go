package ackbits

import (
	"math"
	"time"
)

// liveness is the clockwork of a session: when it owes the peer a datagram, when
// it gives up, and how it leaves (chapters 6 and 8 of docs/protocol.md). Every limit is
// inclusive (P-1.1.2).
type liveness struct {
	beat    int64 // the longest silence of ours
	timeout int64 // the longest silence of the peer
	stall   int64 // the longest wait of an event; negative: for ever

	sentAt  int64 // our last datagram of any type, or the start
	heardAt int64 // the peer's last datagram that was Newest or Late, or the start

	draining bool  // leaves once nothing is in flight,
	leaveBy  int64 // and at this time at the latest
	leaving  bool
	leftAt   int64
	farewell int // Disconnects still to be sent
}

// farewells is how many Disconnects a leaving peer sends in a row, as they are
// not resent (P-8.4.5): at 10 % of independent loss one session in a thousand is left
// to the timeout.
const farewells = 3

func (l *liveness) init(cfg *Config) {
	l.timeout = int64(cfg.Timeout)
	l.stall = int64(cfg.StallTimeout)
	// A caller that polls every P would be up to P late. So a heartbeat goes
	// early when the next poll would come after its time, but not before P/2 of
	// silence, or a large P would send one at every poll (P-6.3.2).
	heartbeat, poll := int64(cfg.Heartbeat), int64(cfg.PollInterval)
	l.beat = min(heartbeat, max(heartbeat-poll+1, poll/2+poll%2))
}

func (l *liveness) beatsAt() int64    { return saturatingAdd(l.sentAt, l.beat) }
func (l *liveness) timesOutAt() int64 { return saturatingAdd(l.heardAt, l.timeout) }

// drain begins to wait for what is in flight, at most for so long (P-8.4.6).
func (l *liveness) drain(now int64, patience time.Duration) {
	by := saturatingAdd(now, max(int64(patience), 0))
	if !l.draining || by < l.leaveBy {
		l.draining, l.leaveBy = true, by
	}
}

// drained reports whether the wait is over, so many events being undelivered.
func (l *liveness) drained(inFlight int) bool { return l.draining && inFlight == 0 }

// leave begins the farewell.
func (l *liveness) leave(now int64) {
	l.draining, l.leaving, l.leftAt, l.farewell = false, true, now, farewells
}

// closing reports whether the application may send nothing more.
func (l *liveness) closing() bool { return l.draining || l.leaving }

// reason returns why a session ends for the reason given: one that is leaving was
// closed, however it comes to an end.
func (l *liveness) reason(reason error) error {
	if l.leaving {
		return ErrClosed
	}
	return reason
}

// expired returns the reason for which the session must end now (P-8.1.1, P-8.2.1).
func (s *Session) expired(now int64) error {
	if now-s.live.heardAt >= s.live.timeout {
		return ErrTimeout
	}
	if first, ok := s.channel.sender.waitsSince(); ok && s.live.stall >= 0 && now-first >= s.live.stall {
		return ErrStalled
	}
	return nil
}

// stallsAt returns when the session will end because of its oldest event.
func (s *Session) stallsAt() int64 {
	first, ok := s.channel.sender.waitsSince()
	if !ok || s.live.stall < 0 {
		return math.MaxInt64
	}
	return saturatingAdd(first, s.live.stall)
}

// heartbeatDue reports whether a datagram must be sent for its acknowledgements
// alone: after a silence (P-6.3.1), or when a burst would outrun them (P-6.3.3).
func (s *Session) heartbeatDue(now int64) bool {
	return now-s.live.sentAt >= s.live.beat || s.channel.receiver.ackDue()
}
