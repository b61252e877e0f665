package transfer

import (
	"fmt"
	"io"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ackbits/ackbits"
	"github.com/ackbits/ackbits/simnet"
)

// A row is one figure: transfers over a link beside W1, compared with the same game
// without them.
type row struct {
	name     string
	link     simnet.Config
	down, up []int // sizes of the files from the server, and to it
	cross    bool  // other people's traffic: half of the link, 2 s on and 2 s off

	worse   time.Duration // by how much p99 may be worse; 0: not asked
	share   float64       // of what the game leaves of the link, at least
	within  time.Duration // the whole transfer
	repeats float64       // chunks sent again, at most, in losses

	onTicks bool
	ticksAt string
	twin    bool            // a second session on the same link sends a file, too, from 3 s later on
	change  []simnet.Config // what the links are like from 5 s on, then from 10 s on, …
}

type measured struct {
	state, event          []time.Duration // latencies while the transfers ran
	baseState, baseEvent  []time.Duration // of the same game without
	took                  time.Duration
	share, payload        float64
	chunks, repeats, lost int
	needless              int
	longest               time.Duration
	answers               int
}

func (m *measured) add(o *measured) {
	m.state, m.event = append(m.state, o.state...), append(m.event, o.event...)
	m.baseState, m.baseEvent = append(m.baseState, o.baseState...), append(m.baseEvent, o.baseEvent...)
	m.took += o.took
	m.longest = max(m.longest, o.took)
	m.share += o.share
	m.payload += o.payload
	m.chunks += o.chunks
	m.repeats += o.repeats
	m.lost += o.lost
	m.needless += o.needless
	m.answers += o.answers
}

func quantile(of []time.Duration, q float64) time.Duration {
	if len(of) == 0 {
		return 0
	}
	slices.Sort(of)
	return of[min(int(q*float64(len(of))), len(of)-1)]
}

const warmUp = 3 * time.Second

// figure plays one row with one seed.
func (r *row) figure(t testing.TB, seed uint64) *measured {
	m := new(measured)
	offset := time.Duration(seed*997%1000) * ms / 10
	play := func(with bool, until time.Duration) *game {
		link := r.link
		link.Overhead = simnet.UDPOverIPv4
		g := &game{seed: seed, up: link, down: link, session: ackbits.Config{Adaptive: true, Bundle: true}, onTicks: r.onTicks, ticksAt: r.ticksAt}
		if r.twin {
			g.twins = 1
		}
		g.start(t)
		if r.cross {
			r.others(g)
		}
		for i, link := range r.change {
			link.Overhead = simnet.UDPOverIPv4
			g.pair.At(time.Duration(i+1)*5*time.Second, func() {
				g.pair.Link(simnet.AToB).SetConfig(g.pair.Now(), link)
				g.pair.Link(simnet.BToA).SetConfig(g.pair.Now(), link)
			})
		}
		g.pair.Run(warmUp + offset)
		if !with {
			g.pair.Run(until)
			return g
		}
		var wireBefore, chunkWire [2]int
		var out []*Outgoing
		lost := 0
		g.pair.Observe(func(_ time.Duration, d simnet.Direction, what simnet.What, datagram []byte) {
			if (what == simnet.Lost || what == simnet.LostInQueue) && len(datagram) > 400 && datagram[0] != 0 {
				lost++
			}
		})
		for i, p := range []*peer{g.a, g.b} {
			wireBefore[i], chunkWire[i] = p.wire, p.chunkWire
			for k, size := range [][]int{r.up, r.down}[i] {
				out = append(out, sendFile(t, p, content(seed*10+uint64(k), size)))
			}
		}
		if r.twin {
			g.pair.At(g.pair.Now()+3*time.Second, func() { sendFile(t, g.b2, content(seed, 1<<30/1000)) })
		}
		start := g.pair.Now()
		require.True(t, g.run(10*time.Minute, out...), r.name)
		for _, o := range out {
			require.Equal(t, io.EOF, o.Err())
		}
		m.took = g.pair.Now() - start
		m.lost = lost
		directions := 0
		for i, p := range []*peer{g.a, g.b} {
			sizes := [][]int{r.up, r.down}[i]
			if len(sizes) == 0 || r.link.Rate == 0 {
				continue
			}
			directions++
			room := float64(r.link.Rate)*m.took.Seconds() - float64(p.wire-wireBefore[i])
			if r.twin {
				other := []*peer{g.a2, g.b2}[i]
				room -= float64(other.wire + other.chunkWire)
			}
			payload := 0
			for _, size := range sizes {
				payload += size
			}
			m.share += float64(p.chunkWire-chunkWire[i]) / room
			m.payload += float64(payload) / room
		}
		if directions > 0 {
			m.share /= float64(directions)
			m.payload /= float64(directions)
		}
		for i, p := range []*peer{g.a, g.b} {
			m.chunks += int(p.transfers.flight.count)
			m.repeats += int(p.transfers.flight.repeats)
			m.needless += int(p.transfers.flight.needless)
			m.answers += (p.chunkWire - chunkWire[i]) * 0
		}
		return g
	}
	with := play(true, 0)
	end := with.pair.Now()
	with.pair.Run(end + time.Second) // what is under way arrives
	without := play(false, end+time.Second)
	start := warmUp + offset
	pick := func(list []latency) (took []time.Duration) {
		for _, l := range list {
			if l.at >= start && l.at <= end {
				took = append(took, l.took)
			}
		}
		return took
	}
	toA, toB := len(r.down) > 0, len(r.up) > 0
	for g, into := range map[*game][2]*[]time.Duration{with: {&m.state, &m.event}, without: {&m.baseState, &m.baseEvent}} {
		for _, p := range []*peer{g.a, g.b} {
			if p.name == "a" && toA || p.name == "b" && toB {
				*into[0] = append(*into[0], pick(p.stateIn)...)
				*into[1] = append(*into[1], pick(p.eventIn)...)
			}
		}
	}
	return m
}

