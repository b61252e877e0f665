package ackbits

import (
	"math"
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// OrderedLane: what it receives, events and acknowledgements, at every place in the ids.

// Receiving.

// P-12.1.2, P-12.1.3.
func TestLaneDuplicatesAndGapsAreAnswered(t *testing.T) {
	l := newLaneTest(t, LaneConfig{})
	for _, step := range []struct {
		id      uint32
		deliver bool
		ack     uint32
	}{{1, true, 1}, {3, false, 1}, {1, false, 1}, {2, true, 2}, {3, true, 3}, {1, false, 3}, {4, true, 4}} {
		deliver, ack := l.Receive(step.id)
		require.Equal(t, step.deliver, deliver)
		require.Equal(t, step.ack, ack)
		require.Equal(t, step.ack, l.Ack())
	}
}

// P-12.1.2.
func TestLaneIDZeroIsNeverDelivered(t *testing.T) {
	l := newLaneTest(t, LaneConfig{})
	for _, at := range []uint32{1, 2, math.MaxUint32} {
		laneStartAt(l.OrderedLane, at)
		deliver, ack := l.Receive(0)
		require.False(t, deliver)
		require.Equal(t, at-1, ack)
	}
	deliver, ack := l.Receive(math.MaxUint32)
	require.True(t, deliver)
	require.EqualValues(t, uint32(math.MaxUint32), ack)
	for _, id := range []uint32{0, 1, math.MaxUint32} {
		deliver, ack = l.Receive(id)
		require.False(t, deliver, "id %d after the last one", id)
		require.EqualValues(t, uint32(math.MaxUint32), ack)
	}
}

// P-12.2.5.
func TestLaneWildAckNeitherClearsTheQueueNorTouchesTheStall(t *testing.T) {
	l := newLaneTest(t, LaneConfig{})
	l.feed(3)
	l.due()
	l.feed(2) // queued, but never on the wire
	l.at(10 * time.Second)
	for _, ack := range []uint32{4, 4, 5, 6, 1000, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF} {
		require.ErrorIs(t, l.ReceiveAck(ack), ErrAck)
		require.Equal(t, 5, l.InFlight())
	}
	require.Equal(t, laneIDs(1, 5), l.due())
	l.ack(3)
	require.Equal(t, 2, l.InFlight(), "4 and 5 need their own")
	l.ack(5)
	require.Zero(t, l.InFlight())

	l = newLaneTest(t, LaneConfig{})
	l.feed(3)
	l.due()
	l.at(10 * time.Second)
	require.ErrorIs(t, l.ReceiveAck(4), ErrAck)
	l.at(15 * time.Second)
	l.due()
	require.ErrorIs(t, l.Err(), ErrStalled)
}

// P-12.2.5.
func TestLaneOldAckChangesNothing(t *testing.T) {
	l := newLaneTest(t, LaneConfig{})
	l.feed(3)
	l.due()
	l.ack(2)
	for _, ack := range []uint32{2, 1, 0} {
		l.ack(ack)
		require.Equal(t, 1, l.InFlight())
	}
	l.at(250 * laneUnit)
	require.Equal(t, laneIDs(3, 3), l.due())
}

func TestLaneTheWholeWindowInOneAckIsNotAnAckOfNothing(t *testing.T) {
	for _, n := range []int{1, 32, 33, 255, 256, 511} {
		l := newLaneTest(t, LaneConfig{})
		l.feed(n)
		l.due()
		l.at(100 * laneUnit)
		l.ack(uint32(n))
		require.Zero(t, l.InFlight())
		l.at(time.Minute)
		require.Empty(t, l.due())
		require.NoError(t, l.Err())
	}
}

// P-12.1.3.
func TestLaneALostAckRepairsItself(t *testing.T) {
	a, b := newLaneTest(t, LaneConfig{}), newLaneTest(t, LaneConfig{})
	a.feed(1)
	for _, id := range a.due() {
		deliver, _ := b.Receive(id)
		require.True(t, deliver) // and its answer is lost
	}
	a.at(250 * laneUnit)
	for _, id := range a.due() {
		deliver, ack := b.Receive(id)
		require.False(t, deliver)
		a.ack(ack)
	}
	require.Zero(t, a.InFlight())
}

func TestLaneStartIDSweep(t *testing.T) {
	for _, first := range []uint32{
		1, 2, 32, 33, 256, 65535, 65536, 1<<31 - 20, 1<<31 - 1, 1 << 31,
		math.MaxUint32 - 300, math.MaxUint32 - 33, math.MaxUint32 - 32, math.MaxUint32 - 2, math.MaxUint32 - 1, math.MaxUint32,
	} {
		t.Run(strconv.Itoa(int(first)), func(t *testing.T) {
			rng := rand.New(rand.NewPCG(1, uint64(first)))
			p := newLanePair(t, LaneConfig{ResendBudget: 4}, first)
			for step := range 600 {
				for i := range p.ends {
					if rng.IntN(2) == 0 {
						p.send(i, make([]byte, rng.IntN(40)), Priority(rng.IntN(2)))
					}
					for p.next(i, math.MaxInt) {
					}
					for range 2 {
						if rng.IntN(10) == 0 {
							p.lose(i, 0)
						}
						p.arrive(i, 0, rng.IntN(10) == 0)
					}
				}
				if step%20 == 0 {
					p.check()
				}
				p.advance(20 * laneUnit)
			}
			p.settle()
		})
	}
}
