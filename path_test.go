package ackbits

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// The floor, the queue and the jitter are what they are said to be, after any samples.
func TestPathAgreesWithAModel(t *testing.T) {
	floors := []time.Duration{time.Millisecond, 50 * ms, 50*ms + 50*time.Microsecond, 50*ms + 99*time.Microsecond}
	queues := []time.Duration{0, time.Microsecond, 8700 * time.Microsecond, 8750 * time.Microsecond, 9 * ms, 35 * ms, 36 * ms, 50 * ms, 51 * ms, 300 * ms, time.Second + time.Microsecond, 7 * time.Second}
	steps := []time.Duration{0, ms, 16 * ms, 500 * ms, 2 * time.Second, 10*time.Second - 1, 10 * time.Second}
	rapid.Check(t, func(rt *rapid.T) {
		var p path
		var m modelPath
		var seen pathSeen
		var now, until time.Duration
		above := rapid.SampledFrom([]time.Duration{35 * ms, 50 * ms, time.Second}).Draw(rt, "above")
		for range rapid.IntRange(1, 15).Draw(rt, "stretches") {
			low := rapid.SampledFrom(floors).Draw(rt, "floor") + rapid.SampledFrom(queues).Draw(rt, "queue")
			wobble := rapid.SampledFrom([]time.Duration{1, 1, 1, 3 * ms, 40 * ms}).Draw(rt, "wobble")
			step := rapid.SampledFrom(steps).Draw(rt, "step")
			for range rapid.SampledFrom([]int{1, 7, 8, 9, 40, 100}).Draw(rt, "samples") {
				roundTrip := low + time.Duration(rapid.Int64Range(0, int64(wobble)-1).Draw(rt, "more"))
				now += step
				sentAt := now - roundTrip
				until = max(until, sentAt)
				m = append(m, struct{ at, roundTrip int64 }{int64(now), int64(roundTrip)})
				stood := seen.stands
				seen = m.look(above)
				changed := p.sample(int64(sentAt), int64(now), uint16(above/ms))
				require.Equal(rt, seen, pathSeen{p.floor(), p.queue(newestSamples), int64(p.jitter), p.deep, p.stands})
				require.Equal(rt, stood || seen.stands, changed, "what is said may have changed")
				for n := 1; n < newestSamples; n++ {
					require.Equal(rt, m.queue(n, seen.floor), p.queue(uint8(n)), "of %d samples", n)
				}
				require.Equal(rt, int64(until), p.passedAt)
			}
		}
	})
}
