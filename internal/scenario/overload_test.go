package scenario

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/ackbits/ackbits"
	"github.com/ackbits/ackbits/simnet"
)

// narrowed draws a link that may be the limit, and what crosses it.
func narrowed(t *rapid.T) Game {
	g := wild(t)
	g.Config.EventRate, g.Config.StallTimeout = 0, 0
	rate := rapid.IntRange(15_000, 400_000).Draw(t, "rate")
	limit := func(link *simnet.Config) {
		link.Rate, link.Overhead = rate, udpIP
		link.Queue = max(rate*rapid.IntRange(20, 1000).Draw(t, "queue in ms")/1000, 2500)
		link.Loss = min(link.Loss, 0.3)
	}
	limit(&g.Link)
	for i := range g.Changes {
		limit(&g.Changes[i].Link)
	}
	g.Traffic.StateSize = rapid.IntRange(0, 200).Draw(t, "small state")
	g.Traffic.EventRate, g.Traffic.Burst = rapid.IntRange(1, 60).Draw(t, "fewer events"), 0
	g.Traffic.Once, g.Traffic.OnceAt = rapid.IntRange(0, 250).Draw(t, "at once"), time.Second
	g.Traffic.Phases = true
	if rapid.Bool().Draw(t, "others") {
		g.Others = Others{rate / 8, 500 * ms}
	}
	return g
}

// Over any narrow link everything arrives once, soon after the last event, and no
// session ends that the fixed rule keeps.
func TestOverloadEndsNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := narrowed(t)
		r := g.Play()
		require.Zero(t, r.Twice)
		if r.Err == nil {
			require.Len(t, r.Latencies, r.Sent)
			return
		}
		g.Config.Adaptive, g.Config.Bundle = false, false
		old := g.Play()
		require.Error(t, old.Err, "the fixed rule keeps what Adaptive ended with %v", r.Err)
	})
}

// While a queue stands, events take at most 1.3 times the copies that the loss alone
// demands, the overshoot of the start included.
func TestOverloadWastesLittle(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		loss := float64(rapid.IntRange(0, 20).Draw(t, "loss")) / 100
		rate := rapid.IntRange(60_000, 500_000).Draw(t, "rate")
		link := narrow(rate, rate*rapid.IntRange(150, 1000).Draw(t, "queue in ms")/1000, loss)
		link.Delay = time.Duration(rapid.IntRange(5, 100).Draw(t, "delay")) * ms
		link.Jitter = time.Duration(rapid.IntRange(0, 10).Draw(t, "jitter")) * ms
		g := Game{
			Seed: rapid.Uint64().Draw(t, "seed"), Config: copiesOf(4096), Link: link,
			Traffic: once(rapid.IntRange(800, 1500).Draw(t, "events"), rapid.IntRange(600, 1170).Draw(t, "size")), Details: true,
		}
		r := g.Play()
		require.NoError(t, r.Err)
		require.Len(t, r.Latencies, r.Sent)
		require.LessOrEqual(t, r.Events[0].Copies(), 1.3/(1-loss), "loss %v, rate %d", loss, rate)
	})
}

