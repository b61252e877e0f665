package ackbits

import (
	"encoding/binary"
	"testing"
	"time"

	"github.com/ackbits/ackbits/internal/arena"
	"github.com/ackbits/ackbits/internal/trim"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// P-3.1.3.
func TestEventZeroBeforeEvent65535(t *testing.T) {
	var b inbox
	b.init(false)
	b.ids.base = 65535
	for _, id := range []uint16{0, 65535} {
		require.True(t, b.ids.admits(eventsOf(id)))
		require.Equal(t, eventsOf(id), acceptAll(&b, id))
		require.Empty(t, acceptAll(&b, id))
	}
	require.Equal(t, uint16(1), b.ids.base)
}

func TestEventZeroIsDelivered(t *testing.T) {
	for _, ordered := range []bool{false, true} {
		var b inbox
		b.init(ordered)
		require.Equal(t, eventsOf(0), acceptAll(&b, 0))
		require.Empty(t, acceptAll(&b, 0))
	}
}

// acceptAll accepts a list of empty events.
func acceptAll(b *inbox, ids ...uint16) []Event {
	out, _ := b.accept(eventsOf(ids...))
	return out
}

// P-5.3.3.
func TestInboxDeliversEachEventOnce(t *testing.T) {
	var b inbox
	b.init(false)
	out, fresh := b.accept(eventsOf(3, 0, 3, 1, 0))
	require.Equal(t, eventsOf(3, 0, 1), out)
	require.Equal(t, 3, fresh)
	out, fresh = b.accept(eventsOf(3, 2, 1, 300))
	require.Equal(t, eventsOf(2, 300), out)
	require.Equal(t, 2, fresh)
}

// The first counts.
// P-5.1.3.
func TestSameIDTwiceInAList(t *testing.T) {
	for _, ordered := range []bool{false, true} {
		var b inbox
		b.init(ordered)
		out, fresh := b.accept([]Event{{1, []byte("first")}, {1, []byte("second")}, {0, nil}, {0, []byte("second")}})
		require.Equal(t, 2, fresh)
		require.Len(t, out, 2)
		for _, e := range out {
			require.NotEqual(t, "second", string(e.Data))
		}
	}
}

// waitingIn returns how many events wait behind a gap.
func waitingIn(b *inbox) int {
	if b.reorder == nil {
		return 0
	}
	return b.reorder.waiting
}

func TestOrderedHoldsEventsBackBehindAGap(t *testing.T) {
	fromEveryEdge(t, func(t *testing.T, start uint16) {
		var b inbox
		b.init(true)
		b.ids.base = start
		var behind []uint16
		for ahead := uint16(255); ahead > 0; ahead-- {
			behind = append(behind, start+ahead)
		}
		require.True(t, b.ids.admits(eventsOf(behind...)))
		out, fresh := b.accept(eventsOf(behind...))
		require.Empty(t, out)
		require.Equal(t, 255, fresh)
		require.Equal(t, 255, waitingIn(&b))

		out, fresh = b.accept(eventsOf(start))
		require.Equal(t, 1, fresh)
		require.Len(t, out, 256)
		for i, e := range out {
			require.Equal(t, start+uint16(i), e.ID)
		}
		require.Zero(t, waitingIn(&b))
	})
}

func TestOrderedCopiesWhatWaits(t *testing.T) {
	var b inbox
	b.init(true)
	datagram := []byte("second")
	b.accept([]Event{{1, datagram}})
	copy(datagram, "______")
	out, _ := b.accept([]Event{{0, []byte("first")}})
	require.Equal(t, []Event{{0, []byte("first")}, {1, []byte("second")}}, out)
}

// The dumb model: a map of what waits and the next id.
func TestOrderedInboxIsAMapAndACounter(t *testing.T) {
	data := func(n int64) []byte {
		return binary.LittleEndian.AppendUint64(nil, uint64(n))[:uint64(n)%9]
	}
	rapid.Check(t, func(t *rapid.T) {
		next := int64(rapid.SampledFrom(edgeStarts).Draw(t, "start"))
		waiting := map[int64]bool{}
		var b inbox
		b.init(true)
		b.ids.base = uint16(next)
		datagram := make([]byte, 0, 4096) // used again for each, as a caller does
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			datagram = datagram[:0]
			var events []Event
			var want []int64
			fresh := 0
			for _, ahead := range rapid.SliceOfN(rapid.Int64Range(-3, 12), 1, 12).Draw(t, "list") {
				n := next + ahead
				start := len(datagram)
				datagram = append(datagram, data(n)...)
				events = append(events, Event{uint16(n), datagram[start:len(datagram):len(datagram)]})
				if n >= next && !waiting[n] {
					waiting[n] = true
					fresh++
				}
				for ; waiting[next]; next++ {
					delete(waiting, next)
					want = append(want, next)
				}
			}
			require.True(t, b.ids.admits(events))
			out, gotFresh := b.accept(events)
			if rapid.IntRange(0, 4).Draw(t, "trim") == 0 {
				b.trim(true, 0) // what was delivered stays valid
			}
			require.Equal(t, fresh, gotFresh)
			require.Equal(t, len(waiting), waitingIn(&b))
			require.Len(t, out, len(want))
			for i, n := range want {
				require.Equal(t, uint16(n), out[i].ID)
				require.Equal(t, string(data(n)), string(out[i].Data))
			}
			for i := range datagram {
				datagram[i] = 0xEE
			}
		}
	})
}

