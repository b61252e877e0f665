package ackbits

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// How a session ends by Close or a Disconnect, and what it answers afterwards. Shutdown is in
// shutdown_test.go.

// Fault: what was queued just before the disconnect never arrived.
// P-8.4.2, P-8.4.5.
func TestCloseSendsFreshEventsThenThreeDisconnects(t *testing.T) {
	inBothForms(t, func(t *testing.T, wide bool) {
		a, b := duo(t, Config{Wide: wide})
		drop(a.emit(TypeInput))
		a.send("last words")
		a.s.Close()
		a.wantAlive()
		a.wantDeadline(0)
		first := a.wantEventsOut(0)
		require.EqualValues(t, 1, first.Sequence)
		b.deliver(first)
		var left []*packet
		for i := range 3 {
			k := a.wantDatagram(TypeDisconnect)
			require.EqualValues(t, 2+i, k.Sequence)
			require.Empty(t, k.payload)
			left = append(left, k)
			a.wantAlive()
			a.s.Close() // says nothing new
		}
		a.wantNothing()
		a.wantErr(ErrClosed)
		a.wantInFlight(1) // nobody has acknowledged it
		b.wantEvents("last words")
		b.deliver(left[1])
		b.wantErr(ErrPeerLeft)
		drop(left...)
		b.refuse(ErrPeerLeft, left[0].bytes)
		b.wantNothing()
	})
}

// P-8.4.1.
func TestCloseStopsRetransmissionsHeartbeatTimeoutAndStall(t *testing.T) {
	inBothForms(t, func(t *testing.T, wide bool) {
		for _, pause := range []time.Duration{0, 100 * ms, 6 * time.Second, time.Hour} {
			for _, polled := range []bool{false, true} {
				p := solo(t, Config{Wide: wide})
				p.send("lost")
				p.wantEventsOut(0)
				p.sleep(100 * ms)
				if polled {
					p.s.Deadline()
					p.send(long(1177 - 4*b2i(wide)))
					p.wantEventsOut(0)
					p.wantEventsOut(1)
					p.sleep(100 * ms)
					p.wantEventsOut(0)
				}
				p.s.Close()
				closed := p.now()
				p.wantDeadline(closed)
				p.sleep(pause)
				for range 3 {
					p.wantDatagram(TypeDisconnect)
					p.wantDeadline(closed)
					p.sleep(pause)
				}
				p.wantNothing()
				p.wantErr(ErrClosed)
			}
		}
	})
}

