package ackbits

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ackbits/ackbits/simnet"
)

// More faults that were reported in public, in the manner of scars_test.go.

// pair runs two sessions over a link each way in virtual time.
type pair struct {
	*simnet.Pair
	clock ManualClock
	ends  [2]*endpoint
	times map[string]time.Duration // when an event came in at either end
	order []string
}

func newPair(t *testing.T, seed uint64, a, b Config, there, back simnet.Config) *pair {
	t.Helper()
	p := &pair{times: map[string]time.Duration{}}
	p.clock.Set(time.Unix(1000, 0))
	for i, cfg := range []Config{a, b} {
		if cfg.Clock == nil {
			cfg.Clock = &p.clock
		}
		s, err := NewSession(cfg)
		require.NoError(t, err)
		p.ends[i] = &endpoint{Session: s, events: func(in Incoming) {
			for _, event := range in.Events {
				p.times[string(event.Data)] = p.Now()
				p.order = append(p.order, string(event.Data))
			}
		}}
	}
	p.Pair = simnet.NewPair(seed, &p.clock, p.ends[0], p.ends[1], there, back)
	return p
}

// state lets both ends send application datagrams, so many a second.
func (p *pair) state(t *testing.T, hz ...int) {
	for i, n := range hz {
		if n == 0 {
			continue
		}
		s := p.ends[i]
		p.Every(n, time.Second, func() {
			if out, _, err := s.AppendDatagram(s.out[:0], TypeInput, []byte("state")); err == nil {
				p.Send(simnet.Direction(i), out)
			}
		})
	}
}

// quinn-rs/quinn#239, #1127: where writing was slow, the driver did nothing but
// send, and what had come in was not read.
// P-6.1.3.
func TestScarFlushNeverEndsWhereWritingIsSlow(t *testing.T) {
	for _, writing := range []time.Duration{0, 400 * time.Microsecond, ms, 5 * ms, 30 * ms} {
		for _, adaptive := range []bool{false, true} {
			p := solo(t, Config{Adaptive: adaptive, Timeout: time.Minute, StallTimeout: -1})
			p.sendN(256, MaxEventSize)
			var sent [256]int
			n := 0
			for datagram := range p.s.Due(make([]byte, MaxDatagramSize)) {
				require.Less(t, n, 256, "each event once, and nothing else")
				h, payload, err := ParseHeader(datagram)
				require.NoError(t, err)
				require.EqualValues(t, n, h.Sequence)
				events, err := ParseEvents(nil, payload)
				require.NoError(t, err)
				for _, event := range events {
					sent[event.ID]++
				}
				p.clock.Advance(writing)
				n++
			}
			for id, times := range sent {
				if adaptive { // as many as the window lets go
					require.LessOrEqual(t, times, 1, "event %d", id)
					continue
				}
				require.Equal(t, 1, times, "event %d", id)
			}
			// Each was sent when it was sent: the sample is of its own time.
			p.clock.Advance(10 * ms)
			p.ack(uint16(n-1), 0)
			require.Equal(t, 10*ms+writing, p.s.RTT())
		}
	}
}

// The same with a copy that comes due while the others are written: it waits for
// the next flush. So does the heartbeat.
func TestScarWhatComesDueDuringAFlushWaits(t *testing.T) {
	p := solo(t, Config{})
	p.send("old")
	p.wantEventsOut(0)
	p.sleep(99 * ms)
	p.flush() // the heartbeat
	p.sendN(3, MaxEventSize)
	n := 0
	for datagram := range p.s.Due(make([]byte, MaxDatagramSize)) {
		require.EqualValues(t, TypeEvent, datagram[1])
		require.NotZero(t, datagram[HeaderSize+1], "not event 0")
		p.clock.Advance(30 * ms)
		n++
	}
	require.Equal(t, 3, n)
	p.wantDeadline(100 * ms)
	p.wantEventsOut(0)
	p.flush()
}

