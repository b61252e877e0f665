package transfer

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

// path is a rate that sends chunks over a path of a fixed capacity, without a game
// beside it: a queue and 30 ms each way, the receiver's clock an hour ahead.
type path struct {
	rate
	flight   flight
	file     *Outgoing
	now      int64
	capacity int64 // bytes a second
	delay    int64 // one way
	free     int64 // when the link has sent what it has
	answers  []answered
	asks     int
}

type answered struct{ at, serial, arrived int64 }

func newPath(capacity int64) *path {
	p := &path{capacity: capacity, delay: 30 * msec, file: newFleet().file}
	p.init(0, 0)
	return p
}

// run sends for so long, and returns the bytes sent.
func (p *path) run(d int64) int64 {
	before := p.flight.sent
	for end := p.now + d; p.now < end; {
		next := end
		if at := p.allowedAt(); at < next {
			next = max(at, p.now)
		}
		if len(p.answers) > 0 && p.answers[0].at <= next {
			a := p.answers[0]
			p.answers = p.answers[1:]
			p.now = max(p.now, a.at)
			p.hear(a)
			continue
		}
		if p.now = next; p.now < end {
			p.sendOne()
		}
	}
	return p.flight.sent - before
}

func (p *path) sendOne() {
	r, _ := p.file.take(p.units())
	size := chunkHeader + (r.to-r.from)*unit + wireOverhead
	serial := p.flight.count
	ask := p.leave(serial, size, p.now, 80*msec)
	p.flight.add(chunk{file: p.file, number: serial, sentAt: p.now, unit: r.from, units: uint8(r.to - r.from), size: uint16(size), ask: ask})
	p.free = max(p.free, p.now) + size*second/p.capacity
	if ask {
		p.asks++
		p.answers = append(p.answers, answered{p.free + 2*p.delay, serial, p.free + p.delay})
	}
}

func (p *path) hear(a answered) {
	for k := p.flight.first; k <= a.serial; k++ {
		if c := p.flight.chunks.At(k); c.state == flying {
			c.state = arrived
			p.flight.flying -= int64(c.size)
		}
	}
	c := p.flight.chunks.At(a.serial)
	p.answered(c, a.serial, uint32(a.arrived/1000+3600_000_000), p.flight.flying, 2*p.delay, p.now)
	p.judge(&p.flight, p.now, 80*msec)
}

// queue is how much stands before the link, in time.
func (p *path) queue() int64 { return max(0, p.free-p.now) }

func TestAStartFindsTheLink(t *testing.T) {
	for _, capacity := range []int64{20_000, 125_000, 250_000, 1_250_000, 12_500_000, 125_000_000} {
		p := newPath(capacity)
		var most int64
		for range 1500 {
			p.run(msec)
			most = max(most, p.queue())
		}
		require.InDelta(t, float64(capacity), float64(p.bytes), 0.13*float64(capacity), capacity)
		require.LessOrEqual(t, most, max(25*msec, 6*600*second/capacity), capacity)
		p.run(second)
		require.GreaterOrEqual(t, p.run(2*second), 2*capacity*88/100, capacity)
	}
}

func TestARateFollowsALinkDownAndUp(t *testing.T) {
	p := newPath(500_000)
	p.run(2 * second)
	p.capacity = 125_000
	p.run(second)
	require.Less(t, p.bytes, int64(160_000))
	p.run(2 * second)
	require.Less(t, p.queue(), 20*msec)
	require.Greater(t, p.bytes, int64(90_000))
	p.capacity = 500_000
	p.run(2 * second)
	require.Greater(t, p.bytes, int64(420_000))
}

// A path that gets longer is no queue: five cuts that change nothing show it.
func TestALongerPathIsNoQueue(t *testing.T) {
	p := newPath(500_000)
	p.run(2 * second)
	p.delay += 50 * msec
	p.run(5 * second)
	require.Greater(t, p.bytes, int64(420_000))
}

