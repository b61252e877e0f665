package ackbits

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ackbits/ackbits/simnet"
)

// sampled is a path that has seen so many round trips, a tick apart.
func sampled(n int, roundTrip time.Duration) (p path, now int64) {
	for range n {
		now += int64(16 * ms)
		p.sample(now-int64(roundTrip), now, standsAboveMillis)
	}
	return p, now
}

// A queue stands once the least of eight samples lies 35 ms above the least of all,
// and no sooner; it is gone once it was small for two seconds.
func TestQueueStandsByTheLeastOfEightSamples(t *testing.T) {
	p, now := sampled(20, 50*ms)
	require.Equal(t, int64(50*ms), p.floor())
	for n := range newestSamples {
		require.False(t, p.stands, n)
		now += int64(16 * ms)
		require.Equal(t, n == newestSamples-1, p.sample(now-int64(86*ms), now, standsAboveMillis))
	}
	require.True(t, p.stands)
	require.Equal(t, int64(36*ms), p.queue(newestSamples))
	drained := now + int64(16*ms)
	for now = drained; now <= drained+standsFor; now += int64(16 * ms) {
		p.sample(now-int64(50*ms), now, standsAboveMillis)
		require.Equal(t, now-drained+int64(16*ms) <= standsFor, p.stands, time.Duration(now-drained))
	}
	for _, above := range []time.Duration{34 * ms, 35 * ms} {
		p, now := sampled(20, 50*ms)
		for range 50 {
			now += int64(16 * ms)
			p.sample(now-int64(50*ms+above), now, standsAboveMillis)
		}
		require.False(t, p.stands, above)
	}
}

// What is left of a queue counts from above 8.75 ms on.
func TestQueueIsGoneAtStoodBelow(t *testing.T) {
	for roundTrip, stands := range map[time.Duration]bool{58800 * time.Microsecond: false, 58900 * time.Microsecond: true} {
		p, now := sampled(20, 50*ms+50*time.Microsecond)
		for range newestSamples {
			now += int64(16 * ms)
			p.sample(now-int64(100*ms), now, standsAboveMillis)
		}
		require.True(t, p.stands)
		for until := now + standsFor; now <= until; {
			now += int64(16 * ms)
			p.sample(now-int64(roundTrip), now, standsAboveMillis)
		}
		require.Equal(t, stands, p.stands, roundTrip)
	}
}

// A queue is above the least of this period though the one before was as slow.
func TestQueueStandsThoughTheWayWasLongBefore(t *testing.T) {
	p, now := sampled(1, 50*ms)
	now += floorSpan
	p.sample(now-int64(ms), now, standsAboveMillis)
	for range newestSamples {
		now += int64(16 * ms)
		p.sample(now-int64(51*ms), now, standsAboveMillis)
	}
	require.True(t, p.stands)
}

// A way that has become longer is no queue for ever.
func TestFloorIsOfTheLastTenToTwentySeconds(t *testing.T) {
	p, now := sampled(1, 50*ms)
	for range 19 * 60 {
		now += int64(time.Second) / 60
		p.sample(now-int64(150*ms), now, standsAboveMillis)
	}
	require.Equal(t, int64(50*ms), p.floor())
	for range 2 * 60 {
		now += int64(time.Second) / 60
		p.sample(now-int64(150*ms), now, standsAboveMillis)
	}
	require.Equal(t, int64(150*ms), p.floor())
	require.Zero(t, p.queue(newestSamples))
}

// What waits goes in pieces of a poll and a datagram, and opensAt says when.
func TestPaceSpreadsWhatWaits(t *testing.T) {
	p, now := sampled(20, 100*ms)
	var w window
	w.init(int64(10 * ms))
	w.setPace(0, &p, now)
	require.Equal(t, int64(100*ms)*paceShare/5/firstWindow, w.pace)
	w.queue(100_000)
	sent := 0
	for until := now + int64(100*ms); now < until; now += int64(10 * ms) {
		burst := 0
		for w.open(now) {
			w.fly(MaxDatagramSize)
			w.sent(MaxDatagramSize, now)
			burst++
		}
		require.LessOrEqual(t, burst, 4, "a poll and a datagram, at 5 ms each")
		if w.full() {
			break
		}
		at := w.opensAt()
		require.False(t, w.open(at-1))
		require.True(t, w.open(at))
		sent += burst
	}
	require.Equal(t, int64(14*MaxDatagramSize), w.inFlight, "the whole window, within a round trip")
	w.miss(MaxDatagramSize)
	require.False(t, w.full(), "one may go for each that is lost")
}

