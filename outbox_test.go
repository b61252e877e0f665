package ackbits

import (
	"bytes"
	"testing"
	"time"

	"github.com/ackbits/ackbits/internal/arena"
	"github.com/ackbits/ackbits/internal/trim"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// An arena begins with room for an event and a byte more, and doubles.
func TestArenaGrowsByDoubling(t *testing.T) {
	for size, want := range map[int]int{0: 0, 1: 256, 255: 256, 256: 512, 257: 512, 1177: 2048} {
		var o outbox
		o.add(make([]byte, size))
		require.Equal(t, want, o.bytes.Size(), "%d bytes", size)
	}

	var o outbox
	o.add(make([]byte, 100))
	o.add(make([]byte, 150))
	o.get(0).state, o.fresh = isDelivered, 1
	o.advance()
	o.add(make([]byte, 100)) // there would be room if the second one moved
	require.Equal(t, 512, o.bytes.Size())
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
					*o.get(o.base) = pending{start: o.get(o.base).start, size: o.get(o.base).size, state: isDelivered}
					o.fresh = o.base + 1
					o.undelivered--
					o.advance()
					live = live[1:]
				}
			case 5:
				o.trim(false)
			}
			require.Equal(t, int64(len(live)), o.end-o.base)
			require.Equal(t, len(live), o.undelivered)
			for i, want := range live {
				e := o.get(o.base + int64(i))
				require.Equal(t, string(want), string(o.data(e)))
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
	require.Equal(t, 2048, o.bytes.Size(), "2,000 wait")
	for n := range o.end {
		o.get(n).state = isDelivered
	}
	o.fresh = o.end
	o.advance()
	o.trim(false)
	require.Len(t, o.events, 32, "20 waited a moment ago")
	o.trim(false)
	require.Len(t, o.events, 32, "and in the period before")
	o.trim(false)
	require.Empty(t, o.events)
	require.Zero(t, o.bytes.Size())
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
	require.Greater(t, min(len(c.sender.outbox.events)/minEvents, c.sender.outbox.bytes.Size()/arena.MinSize, len(c.sender.outbox.log.runs)/minEvents), 1)
	c.Receive(Header{Type: TypeInput, Ack: 18, AckBits: 1<<18 - 1}, nil)
	require.Equal(t, 1, c.InFlight())
	c.sender.releaseRuns()
	for period := range 22 { // until 20 was halved
		require.Greater(t, len(c.sender.outbox.events), 16, period)
		clock.Advance(time.Duration(trim.Period))
		c.NextHeader(TypeInput)
	}
	for range 70 {
		clock.Advance(time.Duration(trim.Period))
		c.NextHeader(TypeInput)
	}
	require.Equal(t, arena.MinSize, c.sender.outbox.bytes.Size())
	require.Len(t, c.sender.outbox.events, minEvents)
	require.Len(t, c.sender.outbox.log.runs, minEvents)
	c.Receive(Header{Type: TypeInput, Sequence: 1, Ack: 19}, nil)
	require.Zero(t, c.InFlight())
	for range 4 {
		clock.Advance(time.Duration(trim.Period))
		c.NextHeader(TypeHeartbeat)
	}
	require.Empty(t, c.sender.outbox.events)
	require.Empty(t, c.sender.outbox.log.runs)
	require.Zero(t, c.sender.outbox.bytes.Size())
	require.Zero(t, c.sender.outbox.log.index)
}
