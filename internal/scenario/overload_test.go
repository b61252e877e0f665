package scenario

import (
	"fmt"
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
		g.Others = Others{Burst: rate / 8, Period: 500 * ms}
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

// A link that loses much by itself is filled all the same: that half as much in flight
// loses as much shows that the window is not the cause.
func TestLossOfTheLinkHoldsNothingBack(t *testing.T) {
	const seeds = 8
	var took time.Duration
	for seed := range uint64(seeds) {
		link := narrow(300_000, 45_000, 0.16)
		link.Delay = 94 * ms
		g := Game{Seed: seed + 1, Config: copiesOf(4096), Link: link, Traffic: once(1226, 1026), Details: true}
		r := g.Play()
		require.NoError(t, r.Err)
		require.Less(t, r.Events[0].Copies(), 1.3/(1-0.16))
		took += r.Events[0].Done() / seeds
		require.Less(t, r.Events[0].Done(), 25*time.Second, "seed %d", seed+1)
	}
	require.Less(t, took, 15*time.Second, "1.26 MB, of which the link carries 0.3 a second")
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

// Jitter does not hold a large amount back, though it looks like a queue: without what
// the window allows for it, 100 ms cost 13.9 s.
func TestJitterHoldsNothingBack(t *testing.T) {
	for jitter, most := range map[time.Duration]time.Duration{5 * ms: 2200 * ms, 20 * ms: 2600 * ms, 100 * ms: 8 * time.Second} {
		var mean figures
		for seed := range uint64(4) {
			r := row{game: Game{Config: copiesOf(4096), Link: simnet.Config{Delay: 30 * ms, Jitter: jitter}, Traffic: once(1024, 1177)}}
			f, result := r.measure(seed + 1)
			require.NoError(t, result.Err)
			mean.add(f, 4)
		}
		require.LessOrEqual(t, mean.took, most, "%v of jitter", jitter)
		require.LessOrEqual(t, mean.copies, 1.35, "%v of jitter", jitter)
	}
}

// A disturbance that ends leaves no trace ten seconds later.
func TestDisturbancesLeaveNoTrace(t *testing.T) {
	const s = time.Second
	clean := simnet.Config{Delay: 30 * ms}
	lossy, dead := clean, clean
	lossy.Loss = 0.2
	dead.Loss = 1
	// Twice what the link carries, so that its queue of half a second stays full.
	flood := Others{Burst: 24_000, Period: 200 * ms, During: simnet.Window{From: 10 * s, To: 20 * s}}
	for name, row := range map[string]struct {
		link    simnet.Config
		changes []Change
		others  Others
		end     time.Duration
	}{
		"a squeeze":    {link: clean, changes: []Change{{10 * s, narrow(12_000, 4_800, 0)}, {20 * s, clean}}, end: 20 * s},
		"a flood":      {link: narrow(60_000, 30_000, 0), others: flood, end: 20 * s},
		"an outage":    {link: clean, changes: []Change{{10 * s, dead}, {12 * s, clean}}, end: 12 * s},
		"20 % of loss": {link: clean, changes: []Change{{10 * s, lossy}, {20 * s, clean}}, end: 20 * s},
	} {
		t.Run(name, func(t *testing.T) {
			for seed := range narrowSeeds() {
				g := Game{Seed: seed + 1, Config: copiesOf(0), Link: row.link, Traffic: load(60*s, 20, 64), Changes: row.changes, Others: row.others, Details: true}
				r := g.Play()
				require.NoError(t, r.Err)
				part := func(from, to time.Duration) (both Outcomes) {
					return append(r.Events[0].Between(from, to), r.Events[1].Between(from, to)...)
				}
				before, during, after := part(2*s, 9*s), part(row.end-s, row.end), part(row.end+10*s, row.end+30*s)
				require.Greater(t, during.Quantile(0.99), before.Quantile(0.99)+10*ms, "it disturbs")
				require.LessOrEqual(t, after.Quantile(0.5), before.Quantile(0.5)+ms)
				require.LessOrEqual(t, after.Quantile(0.99), before.Quantile(0.99)+ms)
				require.LessOrEqual(t, after.Copies(), before.Copies()+0.02, "seed %d", seed+1)
				if *showTable {
					fmt.Printf("%-13s p99 %v, %v, %v; copies %.2f, %.2f, %.2f\n", name, before.Quantile(0.99), during.Quantile(0.99), after.Quantile(0.99),
						before.Copies(), during.Copies(), after.Copies())
				}
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