// supertuxkart/stk-code#5615, overte-org/overte#204, mobile-shell/mosh#773: small
// events were packed into a datagram that was too large for the path.
func TestScarSmallEventsShareADatagramThatIsTooLarge(t *testing.T) {
	p := newPair(t, 1, Config{MaxDatagram: 1150}, Config{}, simnet.Config{Delay: 20 * ms}, simnet.Config{Delay: 20 * ms})
	for n := range 60 {
		_, err := p.ends[0].Send(append(make([]byte, 39), byte(n)))
		require.NoError(t, err)
	}
	p.Observe(func(_ time.Duration, _ simnet.Direction, _ simnet.What, datagram []byte) {
		require.LessOrEqual(t, len(datagram), 1150)
	})
	require.True(t, p.RunUntil(func() bool { return len(p.order) == 60 }, 50*ms))
}

// AlexDarigan/wat#336, robocode-dev/tank-royale#206, livekit/livekit#2947,
// asterisk/asterisk#936: after a gap in which half of the numbers went by, all
// packets looked old, for as long again.
func TestScarOutageOfHalfTheNumbersLeavesThePeerDeaf(t *testing.T) {
	for name, c := range map[string]struct {
		hz      int
		timeout time.Duration
		outage  time.Duration
	}{
		"ten minutes at 60 Hz":   {60, time.Hour, 10 * time.Minute},
		"eight minutes at 60 Hz": {60, time.Hour, 8 * time.Minute},
		"a minute at 1,000 Hz":   {1000, 2 * time.Minute, time.Minute},
		"half that, at 1,000 Hz": {1000, 2 * time.Minute, 30 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dead := simnet.Config{Delay: 20 * ms, Blackouts: []simnet.Window{{From: time.Second, To: time.Second + c.outage}}}
			p := newPair(t, 1, Config{Timeout: c.timeout}, Config{Timeout: c.timeout}, dead, dead)
			p.state(t, c.hz, c.hz)
			p.Run(900 * ms)
			p.At(time.Second/2+c.outage/2, func() { p.ends[0].Send([]byte("sent in the dark")) })
			p.Run(time.Second + c.outage)
			before := [2]uint64{p.ends[0].Stats().DatagramsReceived, p.ends[1].Stats().DatagramsReceived}
			p.Run(2*time.Second + c.outage)
			for i, s := range p.ends {
				if c.hz*int(c.outage/time.Second) > 32767 {
					require.Equal(t, ErrStalled, s.Err())
					require.LessOrEqual(t, s.Stats().DatagramsSent, uint64(32767+2*c.hz))
					continue
				}
				require.NoError(t, s.Err())
				require.Zero(t, s.Stats().Stale, "the first one after it is taken")
				require.Greater(t, s.Stats().DatagramsReceived, before[i])
			}
			if p.ends[0].Err() == nil {
				require.Contains(t, p.order, "sent in the dark")
			} else {
				require.Equal(t, 1, p.ends[0].InFlight(), "I3: it does not count as delivered")
			}
		})
	}
}

// Echoes and replays, of whatever age, do not keep a session alive whose peer is
// gone (8.1 of docs/protocol.md).
func TestScarReplaysKeepADeadPeerAlive(t *testing.T) {
	for _, wide := range []bool{false, true} {
		a, b := duo(t, Config{Wide: wide})
		a.tracked, b.tracked = false, false
		var past []*packet
		for range 200 {
			past = append(past, a.emit(TypeInput))
			b.take(past[len(past)-1].bytes)
			b.clock.Advance(20 * ms)
		}
		heard := b.now() - 20*ms
		for n := 0; b.s.Err() == nil; n++ {
			require.Less(t, b.now(), heard+5*time.Second+50*ms)
			b.take(past[n*7%200].bytes)
			b.clock.Advance(20 * ms)
			b.flush()
		}
		b.wantErr(ErrTimeout)
	}
}

