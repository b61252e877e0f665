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
// without them. What is zero is not asked for.
type row struct {
	name     string
	link     simnet.Config
	change   []simnet.Config // what the link is like from 5 s on, then from 10 s on, and so on
	down, up []int           // sizes of the files from the server, and to it
	others   bool            // somebody else takes half of the link, 2 s on and 2 s off
	shape    shape           // what lies before the link, each way
	twin     bool            // a second session on the same link has a file to send, too, from 3 s later on
	onTicks  string          // who hands arrivals in, and sends, at 60 Hz: "a" receives what goes down, "b" sends it

	worse   time.Duration // by how much p99 of states and of events may be worse
	share   float64       // of what the game leaves of the link, at least
	within  time.Duration // the mean time of the whole, at most
	repeats float64       // chunks sent again for each that was lost, at most
	again   float64       // chunks sent again for each there is, at most
}

// bytes returns how much is sent.
func (r *row) bytes() (sum int) {
	for _, size := range slices.Concat(r.up, r.down) {
		sum += size
	}
	return sum
}

const (
	mbit = 125_000 // bytes a second
	mib  = 1 << 20
	kib  = 1 << 10
)

// link is a symmetric one, with a round trip of 60 ms.
func link(rate, queue int, loss float64) simnet.Config {
	return simnet.Config{Delay: 30 * ms, Rate: rate, Queue: queue, Loss: loss}
}

// after changes a link.
func after(l simnet.Config, change func(*simnet.Config)) simnet.Config {
	change(&l)
	return l
}

func delay(d time.Duration) func(*simnet.Config) { return func(l *simnet.Config) { l.Delay = d } }

const tick = 17 * ms

