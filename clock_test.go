package ackbits

import (
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

const day = 24 * time.Hour

// startedTimeline returns a timeline that was started on a clock which stands at
// noon.
func startedTimeline() (*timeline, *ManualClock) {
	clock := new(ManualClock)
	clock.Set(time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC))
	l := new(timeline)
	l.start(clock)
	return l, clock
}

func TestManualClockMovesOnlyWhenTold(t *testing.T) {
	var c ManualClock
	require.True(t, c.Now().IsZero())

	noon := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	c.Set(noon)
	require.Equal(t, noon, c.Now())
	require.Equal(t, noon, c.Now())

	c.Advance(time.Minute)
	require.Equal(t, noon.Add(time.Minute), c.Now())
	c.Advance(-time.Hour)
	require.Equal(t, noon.Add(-59*time.Minute), c.Now())
	c.Set(noon)
	require.Equal(t, noon, c.Now())
}

func TestTimelineCountsStepsForwardUpToADay(t *testing.T) {
	for name, tc := range map[string]struct {
		steps []time.Duration
		want  time.Duration
	}{
		"none":                         {nil, 0},
		"forward":                      {[]time.Duration{1, time.Millisecond}, time.Millisecond + 1},
		"back":                         {[]time.Duration{time.Second, -1}, time.Second},
		"on from where it fell":        {[]time.Duration{time.Second, -day, 7}, time.Second + 7},
		"a day is a pause":             {[]time.Duration{day}, day},
		"more than a day is a setting": {[]time.Duration{5, day + 1}, 5},
		"on from where it leapt":       {[]time.Duration{1000 * day, 7}, 7},
		"there and back":               {[]time.Duration{1000 * day, -1000 * day, 7}, 7},
	} {
		t.Run(name, func(t *testing.T) {
			l, clock := startedTimeline()
			for _, step := range tc.steps {
				clock.Advance(step)
				l.read()
			}
			require.Equal(t, int64(tc.want), l.read())
		})
	}
}

// Fault: the clock stood 1 ms before the stored time.
func TestOneStepBackDoesNotUnderflow(t *testing.T) {
	l, clock := startedTimeline()
	clock.Advance(-time.Millisecond)
	require.Zero(t, l.read())
}

func TestClockSetAfterTheFirstReadingIsNotTime(t *testing.T) {
	var clock ManualClock
	var l timeline
	l.start(&clock)
	clock.Set(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	require.Zero(t, l.read())
	clock.Set(time.Time{})
	require.Zero(t, l.read())
}

func TestInstantsAreCountedFromTheLastReading(t *testing.T) {
	l, clock := startedTimeline()
	require.Equal(t, clock.Now(), l.time(0))
	clock.Advance(time.Second)
	l.read()
	require.Equal(t, clock.Now().Add(50*time.Millisecond), l.time(int64(1050*time.Millisecond)))

	// When the clock is set, the instant moves with it: the wait stays 50 ms.
	clock.Advance(-time.Hour)
	l.read()
	require.Equal(t, clock.Now().Add(50*time.Millisecond), l.time(int64(1050*time.Millisecond)))
}

// A clock of somebody else's, which the timeline knows by its interface alone.
type foreignClock struct{ Clock }

func TestAnyClockIsRead(t *testing.T) {
	manual := new(ManualClock)
	var l timeline
	l.start(foreignClock{manual})
	manual.Advance(time.Second)
	require.Equal(t, int64(time.Second), l.read())
	require.Equal(t, manual.Now(), l.time(l.now))
}

// In a bubble the system's clock stands still.
func TestNilClockIsTheSystems(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l timeline
		l.start(nil)
		require.Equal(t, time.Now(), l.time(0))
	})
}

// Between two readings a clock may be moved often; what counts is how far in all.
func TestMovesBetweenReadingsAreOneStep(t *testing.T) {
	l, clock := startedTimeline()
	clock.Advance(2 * day)
	clock.Set(clock.Now().Add(-2*day + 5*ms))
	clock.Advance(-ms)
	require.Equal(t, int64(4*ms), l.read())
	clock.Advance(day)
	clock.Advance(1)
	require.Equal(t, int64(4*ms), l.read(), "a day and more is a clock being set")
	clock.Advance(-ms)
	clock.Advance(ms)
	require.Equal(t, int64(4*ms), l.read())
}

// P-1.1.3.
func TestSumsOfTimesEndWithTime(t *testing.T) {
	const end = math.MaxInt64
	for _, sum := range [][3]int64{
		{0, 0, 0}, {2, 3, 5}, {0, end, end}, {end, 0, end}, {end - 1, 1, end}, {end - 1, 2, end}, {1, end, end}, {end, end, end},
	} {
		require.Equal(t, sum[2], saturatingAdd(sum[0], sum[1]), "%d + %d", sum[0], sum[1])
	}
}

// I4: time moves forward, whatever the clock does.
// P-1.1.1.
func TestTimelineNeverMovesBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l, clock := startedTimeline()
		var want time.Duration
		for _, n := range rapid.SliceOf(rapid.Int64Range(-int64(2*day), int64(2*day))).Draw(t, "steps") {
			step := time.Duration(n)
			clock.Advance(step)
			if step > 0 && step <= day {
				want += step
			}
			require.Equal(t, int64(want), l.read())
			require.Equal(t, int64(want), l.read(), "the same instant again")
		}
	})
}
