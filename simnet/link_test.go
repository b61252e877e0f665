package simnet

import (
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"math"
	"math/bits"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

const ms = time.Millisecond

// arrival is a datagram that came out of a link.
type arrival struct {
	at       time.Duration
	datagram string
}

// drain receives everything, each datagram at its own time.
func drain(l *Link) (got []arrival) {
	for {
		at, ok := l.Next()
		if !ok {
			return got
		}
		datagram, ok := l.Receive(at)
		if !ok {
			panic("nothing at the time that Next gave")
		}
		got = append(got, arrival{at, string(datagram)})
	}
}

// number is a datagram of n bytes that starts with i.
func number(i, n int) []byte {
	b := make([]byte, n)
	binary.LittleEndian.PutUint32(b, uint32(i))
	return b
}

// sendMany sends n datagrams of size bytes, one every gap, and receives them all.
func sendMany(l *Link, n, size int, gap time.Duration) []arrival {
	for i := range n {
		l.Send(time.Duration(i)*gap, number(i, size))
	}
	return drain(l)
}

// requireShare checks a count against n draws of probability p: six standard
// deviations, which a fixed seed passes for good or never.
func requireShare(t *testing.T, p float64, count, n int) {
	t.Helper()
	sigma := math.Sqrt(p * (1 - p) * float64(n))
	require.InDelta(t, p*float64(n), count, 6*sigma)
}

func TestPerfectLinkDeliversAtOnce(t *testing.T) {
	l := NewLink(1, Config{})
	_, ok := l.Next()
	require.False(t, ok)
	sent := []byte("one")
	l.Send(5, sent)
	sent[0] = 'X' // the link has its own copy
	l.Send(5, []byte{})
	require.Equal(t, 2, l.InFlight())

	_, ok = l.Receive(4)
	require.False(t, ok)
	require.Equal(t, []arrival{{5, "one"}, {5, ""}}, drain(l))
	require.Equal(t, Stats{Sent: 2, Delivered: 2, BytesSent: 3, BytesDelivered: 3}, l.Stats())
}

func TestReceivedDatagramOutlivesSend(t *testing.T) {
	l := NewLink(1, Config{})
	l.Send(0, []byte("one"))
	got, _ := l.Receive(0)
	l.Send(0, []byte("two"))
	require.Equal(t, "one", string(got))
	l.Receive(0)
	l.Send(0, []byte("six")) // the first buffer again
	require.Equal(t, "six", string(got))
}

func TestDelayAndOrderOfTies(t *testing.T) {
	l := NewLink(1, Config{Delay: 40 * ms})
	for i := range 100 {
		l.Send(time.Duration(i/10), number(i, 4))
	}
	for i, a := range drain(l) {
		require.Equal(t, arrival{40*ms + time.Duration(i/10), string(number(i, 4))}, a)
	}
	require.Zero(t, l.Stats().Reordered)
}

func TestJitterIsUniformWithBothBounds(t *testing.T) {
	const n = 30_000
	var late [6]int
	l := NewLink(1, Config{Delay: 10, Jitter: 5})
	for _, a := range sendMany(l, n, 4, 100) {
		sent := time.Duration(binary.LittleEndian.Uint32([]byte(a.datagram))) * 100
		late[a.at-sent-10]++
	}
	for _, count := range late {
		requireShare(t, 1.0/6, count, n)
	}
	require.Zero(t, l.Stats().Reordered)
}

func TestJitterReorders(t *testing.T) {
	l := NewLink(1, Config{Jitter: 30 * ms})
	got := sendMany(l, 1000, 4, 10*ms)
	overtaken, highest := 0, -1
	for i, a := range got {
		if i > 0 {
			require.GreaterOrEqual(t, a.at, got[i-1].at)
		}
		k := int(binary.LittleEndian.Uint32([]byte(a.datagram)))
		if k < highest {
			overtaken++
		}
		highest = max(highest, k)
	}
	require.Equal(t, overtaken, l.Stats().Reordered)
	require.Greater(t, overtaken, 200)
}

func TestLoss(t *testing.T) {
	const n = 50_000
	for _, p := range []float64{0, 0.001, 0.05, 0.5, 1} {
		l := NewLink(1, Config{Loss: p})
		got := sendMany(l, n, 4, ms)
		s := l.Stats()
		requireShare(t, p, s.Lost, n)
		require.Equal(t, n-s.Lost, len(got))
		require.Zero(t, s.LostInBurst+s.LostInBlackout+s.LostInQueue)
	}
}

func TestLossIsIndependent(t *testing.T) {
	const n, p = 50_000, 0.2
	l := NewLink(1, Config{Loss: p})
	lost := make([]bool, n)
	for i := range lost {
		before := l.Stats().Lost
		l.Send(time.Duration(i), nil)
		lost[i] = l.Stats().Lost > before
	}
	pairs, after := 0, 0
	for i := 1; i < n; i++ {
		if lost[i-1] {
			after++
			if lost[i] {
				pairs++
			}
		}
	}
	requireShare(t, p, pairs, after)
}

func TestBurst(t *testing.T) {
	// A datagram a millisecond samples the state of the link.
	const n = 400_000
	l := NewLink(1, Config{Burst: Burst{MeanGood: 300 * ms, MeanBad: 100 * ms, LossGood: 0.01, LossBad: 1}})
	var bad, turns int
	for i := range n {
		before := l.bad
		l.Send(time.Duration(i)*ms, nil)
		if l.bad {
			bad++
		}
		if l.bad != before {
			turns++
		}
	}
	s := l.Stats()
	require.Equal(t, bad, s.LostInBurst)
	requireShare(t, 0.01, s.Lost-s.LostInBurst, n-bad)
	require.InEpsilon(t, n/4, bad, 0.1, "the share of bad time")
	require.InEpsilon(t, 2*n/400, turns, 0.1, "two turns in 400 ms")
}

func TestBurstLossInEachState(t *testing.T) {
	const n = 100_000
	l := NewLink(1, Config{Burst: Burst{MeanGood: 100 * ms, MeanBad: 100 * ms, LossBad: 0.3}})
	bad := 0
	for i := range n {
		l.Send(time.Duration(i)*ms, nil)
		if l.bad {
			bad++
		}
	}
	s := l.Stats()
	requireShare(t, 0.3, s.LostInBurst, bad)
	require.Equal(t, s.LostInBurst, s.Lost)
}

func TestBurstTimesDoNotDependOnTraffic(t *testing.T) {
	cfg := Config{Burst: Burst{MeanGood: 50 * ms, MeanBad: 20 * ms, LossBad: 1}}
	busy, quiet := NewLink(1, cfg), NewLink(1, cfg)
	require.False(t, busy.bad && busy.turns > 0)
	for i := range 20_000 {
		now := time.Duration(i) * ms
		busy.Send(now, nil)
		if i%500 == 0 {
			quiet.Send(now, nil)
			require.Equal(t, busy.bad, quiet.bad)
			require.Equal(t, busy.turns, quiet.turns)
		}
	}
}

func TestBurstRestartsWhenItChanges(t *testing.T) {
	cfg := Config{Burst: Burst{MeanGood: ms, MeanBad: time.Hour, LossBad: 1}}
	l := NewLink(1, cfg)
	l.Send(time.Second, nil)
	require.Equal(t, 1, l.Stats().LostInBurst)

	cfg.Loss = 0.5 // the same Burst goes on
	l.SetConfig(time.Second, cfg)
	l.Send(time.Second, nil)
	require.Equal(t, 2, l.Stats().LostInBurst)

	cfg = Config{Burst: Burst{MeanGood: time.Hour, MeanBad: ms, LossBad: 1}}
	l.SetConfig(time.Second, cfg)
	l.Send(time.Second, nil)
	require.Equal(t, 2, l.Stats().LostInBurst)

	l.SetConfig(time.Second, Config{})
	l.Send(time.Hour, nil)
	require.Equal(t, 2, l.Stats().Lost)
}

func TestExponential(t *testing.T) {
	draw := rand.NewPCG(1, 1)
	const n, mean = 100_000, time.Second
	var sum float64
	above := 0
	for range n {
		u := draw.Uint64()
		got := exponential(u, mean)
		require.InDelta(t, -math.Log(float64(u|1)/(1<<64)), got.Seconds(), 1e-4, u)
		sum += got.Seconds()
		if got > mean {
			above++
		}
	}
	require.InDelta(t, 1, sum/n, 0.02)
	requireShare(t, 1/math.E, above, n)

	longest := exponential(0, 365*24*time.Hour)
	require.InEpsilon(t, 64*math.Ln2*365*24, longest.Hours(), 0.001)
	require.Less(t, exponential(math.MaxUint64, mean), 100*time.Microsecond)
}

func TestReorderHoldsBack(t *testing.T) {
	const n = 20_000
	l := NewLink(1, Config{Delay: 10 * ms, Reorder: 0.1, ReorderDelay: 15 * ms})
	held := 0
	for _, a := range sendMany(l, n, 4, 10*ms) {
		sent := time.Duration(binary.LittleEndian.Uint32([]byte(a.datagram))) * 10 * ms
		if a.at == sent+25*ms {
			held++
		} else {
			require.Equal(t, sent+10*ms, a.at)
		}
	}
	requireShare(t, 0.1, held, n)
	// It is overtaken by the next, unless that is held back as well.
	requireShare(t, 0.1*0.9, l.Stats().Reordered, n)
}

func TestDuplicate(t *testing.T) {
	const n = 20_000
	l := NewLink(1, Config{Loss: 0.5, Duplicate: 0.2, Jitter: 5 * ms})
	got := sendMany(l, n, 4, 10*ms)
	s := l.Stats()
	requireShare(t, 0.2, s.Duplicated, n-s.Lost) // what is lost has no copy
	require.Equal(t, n-s.Lost+s.Duplicated, len(got))

	apart := 0
	for i := 1; i < len(got); i++ { // without overlap, copies are neighbours
		if got[i].datagram == got[i-1].datagram && got[i].at != got[i-1].at {
			apart++
		}
	}
	require.Greater(t, apart, s.Duplicated*99/100, "the copy has its own jitter")
}

func TestCorruptFlipsOneBit(t *testing.T) {
	const n, size = 20_000, 3
	l := NewLink(1, Config{Corrupt: 0.3})
	var flips [8 * size]int
	for range n {
		l.Send(0, make([]byte, size))
		b, ok := l.Receive(0)
		require.True(t, ok)
		require.Len(t, b, size)
		v := uint32(b[0]) | uint32(b[1])<<8 | uint32(b[2])<<16
		require.LessOrEqual(t, bits.OnesCount32(v), 1)
		if v != 0 {
			flips[bits.TrailingZeros32(v)]++
		}
	}
	total := 0
	for _, k := range flips {
		requireShare(t, 0.3/(8*size), k, n)
		total += k
	}
	require.Equal(t, total, l.Stats().Corrupted)
	require.Zero(t, l.Stats().Truncated)
}

func TestTruncate(t *testing.T) {
	const n, size = 20_000, 4
	l := NewLink(1, Config{Truncate: 0.4})
	var lengths [size + 1]int
	for range n {
		l.Send(0, []byte("abcd"))
		b, _ := l.Receive(0)
		require.Equal(t, "abcd"[:len(b)], string(b))
		lengths[len(b)]++
	}
	requireShare(t, 0.6, lengths[size], n)
	for _, k := range lengths[:size] {
		requireShare(t, 0.1, k, n)
	}
	require.Equal(t, n-lengths[size], l.Stats().Truncated)
	require.Zero(t, l.Stats().Corrupted)
}

func TestDamageSparesTheEmpty(t *testing.T) {
	l := NewLink(1, Config{Truncate: 1, Corrupt: 1})
	l.Send(0, nil)
	l.Send(0, []byte{1}) // cut to nothing, which leaves nothing to flip
	require.Equal(t, []arrival{{0, ""}, {0, ""}}, drain(l))
	require.Equal(t, 1, l.Stats().Truncated)
	require.Zero(t, l.Stats().Corrupted)
}

func TestRateAndTailDrop(t *testing.T) {
	// 100 bytes and 28 of header at 1280 bytes/s: 100 ms each. Three fit.
	l := NewLink(1, Config{Delay: ms, Rate: 1280, Queue: 3*128 + 127, Overhead: UDPOverIPv4})
	for i := range 5 {
		l.Send(0, number(i, 100))
	}
	l.Send(100*ms-1, number(5, 100)) // the first is still leaving
	l.Send(100*ms, number(6, 100))   // now it has left
	l.Send(time.Second, number(7, 100))
	l.Send(time.Second, number(8, 0+4)) // 32 bytes: 25 ms
	var got []arrival
	for _, a := range drain(l) {
		got = append(got, arrival{a.at, fmt.Sprint(a.datagram[0])})
	}
	require.Equal(t, []arrival{{101 * ms, "0"}, {201 * ms, "1"}, {301 * ms, "2"}, {401 * ms, "6"},
		{1101 * ms, "7"}, {1126 * ms, "8"}}, got)
	s := l.Stats()
	require.Equal(t, 3, s.LostInQueue)
	require.Equal(t, 3, s.Lost)
	require.Equal(t, int64(8*100+4), s.BytesSent)
	require.Equal(t, int64(5*100+4), s.BytesDelivered)
}

func TestRateHoldsUnderOverload(t *testing.T) {
	l := NewLink(1, Config{Rate: 100_000, Queue: 20_000})
	got := sendMany(l, 10_000, 1000, 5*ms) // 200 kB/s for 50 s
	require.InDelta(t, 100*50+20, len(got), 1)
	for i := 1; i < len(got); i++ {
		require.GreaterOrEqual(t, got[i].at-got[i-1].at, 10*ms)
	}
	require.Less(t, cap(l.queue), 200)
}

func TestQueueLimits(t *testing.T) {
	for _, test := range []struct{ queue, fit int }{{-1, 1}, {1, 1}, {2000, 2}, {0, 64<<10/1000 + 0}} {
		l := NewLink(1, Config{Rate: 1000, Queue: test.queue})
		got := sendMany(l, 100, 1000, 0)
		require.Len(t, got, test.fit, "queue %d", test.queue)
	}
}

func TestRateRoundsUp(t *testing.T) {
	l := NewLink(1, Config{Rate: 3})
	require.Equal(t, 4*time.Second/3+1, sendMany(l, 1, 4, 0)[0].at)
}

func sendByte(l *Link, now time.Duration, b byte) { l.Send(now, []byte{b}) }

func TestRateChangeKeepsOrder(t *testing.T) {
	l := NewLink(1, Config{Rate: 1})
	sendByte(l, 0, 'a')
	sendByte(l, 0, 'b')
	l.SetConfig(500*ms, Config{Rate: 10})
	sendByte(l, 500*ms, 'c')
	l.SetConfig(600*ms, Config{})
	sendByte(l, 600*ms, 'd')
	sendByte(l, 3*time.Second, 'e')
	require.Equal(t, []arrival{{1000 * ms, "a"}, {2000 * ms, "b"}, {2100 * ms, "c"}, {2100 * ms, "d"}, {3000 * ms, "e"}}, drain(l))
}

func TestBlackoutEdges(t *testing.T) {
	windows := []Window{{10, 20}, {20, 20}, {30, 31}}
	l := NewLink(1, Config{Delay: 5, Rate: 1e9, Blackouts: windows})
	windows[0] = Window{} // the link has its own copy
	for _, now := range []time.Duration{9, 10, 19, 20, 29, 30, 31} {
		sendByte(l, now, byte(now))
	}
	// One byte takes a nanosecond. What was sent at 9 arrives in the blackout.
	require.Equal(t, []arrival{{15, "\x09"}, {26, "\x14"}, {35, "\x1d"}, {37, "\x1f"}}, drain(l))
	require.Equal(t, 3, l.Stats().LostInBlackout)
	require.Equal(t, 3, l.Stats().Lost)
}

// storm has everything on.
var storm = Config{
	Delay: 30 * ms, Jitter: 20 * ms, Loss: 0.05,
	Burst:   Burst{MeanGood: 400 * ms, MeanBad: 80 * ms, LossGood: 0.001, LossBad: 0.7},
	Reorder: 0.05, ReorderDelay: 25 * ms, Duplicate: 0.05, Corrupt: 0.05, Truncate: 0.05,
	Rate: 50_000, Queue: 4000, Overhead: UDPOverIPv4,
	Blackouts: []Window{{3 * time.Second, 3500 * ms}},
}

// trace sends as it is told by seed and hashes all that happens.
func trace(linkSeed, seed uint64) (uint64, Stats) {
	l := NewLink(linkSeed, storm)
	hash := fnv.New64a()
	l.Observe(func(at time.Duration, what What, datagram []byte) {
		fmt.Fprintf(hash, "%d %v %x\n", at, what, datagram)
	})
	rng, now := rand.NewPCG(seed, 0), time.Duration(0)
	for i := range 2000 {
		now += time.Duration(rng.Uint64() % uint64(10*ms))
		l.Send(now, number(i, 4+int(rng.Uint64()%400)))
		for {
			if _, ok := l.Receive(now); !ok {
				break
			}
		}
	}
	drain(l)
	return hash.Sum64(), l.Stats()
}

// The numbers are the same on every architecture. A change of them breaks
// every recorded transcript, so it has to be meant.
func TestTraceIsTheSameEverywhere(t *testing.T) {
	hash, stats := trace(1, 1)
	require.Equal(t, Stats{
		Sent: 2000, Delivered: 1714, Lost: 371, Duplicated: 85,
		LostInBurst: 169, LostInBlackout: 90, LostInQueue: 5,
		Reordered: 634, Corrupted: 88, Truncated: 74,
		BytesSent: 391920, BytesDelivered: 329277,
	}, stats)
	require.Equal(t, uint64(0x5e4b54b654d1eb02), hash)
}

func TestTraceDependsOnTheSeed(t *testing.T) {
	a, _ := trace(1, 1)
	same, _ := trace(1, 1)
	b, _ := trace(2, 1)
	require.Equal(t, a, same)
	require.NotEqual(t, a, b)
}

// Raising the loss takes datagrams away and changes nothing about the others.
func TestSettingsDoNotShiftOneAnother(t *testing.T) {
	cfg := storm
	cfg.Loss = 0
	before := sendMany(NewLink(1, cfg), 3000, 50, 10*ms)
	cfg.Loss = 0.3
	after := sendMany(NewLink(1, cfg), 3000, 50, 10*ms)
	require.Less(t, len(after), len(before)*3/4)
	have := map[arrival]bool{}
	for _, a := range before {
		have[a] = true
	}
	for _, a := range after {
		require.True(t, have[a], "%v", a)
	}

	cfg.Duplicate = 0
	cfg.Burst.LossBad = 0
	have = map[arrival]bool{}
	for _, a := range sendMany(NewLink(1, cfg), 3000, 50, 10*ms) {
		have[a] = true
	}
	missing := 0
	for _, a := range after {
		if !have[a] {
			missing++
		}
	}
	require.InDelta(t, len(after)*5/105, missing, 40, "the copies are gone and only they")
}

func TestObserver(t *testing.T) {
	var got []string
	l := NewLink(1, Config{Duplicate: 1, Truncate: 1, Corrupt: 1, Blackouts: []Window{{5, 6}}})
	l.Observe(func(at time.Duration, what What, datagram []byte) {
		got = append(got, fmt.Sprintf("%d %v %d", at, what, len(datagram)))
	})
	l.Send(1, make([]byte, 1000))
	l.Receive(2)
	l.Send(5, make([]byte, 10))
	l.Observe(nil)
	l.Send(7, nil)
	require.Len(t, got, 9)
	require.Equal(t, []string{"1 sent 1000", "1 duplicated 1000", "5 sent 10", "5 lost in blackout 10"},
		[]string{got[0], got[3], got[7], got[8]})
	require.Regexp(t, `^1 truncated \d+, 1 corrupted \d+, 2 delivered \d+$`, got[1]+", "+got[2]+", "+got[6])
	require.Equal(t, "lost", Lost.String())
	require.Equal(t, "delivered", Delivered.String())
	require.Equal(t, "What(200)", What(200).String())
}

func TestNoAllocationInSteadyState(t *testing.T) {
	l := NewLink(1, storm)
	l.Observe(func(time.Duration, What, []byte) {})
	datagram, now := make([]byte, 400), time.Duration(0)
	step := func() {
		now += 8 * ms
		l.Send(now, datagram)
		for {
			if _, ok := l.Receive(now); !ok {
				return
			}
		}
	}
	for range 2000 {
		step()
	}
	require.Zero(t, testing.AllocsPerRun(2000, step))
}

func TestWrongArgumentsPanic(t *testing.T) {
	for _, cfg := range []Config{
		{Loss: -0.1}, {Loss: 1.1}, {Corrupt: math.NaN()}, {Burst: Burst{LossBad: 2, MeanGood: ms, MeanBad: ms}},
		{Delay: -1}, {Jitter: math.MaxInt64}, {Rate: -1}, {Overhead: -1},
		{Burst: Burst{MeanBad: ms}}, {Burst: Burst{LossBad: 1}},
	} {
		require.Panics(t, func() { NewLink(1, cfg) }, "%+v", cfg)
	}
	l := NewLink(1, Config{})
	l.Send(5, nil)
	require.PanicsWithValue(t, "simnet: time goes back from 5ns to 4ns", func() { l.Send(4, nil) })
	require.Panics(t, func() { l.SetConfig(4, Config{}) })
}

func drawConfig(t *rapid.T) Config {
	p := rapid.SampledFrom([]float64{0, 0, 0.1, 0.5, 1})
	d := rapid.Custom(func(t *rapid.T) time.Duration { return time.Duration(rapid.IntRange(0, 50).Draw(t, "ms")) * ms })
	cfg := Config{
		Delay: d.Draw(t, "delay"), Jitter: d.Draw(t, "jitter"), Loss: p.Draw(t, "loss"),
		Reorder: p.Draw(t, "reorder"), ReorderDelay: d.Draw(t, "reorderDelay"), Duplicate: p.Draw(t, "duplicate"),
		Corrupt: p.Draw(t, "corrupt"), Truncate: p.Draw(t, "truncate"),
		Rate: rapid.SampledFrom([]int{0, 1000, 100_000}).Draw(t, "rate"), Queue: rapid.IntRange(-1, 500).Draw(t, "queue"),
		Overhead: rapid.IntRange(0, 50).Draw(t, "overhead"),
	}
	if rapid.Bool().Draw(t, "burst") {
		cfg.Burst = Burst{MeanGood: 20 * ms, MeanBad: 10 * ms, LossGood: p.Draw(t, "lossGood"), LossBad: p.Draw(t, "lossBad")}
	}
	if rapid.Bool().Draw(t, "blackout") {
		from := d.Draw(t, "from")
		cfg.Blackouts = []Window{{from, from + d.Draw(t, "length")}}
	}
	return cfg
}

// Sent + Duplicated = Delivered + Lost + in flight, nothing arrives before it
// could, and arrivals are in the order of Next, whatever the conditions.
func TestConservation(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := NewLink(rapid.Uint64().Draw(t, "seed"), drawConfig(t))
		var now, latest time.Duration
		delivered := 0
		t.Repeat(map[string]func(*rapid.T){
			"send": func(t *rapid.T) {
				l.Send(now, make([]byte, rapid.IntRange(0, 200).Draw(t, "size")))
			},
			"pass": func(t *rapid.T) { now += time.Duration(rapid.IntRange(0, 100).Draw(t, "ms")) * ms },
			"receive": func(t *rapid.T) {
				for {
					at, ok := l.Next()
					_, got := l.Receive(now)
					require.Equal(t, ok && at <= now, got)
					if !got {
						return
					}
					delivered++
					require.GreaterOrEqual(t, at, latest)
					latest = max(latest, at)
				}
			},
			"change": func(t *rapid.T) {
				l.SetConfig(now, drawConfig(t))
				latest = 0 // with less delay, new ones overtake
			},
			"": func(t *rapid.T) {
				s := l.Stats()
				require.Equal(t, s.Sent+s.Duplicated, s.Delivered+s.Lost+l.InFlight())
				require.Equal(t, delivered, s.Delivered)
				require.LessOrEqual(t, s.LostInBurst+s.LostInBlackout+s.LostInQueue, s.Lost)
				if at, ok := l.Next(); ok {
					require.GreaterOrEqual(t, at, time.Duration(0))
				}
			},
		})
	})
}

func TestHeapSorts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var h heap[flight]
		for i, at := range rapid.SliceOf(rapid.IntRange(0, 20)).Draw(t, "times") {
			h.push(flight{at: time.Duration(at), order: uint64(i)})
		}
		var last flight
		for first := true; len(h) > 0; first = false {
			f := h.pop()
			require.True(t, first || last.before(f))
			last = f
		}
	})
}
