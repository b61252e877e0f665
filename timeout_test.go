package ackbits

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Timeout and stall: when a session ends by itself, and which clocks and pauses must not end
// it.

// P-1.1.2, P-8.1.1.
func TestTimeoutIsInclusiveAndCountsFromTheStart(t *testing.T) {
	p := solo(t, Config{})
	p.sleepUntil(5*time.Second - 1)
	p.wantDatagram(TypeHeartbeat)
	p.wantDeadline(5 * time.Second)
	p.sleep(1)
	p.wantNothing()
	p.wantErr(ErrTimeout)
}

// A live peer always sends newer ones; what does not move forward is an echo
// or a replay, and its acknowledgements are read nevertheless.
// P-8.1.1.
func TestEchoDoesNotRenewTheTimeout(t *testing.T) {
	for arrival, seq := range map[Arrival]uint16{Duplicate: 0, Stale: 50000} {
		t.Run(arrival.String(), func(t *testing.T) {
			p := solo(t, Config{})
			p.hear(TypeHeartbeat)
			p.send("event")
			p.wantEventsOut(0)
			p.sleep(5*time.Second - 1)
			require.Equal(t, arrival, p.take(p.datagram(TypeHeartbeat, seq, 0, 0)).Arrival)
			p.wantInFlight(0)
			p.flush()
			p.wantAlive()
			p.wantDeadline(5 * time.Second)
			p.sleep(1)
			p.wantNothing()
			p.wantErr(ErrTimeout)
		})
	}
}

// Whatever is Newest or Late keeps the session, whatever its type.
// P-8.1.1.
func TestWhatMovesForwardRenewsTheTimeout(t *testing.T) {
	for name, hear := range map[string]func(p *actor){
		"Event":     func(p *actor) { p.hear(TypeEvent, eventList(Event{p.foreign, nil})...) },
		"Heartbeat": func(p *actor) { p.hear(TypeHeartbeat) },
		"Input":     func(p *actor) { p.hear(TypeInput) },
		"own type":  func(p *actor) { p.hear(255) },
		"Bundle":    func(p *actor) { p.hear(TypeBundle, append([]byte{3}, eventList(Event{0, nil})...)...) },
	} {
		t.Run(name, func(t *testing.T) {
			p := solo(t, Config{})
			p.hear(TypeHeartbeat)
			for range 3 {
				p.sleep(5*time.Second - 1)
				hear(p)
				p.flush()
				p.wantAlive()
			}
			p.events = nil
			p.sleep(5 * time.Second)
			p.wantNothing()
			p.wantErr(ErrTimeout)
		})
	}
}

// P-8.1.1.
func TestWhatIsLateRenewsTheTimeout(t *testing.T) {
	p := solo(t, Config{})
	p.take(p.datagram(TypeInput, 1, nothingYet, 0))
	p.sleep(5*time.Second - 1)
	require.Equal(t, Late, p.take(p.datagram(TypeInput, 0, nothingYet, 0)).Arrival)
	p.flush()
	p.sleep(5*time.Second - 1)
	p.flush()
	p.wantAlive()
	p.sleep(1)
	p.wantNothing()
	p.wantErr(ErrTimeout)
}

func TestInvalidDatagramsDoNotKeepASessionAlive(t *testing.T) {
	p := solo(t, Config{Token: 1, Accept: func(Header, []byte) error { return errors.New("no") }})
	for range 9 {
		p.sleep(500 * ms)
		p.refuse(ErrRejected, p.datagram(TypeInput, 0, nothingYet, 0))
		p.refuse(ErrPayload, p.datagram(TypeHeartbeat, 0, nothingYet, 0, 1))
		p.refuse(ErrToken, Header{Type: TypeHeartbeat, Token: 2}.AppendTo(nil))
	}
	p.sleep(500 * ms)
	p.wantNothing()
	p.wantErr(ErrTimeout)
}

// Only AppendDue finds the timeout: what was waiting is received first.
// P-6.1.4.
func TestDatagramReceivedLateRevivesTheSession(t *testing.T) {
	p := solo(t, Config{})
	p.sleep(6 * time.Second)
	p.send("still takes events")
	p.emit(TypeInput)
	p.s.NextOutcome()
	p.wantAlive()
	p.hear(TypeHeartbeat)
	p.wantEventsOut(0)
	p.wantDeadline(6*time.Second + 50*ms)
}

// A stall of the application just under the limit.
func TestPauseOfTheCallerIsNoTimeout(t *testing.T) {
	p := solo(t, Config{})
	p.sleepUntil(4900 * ms)
	p.hear(TypeHeartbeat)
	p.wantDatagram(TypeHeartbeat)
	p.sleepUntil(9950 * ms) // no datagram was received for longer than the timeout
	for range 20 {
		p.hear(TypeHeartbeat)
	}
	p.wantDatagram(TypeHeartbeat)
	p.wantAlive()
	p.sleep(4999 * ms)
	p.flush()
	p.wantAlive()
}