var rows = []row{
	{name: "2 Mbit, 32 KiB, 1 %", link: link(2*mbit, 32*kib, 0.01), down: []int{2 * mib}, worse: tick, share: 0.75, repeats: 1.1},
	{name: "2 Mbit, 32 KiB, 1 %, up", link: link(2*mbit, 32*kib, 0.01), up: []int{2 * mib}, worse: tick, share: 0.75, repeats: 1.1},
	{name: "2 Mbit, 32 KiB, 1 %, 300 KiB", link: link(2*mbit, 32*kib, 0.01), down: []int{300 * kib}, worse: tick, share: 0.75, within: 2300 * ms},
	{name: "10 Mbit", link: link(10*mbit, 128*kib, 0), down: []int{8 * mib}, worse: tick, share: 0.75},
	{name: "10 Mbit, up", link: link(10*mbit, 128*kib, 0), up: []int{8 * mib}, worse: tick, share: 0.75},
	{name: "1 Mbit, queue of 1 s", link: link(mbit, mbit, 0), down: []int{mib}, worse: tick, share: 0.75},
	{name: "1 Mbit, queue of 1 s, up", link: link(mbit, mbit, 0), up: []int{mib}, worse: tick, share: 0.75},
	{name: "1 Mbit, queue of 0.1 s", link: link(mbit, mbit/10, 0), down: []int{mib}, worse: tick, share: 0.75},
	{name: "1 Mbit, queue of 0.1 s, up", link: link(mbit, mbit/10, 0), up: []int{mib}, worse: tick, share: 0.75},
	{name: "2 Mbit, two at once", link: link(2*mbit, 32*kib, 0), down: []int{mib, mib}, worse: tick, share: 0.75},
	{name: "2 Mbit, 1 %, up and down", link: link(2*mbit, 32*kib, 0.01), up: []int{mib}, down: []int{mib}, worse: tick, share: 0.75, repeats: 1.1},
	{name: "1 Mbit, up and down", link: link(mbit, mbit, 0), up: []int{mib}, down: []int{mib}, worse: tick, share: 0.75},
	{name: "2 Mbit, others", link: link(2*mbit, 32*kib, 0), down: []int{2 * mib}, others: true, worse: 65 * ms},
	{name: "10 Mbit, others", link: link(10*mbit, 128*kib, 0), down: []int{8 * mib}, others: true, worse: 65 * ms},
	{name: "100 Mbit, 300 KiB", link: link(100*mbit, 256*kib, 0), down: []int{300 * kib}, within: 230 * ms},
	{name: "100 Mbit, 1 %, 300 KiB", link: link(100*mbit, 256*kib, 0.01), down: []int{300 * kib}, within: 350 * ms},
	{name: "100 Mbit, 40 ms, 16 MiB", link: after(link(100*mbit, 256*kib, 0), delay(20*ms)), down: []int{16 * mib}, share: 0.75},
	{name: "10 Mbit, 5 ms of jitter", link: after(link(10*mbit, 128*kib, 0), func(l *simnet.Config) { l.Jitter = 5 * ms }), down: []int{8 * mib}, share: 0.6},
	{name: "10 Mbit, queue of 5 ms", link: link(10*mbit, 6*kib, 0), down: []int{8 * mib}, share: 0.75, repeats: 1.3},
	{name: "10 Mbit, queue of 2 ms", link: link(10*mbit, 2500, 0), down: []int{8 * mib}, share: 0.75, repeats: 1.3},
	{name: "2 Mbit, queue of 8 ms", link: link(2*mbit, 2*kib, 0), down: []int{2 * mib}, share: 0.75, repeats: 1.3},
	{name: "1 Mbit, queue of 20 ms", link: link(mbit, mbit/50, 0), down: []int{mib}, worse: tick, share: 0.75},
	{name: "100 Mbit, queue of 1.3 ms", link: link(100*mbit, 16*kib, 0), down: []int{16 * mib}, repeats: 1.3},
	{name: "10 Mbit, 5 % reordered by 20 ms", link: after(link(10*mbit, 128*kib, 0), func(l *simnet.Config) { l.Reorder, l.ReorderDelay = 0.05, 20*ms }), down: []int{8 * mib}, share: 0.75},
	{name: "10 Mbit, 5 % lost", link: link(10*mbit, 128*kib, 0.05), down: []int{8 * mib}, worse: tick, share: 0.75, repeats: 1.1},
	{name: "10 Mbit, 20 % lost", link: link(10*mbit, 128*kib, 0.2), down: []int{2 * mib}, share: 0.4, repeats: 1.1},
	{name: "10 Mbit, 5 % lost in bursts", link: after(link(10*mbit, 128*kib, 0), func(l *simnet.Config) {
		l.Burst = simnet.Burst{MeanGood: 1120 * ms, MeanBad: 80 * ms, LossBad: 0.75}
	}), down: []int{4 * mib}, share: 0.7},
	{name: "10 Mbit, nothing waits", link: link(10*mbit, -1, 0), down: []int{mib}, share: 0.5, repeats: 1.3},
	{name: "10 Mbit, 20 ms of jitter", link: after(link(10*mbit, 128*kib, 0), func(l *simnet.Config) { l.Jitter = 20 * ms }), down: []int{4 * mib}, share: 0.25},
	{name: "4 Mbit, two sessions", link: link(4*mbit, 64*kib, 0), down: []int{4 * mib}, twin: true, worse: 75 * ms, share: 0.75},
	{name: "4, 1, then 4 Mbit", link: link(4*mbit, 64*kib, 0), down: []int{4 * mib}, change: []simnet.Config{link(mbit, 64*kib, 0), link(4*mbit, 64*kib, 0)}, worse: 300 * ms, within: 16 * time.Second},
	{name: "4 Mbit, path longer by 50 ms", link: link(4*mbit, 64*kib, 0), down: []int{8 * mib}, change: []simnet.Config{after(link(4*mbit, 64*kib, 0), delay(80*ms))}, worse: tick, share: 0.75},
	{name: "4 Mbit, dead for 2 s", link: after(link(4*mbit, 64*kib, 0), func(l *simnet.Config) {
		l.Blackouts = []simnet.Window{{From: 5 * time.Second, To: 7 * time.Second}}
	}), down: []int{4 * mib}, within: 14 * time.Second},
	{name: "20 Mbit, 300 ms", link: after(link(20*mbit, 256*kib, 0), delay(150*ms)), down: []int{16 * mib}, worse: tick, share: 0.7},
	{name: "20 Mbit, 2 ms", link: after(link(20*mbit, 256*kib, 0), delay(ms)), down: []int{16 * mib}, worse: tick, share: 0.75},
	{name: "300 kbit, queue of 1 s", link: link(37_500, 37_500, 0), down: []int{300 * kib}, worse: 75 * ms, share: 0.75},
	{name: "160 kbit, queue of 1 s", link: link(20_000, 20_000, 0), down: []int{100 * kib}, worse: 250 * ms, share: 0.75},
	{name: "2 Mbit in bursts of 4 KiB", link: link(100*mbit, 256*kib, 0), shape: shape{2 * mbit, 4 * kib, 32 * kib}, down: []int{2 * mib}, worse: 110 * ms, within: 11 * time.Second, again: 0.01},
	{name: "2 Mbit in bursts of 16 KiB", link: link(100*mbit, 256*kib, 0), shape: shape{2 * mbit, 16 * kib, 32 * kib}, down: []int{2 * mib}, within: 11 * time.Second, again: 0.4},
	{name: "2 Mbit in bursts of 64 KiB", link: link(100*mbit, 256*kib, 0), shape: shape{2 * mbit, 64 * kib, 32 * kib}, down: []int{2 * mib}, within: 11 * time.Second, again: 0.6},
	{name: "10 Mbit in bursts of 64 KiB", link: link(100*mbit, 256*kib, 0), shape: shape{10 * mbit, 64 * kib, 128 * kib}, down: []int{8 * mib}, within: 9 * time.Second, again: 0.15},
	{name: "2 Mbit in bursts, a policer", link: link(100*mbit, 256*kib, 0), shape: shape{2 * mbit, 32 * kib, 0}, down: []int{2 * mib}, within: 11 * time.Second, again: 1},
	{name: "no limit", link: link(0, 0, 0), down: []int{8 * mib}, within: 500 * ms},
	{name: "2 Mbit, 1 %, both on ticks", link: link(2*mbit, 32*kib, 0.01), down: []int{2 * mib}, onTicks: "ab", worse: 60 * ms, share: 0.6},
	{name: "2 Mbit, 1 %, receiver on ticks", link: link(2*mbit, 32*kib, 0.01), down: []int{2 * mib}, onTicks: "a", worse: 60 * ms, share: 0.6},
	{name: "2 Mbit, 1 %, sender on ticks", link: link(2*mbit, 32*kib, 0.01), down: []int{2 * mib}, onTicks: "b", worse: 60 * ms, share: 0.6},
	{name: "10 Mbit, both on ticks", link: link(10*mbit, 128*kib, 0), down: []int{8 * mib}, onTicks: "ab", worse: 60 * ms, share: 0.6},
	{name: "10 Mbit, receiver on ticks", link: link(10*mbit, 128*kib, 0), down: []int{8 * mib}, onTicks: "a", worse: 60 * ms, share: 0.6},
	{name: "10 Mbit, sender on ticks", link: link(10*mbit, 128*kib, 0), down: []int{8 * mib}, onTicks: "b", worse: 60 * ms, share: 0.6},
	{name: "100 Mbit, 300 KiB, both on ticks", link: link(100*mbit, 512*kib, 0), down: []int{300 * kib}, onTicks: "ab", within: time.Second},
}

