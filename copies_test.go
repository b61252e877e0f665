package ackbits

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The lowest bit of a plan says how the next copy goes, unless none is left.
func TestPlanEndsWithItsLastCopy(t *testing.T) {
	for _, tc := range []struct {
		plan          copyPlan
		near, distant bool
	}{
		{copyPlan{}, false, false},
		{copyPlan{left: 0, far: 0b1}, false, false},
		{copyPlan{left: 1, far: 0b0}, true, false},
		{copyPlan{left: 1, far: 0b1}, false, true},
		{copyPlan{left: 2, far: 0b10}, true, false},
		{copyPlan{left: 2, far: 0b01}, false, true},
	} {
		require.Equal(t, tc.near, tc.plan.near(), "%+v", tc.plan)
		require.Equal(t, tc.distant, tc.plan.distant(), "%+v", tc.plan)
	}
}

// Events that back off while a queue stands need not any more once an older one is
// delivered, though by a bit, which is no sample of the round trip.
func TestEventBacksOffNoMoreOnceAnOlderOneIsDelivered(t *testing.T) {
	c, clock := newChannel(t, Config{})
	var heard uint16
	roundTrip := func(d time.Duration) {
		h, _ := c.NextHeader(TypeInput)
		clock.Advance(d)
		c.Receive(Header{Type: TypeInput, Sequence: heard, Ack: h.Sequence}, nil)
		heard++
	}
	carry := func() (seq uint16) {
		h, _ := c.NextHeader(TypeEvent)
		require.Len(t, c.AppendDueEvents(nil, h.Sequence, 1+4+1), 1+4+1)
		return h.Sequence
	}
	roundTrip(50 * ms)
	for range 60 {
		roundTrip(150 * ms)
	}
	c.Send([]byte("0"))
	c.Send([]byte("1"))
	first := carry()
	carry()
	roundTrip(150 * ms)
	for range patientTries {
		due, _ := c.Deadline()
		clock.Set(due)
		carry()
		carry()
	}
	clock.Advance(200 * ms)
	require.False(t, c.EventsDue(100))
	due, _ := c.Deadline()
	require.Greater(t, due.Sub(clock.Now()), 100*ms, "both back off")
	c.Receive(Header{Type: TypeInput, Sequence: heard, Ack: first + 2, AckBits: 0b10}, nil)
	require.Equal(t, 1, c.InFlight())
	require.True(t, c.EventsDue(100))
}

// An acknowledgement that shows a queue to be gone makes events due at once that have
// waited as long as they do without one.
func TestEventIsDueOnceTheQueueIsGone(t *testing.T) {
	p := solo(t, Config{ResendDelay: 20 * ms, Heartbeat: 200 * ms})
	roundTrips := func(n int, each time.Duration) {
		for range n {
			k := p.emit(TypeInput)
			p.sleep(each)
			p.ack(k.Sequence, 0)
		}
	}
	roundTrips(1, 50*ms)
	roundTrips(newestSamples, 300*ms)
	require.True(t, p.s.channel.sender.path.stands)
	roundTrips(int(standsFor/int64(50*ms)), 50*ms)
	p.send("0")
	first := p.wantEventsOut(0)
	p.send("1")
	p.wantEventsOut(1)
	p.sleep(50 * ms)
	require.True(t, p.s.channel.sender.path.stands)
	p.wantNothing()
	p.ack(first.Sequence, 0)
	require.False(t, p.s.channel.sender.path.stands)
	p.wantEventsOut(1)
}