func TestMaxRateIsNotExceeded(t *testing.T) {
	p := newPath(12_500_000)
	p.init(200_000, 0)
	require.LessOrEqual(t, p.run(second), int64(200_000*105/100))
	for range 20 {
		require.LessOrEqual(t, p.run(second/5), int64(200_000/5+2000))
	}
	p.init(2000, 0)
	require.LessOrEqual(t, p.run(10*second), int64(20_000+3000), "below the least rate, too")
}

// Losses that are always there do not count, others do.
func TestUsualLossesDoNotCount(t *testing.T) {
	var r rate
	r.init(0, 0)
	r.rtt = 60 * msec
	r.set(1_000_000)
	got, gone, chunks, now := int64(0), int64(0), int64(0), second
	round := func(lost int64) {
		got, gone, chunks, now = got+100_000-1000*lost, gone+1000*lost, chunks+100, now+60*msec
		r.count(got, gone, chunks, now)
	}
	for range 10 {
		round(20)
	}
	require.EqualValues(t, 1_000_000, r.bytes)
	round(32)
	require.EqualValues(t, 1_000_000, r.bytes, "12 % more than usual")
	round(33)
	require.EqualValues(t, 1_000_000*67/100*share/100, r.bytes, "13 % more")
	require.False(t, r.starting)
	before := r.bytes
	round(100)
	require.Equal(t, before/4, r.bytes, "a quarter at least")
	before = r.bytes
	r.count(got, gone, chunks+100, now+second)
	require.Equal(t, before, r.bytes, "nothing is known of these")
}

func TestTheSizeOfChunksFollowsTheRate(t *testing.T) {
	var r rate
	for _, step := range []struct{ bytes, units int64 }{
		{100_000, 1}, {bigAbove, 1}, {bigAbove + 1, 2}, {smallBelow, 2}, {smallBelow - 1, 1}, {bigAbove - 1, 1},
	} {
		r.set(step.bytes)
		require.Equal(t, step.units, r.units(), step.bytes)
	}
	r.set(0)
	require.EqualValues(t, leastRate, r.bytes)
	r.set(1 << 60)
	require.EqualValues(t, mostRate, r.bytes)
}

func TestAsks(t *testing.T) {
	p := newPath(12_500_000)
	p.run(2 * second)
	count, asks := p.flight.count, p.asks
	p.run(second)
	share := float64(p.asks-asks) / float64(p.flight.count-count)
	require.InDelta(t, 1./askEvery, share, 0.01, "every eleventh on a fast link")
	slow := newPath(30_000)
	slow.run(5 * second)
	require.InDelta(t, slow.flight.count, slow.asks, 5, "each where a chunk takes longer than 10 ms")
}

// After a long rest nothing is known any more.
func TestARestBeginsAnew(t *testing.T) {
	p := newPath(12_500_000)
	p.run(2 * second)
	require.Greater(t, p.bytes, int64(10_000_000))
	p.now += restTime + second
	p.sendOne()
	require.EqualValues(t, firstRate, p.bytes)
	require.True(t, p.starting)
	require.Equal(t, probeSending, p.probe.state)
}

func TestLowestForgets(t *testing.T) {
	var l lowest
	require.EqualValues(t, 50, l.add(50, 0))
	require.EqualValues(t, 40, l.add(40, second))
	require.EqualValues(t, 40, l.add(90, 9*second))
	require.EqualValues(t, 40, l.add(90, 10*second), "a new period; the one before counts")
	require.EqualValues(t, 40, l.add(80, 19*second))
	require.EqualValues(t, 80, l.add(95, 20*second))
	require.EqualValues(t, 95, l.add(95, 30*second))
}

// The receiver's clock wraps after 71 minutes, and may stand anywhere.
func TestTheReceiversClockWraps(t *testing.T) {
	for _, start := range []uint32{0, 1<<31 - 5000, 1<<32 - 5000} {
		var d delays
		for i := range int64(100) {
			c := &chunk{units: 1, sentAt: i * msec}
			m, queue := d.add(c, i, start+uint32(i*1000)+uint32(i%3*500), i*msec)
			require.EqualValues(t, i%3*500_000, queue, i)
			require.Equal(t, i, m.serial)
		}
	}
}