// cBournhonesque/lightyear#1650, bitcoin/bitcoin#9337, atomashpolskiy/bt#64: a
// transfer that moves all the time was cut off because its end was queued long ago.
func TestScarStallCountsFromTheFirstCopy(t *testing.T) {
	for _, adaptive := range []bool{false, true} {
		// A path that takes ten datagrams a second and drops the others.
		p := newPair(t, 1, Config{Adaptive: adaptive}, Config{}, simnet.Config{}, simnet.Config{})
		for n := range 200 {
			_, err := p.ends[0].Send(append(make([]byte, MaxEventSize-1), byte(n)))
			require.NoError(t, err)
		}
		s, free := p.ends[0], time.Duration(0)
		for now := time.Duration(0); s.InFlight() > 0; now += 10 * ms {
			require.Less(t, now, time.Minute)
			require.NoError(t, s.Err(), "after %v, %d in flight", now, s.InFlight())
			p.clock.Advance(10 * ms)
			for datagram := range s.Session.Due(s.out[:]) {
				if now >= free && datagram[1] == byte(TypeEvent) {
					p.ends[1].Receive(datagram)
					free = now + 100*ms
				}
			}
			for datagram := range p.ends[1].Session.Due(p.ends[1].out[:]) {
				s.Receive(datagram)
			}
		}
		require.Len(t, p.order, 200)
	}
}

// And a path that swallows what carries events, small datagrams passing, still
// ends the session: so does a peer that acknowledges nothing.
func TestScarPathThatSwallowsLargeDatagramsLooksAlive(t *testing.T) {
	p := solo(t, Config{})
	p.send("swallowed")
	for p.flush(); p.s.Err() == nil; p.flush() {
		require.Less(t, p.now(), 16*time.Second)
		p.sleep(50 * ms)
		p.hear(TypeHeartbeat)
	}
	p.wantErr(ErrStalled)
	require.GreaterOrEqual(t, p.now(), 15*time.Second)
}

// mavlink/MAVSDK#3106, AlexDarigan/wat#336: a few seconds of silence threw a
// healthy link away, so the limit was raised, and the raised limit was not heeded.
// P-8.2.2.
func TestScarTimeoutOfAMinuteIsCutTo15Seconds(t *testing.T) {
	for _, adaptive := range []bool{false, true} {
		silent := simnet.Config{Delay: 20 * ms, Blackouts: []simnet.Window{{From: time.Second, To: 31 * time.Second}}}
		cfg := Config{Timeout: time.Minute, Adaptive: adaptive}
		p := newPair(t, 1, cfg, cfg, silent, silent)
		p.state(t, 20, 20)
		p.At(time.Second, func() { p.ends[0].Send([]byte("before")) })
		p.Run(32 * time.Second)
		require.Contains(t, p.times, "before")
		for _, s := range p.ends {
			require.NoError(t, s.Err())
		}
	}
}

// Lyraedan/Oxygen_Not_Included_Together#228, ValveSoftware/GameNetworkingSockets#95,
// RevenantX/LiteNetLib#67, marceld23/BlocksBeyondTheStars#1534: what steers the
// session came late behind a world that was streaming. It is a limit of one stream,
// lowest id first; what Send says about it, bulk only while little is in flight, is
// the remedy.
func TestScarUrgentEventWaitsBehindABulkTransfer(t *testing.T) {
	urgent := func(slowly bool) time.Duration {
		link := simnet.Config{Delay: 50 * ms}
		p := newPair(t, 1, Config{Backlog: 8192}, Config{}, link, link)
		p.state(t, 60, 20)
		bulk, s := 4000, p.ends[0]
		p.Every(60, time.Second, func() {
			for ; bulk > 0 && (!slowly || s.InFlight() < 128); bulk-- {
				_, err := s.Send(make([]byte, 1000))
				require.NoError(t, err)
			}
		})
		p.At(500*ms, func() { s.Send([]byte("urgent")) })
		require.True(t, p.RunUntil(func() bool { return p.times["urgent"] > 0 }, 10*time.Second))
		require.NoError(t, s.Err())
		return p.times["urgent"] - 500*ms
	}
	require.Greater(t, urgent(false), time.Second)
	require.Less(t, urgent(true), 150*ms)
}