// From Close on there is no retransmission, not even in the company of fresh events.
// P-8.4.3.
func TestLeavingCarriesFreshEventsOnly(t *testing.T) {
	p := solo(t, Config{})
	p.send("retransmission")
	p.wantEventsOut(0)
	p.sleep(100 * ms)
	p.send("fresh")
	p.s.Close()
	p.wantEventsOut(1)
	p.wantDatagram(TypeDisconnect)

	p = solo(t, Config{}) // nor when the retransmission was already found due
	p.send(long(1000), long(1000))
	p.flush()
	p.sleep(100 * ms)
	p.wantEventsOut(0)
	p.send("fresh")
	p.s.Close()
	p.wantEventsOut(2)
	p.wantDatagram(TypeDisconnect)
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

// P-8.4.2.
func TestLeavingSendsOnlyEventsInsideTheWindow(t *testing.T) {
	p := solo(t, Config{Backlog: 400})
	p.sendN(600, 0)
	p.s.Close()
	require.Len(t, p.wantDatagram(TypeEvent).ids(), 255)
	p.wantEventsOut(255)
	p.ack(0, 0) // Receive works in full: room for 255 more
	ids := p.wantDatagram(TypeEvent).ids()
	require.Len(t, ids, 255)
	require.EqualValues(t, 256, ids[0])
	p.wantDatagram(TypeDisconnect)
	p.ack(1, 0) // room again, but the three go in a row
	p.wantDatagram(TypeDisconnect)
	p.wantDatagram(TypeDisconnect)
	p.wantNothing()
	p.wantErr(ErrClosed)
	p.wantInFlight(344)
}

// P-8.4.2.
func TestShutdownOfALeavingSessionBeginsNothingAnew(t *testing.T) {
	p := solo(t, Config{})
	p.s.Close()
	p.wantDatagram(TypeDisconnect)
	p.s.Shutdown(time.Second)
	p.wantDatagram(TypeDisconnect)
	p.s.Shutdown(0)
	p.wantDatagram(TypeDisconnect)
	p.wantNothing()
	p.wantErr(ErrClosed)
}

// P-8.4.1.
func TestClosedSessionStillReceives(t *testing.T) {
	inBothForms(t, func(t *testing.T, wide bool) {
		p := solo(t, Config{Wide: wide})
		p.send("x")
		p.wantEventsOut(0)
		p.s.Close()
		p.s.Close()
		p.wantAlive()
		p.sendFails(ErrClosed)
		p.emitFails(ErrClosed)
		require.Zero(t, p.s.Room())
		require.Equal(t, []byte{9}, p.take(p.datagram(TypeInput, 0, 0, 0, 9)).Payload)
		p.wantInFlight(0)
		p.hear(TypeEvent, eventList(Event{0, []byte("late")})...)
		p.wantEvents("late")
		require.EqualValues(t, 1, p.wantDatagram(TypeDisconnect).Ack)
		for range 40 {
			p.hear(TypeInput) // a burst asks for no heartbeat any more
		}
		p.wantDatagram(TypeDisconnect)
		p.hear(TypeDisconnect)
		p.wantErr(ErrPeerLeft)
		p.wantNothing()
		p.sendFails(ErrPeerLeft)
		p.emitFails(ErrPeerLeft)
	})
}

// The repeat of a control message must not be a new event.
// P-8.4.4.
func TestFirstNewestDisconnectEndsTheSessionOnce(t *testing.T) {
	inBothForms(t, func(t *testing.T, wide bool) {
		p := solo(t, Config{Wide: wide})
		p.send("x")
		p.wantEventsOut(0)
		p.sleep(20 * ms)
		in := p.take(p.datagram(TypeDisconnect, 8, 0, 0))
		require.Equal(t, TypeDisconnect, in.Type)
		require.Nil(t, in.Payload)
		p.wantErr(ErrPeerLeft)
		p.wantInFlight(0) // its acknowledgements are read first
		require.Equal(t, 20*ms, p.s.RTT())
		for _, seq := range []uint16{7, 9} {
			p.refuse(ErrPeerLeft, p.datagram(TypeDisconnect, seq, 0, 0))
		}
		p.sleep(time.Second)
		p.wantNothing()
	})
}

// P-8.4.4.
func TestDisconnectThatIsNotNewestOnlyHasItsAcknowledgementsRead(t *testing.T) {
	p := solo(t, Config{})
	p.send("0")
	p.wantEventsOut(0)
	p.foreign = 100
	p.hear(TypeHeartbeat)
	for i, seq := range []uint16{100, 99, 10} { // Duplicate, Late, Stale
		in := p.take(p.datagram(TypeDisconnect, seq, uint16(i), 0))
		require.NotEqual(t, Newest, in.Arrival)
		p.wantAlive()
		p.wantInFlight(0)
		p.send("next")
		p.wantEventsOut(uint16(i) + 1)
	}
}

// The calls of a session that has ended, for each reason.
// P-8.5.1.
func TestEndedSessionAnswersEveryCallWithTheReason(t *testing.T) {
	for reason, end := range map[error]func(p *actor){
		ErrTimeout: func(p *actor) { p.sleep(6 * time.Second); p.wantNothing() },
		ErrStalled: func(p *actor) { p.sleep(16 * time.Second); p.hear(TypeHeartbeat); p.wantNothing() },
		ErrPeerLeft: func(p *actor) {
			p.hear(TypeDisconnect)
		},
		ErrClosed: func(p *actor) {
			p.s.Close()
			p.flush()
		},
		ErrUnacknowledged: func(p *actor) {
			p.sendN(p.s.Room(), 0)
			p.sendFails(ErrUnacknowledged)
		},
	} {
		t.Run(reason.Error(), func(t *testing.T) {
			p := solo(t, Config{Outcomes: true})
			p.emit(TypeInput)
			p.sleep(30 * ms)
			p.ack(0, 0)
			p.send("left behind")
			p.wantEventsOut(0)
			end(p)
			p.wantErr(reason)
			inFlight, st := p.s.InFlight(), p.s.Stats()
			require.Positive(t, inFlight)
			for range 3 {
				p.sendFails(reason)
				_, err := p.s.Send(make([]byte, 2000))
				require.ErrorIs(t, err, reason, "the end comes first")
				p.emitFails(reason)
				_, _, err = p.s.AppendDatagram(nil, TypeEvent, make([]byte, 2000))
				require.ErrorIs(t, err, reason)
				p.refuse(reason, p.datagram(TypeInput, 900, 1, 0))
				p.refuse(reason, nil)
				p.s.Close()
				p.wantNothing()
				require.Empty(t, p.flush())
				p.sleep(time.Hour)
			}
			p.wantErr(reason)
			p.wantInFlight(inFlight)
			require.Equal(t, 30*ms, p.s.RTT())
			require.Equal(t, st, p.s.Stats())
			p.wantOutcome(Outcome{0, TypeInput, true, 30 * ms})
			p.wantOutcome(Outcome{1, TypeEvent, false, 0}) // NextOutcome still judges
			p.fetchOutcomes()
			p.outcomes = nil
		})
	}
}

// Fault: queues of a closed peer kept growing.
func TestEndedSessionKeepsNoEvents(t *testing.T) {
	p := solo(t, Config{Ordered: true})
	p.hear(TypeEvent, eventList(Event{1, []byte("behind a gap")})...)
	p.sendN(200, 64)
	p.flush()
	p.sleep(5 * time.Second)
	p.wantNothing()
	for range 1000 {
		_, err := p.s.Send(make([]byte, 64))
		require.Equal(t, ErrTimeout, err)
	}
	p.wantInFlight(200)
	o := p.s.channel.sender.outbox
	require.Equal(t, outbox{fresh: 200, end: 200, undelivered: 200, events: o.events, bytes: o.bytes}, o, "but what Undelivered yields")
	require.Zero(t, p.s.channel.receiver.inbox)
}

// Close sets ErrClosed by the AppendDue that finds nothing more.
func TestDueEndsAClosedSessionInOneLoop(t *testing.T) {
	p := solo(t, Config{})
	p.send("x")
	p.s.Close()
	require.Len(t, p.flush(), 4)
	p.wantErr(ErrClosed)
	p.wantDeadline(-1)
}
