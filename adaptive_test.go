package ackbits

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// A ring that gives back a loss must not take the slot behind it for one: every
// new event would go five times instead of twice.
func TestForgivenLossDoesNotSpoilTheEstimate(t *testing.T) {
	for _, losses := range []int64{1, 7, 8, 23, 24, 25, 30, 100} {
		a := adaptiveRule{flow: new(flow)}
		for i := range losses {
			a.assessed = (i + 1) * 50
			a.lose(a.assessed)
		}
		a.assessed += 25
		before, _ := a.lossRate()
		a.reordered(a.assessed-25, &path{})
		after, pairs := a.lossRate()
		require.LessOrEqual(t, after, before, "%d losses", losses)
		require.Zero(t, pairs)
		a.replan(&path{})
		require.LessOrEqual(t, a.plan(0).left, uint8(1), "2 %% of loss needs one copy more at most")
	}
}

// losing is what is known of a link that lost so many datagrams, the last one just
// now and the others each so far before it.
func losing(n int, every int64) *adaptiveRule {
	a := &adaptiveRule{flow: new(flow), assessed: 10_000}
	for i := range int64(n) {
		a.lose(a.assessed - (int64(n)-1-i)*every)
	}
	return a
}

// What is lost is measured against what was sent within the memory, or since the
// oldest of as many losses as are kept.
func TestLossRateIsThatOfTheNewestLosses(t *testing.T) {
	for _, tc := range []struct {
		what            string
		assessed        int64
		n, first, every int64 // the losses
		rate, pairs     int64
	}{
		{"still remembered", 10_000, 1, 10_000 - lossMemory, 1, 416, 0}, // 1 of 2,400
		{"forgotten", 10_000, 1, 10_000 - lossMemory - 1, 1, 0, 0},
		{"fewer than are kept, of the memory", 10_000, 23, 9_770, 10, 9_583, 0},
		{"all but the forgotten one", 10_000, 24, 10_000 - lossMemory - 1, 100, 9_583, 0},
		{"as many as are kept, since the oldest", 10_000, 24, 9_000, 43, 24_000, 0},
		{"bounded by what came through since", 10_000, 24, 9_000, 10, 2 * million / 770, 0},
		{"but not by a short run", 10_000, 24, 9_951 - 23*10, 10, 24 * million / 279, 0},
		{"of the fewest that count", 50, 1, 25, 1, million / minSampled, 0},
		{"of all that were sent", 200, 1, 25, 1, 5_000, 0},
		{"24 of 31, in a row", 10_000, 24, 10_000 - 31, 1, 774_193, 958_333}, // 23 of 24 after another
		{"all", 10_000, 24, 10_000 - 24, 1, million, 958_333},
		{"too few to look like bursts", 10_000, 7, 9_993, 1, 2_916, 0},
		{"enough for that", 10_000, 8, 9_992, 1, 3_333, 875_000},
	} {
		a := &adaptiveRule{flow: new(flow), assessed: tc.assessed}
		for i := range tc.n {
			a.lose(tc.first + i*tc.every)
		}
		rate, pairs := a.lossRate()
		require.Equal(t, [2]int64{tc.rate, tc.pairs}, [2]int64{rate, pairs}, tc.what)
	}
}

// How long a round trip takes matters only where losses come in bursts.
func TestCopiesFollowTheLossRate(t *testing.T) {
	for _, tc := range []struct {
		what   string
		losses int
		every  int64
		copies uint8
	}{
		{"none", 0, 1, 0},
		{"5 of 1,000 are tolerated", 12, 200, 0},
		{"one more is not", 13, 190, 1},
		{"1 %", 24, 100, 1},
		{"6 %", 24, 17, 1},
		{"8 %", 24, 13, 2},
		{"half", 24, 2, 4},
		{"7 in a row of which every other arrived are few", 7, 2, 0},
		{"8 such are a change", 8, 2, 4},
		{"8 within 70 are 6 %", 8, 10, 1},
		{"8 within 49 are 9 %", 8, 7, 2},
	} {
		a := losing(tc.losses, tc.every)
		a.replan(&path{latest: burstTail + 1})
		require.Equal(t, copyPlan{left: tc.copies}, a.plan(0), tc.what)
	}
}

