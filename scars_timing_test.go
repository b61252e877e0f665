package ackbits

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ackbits/ackbits/simnet"
)

// Scars: timers, clocks, round trips and loops that never end.

// mas-bandwidth/yojimbo#82: above 15 ms of round trip every reliable message was
// sent several times.
func TestScarEventIsSentAgainBeforeItsAcknowledgementCanCome(t *testing.T) {
	for _, adaptive := range []bool{false, true} {
		s := newScar(t, Config{Adaptive: adaptive})
		var there, back [4][][]byte // a round trip of 80 ms
		for tick := range 400 {
			if tick%5 == 0 {
				s.send(0, "x")
			}
			at := tick % 4
			s.hand(1, there[at]...)
			s.hand(0, back[at]...)
			there[at], back[at] = append(s.due(0), s.app(0)), append(s.due(1), s.app(1))
			s.wait(10 * time.Millisecond)
		}
		require.Zero(t, s.ends[0].Stats().EventsResent)
		require.Zero(t, s.ends[1].Stats().EventsDuplicate)
	}
}

// ValveSoftware/GameNetworkingSockets#112 and #193: who was woken asked to be
// woken at once again, and again.
func TestScarDeadlineAsksToBeWokenAtOnceForEver(t *testing.T) {
	for _, cfg := range []Config{
		{},
		{Adaptive: true},
		{EventRate: 100},
		{Adaptive: true, EventRate: 100, Bundle: true},
		{Backlog: 1000},
		{StallTimeout: time.Second},
	} {
		for _, answers := range []bool{false, true} {
			s := newScar(t, cfg)
			if cfg.Adaptive {
				adaptive(s.ends[0]).current = copyPlan{left: 2, far: 0b10} // as on a link that loses
			}
			for range min(cfg.Backlog, 600) { // more than the window takes
				s.send(0, "waits for the window")
			}
			awake := func() (ok bool) {
				var carried [][]byte
				for _, datagram := range s.due(0) {
					if s.said%3 != 0 { // else lost
						carried = append(carried, datagram)
					}
				}
				if answers {
					s.hand(1, carried...)
				}
				at, ok := s.ends[0].Deadline()
				if ok {
					require.Positive(t, at.Sub(s.clock.Now()), "%+v after %d datagrams", cfg, s.said)
					s.clock.Set(at)
				}
				return ok
			}
			for n := range 300 {
				if n%7 == 0 && s.ends[0].Room() > 1 {
					s.send(0, "something to be woken for")
				}
				if !awake() {
					break
				}
				if n%11 == 0 || answers && n%2 == 0 {
					s.hand(0, s.app(1))
				}
			}
			for awake() { // until silence ends it
			}
			require.Error(t, s.ends[0].Err())
		}
	}
}

// xtaci/kcp-go#343: after an outage the timers had backed off so far that the
// link came back to long silence.
func TestScarBackoffOutlivesTheOutage(t *testing.T) {
	for outage := 2 * time.Second; outage < 4900*time.Millisecond; outage += 500 * time.Millisecond {
		s := newScar(t, Config{Adaptive: true})
		s.exchange(30, scarTick)
		for range 2 { // the second outage finds the timer as the first one did
			s.send(0, "during the outage")
			s.due(0)
			began, last := s.clock.Now(), s.clock.Now()
			var waits []time.Duration // between the copies, of which none arrives
			for {
				at, ok := s.ends[0].Deadline()
				require.True(t, ok)
				if at.Sub(began) > outage {
					break
				}
				s.clock.Set(at)
				retransmitted := s.ends[0].Stats().EventsResent
				s.due(0)
				s.due(1)
				if s.ends[0].Stats().EventsResent > retransmitted {
					if wait := at.Sub(last); wait > time.Duration(nearGap) { // else a proactive copy
						waits = append(waits, wait)
					}
					last = at
				}
			}
			require.Greater(t, len(waits), 3)
			for i, wait := range waits {
				require.Equal(t, waits[0]<<min(max(i-1, 0), 3), wait, "doubled three times at most: %v", waits)
			}
			s.clock.Set(began.Add(outage))
			back := s.clock.Now()
			for s.ends[0].InFlight() > 0 {
				s.exchange(1, scarTick)
				require.Less(t, s.clock.Now().Sub(back), 150*time.Millisecond, outage)
			}
			s.exchange(30, scarTick)
		}
	}
}

// nsetzer/mpgameserver#10: with a round trip above the time to send again, users
// saw messages several times and in another order.
func TestScarRoundTripAboveTheResendDelay(t *testing.T) {
	s := newScar(t, Config{Ordered: true})
	var there, back [30][][]byte // a round trip of 600 ms
	var want []string
	for tick := range 600 {
		if tick < 400 && tick%6 == 0 {
			want = append(want, string(rune('a'+tick%26)))
			s.send(0, want[len(want)-1])
		}
		at := tick % 30
		s.hand(1, there[at]...)
		s.hand(0, back[at]...)
		there[at], back[at] = s.due(0), s.due(1)
		if tick%7 == 3 {
			there[at] = nil
		}
		s.wait(10 * time.Millisecond)
	}
	require.Equal(t, want, s.texts(1))
	require.Zero(t, s.ends[0].InFlight())
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