func TestAClockThatIsSetIsNoQueue(t *testing.T) {
	var d delays
	at := func(now, delay int64) (queue int64) {
		_, queue = d.add(&chunk{units: 1, sentAt: now}, 0, uint32((now+delay)/1000), now)
		return queue
	}
	require.Zero(t, at(second, 30*msec))
	require.Equal(t, longestQueue, at(2*second, 30*msec+longestQueue), "as long as a queue may be")
	require.Zero(t, at(3*second, 31*msec+longestQueue))
	require.Equal(t, 9*msec, at(4*second, 40*msec+longestQueue), "counted from there")
}

// A probe of eleven chunks of 1,000 bytes, one each millisecond, at twice a rate of
// 500,000 bytes a second.
func TestWhatAProbeShows(t *testing.T) {
	const rate, aimed = 500_000, 1_000_000
	for name, c := range map[string]struct {
		took, late  int64
		lost        int
		usual, poll int64
		got         int64
		passed      bool
	}{
		"as fast as it was sent":        {took: 10 * msec, late: 10 * msec, got: aimed, passed: true},
		"faster":                        {took: 10 * msec, late: 5 * msec, got: aimed, passed: true},
		"a little slower":               {took: 9 * msec, late: 10 * msec, got: aimed, passed: true},
		"slower":                        {took: 9 * msec, late: 10*msec + 1, got: aimed - 1},
		"half as fast":                  {took: 10 * msec, late: 20 * msec, got: aimed / 2},
		"on ticks, one tick later":      {took: 10 * msec, late: 16 * msec, poll: 6 * msec, got: aimed, passed: true},
		"on ticks, two ticks later":     {took: 10 * msec, late: 22 * msec, poll: 6 * msec, got: 10_000 * second / (28 * msec)},
		"one of ten lost":               {took: 10 * msec, late: 10 * msec, lost: 1, got: aimed, passed: true},
		"two of ten lost":               {took: 10 * msec, late: 10 * msec, lost: 2, got: aimed * 8 / 10},
		"two of ten lost, as usual":     {took: 10 * msec, late: 10 * msec, lost: 2, usual: 100, got: aimed, passed: true},
		"sent half as fast as it aims":  {took: 20 * msec, late: 20 * msec, got: aimed / 2, passed: true},
		"sent not quite half as fast":   {took: 20*msec - 100_000, late: 10 * msec, got: aimed, passed: true},
		"sent much slower than it aims": {took: 100 * msec, late: 10 * msec, got: aimed / 10, passed: true},
	} {
		f := new(flight)
		for i := range 11 {
			f.add(chunk{units: 2, size: 1000, state: arrived})
			if i >= 1 && i <= c.lost {
				f.chunks.At(int64(i)).state = missing
			}
		}
		p := probe{gain: 200, begin: mark{serial: 0, sum: 1000, sentAt: second, arrivedAt: -second}}
		p.end = mark{serial: 10, sum: 11_000, sentAt: second + c.took, arrivedAt: -second + c.late}
		got, passed, ok := p.result(f, rate, c.usual, c.poll)
		require.True(t, ok, name)
		require.Equal(t, c.passed, passed, name)
		require.Equal(t, c.got, got, name)
	}
	_, _, ok := new(probe).result(new(flight), rate, 0, 0)
	require.False(t, ok, "nothing was answered")
}

