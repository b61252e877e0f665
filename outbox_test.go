package ackbits

import (
	"bytes"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestLowestOfASetCountsFromItsBase(t *testing.T) {
	fromEveryEdge(t, func(t *testing.T, base uint16) {
		for _, ahead := range []uint16{0, 1, 62, 63, 64, 65, 127, 128, 191, 192, 254, 255} {
			var s idSet
			s.add(base + ahead)
			require.Equal(t, base+ahead, s.lowest(base))
			s.add(base + 255)
			require.Equal(t, base+ahead, s.lowest(base))
			if ahead < 255 {
				s.remove(base + ahead)
				require.Equal(t, base+255, s.lowest(base))
			}
			require.Equal(t, 1, s.n)
		}
	})
}

// What was needed lately is counted in events, wherever their numbers are by now.
func TestPeakOfAnOutboxIsWhatItHolds(t *testing.T) {
	o := outbox{base: 1000, fresh: 1000, end: 1000}
	o.add(make([]byte, 10))
	o.add(nil)
	o.get(1000).delivered, o.fresh = true, 1002
	o.settle()
	require.EqualValues(t, 2, o.mostEvents.now)
	require.EqualValues(t, 10, o.mostBytes.now)
}

// An arena begins with room for an event and a byte more, and doubles.
func TestArenaGrowsByDoubling(t *testing.T) {
	for size, want := range map[int]int{0: 0, 1: 256, 255: 256, 256: 512, 257: 512, 1177: 2048} {
		var o outbox
		o.add(make([]byte, size))
		require.Len(t, o.bytes.buf, want, "%d bytes", size)
	}

	var o outbox
	o.add(make([]byte, 100))
	o.add(make([]byte, 150))
	o.get(0).delivered, o.fresh = true, 1
	o.settle()
	o.add(make([]byte, 100)) // there would be room if the second one moved
	require.Len(t, o.bytes.buf, 512)
}

// The dumb model: a map.
func TestIDSetIsASet(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		base := rapid.SampledFrom(edgeStarts).Draw(t, "base")
		var s idSet
		model := map[uint16]bool{}
		for range rapid.IntRange(1, 100).Draw(t, "steps") {
			id := base + uint16(rapid.IntRange(0, 255).Draw(t, "ahead"))
			switch rapid.IntRange(0, 3).Draw(t, "action") {
			case 0, 1:
				s.add(id)
				model[id] = true
			case 2:
				s.remove(id)
				delete(model, id)
			case 3: // base never passes a member
				for step := id - base; step > 0 && !model[base]; step-- {
					base++
				}
			}
			require.Equal(t, len(model), s.n)
			if len(model) > 0 {
				lowest := uint16(255)
				for id := range model {
					lowest = min(lowest, id-base)
				}
				require.Equal(t, base+lowest, s.lowest(base))
			}
		}
	})
}

// The dumb model: a queue of what was given out, filled with its own bytes.
func TestArenaGivesOutBytesThatNobodyElseHas(t *testing.T) {
	type piece struct {
		start int
		data  []byte
	}
	rapid.Check(t, func(t *rapid.T) {
		a := arena{buf: make([]byte, rapid.SampledFrom([]int{0, 1, 2, 16, 64}).Draw(t, "size"))}
		var live []piece
		total := 0
		for step := range rapid.IntRange(1, 80).Draw(t, "steps") {
			if rapid.IntRange(0, 2).Draw(t, "action") > 0 {
				n := rapid.OneOf(rapid.IntRange(0, 8), rapid.IntRange(0, 70)).Draw(t, "n")
				before := a
				start, ok := a.alloc(n)
				if ok {
					data := bytes.Repeat([]byte{byte(step + 1)}, n)
					copy(a.buf[start:start+n], data)
					live = append(live, piece{start, data})
					total += n
				} else {
					require.Equal(t, before, a, "a refusal changes nothing")
					require.Less(t, gap(before), n, "there was room")
				}
			} else if len(live) > 0 { // in the order of giving out, as settle does
				total -= len(live[0].data)
				if live = live[1:]; len(live) > 0 {
					a.head = live[0].start
				} else {
					a.head, a.tail = 0, 0
				}
			}
			for _, p := range live {
				require.Equal(t, string(p.data), string(a.buf[p.start:p.start+len(p.data)]))
			}
			require.GreaterOrEqual(t, a.used(), total)
			require.LessOrEqual(t, a.used(), len(a.buf))
		}
	})
}

// Events are known by 32 bits of their numbers, however many there were: of those
// that are neither before base nor unsent.
func TestShortenedNumberFindsItsEvent(t *testing.T) {
	for _, base := range []int64{0, 1, 20, 1<<31 - 5, 1 << 31, 1<<32 - 5, 1 << 32, 1<<40 + 3} {
		o := outbox{base: base, fresh: base + 10, end: base + 15}
		o.events = o.events.Resized(16, 0, 0)
		for n := base - 20; n < base+20; n++ {
			number, e := o.onWire(uint32(n))
			if n >= o.base && n < o.fresh {
				require.Equal(t, n, number)
				require.Same(t, o.get(n), e)
			} else {
				require.Zero(t, number)
				require.Nil(t, e)
			}
		}
	}
}