// Losses that come in bursts get copies near and far, as many as come before an
// acknowledgement can.
func TestBurstsGetCopiesNearAndFar(t *testing.T) {
	for _, tc := range []struct {
		rtt  int64
		plan copyPlan
	}{{0, burstPlan}, {burstTail, burstPlan}, {burstTail + 1, longPlan}} {
		a := &adaptiveRule{flow: new(flow), assessed: 10_000}
		for i := range int64(12) { // pairs, each well apart
			a.lose(9_000 + 84*i)
			a.lose(9_001 + 84*i)
		}
		rate, pairs := a.lossRate()
		require.Equal(t, [2]int64{24 * million / 1000, million / 2}, [2]int64{rate, pairs})
		a.replan(&path{latest: tc.rtt})
		require.Equal(t, tc.plan, a.plan(0), time.Duration(tc.rtt))
	}
}

// Bursts are tolerated as other losses are, and one alone is no link that turned
// bad, however recent.
func TestFewBurstsAreTolerated(t *testing.T) {
	for _, tc := range []struct {
		pairs, every int64
		plan         copyPlan
	}{
		{6, 100, copyPlan{}}, // 12 of 2,400
		{7, 100, burstPlan},
		{4, 4, copyPlan{}}, // 8 of the last 16
	} {
		a := &adaptiveRule{flow: new(flow), assessed: 10_000}
		for i := tc.pairs; i > 0; i-- {
			a.lose(a.assessed - i*tc.every)
			a.lose(a.assessed - i*tc.every + 1)
		}
		a.replan(&path{})
		require.Equal(t, tc.plan, a.plan(0), "%d pairs, every %d", tc.pairs, tc.every)
	}
}

// What was only late is no loss, so it is not half of a burst either.
func TestForgivenLossEndsItsBurst(t *testing.T) {
	a := losing(10, 50)
	a.lose(a.assessed + 1)
	a.assessed++
	_, pairs := a.lossRate()
	require.EqualValues(t, million/11, pairs)
	a.reordered(a.assessed, &path{})
	_, pairs = a.lossRate()
	require.Zero(t, pairs)
}

// One silence counts once, however many events fall due in it; what was
// acknowledged ends it, even if the timer fires again at once.
func TestTimerBacksOffOncePerSilence(t *testing.T) {
	a, p := adaptiveRule{flow: new(flow), delay: 50}, &path{}
	a.timedOut(p, 1000)
	a.timedOut(p, 1049)
	require.Zero(t, a.backoff, "the same silence")
	a.silent = false // as an acknowledgement does
	a.timedOut(p, 1049)
	require.Zero(t, a.backoff, "another")
	a.timedOut(p, 1098)
	require.Zero(t, a.backoff, "and still that")
	now := int64(1049)
	for _, backoff := range []int{1, 2, 3, 3} {
		now += a.timer(p)
		a.timedOut(p, now)
		require.Equal(t, backoff, a.backoff)
	}
}

// The timer is the round trip and four times its variation, or the silence that a
// peer may keep; before the first sample it is ResendDelay. It never wraps.
func TestTimerFollowsTheRoundTrip(t *testing.T) {
	for _, tc := range []struct {
		heartbeat, rtt time.Duration // no rtt: no sample
		backoff        int
		timer          time.Duration
	}{
		{50 * ms, 0, 0, 100 * ms},
		{50 * ms, 0, 2, 400 * ms},
		{50 * ms, 100 * ms, 0, 300 * ms},
		{50 * ms, 10 * ms, 0, 60 * ms},
		{18 * ms, 1 * ms, 0, 20 * ms}, // the shortest
		{20 * ms, 1 * ms, 0, 21 * ms},
		{18 * ms, 1 * ms, maxBackoff, 160 * ms},
	} {
		a := adaptiveRule{flow: new(flow), delay: int64(100 * ms), heartbeat: int64(tc.heartbeat), backoff: tc.backoff}
		var p path
		if tc.rtt > 0 {
			p.sample(-int64(tc.rtt), 0, standsAboveMillis)
		}
		require.Equal(t, tc.timer, time.Duration(a.timer(&p)), "%+v", tc)
	}
	a := adaptiveRule{flow: new(flow), delay: math.MaxInt64, backoff: maxBackoff}
	require.Equal(t, int64(math.MaxInt64&^7), a.timer(&path{}), "the longest that doubles three times")
}