// measured is what runs of a row came to, pooled over seeds.
type measured struct {
	state, event, baseState, baseEvent []time.Duration // while the transfers ran, and in the same game without
	took                               []time.Duration
	share                              float64 // of what the game leaves of the link, in bytes on the wire
	chunks, repeats, answers           int
	lost                               int // chunks
}

func quantile(of []time.Duration, q float64) time.Duration {
	if len(of) == 0 {
		return 0
	}
	slices.Sort(of)
	return of[min(int(q*float64(len(of))), len(of)-1)]
}

func mean(of []time.Duration) (sum time.Duration) {
	for _, d := range of {
		sum += d
	}
	return sum / time.Duration(len(of))
}

// game begins a row's game and plays until its transfers begin, which is at another
// phase of the ticks for each seed.
func (r *row) game(t testing.TB, seed uint64) *game {
	l := r.link
	l.Overhead = simnet.UDPOverIPv4
	g := &game{seed: seed, up: l, down: l, session: ackbits.Config{Adaptive: true, Bundle: true}, onTicks: r.onTicks}
	if r.twin {
		g.twins = 1
	}
	g.start(t)
	for i, l := range r.change {
		l.Overhead = simnet.UDPOverIPv4
		g.pair.At(time.Duration(i+1)*5*time.Second, func() {
			g.pair.Link(simnet.AToB).SetConfig(g.pair.Now(), l)
			g.pair.Link(simnet.BToA).SetConfig(g.pair.Now(), l)
		})
	}
	if r.others {
		r.disturb(g)
	}
	if r.shape.rate > 0 {
		r.shape.shape(g, g.a)
		r.shape.shape(g, g.b)
	}
	g.pair.Run(3*time.Second + time.Duration(seed*997%1000)*100*time.Microsecond)
	return g
}

// disturb has somebody else use half of both links, 2 s on and 2 s off.
func (r *row) disturb(g *game) {
	foreign := make([]byte, 1000)
	for _, d := range []simnet.Direction{simnet.AToB, simnet.BToA} {
		g.pair.Every(r.link.Rate/2, time.Duration(len(foreign)+simnet.UDPOverIPv4)*time.Second, func() {
			if g.pair.Now()/(2*time.Second)%2 == 0 {
				g.pair.Send(d, foreign)
			}
		})
	}
}