// gap returns the largest piece that an arena must be able to give out: all
// that is free in one piece, but for the byte that keeps a tail that went around
// from head.
func gap(a arena) int {
	if a.tail < a.head {
		return a.head - a.tail - 1
	}
	return max(len(a.buf)-a.tail, a.head-1)
}

func TestArenaFillsUpToTheLastByte(t *testing.T) {
	a := arena{buf: make([]byte, 10)}
	start, ok := a.alloc(10)
	require.True(t, ok)
	require.Zero(t, start)
	require.Equal(t, 10, a.used())
	_, ok = a.alloc(1)
	require.False(t, ok)
	start, ok = a.alloc(0)
	require.True(t, ok)
	require.Equal(t, 10, start)
}

func TestArenaGoesAroundButNotIntoItsHead(t *testing.T) {
	a := arena{buf: make([]byte, 10), head: 4, tail: 8}
	_, ok := a.alloc(4)
	require.False(t, ok, "then tail would be at head, as if all were free")
	start, ok := a.alloc(3)
	require.True(t, ok)
	require.Zero(t, start)
	require.Equal(t, 9, a.used(), "two at the end are wasted")
	_, ok = a.alloc(1)
	require.False(t, ok)
}

// An event's bytes are those of Send, however often
// the arena grew, shrank and went around since.
func TestOutboxKeepsTheBytesOfSend(t *testing.T) {
	content := func(n int64, size int) []byte { return bytes.Repeat([]byte{byte(n)}, size) }
	rapid.Check(t, func(t *rapid.T) {
		var o outbox
		var live [][]byte // from base on
		buf := make([]byte, 0, 300)
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			switch rapid.IntRange(0, 5).Draw(t, "action") {
			case 0, 1, 2:
				size := rapid.OneOf(rapid.IntRange(0, 40), rapid.IntRange(0, 300)).Draw(t, "size")
				buf = append(buf[:0], content(o.end, size)...)
				live = append(live, content(o.end, size))
				id := o.add(buf)
				require.Equal(t, uint16(o.end-1), id)
				clear(buf)
			case 3, 4:
				for range rapid.IntRange(0, len(live)).Draw(t, "delivered") {
					*o.get(o.base) = pending{start: o.get(o.base).start, size: o.get(o.base).size, delivered: true}
					o.fresh = o.base + 1
					o.undelivered--
					o.settle()
					live = live[1:]
				}
			case 5:
				o.trim(false)
			}
			require.Equal(t, int64(len(live)), o.end-o.base)
			require.Equal(t, len(live), o.undelivered)
			for i, want := range live {
				e := o.get(o.base + int64(i))
				require.Equal(t, string(want), string(o.bytes.buf[e.start:e.start+uint32(e.size)]))
			}
		}
	})
}

func TestQuietOutboxTakesNoMemory(t *testing.T) {
	var o outbox
	for range 20 {
		o.add(make([]byte, 100))
	}
	o.trim(false)
	require.Len(t, o.events, 32, "20 wait")
	require.Len(t, o.bytes.buf, 2048, "2,000 wait")
	for n := range o.end {
		o.get(n).delivered = true
	}
	o.fresh = o.end
	o.settle()
	o.trim(false)
	require.Len(t, o.events, 32, "20 waited a moment ago")
	o.trim(false)
	require.Len(t, o.events, 32, "and in the period before")
	o.trim(false)
	require.Empty(t, o.events)
	require.Empty(t, o.bytes.buf)
	require.Equal(t, uint16(20), o.add([]byte("next")))
}

// While a session is busy, the room that was needed halves once a minute; when it is
// quiet, it goes.
func TestOutboxKeepsTheLeastForOneEventInTheEnd(t *testing.T) {
	c, clock := newChannel(t, Config{})
	for range 20 {
		c.Send(make([]byte, 50))
		h, _ := c.NextHeader(TypeEvent)
		require.NotEmpty(t, c.AppendDueEvents(nil, h.Sequence, 1000))
	}
	require.Greater(t, min(len(c.outbox.events)/minEvents, len(c.outbox.bytes.buf)/minBytes, len(c.outbox.runs)/minEvents), 1)
	c.Receive(Header{Type: TypeInput, Ack: 18, AckBits: 1<<18 - 1}, nil)
	require.Equal(t, 1, c.InFlight())
	c.outbox.releaseRuns(&c.sent)
	for period := range 22 { // until 20 was halved
		require.Greater(t, len(c.outbox.events), 16, period)
		clock.Advance(time.Duration(trimPeriod))
		c.NextHeader(TypeInput)
	}
	for range 70 {
		clock.Advance(time.Duration(trimPeriod))
		c.NextHeader(TypeInput)
	}
	require.Len(t, c.outbox.bytes.buf, minBytes)
	require.Len(t, c.outbox.events, minEvents)
	require.Len(t, c.outbox.runs, minEvents)
	c.Receive(Header{Type: TypeInput, Sequence: 1, Ack: 19}, nil)
	require.Zero(t, c.InFlight())
	for range 4 {
		clock.Advance(time.Duration(trimPeriod))
		c.NextHeader(TypeHeartbeat)
	}
	require.Empty(t, c.outbox.events)
	require.Empty(t, c.outbox.runs)
	require.Empty(t, c.outbox.bytes.buf)
	require.Zero(t, c.outbox.cargo)
}

