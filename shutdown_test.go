package ackbits

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Shutdown waits until everything is delivered, and goes on retransmitting
// meanwhile.
// P-8.4.6.
func TestShutdownLeavesOnceAllIsDelivered(t *testing.T) {
	a, b := duo(t, Config{})
	a.send("one", "two")
	k := a.wantEventsOut(0, 1)
	a.s.Shutdown(3 * time.Second)
	a.sendFails(ErrClosed)
	a.emitFails(ErrClosed)
	require.Zero(t, a.s.Room())
	a.wantDeadline(50 * ms) // the heartbeat
	a.sleep(100 * ms)
	drop(k)
	b.deliver(a.wantEventsOut(0, 1))
	b.wantEvents("one", "two")
	a.wantAlive()
	a.sleep(30 * ms)
	a.deliver(b.emit(TypeInput))
	a.wantInFlight(0)
	a.wantDeadline(130 * ms) // now
	b.deliver(a.wantDatagram(TypeDisconnect))
	drop(a.wantDatagram(TypeDisconnect), a.wantDatagram(TypeDisconnect))
	a.wantNothing()
	a.wantErr(ErrClosed)
	b.wantErr(ErrPeerLeft)
}

func TestShutdownOfNothingIsClose(t *testing.T) {
	for _, patience := range []time.Duration{time.Hour, 0, -1} {
		a := solo(t, Config{})
		if patience <= 0 {
			a.send("never sent")
		}
		a.sleep(10 * ms)
		a.s.Shutdown(patience)
		a.wantDeadline(10 * ms)
		if patience <= 0 {
			drop(a.wantEventsOut(0))
		}
		drop(a.flush()...)
		a.wantErr(ErrClosed)
	}
}

// P-8.4.6.
func TestShutdownLosesPatience(t *testing.T) {
	a := solo(t, Config{ResendDelay: time.Hour, Heartbeat: time.Second})
	a.sendN(300-44, 1) // more than one list
	a.flush()
	a.s.Shutdown(2 * time.Second)
	a.sleep(500 * ms)
	a.s.Shutdown(time.Second) // shortens
	a.s.Shutdown(time.Hour)   // does not lengthen
	a.sleepUntil(time.Second)
	drop(a.wantDatagram(TypeHeartbeat))
	a.wantDeadline(1500 * ms)
	a.advance(500*ms - 1)
	a.wantNothing()
	a.sleep(1)
	require.Len(t, a.flush(), 3, "Disconnects")
	a.wantErr(ErrClosed)
	a.wantInFlight(256)
	require.Len(t, slices.Collect(a.s.Undelivered()), 256)
}

func TestShutdownAndTheTimeout(t *testing.T) {
	t.Run("timeout first", func(t *testing.T) {
		a := solo(t, Config{Heartbeat: 4 * time.Second})
		a.send("x")
		a.flush()
		a.s.Shutdown(5*time.Second + 1)
		a.sleep(5 * time.Second)
		a.wantNothing()
		a.wantErr(ErrTimeout)
	})
	t.Run("at one instant patience wins", func(t *testing.T) {
		a := solo(t, Config{Heartbeat: 4 * time.Second})
		a.send("x")
		a.flush()
		a.s.Shutdown(5 * time.Second)
		a.sleep(5 * time.Second)
		require.Len(t, a.flush(), 3)
		a.wantErr(ErrClosed)
	})
	t.Run("no time is too long", func(t *testing.T) {
		a := solo(t, Config{})
		a.sleep(time.Second)
		a.send("x")
		a.flush()
		a.s.Shutdown(math.MaxInt64)
		a.wantDeadline(1050 * ms)
		a.wantAlive()
	})
}

func TestCloseEndsTheWait(t *testing.T) {
	a := solo(t, Config{})
	a.send("x")
	a.flush()
	a.s.Shutdown(time.Hour)
	a.sleep(10 * ms)
	a.s.Close()
	a.wantDeadline(10 * ms)
	require.Len(t, a.flush(), 3)
	a.wantErr(ErrClosed)
	a.s.Shutdown(time.Hour)
	a.wantErr(ErrClosed)
}

