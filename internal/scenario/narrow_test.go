package scenario

import (
	"flag"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/ackbits/ackbits"
	"github.com/ackbits/ackbits/simnet"
)

var showTable = flag.Bool("table", false, "print what each row of the narrow links measured")

// narrowSeeds is how many runs stand behind each row of the narrow links.
func narrowSeeds() uint64 {
	switch {
	case os.Getenv("ACKBITS_LIMITS") != "":
		return 8
	case testing.Short():
		return 1
	}
	return 2
}

// figures are what a row measures, or the most that it may.
type figures struct {
	took      time.Duration // until the last of the events that came at once was delivered
	p99, p999 time.Duration // of events
	copies    float64
	stateP99  time.Duration
	stateLoss float64
}

func (f figures) String() string {
	round := func(d time.Duration) time.Duration { return d.Round(ms) }
	return fmt.Sprintf("took %6v p99 %6v p99.9 %6v copies %6.2f state p99 %6v loss %5.1f %%",
		round(f.took), round(f.p99), round(f.p999), f.copies, round(f.stateP99), 100*f.stateLoss)
}

// row is one link and load, and what is measured of it.
type row struct {
	name     string
	game     Game
	from, to time.Duration // of what was sent then; to 0: until the end
	most     figures       // the most that the mean of all seeds may be; 0: no limit
}

// measure plays a row.
func (r row) measure(seed uint64) (figures, Result) {
	g := r.game
	g.Seed, g.Details = seed, true
	result := g.Play()
	from, to := r.from, r.to
	if to == 0 {
		to = g.Traffic.Duration
	}
	var f figures
	events := append(result.Events[0].Between(from, to), result.Events[1].Between(from, to)...)
	states := append(result.States[0].Between(from, to), result.States[1].Between(from, to)...)
	if g.Traffic.Once > 0 { // of the client's alone, while they are in flight
		events = result.Events[0]
		if done := events.Done(); done > 0 {
			f.took = done - events[0].At
			to = done
		} else {
			f.took = time.Hour
		}
		states = result.States[0].Between(g.Traffic.OnceAt, to)
	}
	f.p99, f.p999, f.copies = events.Quantile(0.99), events.Quantile(0.999), events.Copies()
	f.stateP99, f.stateLoss = states.Quantile(0.99), states.Loss()
	return f, result
}

func narrow(rate, queue int, loss float64) simnet.Config {
	return simnet.Config{Delay: 30 * ms, Rate: rate, Queue: queue, Loss: loss, Overhead: udpIP}
}

func load(d time.Duration, rate, size int) Traffic {
	t := W1
	t.Duration, t.EventRate, t.EventSize, t.Phases = d, rate, size, true
	return t
}

func once(n, size int) Traffic {
	t := load(20*time.Second, 0, size)
	t.Once, t.OnceAt = n, time.Second
	return t
}

func copiesOf(n int) ackbits.Config {
	return ackbits.Config{Adaptive: true, Bundle: true, Backlog: n}
}

// fixedRows are links that are narrow for the fixed rule.
func fixedRows(traffic Traffic) (rows []row) {
	limits := figures{copies: 1.6, p99: 400 * ms, stateP99: 250 * ms, stateLoss: 0.05}
	for _, rate := range []int{11_600, 12_000} {
		for _, queue := range []int{rate / 10, rate * 4 / 10} {
			rows = append(rows, row{name: fmt.Sprintf("fixed rule, W1, %d B/s, queue of %d", rate, queue),
				game: Game{Config: ackbits.Config{Backlog: 4096}, Link: narrow(rate, queue, 0), Traffic: traffic}, most: limits})
		}
	}
	return rows
}

