package ackbits

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ackbits/ackbits/simnet"
)

// Scars: acknowledgements that are late, lost or misread, and what the sender then reports.

// RevenantX/LiteNetLib#564: the first acknowledgements of a connection were
// taken for false ones, and a loss was reported where there was none.
func TestScarFirstAcknowledgementsCountAsLoss(t *testing.T) {
	s := newScar(t, Config{Outcomes: true})
	s.hand(1, s.app(0, 1))
	s.hand(0, s.app(1, 2))
	require.EqualValues(t, 1, s.ends[0].Stats().Delivered)
	for n := range 64 {
		s.hand(1, s.app(0, 1), s.app(0, 1)) // of which the answer names one by ack, one by a bit
		s.hand(0, s.app(1, 2))
		require.EqualValues(t, 2*n+3, s.ends[0].Stats().Delivered)
		s.wait(scarTick)
	}
	for i, end := range s.ends {
		stats := end.Stats()
		require.Zero(t, stats.Lost+stats.LateAcks+stats.Duplicates+stats.Stale, i)
		require.GreaterOrEqual(t, stats.Delivered, uint64(63), i)
	}
}

// lsalzman/enet#141: an acknowledgement was lost while a burst went on; the
// receiver then refused to answer the old packet's copies, and the channel
// locked up.
func TestScarOldCopyIsNotAnsweredAndTheChannelLocks(t *testing.T) {
	s := newScar(t, Config{Backlog: 1000})
	s.send(0, "old")
	s.hand(1, s.due(0)...) // it arrives, its acknowledgements are lost
	for range 400 {
		s.send(0, "burst")
	}
	s.hand(1, s.due(0)...)
	for range 40 { // and the burst pushes it out of the acknowledgements
		s.hand(1, s.app(0, 1))
		s.due(1)
	}
	require.Equal(t, 401, s.ends[0].InFlight())
	s.wait(100 * time.Millisecond)
	s.exchange(10, 60*time.Millisecond)
	require.Zero(t, s.ends[0].InFlight())
	require.Len(t, s.got[1], 401)
}

// mas-bandwidth/yojimbo#105: acknowledgements came so late that the send queue
// of a fast sender filled up.
func TestScarAcknowledgementsLagBehindAFastSender(t *testing.T) {
	s := newScar(t, Config{})
	big := string(make([]byte, 1000)) // one to a datagram
	for range 20 {
		for range 200 {
			s.send(0, big)
		}
		for _, datagram := range s.due(0) { // at one instant, with no time for a heartbeat
			s.hand(1, datagram)
			s.hand(0, s.due(1)...)
		}
		require.Less(t, s.ends[0].InFlight(), 32)
		s.wait(50 * time.Millisecond)
		s.exchange(1, 0)
		require.Zero(t, s.ends[0].InFlight())
	}
	require.Zero(t, s.ends[1].Stats().AcksOutrun)
}

// TimonPost/laminar#177: 65535 stood for "nothing", so the packet of that number
// was mishandled.
func TestScarNumber65535StandsForNothing(t *testing.T) {
	s := newScar(t, Config{})
	for i := range s.ends {
		beginAt(s.ends[i], 65534, 65534, 65535, 65535, 0)
	}
	s.hand(1, s.app(0))
	s.send(0, "event 65535 in datagram 65535")
	s.hand(1, s.due(0)...)
	require.EqualValues(t, 65535, s.got[1][0].ID)
	s.hand(0, s.app(1))
	require.Zero(t, s.ends[0].InFlight())
	require.EqualValues(t, 2, s.ends[0].Stats().Delivered)
	h, _, err := ParseHeader(s.app(1))
	require.NoError(t, err)
	require.EqualValues(t, 65535, h.Ack)
	require.EqualValues(t, 1, h.AckBits)
	again := s.app(0)
	s.hand(1, again)
	h, _, err = ParseHeader(s.app(1))
	require.NoError(t, err)
	require.EqualValues(t, 0, h.Ack)
	require.EqualValues(t, 0b11, h.AckBits, "65535 is a bit like any other")

	s = newScar(t, Config{}) // with nothing near it received
	for i := range s.ends {
		beginAt(s.ends[i], 65000, 65000, 0, 0, 0)
	}
	var last []byte
	for n := range 536 {
		last = s.app(0)
		if n == 0 {
			s.hand(1, last)
			s.hand(0, s.app(1))
		}
	}
	require.Equal(t, Newest, s.hand(1, last).Arrival)
	require.Equal(t, Duplicate, s.hand(1, last).Arrival)
	s.hand(0, s.app(1))
	require.EqualValues(t, 2, s.ends[0].Stats().Delivered)
}

