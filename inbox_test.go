package ackbits

import (
	"encoding/binary"
	"fmt"
	"testing"
	"time"

	"github.com/ackbits/ackbits/internal/arena"
	"github.com/ackbits/ackbits/internal/trim"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func windowAt(base, span uint16) *idWindow { return &idWindow{base: base, span: span} }

// insertRange inserts the ids from first up to but without end.
func (w *idWindow) insertRange(first, end uint16) {
	for id := first; id != end; id++ {
		w.accept(id)
	}
}

func eventsOf(ids ...uint16) []Event {
	events := make([]Event, len(ids))
	for i, id := range ids {
		events[i].ID = id
	}
	return events
}

func TestIDsAtTheEdgesOfTheWindow(t *testing.T) {
	for _, tc := range []struct {
		ahead          uint16
		plain, ordered idState
	}{
		{0, idNew, idNew},
		{1, idNew, idNew},
		{255, idNew, idNew},
		{256, idNew, idOutside},
		{4095, idNew, idOutside},
		{4096, idOutside, idOutside},
		{32767, idOutside, idOutside},
		{32768, idOutside, idOutside},
		{32769, idKnown, idKnown}, // 32767 before base
		{65535, idKnown, idKnown},
	} {
		t.Run(fmt.Sprintf("%d ahead", tc.ahead), func(t *testing.T) {
			fromEveryEdge(t, func(t *testing.T, start uint16) {
				require.Equal(t, tc.plain, windowAt(start, farSpan).judge(start+tc.ahead))
				require.Equal(t, tc.ordered, windowAt(start, nearSpan).judge(start+tc.ahead))
			})
		})
	}
}

func TestWindowOfAnInboxBeginsAtZero(t *testing.T) {
	for _, tc := range []struct {
		ordered bool
		last    uint16
	}{{false, 4095}, {true, 255}} {
		var b inbox
		b.init(tc.ordered)
		require.True(t, b.ids.admits(eventsOf(tc.last)))
		require.False(t, b.ids.admits(eventsOf(tc.last+1)))
	}
}

func TestEventZeroBeforeEvent65535(t *testing.T) {
	var b inbox
	b.init(false)
	b.ids.base = 65535
	for _, id := range []uint16{0, 65535} {
		require.True(t, b.ids.admits(eventsOf(id)))
		require.Equal(t, eventsOf(id), takeAll(&b, id))
		require.Empty(t, takeAll(&b, id))
	}
	require.Equal(t, uint16(1), b.ids.base)
}

func TestEventZeroIsHandedOver(t *testing.T) {
	for _, ordered := range []bool{false, true} {
		var b inbox
		b.init(ordered)
		require.Equal(t, eventsOf(0), takeAll(&b, 0))
		require.Empty(t, takeAll(&b, 0))
	}
}

func TestCopyFromFarBackIsKnown(t *testing.T) {
	w := windowAt(0, farSpan)
	w.insertRange(0, 401)
	require.Equal(t, idKnown, w.judge(50))
	require.True(t, w.admits(eventsOf(50)))
}

func TestBaseMovesPastAllThatWasReceived(t *testing.T) {
	for _, n := range []uint16{1, 2, 62, 63, 64, 65, 127, 128, 255, 256, 257, 4095} {
		t.Run(fmt.Sprintf("over %d", n), func(t *testing.T) {
			fromEveryEdge(t, func(t *testing.T, start uint16) {
				w := windowAt(start, farSpan)
				w.insertRange(start+1, start+n)
				require.Equal(t, start, w.base)
				w.accept(start)
				require.Equal(t, start+n, w.base)
				for _, word := range w.words() {
					require.Zero(t, word, "what is before base is forgotten")
				}
			})
		})
	}
}

// R1: ids are judged in list order, each as if those before it were in.
func TestListIsJudgedInItsOrder(t *testing.T) {
	for name, tc := range map[string]struct {
		received uint16 // ids 1 … received were, 0 was not
		span     uint16
		ids      []uint16
		want     bool
	}{
		"just outside":                    {0, farSpan, []uint16{4096}, false},
		"just outside, after base":        {0, farSpan, []uint16{0, 4096}, true},
		"just outside, before base":       {0, farSpan, []uint16{4096, 0}, false},
		"after base moved over many":      {4095, farSpan, []uint16{0, 8191}, true},
		"one too far":                     {4095, farSpan, []uint16{0, 8192}, false},
		"ordered, just outside":           {0, nearSpan, []uint16{256}, false},
		"ordered, after base":             {0, nearSpan, []uint16{0, 256}, true},
		"ordered, after base moved":       {255, nearSpan, []uint16{0, 511}, true},
		"ordered, one too far":            {255, nearSpan, []uint16{0, 512}, false},
		"steps of the list add up":        {0, nearSpan, []uint16{255, 0, 256, 1, 257, 2, 258}, true},
		"oldest of the old":               {0, farSpan, []uint16{32769}, true},
		"older than that":                 {0, farSpan, []uint16{32768}, false},
		"too old once base moved":         {0, farSpan, []uint16{0, 32769}, false},
		"not too old before base moved":   {0, farSpan, []uint16{32769, 0}, true},
		"too old once base moved by many": {4095, farSpan, []uint16{0, 32768 + 4096}, false},
		"old enough for that":             {4095, farSpan, []uint16{0, 32768 + 4097}, true},
		"the first is fine":               {0, farSpan, []uint16{0, 1, 2, 30000}, false},
		"same id twice":                   {0, farSpan, []uint16{0, 0, 1, 1}, true},
	} {
		t.Run(name, func(t *testing.T) {
			fromEveryEdge(t, func(t *testing.T, start uint16) {
				w := windowAt(start, tc.span)
				w.insertRange(start+1, start+tc.received+1)
				ids := make([]uint16, len(tc.ids))
				for i := range ids {
					ids[i] = start + tc.ids[i]
				}
				require.Equal(t, tc.want, w.admits(eventsOf(ids...)))
				require.Equal(t, start, w.base, "admits changes nothing")
			})
		})
	}
}

func TestWindowWidensAndNarrowsWithItsEvents(t *testing.T) {
	fromEveryEdge(t, func(t *testing.T, start uint16) {
		w := windowAt(start, farSpan)
		w.insertRange(start+1, start+256)
		require.Nil(t, w.far, "the near window holds 256")

		w.accept(start + 256)
		require.Len(t, w.far, farSpan/64)
		w.narrow()
		require.NotNil(t, w.far, "an id beyond the near window needs it")
		require.Equal(t, idKnown, w.judge(start+256))

		w.accept(start)
		w.accept(start + 258)
		w.narrow()
		require.Nil(t, w.far)
		require.Equal(t, start+257, w.base)
		require.Equal(t, idKnown, w.judge(start+258))
		require.Equal(t, idNew, w.judge(start+257))
		require.Equal(t, idNew, w.judge(start+259))

		w.accept(start + 257 + 2 + 256)
		w.accept(start + 257)
		w.narrow()
		require.NotNil(t, w.far, "256 ahead of the next one")
		w.accept(start + 259)
		w.narrow()
		require.Nil(t, w.far, "255 ahead is the last that fits")
		require.Equal(t, idKnown, w.judge(start+257+2+256))
	})
}

// The dumb model of the window: the set of ids received, unwrapped.
type windowModel struct {
	base, span int64
	received   map[int64]bool
}

func (m *windowModel) judge(id uint16) (n int64, v idState) {
	n = m.base + int64(id-uint16(m.base))
	switch {
	case n < m.base+m.span && m.received[n]:
		return n, idKnown
	case n < m.base+m.span:
		return n, idNew
	case n > m.base+32768:
		return n - 65536, idKnown
	}
	return n, idOutside
}

func (m *windowModel) insert(n int64) {
	m.received[n] = true
	for m.received[m.base] {
		m.base++
	}
}

// admits tries the list and takes back what it did.
func (m *windowModel) admits(ids []uint16) bool {
	base, inserted := m.base, []int64{}
	defer func() {
		m.base = base
		for _, n := range inserted {
			delete(m.received, n)
		}
	}()
	for _, id := range ids {
		n, v := m.judge(id)
		switch v {
		case idOutside:
			return false
		case idNew:
			m.insert(n)
			inserted = append(inserted, n)
		}
	}
	return true
}

// idLists draws lists of ids around base: short ones with everything that can
// lie at an edge, and runs that fill the window.
func idLists(t *rapid.T, base, span int64) []uint16 {
	if rapid.Bool().Draw(t, "run") {
		first := base + rapid.Int64Range(0, 5).Draw(t, "gap")
		if rapid.Bool().Draw(t, "far run") {
			first += rapid.Int64Range(0, span).Draw(t, "first")
		}
		ids := make([]uint16, rapid.IntRange(1, 255).Draw(t, "length"))
		for i := range ids {
			ids[i] = uint16(first + int64(i))
		}
		return ids
	}
	ahead := rapid.OneOf(
		rapid.Int64Range(-3, 5),
		rapid.Int64Range(-70, 70),
		rapid.Int64Range(250, 260),
		rapid.Int64Range(span-5, span+5),
		rapid.Int64Range(32764, 32772),
		rapid.Int64Range(32764+span, 32772+span),
		rapid.Int64Range(0, 65535),
	)
	ids := make([]uint16, rapid.IntRange(1, 6).Draw(t, "length"))
	for i := range ids {
		ids[i] = uint16(base + ahead.Draw(t, "ahead"))
	}
	return ids
}

func TestWindowIsASetOfReceivedIDs(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		start := rapid.SampledFrom(edgeStarts).Draw(t, "start")
		span := rapid.SampledFrom([]int64{nearSpan, farSpan}).Draw(t, "span")
		w := windowAt(start, uint16(span))
		m := &windowModel{int64(start), span, map[int64]bool{}}
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			ids := idLists(t, m.base, span)
			before, words := *w, append([]uint64(nil), w.words()...)
			admitted := w.admits(eventsOf(ids...))
			require.Equal(t, m.admits(ids), admitted, "admits %v after %d", ids, w.base)
			require.Equal(t, before.base, w.base)
			require.Equal(t, words, w.words(), "admits changes nothing")

			for _, id := range ids {
				n, want := m.judge(id)
				require.Equal(t, want, w.judge(id), "id %d at %d", id, w.base)
				if admitted && want == idNew {
					w.accept(id)
					m.insert(n)
					require.Equal(t, uint16(m.base), w.base)
				}
			}
			if rapid.IntRange(0, 3).Draw(t, "narrow") == 0 {
				w.narrow()
				wide := false
				for n := range m.received {
					wide = wide || n >= m.base+nearSpan
				}
				require.Equal(t, wide, w.far != nil)
			}
			requireWindow(t, m, w)
		}
	})
}