// While everything fits, everything goes.
func TestWindowIsOpenWhileEverythingFits(t *testing.T) {
	var w window
	w.init(0)
	w.pace = 1 << 30
	w.queue(firstWindow)
	require.False(t, w.crowded())
	w.fly(firstWindow)
	w.sent(firstWindow, 0)
	require.True(t, w.open(1))
	w.queue(1)
	require.True(t, w.crowded())
	require.False(t, w.open(1))
	w.arrive(1, 1)
	require.True(t, w.open(1))
	var none *window
	none.queue(1 << 30)
	require.False(t, none.crowded())
	require.True(t, none.open(0))
}

// turned is a window after a round with so many losses and such a queue.
func turned(t *testing.T, before int64, limited bool, of, lost int64, roundTrip time.Duration) window {
	p, now := sampled(20, 50*ms)
	for range newestSamples {
		now += int64(16 * ms)
		p.sample(now-int64(roundTrip), now, standsAboveMillis)
	}
	var w window
	w.init(0)
	w.size, w.steady = before, true
	w.limitedAt = now
	w.round = round{most: before, limited: limited, shares: shares{of, lost}}
	w.turn(w.standing(&p), &p, now)
	require.GreaterOrEqual(t, w.size, int64(leastWindow))
	return w
}

// The window is cut for a queue to what leaves 20 ms of it, for losses without one
// to what came through, and grows where it was the limit and nothing stands.
func TestWindowFollowsQueueAndLoss(t *testing.T) {
	require.EqualValues(t, 60_000*70/150, turned(t, 60_000, true, 30, 0, 150*ms).size, "a queue of 100 ms")
	require.EqualValues(t, 60_000, turned(t, 60_000, false, 30, 0, 50*ms).size, "not the limit")
	require.EqualValues(t, 60_000+MaxDatagramSize, turned(t, 60_000, true, 30, 0, 50*ms).size)
	require.EqualValues(t, 60_000+MaxDatagramSize, turned(t, 60_000, true, 30, 3, 50*ms).size, "chance")
	require.EqualValues(t, 60_000*60/100, turned(t, 60_000, true, 30, 12, 50*ms).size, "40 % of loss")
	require.EqualValues(t, leastWindow, turned(t, 6_000, true, 30, 30, 50*ms).size)
	small := turned(t, 60_000, true, 30, 12, 50*ms)
	require.True(t, small.smooth(small.lossAt+smoothFor-1))
	require.False(t, small.smooth(small.lossAt+smoothFor))
}

// Each onset of a queue stops copies for twice as long, until it was long ago.
func TestRestraintDoubles(t *testing.T) {
	var r restraint
	now := int64(time.Minute)
	for _, silence := range []int64{1, 2, 4, 8, 16, 32, 32} {
		r.onset(now)
		require.Equal(t, now+silence*int64(time.Second), r.until)
		r.onset(r.until - r.pause/2 - 1)
		require.Equal(t, now+silence*int64(time.Second), r.until, "the same onset")
		now = r.until
	}
	r.onset(r.until + 2*r.pause + 1)
	require.Equal(t, leastRestraint, r.pause)
}

// A peer withholds when six application datagrams are missing and two of the
// library's among them came through, until one is acknowledged.
func TestRefusalIsNoticed(t *testing.T) {
	var r refusal
	for range missedApplication {
		require.False(t, r.lost(false))
		r.count(false)
		require.False(t, r.lost(true))
	}
	require.False(t, r.passed(true))
	require.True(t, r.passed(true))
	require.Equal(t, missedApplication, r.counted)
	require.False(t, r.passed(true), "found once")
	require.True(t, r.lost(false))
	require.False(t, r.passed(false))
	require.False(t, r.on)
	require.False(t, r.lost(false))
}

