package ackbits

import (
	"encoding/binary"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const laneUnit = time.Millisecond

// laneTest drives one lane whose peer is the test.
type laneTest struct {
	*OrderedLane
	t     testing.TB
	clock *ManualClock
}

func newLaneTest(t testing.TB, cfg LaneConfig) *laneTest {
	clock := &ManualClock{}
	clock.Set(laneEpoch)
	cfg.Clock = clock
	lane, err := NewOrderedLane(cfg)
	require.NoError(t, err)
	return &laneTest{lane, t, clock}
}

// at moves the clock to d after the lane began.
func (l *laneTest) at(d time.Duration) { l.clock.Set(laneEpoch.Add(d)) }

// feed sends n critical events and wants ids that go on without a gap.
func (l *laneTest) feed(n int) {
	for range n {
		next := l.last + 1
		id, err := l.Send(binary.LittleEndian.AppendUint32(nil, next), Critical)
		require.NoError(l.t, err)
		require.Equal(l.t, next, id)
	}
}

// due calls NextDue until it returns false, and returns the ids.
func (l *laneTest) due() (ids []uint32) {
	for ev, ok := l.NextDue(4); ok; ev, ok = l.NextDue(4) {
		require.Equal(l.t, ev.ID, binary.LittleEndian.Uint32(ev.Data))
		ids = append(ids, ev.ID)
	}
	return ids
}

func (l *laneTest) ack(id uint32) { require.NoError(l.t, l.ReceiveAck(id)) }

// wantDeadline wants the next thing to do at d after the lane began.
func (l *laneTest) wantDeadline(d time.Duration) {
	l.t.Helper()
	at, ok := l.Deadline()
	require.True(l.t, ok)
	require.Equal(l.t, d, at.Sub(laneEpoch))
}

func (l *laneTest) wantNoDeadline() {
	l.t.Helper()
	at, ok := l.Deadline()
	require.False(l.t, ok)
	require.Zero(l.t, at)
}

// laneIDs returns from … to.
func laneIDs(from, to uint32) (ids []uint32) {
	for id := from; id <= to; id++ {
		ids = append(ids, id)
	}
	return ids
}

// Sending.

// P-12.1.1, P-12.2.8.
func TestLaneIDsStartAtOneOnEveryLane(t *testing.T) {
	for range 2 {
		l := newLaneTest(t, LaneConfig{})
		require.Zero(t, l.Ack())
		l.feed(3)
		require.Equal(t, laneIDs(1, 3), l.due())
	}
}

func TestLaneSendCopiesTheEvent(t *testing.T) {
	l := newLaneTest(t, LaneConfig{})
	event := []byte("abc")
	_, err := l.Send(event, Critical)
	require.NoError(t, err)
	copy(event, "xyz")
	ev, ok := l.NextDue(3)
	require.True(t, ok)
	require.Equal(t, "abc", string(ev.Data))
}

func TestLaneDataIsUnchangedUntilAcknowledged(t *testing.T) {
	l := newLaneTest(t, LaneConfig{HardLimit: 5000})
	_, err := l.Send([]byte("first"), Critical)
	require.NoError(t, err)
	first, ok := l.NextDue(5)
	require.True(t, ok)
	_ = append(first.Data, "over the next one"...)
	l.feed(4000) // through several sizes of the queue
	require.Equal(t, "first", string(first.Data))
	require.Len(t, l.due(), 4000)
	require.Equal(t, "first", string(first.Data))
}

func TestLaneEventsOfAnySize(t *testing.T) {
	l := newLaneTest(t, LaneConfig{})
	sizes := []int{0, 1, 100_000, 0, 0, 3_000_000, 1023, 1024, 1025, 0}
	for i, size := range sizes {
		event := make([]byte, size)
		for k := range event {
			event[k] = byte(i)
		}
		_, err := l.Send(event, Droppable)
		require.NoError(t, err)
	}
	for i, size := range sizes {
		ev, ok := l.NextDue(size)
		require.True(t, ok)
		require.Len(t, ev.Data, size)
		for _, b := range ev.Data {
			if b != byte(i) {
				t.Fatalf("event %d holds byte %d", i, b)
			}
		}
	}
}

// P-12.2.2.
func TestLaneRetransmitsOnce250msHavePassedSinceTheLastSend(t *testing.T) {
	l := newLaneTest(t, LaneConfig{})
	l.at(30 * laneUnit)
	l.feed(1)
	l.wantDeadline(30 * laneUnit)
	l.at(40 * laneUnit)
	require.Equal(t, laneIDs(1, 1), l.due())
	for _, d := range []time.Duration{290 * laneUnit, 540 * laneUnit, 790 * laneUnit} {
		l.wantDeadline(d)
		l.at(d - 1)
		require.Empty(t, l.due())
		l.at(d)
		require.Equal(t, laneIDs(1, 1), l.due())
	}
}

// The wake-up interval is only the granularity: retransmissions go as soon as they are
// due, between two slots of the grid too.
func TestLaneRetransmissionsDoNotWaitForTheGrid(t *testing.T) {
	l := newLaneTest(t, LaneConfig{})
	for _, at := range []time.Duration{0, 13 * laneUnit, 57 * laneUnit} {
		l.at(at)
		l.feed(1)
		l.due()
	}
	l.ack(1)
	l.wantDeadline(263 * laneUnit)
	l.at(263 * laneUnit)
	require.Equal(t, laneIDs(2, 3), l.due())
}

// P-12.2.2.
func TestLaneARetransmissionMakesEveryLaterEventDue(t *testing.T) {
	l := newLaneTest(t, LaneConfig{})
	l.feed(1)
	l.due()
	l.at(249 * laneUnit)
	l.feed(3)
	require.Equal(t, laneIDs(2, 4), l.due(), "first sends")
	l.at(250 * laneUnit)
	require.Equal(t, laneIDs(1, 4), l.due(), "2 to 4 are 1 ms old")
	require.Empty(t, l.due())
	l.wantDeadline(500 * laneUnit)
}

// P-12.2.2.
func TestLaneALaterEventStaysDueAfterTheOlderOneIsAcknowledged(t *testing.T) {
	l := newLaneTest(t, LaneConfig{})
	l.feed(3)
	l.due()
	l.at(250 * laneUnit)
	ev, ok := l.NextDue(4)
	require.True(t, ok)
	require.EqualValues(t, 1, ev.ID)
	l.ack(1)
	l.wantDeadline(250 * laneUnit)
	require.Equal(t, laneIDs(2, 3), l.due())
	require.Empty(t, l.due())
}

// "Since" goes by the order of NextDue's results, not by the clock.
func TestLaneFirstSentAfterTheRetransmissionIsNotDueByIt(t *testing.T) {
	l := newLaneTest(t, LaneConfig{ResendBudget: 2})
	l.feed(4)
	l.due()
	l.at(250 * laneUnit)
	require.Equal(t, laneIDs(1, 2), l.due())
	l.feed(1)
	require.Equal(t, []uint32{5}, l.due(), "a first send in the middle of the pass, at the same moment as the retransmissions")
	l.ack(4)
	require.Empty(t, l.due())
	l.at(499 * laneUnit)
	require.Empty(t, l.due(), "5 has not been made due by 1 or 2, and 3 and 4 were never retransmitted")
	l.wantDeadline(500 * laneUnit)
	l.at(500 * laneUnit)
	require.Equal(t, []uint32{5}, l.due())
}

func TestLaneFirstSentInTheMiddleOfAPassIsDueByTheRestOfIt(t *testing.T) {
	l := newLaneTest(t, LaneConfig{ResendBudget: 2})
	l.feed(3)
	l.due()
	l.at(250 * laneUnit)
	require.Equal(t, laneIDs(1, 2), l.due())
	l.feed(1)
	require.Equal(t, []uint32{4}, l.due())
	l.wantDeadline(300 * laneUnit)
	l.at(300 * laneUnit)
	require.Equal(t, laneIDs(3, 4), l.due(), "the retransmission of 3 makes 4 due")
}

func TestLaneAnAckInTheMiddleOfAPassMovesItOn(t *testing.T) {
	l := newLaneTest(t, LaneConfig{ResendBudget: 2})
	l.feed(9)
	l.due()
	l.at(250 * laneUnit)
	require.Equal(t, laneIDs(1, 2), l.due())
	l.ack(5)
	require.Empty(t, l.due())
	l.wantDeadline(300 * laneUnit)
	l.at(300 * laneUnit)
	require.Equal(t, laneIDs(6, 7), l.due())
	l.ack(6)
	l.at(400 * laneUnit)
	require.Equal(t, laneIDs(8, 9), l.due())
	l.wantDeadline(550 * laneUnit)
}

func TestLaneANewPassBeginsAtTheLowestIDWhenItComesOfAge(t *testing.T) {
	l := newLaneTest(t, LaneConfig{ResendBudget: 2})
	l.feed(9)
	l.due()
	for i, want := range [][]uint32{{1, 2}, {3, 4}, {5, 6}, {1, 2}, {3, 4}} {
		l.at(300*laneUnit + time.Duration(i)*100*laneUnit)
		require.Equal(t, want, l.due())
	}
}

// P-12.2.3.
func TestLaneRetransmissionsComeBeforeFirstSends(t *testing.T) {
	l := newLaneTest(t, LaneConfig{})
	l.feed(2)
	l.due()
	l.at(250 * laneUnit)
	l.feed(2)
	require.Equal(t, laneIDs(1, 4), l.due())
	require.Empty(t, l.due(), "3 and 4 went first after the last retransmission")
}

// P-12.2.3.
func TestLaneFirstSendsAreNotRationed(t *testing.T) {
	l := newLaneTest(t, LaneConfig{})
	l.feed(200)
	require.Equal(t, laneIDs(1, 200), l.due())
	l.at(250 * laneUnit)
	require.Equal(t, laneIDs(1, 32), l.due())
	l.feed(100)
	require.Equal(t, laneIDs(201, 300), l.due(), "the budget is spent")
}

// P-12.2.4.
func TestLaneUnusedBudgetIsGone(t *testing.T) {
	l := newLaneTest(t, LaneConfig{})
	l.feed(100)
	l.due()
	l.at(5 * time.Second)
	require.Equal(t, laneIDs(1, 32), l.due())
}

// The grid stands on the moment the lane began, not on the last retransmission.
// P-12.2.4.
func TestLaneBudgetIsGivenOutByAGridSinceTheLaneBegan(t *testing.T) {
	l := newLaneTest(t, LaneConfig{})
	l.at(7 * laneUnit)
	l.feed(100)
	l.due()
	l.at(299 * laneUnit)
	require.Equal(t, laneIDs(1, 32), l.due())
	l.wantDeadline(300 * laneUnit)
	l.at(300*laneUnit - 1)
	require.Empty(t, l.due())
	l.at(300 * laneUnit)
	require.Equal(t, laneIDs(33, 64), l.due())
	l.wantDeadline(400 * laneUnit)
}

// P-12.2.6.
func TestLaneNoEventIsEverGivenUp(t *testing.T) {
	l := newLaneTest(t, LaneConfig{StallTimeout: math.MaxInt64})
	l.feed(1)
	for i := range 100_000 {
		l.at(time.Duration(i) * 250 * laneUnit)
		require.Len(t, l.due(), 1)
	}
	require.NoError(t, l.Err())
}

func TestLaneTooLargeForMaxMarksNothingAsSent(t *testing.T) {
	l := newLaneTest(t, LaneConfig{ResendBudget: 1})
	l.feed(2)
	for range 3 {
		ev, ok := l.NextDue(3)
		require.False(t, ok)
		require.Zero(t, ev)
	}
	require.ErrorIs(t, l.ReceiveAck(1), ErrAck, "1 was not sent")
	l.at(10 * laneUnit)
	l.wantDeadline(0)
	_, ok := l.NextDue(-1)
	require.False(t, ok)
	require.Equal(t, laneIDs(1, 2), l.due())

	l.at(260 * laneUnit)
	_, ok = l.NextDue(3)
	require.False(t, ok)
	l.at(270 * laneUnit)
	l.wantDeadline(260 * laneUnit)
	require.Equal(t, laneIDs(1, 1), l.due(), "it used no budget and is not 10 ms old")
}

func TestLaneTooLargeForMaxHidesLaterEvents(t *testing.T) {
	l := newLaneTest(t, LaneConfig{})
	for _, event := range []string{"too long", "ok"} {
		_, err := l.Send([]byte(event), Critical)
		require.NoError(t, err)
	}
	_, ok := l.NextDue(2)
	require.False(t, ok)
}

func TestLaneDeadlineIsFalseWhileNothingIsUndelivered(t *testing.T) {
	l := newLaneTest(t, LaneConfig{})
	l.wantNoDeadline()
	l.feed(1)
	l.due()
	l.wantDeadline(250 * laneUnit)
	l.ack(1)
	l.wantNoDeadline()
}

// P-12.2.7.
func TestLaneDeadlineOfAFirstSendIsTheMomentOfItsSend(t *testing.T) {
	l := newLaneTest(t, LaneConfig{})
	l.feed(1)
	l.due()
	l.at(40 * laneUnit)
	l.feed(1)
	l.at(60 * laneUnit)
	l.feed(1)
	l.wantDeadline(40 * laneUnit)
	require.Equal(t, laneIDs(2, 3), l.due())
	l.wantDeadline(250 * laneUnit)
}

// P-12.2.7.
func TestLaneDeadlineIncludesTheStall(t *testing.T) {
	l := newLaneTest(t, LaneConfig{ResendDelay: time.Hour})
	l.feed(1)
	l.due()
	l.wantDeadline(15 * time.Second)
}

func TestLaneNextDueFollowsADeadlineInARow(t *testing.T) {
	l := newLaneTest(t, LaneConfig{})
	l.feed(500)
	for l.Err() == nil {
		at, ok := l.Deadline()
		require.True(t, ok)
		if at.After(l.clock.Now()) {
			l.clock.Set(at.Add(-1))
			require.Empty(t, l.due())
			require.NoError(t, l.Err())
			l.clock.Set(at)
		}
		require.True(t, len(l.due()) > 0 || l.Err() != nil)
	}
	require.Equal(t, 15*time.Second, l.clock.Now().Sub(laneEpoch))
}

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

// Time.

// Acknowledgements come in right after the wakeup at which their events
// are sent again, first those of a burst and then one at a time.
func TestLaneRoundTripAboveTheResendTimeDoesNotChaseItself(t *testing.T) {
	a, b := newLaneTest(t, LaneConfig{}), newLaneTest(t, LaneConfig{})
	a.feed(10)
	sends, delivered := map[uint32]int{}, 0
	answers := map[time.Duration][]uint32{}
	for at := time.Duration(0); at <= 5*time.Second; at += 100 * laneUnit {
		a.at(at)
		if 0 < at && at <= time.Second {
			a.feed(1)
		}
		for _, id := range a.due() {
			sends[id]++
			deliver, ack := b.Receive(id)
			if deliver {
				delivered++
			}
			answers[at+300*laneUnit] = append(answers[at+300*laneUnit], ack)
			require.LessOrEqual(t, at, 1300*laneUnit, "silence after the last acknowledgement")
		}
		for _, ack := range answers[at] {
			a.ack(ack)
		}
	}
	require.Equal(t, 20, delivered)
	for id, n := range sends {
		require.LessOrEqual(t, n, 2, "event %d", id)
	}
	require.Equal(t, 2, sends[1], "the retransmission that is not needed")
	require.Zero(t, a.InFlight())
	a.wantNoDeadline()
}

func TestLaneResendBudgetDoesNotSwitchItselfOff(t *testing.T) {
	l := newLaneTest(t, LaneConfig{})
	l.feed(100)
	l.due()
	for _, wake := range []struct {
		at  time.Duration
		ids []uint32
	}{
		{300 * laneUnit, laneIDs(1, 32)}, {400 * laneUnit, laneIDs(33, 64)}, {500 * laneUnit, laneIDs(65, 96)},
		{600 * laneUnit, laneIDs(1, 32)}, {600 * laneUnit, nil}, {600 * laneUnit, nil}, {699 * laneUnit, nil}, {700 * laneUnit, laneIDs(33, 64)},
	} {
		l.at(wake.at)
		require.Equal(t, wake.ids, l.due(), "at %v", wake.at)
	}
}

func TestLaneClockSetBackOrFarForwardCountsAsNoTime(t *testing.T) {
	l := newLaneTest(t, LaneConfig{})
	l.feed(1)
	l.due()
	l.at(-time.Hour)
	require.Empty(t, l.due())
	at, _ := l.Deadline()
	require.Equal(t, 250*laneUnit, at.Sub(l.clock.Now()), "counted from the last reading")
	l.at(-time.Hour + 250*laneUnit - 1)
	require.Empty(t, l.due())
	l.at(1000 * time.Hour)
	require.Empty(t, l.due())
	l.clock.Advance(1)
	require.Len(t, l.due(), 1)
}

type laneCountingClock struct{ readings int }

func (c *laneCountingClock) Now() time.Time {
	c.readings++
	return laneEpoch
}

func TestLaneReadsTheClockOnceACallAndGettersNever(t *testing.T) {
	clock := &laneCountingClock{}
	l, err := NewOrderedLane(LaneConfig{Clock: clock, SoftLimit: 1, HardLimit: 2})
	require.NoError(t, err)
	for range 3 { // fresh, with an event on the wire, ended
		for _, call := range []struct {
			name string
			call func()
			want int
		}{
			{"Receive", func() { l.Receive(1) }, 1},
			{"ReceiveAck", func() { _ = l.ReceiveAck(9) }, 1},
			{"Send", func() { _, _ = l.Send(nil, Critical) }, 1},
			{"NextDue", func() { l.NextDue(1) }, 1},
			{"Ack", func() { l.Ack() }, 0},
			{"InFlight", func() { l.InFlight() }, 0},
			{"Deadline", func() { l.Deadline() }, 0},
			{"Err", func() { _ = l.Err() }, 0},
		} {
			clock.readings = 0
			call.call()
			require.Equal(t, call.want, clock.readings, call.name)
		}
	}
	require.ErrorIs(t, l.Err(), ErrLaneOverflow)
}

// Configuration.

func TestLaneConfigZeroIsTheProtocol(t *testing.T) {
	l := newLaneTest(t, LaneConfig{})
	l.cfg.Clock = nil
	require.Equal(t, LaneConfig{
		ResendDelay: 250 * laneUnit, WakeInterval: 100 * laneUnit, ResendBudget: 32,
		SoftLimit: 256, HardLimit: 512, StallTimeout: 15 * time.Second,
	}, l.cfg)
	require.Equal(t, Critical, Priority(0))
	lane, err := NewOrderedLane(LaneConfig{})
	require.NoError(t, err, "on the system's clock")
	_, err = lane.Send(nil, Critical)
	require.NoError(t, err)
	_, ok := lane.NextDue(0)
	require.True(t, ok)
}

func TestLaneConfigErrorsNameTheFieldAndTheValue(t *testing.T) {
	for want, cfg := range map[string]LaneConfig{
		"LaneConfig.ResendDelay -1ns is negative":         {ResendDelay: -1},
		"LaneConfig.WakeInterval -1s is negative":         {WakeInterval: -time.Second},
		"LaneConfig.StallTimeout -1ns is negative":        {StallTimeout: -1},
		"LaneConfig.ResendBudget -1 is negative":          {ResendBudget: -1},
		"LaneConfig.SoftLimit -2 is negative":             {SoftLimit: -2},
		"LaneConfig.HardLimit -3 is negative":             {HardLimit: -3},
		"LaneConfig.HardLimit 1 leaves room for no event": {HardLimit: 1},
		"LaneConfig.SoftLimit 9 is above HardLimit 8":     {SoftLimit: 9, HardLimit: 8},
		"LaneConfig.SoftLimit 513 is above HardLimit 512": {SoftLimit: 513},
	} {
		lane, err := NewOrderedLane(cfg)
		require.Nil(t, lane)
		require.ErrorIs(t, err, ErrConfig)
		require.EqualError(t, err, "ackbits: invalid configuration: "+want)
	}
	for _, cfg := range []LaneConfig{
		{HardLimit: 2}, {HardLimit: 100}, {SoftLimit: 512}, {SoftLimit: 1}, {HardLimit: math.MaxInt},
		{ResendDelay: 1, WakeInterval: 1, StallTimeout: 1, ResendBudget: 1},
	} {
		_, err := NewOrderedLane(cfg)
		require.NoError(t, err, "%+v", cfg)
	}
}

func TestLaneHugeDurationsSaturate(t *testing.T) {
	l := newLaneTest(t, LaneConfig{
		ResendDelay: math.MaxInt64, WakeInterval: math.MaxInt64, StallTimeout: math.MaxInt64, ResendBudget: 1,
	})
	l.at(time.Hour)
	l.feed(2)
	require.Len(t, l.due(), 2)
	at, ok := l.Deadline()
	require.True(t, ok)
	require.Greater(t, at.Sub(laneEpoch), 100*365*24*time.Hour)
	l.at(24 * time.Hour)
	require.Empty(t, l.due())
	require.NoError(t, l.Err())

	l = newLaneTest(t, LaneConfig{WakeInterval: math.MaxInt64/2 + 1, ResendBudget: 1, StallTimeout: math.MaxInt64})
	l.feed(2)
	l.due()
	l.at(time.Hour)
	require.Equal(t, laneIDs(1, 1), l.due())
	l.at(2 * time.Hour)
	require.Empty(t, l.due(), "one retransmission in 146 years")
}

// Recovery.

// laneTraffic sends an event each interval for the time of length over a path
// that takes delay each way and loses what lost says, woken by every arrival,
// send and slot of 100 ms, and returns how long each event took.
func laneTraffic(t *testing.T, interval, delay, length time.Duration, p Priority, lost func(isAck bool, id uint32) bool) []time.Duration {
	type packet struct {
		at    time.Duration
		isAck bool
		id    uint32
	}
	a, b := newLaneTest(t, LaneConfig{}), newLaneTest(t, LaneConfig{})
	var path []packet
	var took []time.Duration
	for now := time.Duration(0); now < length || a.InFlight() > 0; now += laneUnit {
		a.at(now)
		b.at(now)
		wake := now%(100*laneUnit) == 0
		for ; len(path) > 0 && path[0].at <= now; path = path[1:] {
			wake = true
			if path[0].isAck {
				a.ack(path[0].id)
				continue
			}
			deliver, ack := b.Receive(path[0].id)
			if deliver {
				took = append(took, now-time.Duration(len(took))*interval)
			}
			if !lost(true, ack) {
				path = append(path, packet{now + delay, true, ack})
			}
		}
		if now%interval == 0 && now < length {
			wake = true
			_, err := a.Send(binary.LittleEndian.AppendUint32(nil, a.last+1), p)
			require.NoError(t, err, "event %d at %v", a.last+1, now)
		}
		if !wake {
			continue
		}
		for _, id := range a.due() {
			if !lost(false, id) {
				path = append(path, packet{now + delay, false, id})
			}
		}
		require.NoError(t, a.Err())
	}
	require.Len(t, took, int(length/interval))
	return took
}

func TestLaneOneLossDoesNotDelayLaterEventsForEver(t *testing.T) {
	lost := 0
	took := laneTraffic(t, 50*laneUnit, 20*laneUnit, 10*time.Second, Critical, func(isAck bool, id uint32) bool {
		if !isAck && id == 40 {
			lost++
		}
		return !isAck && id == 40 && lost == 1
	})
	// Event 40 of time 1950 ms goes again at 2200 ms, and so does all after it;
	// two wake-ups later, at 2400 ms, the lane is as it was.
	for i, d := range took {
		at := time.Duration(i) * 50 * laneUnit
		if at < 1950*laneUnit || at >= 2150*laneUnit {
			require.Less(t, d, 100*laneUnit, "the event of %v", at)
		}
	}
	require.Equal(t, 270*laneUnit, took[39])
}

// Go-Back-N recovers from a loss of a retransmission by age alone, so the queue gets
// long now and then at this rate; it must not reach a limit.
func TestLane100EventsASecondAt2PercentLossForTenMinutesRefuseNothing(t *testing.T) {
	for seed := range uint64(3) {
		rng := rand.New(rand.NewPCG(seed, 9))
		took := laneTraffic(t, 10*laneUnit, 40*laneUnit, 10*time.Minute, Critical, func(bool, uint32) bool {
			return rng.IntN(100) < 2
		})
		slices.Sort(took)
		require.Less(t, took[len(took)/2], time.Second, "the median event")
	}
}

func TestLane50EventsASecondAt2PercentLossForTenMinutesRefuseNoDroppable(t *testing.T) {
	for seed := range uint64(3) {
		rng := rand.New(rand.NewPCG(seed, 9))
		laneTraffic(t, 20*laneUnit, 40*laneUnit, 10*time.Minute, Droppable, func(bool, uint32) bool {
			return rng.IntN(100) < 2
		})
	}
}

// Cost.

func TestLaneSteadyStateAllocatesNothing(t *testing.T) {
	a, b := newLaneTest(t, LaneConfig{}), newLaneTest(t, LaneConfig{})
	event := make([]byte, 700)
	rng := rand.New(rand.NewPCG(1, 1))
	round := 0
	cycle := func() {
		for range 40 {
			round++
			_, _ = a.Send(event[:rng.IntN(700)], Priority(round%2))
			for ev, ok := a.NextDue(700); ok; ev, ok = a.NextDue(700) {
				if rng.IntN(20) == 0 {
					continue // lost
				}
				if _, ack := b.Receive(ev.ID); rng.IntN(20) > 0 {
					_ = a.ReceiveAck(ack)
				}
				_ = a.ReceiveAck(math.MaxUint32)
			}
			a.Deadline()
			a.clock.Advance(25 * laneUnit)
		}
	}
	for range 1000 {
		cycle() // 1000 s
	}
	require.NoError(t, a.Err())
	require.Zero(t, testing.AllocsPerRun(500, cycle))
	require.NoError(t, a.Err())
	require.Greater(t, b.Ack(), uint32(20_000))
}

// NextDue and Deadline look at one record each, so they have no loop, and none
// of what they call has; the one exception is trim, whose copying is paid for
// by the memory that it frees.
func TestLaneNextDueDoesNotScanTheQueue(t *testing.T) {
	functions := map[string]*ast.FuncDecl{}
	for _, file := range []string{"lane.go", "lane_queue.go"} {
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		require.NoError(t, err)
		for _, d := range parsed.Decls {
			if f, ok := d.(*ast.FuncDecl); ok {
				functions[f.Name.Name] = f
			}
		}
	}
	seen := map[string]bool{"trim": true}
	var visit func(name string)
	visit = func(name string) {
		if functions[name] == nil || seen[name] {
			return
		}
		seen[name] = true
		ast.Inspect(functions[name], func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.ForStmt, *ast.RangeStmt:
				t.Errorf("%s has a loop", name)
			case *ast.CallExpr:
				switch f := n.Fun.(type) {
				case *ast.Ident:
					visit(f.Name)
				case *ast.SelectorExpr:
					visit(f.Sel.Name)
				}
			}
			return true
		})
	}
	visit("NextDue")
	visit("Deadline")
	for _, name := range []string{"retransmitAt", "agesAt", "stallAt", "slot", "data", "noteRetransmission", "read"} {
		require.True(t, seen[name], name)
	}
}