// A session that has nothing to do for long notices that its patience ends before.
func TestShutdownShorterThanTheSilence(t *testing.T) {
	for _, flushed := range []bool{false, true} {
		a := solo(t, Config{})
		a.send("x")
		a.flush()
		a.s.Shutdown(10 * ms)
		if flushed {
			a.wantNothing()
		}
		a.wantDeadline(10 * ms)
		a.sleep(10 * ms)
		require.Len(t, a.flush(), 3, "Disconnects")
		a.wantErr(ErrClosed)
	}
}

// A Disconnect of the peer's ends a session that waits, and says so.
func TestPeerLeavesDuringShutdown(t *testing.T) {
	a := solo(t, Config{})
	a.send("x")
	a.flush()
	a.s.Shutdown(time.Hour)
	a.take(a.datagram(TypeDisconnect, 0, 0, 0)) // acknowledges the last one, too
	a.wantErr(ErrPeerLeft)
	a.wantInFlight(0)
}

// When both shut down, the first that has delivered all leaves, and the other
// keeps what it still had.
func TestBothShutDown(t *testing.T) {
	a, b := duo(t, Config{})
	a.send("from a")
	b.send("from b")
	k := a.wantEventsOut(0)
	a.s.Shutdown(time.Second)
	b.s.Shutdown(time.Second)
	b.deliver(k)
	b.wantEvents("from a")
	drop(b.wantEventsOut(0)) // is lost
	b.sleep(50 * ms)
	drop(a.wantDatagram(TypeHeartbeat))
	a.deliver(b.wantDatagram(TypeHeartbeat))
	b.deliver(a.wantDatagram(TypeDisconnect))
	drop(a.wantDatagram(TypeDisconnect), a.wantDatagram(TypeDisconnect))
	a.wantNothing()
	b.wantErr(ErrPeerLeft)
	require.Equal(t, []Event{{0, []byte("from b")}}, slices.Collect(b.s.Undelivered()))
}

func TestUndeliveredGoesByID(t *testing.T) {
	for _, ordered := range []bool{false, true} {
		for _, start := range []uint16{0, 65534} {
			a := solo(t, Config{Ordered: ordered, Backlog: 10})
			a.startAt(start, start)
			a.send("0", "1", "2")
			drop(a.wantEventsOut(start, start+1, start+2))
			a.send("3")
			k := a.wantEventsOut(start + 3)
			a.send("4", "")
			a.ack(k.Sequence, 0)
			want := []Event{{start, []byte("0")}, {start + 1, []byte("1")}, {start + 2, []byte("2")}}
			if ordered {
				want = append(want, Event{start + 3, []byte("3")})
			}
			want = append(want, Event{start + 4, []byte("4")}, Event{start + 5, []byte("")})
			require.Equal(t, want, slices.Collect(a.s.Undelivered()))
			drop(a.flush()...)
			a.sleep(5 * time.Second)
			a.wantNothing()
			a.wantErr(ErrTimeout)
			var kept []Event
			for event := range a.s.Undelivered() {
				kept = append(kept, event)
			}
			a.s.NextOutcome()
			a.s.Receive(k.bytes)
			a.s.Send([]byte("z"))
			require.Equal(t, want, kept, "for good")
			for event := range a.s.Undelivered() {
				require.Equal(t, "0", string(event.Data))
				require.Equal(t, len(event.Data), cap(event.Data), "append does not reach into the next")
				break
			}
		}
	}
}

func TestUndeliveredOfAllThereIs(t *testing.T) {
	a := solo(t, Config{})
	require.Empty(t, slices.Collect(a.s.Undelivered()))
	a.send("x")
	k := a.flush()[0]
	a.ack(k.Sequence, 0)
	require.Empty(t, slices.Collect(a.s.Undelivered()))
	a.s.Close()
	a.flush()
	require.Empty(t, slices.Collect(a.s.Undelivered()))
	require.Equal(t, outbox{}, a.s.channel.sender.outbox, "nothing is kept")
}

// The Send that overflows queues nothing, and what was queued is still there.
func TestUndeliveredAfterOverflow(t *testing.T) {
	a := solo(t, Config{})
	a.sendN(256, 1)
	a.sendFails(ErrUnacknowledged)
	require.Len(t, slices.Collect(a.s.Undelivered()), 256)
}
