package ackbits

import (
	"bytes"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// held returns the bytes of heap that a lane's queue holds.
func (q *laneQueue) held() int { return len(q.slots)*int(unsafe.Sizeof(laneSlot{})) + len(q.buf) }

func TestLaneQueueIsAList(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		type entry struct {
			data []byte
			at   int64
		}
		var q laneQueue
		var list []entry
		var now int64
		fill := byte(0)
		t.Repeat(map[string]func(*rapid.T){
			"push": func(t *rapid.T) {
				fill++
				size := rapid.OneOf(rapid.IntRange(0, 20), rapid.IntRange(0, 2000)).Draw(t, "size")
				data := bytes.Repeat([]byte{fill}, size)
				q.trim(now)
				q.push(data, now)
				list = append(list, entry{data, now})
			},
			"drop": func(t *rapid.T) {
				k := rapid.IntRange(0, len(list)).Draw(t, "k")
				q.trim(now)
				q.drop(k)
				list = list[k:]
			},
			"touch": func(t *rapid.T) {
				if len(list) > 0 {
					i := rapid.IntRange(0, len(list)-1).Draw(t, "i")
					q.slot(i).at, list[i].at = now, now
				}
			},
			"later": func(t *rapid.T) {
				now += rapid.Int64Range(0, 2*int64(laneQuiet)).Draw(t, "ns")
				q.trim(now)
			},
			"": func(t *rapid.T) {
				require.NoError(t, q.sound())
				require.Equal(t, len(list), q.n)
				for i, want := range list {
					s := q.slot(i)
					require.Equal(t, want.at, s.at)
					require.True(t, bytes.Equal(want.data, q.data(s)), "event %d", i)
					require.Equal(t, s.size, cap(q.data(s)))
				}
			},
		})
	})
}

func TestLaneFreshHoldsNoQueue(t *testing.T) {
	l := newLaneTest(t, LaneConfig{})
	l.Receive(1)
	_, ok := l.NextDue(100)
	require.False(t, ok)
	require.Zero(t, l.queue.held())
	require.LessOrEqual(t, unsafe.Sizeof(OrderedLane{}), uintptr(512))
}

func TestLaneMemoryOfABurstIsFreed(t *testing.T) {
	burst := func() *laneTest {
		l := newLaneTest(t, LaneConfig{})
		for range 511 {
			_, err := l.Send(make([]byte, 1000), Critical)
			require.NoError(t, err)
		}
		for _, ok := l.NextDue(1000); ok; _, ok = l.NextDue(1000) {
		}
		require.Greater(t, l.queue.held(), 511_000)
		require.Less(t, l.queue.held(), 4*511_000)
		l.at(time.Second)
		l.ack(511)
		return l
	}
	t.Run("by a call after 10 s of quiet", func(t *testing.T) {
		l := burst()
		l.at(11*time.Second - 1)
		l.NextDue(0)
		require.Greater(t, l.queue.held(), 511_000)
		l.at(11 * time.Second)
		l.NextDue(0)
		require.LessOrEqual(t, l.queue.held(), 2048)
	})
	t.Run("though events go on", func(t *testing.T) {
		l := burst()
		for at := time.Second; at < 22*time.Second; at += 50 * laneUnit {
			l.at(at)
			l.feed(1)
			l.due()
			if l.last > 520 {
				l.ack(l.last - 5) // never quite empty
			}
		}
		require.LessOrEqual(t, l.queue.held(), 2048)
		require.NoError(t, l.queue.sound())
	})
	t.Run("of one huge event among many small ones", func(t *testing.T) {
		l := newLaneTest(t, LaneConfig{})
		_, err := l.Send(make([]byte, 1_000_000), Critical)
		require.NoError(t, err)
		l.NextDue(1_000_000)
		l.ack(1)
		for at := time.Second; at < 12*time.Second; at += 10 * laneUnit {
			l.at(at)
			l.feed(1)
			l.due()
			if l.last > 201 {
				l.ack(l.last - 200)
			}
		}
		require.Less(t, len(l.queue.buf), 10_000)
		require.Greater(t, len(l.queue.slots), 200)
	})
}