// An event that waited for the timer has had its plan: where not even that
// brought news, further copies would be as futile.
func TestTimerEndsThePlan(t *testing.T) {
	p := solo(t, Config{Adaptive: true})
	p.emit(TypeInput)
	p.ack(0, 0) // at once: the timer is a heartbeat
	adaptive(p.s).current = burstPlan
	p.send("event")
	p.wantEventsOut(0)
	p.advance(10 * ms)
	p.wantEventsOut(0) // near; the next one would go far from it
	p.advance(50 * ms)
	p.wantEventsOut(0) // by the timer, before that
	p.advance(50*ms - 1)
	p.advance(1)
	p.wantEventsOut(0)
}

// A copy waits for the application datagram that will carry it if one is expected
// soon after, by the gap between the last two and a quarter more; in that datagram
// it does not wait.
func TestPlannedCopyWaitsForItsCarrier(t *testing.T) {
	for _, tc := range []struct {
		carriedAt, carrierGap, due int64
	}{
		{0, 0, 10 * int64(ms)},
		{0, 8 * int64(ms), 10 * int64(ms)}, // at 10: no later than the copy
		{1, 8 * int64(ms), 10*int64(ms) + 1},
		{5 * int64(ms), 16 * int64(ms), 25 * int64(ms)}, // the longest wait
		{5*int64(ms) + 1, 16 * int64(ms), 10 * int64(ms)},
	} {
		a := adaptiveRule{flow: new(flow), carriedAt: tc.carriedAt, carrierGap: tc.carrierGap}
		near, distant := pending{plan: copyPlan{left: 1}}, pending{plan: copyPlan{left: 1, far: 1}, last: nearGap - farGap}
		for _, e := range []*pending{&near, &distant} { // both a gap after the last copy
			require.Equal(t, tc.due, a.proactiveAt(e, ownDatagram))
			require.Equal(t, nearGap, a.proactiveAt(e, bundle))
		}
	}
	a := adaptiveRule{flow: new(flow)}
	for _, step := range []struct{ now, gap int64 }{{100, 100}, {116, 16}, {116, 16}, {130, 14}} { // two at one time are one
		require.True(t, a.carrierSent(step.now))
		require.Equal(t, [2]int64{step.now, step.gap}, [2]int64{a.carriedAt, a.carrierGap})
	}
}

// The dumb model of the loss ring is a list.
func TestLossesAreTheNewestOnes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := adaptiveRule{flow: new(flow)}
		var list []int64 // newest first
		a.assessed = rapid.Int64Range(0, 1<<33).Draw(t, "start")
		for range rapid.IntRange(1, 120).Draw(t, "steps") {
			a.assessed += rapid.Int64Range(1, 200).Draw(t, "step")
			if len(list) > 0 && rapid.IntRange(0, 4).Draw(t, "forgive") == 0 {
				i := rapid.IntRange(0, len(list)-1).Draw(t, "which")
				a.reordered(list[i], &path{})
				list = append(list[:i:i], list[i+1:]...)
			} else {
				a.lose(a.assessed)
				list = append([]int64{a.assessed}, list...)
				list = list[:min(len(list), sampledLosses)]
			}
			require.Equal(t, len(list), a.losses)
			recent := 0
			for i, number := range list {
				require.Equal(t, a.assessed-number, a.age(i))
				if a.assessed-number <= lossMemory {
					recent++
				}
			}
			rate, _ := a.lossRate()
			require.Equal(t, recent == 0, rate == 0)
			require.LessOrEqual(t, rate, int64(million))
		}
	})
}