// An event that others overtook three times goes in datagrams of 576 bytes, after six
// times alone: a path that swallows larger ones lets it through.
func TestWhatIsLostAgainAndAgainGoesInSmallDatagrams(t *testing.T) {
	for _, adaptive := range []bool{false, true} {
		var clock ManualClock
		clock.Set(time.Unix(1000, 0))
		var ends [2]*scarEnd
		for i := range ends {
			s, err := NewSession(Config{Clock: &clock, Adaptive: adaptive})
			require.NoError(t, err)
			ends[i] = &scarEnd{Session: s}
		}
		p := simnet.NewPair(1, &clock, ends[0], ends[1], simnet.Config{Delay: 20 * ms}, simnet.Config{Delay: 20 * ms})
		ends[0].swallows = 600
		for range 60 {
			_, err := ends[0].Send(make([]byte, 40))
			require.NoError(t, err)
		}
		p.Run(5 * time.Second)
		require.Equal(t, 60, ends[1].events, "adaptive: %t", adaptive)
		require.LessOrEqual(t, ends[0].largestAfter, 600)
	}
}

// scarEnd sends over a path that swallows what is larger.
type scarEnd struct {
	*Session
	swallows     int
	events       int
	largestAfter int // of what was sent last
}

func (e *scarEnd) Receive(datagram []byte) {
	if in, err := e.Session.Receive(datagram); err == nil {
		e.events += len(in.Events)
	}
}

func (e *scarEnd) Due(send func([]byte)) {
	for datagram := range e.Session.Due(make([]byte, MaxDatagramSize)) {
		e.largestAfter = len(datagram)
		if e.swallows == 0 || len(datagram) <= e.swallows {
			send(datagram)
		}
	}
}

// Deadline neither spins nor sleeps: nearly every call at it sends something.
func TestDeadlineOfAFullWindowNeitherSpinsNorSleeps(t *testing.T) {
	for _, rate := range []int{0, 60_000, 250_000} {
		var clock ManualClock
		clock.Set(time.Unix(1000, 0))
		var ends [2]*punctual
		for i := range ends {
			s, err := NewSession(Config{Clock: &clock, Adaptive: true, Backlog: 2000})
			require.NoError(t, err)
			ends[i] = &punctual{Session: s, clock: &clock}
		}
		network := simnet.Config{Delay: 30 * ms, Rate: rate, Queue: 20_000, Loss: 0.05}
		p := simnet.NewPair(2, &clock, ends[0], ends[1], network, network)
		p.At(time.Second, func() {
			for range 1000 {
				_, err := ends[0].Send(make([]byte, 1000))
				require.NoError(t, err)
			}
		})
		require.True(t, p.RunUntil(func() bool { return p.Now() > time.Second && ends[0].InFlight() == 0 }, time.Minute), rate)
		require.LessOrEqual(t, float64(ends[0].asked), 1.1*float64(ends[0].answered), "rate %d: calls at Deadline and those that sent", rate)
	}
}

// punctual counts the calls of Due at its deadline.
type punctual struct {
	*Session
	clock           *ManualClock
	asked, answered int
}

func (e *punctual) Receive(datagram []byte) { _, _ = e.Session.Receive(datagram) }

func (e *punctual) Due(send func([]byte)) {
	at, ok := e.Deadline()
	due, sent := ok && !at.After(e.clock.Now()), 0
	for datagram := range e.Session.Due(make([]byte, MaxDatagramSize)) {
		send(datagram)
		sent++
	}
	if due {
		e.asked++
		e.answered += b2i(sent > 0)
	}
}

