package ackbits

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// What is owed stays owed, whatever a Stale datagram acknowledges.
func TestStaleDatagramDoesNotPayForAcknowledgements(t *testing.T) {
	p := solo(t, Config{})
	p.send("x")
	p.wantEventsOut(0)
	p.wantNothing()
	for i := range uint16(32) {
		p.take(p.datagram(TypeInput, 200+i, nothingYet, 0))
	}
	require.Equal(t, Stale, p.take(p.datagram(TypeInput, 100, 0, 0)).Arrival)
	p.wantInFlight(0)
	p.wantDatagram(TypeHeartbeat)
}

// P-4.2.1.
func TestAcknowledgementsOfEveryArrivalAreRead(t *testing.T) {
	inBothForms(t, func(t *testing.T, wide bool) {
		p := solo(t, Config{Wide: wide})
		p.foreign = 100
		p.hear(TypeInput)
		for i, seq := range []uint16{101, 99, 101, 50000} {
			p.send("x")
			p.wantEventsOut(uint16(i))
			p.take(p.datagram(TypeInput, seq, uint16(i), 0))
			p.wantInFlight(0)
		}
	})
}

// P-4.2.2.
func TestAckNewerThanTheLastSentVoidsTheWholePair(t *testing.T) {
	inBothForms(t, func(t *testing.T, wide bool) {
		for _, start := range edges {
			p := solo(t, Config{Wide: wide})
			p.startAt(start, 0)
			p.send("x")
			p.wantEventsOut(0)
			for _, ahead := range []uint16{1, 2, 256, 1024, 4096, 32767, 32768} {
				p.ack(start+ahead, math.MaxUint64)
			}
			p.wantInFlight(1)
			require.Zero(t, p.s.RTT())
			p.ack(start, 0)
			p.wantInFlight(0)
		}
	})
}

// Fault: bits for sequences that were never sent.
// P-4.2.3.
func TestBitsOfSequencesNeverSentAreSkipped(t *testing.T) {
	inBothForms(t, func(t *testing.T, wide bool) {
		p := solo(t, Config{Wide: wide})
		p.send("0")
		p.wantEventsOut(0)
		p.send("1")
		p.wantEventsOut(1)
		p.sleep(20 * ms)
		p.ack(0, math.MaxUint64)
		p.wantInFlight(1)
		require.Equal(t, 20*ms, p.s.RTT())
		require.EqualValues(t, 1, p.s.Stats().Delivered)
	})
}

// Fault: an ack outside the window hits another entry through the index mask.
// P-4.2.2.
func TestAckOutsideTheWindowHitsNoOtherDatagram(t *testing.T) {
	inBothForms(t, func(t *testing.T, wide bool) {
		p := solo(t, Config{Wide: wide})
		for i := range 10 {
			p.send("x")
			p.wantEventsOut(uint16(i))
		}
		for _, ack := range []uint16{9 + 256, 9 + 1024, 9 + 4096, 65500} {
			p.ack(ack, 0)
			p.ack(ack, math.MaxUint64)
		}
		p.wantInFlight(10)
		require.Zero(t, p.s.Stats().Delivered)
	})
}

// P-4.2.2.
func TestAckOfForgottenDatagramSaysNothing(t *testing.T) {
	inBothForms(t, func(t *testing.T, wide bool) {
		p := solo(t, Config{Wide: wide, LossDelay: 1})
		p.send("x")
		p.wantEventsOut(0)
		p.sleep(time.Duration(lateMemory))
		for range 256 {
			p.sleep(1)
			p.emit(TypeInput)
		}
		p.ack(0, math.MaxUint64)
		p.wantInFlight(1)
		require.Zero(t, p.s.RTT())
		require.Zero(t, p.s.Stats().LateAcks)
	})
}

// Fault: one with a very high number makes all honest acknowledgements too old.
func TestPoisonedAckDeliversNothing(t *testing.T) {
	inBothForms(t, func(t *testing.T, wide bool) {
		p := solo(t, Config{Wide: wide})
		for range 59 {
			p.emit(TypeInput)
		}
		p.send("x")
		p.wantEventsOut(0) // sequence 59
		for i := range 50 {
			p.sleep(100 * ms)
			p.take(p.datagram(TypeInput, uint16(i), 32826, 0))
			p.wantEventsOut(0)
		}
		p.wantInFlight(1)
		require.Zero(t, p.s.Stats().Delivered)
		p.send("y")
		p.ack(p.wantEventsOut(1).Sequence, 0) // an honest one still counts
		p.wantInFlight(1)
		p.sendN(255, 0)
		p.sendFails(ErrUnacknowledged)
	})
}

