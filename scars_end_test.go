package ackbits

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ackbits/ackbits/simnet"
)

// Scars: sessions that end too soon, too late, on one side only, or again and again.

// cBournhonesque/lightyear#1164: packets of the connection before filled the new
// one's replay protection, and its own were then taken for old.
// P-2.1.6.
func TestScarPacketsOfTheSessionBeforePoisonTheNext(t *testing.T) {
	before := newScar(t, Config{Token: 1})
	var old []byte
	for range 5000 {
		old = before.app(0, 1)
	}
	s := newScar(t, Config{Token: 2})
	_, err := s.ends[1].Receive(old)
	require.ErrorIs(t, err, ErrToken)
	s.send(0, "new")
	s.hand(1, s.due(0)...)
	require.Equal(t, []string{"new"}, s.texts(1))
}

// MirrorNetworking/Mirror#3704: the timeout was reported again at every update.
func TestScarTimeoutIsReportedForEver(t *testing.T) {
	s := newScar(t, Config{Outcomes: true})
	s.app(0)
	s.wait(5 * time.Second)
	require.Empty(t, s.due(0))
	require.ErrorIs(t, s.ends[0].Err(), ErrTimeout)
	outcomes := 0
	for range 100 {
		s.wait(scarTick)
		require.Empty(t, s.due(0))
		if _, ok := s.ends[0].NextOutcome(); ok {
			outcomes++
		}
	}
	require.Equal(t, 1, outcomes)
	_, ok := s.ends[0].Deadline()
	require.False(t, ok)
}

// Dahrkael/rENet#3: packets that kept coming in put off the end of a connection
// that was being closed for ever.
func TestScarIncomingTrafficPutsOffTheEnd(t *testing.T) {
	s := newScar(t, Config{})
	var traffic [][]byte // of a peer that acknowledges nothing
	for range 10 {
		traffic = append(traffic, s.app(1, 1))
	}
	s.send(0, "last words")
	s.ends[0].Close()
	var said []Type
	for _, datagram := range traffic {
		if s.ends[0].Err() != nil {
			break
		}
		s.hand(0, datagram)
		if out, ok := s.ends[0].AppendDue(nil); ok {
			h, _, err := ParseHeader(out)
			require.NoError(t, err)
			said = append(said, h.Type)
			if h.Type == TypeEvent || len(said) == 4 { // the other Disconnects are lost
				s.hand(1, out)
			}
		}
		s.wait(scarTick)
	}
	require.ErrorIs(t, s.ends[0].Err(), ErrClosed)
	require.Equal(t, []Type{TypeEvent, TypeDisconnect, TypeDisconnect, TypeDisconnect}, said)
	require.Equal(t, []string{"last words"}, s.texts(1))
	require.ErrorIs(t, s.ends[1].Err(), ErrPeerLeft)
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
