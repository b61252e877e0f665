package ackbits

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Room for a peak stays for its trim period and the next, whatever it was; then up to
// the modest amount, or four times what is held at most, fades.
func TestPeakFadesWhileThereIsSomethingToDo(t *testing.T) {
	for _, tc := range []struct {
		name          string
		peak, usual   int // held once, and in each period after it
		modest, busyN int // so many periods are busy
		want          []int
	}{
		{"a burst", 1000, 1, 64, 9, []int{1000, 1000, 64, 62, 60, 58, 56, 54, 52, 1}},
		{"a modest peak", 40, 1, 64, 9, []int{40, 40, 38, 36, 34, 32, 31, 30, 29, 1}},
		{"a small peak", 4, 1, 64, 9, []int{4, 4, 3, 2, 1, 1, 1, 1, 1, 1}},
		{"four times what is usual", 1000, 100, 64, 5, []int{1000, 1000, 400, 387, 374, 100}},
		{"a peak that is passed", 40, 50, 64, 5, []int{40, 50, 50, 50, 50, 50}},
		{"nothing to do", 40, 0, 64, 1, []int{40, 40, 0, 0}},
		{"nothing modest", 40, 1, 0, 9, []int{40, 40, 4, 3, 2, 1, 1}},
	} {
		var p peak
		p.note(tc.peak)
		p.note(1) // less than before
		for period, want := range tc.want {
			require.Equal(t, want, p.fade(0, tc.modest, period < tc.busyN), "%s: %d", tc.name, period)
			p.note(tc.usual)
		}
	}
}

func TestPeakOfTwoPeriodsTellsWhetherThereIsSomethingToDo(t *testing.T) {
	var p peak
	require.False(t, p.any())
	p.note(1)
	require.True(t, p.any())
	p.pass(0)
	require.True(t, p.any())
	p.pass(2)
	require.True(t, p.any(), "held already when the period began")
	p.pass(0)
	require.True(t, p.any())
	p.pass(0)
	require.False(t, p.any())
}

func TestRingsKeepRoomForTwiceTheirPeak(t *testing.T) {
	for _, tc := range []struct {
		n           int
		floor, want int
	}{
		{0, 8, 8}, {0, 1, 1}, {1, 8, 8}, {4, 8, 8}, {5, 8, 16}, {8, 8, 16}, {9, 8, 32}, {1, 1, 2}, {256, 8, 512},
	} {
		require.Equal(t, tc.want, roomFor(tc.n, tc.floor), tc.n)
	}
}

// What a burst leaves behind for a while in a session that is busy, and in the end.
func TestRoomAfterABurst(t *testing.T) {
	c, clock := newChannel(t, Config{Backlog: 1000})
	seq := uint16(0)
	exchange := func(n int) {
		for range n {
			c.Send(make([]byte, 60))
		}
		for c.EventsDue(1000) {
			h, _ := c.NextHeader(TypeEvent)
			c.AppendDueEvents(nil, h.Sequence, 100) // one each
			seq = h.Sequence
		}
		for back := uint16(0); back <= seq && back < 300; back += 33 {
			c.Receive(Header{Type: TypeInput, Sequence: c.received.Ack() + 1, Ack: seq - back, AckBits: 1<<32 - 1}, nil)
		}
		require.Zero(t, c.InFlight())
	}
	exchange(250)
	var events, bytes, runs []int
	for range 80 {
		clock.Advance(time.Duration(trimPeriod))
		exchange(1)
		events = append(events, len(c.outbox.events))
		bytes = append(bytes, len(c.outbox.bytes.buf))
		runs = append(runs, len(c.outbox.runs))
	}
	require.Len(t, c.sent.stamps, minRememberedSent)
	require.Len(t, c.outbox.cargo.runs, minRememberedSent, "no more than the log remembers")
	for _, lengths := range [][]int{events, runs} {
		require.Equal(t, []int{256, 256, 128}, lengths[:3])
		require.Equal(t, []int{128, 64}, lengths[17:19])
		require.Equal(t, []int{8, 4, minEvents, minEvents}, lengths[47:51])
	}
	require.Equal(t, []int{16384, 16384, 8192}, bytes[:3])
	require.Equal(t, []int{8192, 4096}, bytes[23:25])
}