// BenchmarkLaneQueued512 is a NextDue that retransmits one of n queued events, with
// no budget in its way; the figures must not differ but by the cache.
func BenchmarkLaneQueued512(b *testing.B) {
	for _, n := range []int{16, 512, 8192} {
		b.Run(fmt.Sprintf("queued=%d", n), func(b *testing.B) {
			l := newLaneTest(b, LaneConfig{HardLimit: n + 1, ResendBudget: math.MaxInt, StallTimeout: math.MaxInt64})
			l.feed(n)
			require.Len(b, l.due(), n)
			b.ReportAllocs()
			for b.Loop() {
				if _, ok := l.NextDue(4); !ok {
					l.clock.Advance(250 * laneUnit)
				}
			}
		})
	}
}

// BenchmarkLaneIdle512 is a NextDue with 512 queued and none due.
func BenchmarkLaneIdle512(b *testing.B) {
	l := newLaneTest(b, LaneConfig{HardLimit: 513})
	l.feed(512)
	l.due()
	b.ReportAllocs()
	for b.Loop() {
		if _, ok := l.NextDue(4); ok {
			b.Fatal("nothing is due")
		}
	}
}

// BenchmarkLaneEvent is an event's whole way: Send, NextDue, Receive, ReceiveAck.
func BenchmarkLaneEvent(b *testing.B) {
	a, c := newLaneTest(b, LaneConfig{}), newLaneTest(b, LaneConfig{})
	event := make([]byte, 64)
	b.ReportAllocs()
	for b.Loop() {
		_, _ = a.Send(event, Critical)
		ev, _ := a.NextDue(64)
		_, ack := c.Receive(ev.ID)
		if a.ReceiveAck(ack) != nil {
			b.Fatal("not acknowledged")
		}
	}
}