// Each array by itself goes back to its least, and no further.
func TestLaneQueueFreesWhatOnlyOneOfItsArraysHolds(t *testing.T) {
	for _, tc := range []struct{ events, size int }{{100, 0}, {1, 10_000}} {
		var q laneQueue
		q.push(make([]byte, laneMinBytes/2), 0)
		for range tc.events {
			q.push(make([]byte, tc.size), 0)
		}
		require.Greater(t, max(len(q.slots)/laneMinSlots, len(q.buf)/laneMinBytes), 1)
		q.drop(q.n)
		q.trim(int64(laneQuiet))
		require.Len(t, q.slots, laneMinSlots)
		require.Len(t, q.buf, laneMinBytes)
	}
}

func TestLaneQueueUsesEveryByteAndNoneTwice(t *testing.T) {
	for split := 1; split <= laneMinBytes/2; split++ {
		for _, over := range []int{0, 1} {
			var q laneQueue
			q.push(bytes.Repeat([]byte{1}, split), 0)
			q.push(bytes.Repeat([]byte{2}, laneMinBytes-split), 0)
			require.Len(t, q.buf, laneMinBytes, "full")
			q.drop(1)
			q.push(bytes.Repeat([]byte{3}, split+over), 0)
			require.Equal(t, over == 0, len(q.buf) == laneMinBytes, "%d bytes into a gap of %d", split+over, split)
			require.Equal(t, bytes.Repeat([]byte{2}, q.slot(0).size), q.data(q.slot(0)))
			require.Equal(t, bytes.Repeat([]byte{3}, split+over), q.data(q.slot(q.n-1)))
		}
	}
}

func TestLaneQueueThatIsEmptyHasRoomForItsWholeLength(t *testing.T) {
	var q laneQueue
	q.push(make([]byte, 1000), 0)
	length := len(q.buf)
	for range 3 {
		q.drop(1)
		q.push(make([]byte, length-50), 0)
		require.Len(t, q.buf, length)
	}
}

func TestLaneQueueGrowsByDoubling(t *testing.T) {
	var q laneQueue
	slots, sizes := map[int]bool{}, map[int]bool{}
	for range 10_000 {
		q.push(make([]byte, 100), 0)
		slots[len(q.slots)], sizes[len(q.buf)] = true, true
	}
	require.LessOrEqual(t, len(slots), 10)
	require.LessOrEqual(t, len(sizes), 12)
	require.LessOrEqual(t, len(q.buf), 2*q.live)
}

func TestLaneUse(t *testing.T) {
	const quiet = int64(laneQuiet)
	var u laneUse
	require.Equal(t, 1000, u.fit(240, 1000, 100, 0))
	require.Equal(t, 1000, u.fit(251, 1000, 100, 5), "busy")
	require.Equal(t, 1000, u.fit(0, 1000, 100, 6))
	require.Equal(t, 1000, u.fit(0, 1000, 100, quiet+4))
	require.Equal(t, 100, u.fit(0, 1000, 100, quiet+5), "the 240 were before the busy time")

	u = laneUse{}
	u.fit(180, 1000, 100, 1)
	u.fit(20, 1000, 100, 2)
	require.Equal(t, 360, u.fit(0, 1000, 100, quiet), "twice the most that was used")
	require.Equal(t, 100, u.fit(0, 100, 100, 9*quiet), "never below the least")

	u.fit(251, 1000, 0, 10*quiet)
	require.Zero(t, u.fit(0, 1000, 0, 11*quiet), "nothing was used, and there is no least")

	u = laneUse{}
	u.fit(250, 1000, 100, 1)
	require.Equal(t, 500, u.fit(0, 1000, 100, quiet), "a quarter is not busy")
}
