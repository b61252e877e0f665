package ackbits

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// OrderedLane: what ends it, and what it refuses before that: its limits, the stall, the last
// id.

// Limits.

// 511 undelivered are fine; the lane never holds 512.
// P-12.2.1.
func TestLaneOverflowEndsOnceInsteadOfRepeatingAnError(t *testing.T) {
	l := newLaneTest(t, LaneConfig{})
	l.feed(255)
	id, err := l.Send(nil, Droppable)
	require.NoError(t, err, "255 undelivered")
	require.EqualValues(t, 256, id)
	for range 3 {
		id, err = l.Send(nil, Droppable)
		require.ErrorIs(t, err, ErrLaneFull)
		require.Zero(t, id)
		require.Equal(t, 256, l.InFlight())
	}
	l.feed(255) // 257 on, without a gap
	require.Equal(t, 511, l.InFlight())
	require.NoError(t, l.Err())
	_, err = l.Send(nil, Droppable)
	require.ErrorIs(t, err, ErrLaneFull)
	require.NoError(t, l.Err(), "a droppable event ends nothing")

	id, err = l.Send(nil, Critical)
	require.ErrorIs(t, err, ErrLaneOverflow)
	require.Zero(t, id)
	require.ErrorIs(t, l.Err(), ErrLaneOverflow)
	require.Equal(t, 511, l.InFlight(), "nothing was queued")
	require.Empty(t, l.due())
	require.Zero(t, l.queue, "the memory is released")
}

// P-12.2.1.
func TestLaneRefusalsStopAsSoonAsOneIsAcknowledged(t *testing.T) {
	l := newLaneTest(t, LaneConfig{})
	l.feed(256)
	l.due()
	_, err := l.Send(nil, Droppable)
	require.ErrorIs(t, err, ErrLaneFull)
	l.ack(1)
	id, err := l.Send(nil, Droppable)
	require.NoError(t, err)
	require.EqualValues(t, 257, id)
}

func TestLaneDroppableNeverEndsTheLaneWhereTheLimitsMeet(t *testing.T) {
	l := newLaneTest(t, LaneConfig{SoftLimit: 4, HardLimit: 4})
	for range 3 {
		_, err := l.Send(nil, Droppable)
		require.NoError(t, err)
	}
	_, err := l.Send(nil, Droppable)
	require.ErrorIs(t, err, ErrLaneFull)
	require.NoError(t, l.Err())
}

func TestLaneUnknownPriorityIsCritical(t *testing.T) {
	l := newLaneTest(t, LaneConfig{SoftLimit: 1})
	l.feed(1)
	_, err := l.Send(nil, Priority(200))
	require.NoError(t, err)
}

func TestLaneStallIsFoundThoughTheRestIsAlive(t *testing.T) {
	l := newLaneTest(t, LaneConfig{})
	l.feed(1)
	require.Len(t, l.due(), 1)
	for at := 250 * laneUnit; at < 15*time.Second; at += 250 * laneUnit {
		l.at(at)
		require.Len(t, l.due(), 1)
		l.Receive(uint32(at / (250 * laneUnit))) // the peer's events arrive
		l.ack(0)                                 // and acknowledgements that say nothing new
		require.ErrorIs(t, l.ReceiveAck(7), ErrAck)
	}
	l.at(15*time.Second - 1)
	require.Empty(t, l.due())
	require.NoError(t, l.Err())
	l.wantDeadline(15 * time.Second)
	l.at(15 * time.Second)
	require.NoError(t, l.Err(), "NextDue alone finds it")
	require.Empty(t, l.due())
	require.ErrorIs(t, l.Err(), ErrStalled)
}

// P-12.2.6.
func TestLaneStallCountsFromTheMomentTheQueueIsNotEmpty(t *testing.T) {
	l := newLaneTest(t, LaneConfig{})
	l.at(time.Minute)
	l.feed(1)
	l.at(time.Minute + 10*time.Second)
	l.feed(1) // not empty, so this moves nothing
	l.at(75*time.Second - 1)
	l.due()
	require.NoError(t, l.Err())
	l.at(75 * time.Second)
	require.Empty(t, l.due())
	require.ErrorIs(t, l.Err(), ErrStalled, "though NextDue was not called for 15 s")
}

