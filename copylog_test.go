package ackbits

import (
	"testing"

	"github.com/stretchr/testify/require"
)

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
	require.Len(t, c.sender.outbox.log.runs, 8)
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
	require.Len(t, c.sender.outbox.log.runs, 128, "those of 6 s")
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
	require.Len(t, c.sender.outbox.log.runs, 8)
	require.EqualValues(t, 8, c.sender.outbox.log.most.Room(0, 0, false))
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
	require.EqualValues(t, 1, c.sender.outbox.log.end)
	for range 4 {
		c.Send(make([]byte, 10))
	}
	clock.Advance(100 * ms)
	lists(1+7*14, 1+6*14) // nine copies and four new ones
	require.EqualValues(t, 2, c.sender.outbox.log.end)
	require.Equal(t, run{first: 0, seq: 1, n: 13}, *c.sender.outbox.log.runs.At(1))
	clock.Advance(100 * ms)
	lists(1 + 13*14) // copies alone
	require.EqualValues(t, 3, c.sender.outbox.log.end)
	c.Send(nil)
	lists(1 + 4)
	require.EqualValues(t, 4, c.sender.outbox.log.end, "another datagram")
}