// A probe whose last chunk is lost is judged by what was answered; one that nobody
// answers is sent again.
func TestAProbeIsNotWaitedForForEver(t *testing.T) {
	var p probe
	p.start(5, second, gain, 8)
	for serial := int64(5); serial <= 12; serial++ {
		require.Equal(t, serial == 5 || serial >= 10, p.sent(serial, second, 80*msec, false), serial)
	}
	require.Equal(t, probeWaiting, p.state)
	require.Equal(t, second+probePatience, p.lateAt())
	p.answered(mark{serial: 5, sum: 1})
	require.Equal(t, second+probePatience, p.lateAt(), "one answer tells nothing")
	p.answered(mark{serial: 10, sum: 6})
	require.Equal(t, second+80*msec, p.lateAt())
	p.expire(second+80*msec-1, 80*msec)
	require.Equal(t, probeWaiting, p.state)
	p.expire(second+80*msec, 80*msec)
	require.Equal(t, probeAnswered, p.state)

	p.start(20, second, gain, 8)
	p.sent(20, second, 80*msec, false)
	p.expire(second+80*msec, 80*msec)
	require.Equal(t, probeSending, p.state)
	p.expire(second+80*msec+1, 80*msec)
	require.Equal(t, probeWanted, p.state, "the file had ended in the middle")
}

// When the wait for an answer ends, the next chunk may be allowed.
func TestDeadlineKnowsWhenAProbeIsLate(t *testing.T) {
	r := rate{nextAt: 9 * second, probes: 1, probe: probe{state: probeWaiting, expires: 3 * second}}
	require.Equal(t, 9*second, r.allowedAt())
	require.Equal(t, 3*second, r.soonerAt())
	r.probe.state = probeSending
	require.Equal(t, int64(math.MaxInt64), r.soonerAt())
}

// However rarely the caller says that it calls, MaxRate holds.
func TestLongestPoll(t *testing.T) {
	var r rate
	r.init(1, math.MaxInt64)
	for range 3 {
		r.leave(0, 1000, 0, 80*msec)
	}
	require.Greater(t, r.allowedAt(), 1000*second, "three chunks of 1,000 bytes, one byte a second")
}

// The last two chunks of a probe leave together: how far apart they arrive tells how fast
// the link is, if the receiver looked at each as it arrived.
func TestWhatAPairShows(t *testing.T) {
	const sent = 2500 * msec / 1000 // between the two before
	for name, c := range map[string]struct{ before, apart, want int64 }{
		"10 Mbit/s":                        {sent, 800_000, 1_250_000},
		"100 Mbit/s, half as far as sent":  {sent / 2, 80_000, 12_500_000},
		"100 Mbit/s, twice as far as sent": {sent * 2, 80_000, 12_500_000},
		"closer than that":                 {sent/2 - 1000, 80_000, 0},
		"further than that":                {sent*2 + 1000, 80_000, 0},
		"a receiver on ticks":              {0, 0, 0},
		"the tick between":                 {16 * msec, 0, 0},
		"both within a microsecond":        {sent, 0, 1_000_000_000},
		"overtaken":                        {sent, -1000, 0},
	} {
		var p probe
		p.start(7, 0, gain, 4)
		p.answered(mark{serial: 7, sum: 1000, arrivedAt: 1})
		at := second
		p.answered(mark{serial: 8, sum: 2000, sentAt: sent, arrivedAt: at})
		p.answered(mark{serial: 9, sum: 3000, sentAt: 2 * sent, arrivedAt: at + c.before})
		require.Zero(t, p.pair, name)
		p.answered(mark{serial: 10, sum: 4000, sentAt: 2 * sent, arrivedAt: at + c.before + c.apart})
		require.Equal(t, c.want, p.pair, name)
	}
	var p probe
	p.start(7, 0, gain, 4)
	p.answered(mark{serial: 8, sum: 2000, sentAt: sent, arrivedAt: second})
	p.answered(mark{serial: 10, sum: 4000, sentAt: 2 * sent, arrivedAt: second + sent})
	require.Zero(t, p.pair, "one of the two is missing")
}

// A fast link is found within two round trips.
func TestAStartIsQuick(t *testing.T) {
	for _, capacity := range []int64{1_250_000, 12_500_000} {
		p := newPath(capacity)
		p.run(140 * msec)
		require.InDelta(t, capacity, p.bytes, 0.1*float64(capacity))
	}
}