// shape is what a provider does to a fast line: a token bucket lets a burst through at
// the line's rate, and what follows waits, or is dropped where so much waits already. So
// short rows of chunks, and pairs, show a rate that does not last.
type shape struct{ rate, burst, queue int } // bytes a second; bytes

func (s shape) shape(g *game, p *peer) {
	send, whole := p.send, time.Duration(0) // when the bucket is full again
	took := func(bytes int) time.Duration { return time.Duration(bytes) * time.Second / time.Duration(s.rate) }
	p.send = func(datagram []byte) {
		now := g.pair.Now()
		wait := max(0, whole-now-took(s.burst))
		if wait > took(s.queue) {
			return
		}
		whole = max(whole, now) + took(len(datagram)+simnet.UDPOverIPv4)
		datagram = slices.Clone(datagram)
		g.pair.At(now+wait, func() { send(datagram) })
	}
}

// figure plays one row with one seed.
func (r *row) figure(t testing.TB, seed uint64, m *measured) {
	g := r.game(t, seed)
	start := g.pair.Now()
	g.pair.Observe(func(_ time.Duration, _ simnet.Direction, what simnet.What, datagram []byte) {
		if what >= simnet.Lost && what <= simnet.LostInQueue && len(datagram) > unit && datagram[0] != 0 {
			m.lost++
		}
	})
	ends := [2]*peer{g.a, g.b}
	files := [2][]int{r.up, r.down}
	var out []*Outgoing
	var game [2]int
	for i, p := range ends {
		game[i] = p.wire
		for k, size := range files[i] {
			out = append(out, sendFile(t, p, content(seed*10+uint64(k), size)))
		}
	}
	if r.twin {
		g.pair.At(start+3*time.Second, func() { sendFile(t, g.b2, content(seed, mib)) })
	}
	require.True(t, g.run(10*time.Minute, out...))
	for _, o := range out {
		require.Equal(t, io.EOF, o.Err())
	}
	end := g.pair.Now()
	m.took = append(m.took, end-start)
	directions := float64(min(1, len(r.up)) + min(1, len(r.down)))
	for i, p := range ends {
		stats := p.transfers.Stats()
		m.chunks, m.repeats, m.answers = m.chunks+int(stats.Chunks), m.repeats+int(stats.Repeated), m.answers+p.other.answers
		if len(files[i]) == 0 || r.link.Rate == 0 {
			continue
		}
		room := float64(r.link.Rate)*(end-start).Seconds() - float64(p.wire-game[i])
		if r.twin {
			twin := []*peer{g.a2, g.b2}[i]
			room -= float64(twin.wire + twin.transferWire)
		}
		m.share += float64(p.transferWire) / room / directions
	}
	g.pair.Run(end + time.Second) // what is in flight arrives
	without := r.game(t, seed)
	without.pair.Run(end + time.Second)
	for i := range ends {
		if len(files[1-i]) > 0 { // what this end receives
			with, base := ends[i], []*peer{without.a, without.b}[i]
			m.state, m.event = between(m.state, with.stateIn, start, end), between(m.event, with.eventIn, start, end)
			m.baseState, m.baseEvent = between(m.baseState, base.stateIn, start, end), between(m.baseEvent, base.eventIn, start, end)
		}
	}
}

// between appends the latencies of what was sent from a time to another.
func between(to []time.Duration, all []latency, start, end time.Duration) []time.Duration {
	for _, l := range all {
		if l.at >= start && l.at <= end {
			to = append(to, l.took)
		}
	}
	return to
}

// How many seeds each figure stands on: twelve with ACKBITS_TRANSFER=all, which also
// prints the table with -v.
func seeds() int {
	switch {
	case os.Getenv("ACKBITS_TRANSFER") == "all":
		return 12
	case testing.Short():
		return 1
	}
	return 2
}

func TestFigures(t *testing.T) {
	for _, r := range rows {
		if testing.Short() && r.bytes() > 2*mib {
			continue // the short form has the narrow links
		}
		t.Run(r.name, func(t *testing.T) {
			var m measured
			for seed := range seeds() {
				r.figure(t, uint64(seed)+1, &m)
			}
			state := quantile(m.state, 0.99) - quantile(m.baseState, 0.99)
			event := quantile(m.event, 0.99) - quantile(m.baseEvent, 0.99)
			m.share /= float64(seeds())
			line := fmt.Sprintf("%-34s state %+6.1f ms, events %+6.1f ms, %3.0f %% of the link, mean %v, most %v, %d lost, %d repeated of %d chunks, %.2f answers a chunk",
				r.name, state.Seconds()*1e3, event.Seconds()*1e3, m.share*100, mean(m.took).Truncate(ms), slices.Max(m.took).Truncate(ms),
				m.lost, m.repeats, m.chunks, float64(m.answers)/float64(m.chunks))
			t.Log(line)
			if r.worse > 0 {
				require.LessOrEqual(t, state, r.worse, line)
				if !testing.Short() && r.link.Loss < 0.02 { // else p99 is how often the worst event was lost
					require.LessOrEqual(t, event, r.worse, line)
				}
			}
			require.GreaterOrEqual(t, m.share, r.share, line)
			if r.within > 0 {
				require.LessOrEqual(t, mean(m.took), r.within, line)
			}
			if r.repeats > 0 {
				require.LessOrEqual(t, float64(m.repeats), r.repeats*float64(m.lost)+1, line)
			}
			if r.again > 0 {
				require.LessOrEqual(t, float64(m.repeats), r.again*float64(m.chunks-m.repeats), line)
			}
			require.LessOrEqual(t, m.answers, m.chunks, line)
		})
	}
}