// others has somebody else use half of both links, 2 s on and 2 s off.
func (r *row) others(g *game) {
	const size = 1000
	foreign := make([]byte, size)
	rate := r.link.Rate / 2
	for _, d := range []simnet.Direction{simnet.AToB, simnet.BToA} {
		g.pair.Every(rate, (size+simnet.UDPOverIPv4)*time.Second, func() {
			if g.pair.Now()/(2*time.Second)%2 == 0 {
				g.pair.Send(d, foreign)
			}
		})
	}
}

const (
	mbit = 125_000 // bytes a second
	mib  = 1 << 20
)

func delay(d time.Duration) time.Duration { return d / 2 }

var rows = []row{
	{name: "2 Mbit, 32 KiB, 1 %", link: simnet.Config{Delay: 30 * ms, Rate: 2 * mbit, Queue: 32 << 10, Loss: 0.01}, down: []int{2 * mib}, worse: 17 * ms, share: 0.75, repeats: 1.1},
	{name: "2 Mbit, 32 KiB, 1 %, up", link: simnet.Config{Delay: 30 * ms, Rate: 2 * mbit, Queue: 32 << 10, Loss: 0.01}, up: []int{2 * mib}, worse: 17 * ms, share: 0.75, repeats: 1.1},
	{name: "2 Mbit, 32 KiB, 1 %, 300 KiB", link: simnet.Config{Delay: 30 * ms, Rate: 2 * mbit, Queue: 32 << 10, Loss: 0.01}, down: []int{300 << 10}, worse: 17 * ms, share: 0.75, repeats: 1.1},
	{name: "10 Mbit", link: simnet.Config{Delay: 30 * ms, Rate: 10 * mbit, Queue: 128 << 10}, down: []int{8 * mib}, worse: 17 * ms, share: 0.75},
	{name: "10 Mbit, up", link: simnet.Config{Delay: 30 * ms, Rate: 10 * mbit, Queue: 128 << 10}, up: []int{8 * mib}, worse: 17 * ms, share: 0.75},
	{name: "1 Mbit, 1 s", link: simnet.Config{Delay: 30 * ms, Rate: mbit, Queue: mbit}, down: []int{mib}, worse: 17 * ms, share: 0.75},
	{name: "1 Mbit, 1 s, up", link: simnet.Config{Delay: 30 * ms, Rate: mbit, Queue: mbit}, up: []int{mib}, worse: 17 * ms, share: 0.75},
	{name: "1 Mbit, 0.1 s", link: simnet.Config{Delay: 30 * ms, Rate: mbit, Queue: mbit / 10}, down: []int{mib}, worse: 17 * ms, share: 0.75},
	{name: "1 Mbit, 0.1 s, up", link: simnet.Config{Delay: 30 * ms, Rate: mbit, Queue: mbit / 10}, up: []int{mib}, worse: 17 * ms, share: 0.75},
	{name: "1 Mbit, 20 ms", link: simnet.Config{Delay: 30 * ms, Rate: mbit, Queue: mbit / 50}, down: []int{mib}, repeats: 1.3},
	{name: "two at once, 2 Mbit", link: simnet.Config{Delay: 30 * ms, Rate: 2 * mbit, Queue: 32 << 10}, down: []int{mib, mib}, worse: 17 * ms, share: 0.75},
	{name: "up and down, 2 Mbit", link: simnet.Config{Delay: 30 * ms, Rate: 2 * mbit, Queue: 32 << 10, Loss: 0.01}, up: []int{mib}, down: []int{mib}, worse: 17 * ms, share: 0.75, repeats: 1.1},
	{name: "up and down, 1 Mbit", link: simnet.Config{Delay: 30 * ms, Rate: mbit, Queue: mbit}, up: []int{mib}, down: []int{mib}, worse: 17 * ms, share: 0.75},
	{name: "others, 2 Mbit", link: simnet.Config{Delay: 30 * ms, Rate: 2 * mbit, Queue: 32 << 10}, down: []int{2 * mib}, cross: true, worse: 75 * ms},
	{name: "others, 10 Mbit", link: simnet.Config{Delay: 30 * ms, Rate: 10 * mbit, Queue: 128 << 10}, down: []int{8 * mib}, cross: true, worse: 75 * ms},
	{name: "100 Mbit, 60 ms, 300 KiB", link: simnet.Config{Delay: 30 * ms, Rate: 100 * mbit, Queue: 256 << 10}, down: []int{300 << 10}, within: 500 * ms},
	{name: "100 Mbit, 60 ms, 1 %, 300 KiB", link: simnet.Config{Delay: 30 * ms, Rate: 100 * mbit, Queue: 256 << 10, Loss: 0.01}, down: []int{300 << 10}, within: 550 * ms},
	{name: "100 Mbit, 40 ms, 16 MiB", link: simnet.Config{Delay: 20 * ms, Rate: 100 * mbit, Queue: 256 << 10}, down: []int{16 * mib}, share: 0.75},
	{name: "10 Mbit, 5 ms jitter", link: simnet.Config{Delay: 30 * ms, Rate: 10 * mbit, Queue: 128 << 10, Jitter: 5 * ms}, down: []int{8 * mib}, share: 0.6},
	{name: "10 Mbit, 5 ms of queue", link: simnet.Config{Delay: 30 * ms, Rate: 10 * mbit, Queue: 6 << 10}, down: []int{8 * mib}, repeats: 1.3},
	{name: "10 Mbit, 2 ms of queue", link: simnet.Config{Delay: 30 * ms, Rate: 10 * mbit, Queue: 2500}, down: []int{8 * mib}, repeats: 1.3},
	{name: "2 Mbit, 2 KiB", link: simnet.Config{Delay: 30 * ms, Rate: 2 * mbit, Queue: 2 << 10}, down: []int{2 * mib}, repeats: 1.3},
	{name: "100 Mbit, 16 KiB", link: simnet.Config{Delay: 30 * ms, Rate: 100 * mbit, Queue: 16 << 10}, down: []int{16 * mib}, repeats: 1.3},
	{name: "10 Mbit, 5 % reordered", link: simnet.Config{Delay: 30 * ms, Rate: 10 * mbit, Queue: 128 << 10, Reorder: 0.05, ReorderDelay: 20 * ms}, down: []int{8 * mib}},
	{name: "10 Mbit, 5 % lost", link: simnet.Config{Delay: 30 * ms, Rate: 10 * mbit, Queue: 128 << 10, Loss: 0.05}, down: []int{8 * mib}, repeats: 1.1},
	{name: "two sessions, 4 Mbit", link: simnet.Config{Delay: 30 * ms, Rate: 4 * mbit, Queue: 64 << 10}, down: []int{4 * mib}, twin: true},
	{name: "4, 1, 4 Mbit", link: simnet.Config{Delay: 30 * ms, Rate: 4 * mbit, Queue: 64 << 10}, down: []int{4 * mib}, change: []simnet.Config{{Delay: 30 * ms, Rate: mbit, Queue: 64 << 10}, {Delay: 30 * ms, Rate: 4 * mbit, Queue: 64 << 10}}},
	{name: "4 Mbit, path longer by 50 ms", link: simnet.Config{Delay: 30 * ms, Rate: 4 * mbit, Queue: 64 << 10}, down: []int{8 * mib}, change: []simnet.Config{{Delay: 80 * ms, Rate: 4 * mbit, Queue: 64 << 10}}},
	{name: "4 Mbit, 2 s dead", link: simnet.Config{Delay: 30 * ms, Rate: 4 * mbit, Queue: 64 << 10, Blackouts: []simnet.Window{{From: 5 * time.Second, To: 7 * time.Second}}}, down: []int{4 * mib}},
	{name: "20 Mbit, 300 ms", link: simnet.Config{Delay: 150 * ms, Rate: 20 * mbit, Queue: 256 << 10}, down: []int{16 * mib}},
	{name: "20 Mbit, 2 ms", link: simnet.Config{Delay: ms, Rate: 20 * mbit, Queue: 256 << 10}, down: []int{16 * mib}},
	{name: "160 kbit, 1 s", link: simnet.Config{Delay: 30 * ms, Rate: 20_000, Queue: 20_000}, down: []int{100 << 10}},
	{name: "300 kbit, 1 s", link: simnet.Config{Delay: 30 * ms, Rate: 37_500, Queue: 37_500}, down: []int{300 << 10}},
	{name: "no limit", link: simnet.Config{Delay: 30 * ms}, down: []int{8 * mib}},
	{name: "2 Mbit, receiver on ticks", link: simnet.Config{Delay: 30 * ms, Rate: 2 * mbit, Queue: 32 << 10, Loss: 0.01}, down: []int{2 * mib}, ticksAt: "a"},
	{name: "2 Mbit, sender on ticks", link: simnet.Config{Delay: 30 * ms, Rate: 2 * mbit, Queue: 32 << 10, Loss: 0.01}, down: []int{2 * mib}, ticksAt: "b"},
	{name: "10 Mbit, receiver on ticks", link: simnet.Config{Delay: 30 * ms, Rate: 10 * mbit, Queue: 128 << 10}, down: []int{8 * mib}, ticksAt: "a"},
	{name: "10 Mbit, sender on ticks", link: simnet.Config{Delay: 30 * ms, Rate: 10 * mbit, Queue: 128 << 10}, down: []int{8 * mib}, ticksAt: "b"},
	{name: "100 Mbit, on ticks", link: simnet.Config{Delay: 20 * ms, Rate: 100 * mbit, Queue: 512 << 10}, down: []int{16 * mib}, onTicks: true},
	{name: "100 Mbit, on ticks, 300 KiB", link: simnet.Config{Delay: 30 * ms, Rate: 100 * mbit, Queue: 512 << 10}, down: []int{300 << 10}, onTicks: true},
	{name: "2 Mbit, on ticks", link: simnet.Config{Delay: 30 * ms, Rate: 2 * mbit, Queue: 32 << 10, Loss: 0.01}, down: []int{2 * mib}, onTicks: true},
	{name: "10 Mbit, on ticks", link: simnet.Config{Delay: 30 * ms, Rate: 10 * mbit, Queue: 128 << 10}, down: []int{8 * mib}, onTicks: true},
}

func TestFigures(t *testing.T) {
	seeds := uint64(2)
	if os.Getenv("ACKBITS_TRANSFER") == "all" {
		seeds = 12
	}
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			var sum measured
			for seed := range seeds {
				sum.add(r.figure(t, seed+1))
			}
			n := float64(seeds)
			s, bs := quantile(sum.state, 0.99), quantile(sum.baseState, 0.99)
			e, be := quantile(sum.event, 0.99), quantile(sum.baseEvent, 0.99)
			fmt.Printf("%-34s state %+6.1f event %+6.1f  share %.2f payload %.2f  took %v max %v  repeats %d/%d lost %d needless %d\n",
				r.name, float64(s-bs)/1e6, float64(e-be)/1e6, sum.share/n, sum.payload/n, (sum.took / time.Duration(seeds)).Truncate(ms), sum.longest.Truncate(ms), sum.repeats, sum.chunks, sum.lost, sum.needless)
		})
	}
}