// Haivision/srt#638, pedroSG94/RootEncoder#2199: a bound on retransmissions below
// what the link loses starved the session. It becomes slower, and says so by Room.
// P-17.1.1.
func TestScarRateForCopiesBelowTheLossEndsTheSession(t *testing.T) {
	for _, adaptive := range []bool{false, true} {
		for seed := range uint64(6) {
			link := simnet.Config{Delay: 30 * ms, Loss: 0.3}
			p := newPair(t, seed, Config{EventRate: 1000, Backlog: 4096, Adaptive: adaptive}, Config{}, link, link)
			p.state(t, 60, 20)
			s, sent := p.ends[0], 0
			p.Every(20, time.Second, func() {
				if s.Room() > 0 {
					if _, err := s.Send(make([]byte, 104)); err == nil {
						sent++
					}
				}
			})
			p.Run(3 * time.Minute)
			require.NoError(t, s.Err())
			st := s.Stats()
			require.Greater(t, st.EventsDelivered, uint64(sent/3))
			require.Less(t, st.EventsResent*108, uint64(1000*180+1000+180*108), "and one a second")
		}
	}
}

// lucaspoffo/renet#156, quicwg/ops-drafts#126: a heartbeat that is rare to save
// datagrams delays acknowledgements, so that all is sent again. It is a limit of
// the fixed delay, said at Config.Heartbeat; Adaptive learns the round trip.
func TestScarQuietHeartbeatDelaysAcknowledgements(t *testing.T) {
	copies := func(adaptive bool) float64 {
		link := simnet.Config{Delay: 20 * ms}
		quiet := Config{Heartbeat: time.Second, Adaptive: adaptive}
		p := newPair(t, 1, quiet, quiet, link, link)
		p.Every(1, 5*time.Second, func() { p.ends[0].Send([]byte("x")) })
		p.Run(2 * time.Minute)
		st := p.ends[0].Stats()
		return float64(st.EventsSent+st.EventsResent) / float64(st.EventsSent)
	}
	require.Greater(t, copies(false), 5.0)
	require.Less(t, copies(true), 1.5)
}

// cBournhonesque/lightyear#1545, lsalzman/enet#194, MirrorNetworking/Mirror#894:
// the round trip changes with the peer's tick. It is a limit (7.1 of docs/protocol.md), said at RTT.
func TestScarRoundTripIncludesThePeersTick(t *testing.T) {
	link := simnet.Config{Delay: 5 * ms}
	p := newPair(t, 1, Config{Heartbeat: time.Second}, Config{Heartbeat: time.Second}, link, link)
	p.state(t, 59, 20) // of every phase
	p.Run(5 * time.Second)
	require.Greater(t, p.ends[0].RTT(), 15*ms, "the true one is 10")
	require.Less(t, p.ends[0].RTT(), 61*ms, "which a tick is added to")
}

// ponylang/ponyc#5823, mozilla/neqo#3482, oven-sh/bun#37092: a full send buffer
// starved the last events.
func TestScarFullSendBufferStarvesTheLastEvents(t *testing.T) {
	for _, adaptive := range []bool{false, true} {
		link := simnet.Config{Delay: 20 * ms}
		p := newPair(t, 1, Config{Adaptive: adaptive}, Config{}, link, link)
		s := p.ends[0]
		for n := range 256 {
			_, err := s.Send(append(make([]byte, MaxEventSize-1), byte(n)))
			require.NoError(t, err)
		}
		took := time.Duration(0)
		for ; s.InFlight() > 0; took += ms {
			require.NoError(t, s.Err())
			require.Less(t, took, 3*time.Second)
			left := 20
			for datagram := range s.Session.Due(s.out[:]) {
				if left--; left >= 0 { // else the socket says ENOBUFS
					p.ends[1].Receive(datagram)
				}
			}
			p.clock.Advance(ms)
			for datagram := range p.ends[1].Session.Due(p.ends[1].out[:]) {
				s.Receive(datagram)
			}
		}
		require.Len(t, p.order, 256)
	}
}