func TestTrimFreesWhatAQuietInboxDoesNotNeed(t *testing.T) {
	var b inbox
	b.init(true)
	b.parsed = make([]Event, 0, 64) // as the codec leaves it
	acceptAll(&b, 3, 2, 1)
	b.trim(false, 0)
	b.trim(false, 0)
	require.NotNil(t, b.reorder, "events wait")
	b.parsed = make([]Event, 0, 1)
	require.Len(t, acceptAll(&b, 0), 4)
	b.trim(false, 0) // the busy period ends
	b.trim(false, 0) // and a quiet one
	b.trim(false, 0) // and another
	require.Nil(t, b.reorder)
	require.Zero(t, cap(b.parsed))
}

// What was delivered makes room at the next datagram, without a trim.
func TestOrderedInboxUsesItsRoomAgain(t *testing.T) {
	var b inbox
	b.init(true)
	for id := uint16(0); id < 1000; id += 2 {
		b.accept([]Event{{id + 1, make([]byte, 50)}})
		out, _ := b.accept([]Event{{id, nil}})
		require.Len(t, out, 2)
	}
	require.Equal(t, arena.MinSize, b.reorder.bytes.Size())
}

// A quiet session holds on neither to the caller's buffers nor to copies of events,
// but not before another datagram came: until then the caller may look at them.
func TestInboxReleasesEvents(t *testing.T) {
	for _, ordered := range []bool{false, true} {
		c, clock := newChannel(t, Config{Ordered: ordered})
		c.Receive(Header{Type: TypeEvent, Ack: nothingYet}, eventList(Event{1, []byte("one")}, Event{2, []byte("two")}))
		in, err := c.Receive(Header{Type: TypeEvent, Sequence: 1, Ack: nothingYet}, eventList(Event{0, []byte("zero")}))
		require.NoError(t, err)
		want := map[bool][]string{false: {"zero"}, true: {"zero", "one", "two"}}[ordered]
		trim := func() {
			for range 4 {
				clock.Advance(time.Duration(trim.Period))
				c.NextHeader(TypeHeartbeat)
			}
		}
		trim()
		for i := range want {
			require.Equal(t, want[i], string(in.Events[i].Data))
		}
		c.Receive(Header{Type: TypeHeartbeat, Sequence: 2, Ack: nothingYet}, nil)
		trim()
		for _, list := range [][]Event{c.receiver.inbox.parsed, c.receiver.inbox.out} {
			require.LessOrEqual(t, cap(list), 1)
			for _, e := range list[:cap(list)] {
				require.Nil(t, e.Data)
			}
		}
		require.Nil(t, c.receiver.inbox.reorder)
	}
}

// Where the lists have the least room, too.
func TestInboxReleasesASingleEvent(t *testing.T) {
	for _, ordered := range []bool{false, true} {
		var b inbox
		b.init(ordered)
		b.parsed = []Event{{0, []byte("x")}}
		b.deliveredAt = 1
		out, _ := b.accept(b.parsed)
		b.trim(true, 1)
		require.NotNil(t, out[0].Data)
		b.trim(true, 2)
		require.Nil(t, b.parsed[:1][0].Data)
		require.True(t, !ordered || b.out[:1][0].Data == nil)
	}
}