// TimonPost/laminar#303: when all headers that repeat an acknowledgement were
// lost, the message was delivered a second time.
func TestScarAllCopiesOfAnAcknowledgementAreLost(t *testing.T) {
	s := newScar(t, Config{})
	s.send(0, "once")
	s.hand(1, s.due(0)...)
	for range 40 {
		s.hand(1, s.app(0))
		s.app(1) // lost, each of them
	}
	s.wait(100 * time.Millisecond)
	s.hand(1, s.due(0)...)
	s.hand(0, s.app(1))
	require.Equal(t, []string{"once"}, s.texts(1))
	require.Zero(t, s.ends[0].InFlight())
}

// cBournhonesque/lightyear#1684: a queued acknowledgement was read after the
// loss timer, which had already thrown away what the packet carried.
func TestScarWaitingAcknowledgementComesAfterTheOutcome(t *testing.T) {
	for _, judged := range []bool{false, true} {
		s := newScar(t, Config{Outcomes: true})
		s.send(0, "x")
		s.hand(1, s.due(0)...)
		ack := s.app(1)
		s.wait(3 * time.Second) // it waits in the socket
		if judged {
			s.app(0)
		}
		s.hand(0, ack)
		require.Zero(t, s.ends[0].InFlight())
		o, ok := s.ends[0].NextOutcome()
		require.True(t, ok)
		require.Equal(t, !judged, o.Delivered)
		s.due(0)
		require.Zero(t, s.ends[0].Stats().EventsResent)
	}
}

// pion/sctp#104, fixed in #116: a chunk that was marked to be sent again and
// then acknowledged was sent without its bytes.
// P-6.4.4.
func TestScarAcknowledgedBetweenDueAndSent(t *testing.T) {
	var clock ManualClock
	clock.Set(time.Unix(1000, 0))
	c, err := NewReliableChannel(Config{Clock: &clock})
	require.NoError(t, err)
	for _, text := range []string{"stays due", "is acknowledged", "stays due, too"} {
		_, err := c.Send([]byte(text))
		require.NoError(t, err)
		h, _ := c.NextHeader(TypeEvent)
		require.NotEmpty(t, c.AppendDueEvents(nil, h.Sequence, 100))
	}
	clock.Advance(100 * time.Millisecond)
	require.True(t, c.EventsDue(100)) // all three are marked
	_, err = c.Receive(Header{Type: TypeHeartbeat, Ack: 1}, nil)
	require.NoError(t, err)
	h, _ := c.NextHeader(TypeEvent)
	events, err := ParseEvents(nil, c.AppendDueEvents(nil, h.Sequence, 100))
	require.NoError(t, err)
	require.Equal(t, []Event{{0, []byte("stays due")}, {2, []byte("stays due, too")}}, events)
}

// pion/webrtc#1477: a replay window refused packets that were sent again, since
// they bore their old number.
func TestScarCopyFallsOutOfTheReplayWindow(t *testing.T) {
	s := newScar(t, Config{})
	s.send(0, "x")
	s.due(0)         // lost
	for range 1000 { // far past any window
		s.hand(1, s.app(0))
	}
	s.wait(100 * time.Millisecond)
	in := s.hand(1, s.due(0)...)
	require.Equal(t, Newest, in.Arrival)
	require.Equal(t, []string{"x"}, s.texts(1))
}

// quinn-rs/quinn#2711: at a high rate, packets that were reordered by more than
// three counted as lost, all of them delivered.
func TestScarReorderedByManyCountsAsLost(t *testing.T) {
	s := newScar(t, Config{Outcomes: true})
	look := func() {
		for {
			o, ok := s.ends[0].NextOutcome()
			if !ok {
				return
			}
			require.True(t, o.Delivered, o.Sequence)
		}
	}
	for range 20 {
		var burst [][]byte
		for range 30 {
			burst = append(burst, s.app(0))
		}
		slices.Reverse(burst)
		for _, datagram := range burst {
			s.hand(1, datagram)
			s.hand(0, s.app(1)) // every header on the way names a few of them
			look()
		}
		s.wait(5 * time.Millisecond)
	}
	s.wait(5 * time.Second)
	look()
	require.EqualValues(t, 600, s.ends[0].Stats().Delivered)
}

