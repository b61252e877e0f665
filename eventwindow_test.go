package ackbits

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func windowAt(base, size uint16) *idWindow { return &idWindow{base: base, size: size} }

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

// P-3.1.3, P-5.3.1.
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
				require.Equal(t, tc.plain, windowAt(start, maxEventWindow).judge(start+tc.ahead))
				require.Equal(t, tc.ordered, windowAt(start, eventWindow).judge(start+tc.ahead))
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

func TestCopyFromFarBackIsKnown(t *testing.T) {
	w := windowAt(0, maxEventWindow)
	w.insertRange(0, 401)
	require.Equal(t, idKnown, w.judge(50))
	require.True(t, w.admits(eventsOf(50)))
}

// P-5.3.3.
func TestBaseMovesPastAllThatWasReceived(t *testing.T) {
	for _, n := range []uint16{1, 2, 62, 63, 64, 65, 127, 128, 255, 256, 257, 4095} {
		t.Run(fmt.Sprintf("over %d", n), func(t *testing.T) {
			fromEveryEdge(t, func(t *testing.T, start uint16) {
				w := windowAt(start, maxEventWindow)
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

// Ids are judged in list order, each as if those before it were in.
// P-5.3.2.
func TestListIsJudgedInItsOrder(t *testing.T) {
	for name, tc := range map[string]struct {
		received uint16 // ids 1 … received were, 0 was not
		size     uint16
		ids      []uint16
		want     bool
	}{
		"just outside":                    {0, maxEventWindow, []uint16{4096}, false},
		"just outside, after base":        {0, maxEventWindow, []uint16{0, 4096}, true},
		"just outside, before base":       {0, maxEventWindow, []uint16{4096, 0}, false},
		"after base moved over many":      {4095, maxEventWindow, []uint16{0, 8191}, true},
		"one too far":                     {4095, maxEventWindow, []uint16{0, 8192}, false},
		"ordered, just outside":           {0, eventWindow, []uint16{256}, false},
		"ordered, after base":             {0, eventWindow, []uint16{0, 256}, true},
		"ordered, after base moved":       {255, eventWindow, []uint16{0, 511}, true},
		"ordered, one too far":            {255, eventWindow, []uint16{0, 512}, false},
		"steps of the list add up":        {0, eventWindow, []uint16{255, 0, 256, 1, 257, 2, 258}, true},
		"oldest of the old":               {0, maxEventWindow, []uint16{32769}, true},
		"older than that":                 {0, maxEventWindow, []uint16{32768}, false},
		"too old once base moved":         {0, maxEventWindow, []uint16{0, 32769}, false},
		"not too old before base moved":   {0, maxEventWindow, []uint16{32769, 0}, true},
		"too old once base moved by many": {4095, maxEventWindow, []uint16{0, 32768 + 4096}, false},
		"old enough for that":             {4095, maxEventWindow, []uint16{0, 32768 + 4097}, true},
		"the first is fine":               {0, maxEventWindow, []uint16{0, 1, 2, 30000}, false},
		"same id twice":                   {0, maxEventWindow, []uint16{0, 0, 1, 1}, true},
	} {
		t.Run(name, func(t *testing.T) {
			fromEveryEdge(t, func(t *testing.T, start uint16) {
				w := windowAt(start, tc.size)
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

// P-17.1.6.
func TestWindowWidensAndNarrowsWithItsEvents(t *testing.T) {
	fromEveryEdge(t, func(t *testing.T, start uint16) {
		w := windowAt(start, maxEventWindow)
		w.insertRange(start+1, start+256)
		require.Nil(t, w.far, "the near window holds 256")

		w.accept(start + 256)
		require.Len(t, w.far, maxEventWindow/64)
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
		require.NotNil(t, w.far, "256 beyond the next one")
		w.accept(start + 259)
		w.narrow()
		require.Nil(t, w.far, "255 ahead is the last that fits")
		require.Equal(t, idKnown, w.judge(start+257+2+256))
	})
}

// The dumb model of the window: the set of ids received, unwrapped.
type windowModel struct {
	base, size int64
	received   map[int64]bool
}

func (m *windowModel) judge(id uint16) (n int64, v idState) {
	n = m.base + int64(id-uint16(m.base))
	switch {
	case n < m.base+m.size && m.received[n]:
		return n, idKnown
	case n < m.base+m.size:
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
func idLists(t *rapid.T, base, size int64) []uint16 {
	if rapid.Bool().Draw(t, "run") {
		first := base + rapid.Int64Range(0, 5).Draw(t, "gap")
		if rapid.Bool().Draw(t, "far run") {
			first += rapid.Int64Range(0, size).Draw(t, "first")
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
		rapid.Int64Range(size-5, size+5),
		rapid.Int64Range(32764, 32772),
		rapid.Int64Range(32764+size, 32772+size),
		rapid.Int64Range(0, 65535),
	)
	ids := make([]uint16, rapid.IntRange(1, 6).Draw(t, "length"))
	for i := range ids {
		ids[i] = uint16(base + ahead.Draw(t, "ahead"))
	}
	return ids
}

// P-5.3.3.
func TestWindowIsASetOfReceivedIDs(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		start := rapid.SampledFrom(edgeStarts).Draw(t, "start")
		size := rapid.SampledFrom([]int64{eventWindow, maxEventWindow}).Draw(t, "size")
		w := windowAt(start, uint16(size))
		m := &windowModel{int64(start), size, map[int64]bool{}}
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			ids := idLists(t, m.base, size)
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
					wide = wide || n >= m.base+eventWindow
				}
				require.Equal(t, wide, w.far != nil)
			}
			requireWindow(t, m, w)
		}
	})
}

// requireWindow looks at every id that the window can know, and a few more.
func requireWindow(t *rapid.T, m *windowModel, w *idWindow) {
	for n := m.base - 2; n < m.base+m.size+2; n++ {
		if _, want := m.judge(uint16(n)); w.judge(uint16(n)) != want {
			t.Fatalf("id %d is %d at %d, want %d", uint16(n), w.judge(uint16(n)), w.base, want)
		}
	}
}

func TestRefusingAListCostsNoAllocation(t *testing.T) {
	w := windowAt(0, maxEventWindow)
	list := eventsOf(0, 1, 300, 4097, 30000)
	require.Zero(t, testing.AllocsPerRun(10, func() { w.admits(list) }))
	w.accept(300)
	require.Zero(t, testing.AllocsPerRun(10, func() { w.admits(list) }))
}