// coarse is a clock that shows time in steps.
type coarse struct {
	*ManualClock
	step time.Duration
}

func (c coarse) Now() time.Time { return c.ManualClock.Now().Truncate(c.step) }

// emscripten-core/emscripten#9367, martin-t/rec-wars#1: a browser shows time in
// steps of 100 ms.
func TestScarClockOfTenStepsASecond(t *testing.T) {
	for _, adaptive := range []bool{false, true} {
		p := &pair{}
		p.clock.Set(time.Unix(1000, 0))
		s, err := NewSession(Config{Clock: coarse{&p.clock, 100 * ms}, Adaptive: adaptive})
		require.NoError(t, err)
		peer, err := NewSession(Config{Clock: &p.clock, Adaptive: adaptive})
		require.NoError(t, err)
		got := map[string]int{}
		var buf, in [MaxDatagramSize]byte
		n := 0
		hand := func(to *Session, datagram []byte) {
			if n++; n%50 == 0 { // lost
				return
			}
			incoming, err := to.Receive(in[:copy(in[:], datagram)])
			require.NoError(t, err)
			for _, event := range incoming.Events {
				got[string(event.Data)]++
			}
		}
		for tick := range 60 * 20 {
			for i, from := range []*Session{s, peer} {
				to := []*Session{peer, s}[i]
				if tick%3 == 0 && tick < 60*18 {
					_, err := from.Send([]byte{byte(i), byte(tick), byte(tick >> 8)})
					require.NoError(t, err)
				}
				out, _, err := from.AppendDatagram(buf[:0], TypeInput, nil)
				require.NoError(t, err)
				hand(to, out)
				for out := range from.Due(buf[:]) {
					hand(to, out)
				}
			}
			p.clock.Advance(time.Second / 60)
		}
		for _, s := range []*Session{s, peer} {
			require.NoError(t, s.Err())
			require.Zero(t, s.InFlight())
			require.Zero(t, s.Stats().LateAcks, "no false loss")
		}
		require.LessOrEqual(t, s.Stats().Lost+peer.Stats().Lost, uint64(n/50))
		require.Len(t, got, 2*60*18/3)
		for event, times := range got {
			require.Equal(t, 1, times, "%x", event)
		}
	}
}

// RagnarokResearchLab/RagLite#4, aethersdr/AetherSDR#5427, GooberRF/alpinefaction#30:
// timers of 50 ms fire after 62.5 on Windows.
func TestScarTimerOf64HzMakesHeartbeatsLate(t *testing.T) {
	const period = 15625 * time.Microsecond
	for poll, want := range map[time.Duration]time.Duration{period: 50 * ms, 0: 4 * period} {
		p := solo(t, Config{PollInterval: poll})
		last, silence := time.Duration(0), time.Duration(0)
		for n := range 1000 {
			p.clock.Set(p.began.Add(time.Duration(n) * period))
			p.hear(TypeHeartbeat)
			if len(p.flush()) > 0 {
				silence = max(silence, p.now()-last)
				last = p.now()
			}
		}
		require.LessOrEqual(t, silence, want)
		require.Greater(t, silence, want-period)
	}
}

// VeniceUnleashed/VeniceUnleashed#274, TehGimp/KerbalMultiPlayer#97: the server is
// busy for seconds, and the clients are gone.
func TestScarOverloadedServerLosesItsPlayers(t *testing.T) {
	s := newScar(t, Config{})
	var waiting [][]byte
	lost, late := uint64(0), false
	for now := time.Duration(0); now < 30*time.Second; now += 10 * ms {
		if now%(20*ms) == 0 {
			waiting = append(waiting, s.app(0, 1))
		}
		waiting = append(waiting, s.due(0)...)
		pause := now > 10*time.Second && now < 14500*ms
		if now%(250*ms) == 0 && !pause {
			for _, datagram := range waiting {
				s.hand(1, datagram)
				s.hand(0, s.due(1)...)
			}
			waiting = nil
			s.hand(0, s.due(1)...)
		}
		if now == 10*time.Second {
			lost = s.ends[0].Stats().Lost + s.ends[1].Stats().Lost
			late = true
		}
		s.wait(10 * ms)
	}
	require.True(t, late)
	require.Zero(t, lost, "no false loss before the pause")
	for _, end := range s.ends {
		require.NoError(t, end.Err())
		require.Zero(t, end.Stats().AcksOutrun)
	}
}