// 65535 with no bits is how a peer says that it has received nothing, until it
// has said otherwise.
func TestAck65535CountsOnceAnotherWasAccepted(t *testing.T) {
	inBothForms(t, func(t *testing.T, wide bool) {
		story := func(first func(p *actor), inFlight int) {
			p := solo(t, Config{Wide: wide})
			p.startAt(65533, 0)
			for i := range 3 {
				p.send("x")
				p.wantEventsOut(uint16(i)) // in 65533, 65534, 65535
			}
			p.s.channel.sender.log.top = -1 // nothing was ever acknowledged
			first(p)
			p.ack(65535, 0)
			p.wantInFlight(inFlight)
		}
		story(func(p *actor) {}, 3)
		story(func(p *actor) { p.ack(65533, 0) }, 1)
		story(func(p *actor) { p.s.channel.sender.log.top = 0 }, 2) // none but the first was, long ago
		story(func(p *actor) { p.ack(1, math.MaxUint64) }, 3)       // never sent: not accepted
		story(func(p *actor) { p.ack(60000, 0) }, 3)                // not remembered: nor this
		story(func(p *actor) { p.ack(65535, 0b10) }, 1)             // with bits it counts
		story(func(p *actor) { p.ack(65535, 1<<40) }, 3-b2i(wide))  // whose bits those are
	})
}

// The base of the bits is the ack, not the packet's own sequence.
// P-4.2.3.
func TestBitsCountFromTheAck(t *testing.T) {
	p := solo(t, Config{Wide: true, LossDelay: time.Hour, Outcomes: true})
	p.startAt(900, 0)
	for range 101 {
		p.emit(TypeInput)
	}
	p.take(p.datagram(TypeInput, 10, 1000, 1<<0|1<<2)) // the text's bits 1 and 3
	p.wantOutcome(Outcome{997, TypeInput, true, 0})
	p.wantOutcome(Outcome{999, TypeInput, true, 0})
	p.wantOutcome(Outcome{1000, TypeInput, true, 0})
	p.wantNoOutcome()
}

// A header that comes again is no news, even when it names nothing of the newest
// 65: neither a sample nor a sign of reordering. What was not named before is.
func TestHeaderOfLongAgoNamesWhatIsKnown(t *testing.T) {
	p := solo(t, Config{Wide: true, Adaptive: true})
	for seq := range uint16(300) {
		p.emit(TypeInput)
		if seq != 100 && seq != 200 { // so that the log begins at 100
			p.ack(seq, 0)
		}
	}
	p.sleep(20 * ms)
	a := adaptive(p.s)
	a.reorderStep, a.backoff = 0, 2
	p.ack(120, math.MaxUint64&^(1<<(120-1-100))) // those before 100 are forgotten
	require.Zero(t, p.s.RTT())
	require.Zero(t, a.reorderStep)
	require.Equal(t, 2, a.backoff)
	p.ack(210, math.MaxUint64)
	require.Zero(t, p.s.RTT())
	require.EqualValues(t, 299, p.s.Stats().Delivered)
	require.Zero(t, a.backoff)
}

// After 65,536 datagrams a sequence comes again. What the one before carried is
// not delivered with it, whether it carries events itself, and is the one whose
// copy fills the log, or not.
func TestAckDeliversNothingOfTheSequenceBeforeAWrap(t *testing.T) {
	for _, carries := range []bool{false, true} {
		c, _ := newChannel(t, Config{})
		for seq := range 1<<16 + 1 {
			h, _ := c.NextHeader(TypeInput)
			if seq < 7 || seq == 1<<16 && carries {
				c.Send([]byte("x"))
				require.NotEmpty(t, c.AppendDueEvents(nil, h.Sequence, 100))
			}
			if seq > 0 {
				c.Receive(Header{Type: TypeInput, Sequence: uint16(seq), Ack: h.Sequence}, nil)
			}
		}
		require.EqualValues(t, 1<<16, c.Stats().Delivered)
		require.Equal(t, 1, c.InFlight())
	}
}

// Nor if that datagram carried none itself, the one a wrap before is long forgotten,
// and its event is on the wire to this day.
func TestAckOfADatagramWithoutEventsDeliversNoneOfAWrapBefore(t *testing.T) {
	c, clock := newChannel(t, Config{LossDelay: ms})
	retransmission := func() {
		clock.Advance(100 * ms)
		h, _ := c.NextHeader(TypeEvent)
		require.NotEmpty(t, c.AppendDueEvents(nil, h.Sequence, 100))
	}
	peer := uint16(0)
	acknowledged := func() {
		h, _ := c.NextHeader(TypeInput)
		c.Receive(Header{Type: TypeInput, Sequence: peer, Ack: h.Sequence}, nil)
		peer++
	}
	c.Send([]byte("x"))
	retransmission() // 0
	for range 1<<16 - 2 {
		acknowledged()
	}
	retransmission() // 65535
	h, _ := c.NextHeader(TypeInput)
	require.Zero(t, h.Sequence)
	retransmission()
	c.Receive(Header{Type: TypeInput, Sequence: peer, Ack: h.Sequence}, nil)
	require.Equal(t, 1, c.InFlight())
}

