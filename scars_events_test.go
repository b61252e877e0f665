package ackbits

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ackbits/ackbits/simnet"
)

// Scars: events that are dropped, doubled, overtaken or starved, and windows that never open
// again.

// lidgren/lidgren-network-gen3#62: a receiver threw away what was too far beyond the end
// of its window, yet acknowledged it, and it was lost for ever.
func TestScarBeyondTheWindowIsDroppedButAcknowledged(t *testing.T) {
	s := newScar(t, Config{})
	h := Header{Type: TypeEvent, Sequence: 0, Ack: 65535}
	list, err := AppendEvents(nil, Event{ID: 4096, Data: []byte("far")})
	require.NoError(t, err)
	_, err = s.ends[1].Receive(append(h.AppendTo(nil), list...))
	require.ErrorIs(t, err, ErrWindow)
	s.wait(50 * time.Millisecond)
	answer, _, err := ParseHeader(s.due(1)[0])
	require.NoError(t, err)
	require.EqualValues(t, 65535, answer.Ack, "as if the network had lost it")
}

// RevenantX/LiteNetLib#489: after some seconds in which everything was lost, a
// reliable channel stayed silent for ever.
func TestScarChannelStaysSilentAfterTotalLoss(t *testing.T) {
	for _, adaptive := range []bool{false, true} {
		s := newScar(t, Config{Adaptive: adaptive})
		s.send(0, "before")
		s.exchange(20, scarTick)
		for range 4000 / 16 { // below the timeout
			if s.ends[0].Room() > 200 {
				s.send(0, "meanwhile")
			}
			s.due(0)
			s.due(1)
			s.wait(scarTick)
		}
		s.send(0, "after")
		s.exchange(80, scarTick)
		require.Zero(t, s.ends[0].InFlight())
		require.Contains(t, s.texts(1), "after")
		require.Len(t, s.got[1], int(s.ends[0].Stats().EventsSent))
	}
}

// RevenantX/LiteNetLib#129: with a free place in the middle of the pending ones,
// one message was passed over and a later one sent in its stead.
func TestScarEventIsPassedOverForAFreePlace(t *testing.T) {
	s := newScar(t, Config{})
	var each [][]byte
	for _, text := range []string{"0", "1", "2", "3", "4", "5"} {
		s.send(0, text)
		each = append(each, s.due(0)...)
	}
	s.hand(1, each[1], each[3], each[4]) // places in the middle become free
	s.wait(50 * time.Millisecond)
	s.hand(0, s.due(1)...)
	require.Equal(t, 3, s.ends[0].InFlight())
	s.send(0, "6")
	s.send(0, "7")
	s.wait(50 * time.Millisecond)
	s.exchange(3, 60*time.Millisecond)
	require.Equal(t, []string{"1", "3", "4", "0", "2", "5", "6", "7"}, s.texts(1))
}

// RevenantX/LiteNetLib#167: once the window had been full, nothing was sent any
// more.
func TestScarFullWindowNeverOpensAgain(t *testing.T) {
	s := newScar(t, Config{Backlog: 1000})
	for round := range 3 {
		for range 600 {
			s.send(0, "x")
		}
		s.exchange(20, scarTick)
		require.Zero(t, s.ends[0].InFlight(), round)
	}
	require.Len(t, s.got[1], 1800)
}

// mas-bandwidth/yojimbo#69, #146 and #156: after 32,768 packets without a
// reliable message the next one looked old and was discarded.
func TestScarEventAfterLongSilenceLooksOld(t *testing.T) {
	s := newScar(t, Config{})
	s.send(0, "first")
	for range 40_000 {
		s.hand(1, s.app(0))
		s.hand(1, s.due(0)...)
		s.hand(0, s.app(1))
		s.wait(time.Millisecond)
	}
	s.send(0, "second")
	s.exchange(4, scarTick)
	s.exchange(4, 50*time.Millisecond)
	require.Equal(t, []string{"first", "second"}, s.texts(1))
	require.Zero(t, s.ends[0].InFlight())
}

// mas-bandwidth/reliable#17: two kinds of packet had a window each, and after
// 32,767 of the one the first of the other was taken for old.
func TestScarFirstEventComesLateInASession(t *testing.T) {
	s := newScar(t, Config{})
	for range 33_000 {
		s.hand(1, s.app(0))
		s.hand(0, s.app(1))
		s.wait(time.Millisecond)
	}
	s.send(0, "first")
	in := s.hand(1, s.due(0)...)
	require.Equal(t, TypeEvent, in.Type)
	require.Equal(t, []Event{{0, []byte("first")}}, s.got[1])
}

