package ackbits

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Room for a peak stays for its trim period and the next, whatever it was; then up to
// the modest amount, or four times what is held at most, halves once a minute.
func TestRoomForAPeakGoesSlowlyWhileTheSessionIsBusy(t *testing.T) {
	for _, tc := range []struct {
		name         string
		peak, usual  int // held once, and in each period after it
		modest, busy int // so many periods are busy
		want         map[int]int
	}{
		{"a burst", 1000, 1, 64, 99, map[int]int{0: 1000, 1: 1000, 2: 64, 20: 64, 21: 32, 40: 32, 41: 16, 61: 8}},
		{"a modest peak", 40, 1, 64, 30, map[int]int{1: 40, 20: 40, 21: 20, 29: 20, 30: 1, 31: 1}},
		{"a small one", 3, 1, 64, 99, map[int]int{1: 3, 20: 3, 21: 1}},
		{"four times what is usual", 1000, 100, 64, 99, map[int]int{1: 1000, 2: 400, 20: 400, 21: 200, 41: 100}},
		{"less than usual", 40, 50, 64, 99, map[int]int{0: 40, 1: 50, 40: 50}},
		{"nothing any more", 40, 0, 64, 1, map[int]int{0: 40, 1: 40, 2: 0}},
		{"nothing, in a busy session", 40, 0, 64, 99, map[int]int{1: 40, 20: 40, 21: 20}},
		{"nothing is modest", 40, 1, 0, 99, map[int]int{1: 40, 2: 4, 21: 2}},
	} {
		var p peak
		p.note(tc.peak)
		p.note(1) // less than before
		for period := range 70 {
			got := p.room(0, tc.modest, period < tc.busy)
			if want, ok := tc.want[period]; ok {
				require.Equal(t, want, got, "%s: %d", tc.name, period)
			}
			p.note(tc.usual)
		}
	}
}

// A peak that comes again within a minute keeps its room.
func TestRoomForAPeakThatComesAgainStays(t *testing.T) {
	var p peak
	for period := range 200 {
		if period%19 == 0 {
			p.note(50)
		}
		require.Equal(t, 50, p.room(0, 64, true))
		p.note(1)
	}
	p.room(7, 64, true)
	for range 40 {
		p.room(0, 64, true)
	}
	require.Equal(t, 12, p.room(0, 64, true))
}

func TestWhatIsHeldWhenAPeriodBeginsCounts(t *testing.T) {
	var p peak
	p.room(7, 0, false)
	require.Equal(t, 7, p.room(0, 0, false))
	require.Equal(t, 7, p.room(0, 0, false))
	require.Zero(t, p.room(0, 0, false))
}

func TestRingsKeepRoomForTwiceTheirPeak(t *testing.T) {
	for _, tc := range []struct {
		n           int
		floor, want int
	}{
		{0, 8, 0}, {1, 8, 8}, {4, 8, 8}, {5, 8, 16}, {8, 8, 16}, {9, 8, 32}, {1, 1, 2}, {256, 8, 512},
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
	for range 130 {
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
		require.Equal(t, []int{128, 64}, lengths[20:22])
		require.Equal(t, []int{32, 16, minEvents}, []int{lengths[60], lengths[61], lengths[129]})
	}
	require.Equal(t, []int{16384, 16384, 8192}, bytes[:3])
	require.Equal(t, []int{8192, 4096}, bytes[20:22])
}