// The whole window in one ack.
func TestWholeWindowInOneAck(t *testing.T) {
	for wide, window := range map[bool]int{false: 33, true: 65} {
		p := solo(t, Config{Wide: wide})
		for i := range window + 1 {
			p.send("x")
			p.wantEventsOut(uint16(i))
		}
		p.ack(uint16(window), math.MaxUint64)
		p.wantInFlight(1) // the one before the window
		p.sleep(100 * ms)
		p.wantEventsOut(0)

		p = solo(t, Config{Wide: wide})
		for i := range window {
			p.send("x")
			p.wantEventsOut(uint16(i))
		}
		p.ack(uint16(window)-1, math.MaxUint64)
		p.wantInFlight(0)
		for range 4 {
			p.sleep(50 * ms)
			p.wantDatagram(TypeHeartbeat)
			p.wantNothing()
		}
	}
}

// P-4.2.1.
func TestNarrowHeaderOfAChannelHas32Bits(t *testing.T) {
	c, err := NewReliableChannel(Config{Clock: new(ManualClock)})
	require.NoError(t, err)
	for range 65 {
		c.NextHeader(TypeInput)
	}
	_, err = c.Receive(Header{Type: TypeInput, Ack: 64, AckBits: math.MaxUint64}, nil)
	require.NoError(t, err)
	require.EqualValues(t, 33, c.Stats().Delivered)
	_, err = c.Receive(Header{Wide: true, Type: TypeInput, Sequence: 1, Ack: 64, AckBits: math.MaxUint64}, nil)
	require.NoError(t, err)
	require.EqualValues(t, 65, c.Stats().Delivered)

	for seq := range uint16(64) {
		c.Receive(Header{Type: TypeInput, Ack: 64, Sequence: 1 + seq}, nil)
	}
	h, _ := c.NextHeader(TypeInput)
	require.Equal(t, uint64(math.MaxUint32), h.AckBits)
}

// Against a model: a set of sequences that were sent and are remembered, in any
// order of headers.
func TestAcknowledgementsAgreeWithAModel(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		wide := rapid.Bool().Draw(rt, "wide")
		p := solo(rt, Config{Wide: wide, LossDelay: 24 * time.Hour})
		start := rapid.SampledFrom(edges).Draw(rt, "start")
		p.startAt(start, 0)
		sent, accepted := 0, start != 0
		delivered := map[int]bool{}
		width := 32
		if wide {
			width = 64
		}
		for range 50 {
			for range rapid.SampledFrom([]int{0, 1, 3, 70}).Draw(rt, "n") {
				p.emit(TypeInput)
				sent++
			}
			ack := sent - 1 - rapid.IntRange(-3, 150).Draw(rt, "back")
			ackBits := rapid.Uint64().Draw(rt, "bits")
			if rapid.Bool().Draw(rt, "no bits") {
				ackBits = 0
			}
			p.ack(start+uint16(ack), ackBits)
			if ack >= 0 && ack < sent && (accepted || start+uint16(ack) != 65535 || ackBits != 0) {
				accepted = true
				delivered[ack] = true
				for n := range width {
					if seq := ack - 1 - n; seq >= 0 && ackBits>>n&1 != 0 {
						delivered[seq] = true
					}
				}
			}
			require.EqualValues(rt, len(delivered), p.s.Stats().Delivered)
		}
	})
}

// An event that was delivered by one copy is not sent again, whichever copy.
// P-5.2.6.
func TestAckOfAnyCopySettlesTheEvent(t *testing.T) {
	for copies := range 20 {
		p := solo(t, Config{})
		p.send("0", "1")
		var seqs []uint16
		for range 20 {
			seqs = append(seqs, p.wantEventsOut(0, 1).Sequence)
			p.sleep(100 * ms)
		}
		p.ack(seqs[copies], 0)
		p.wantInFlight(0)
		p.wantDatagram(TypeHeartbeat)
		for range 2 {
			p.sleep(50 * ms)
			p.wantDatagram(TypeHeartbeat)
		}
	}
}