// The log of copies holds one entry for events in a row of one datagram, and only
// as long as an acknowledgement may still ask for it, however long something is
// in flight without a break.
func TestLogOfCopiesStaysSmall(t *testing.T) {
	c, _ := newChannel(t, Config{})
	for n := range uint16(5000) {
		for range 10 {
			c.Send([]byte("x"))
		}
		h, _ := c.NextHeader(TypeEvent)
		require.NotEmpty(t, c.AppendDueEvents(nil, h.Sequence, 1000))
		if n >= 3 {
			c.Receive(Header{Type: TypeInput, Sequence: n - 3, Ack: n - 3}, nil)
			require.Equal(t, 30, c.InFlight())
		}
	}
	require.Len(t, c.outbox.runs, 8)
}

// The copies of one that is never acknowledged go with the memory of their
// datagrams.
func TestLogOfCopiesForgetsWithTheDatagrams(t *testing.T) {
	c, clock := newChannel(t, Config{})
	c.Send([]byte("x"))
	for range 500 {
		h, _ := c.NextHeader(TypeEvent)
		require.NotEmpty(t, c.AppendDueEvents(nil, h.Sequence, 1000))
		for range 60 {
			c.NextHeader(TypeInput)
		}
		clock.Advance(100 * ms)
	}
	require.Len(t, c.outbox.runs, 128, "those of 6 s")
}

// A full log first lets go of what nobody will ask for.
func TestLogOfCopiesGrowsOnlyWhenAllAreNeeded(t *testing.T) {
	c, _ := newChannel(t, Config{})
	carry := func() {
		c.Send([]byte("x"))
		h, _ := c.NextHeader(TypeEvent)
		require.NotEmpty(t, c.AppendDueEvents(nil, h.Sequence, 100))
	}
	for range 8 {
		carry()
	}
	c.Receive(Header{Type: TypeInput, Ack: 6, AckBits: 1<<6 - 1}, nil)
	require.Equal(t, 1, c.InFlight())
	carry()
	require.Len(t, c.outbox.runs, 8)
	require.EqualValues(t, 8, c.outbox.mostRuns.now)
}

// What a datagram carries in a row takes one place in the log, new or sent again,
// in one list or in two.
func TestEventsInARowAreOneRun(t *testing.T) {
	c, clock := newChannel(t, Config{})
	lists := func(sizes ...int) {
		h, _ := c.NextHeader(TypeEvent)
		for _, size := range sizes {
			require.Len(t, c.AppendDueEvents(nil, h.Sequence, size), size)
		}
	}
	for range 9 {
		c.Send(make([]byte, 10))
	}
	lists(1+5*14, 1+4*14)
	require.EqualValues(t, 1, c.outbox.endRun)
	for range 4 {
		c.Send(make([]byte, 10))
	}
	clock.Advance(100 * ms)
	lists(1+7*14, 1+6*14) // nine copies and four new ones
	require.EqualValues(t, 2, c.outbox.endRun)
	require.Equal(t, run{first: 0, seq: 1, n: 13}, *c.outbox.runs.At(1))
	clock.Advance(100 * ms)
	lists(1 + 13*14) // copies alone
	require.EqualValues(t, 3, c.outbox.endRun)
	c.Send(nil)
	lists(1 + 4)
	require.EqualValues(t, 4, c.outbox.endRun, "another datagram")
}

// A list ends before the first event that does not fit: what comes after it, be it
// new and small, waits.
func TestListEndsAtTheFirstEventThatDoesNotFit(t *testing.T) {
	c, clock := newChannel(t, Config{})
	list := func(size int) (ids []uint16) {
		h, _ := c.NextHeader(TypeEvent)
		if payload := c.AppendDueEvents(nil, h.Sequence, size); payload != nil {
			events, err := ParseEvents(nil, payload)
			require.NoError(t, err)
			for _, e := range events {
				ids = append(ids, e.ID)
			}
		}
		return ids
	}
	for _, size := range []int{10, 500, 10} {
		c.Send(make([]byte, size))
	}
	require.Equal(t, []uint16{0}, list(100))
	require.Empty(t, list(100))
	require.Equal(t, []uint16{1, 2}, list(1000))
	c.Send(nil)
	clock.Advance(100 * ms)
	require.Equal(t, []uint16{0}, list(100))
	require.Empty(t, list(100))
	require.EqualValues(t, 3, c.outbox.endRun)
	require.Equal(t, []uint16{1, 2, 3}, list(1000))
}
