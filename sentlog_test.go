package ackbits

import (
	"math"
	"math/bits"
	"testing"
	"time"

	"github.com/ackbits/ackbits/internal/trim"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// sentSoFar returns a log that has numbered count datagrams and remembers none.
func sentSoFar(count int64) *sentLog {
	s := new(sentLog)
	s.init(true)
	s.first, s.open, s.count = count, count, count
	return s
}

func TestSequenceNamesTheNumberAtMost32767Back(t *testing.T) {
	for _, count := range []int64{0, 1, 2, 10, 32767, 32768, 32769, 65535, 65536, 65537, 1 << 40} {
		s := sentSoFar(count)
		last := count - 1
		for age := range int64(1 << 16) {
			n, ok := s.lookup(uint16(last - age))
			if ok != (age <= 32767) || ok && n != last-age {
				t.Fatalf("of %d sent, the one %d before the last is number %d, %v", count, age, n, ok)
			}
		}
	}
}

// An acknowledgement must not hit another entry through the index.
func TestSequencesThatShareAnIndexAreToldApart(t *testing.T) {
	s := new(sentLog)
	s.init(false)
	for range 10 {
		addTo(s, TypeInput, 0)
	}
	for _, seq := range []uint16{9 + 16, 9 + 256, 9 + 1024, 9 + 4096} {
		_, ok := s.lookup(seq)
		require.False(t, ok, "%d is newer than the last", seq)
	}
	n, ok := s.lookup(65500)
	require.False(t, ok && s.remembered(n), "65500 was never sent")
}

// addTo adds a datagram as the sender does where the oldest need not be remembered.
func addTo(s *sentLog, t Type, now int64) (seq uint16) {
	if s.full() {
		s.forgetOldest()
	}
	return s.add(t, now)
}

// Neither 32767 ahead nor 32768 away is a sequence sent.
func TestAckFromTheFarHalfIsNone(t *testing.T) {
	s := sentSoFar(60)
	for _, seq := range []uint16{60, 32826, 32827} {
		_, ok := s.lookup(seq)
		require.False(t, ok, seq)
	}
}

// P-3.1.1.
func TestNumbersBeginAtZeroAndWrapOnTheWireOnly(t *testing.T) {
	s := sentSoFar(0)
	require.Equal(t, uint16(0), addTo(s, TypeInput, 0))
	require.Equal(t, uint16(1), addTo(s, TypeInput, 0))
	s = sentSoFar(65535)
	require.Equal(t, uint16(65535), addTo(s, TypeInput, 0))
	require.Equal(t, uint16(0), addTo(s, TypeInput, 0))
	require.Equal(t, int64(65537), s.count)
}

func TestLogGrowsRatherThanForgetTooEarly(t *testing.T) {
	for _, tc := range []struct {
		size, remembered int
		oldest           stamp
		want             bool
		because          string
	}{
		{16, 15, undecided, false, "there is room"},
		{16, 16, undecided, true, "the oldest is undecided"},
		{16, 16, lost, true, "256 newer ones were not sent yet"},
		{16, 16, delivered, false, "the oldest is delivered"},
		{128, 128, lost, true, "256 newer ones were not sent yet"},
		{256, 255, undecided, false, "there is room"},
		{256, 256, lost, false, "the oldest has its outcome"},
		{256, 256, undecided, true, "the oldest is undecided"},
		{512, 512, lost, false, "the oldest has its outcome"},
	} {
		c := channel{sender: sender{lossDelay: math.MaxInt64, log: *sentSoFar(1000)}}
		c.sender.log.resize(tc.size)
		c.sender.log.first = c.sender.log.count - int64(tc.remembered)
		*c.sender.log.stamps.At(c.sender.log.first) |= tc.oldest
		h := Header{Type: TypeInput}
		c.nextHeader(&h, 0)
		require.Equal(t, tc.want, len(c.sender.log.stamps) > tc.size, "%d of %d: %s", tc.remembered, tc.size, tc.because)
	}
}

// Where everything is acknowledged, the log keeps its size, however far off the
// first outcome is.
func TestLogOfAcknowledgedDatagramsStaysSmall(t *testing.T) {
	c, _ := newChannel(t, Config{LossDelay: time.Hour})
	for n := range uint16(1000) {
		c.NextHeader(TypeInput)
		c.Receive(Header{Type: TypeInput, Sequence: n, Ack: n}, nil)
	}
	require.EqualValues(t, 1000, c.Stats().Delivered)
	require.Len(t, c.sender.log.stamps, minRememberedSent)
}

// An acknowledgement that comes later than the outcome must still find its
// datagram while it carries undelivered events, or nothing is ever delivered on a
// path that is that slow.
// P-4.2.6.
func TestLogRemembersWhatIsLostWithEventsForSixSeconds(t *testing.T) {
	const sentAt = 5_000
	for _, tc := range []struct {
		stamp     stamp
		delivered bool
		now       int64
		want      bool
	}{
		{lost | carriesEvents, false, sentAt + lateMemory - 1, true},
		{lost | carriesEvents, false, sentAt + lateMemory, false},
		{lost | carriesEvents, true, sentAt, false},
		{lost, false, sentAt, false},
		{delivered | carriesEvents, false, sentAt, false},
	} {
		s := sender{log: *sentSoFar(1000)}
		oldest := s.log.count - rememberedSent
		s.outbox.log.index.note(oldest, 0, 0, true)
		s.log.first, s.log.open = oldest, s.log.count
		*s.log.stamps.At(oldest) = stamp(sentAt<<stampBits) | tc.stamp
		s.outbox.add(nil)
		s.outbox.fresh++
		s.noteRun(0, 0, 1, uint16(oldest))
		if tc.delivered {
			s.outbox.get(0).state = isDelivered
			s.outbox.base++
		}
		require.Equal(t, tc.want, s.awaited(oldest, tc.now), tc)
	}
}

// The dumb model: all that was ever sent, and from where on it is remembered.
func TestLogRemembersTheNewest(t *testing.T) {
	type record struct {
		stamp stamp
		kind  Type
	}
	rapid.Check(t, func(t *rapid.T) {
		s := new(sentLog)
		s.init(rapid.Bool().Draw(t, "outcomes"))
		var sent []record
		first, size := 0, minRememberedSent
		for range rapid.IntRange(1, 12).Draw(t, "steps") {
			for range rapid.IntRange(0, 40).Draw(t, "sends") {
				n := len(sent)
				r := record{stamp(n * 1000 << stampBits), Type(n)}
				if r.kind.application() {
					r.stamp |= fromApplication
				}
				require.Equal(t, uint16(n), addTo(s, r.kind, int64(n*1000)))
				sent = append(sent, r)
			}
			first = max(first, len(sent)-size)
			if rapid.Bool().Draw(t, "resize") {
				size = rapid.SampledFrom([]int{16, 32, 64, 256}).Draw(t, "size")
				s.resize(size)
				first = max(first, len(sent)-size)
			}
			require.EqualValues(t, first, s.open, "the oldest, as nobody looks for outcomes")
			for n := int64(-3); n < int64(len(sent)); n++ {
				require.Equal(t, n >= int64(first), s.remembered(n))
				if n < int64(first) {
					continue
				}
				require.Equal(t, sent[n].stamp, *s.stamps.At(n))
				if s.types != nil {
					require.Equal(t, sent[n].kind, *s.types.At(n))
				}
			}
		}
	})
}

// What was never sent is no news to begin with.
func TestBitsBeforeTheFirstDatagramAreNoNews(t *testing.T) {
	s := sentSoFar(0)
	ackNew, bitsNew := s.news(0, math.MaxUint64)
	require.True(t, ackNew)
	require.Zero(t, bitsNew)
}

// A sender of 0 … 4 reads 4 and 0b1101.
func TestBitsOfTheWorkedExampleAreNewsOnce(t *testing.T) {
	s := sentSoFar(0)
	ackNew, bitsNew := s.news(4, 0b1101)
	require.True(t, ackNew)
	require.Equal(t, uint64(0b1101), bitsNew)
	ackNew, bitsNew = s.news(4, 0b1101)
	require.False(t, ackNew)
	require.Zero(t, bitsNew)
	ackNew, bitsNew = s.news(4, 0b1111)
	require.False(t, ackNew)
	require.Equal(t, uint64(0b0010), bitsNew, "2 came late")
}

// The same acknowledgement comes again and again.
func TestAckIsNewsOnce(t *testing.T) {
	s := sentSoFar(0)
	for i := range 3 {
		ackNew, bitsNew := s.news(0, 0)
		require.Equal(t, i == 0, ackNew)
		require.Zero(t, bitsNew)
	}
}

// 33 = 1 + 32.
func TestWholeWindowInOneAckIsNews(t *testing.T) {
	s := sentSoFar(0)
	ackNew, bitsNew := s.news(32, math.MaxUint32)
	require.True(t, ackNew)
	require.Equal(t, 32, bits.OnesCount64(bitsNew))
}

// The dumb model: the set of numbers acknowledged. What it knows must not be
// news again within 64 of the top, what it does not know must always be.
func TestNewsIsWhatWasNotSeenBefore(t *testing.T) {
	step := rapid.OneOf(rapid.Int64Range(-3, 5), rapid.Int64Range(-70, 70), rapid.Int64Range(62, 66), rapid.Int64Range(-300, 300))
	rapid.Check(t, func(t *rapid.T) {
		s := sentSoFar(0)
		top, seen := int64(-1), map[int64]bool{}
		check := func(n int64, isNews bool) {
			switch {
			case n < 0:
			case !seen[n]:
				require.True(t, isNews, "%d was not seen", n)
			case n >= top-64:
				require.False(t, isNews, "%d was seen", n)
			}
		}
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			ack := max(0, top+step.Draw(t, "step"))
			ackBits := rapid.Uint64().Draw(t, "bits")
			if rapid.Bool().Draw(t, "narrow") {
				ackBits &= math.MaxUint32
			}
			ackNew, bitsNew := s.news(ack, ackBits)
			require.Zero(t, bitsNew&^ackBits, "only what is acknowledged is news")
			top = max(top, ack)
			check(ack, ackNew)
			for bit := range int64(64) {
				if ackBits>>bit&1 != 0 {
					check(ack-1-bit, bitsNew>>bit&1 != 0)
				}
			}
			seen[ack] = true
			for bit := range int64(64) {
				if ackBits>>bit&1 != 0 {
					seen[ack-1-bit] = true
				}
			}
		}
	})
}