// pmmp/RakLib#54: what was sent unreliably was sent again when it was lost, long
// after it had a meaning.
// P-6.2.1.
func TestScarUnreliableDatagramIsSentAgain(t *testing.T) {
	s := newScar(t, Config{Bundle: true, Adaptive: true})
	for range 10 {
		s.app(0, 0x77) // lost
	}
	for range 200 {
		for _, datagram := range s.due(0) {
			require.EqualValues(t, TypeHeartbeat, datagram[1])
			s.hand(1, datagram)
		}
		s.hand(0, s.due(1)...)
		s.wait(scarTick)
	}
}

// CloudburstMC/Network#27: packets that had arrived were reported as missing.
func TestScarArrivedIsReportedAsMissing(t *testing.T) {
	for _, newestFirst := range []bool{false, true} {
		s := newScar(t, Config{})
		var all [][]byte
		for range 33 {
			all = append(all, s.app(0))
		}
		for k := 0; k < 33; k += 2 { // the gaps later
			if newestFirst {
				s.hand(1, all[32-k])
			} else {
				s.hand(1, all[k])
			}
		}
		for k := 1; k < 33; k += 2 {
			s.hand(1, all[k])
		}
		h, _, err := ParseHeader(s.app(1))
		require.NoError(t, err)
		require.EqualValues(t, 32, h.Ack)
		require.Equal(t, uint64(1<<32-1), h.AckBits)
	}
}

// ValveSoftware/GameNetworkingSockets#20: a packet that the network doubled had
// its unreliable message delivered twice.
func TestScarDoubledDatagramIsDeliveredTwice(t *testing.T) {
	s := newScar(t, Config{})
	first, second := s.app(0, 1), s.app(0, 2)
	require.NotNil(t, s.hand(1, first).Payload)
	require.Nil(t, s.hand(1, first).Payload)
	require.NotNil(t, s.hand(1, second).Payload)
	require.Nil(t, s.hand(1, first).Payload)
	require.EqualValues(t, 2, s.ends[1].Stats().Duplicates)
}

// mas-bandwidth/netcode#64: numbers with the high bit were never checked for
// having come before.
func TestScarHighNumbersEscapeTheDuplicateCheck(t *testing.T) {
	s := newScar(t, Config{})
	for i := range s.ends {
		beginAt(s.ends[i], 1<<15+10, 1<<15+10, 0, 0, 0)
	}
	datagram := s.app(0, 9)
	require.Equal(t, Newest, s.hand(1, datagram).Arrival)
	require.Equal(t, Duplicate, s.hand(1, datagram).Arrival)
	s.hand(1, s.app(0, 9))
	in := s.hand(1, datagram)
	require.Equal(t, Duplicate, in.Arrival, "nor when a newer one has come")
	require.Nil(t, in.Payload)
}

// lucaspoffo/renet#17: one kind of packet took a number from elsewhere, and the
// replay protection threw away an honest one as its duplicate.
func TestScarTwoKindsOfDatagramShareANumber(t *testing.T) {
	s := newScar(t, Config{Bundle: true})
	var all [][]byte
	for n := range 20 {
		s.send(0, "x")
		if n%3 == 0 {
			all = append(all, s.app(0))
		}
		all = append(all, s.due(0)...)
		s.wait(50 * time.Millisecond)
		all = append(all, s.due(0)...)
	}
	s.ends[0].Close()
	all = append(all, s.due(0)...)
	kinds := map[Type]bool{}
	for n, datagram := range all {
		h, _, err := ParseHeader(datagram)
		require.NoError(t, err)
		require.EqualValues(t, n, h.Sequence)
		kinds[h.Type] = true
	}
	require.Subset(t, kinds, map[Type]bool{TypeEvent: true, TypeBundle: true, TypeDisconnect: true})
}

// mozilla/neqo#1472: a packet that overtook others made all of them count as
// lost, though their acknowledgements came a moment later.
func TestScarOneFastPacketMakesTheOthersLost(t *testing.T) {
	s := newScar(t, Config{Adaptive: true})
	for range 60 { // a link that is known to reorder
		a, b := s.app(0), s.app(0)
		s.wait(10 * time.Millisecond)
		s.hand(1, b)
		first := s.app(1)
		s.hand(1, a)
		s.hand(0, first)
		s.wait(10 * time.Millisecond)
		s.hand(0, s.app(1))
	}
	s.send(0, "slow")
	slow := s.due(0)
	require.Len(t, slow, 1)
	fast := s.app(0)
	s.wait(10 * time.Millisecond)
	s.hand(1, fast)
	s.wait(10 * time.Millisecond)
	s.hand(0, s.app(1))
	require.Empty(t, s.due(0), "evidence waits where datagrams overtake one another")
	s.hand(1, slow...)
	s.hand(0, s.app(1))
	require.Zero(t, s.ends[0].Stats().EventsResent)
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
