package ackbits

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Copies may overdraw the budget by a second less the largest event, proactive ones
// by half of one; where an event is worth more than that, all must have come in.
func TestBudgetLeavesHalfOfItsBurstToRetransmissions(t *testing.T) {
	for _, tc := range []struct {
		rate                  int64
		retransmission, extra time.Duration // how long before all has come in
	}{
		{400, 750 * ms, 250 * ms},
		{200, 500 * ms, 0},
		{100, 0, 0},
		{50, 0, 0},
	} {
		b := budget{rate: tc.rate}
		b.note(0)
		b.note(96) // and 4 of its own
		b.note(95)
		b.spend(96, 1000, 1000)
		b.spend(96, 500, 500) // on top of it
		require.Equal(t, 1000+2*100*int64(time.Second)/tc.rate, b.even)
		require.Equal(t, b.even-int64(tc.retransmission), b.allowedAt(), tc.rate)
		require.Equal(t, b.even-int64(tc.extra), b.spareAt(), tc.rate)
		require.False(t, b.spare(0, b.spareAt()-1), tc.rate)
		require.True(t, b.spare(0, b.spareAt()), tc.rate)
	}
	b := budget{rate: 1000}
	b.note(96)
	for n, want := range []bool{true, true, true, true, true, false} { // 100 ms each
		require.Equal(t, want, b.spare(n, 0), n)
	}
	b.even = int64(100 * ms)
	require.True(t, b.spare(3, 0))
	require.False(t, b.spare(4, 0))
	require.EqualValues(t, 1_333_333_334, (&budget{rate: 3}).cost(0), "4 bytes, rounded up")
	b = budget{} // no limit
	b.note(1000)
	b.spend(1000, 5, 5)
	require.Zero(t, b)
}

// The oldest undelivered event goes once a second though nothing of the budget is left.
// P-17.1.1.
func TestOldestEventGoesOnceASecondWhateverTheBudget(t *testing.T) {
	p := solo(t, Config{EventRate: 1, Heartbeat: 4 * time.Second})
	p.send("x")
	p.wantEventsOut(0)
	p.sleep(100 * ms)
	p.wantEventsOut(0) // which is worth the rate of 5 s
	for range 3 {
		p.wantDeadline(p.now() + time.Second)
		p.sleep(time.Second - 1)
		p.wantNothing()
		p.sleep(1)
		p.wantEventsOut(0)
	}
}

// An event that becomes the oldest is owed a copy at once if its last is a second old.
func TestNextOldestEventIsOwedACopy(t *testing.T) {
	p := solo(t, Config{EventRate: 1, Heartbeat: 4 * time.Second})
	p.send("0")
	first := p.wantEventsOut(0)
	p.send("1")
	p.wantEventsOut(1)
	p.sleep(100 * ms)
	p.wantEventsOut(0) // which is worth the rate of 5 s
	p.sleep(950 * ms)
	p.wantNothing()
	p.ack(first.Sequence, 0)
	p.wantEventsOut(1)
}
