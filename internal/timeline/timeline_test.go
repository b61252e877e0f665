package timeline

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ackbits/ackbits"
)

func TestTimeNeverMovesBackAndMakesNoLeaps(t *testing.T) {
	var clock ackbits.ManualClock
	clock.Set(time.Unix(1_700_000_000, 0))
	var l Timeline
	l.Start(&clock)
	for _, step := range []struct{ by, want time.Duration }{
		{time.Second, time.Second}, {-time.Hour, time.Second}, {time.Second, 2 * time.Second},
		{24 * time.Hour, 24*time.Hour + 2*time.Second}, {24*time.Hour + 1, 24*time.Hour + 2*time.Second}, {1, 24*time.Hour + 2*time.Second + 1},
	} {
		clock.Advance(step.by)
		require.Equal(t, int64(step.want), l.Read(), step.by)
		require.Equal(t, clock.Now(), l.Time(int64(step.want)))
		require.Equal(t, clock.Now().Add(time.Second), l.Time(int64(step.want+time.Second)))
	}
	var system Timeline
	system.Start(nil)
	require.WithinDuration(t, time.Now(), system.Time(system.Read()), time.Minute)
}