// mas-bandwidth/reliable#26: what waited to be completed was not freed when the
// numbers went on without it.
func TestScarWhatWaitsIsNeverFreed(t *testing.T) {
	s := newScar(t, Config{Ordered: true})
	s.send(0, "missing")
	s.due(0) // lost
	for range 200 {
		s.send(0, "waits for it")
	}
	s.hand(1, s.due(0)...)
	require.Empty(t, s.got[1])
	require.Equal(t, 200, waitingIn(&s.ends[1].channel.receiver.inbox))
	s.wait(6 * time.Second)
	s.due(1)
	require.ErrorIs(t, s.ends[1].Err(), ErrTimeout)
	require.Nil(t, s.ends[1].channel.receiver.inbox.reorder)

	s = newScar(t, Config{Ordered: true}) // and where it comes after all
	s.send(0, "missing")
	s.due(0) // lost
	for range 200 {
		s.send(0, "waits for it")
	}
	s.hand(1, s.due(0)...)
	require.Equal(t, 200, waitingIn(&s.ends[1].channel.receiver.inbox))
	s.wait(100 * time.Millisecond)
	s.exchange(5, scarTick)
	require.Len(t, s.got[1], 201)
	require.Zero(t, waitingIn(&s.ends[1].channel.receiver.inbox))
	s.exchange(10*60, scarTick)
	require.Nil(t, s.ends[1].channel.receiver.inbox.reorder)
}

// CloudburstMC/Network#25: a peer that stays alive and acknowledges nothing made
// the server's memory grow without end.
func TestScarPeerThatNeverAcknowledgesFillsTheMemory(t *testing.T) {
	s := newScar(t, Config{})
	sent, seq := 0, uint16(0)
	for s.ends[0].Err() == nil {
		h := Header{Type: TypeHeartbeat, Sequence: seq, Ack: 65535}
		seq++
		s.hand(0, h.AppendTo(nil))
		if _, err := s.ends[0].Send([]byte("x")); err == nil {
			sent++
		}
		s.due(0)
		s.wait(scarTick)
		require.LessOrEqual(t, sent, 256)
	}
	require.ErrorIs(t, s.ends[0].Err(), ErrUnacknowledged)
	require.Equal(t, 256, s.ends[0].InFlight())
	require.Len(t, slices.Collect(s.ends[0].Undelivered()), 256)
	require.Empty(t, s.ends[0].channel.sender.outbox.log.runs, "what else they took is free")
	require.Zero(t, s.ends[0].channel.sender.outbox.log.index)
}

// mas-bandwidth/reliable#39: a size in the packet was believed, and bytes were
// copied that were not there.
func TestScarLengthInTheDatagramIsBelieved(t *testing.T) {
	s := newScar(t, Config{})
	lengths := []uint16{4, 1177, 1178, 32767, 32768, 65532, 65533, 65534, 65535}
	for _, length := range lengths {
		event := []byte{1, 0, 0, byte(length), byte(length >> 8), 'a', 'b', 'c'}
		list := Header{Type: TypeEvent}.AppendTo(make([]byte, 0, 1<<17)) // a buffer that goes on after the datagram
		_, err := s.ends[0].Receive(append(list, event...))
		require.ErrorIs(t, err, ErrPayload, length)
		bundle := append(Header{Type: TypeBundle}.AppendTo(make([]byte, 0, 1<<17)), byte(TypeInput))
		_, err = s.ends[0].Receive(append(bundle, event...))
		require.ErrorIs(t, err, ErrPayload, length)
	}
	require.EqualValues(t, 2*len(lengths), s.ends[0].Stats().Rejected)
	require.Zero(t, s.ends[0].Stats().DatagramsReceived)
}

// meshtastic/firmware#11266: a message that could not be sent was reported as
// such, and then sent again and again.
func TestScarRefusedEventStaysScheduled(t *testing.T) {
	s := newScar(t, Config{MaxEvent: 10})
	_, err := s.ends[0].Send(make([]byte, 11))
	require.ErrorIs(t, err, ErrEventTooLarge)
	require.Zero(t, s.ends[0].InFlight())
	s.wait(49 * time.Millisecond)
	require.Empty(t, s.due(0))
	id, err := s.ends[0].Send(nil)
	require.NoError(t, err)
	require.Zero(t, id, "no id was used up")
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