// Memory is freed every few seconds, but not that of a datagram whose late
// acknowledgement would still deliver an event.
func TestTrimKeepsALostDatagramWhoseEventIsAwaited(t *testing.T) {
	p := solo(t, Config{LossDelay: ms, ResendDelay: time.Hour})
	p.send("x")
	p.wantEventsOut(0)
	for range 400 {
		p.emit(TypeInput)
		p.advance(10 * ms)
	}
	require.Greater(t, p.now(), time.Duration(trim.Period))
	p.ack(0, 0)
	p.wantInFlight(0)
}

// However long outcomes take.
func TestTrimFreesTheLogWhateverLossDelay(t *testing.T) {
	p := solo(t, Config{LossDelay: time.Hour, Timeout: 2 * time.Hour, Outcomes: true})
	for range 300 { // not acknowledged at once: more is remembered
		p.emit(TypeInput)
	}
	require.Len(t, p.s.channel.sender.log.stamps, 512)
	for first := uint16(0); first < 300; first += 25 {
		p.ack(first+24, 1<<24-1)
	}
	for range 490 {
		p.advance(20 * ms)
		k := p.emit(TypeInput)
		p.ack(k.Sequence, 0)
	}
	require.Len(t, p.s.channel.sender.log.stamps, 2*trim.ModestElements)

	p.fetchOutcomes()
	p.outcomes = nil
	k := p.emit(TypeInput)
	p.sleep(time.Hour) // for the first outcome: all before it are long forgotten
	p.wantOutcome(Outcome{Sequence: k.Sequence, Type: TypeInput})
	p.wantNoOutcome()
}