// Most of what a peer may withhold must still reach it: events that rode in
// bundles which were never acknowledged go by themselves in the end.
// P-10.1.5.
func TestWithheldBundlesDoNotStarveEvents(t *testing.T) {
	for _, adaptive := range []bool{false, true} {
		var clock ManualClock
		clock.Set(time.Unix(1000, 0))
		server, err := NewSession(Config{Clock: &clock, Bundle: true, Adaptive: adaptive})
		require.NoError(t, err)
		client, err := NewSession(Config{Clock: &clock, Accept: func(h Header, _ []byte) error {
			return ErrWithhold
		}})
		require.NoError(t, err)
		_, err = server.Send([]byte("event"))
		require.NoError(t, err)
		buf := make([]byte, MaxDatagramSize)
		received := 0
		take := func(datagram []byte) {
			in, err := client.Receive(datagram)
			require.NoError(t, err)
			received += len(in.Events)
			for answer := range client.Due(make([]byte, MaxDatagramSize)) {
				_, err := server.Receive(answer)
				require.NoError(t, err)
			}
		}
		for range 20 {
			datagram, _, err := server.AppendDatagram(buf[:0], TypeSnapshot, []byte("snapshot"))
			require.NoError(t, err)
			take(datagram)
			for datagram := range server.Due(buf) {
				take(datagram)
			}
			clock.Advance(50 * time.Millisecond)
		}
		require.Equal(t, 1, received, "adaptive: %t", adaptive)
		require.Zero(t, server.InFlight())
	}
}

// Once it is noticed that application datagrams are withheld, they carry no events.
func TestWithheldDatagramsCarryNoEvents(t *testing.T) {
	p := solo(t, Config{Adaptive: true, Bundle: true})
	p.send("awake")
	own := []uint16{p.wantEventsOut(0).Sequence}
	for range missedApplication {
		p.emit(TypeInput)
	}
	p.sleep(50 * ms)
	p.take(p.datagram(TypeHeartbeat, 0, own[0], 0))
	own = append(own, p.wantDatagram(TypeHeartbeat).Sequence)
	p.sleep(50 * ms)
	own = append(own, p.wantDatagram(TypeHeartbeat).Sequence)
	p.sleep(50 * ms)
	p.take(p.datagram(TypeHeartbeat, 1, own[2], 1<<(own[2]-1-own[1])))
	own = append(own, p.wantDatagram(TypeHeartbeat).Sequence)
	p.sleep(50 * ms)
	p.take(p.datagram(TypeHeartbeat, 2, own[3], 0))
	require.True(t, p.s.channel.withheld())
	p.send("1")
	require.Empty(t, p.carried(0))
	p.wantEventsOut(1)
}

// A peer that acknowledges what it cannot have received yet makes everything look
// overtaken at once. It must not set the pace of retransmissions.
func TestEvidenceHasAFloor(t *testing.T) {
	var clock ManualClock
	clock.Set(time.Unix(1000, 0))
	s, err := NewSession(Config{Clock: &clock, Adaptive: true})
	require.NoError(t, err)
	_, err = s.Send([]byte("event"))
	require.NoError(t, err)
	buf := make([]byte, MaxDatagramSize)
	var newest, from uint16
	const steps = 1000
	for range steps {
		for range s.Due(buf) {
		}
		_, newest, err = s.AppendDatagram(buf[:0], TypeInput, nil)
		require.NoError(t, err)
		_, err = s.Receive(Header{Type: TypeHeartbeat, Sequence: from, Ack: newest}.AppendTo(nil))
		require.NoError(t, err)
		from++
		clock.Advance(time.Millisecond)
	}
	// Each retransmission has the copies of the plan as company, nearGap apart.
	require.LessOrEqual(t, s.Stats().EventsResent, uint64(steps*int64(time.Millisecond)/nearGap))
}

