package ackbits

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// trial lets a rule that gives each event two proactive copies see blocks of ten datagrams
// a 100 ms, of which so many are lost at first and so many during trials.
type trial struct {
	*adaptiveRule
	now int64
	log sentLog
}

func newTrial() *trial {
	t := &trial{adaptiveRule: &adaptiveRule{flow: new(flow)}, now: int64(time.Minute)}
	t.current = copyPlan{left: 2}
	return t
}

// block passes ten datagrams, of which so many are lost.
func (t *trial) block(lost int) {
	t.now += int64(100 * ms)
	t.log.count += 10
	for i := range int64(10) {
		if t.assessed++; i < int64(lost) {
			t.lose(t.assessed)
		}
	}
	t.tryWithout(shares{of: 10, lost: int64(lost)}, &t.log, t.now)
}

// run passes blocks until an event gets as many copies as in a trial, and returns for how
// long; 0 if none begins within a minute.
func (t *trial) run(lost int) time.Duration {
	for began := t.now; t.now < began+int64(time.Minute); {
		t.block(lost)
		if t.flow.restraint.from > 0 {
			return time.Duration(t.now - began)
		}
	}
	return 0
}

// Where the loss stays high for two seconds, a trial begins in which an event gets one
// copy; after one that found nothing the next is two minutes later.
func TestTrialBeginsWhereLossStaysHigh(t *testing.T) {
	require.Zero(t, newTrial().run(3), "30 % is no high loss")
	r := newTrial()
	require.LessOrEqual(t, r.run(5), 2500*ms, "two seconds after it is seen to be high")
	require.GreaterOrEqual(t, r.now-int64(time.Minute), int64(2*time.Second))
	require.Equal(t, copyPlan{left: 1}, r.plan(r.now))
	for range 3 {
		require.Equal(t, copyPlan{left: 1}, r.plan(r.now))
		r.block(5)
	}
	require.Equal(t, copyPlan{left: 2}, r.plan(r.now), "as much is lost in it")
	ended := r.now
	require.Zero(t, r.run(5))
	require.NotZero(t, r.run(5))
	require.InDelta(t, 2*time.Minute, r.now-ended, float64(200*ms))

	calm := newTrial()
	for range 3 { // it must last: high for a second, and low again
		for range 10 {
			calm.block(5)
		}
		for range 20 {
			calm.block(0)
		}
	}
	require.Zero(t, calm.flow.restraint.from)
}

// Copies that cause the loss stay away for eight seconds, and for twice as long each time
// after; then suspicion comes sooner, and a share below the first limit convicts them.
func TestTrialConvictsCopiesThatCauseTheLoss(t *testing.T) {
	r := newTrial()
	require.NotZero(t, r.run(6))
	for range 9 { // a short trial, and the long one that follows
		require.Equal(t, copyPlan{left: 1}, r.plan(r.now))
		r.block(2)
	}
	require.Zero(t, r.flow.restraint.from)
	require.Equal(t, int64(8*time.Second), r.flow.restraint.until-r.now)
	require.Zero(t, r.plan(r.flow.restraint.until-1))
	require.Equal(t, r.current, r.plan(r.flow.restraint.until))
	require.Zero(t, r.losses, "they were the copies'")

	r.now = r.flow.restraint.until
	for range 3 {
		r.block(6)
	}
	require.Less(t, r.run(6), time.Second, "a quarter of two seconds")
	for range 9 {
		r.block(4)
	}
	require.Equal(t, int64(16*time.Second), r.flow.restraint.until-r.now)
}

// A trial acquits copies whose absence takes less than a fifth of the loss, and at first
// those whose absence does not take more than half.
func TestTrialAcquitsCopiesThatAreNotTheCause(t *testing.T) {
	for _, tc := range []struct{ lost, blocks int }{{5, 3}, {3, 9}} {
		r := newTrial()
		require.NotZero(t, r.run(6))
		for range tc.blocks {
			require.NotZero(t, r.flow.restraint.from, tc)
			r.block(tc.lost)
		}
		require.Zero(t, r.flow.restraint.from, tc)
		require.Zero(t, r.flow.restraint.until, tc)
		require.Equal(t, int64(2*time.Minute), r.flow.restraint.next-r.now, tc)
	}
}
