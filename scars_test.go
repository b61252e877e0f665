package ackbits

import (
	"bytes"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Faults that users of libraries of this kind have reported in public, each as a
// small case for this one. A test is named after the fault; the report stands
// above it.

// scar is a pair of sessions, and what they have said.
type scar struct {
	t     *testing.T
	clock ManualClock
	ends  [2]*Session
	got   [2][]Event // copies of what was delivered
	said  int
}

func newScar(t *testing.T, cfg Config) *scar {
	s := &scar{t: t}
	s.clock.Set(time.Unix(1000, 0))
	cfg.Clock = &s.clock
	for i := range s.ends {
		var err error
		s.ends[i], err = NewSession(cfg)
		require.NoError(t, err)
	}
	return s
}

func (s *scar) wait(d time.Duration) { s.clock.Advance(d) }

func (s *scar) send(i int, text string) {
	s.t.Helper()
	_, err := s.ends[i].Send([]byte(text))
	require.NoError(s.t, err)
}

// due returns what an end has to say now.
func (s *scar) due(i int) (datagrams [][]byte) {
	for datagram := range s.ends[i].Due(make([]byte, MaxDatagramSize)) {
		datagrams = append(datagrams, slices.Clone(datagram))
		s.said++
	}
	return datagrams
}

func (s *scar) app(i int, payload ...byte) []byte {
	s.t.Helper()
	datagram, _, err := s.ends[i].AppendDatagram(nil, TypeInput, payload)
	require.NoError(s.t, err)
	return datagram
}

// hand hands datagrams in at an end.
func (s *scar) hand(i int, datagrams ...[]byte) (last Incoming) {
	s.t.Helper()
	for _, datagram := range datagrams {
		in, err := s.ends[i].Receive(datagram)
		require.NoError(s.t, err)
		for _, event := range in.Events {
			s.got[i] = append(s.got[i], Event{event.ID, bytes.Clone(event.Data)})
		}
		last = in
	}
	return last
}

// exchange plays ticks in which all that is said arrives.
func (s *scar) exchange(ticks int, tick time.Duration) {
	for range ticks {
		s.hand(1, s.due(0)...)
		s.hand(0, s.due(1)...)
		s.wait(tick)
	}
}

func (s *scar) texts(i int) (texts []string) {
	for _, event := range s.got[i] {
		texts = append(texts, string(event.Data))
	}
	return texts
}

const scarTick = 16 * time.Millisecond

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
