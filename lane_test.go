package ackbits

import (
	"encoding/binary"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// OrderedLane: ids, which event is due, retransmissions and their budget, Deadline. Its
// limits and acknowledgements, its configuration and its traffic have files of their own;
// lane_model_test.go compares it with a model.

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
