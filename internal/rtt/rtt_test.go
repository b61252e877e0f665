package rtt

import (
	"testing"

	"github.com/stretchr/testify/require"
)

const ms = 1_000_000

// The vectors are computed by hand from RFC 6298, 2.2 and 2.3, in nanoseconds.
// P-7.1.2.
func TestEstimatorFollowsRFC6298(t *testing.T) {
	var e Estimator
	require.False(t, e.Sampled())
	require.Zero(t, e.Smoothed())
	require.Zero(t, e.Variation())
	for _, step := range []struct{ sample, smoothed, variation int64 }{
		{100 * ms, 100_000_000, 50_000_000},
		{120 * ms, 102_500_000, 42_500_000},
		{80 * ms, 99_687_500, 37_500_000},
		{300 * ms, 124_726_562, 78_203_125},
	} {
		e.Add(step.sample)
		require.True(t, e.Sampled())
		require.Equal(t, step.smoothed, e.Smoothed(), "after %d", step.sample)
		require.Equal(t, step.variation, e.Variation(), "after %d", step.sample)
	}
}

func TestFirstSampleOfZeroIsASample(t *testing.T) {
	var e Estimator
	e.Add(0)
	require.True(t, e.Sampled())
	e.Add(80 * ms)
	require.EqualValues(t, 10*ms, e.Smoothed(), "an eighth of the way, not a first sample")
	require.EqualValues(t, 20*ms, e.Variation())
}

// P-7.1.2.
func TestNegativeSampleCountsAsZero(t *testing.T) {
	var negative, zero Estimator
	for _, s := range []int64{40 * ms, -5} {
		negative.Add(s)
		zero.Add(max(s, 0))
	}
	require.Equal(t, zero, negative)
}