// What is beyond the last list belongs to those before it.
func TestInboxHoldsOnToTheLastListOnly(t *testing.T) {
	var b inbox
	b.init(false)
	b.parsed = []Event{{0, []byte("x")}, {1, []byte("y")}, {2, []byte("z")}}[:1]
	b.mostEvents.Note(3)
	b.trim(true, 0)
	require.NotNil(t, b.parsed[0].Data)
	require.Equal(t, make([]Event, 2), b.parsed[1:3])

	b = inbox{}
	b.init(true)
	b.accept([]Event{{0, []byte("x")}, {1, []byte("y")}, {2, []byte("z")}})
	b.accept([]Event{{3, []byte("x")}})
	require.Len(t, b.out, 1)
	require.Equal(t, make([]Event, 2), b.out[1:3])
}

func TestRoomForWhatIsDeliveredInOrderIsFreed(t *testing.T) {
	var b inbox
	b.init(true)
	for id := uint16(255); id > 0; id-- { // one a datagram
		b.accept([]Event{{id, make([]byte, 100)}})
	}
	out, _ := b.accept([]Event{{0, nil}})
	require.Len(t, out, 256)
	for range 3 {
		require.GreaterOrEqual(t, cap(b.out), 256)
		b.trim(false, 0)
	}
	require.Zero(t, cap(b.out))
	require.Len(t, out[255].Data, 100)
	b.accept([]Event{{ID: 256}})
	b.out = make([]Event, 1, 2)
	b.trim(false, 0)
	require.Equal(t, 2, cap(b.out))
	list := b.out
	b.trim(false, 0)
	require.Same(t, &list[0], &b.out[0], "what has the right size stays")
}

func TestInboxAfterABurst(t *testing.T) {
	var b inbox
	b.init(false)
	b.parsed = make([]Event, 0, 512)
	b.accept(make([]Event, 255))
	var room []int
	for range 130 {
		b.trim(true, 0)
		room = append(room, cap(b.parsed))
		b.accept(make([]Event, 1))
	}
	require.Equal(t, []int{512, 512, 128}, room[:3])
	require.Equal(t, []int{128, 64}, room[20:22])
	require.Equal(t, []int{32, 16}, room[60:62])
	require.Equal(t, []int{8, 4}, room[100:102])
}

func TestTrimKeepsRoomForListsAsLongAsTheLast(t *testing.T) {
	var b inbox
	b.init(false)
	b.parsed = make([]Event, 0, 64)
	b.accept(make([]Event, 20))
	b.trim(true, 0)
	require.Equal(t, 64, cap(b.parsed))
	for period := range 20 { // 20 were in the period before
		b.accept(make([]Event, 4))
		b.trim(true, 0)
		require.Equal(t, 64, cap(b.parsed), period)
	}
	b.accept(make([]Event, 4))
	b.trim(true, 0)
	require.Equal(t, 32, cap(b.parsed))
	kept := b.parsed[:1]
	b.accept(make([]Event, 4))
	b.trim(true, 0)
	require.Same(t, &kept[0], &b.parsed[:1][0], "what has the right size stays")
	b.trim(false, 0)
	b.trim(false, 0)
	require.Zero(t, cap(b.parsed))
}

func TestTrimNarrowsTheWindow(t *testing.T) {
	var b inbox
	b.init(false)
	acceptAll(&b, 300)
	b.trim(true, 0)
	require.NotNil(t, b.ids.far, "300 is beyond the near window")
	b.ids.insertRange(0, 300)
	b.trim(true, 0)
	require.Nil(t, b.ids.far)
}

func TestGapsCostNoAllocationOnceWarm(t *testing.T) {
	var b inbox
	b.init(true)
	events := []Event{{Data: make([]byte, 40)}}
	next := uint16(0)
	round := func() {
		for _, ahead := range []uint16{3, 1, 2, 0} {
			events[0].ID = next + ahead
			b.accept(events)
		}
		next += 4
	}
	round()
	round()
	require.Zero(t, testing.AllocsPerRun(100, round))
}