// Jitter and a way that becomes longer are no queue, and waste nothing: copies go up
// by what reordering took for loss before there was a window.
func TestJitterIsNoQueue(t *testing.T) {
	const s = time.Second
	way := func(delay, jitter time.Duration) simnet.Config { return simnet.Config{Delay: delay, Jitter: jitter} }
	lossy := func(jitter time.Duration) simnet.Config {
		return simnet.Config{Delay: 30 * ms, Jitter: jitter, Loss: 0.05}
	}
	for name, row := range map[string]struct {
		link    simnet.Config
		changes []Change
		copies  float64
		late    time.Duration // p99 beyond what the way takes
	}{
		"10 ms":            {way(30*ms, 10*ms), nil, 1.02, 0},
		"40 ms":            {way(30*ms, 40*ms), nil, 1.15, 0},
		"100 ms":           {way(30*ms, 100*ms), nil, 1.25, 0},
		"40 ms, 5 % lost":  {lossy(40 * ms), nil, 2.2, 15 * ms},
		"100 ms, 5 % lost": {lossy(100 * ms), nil, 2.2, 15 * ms},
		"60 to 200 to 60":  {way(30*ms, 0), []Change{{20 * s, way(100*ms, 0)}, {40 * s, way(30*ms, 0)}}, 1.02, 0},
	} {
		t.Run(name, func(t *testing.T) {
			for seed := range narrowSeeds() {
				g := Game{Seed: seed + 1, Config: copiesOf(4096), Link: row.link, Changes: row.changes, Traffic: load(60*s, 20, 64)}
				r := g.Play()
				require.NoError(t, r.Err)
				require.LessOrEqual(t, r.Copies, row.copies, "copies")
				longest := row.link.Delay
				for _, c := range row.changes {
					longest = max(longest, c.Link.Delay)
				}
				require.LessOrEqual(t, r.Quantile(0.99), longest+row.link.Jitter+row.late)
			}
		})
	}
}

// A disturbance that ends leaves no trace ten seconds later.
func TestDisturbancesLeaveNoTrace(t *testing.T) {
	const s = time.Second
	clean := simnet.Config{Delay: 30 * ms}
	lossy, dead := clean, clean
	lossy.Loss = 0.2
	dead.Loss = 1
	for name, change := range map[string][]Change{
		"a squeeze":    {{10 * s, narrow(12_000, 4_800, 0)}, {20 * s, clean}},
		"an outage":    {{10 * s, dead}, {12 * s, clean}},
		"20 % of loss": {{10 * s, lossy}, {20 * s, clean}},
	} {
		t.Run(name, func(t *testing.T) {
			for seed := range narrowSeeds() {
				g := Game{Seed: seed + 1, Config: copiesOf(0), Link: clean, Traffic: load(60*s, 20, 64), Changes: change, Details: true}
				r := g.Play()
				require.NoError(t, r.Err)
				part := func(from, to time.Duration) (both Outcomes) {
					return append(r.Events[0].Between(from, to), r.Events[1].Between(from, to)...)
				}
				end := change[1].At
				before, after := part(2*s, 9*s), part(end+10*s, end+30*s)
				require.LessOrEqual(t, after.Quantile(0.5), before.Quantile(0.5)+ms)
				require.LessOrEqual(t, after.Quantile(0.99), before.Quantile(0.99)+ms)
				require.LessOrEqual(t, after.Copies(), before.Copies()+0.02, "seed %d", seed+1)
			}
		})
	}
}

// Where no queue can stand, the fixed rule is the protocol's: as long as an event is
// not delivered, it goes again exactly 100 ms after its last copy, however
// long the peer waits with its acknowledgements.
func TestFixedRuleKeepsItsDelayWhereNoQueueStands(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		traffic := load(30*time.Second, rapid.IntRange(1, 30).Draw(t, "events a second"), 64)
		traffic.Phases = false
		traffic.StateA = rapid.SampledFrom([]int{0, 20, 60}).Draw(t, "state")
		traffic.StateB = traffic.StateA
		link := simnet.Config{
			Delay: time.Duration(rapid.IntRange(0, 150).Draw(t, "delay")) * ms,
			Loss:  float64(rapid.IntRange(0, 10).Draw(t, "loss")) / 100,
		}
		g := Game{Seed: rapid.Uint64().Draw(t, "seed"), Link: link, Traffic: traffic}
		var last [2]map[int]time.Duration
		last[0], last[1] = map[int]time.Duration{}, map[int]time.Duration{}
		var list []ackbits.Event
		g.Observe = func(at time.Duration, d simnet.Direction, what simnet.What, datagram []byte) {
			if what != simnet.Sent {
				return
			}
			list = Carried(list[:0], datagram)
			for _, e := range list {
				before, again := last[d][Number(e)]
				if again && at-before != 100*ms {
					t.Fatalf("%v: event %d goes again after %v at %v", d, Number(e), at-before, at)
				}
				last[d][Number(e)] = at
			}
		}
		require.NoError(t, g.Play().Err)
	})
}