// narrowRows are the links where the library can do harm.
func narrowRows() []row {
	const s = time.Second
	patient := copiesOf(4096)
	w1 := load(120*s, 20, 64)
	busy := load(60*s, 200, 64)
	policed := Game{Config: patient, Link: simnet.Config{Delay: 30 * ms, Loss: 0.1, Overhead: udpIP}, Traffic: busy, Police: Policer{37_500, 5_000}}
	outage := func(d time.Duration) simnet.Config {
		link := simnet.Config{Delay: 30 * ms}
		for at := 5 * s; at < 120*s; at += 5 * s {
			link.Blackouts = append(link.Blackouts, simnet.Window{From: at, To: at + d})
		}
		return link
	}
	withheld := Game{Config: patient, Link: simnet.Config{Delay: 30 * ms}, Traffic: load(60*s, 20, 64), Withhold: simnet.Window{From: 10 * s, To: 20 * s}}
	squeezed := Game{Config: patient, Link: narrow(30_000, 6_000, 0.005), Traffic: load(60*s, 200, 64),
		Changes: []Change{{10 * s, narrow(12_000, 2_400, 0.005)}, {20 * s, narrow(30_000, 6_000, 0.005)}}}
	slowed := squeezed
	slowed.Config = copiesOf(0)
	return append(fixedRows(w1), []row{
		{name: "280 x 1.1 KB, 2 Mbit/s, 32 KiB, 1 %", game: Game{Config: patient, Link: narrow(250_000, 32<<10, 0.01), Traffic: once(280, 1100)},
			most: figures{took: 1500 * ms, copies: 1.1, stateP99: 120 * ms}},
		{name: "256 x 1177, 1 Mbit/s, queue 1 s", game: Game{Config: patient, Link: narrow(125_000, 125_000, 0), Traffic: once(256, 1177)},
			most: figures{took: 2900 * ms, copies: 1.05, stateP99: 140 * ms}},
		{name: "256 x 1177, 1 Mbit/s, queue 0.1 s", game: Game{Config: patient, Link: narrow(125_000, 12_500, 0), Traffic: once(256, 1177)},
			most: figures{took: 2900 * ms, copies: 1.05, stateP99: 110 * ms}},
		{name: "256 x 1177, 1 Mbit/s, queue 20 ms", game: Game{Config: patient, Link: narrow(125_000, 2_500, 0), Traffic: once(256, 1177)},
			most: figures{took: 4600 * ms, copies: 1.4, stateLoss: 0.08}},
		{name: "256 x 1177, 10 Mbit/s", game: Game{Config: patient, Link: narrow(1_250_000, 0, 0), Traffic: once(256, 1177)},
			most: figures{took: 460 * ms, copies: 1.02}},
		{name: "256 x 1177, no limit", game: Game{Config: patient, Link: narrow(0, 0, 0), Traffic: once(256, 1177)},
			most: figures{took: 360 * ms, copies: 1.02}},
		{name: "256 x 1177, 2 Mbit/s, half taken", game: Game{Config: patient, Link: narrow(250_000, 32<<10, 0), Traffic: once(256, 1177),
			Others: Others{Burst: 32_400, Period: 260 * ms}}, most: figures{took: 4 * s, copies: 1.1}},
		{name: "200/s, 300 kbit/s, queue 1 s, 10 %", game: Game{Config: patient, Link: narrow(37_500, 37_500, 0.1), Traffic: busy},
			most: figures{p99: 400 * ms, copies: 1.8, stateP99: 270 * ms}},
		{name: "200/s, 300 kbit/s policer, 10 %", game: policed, most: figures{p99: 500 * ms, copies: 2, stateLoss: 0.16}},
		{name: "W1, 90 kbit/s, queue 1 s, 10 %", game: Game{Config: patient, Link: narrow(11_250, 11_250, 0.1), Traffic: w1},
			most: figures{p99: 380 * ms, copies: 1.7, stateP99: 200 * ms, stateLoss: 0.11}},
		{name: "200/s, 24 kB/s, 4.8 KB, 0.5 %", game: Game{Config: patient, Link: narrow(24_000, 4_800, 0.005), Traffic: load(120*s, 200, 64)},
			most: figures{p99: 180 * ms, copies: 1.2}},
		{name: "200/s, 30 kB/s squeezed to 12: before", game: squeezed, from: 5 * s, to: 9500 * ms},
		{name: "200/s, 30 kB/s squeezed to 12: 10 s after", game: slowed, from: 30 * s, to: 60 * s,
			most: figures{p99: 160 * ms, copies: 1.2, stateP99: 120 * ms}},
		// With a backlog of thousands the squeeze leaves 100 KB that wait, and 7 kB/s
		// to spare: 14 seconds.
		{name: "the same with a backlog: 15 s after", game: squeezed, from: 35 * s, to: 60 * s,
			most: figures{p99: 160 * ms, copies: 1.2, stateP99: 120 * ms}},
		{name: "outages of 100 ms each 5 s", game: Game{Config: patient, Link: outage(100 * ms), Traffic: w1}, most: figures{p999: 200 * ms}},
		{name: "outages of 300 ms each 5 s", game: Game{Config: patient, Link: outage(300 * ms), Traffic: w1}, most: figures{p999: 355 * ms}},
		{name: "outages of 800 ms each 5 s", game: Game{Config: patient, Link: outage(800 * ms), Traffic: w1}, most: figures{p999: 855 * ms}},
		{name: "state withheld for 10 s: while", game: withheld, from: 10 * s, to: 20 * s, most: figures{copies: 1.1}},
		{name: "state withheld for 10 s: after", game: withheld, from: 20 * s, to: 60 * s, most: figures{copies: 1.1, p99: 49 * ms}},
	}...)
}