// requireWindow looks at every id that the window can know, and a few more.
func requireWindow(t *rapid.T, m *windowModel, w *idWindow) {
	for n := m.base - 2; n < m.base+m.span+2; n++ {
		if _, want := m.judge(uint16(n)); w.judge(uint16(n)) != want {
			t.Fatalf("id %d is %d at %d, want %d", uint16(n), w.judge(uint16(n)), w.base, want)
		}
	}
}

// takeAll takes in a list of empty events.
func takeAll(b *inbox, ids ...uint16) []Event {
	out, _ := b.accept(eventsOf(ids...))
	return out
}

func TestInboxHandsOverEachEventOnce(t *testing.T) {
	var b inbox
	b.init(false)
	out, fresh := b.accept(eventsOf(3, 0, 3, 1, 0))
	require.Equal(t, eventsOf(3, 0, 1), out)
	require.Equal(t, 3, fresh)
	out, fresh = b.accept(eventsOf(3, 2, 1, 300))
	require.Equal(t, eventsOf(2, 300), out)
	require.Equal(t, 2, fresh)
}

// R12: the first counts.
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

// R10.
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
				b.trim(true, 0) // what was handed over stays valid
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

func TestTrimGivesBackWhatAQuietInboxDoesNotNeed(t *testing.T) {
	var b inbox
	b.init(true)
	b.parsed = make([]Event, 0, 64) // as the codec leaves it
	takeAll(&b, 3, 2, 1)
	b.trim(false, 0)
	b.trim(false, 0)
	require.NotNil(t, b.reorder, "events wait")
	b.parsed = make([]Event, 0, 1)
	require.Len(t, takeAll(&b, 0), 4)
	b.trim(false, 0) // the busy period ends
	b.trim(false, 0) // and a quiet one
	b.trim(false, 0) // and another
	require.Nil(t, b.reorder)
	require.Zero(t, cap(b.parsed))
}

// What was handed over makes room at the next datagram, without a trim.
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
func TestInboxLetsGoOfEvents(t *testing.T) {
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
func TestInboxLetsGoOfASingleEvent(t *testing.T) {
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

func TestRoomForWhatIsHandedOverInOrderIsGivenBack(t *testing.T) {
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
	takeAll(&b, 300)
	b.trim(true, 0)
	require.NotNil(t, b.ids.far, "300 is beyond the near window")
	b.ids.insertRange(0, 300)
	b.trim(true, 0)
	require.Nil(t, b.ids.far)
}

func TestRefusingAListCostsNoAllocation(t *testing.T) {
	w := windowAt(0, farSpan)
	list := eventsOf(0, 1, 300, 4097, 30000)
	require.Zero(t, testing.AllocsPerRun(10, func() { w.admits(list) }))
	w.accept(300)
	require.Zero(t, testing.AllocsPerRun(10, func() { w.admits(list) }))
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
