package latency_test

import (
	"testing"
	"time"

	"github.com/ackbits/ackbits/examples/arena/latency"
	"github.com/stretchr/testify/require"
)

func TestQuantiles(t *testing.T) {
	var h latency.Histogram
	require.Zero(t, h.Quantile(0.99))
	for i := range 1000 {
		h.Add(time.Duration(i+1) * time.Millisecond)
	}
	for _, q := range []float64{0.001, 0.1, 0.5, 0.9, 0.99, 1} {
		want := time.Duration(q * 1000 * float64(time.Millisecond))
		require.InEpsilon(t, want, h.Quantile(q), 0.07, "quantile %v", q)
	}
	var both latency.Histogram
	both.Merge(&h)
	both.Merge(&h)
	require.EqualValues(t, 2000, both.Count())
	require.Equal(t, h.Quantile(0.5), both.Quantile(0.5))
}

// Nothing that a clock can show is out of range.
func TestExtremes(t *testing.T) {
	for _, d := range []time.Duration{-time.Hour, 0, time.Nanosecond, 15 * time.Microsecond, 16 * time.Microsecond, 1 << 62} {
		var h latency.Histogram
		h.Add(d)
		require.Positive(t, h.Quantile(1))
	}
}