// A window that is full all the time allocates nothing either.
func TestFullWindowAllocatesNothing(t *testing.T) {
	p := newBenchPair(t, Config{Adaptive: true, Backlog: 300, PollInterval: 16 * ms})
	event, n := make([]byte, 1000), 0
	tick := func() {
		p.clock.Advance(16 * ms)
		for p.a.Room() > 0 {
			p.a.Send(event)
		}
		for datagram := range p.a.Due(p.buf) {
			if n++; n%20 > 0 { // the others are lost
				p.b.Receive(datagram)
			}
		}
		if answer, _, err := p.b.AppendDatagram(p.buf, TypeSnapshot, nil); err == nil {
			p.a.Receive(answer)
		}
	}
	require.Zero(t, allocations(300, tick))
	require.True(t, p.a.channel.sender.window.crowded())
	require.NoError(t, p.a.Err())
}

// With a full window a loss lets first copies go, which no budget holds back: Deadline
// must not name the later time at which the budget allows the next further copy.
func TestDeadlineTellsOfFirstCopiesThatALossLetsGo(t *testing.T) {
	var clock ManualClock
	clock.Set(time.Unix(1, 0))
	s, err := NewSession(Config{Clock: &clock, Adaptive: true, EventRate: 700, Heartbeat: time.Second, StallTimeout: -1})
	require.NoError(t, err)
	for range 60 {
		_, err := s.Send(make([]byte, 600))
		require.NoError(t, err)
	}
	for range s.Due(nil) {
	}
	require.Greater(t, s.Stats().EventsSent, uint64(0))
	for s.Stats().EventsSent < 60 {
		at, ok := s.Deadline()
		require.True(t, ok)
		if at.After(clock.Now()) {
			clock.Set(at.Add(-1))
			_, ok = s.AppendDue(nil)
			require.False(t, ok, "a nanosecond before %v", at)
			clock.Set(at)
		}
		_, ok = s.AppendDue(nil)
		require.True(t, ok, "at %v", at)
	}
}

// What counts as a queue is a choice of Adaptive; without it, it is at least a heartbeat.
func TestQueueStandsAboveAHeartbeatOrTwoTicks(t *testing.T) {
	for _, tc := range []struct {
		cfg  Config
		want time.Duration
	}{
		{Config{}, 50 * ms},
		{Config{Heartbeat: 50*ms - 1}, 49 * ms},
		{Config{Heartbeat: 20 * ms}, 35 * ms},
		{Config{Adaptive: true}, 35 * ms},
		{Config{Adaptive: true, Heartbeat: 60 * ms}, 35 * ms},
		{Config{Heartbeat: time.Hour, Timeout: 2 * time.Hour}, 65535 * ms},
	} {
		c, _ := newChannel(t, tc.cfg)
		require.Equal(t, tc.want, time.Duration(c.sender.queueAbove)*ms, "%+v", tc.cfg)
	}
}

// On a link that loses 30 % by itself, a round that loses 44 % of 27 datagrams is chance.
func TestChanceIsNoOverflow(t *testing.T) {
	for _, tc := range []struct {
		usual, lost, of int64
		cut             bool
	}{{30, 12, 27, false}, {30, 13, 27, true}, {0, 3, 27, true}} {
		w := window{usual: shares{of: 100, lost: tc.usual}, round: round{shares: shares{of: tc.of, lost: tc.lost}}}
		require.Equal(t, tc.cut, w.unusual(w.round.percent()-tc.usual), "%+v", tc)
	}
}

// The start of a window ends at the same queue however much the path jitters: ticks look
// like jitter, and a round of growth more would fill a queue of 32 KiB.
func TestJitterDoesNotProlongTheStart(t *testing.T) {
	p, now := sampled(20, 50*ms)
	p.jitter = uint32(6*ms) / jitterUnit
	var w window
	w.init(0)
	w.allowFor(&p)
	require.Positive(t, w.jitter)
	w.queue(int(w.size))
	p.sample(now-int64(50*ms)-startQueue-int64(sampleUnit), now, standsAboveMillis)
	w.acknowledged(shares{}, int64(50*ms), new(sentLog), &p, now)
	require.True(t, w.steady)
}