// P-12.2.6.
func TestLaneStallCountsFromTheLastMoveOfTheQueue(t *testing.T) {
	l := newLaneTest(t, LaneConfig{})
	l.feed(2)
	l.due()
	l.at(14 * time.Second)
	l.ack(1)
	l.at(20 * time.Second)
	l.ack(1) // old
	l.at(29*time.Second - 1)
	l.due()
	require.NoError(t, l.Err())
	l.at(29 * time.Second)
	l.due()
	require.ErrorIs(t, l.Err(), ErrStalled)
}

func TestLaneAnAckReceivedAfterAPausePreventsTheStall(t *testing.T) {
	l := newLaneTest(t, LaneConfig{})
	l.feed(2)
	l.due()
	l.at(time.Hour)
	l.ack(1)
	require.Equal(t, laneIDs(2, 2), l.due())
	require.NoError(t, l.Err())
}

// The end of ids.

// P-12.2.1.
func TestLanePastTheLastIDSendRefusesAndTheLaneLivesOn(t *testing.T) {
	l := newLaneTest(t, LaneConfig{SoftLimit: 2, HardLimit: 4})
	laneStartAt(l.OrderedLane, math.MaxUint32-2)
	l.feed(3) // Critical would overflow now, and Droppable finds the lane full
	for _, p := range []Priority{Critical, Droppable, Critical} {
		id, err := l.Send(nil, p)
		require.ErrorIs(t, err, ErrLaneOverflow)
		require.Zero(t, id)
		require.NoError(t, l.Err())
	}
	require.Equal(t, []uint32{math.MaxUint32 - 2, math.MaxUint32 - 1, math.MaxUint32}, l.due())
	l.at(250 * laneUnit)
	require.Len(t, l.due(), 3)
	require.Empty(t, l.due())
	l.ack(math.MaxUint32)
	require.Zero(t, l.InFlight())
	l.wantNoDeadline()
	_, err := l.Send(nil, Critical)
	require.ErrorIs(t, err, ErrLaneOverflow)
	_, err = l.Send(nil, Droppable)
	require.ErrorIs(t, err, ErrLaneOverflow)
	require.NoError(t, l.Err())
}

// After the end.

// P-12.2.8.
func TestLaneAfterTheEnd(t *testing.T) {
	ends := map[string]func(*laneTest) error{
		"stall": func(l *laneTest) error {
			l.at(time.Minute)
			l.due()
			return ErrStalled
		},
		"overflow": func(l *laneTest) error {
			l.feed(508)
			_, _ = l.Send(nil, Critical)
			return ErrLaneOverflow
		},
	}
	for name, end := range ends {
		t.Run(name, func(t *testing.T) {
			l := newLaneTest(t, LaneConfig{})
			l.Receive(1)
			l.feed(4)
			l.due()
			l.ack(1)
			reason := end(l)
			left := l.InFlight()
			require.GreaterOrEqual(t, left, 3)
			for range 2 {
				require.Equal(t, reason, l.Err())
				_, err := l.Send(nil, Critical)
				require.Equal(t, reason, err)
				_, err = l.Send(nil, Droppable)
				require.Equal(t, reason, err, "the reason goes before ErrLaneFull")
				for _, ack := range []uint32{0, 2, 4, 99999} {
					require.Equal(t, reason, l.ReceiveAck(ack), "the reason goes before ErrAck")
				}
				deliver, ack := l.Receive(2)
				require.False(t, deliver)
				require.EqualValues(t, 1, ack)
				require.EqualValues(t, 1, l.Ack())
				ev, ok := l.NextDue(math.MaxInt)
				require.False(t, ok)
				require.Zero(t, ev)
				require.Equal(t, left, l.InFlight())
				l.wantNoDeadline()
				require.Zero(t, l.queue)
				l.clock.Advance(time.Hour)
			}
		})
	}
}