// itsapi/pycraft#107, tsunamayo/Starship-EVO#826: a dead direction was noticed by
// one side only. The other notices when the first falls silent.
func TestScarDeadDirectionIsNoticedByOneSideOnly(t *testing.T) {
	link := simnet.Config{Delay: 20 * ms}
	dead := simnet.Config{Delay: 20 * ms, Blackouts: []simnet.Window{{From: time.Second, To: time.Hour}}}
	p := newPair(t, 1, Config{}, Config{}, link, dead)
	p.state(t, 60, 20)
	p.Run(6100 * ms)
	require.Equal(t, ErrTimeout, p.ends[0].Err(), "hears nothing from second 1 on")
	require.NoError(t, p.ends[1].Err())
	p.Run(11200 * ms)
	require.Equal(t, ErrTimeout, p.ends[1].Err(), "five seconds later")
}

// PurrNet/PurrNet#276, MidLevel/Ruffles#28, RevenantX/LiteNetLib#67: parts of one
// snapshot that were merely reordered count as outdated. A type for each part
// tells them apart.
func TestScarOvertakenPartOfASnapshotIsNotLatest(t *testing.T) {
	for types, want := range map[[2]Type]bool{{16, 16}: false, {16, 17}: true} {
		a, b := duo(t, Config{})
		first, second := a.emit(types[0], 1), a.emit(types[1], 2)
		require.True(t, b.deliver(second).Latest)
		in := b.deliver(first)
		require.Equal(t, want, in.Latest)
		require.Equal(t, []byte{1}, in.Payload)
	}
}

// MirrorNetworking/Mirror#3007, Unity-Technologies/com.unity.netcode.gameobjects#790:
// the state came before the spawn that it needs. No order is promised between the
// two; a flush before AppendDatagram, or Bundle, makes the spawn go first.
func TestScarStateComesBeforeTheSpawn(t *testing.T) {
	a, b := duo(t, Config{})
	a.send("spawn")
	state := a.emit(TypeSnapshot, 1)
	spawn := a.wantEventsOut(0)
	require.Equal(t, state.Sequence+1, spawn.Sequence, "in the order of the README the state is first")
	b.deliver(state, spawn)
	b.wantEvents("spawn")

	a.send("spawn")
	spawn = a.wantEventsOut(1)
	state = a.emit(TypeSnapshot, 1)
	require.Equal(t, spawn.Sequence+1, state.Sequence)
	b.deliver(spawn, state)
	b.wantEvents("spawn")

	a, b = duo(t, Config{Bundle: true})
	a.send("spawn")
	out, _, err := a.s.AppendDatagram(nil, TypeSnapshot, []byte{1})
	require.NoError(t, err)
	in := b.take(out)
	require.Len(t, in.Events, 1)
	require.Equal(t, []byte{1}, in.Payload)
	b.wantEvents("spawn")
}

// A stateless answer with sequence 0, before a session exists, takes the place of
// the session's first datagram. Answer with bytes that the client's handshake
// consumes, not its session.
func TestScarStatelessAnswerTakesThePlaceOfTheFirstDatagram(t *testing.T) {
	client := solo(t, Config{Token: 7})
	answer := Header{Type: TypeAccept, Token: 7, Ack: nothingYet}.AppendTo(nil)
	require.Equal(t, Newest, client.take(answer).Arrival)
	server := client.enter("S", Config{Token: 7})
	k := server.emit(TypeAccept, 1)
	in := client.deliver(k)
	require.Equal(t, Duplicate, in.Arrival)
	require.Nil(t, in.Payload, "the first true one is dropped")
	require.Equal(t, Newest, client.deliver(server.emit(TypeSnapshot)).Arrival)
}