// Where the link becomes much slower, what is in flight makes a queue, which one pause
// lets out: the link sends what it has, and nothing comes on top.
func TestAPauseAfterALinkBecameSlower(t *testing.T) {
	p := newPath(500_000)
	p.run(2 * second)
	p.capacity = 125_000
	for p.bytes > 125_000 {
		p.run(msec)
	}
	stood := p.queue()
	p.run(stood - 20*msec)
	require.Less(t, p.queue(), 60*msec, "after %v ms", stood/msec)
}

// A pair may tell of a burst that the link lets through, and of nothing more: what may be
// in flight at the start is bounded by what has arrived.
func TestAStartThatAPairMisled(t *testing.T) {
	p := newPath(12_500_000)
	p.run(75 * msec) // the second probe, at what a pair showed
	require.Greater(t, p.probe.gain, int64(5000))
	require.InDelta(t, longestRow, p.flight.sent-p.flight.chunks.At(3).sum, 2000)
	r := &p.rate
	r.set(12_500_000)
	r.count(0, 0, 0, p.now)
	require.EqualValues(t, unproven, r.window(60*msec))
	r.count(100_000, 0, 0, p.now)
	require.EqualValues(t, unproven+200_000, r.window(60*msec))
	r.count(10_000_000, 0, 0, p.now)
	require.EqualValues(t, 1_500_000, r.window(60*msec), "two round trips' worth")
	r.restart()
	r.set(12_500_000)
	require.EqualValues(t, unproven, r.window(60*msec), "after a rest, too")
}

// A queue stands if the least of some answers in a row is above the limit for standTime.
// One that is far above needs one answer.
func TestWhatStands(t *testing.T) {
	const limit = 10 * msec
	at := func(now int64) mark { return mark{sum: now / 1000, sentAt: now, arrivedAt: now} }
	var s standing
	add := func(now, queue int64) (least int64, done bool) {
		least, got, done := s.add(at(now), queue, limit, 0)
		require.True(t, !done || got == 1_000_000)
		return least, done
	}
	expect := func(now, queue, want int64) {
		t.Helper()
		least, done := add(now, queue)
		require.Equal(t, want, least)
		require.Equal(t, want != 0, done)
	}
	expect(msec, 12*msec, 0)
	expect(11*msec-1, 15*msec, 0)
	expect(11*msec, 14*msec, 12*msec)
	expect(21*msec, 11*msec, 11*msec) // the next look begins with the latest answer
	expect(22*msec, limit+clearQueue-1, 0)
	expect(23*msec, limit+clearQueue, limit+clearQueue)
	expect(33*msec, 13*msec, 13*msec)
	_, _, done := s.add(at(43*msec), 14*msec, limit, 5*msec)
	require.False(t, done, "ticks of both ends")
	_, _, done = s.add(at(53*msec), 14*msec, limit, 5*msec)
	require.True(t, done)
	_, _, done = s.add(at(54*msec), limit+clearQueue+10*msec-1, limit, 5*msec)
	require.False(t, done)
	_, _, done = s.add(at(55*msec), limit+clearQueue+10*msec, limit, 5*msec)
	require.True(t, done)
}

// On ticks, probes are long: their gain is small once the link's limit was met.
func TestGains(t *testing.T) {
	for _, c := range []struct {
		starting   bool
		poll, pair int64
		want       int64
	}{
		{true, 0, 0, gain}, {true, 0, 10 * firstRate, 1000}, {true, 0, firstRate, gain}, {true, 16 * msec, 10 * firstRate, gain},
		{false, 0, 10 * firstRate, gain}, {false, 16 * msec, 0, tickGain},
	} {
		var r rate
		r.init(0, c.poll)
		r.starting, r.probe.pair = c.starting, c.pair
		require.Equal(t, c.want, r.gain(), "%+v", c)
	}
}
