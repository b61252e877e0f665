package trim

import (
	"testing"

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
		var p Peak
		p.Note(tc.peak)
		p.Note(1) // less than before
		for period := range 70 {
			got := p.Room(0, tc.modest, period < tc.busy)
			if want, ok := tc.want[period]; ok {
				require.Equal(t, want, got, "%s: %d", tc.name, period)
			}
			p.Note(tc.usual)
		}
	}
}

// A peak that comes again within a minute keeps its room.
func TestRoomForAPeakThatComesAgainStays(t *testing.T) {
	var p Peak
	for period := range 200 {
		if period%19 == 0 {
			p.Note(50)
		}
		require.Equal(t, 50, p.Room(0, 64, true))
		p.Note(1)
	}
	p.Room(7, 64, true)
	for range 40 {
		p.Room(0, 64, true)
	}
	require.Equal(t, 12, p.Room(0, 64, true))
}

func TestWhatIsHeldWhenAPeriodBeginsCounts(t *testing.T) {
	var p Peak
	p.Room(7, 0, false)
	require.Equal(t, 7, p.Room(0, 0, false))
	require.Equal(t, 7, p.Room(0, 0, false))
	require.Zero(t, p.Room(0, 0, false))
}

func TestRingsKeepRoomForTwiceTheirPeak(t *testing.T) {
	for _, tc := range []struct {
		n           int
		floor, want int
	}{
		{0, 8, 0}, {1, 8, 8}, {4, 8, 8}, {5, 8, 16}, {8, 8, 16}, {9, 8, 32}, {1, 1, 2}, {256, 8, 512},
	} {
		require.Equal(t, tc.want, Length(tc.n, tc.floor), tc.n)
	}
}