// One step back must not underflow.
// P-1.1.1.
func TestClockThatStepsBackFiresNothing(t *testing.T) {
	for _, back := range []time.Duration{time.Nanosecond, ms, time.Hour, 100 * 365 * 24 * time.Hour} {
		p := solo(t, Config{})
		p.sleep(1971 * ms)
		p.hear(TypeHeartbeat)
		p.send("x")
		p.wantEventsOut(0)
		p.sleep(-back)
		p.wantNothing()
		p.sleep(50*ms - 1)
		p.wantNothing()
		p.sleep(1)
		p.wantDatagram(TypeHeartbeat)
		p.sleep(50 * ms)
		p.wantEventsOut(0) // 100 ms after the first, as if nothing had been
	}
}

func TestClockThatIsSetForwardFiresNothing(t *testing.T) {
	p := solo(t, Config{})
	p.sleep(24*time.Hour + 1)
	p.wantNothing()
	p.wantAlive()
	p.sleep(50*ms - 1)
	p.wantNothing()
	p.sleep(1)
	p.wantDatagram(TypeHeartbeat)
	p.sleep(24 * time.Hour) // is a long night
	p.wantNothing()
	p.wantErr(ErrTimeout)

	// A ManualClock that was first read at its zero.
	var clock ManualClock
	s, err := NewSession(Config{Clock: &clock})
	require.NoError(t, err)
	clock.Set(time.Now())
	_, ok := s.AppendDue(nil)
	require.False(t, ok)
	require.NoError(t, s.Err())
}

// Err says what the last call found.
func TestErrDoesNotFindTheTimeoutItself(t *testing.T) {
	p := solo(t, Config{})
	p.sleep(time.Hour)
	p.wantAlive()
	require.NotZero(t, p.s.Room())
	p.wantNothing()
	p.wantErr(ErrTimeout)
}

// Fault: the connection looks fine, events never get through.
// P-8.2.1, P-8.2.2.
func TestOldestEventThatWaitsTooLongEndsTheSession(t *testing.T) {
	inBothForms(t, func(t *testing.T, wide bool) {
		for _, off := range []bool{false, true} {
			cfg := Config{Wide: wide}
			if off {
				cfg.StallTimeout = -1
			}
			p := solo(t, cfg)
			p.sleep(500 * ms) // the wait begins when it is sent first
			p.send("never acknowledged")
			p.sleep(500 * ms)
			p.wantEventsOut(0)
			for p.now() < 16*time.Second-50*ms {
				p.sleep(50 * ms)
				p.hear(TypeHeartbeat)
				p.flush()
			}
			p.wantAlive()
			p.sleepUntil(16*time.Second - 1)
			p.flush()
			p.wantAlive()
			p.sleep(1)
			if off {
				p.flush()
				p.wantAlive()
				continue
			}
			p.wantDeadline(16 * time.Second)
			p.wantNothing()
			p.wantErr(ErrStalled)
			p.wantInFlight(1)
		}
	})
}

// P-8.2.1.
func TestStallGoesByTheOldestUndeliveredEvent(t *testing.T) {
	p := solo(t, Config{ResendDelay: time.Minute})
	p.send("first")
	p.wantEventsOut(0)
	p.sleep(10 * time.Second)
	p.hear(TypeHeartbeat)
	p.send("second")
	p.wantEventsOut(1)
	p.sleep(4 * time.Second)
	p.ack(0, 0) // now it is the second that waits, and from now on
	p.sleepUntil(19 * time.Second)
	p.hear(TypeHeartbeat)
	p.flush()
	p.sleepUntil(24 * time.Second)
	p.hear(TypeHeartbeat)
	p.flush()
	p.sleepUntil(29*time.Second - 1)
	p.hear(TypeHeartbeat)
	p.flush()
	p.wantAlive()
	p.sleep(1)
	p.wantNothing()
	p.wantErr(ErrStalled)
}

// P-8.2.1.
func TestEventThatWasNeverSentDoesNotStall(t *testing.T) {
	p := solo(t, Config{})
	p.send("queued by a caller who sleeps")
	p.sleep(time.Hour)
	p.hear(TypeHeartbeat)
	p.wantEventsOut(0)
	p.wantAlive()
}

// The oldest event is stalled however many newer ones are delivered meanwhile.
func TestNewerDeliveriesDoNotPutOffTheStall(t *testing.T) {
	p := solo(t, Config{StallTimeout: 500 * ms, ResendDelay: time.Hour})
	for id := range uint16(2) {
		p.send("x")
		p.wantEventsOut(id)
	}
	p.sleep(400 * ms)
	p.ack(1, 0)
	p.wantInFlight(1)
	p.sleep(100 * ms)
	p.wantNothing()
	p.wantErr(ErrStalled)
}