// worse takes the worse of each figure.
func (f *figures) worse(o figures) {
	f.took, f.p99, f.p999 = max(f.took, o.took), max(f.p99, o.p99), max(f.p999, o.p999)
	f.copies, f.stateP99, f.stateLoss = max(f.copies, o.copies), max(f.stateP99, o.stateP99), max(f.stateLoss, o.stateLoss)
}

// add adds one of n measurements to their mean.
func (f *figures) add(o figures, n uint64) {
	f.took += o.took / time.Duration(n)
	f.p99 += o.p99 / time.Duration(n)
	f.p999 += o.p999 / time.Duration(n)
	f.copies += o.copies / float64(n)
	f.stateP99 += o.stateP99 / time.Duration(n)
	f.stateLoss += o.stateLoss / float64(n)
}

// loosened is what the worst of all seeds may be: chance has its part in it.
func (f figures) loosened() figures {
	const quarter = 4
	f.took += f.took / quarter
	f.p99 += f.p99 / quarter
	f.p999 += f.p999 / quarter
	if f.copies > 0 {
		f.copies += max(f.copies-1, 0.2) * 2 / 3
	}
	f.stateP99 += f.stateP99 / quarter
	f.stateLoss *= 2
	return f
}

// within checks figures against the most that they may be.
func (f figures) within(t assert.TestingT, most figures) {
	check := func(what string, got, limit time.Duration) {
		if limit > 0 {
			assert.LessOrEqual(t, got, limit, what)
		}
	}
	check("took", f.took, most.took)
	check("p99", f.p99, most.p99)
	check("p99.9", f.p999, most.p999)
	check("state p99", f.stateP99, most.stateP99)
	if most.copies > 0 {
		assert.LessOrEqual(t, f.copies, most.copies, "copies")
	}
	if most.stateLoss > 0 {
		assert.LessOrEqual(t, f.stateLoss, most.stateLoss, "state loss")
	}
}

// When the link is the limit: no collapse, no burst, no starvation.
func TestNarrowLinks(t *testing.T) {
	for _, r := range narrowRows() {
		t.Run(r.name, func(t *testing.T) {
			var worst, mean figures
			n := narrowSeeds()
			for seed := range n {
				f, result := r.measure(seed + 1)
				worst.worse(f)
				mean.add(f, n)
				assert.NoError(t, result.Err, "seed %d", seed+1)
			}
			if *showTable {
				fmt.Printf("%-44s mean  %v\n", r.name, mean)
				fmt.Printf("%-44s worst %v\n", "", worst)
				fmt.Printf("%-44s most  %v\n", "", r.most)
			}
			if n > 2 { // one seed is not a mean
				mean.within(t, r.most)
			}
			worst.within(t, r.most.loosened())
		})
	}
}