// The memory of what was in flight in a busy moment is freed, wherever that ends between
// two trims.
func TestDeepLogIsFreedWithinTenSecondsOfQuiet(t *testing.T) {
	const roundTrip = 1500 // ms
	for phase := range 30 {
		c, clock := newChannel(t, Config{LossDelay: 3 * time.Second})
		busy := 4000 + 100*phase // at a datagram each millisecond
		sentAt := map[int]uint16{}
		peer := uint16(0)
		for now := range busy + 10_000 {
			if now < busy || now%50 == 0 {
				h, _ := c.NextHeader(TypeInput)
				sentAt[now] = h.Sequence
			}
			if seq, ok := sentAt[now-roundTrip]; ok {
				c.Receive(Header{Type: TypeHeartbeat, Sequence: peer, Ack: seq}, nil)
				peer++
			}
			clock.Advance(ms)
		}
		require.Zero(t, c.Stats().Lost)
		require.LessOrEqual(t, len(c.sender.log.stamps), rememberedSent)
	}
}

// An outage leaves nothing behind when less is sent by then, or only heartbeats, however
// many.
func TestLogOfAnOutageIsFreed(t *testing.T) {
	for _, tc := range []struct {
		kind        Type
		every, time int // ms
		room        int
	}{
		{TypeHeartbeat, 50, 10_000, 256}, {TypeHeartbeat, 5, 10_000, 256}, {TypeHeartbeat, 1, 10_000, 256}, {TypeInput, 50, 10_000, 256},
		{TypeInput, 1, 10_000, 1024}, // what the next loss would take
		{TypeInput, 1, 130_000, 512},
	} {
		c, clock := newChannel(t, Config{})
		for range 2000 {
			c.NextHeader(TypeInput)
			clock.Advance(ms)
		}
		require.GreaterOrEqual(t, len(c.sender.log.stamps), 1024)
		for now := range tc.time {
			if now%tc.every == 0 {
				h, _ := c.NextHeader(tc.kind)
				c.Receive(Header{Type: TypeHeartbeat, Sequence: h.Sequence, Ack: h.Sequence}, nil)
			}
			clock.Advance(ms)
		}
		require.Equal(t, tc.room, len(c.sender.log.stamps), tc)
	}
}

// Room for what the next loss makes the log remember is kept for a while after one.
func TestLogKeepsRoomForTheNextLoss(t *testing.T) {
	c, clock := newChannel(t, Config{LossDelay: ms})
	step := func(acknowledged bool) {
		h, _ := c.NextHeader(TypeInput)
		if acknowledged {
			c.Receive(Header{Type: TypeHeartbeat, Sequence: h.Sequence, Ack: h.Sequence}, nil)
		}
		clock.Advance(time.Second / 60)
	}
	step(false)
	step(true)
	require.EqualValues(t, 1, c.Stats().Lost)
	for range 60 * 60 {
		step(true)
	}
	require.Len(t, c.sender.log.stamps, rememberedSent)
	for range 3 * 60 { // up to the next trim
		step(true)
	}
	require.Len(t, c.sender.log.stamps, minRememberedSent)
}