// The game alone, with a transfer, and with the ways of today, where 300 KiB are sent over
// 2 Mbit/s with 1 % loss: as events as fast as Send takes them, and as datagrams of one's
// own at a rate that one has to know, here 90 % of the link.
// P-14.2.6.
func TestBesideTheWaysOfToday(t *testing.T) {
	r := row{link: link(2*mbit, 32*kib, 0.01), down: []int{300 * kib}}
	ways := []struct {
		name  string
		begin func(t *testing.T, g *game) (done func() bool)
	}{
		{"transfer", byTransfer}, {"events", byEvents}, {"datagrams at 90 % of the rate", byDatagrams}, {"none", byNothing},
	}
	p99, took := map[string]time.Duration{}, map[string]time.Duration{}
	for _, way := range ways {
		var state, event, times []time.Duration
		for seed := range seeds() {
			g := r.game(t, uint64(seed)+1)
			start := g.pair.Now()
			require.True(t, g.pair.RunUntil(way.begin(t, g), time.Minute), "%s: %v", way.name, g.b.session.Err())
			end := g.pair.Now()
			g.pair.Run(end + time.Second)
			state, event = between(state, g.a.stateIn, start, end), between(event, g.a.eventIn, start, end)
			times = append(times, end-start)
		}
		p99[way.name], took[way.name] = quantile(state, 0.99), mean(times)
		t.Logf("%-30s %5d ms; p99 of states %3d ms, of events %4d ms", way.name, took[way.name].Milliseconds(), p99[way.name].Milliseconds(), quantile(event, 0.99).Milliseconds())
	}
	require.LessOrEqual(t, p99["transfer"], p99["none"]+tick)
	require.LessOrEqual(t, p99["transfer"], p99["datagrams at 90 % of the rate"]+5*ms)
	require.LessOrEqual(t, p99["transfer"], p99["events"]/2)
	require.LessOrEqual(t, took["transfer"], took["datagrams at 90 % of the rate"])
	require.LessOrEqual(t, took["transfer"], took["events"]*4/3, "whose window takes more of the link, and makes state late")
}

func byNothing(_ *testing.T, g *game) func() bool {
	end := g.pair.Now() + 2*time.Second
	return func() bool { return g.pair.Now() >= end }
}

func byTransfer(t *testing.T, g *game) func() bool {
	o := sendFile(t, g.b, content(g.seed, 300*kib))
	return func() bool { return o.Err() != nil }
}

func byEvents(_ *testing.T, g *game) func() bool {
	left := 300 * kib / 1024
	g.pair.Every(60, time.Second, func() {
		for ; left > 0 && g.b.session.Room() > 1; left-- {
			event := make([]byte, 1024)
			event[0], event[1], event[2], event[3] = 255, 255, 255, 255 // not one of the game's
			_, _ = g.b.session.Send(event)
		}
		g.b.flush()
	})
	return func() bool { return g.a.foreign == 300*kib/1024 }
}

func byDatagrams(t *testing.T, g *game) func() bool {
	undecided := map[uint16]bool{}
	left := 300 * kib / 1024
	g.b.onOutcome = func(o ackbits.Outcome) {
		if o.Type == testType+1 && undecided[o.Sequence] {
			if delete(undecided, o.Sequence); !o.Delivered {
				left++
			}
		}
	}
	g.pair.Every(2*mbit*9/10, (1024+18+28)*time.Second, func() {
		if left > 0 {
			datagram, seq, err := g.b.session.AppendDatagram(nil, testType+1, make([]byte, 1024))
			require.NoError(t, err)
			left--
			undecided[seq] = true
			g.b.send(datagram)
		}
	})
	return func() bool { return left == 0 && len(undecided) == 0 }
}