// An event that backs off is none that comes due, once an older copy of it turns out to
// be delivered.
func TestDeliveredEventBacksOffNoMore(t *testing.T) {
	c, clock := newChannel(t, Config{Adaptive: true})
	c.Send([]byte("x"))
	var carrier uint16
	for n := range uint16(patientTries + 2) { // the event's copies are overtaken again and again
		h, _ := c.NextHeader(TypeEvent)
		if c.AppendDueEvents(nil, h.Sequence, 100) != nil {
			carrier = h.Sequence
		}
		h, _ = c.NextHeader(TypeInput)
		clock.Advance(30 * ms)
		c.Receive(Header{Type: TypeInput, Sequence: n, Ack: h.Sequence}, nil)
	}
	at, ok := c.Deadline()
	require.True(t, ok)
	require.Greater(t, at.Sub(clock.Now()), 90*ms, "it backs off")
	c.Receive(Header{Type: TypeInput, Sequence: 100, Ack: carrier}, nil)
	require.Zero(t, c.InFlight())
	_, ok = c.Deadline()
	require.False(t, ok)
}

// An event that is delivered while it waits to be sent again was not in flight any more.
func TestEventThatIsDueIsNotInFlight(t *testing.T) {
	c, clock := newChannel(t, Config{Adaptive: true})
	c.Send([]byte("x"))
	carrier, _ := c.NextHeader(TypeEvent)
	require.NotEmpty(t, c.AppendDueEvents(nil, carrier.Sequence, 100))
	clock.Advance(100 * ms)
	require.True(t, c.EventsDue(100))
	c.Receive(Header{Type: TypeInput, Ack: carrier.Sequence}, nil)
	require.Zero(t, c.InFlight())
	require.Zero(t, c.sender.window.inFlight)
}

// halved is an adaptive session that lost one datagram of two, by overtaking.
func halved(t *testing.T, cfg Config) *actor {
	cfg.Adaptive = true
	p := solo(t, cfg)
	p.emit(TypeInput)
	arrived := p.emit(TypeInput)
	p.sleep(30 * ms)
	p.ack(arrived.Sequence, 0)
	return p
}

// The first losses of all, where they are many, call for proactive copies of the event that
// they took, too: it had none planned.
func TestFirstLossesCallForAProactiveCopyOfWhatTheyTook(t *testing.T) {
	p := solo(t, Config{Adaptive: true})
	p.send("0")
	p.wantEventsOut(0)
	for range 16 {
		p.emit(TypeInput)
	}
	p.sleep(30 * ms)
	p.ack(16, 0b0101_0101_0101_010) // every other arrived
	p.wantEventsOut(0)              // it was overtaken
	p.sleep(time.Duration(nearGap) - 1)
	p.wantNothing()
	p.sleep(1)
	p.wantEventsOut(0)
	require.EqualValues(t, 1, p.s.Stats().EventsAhead)
}

// A timeout is one, and the next doubles the timer, though a copy that was sent after it in
// a datagram numbered before it was overtaken.
func TestTimeoutIsOneBesideWhatWasOvertaken(t *testing.T) {
	c, clock := newChannel(t, Config{Adaptive: true})
	number := func() uint16 {
		h, _ := c.NextHeader(TypeEvent)
		return h.Sequence
	}
	carry := func(seq uint16) { require.NotEmpty(t, c.AppendDueEvents(nil, seq, 100), seq) }
	sampled := number()
	clock.Advance(50 * ms)
	c.Receive(Header{Type: TypeInput, Ack: sampled}, nil)
	older, acknowledged, newer := number(), number(), number()
	c.Send(nil)
	carry(newer)
	clock.Advance(10 * ms)
	c.Send(nil)
	carry(older)
	clock.Advance(40 * ms)
	c.Receive(Header{Type: TypeInput, Sequence: 1, Ack: acknowledged}, nil)
	clock.Advance(110 * ms) // one is overtaken by now and the other timed out
	carry(number())
	var waits []time.Duration
	for range 2 {
		at, ok := c.Deadline()
		require.True(t, ok)
		waits = append(waits, at.Sub(clock.Now()))
		clock.Set(at)
		carry(number())
	}
	require.Equal(t, 2*waits[0], waits[1])
}