// P-5.2.6.
func TestAckOfAnEventThatIsDueTakesItOffTheList(t *testing.T) {
	p := solo(t, Config{})
	p.send(long(1000), long(1000))
	p.flush()
	p.sleep(100 * ms)
	p.wantEventsOut(0) // 1 is due as well
	p.wantDeadline(p.now())
	p.ack(1, 0)
	p.wantNothing()
}

// One sample per acknowledged datagram.
// P-4.2.4, P-7.1.1.
func TestSameAckIsSampledOnce(t *testing.T) {
	inBothForms(t, func(t *testing.T, wide bool) {
		p := solo(t, Config{Wide: wide})
		p.emit(TypeInput) // is never acknowledged, and keeps the next one from being forgotten
		p.emit(TypeInput)
		require.Zero(t, p.s.RTT())
		for _, at := range []time.Duration{80 * ms, 130 * ms, 500 * ms} {
			p.sleepUntil(at)
			p.ack(1, 0)
			require.Equal(t, 80*ms, p.s.RTT())
			require.Equal(t, 40*ms, p.s.Stats().RTTVar)
		}
		p.sleepUntil(600 * ms)
		for range 100 {
			p.emit(TypeInput)
		}
		p.sleep(80 * ms)
		p.ack(1, 0)
		require.Equal(t, 80*ms, p.s.RTT())
		p.ack(101, 0)
		p.sleep(time.Second)
		p.ack(1, 0) // now far behind the newest
		require.Equal(t, 80*ms, p.s.RTT())
		p.flush() // what is lost is no sample
		require.NotZero(t, p.s.Stats().Lost)
		require.Equal(t, 80*ms, p.s.RTT())
	})
}

// The arithmetic of RFC 6298.
// P-7.1.2.
func TestRTTFollowsRFC6298(t *testing.T) {
	p := solo(t, Config{})
	for i, c := range []struct{ sample, srtt, rttvar time.Duration }{
		{100 * ms, 100 * ms, 50 * ms},
		{120 * ms, 102500 * time.Microsecond, 42500 * time.Microsecond},
		{80 * ms, 99687500, 37500 * time.Microsecond},
		{300 * ms, 124726562, 78203125},
		{5 * time.Second, 734135741, 1277470703}, // beyond 32 bits of nanoseconds
		{ms, 642493774, 1141386963},
	} {
		p.emit(TypeInput)
		p.sleep(c.sample)
		p.ack(uint16(i), 0)
		require.Equal(t, c.srtt, p.s.RTT())
		require.Equal(t, c.rttvar, p.s.Stats().RTTVar)
	}
}

// P-7.1.1.
func TestBitsGiveNoSample(t *testing.T) {
	p := solo(t, Config{})
	p.emit(TypeInput)
	p.sleep(500 * ms)
	p.emit(TypeInput)
	p.sleep(20 * ms)
	p.ack(1, 0b1) // 0 waited for 520 ms
	require.Equal(t, 20*ms, p.s.RTT())
	p.emit(TypeInput)
	p.emit(TypeInput)
	p.sleep(20 * ms)
	p.ack(3, 0b1)
	p.sleep(time.Second)
	p.ack(2, 0) // acknowledged by a bit before: not for the first time
	require.Equal(t, 20*ms, p.s.RTT())
}

func TestSampleOfZeroCounts(t *testing.T) {
	p := solo(t, Config{})
	p.emit(TypeInput)
	p.sleep(-time.Hour) // a clock that steps back makes no negative sample
	p.ack(0, 0)
	require.Zero(t, p.s.RTT())
	p.emit(TypeInput)
	p.sleep(80 * ms)
	p.ack(1, 0)
	require.Equal(t, 10*ms, p.s.RTT(), "an eighth, not a first sample")
}

// P-7.1.1.
func TestRetransmittedEventsGiveSamplesToo(t *testing.T) { // no Karn exception
	p := solo(t, Config{})
	p.send("x")
	p.wantEventsOut(0)
	p.sleep(100 * ms)
	p.wantEventsOut(0)
	p.sleep(30 * ms)
	p.ack(1, 0)
	require.Equal(t, 30*ms, p.s.RTT())
}

// Fault: a stalled reader poisons the estimate, unless it stamps arrivals.
func TestSharedClockStampsArrivals(t *testing.T) {
	p := solo(t, Config{})
	p.emit(TypeInput)
	d := p.datagram(TypeInput, 0, 0, 0)
	p.clock.Set(p.began.Add(50 * ms)) // when it arrived, read at 3 s
	p.take(d)
	p.clock.Set(p.began.Add(3 * time.Second))
	p.flush()
	require.Equal(t, 50*ms, p.s.RTT())
}
