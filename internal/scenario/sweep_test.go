package scenario

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ackbits/ackbits/simnet"
)

// Off the tick, where no acknowledgement meets a copy at one instant: every round
// trip, both sides at moments of their own.
func TestLatencyOffTheTick(t *testing.T) {
	step, length := 26*ms, 40*time.Second
	if narrowSeeds() > 2 {
		step, length = 13*ms, 2*time.Minute
	} else if testing.Short() {
		step = 97 * ms
	}
	for _, row := range []struct {
		name     string
		link     simnet.Config
		overhead time.Duration // of p99 beyond half a round trip
		bytes    float64
	}{
		{"5 %", simnet.Config{Loss: 0.05}, 20 * ms, 225},
		{"10 %", simnet.Config{Loss: 0.1}, 36 * ms, 296},
		{"30 %", simnet.Config{Loss: 0.3}, 70 * ms, 449},
		// Three copies are the least of which less than 1 % wait for more, and take
		// 275 bytes; two leave 1.3 %, four take 355.
		{"bursts", simnet.Config{Burst: bursts}, 120 * ms, 290},
	} {
		t.Run(row.name, func(t *testing.T) {
			var late, p999 time.Duration // beyond half a round trip, pooled over seeds, worst round trip
			var bytes float64
			for rtt := 20*ms + ms; rtt <= 300*ms; rtt += step {
				var pooled Outcomes
				var sum float64
				for seed := range narrowSeeds() {
					g := Game{Seed: seed + 1, Config: adaptive, Link: row.link, Traffic: load(length, 20, 64), Details: true}
					g.Link.Delay = rtt / 2
					r := g.Play()
					require.NoError(t, r.Err)
					require.Zero(t, r.Twice)
					require.Len(t, r.Latencies, r.Sent)
					pooled = append(append(pooled, r.Events[0]...), r.Events[1]...)
					sum += r.Bytes
				}
				late = max(late, pooled.Quantile(0.99)-rtt/2)
				p999 = max(p999, pooled.Quantile(0.999)-rtt/2)
				bytes = max(bytes, sum/float64(narrowSeeds()))
			}
			if *showTable {
				fmt.Printf("off the tick, %-6s p99 RTT/2 + %v (of %v), p99.9 + %v, %.0f bytes (of %.0f)\n", row.name, late, row.overhead, p999, bytes, row.bytes)
			}
			assert.LessOrEqual(t, late, row.overhead, "p99 beyond half a round trip")
			assert.LessOrEqual(t, bytes, row.bytes, "bytes")
		})
	}
}