// Proactive copies leave half of a second's budget to events that are known to be
// missing.
func TestProactiveCopiesLeaveHalfOfTheBudget(t *testing.T) {
	p := halved(t, Config{EventRate: 1000, Heartbeat: time.Second})
	p.sendN(12, 96) // 100 bytes each in a list
	p.flush()
	p.sleep(time.Duration(nearGap))
	p.flush()
	require.EqualValues(t, 5, p.s.Stats().EventsAhead)
	require.EqualValues(t, 5, p.s.Stats().EventsResent)
	arrived := p.emit(TypeInput)
	p.sleep(30 * ms)
	p.ack(arrived.Sequence, 0) // all copies so far were overtaken
	p.flush()
	require.EqualValues(t, 10, p.s.Stats().EventsResent)
}

// An event that backs off waits: a proactive copy that was due before is taken back, and
// none of its new plan goes until it has.
func TestEventThatBacksOffGetsNoProactiveCopy(t *testing.T) {
	c, clock := newChannel(t, Config{Adaptive: true})
	clock.Advance(10 * ms)
	c.Send([]byte("x"))
	carrier, _ := c.NextHeader(TypeEvent)
	require.NotEmpty(t, c.AppendDueEvents(nil, carrier.Sequence, 100))
	s := &c.sender
	e := s.outbox.get(0)
	e.tries, e.plan, e.state = patientTries, copyPlan{left: 2}, e.state|isProactive
	s.outbox.due.add(0)
	s.outbox.log.planned = true
	clock.Advance(30 * ms)
	s.presumedLost(0, e, byOvertaking, int64(40*ms))
	require.Equal(t, 1, s.outbox.held)
	require.Zero(t, s.outbox.due.n)
	clock.Advance(20 * ms) // past the gap between copies
	require.False(t, c.EventsDue(100))
	at, ok := c.Deadline()
	require.True(t, ok)
	clock.Set(at)
	require.True(t, c.EventsDue(100), "when it has backed off")
	require.Zero(t, s.outbox.held)
}

// The log of copies is searched by sequences, which come round: a run of the
// datagram 65,536 earlier is not this datagram's.
func TestRunOfADatagramBeforeTheWrapIsNotJoined(t *testing.T) {
	var clock ManualClock
	clock.Set(time.Unix(1000, 0))
	s, err := NewSession(Config{
		Clock: &clock, ResendDelay: time.Hour, Timeout: 2 * time.Hour, Heartbeat: time.Hour, StallTimeout: -1,
	})
	require.NoError(t, err)
	buf := make([]byte, MaxDatagramSize)
	send := func() {
		_, err := s.Send(nil)
		require.NoError(t, err)
		_, ok := s.AppendDue(buf[:0])
		require.True(t, ok)
	}
	from := uint16(0)
	ack := func(seq uint16) {
		_, err := s.Receive(Header{Type: TypeHeartbeat, Sequence: from, Ack: seq}.AppendTo(nil))
		require.NoError(t, err)
		from++
	}
	send() // in sequence 0, never acknowledged
	for range 1<<16 - 1 {
		_, seq, err := s.AppendDatagram(buf[:0], TypeInput, nil)
		require.NoError(t, err)
		ack(seq)
	}
	send() // in sequence 0 again
	ack(0)
	require.Equal(t, 1, s.InFlight())
	require.EqualValues(t, 1, s.Stats().EventsDelivered)
}

// After the end the outcomes of what was sent are still told; then nothing is kept.
func TestEndedSessionKeepsNothingOnceAllIsDecided(t *testing.T) {
	var clock ManualClock
	clock.Set(time.Unix(1000, 0))
	s, err := NewSession(Config{Clock: &clock, Outcomes: true})
	require.NoError(t, err)
	for range 32_767 {
		_, _, err := s.AppendDatagram(nil, TypeInput, nil)
		require.NoError(t, err)
	}
	clock.Advance(5 * time.Second)
	_, ok := s.AppendDue(nil)
	require.False(t, ok)
	require.ErrorIs(t, s.Err(), ErrTimeout)
	clock.Advance(2 * time.Second)
	for ok := true; ok; {
		_, ok = s.NextOutcome()
	}
	require.Zero(t, s.Stats().Undecided)
	require.Zero(t, cap(s.channel.sender.log.stamps)+cap(s.channel.sender.log.types))
}

// A sequence that lies half the sequences back names no datagram any more: what
// is acknowledged says nothing of the copy in it, which waits for the timer.
func TestCopyBeyondHalfTheSequencesWaitsForTheTimer(t *testing.T) {
	for _, tc := range []struct {
		sent int
		due  time.Duration
	}{{1<<15 - 1, 20 * ms}, {1 << 15, 50 * ms}} {
		p := solo(t, Config{Adaptive: true})
		p.send("event")
		p.wantEventsOut(0)
		for range tc.sent {
			_, seq, err := p.s.AppendDatagram(nil, TypeInput, nil)
			require.NoError(t, err)
			if seq == 1<<14 {
				p.ack(seq, 0)
			}
		}
		p.ack(uint16(tc.sent), 0)
		p.advance(tc.due - 1)
		p.advance(1)
		p.wantEventsOut(0)
	}
}

// Reordering makes evidence wait, here half a round trip;
// reorderMemory datagrams later the link counts as keeping order again.
func TestReorderingIsForgottenInTime(t *testing.T) {
	for _, tc := range []struct {
		inOrder uint16
		waits   time.Duration
	}{{reorderMemory - 1, 50 * ms}, {reorderMemory, 0}} {
		p := solo(t, Config{Adaptive: true})
		p.emit(TypeInput)
		p.emit(TypeInput)
		p.sleep(100 * ms)
		p.ack(1, 0)
		p.ack(1, 1)
		require.EqualValues(t, 2, adaptive(p.s).reorderStep)
		for range tc.inOrder {
			_, _, err := p.s.AppendDatagram(nil, TypeInput, nil)
			require.NoError(t, err)
		}
		p.sleep(100 * ms)
		for n := range tc.inOrder {
			_, err := p.s.Receive(p.datagram(TypeHeartbeat, p.foreign, n+2, 1))
			require.NoError(t, err)
		}
		p.send("event")
		p.wantEventsOut(0)
		last := p.emit(TypeInput)
		p.sleep(100 * ms)
		p.wantDatagram(TypeHeartbeat)
		p.ack(last.Sequence, 0)
		if tc.waits > 0 {
			p.sleep(tc.waits - 1)
			p.wantNothing()
			p.sleep(1)
		}
		p.wantEventsOut(0)
	}
}

// Where evidence waits for what may only be late, the timer may come first. The copy was
// overtaken all the same, and the next has the company that a known loss gets.
func TestTimerBeforeEvidenceCountsAsEvidence(t *testing.T) {
	a := adaptiveRule{flow: new(flow), heartbeat: int64(50 * ms), current: copyPlan{left: 3}, reorderStep: reorderSteps}
	var p path
	p.sample(0, int64(300*ms), standsAboveMillis)
	for range 50 { // so steady that the timer is the shorter
		p.rtt.Add(int64(300 * ms))
	}
	e := &pending{}
	at := a.timeoutAt(e, &p)
	require.Less(t, at, a.evidenceAt(e, &p))
	require.Equal(t, notLost, a.presumeLost(e, true, &p, at-1))
	require.Equal(t, byOvertaking, a.presumeLost(e, true, &p, at))
	require.Equal(t, a.current, e.plan)
	require.Equal(t, byTimeout, a.presumeLost(e, false, &p, at))
	require.Zero(t, e.plan)
}
