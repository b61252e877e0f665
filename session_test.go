package ackbits

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/ackbits/ackbits/simnet"
)

// --- the configuration

// P-5.2.5, P-17.1.3.
func TestConfigNamesTheFieldAndValueItRefuses(t *testing.T) {
	const longest = time.Duration(math.MaxInt64)
	for _, c := range []struct {
		cfg   Config
		words []string // in the error; none: accepted
	}{
		{Config{}, nil},
		{Config{Heartbeat: 1, Timeout: 2, ResendDelay: 1, LossDelay: 1, StallTimeout: 1, PollInterval: 1, EventRate: 1, MaxEvent: 1}, nil},
		{Config{Heartbeat: longest - 1, Timeout: longest, ResendDelay: longest, LossDelay: longest, StallTimeout: longest, PollInterval: longest,
			Backlog: 65024, EventRate: math.MaxInt, MaxEvent: math.MaxInt}, nil},
		{Config{StallTimeout: -1}, nil},
		{Config{StallTimeout: math.MinInt64}, nil},
		{Config{Heartbeat: -1}, []string{"Heartbeat", "-1ns"}},
		{Config{Timeout: -2}, []string{"Timeout", "-2ns"}},
		{Config{ResendDelay: -3 * ms}, []string{"ResendDelay", "-3ms"}},
		{Config{LossDelay: -4}, []string{"LossDelay", "-4ns"}},
		{Config{PollInterval: math.MinInt64}, []string{"PollInterval", "-2562047h47m16.854775808s"}},
		{Config{Backlog: -5}, []string{"Backlog", "-5"}},
		{Config{Backlog: 65025}, []string{"Backlog", "65025", "65024"}},
		{Config{Backlog: math.MaxInt}, []string{"Backlog", fmt.Sprint(math.MaxInt)}},
		{Config{EventRate: -6}, []string{"EventRate", "-6"}},
		{Config{MaxEvent: -7}, []string{"MaxEvent", "-7"}},
		{Config{Heartbeat: time.Second, Timeout: time.Second}, []string{"Heartbeat", "1s", "Timeout"}},
		{Config{Heartbeat: 5 * time.Second}, []string{"Heartbeat", "5s", "Timeout"}},
		{Config{Timeout: 50 * ms}, []string{"Heartbeat", "50ms", "Timeout"}},
	} {
		inBothForms(t, func(t *testing.T, wide bool) {
			c.cfg.Wide = wide
			s, err := NewSession(c.cfg)
			r, err2 := NewReliableChannel(c.cfg)
			require.Equal(t, err, err2)
			if c.words == nil {
				require.NoError(t, err)
				require.NotNil(t, s)
				require.NotNil(t, r)
				return
			}
			require.ErrorIs(t, err, ErrConfig)
			require.Nil(t, s)
			require.Nil(t, r)
			for _, w := range c.words {
				require.ErrorContains(t, err, w)
			}
		})
	}
}

// P-1.1.3.
func TestHugeDurationsSaturate(t *testing.T) {
	const longest = time.Duration(math.MaxInt64)
	p := solo(t, Config{Heartbeat: longest - 1, Timeout: longest, ResendDelay: longest, LossDelay: longest, StallTimeout: longest, Outcomes: true})
	p.sleep(time.Hour)
	p.hear(TypeHeartbeat)
	p.emit(TypeInput)
	p.send("x")
	for range 30 {
		p.flush()
		p.sleep(24 * time.Hour)
	}
	p.hear(TypeHeartbeat)
	require.Len(t, p.flying, 2, "the first copy is all there ever was")
	p.wantAlive()
	p.wantNoOutcome()
}

func TestMaxEventIsCappedAtWhatFits(t *testing.T) {
	for _, c := range []struct{ set, narrow, wide int }{{0, 1177, 1173}, {1, 1, 1}, {1173, 1173, 1173}, {1177, 1177, 1173}, {5000, 1177, 1173}} {
		require.Equal(t, c.narrow, solo(t, Config{MaxEvent: c.set}).s.MaxEvent())
		require.Equal(t, c.wide, solo(t, Config{MaxEvent: c.set, Wide: true}).s.MaxEvent())
	}
}

func TestTheCallersConfigIsNotWrittenTo(t *testing.T) {
	cfg := Config{Token: 7}
	_, err := NewSession(cfg)
	require.NoError(t, err)
	require.Equal(t, Config{Token: 7}, cfg)
}

// --- 2.3: all or nothing

// P-2.3.1.
func TestRefusedDatagramChangesNothingButACounter(t *testing.T) {
	inBothForms(t, func(t *testing.T, wide bool) {
		var refusal error
		p := solo(t, Config{Wide: wide, Token: 0x0807060504030201, Accept: func(Header, []byte) error { return refusal }})
		p.send("pending")
		p.wantEventsOut(0)
		p.hear(TypeHeartbeat)
		p.sleep(3 * ms)
		size := HeaderSize
		if wide {
			size = WideHeaderSize
		}
		// Every one of them claims the event's datagram as received.
		good := p.datagram(TypeInput, 1, 0, 0, 1, 2, 3)
		with := func(change func(d []byte)) []byte {
			d := slices.Clone(good)
			change(d)
			return d
		}
		p.refuse(ErrShort, nil)
		p.refuse(ErrShort, []byte{})
		p.refuse(ErrShort, good[:HeaderSize-1])
		p.refuse(ErrShort, good[:size-1])
		p.refuse(ErrOversize, append(slices.Clone(good), make([]byte, MaxDatagramSize+1-len(good))...))
		for _, format := range []byte{0, 9, 0x0A, 0x0B, 0x0C, 255} {
			if format != good[0] {
				p.refuse(ErrFormat, with(func(d []byte) { d[0] = format }))
			}
		}
		for i := range 8 {
			p.refuse(ErrToken, with(func(d []byte) { d[2+i] ^= 1 << i }))
		}
		for _, bad := range []byte{0, 9, 10, 11, 12, 13, 14, 15} {
			p.refuse(ErrType, with(func(d []byte) { d[1] = bad }))
		}
		p.refuse(ErrPayload, p.datagram(TypeHeartbeat, 1, 0, 0, 0))
		p.refuse(ErrPayload, p.datagram(TypeDisconnect, 1, 0, 0, 0))
		p.refuse(ErrPayload, p.datagram(TypeEvent, 1, 0, 0))
		p.refuse(ErrPayload, p.datagram(TypeEvent, 1, 0, 0, 0))
		p.refuse(ErrPayload, p.datagram(TypeEvent, 1, 0, 0, append(eventList(Event{0, nil}), 0)...))
		p.refuse(ErrPayload, p.datagram(TypeBundle, 1, 0, 0))
		p.refuse(ErrPayload, p.datagram(TypeBundle, 1, 0, 0, append([]byte{byte(TypeEvent)}, eventList(Event{0, nil})...)...))
		p.refuse(ErrPayload, p.datagram(TypeBundle, 1, 0, 0, byte(TypeInput), 0))
		p.refuse(ErrWindow, p.datagram(TypeEvent, 1, 0, 0, eventList(Event{0, nil}, Event{5000, nil})...))
		refusal = errors.New("no")
		p.refuse(ErrRejected, good)
		refusal = nil
		require.Equal(t, Newest, p.take(good).Arrival)
		p.wantInFlight(0)
	})
}

// A datagram that is dropped must not move the tracker.
func TestBadDatagramFarAheadDoesNotPoisonTheTracker(t *testing.T) {
	inBothForms(t, func(t *testing.T, wide bool) {
		p := solo(t, Config{Wide: wide})
		p.send("pending")
		p.wantEventsOut(0)
		for range 5 {
			p.hear(TypeHeartbeat)
		}
		// It claims the event's datagram as received.
		bad := p.datagram(TypeEvent, 30000, 0, 0, eventList(Event{0, []byte("whole")}, Event{1, []byte("cut")})...)
		p.sleepUntil(4999 * ms)
		for n := range bad {
			reason := ErrPayload
			if n < len(Header{Wide: wide}.AppendTo(nil)) {
				reason = ErrShort
			}
			p.refuse(reason, bad[:n])
		}
		p.foreign = 5
		require.Equal(t, Newest, p.hear(TypeHeartbeat).Arrival)
		p.wantAcks(5, 0b11111)
		p.wantNoEvents()
	})
}

// P-2.1.5, P-2.3.2.
func TestChecksComeInTheirOrder(t *testing.T) {
	asked := 0
	p := solo(t, Config{Token: 1, Wide: true, Accept: func(Header, []byte) error { asked++; return errors.New("no") }})
	d := p.datagram(TypeInput, 0, 0, 0)
	cut := func(n int, format, typ byte, token byte) []byte {
		e := append(slices.Clone(d), make([]byte, 1200)...)[:n]
		e[0], e[1], e[2] = format, typ, token
		return e
	}
	p.refuse(ErrShort, cut(17, 0x0A, 0, 9))
	p.refuse(ErrOversize, cut(1201, 0x0A, 0, 9))
	p.refuse(ErrFormat, cut(21, 0x0A, 0, 9))
	p.refuse(ErrShort, cut(21, 0x0B, 0, 9))
	p.refuse(ErrType, cut(22, 0x0B, 0, 9))
	p.refuse(ErrToken, cut(23, 0x0B, 9, 9))
	p.refuse(ErrToken, cut(23, 0x0B, byte(TypeHeartbeat), 9))
	p.refuse(ErrType, cut(23, 0x0B, 15, 1))
	bundle := func(id uint16) []byte {
		return p.datagram(TypeBundle, 0, 0, 0, append([]byte{byte(TypeInput)}, eventList(Event{id, nil})...)...)
	}
	p.refuse(ErrWindow, bundle(5000))
	require.Zero(t, asked, "Accept comes last")
	p.refuse(ErrRejected, bundle(0))
	require.Equal(t, 1, asked)
}

// P-2.3.4.
func TestFramingIsCheckedOfEveryArrivalTheWindowOfNewOnes(t *testing.T) {
	p := solo(t, Config{})
	p.foreign = 100
	p.hear(TypeHeartbeat)
	for _, seq := range []uint16{100, 0} {
		p.refuse(ErrPayload, p.datagram(TypeEvent, seq, 0, 0, 0))
		in := p.take(p.datagram(TypeEvent, seq, nothingYet, 0, eventList(Event{20000, nil}, Event{0, nil})...))
		require.Empty(t, in.Events)
	}
	p.wantNoEvents()
}

// P-2.3.5.
func TestAcceptIsAskedAboutNewestAndLateOnly(t *testing.T) {
	inBothForms(t, func(t *testing.T, wide bool) {
		var asked []uint16
		p := solo(t, Config{Wide: wide, Token: 5, Accept: func(h Header, payload []byte) error {
			require.Equal(t, TypeSnapshot, h.Type)
			require.EqualValues(t, 5, h.Token)
			require.Equal(t, []byte{1}, payload)
			asked = append(asked, h.Sequence)
			return nil
		}})
		for _, c := range []struct {
			seq     uint16
			arrival Arrival
			payload []byte
		}{{200, Newest, []byte{1}}, {200, Duplicate, nil}, {199, Late, []byte{1}}, {199, Duplicate, nil}, {100, Stale, nil}, {200 - 64, Late, []byte{1}}, {200 - 65, Stale, nil}} {
			in := p.take(p.datagram(TypeSnapshot, c.seq, nothingYet, 0, 1))
			require.Equal(t, c.arrival, in.Arrival)
			require.Equal(t, c.payload, in.Payload)
		}
		p.foreign = 201
		p.hear(TypeHeartbeat)
		p.hear(TypeEvent, eventList(Event{0, nil})...)
		p.wantCount(1)
		require.Equal(t, []uint16{200, 199, 136}, asked)
	})
}

func TestRejectionMatchesItsCause(t *testing.T) {
	cause := fmt.Errorf("broken: %w", errors.ErrUnsupported)
	p := solo(t, Config{Accept: func(Header, []byte) error { return cause }})
	d := p.datagram(TypeInput, 0, 0, 0)
	first := p.refuse(ErrRejected, d)
	require.ErrorIs(t, first, cause)
	require.ErrorIs(t, first, errors.ErrUnsupported)
	require.NotErrorIs(t, first, ErrWithhold)
	require.ErrorContains(t, first, "ackbits: ")
	require.ErrorContains(t, first, "broken")
	require.Same(t, first, p.refuse(ErrRejected, d), "one value, held by the session")
}

// A withheld datagram is sound: it must only not be acknowledged.
// P-2.3.5.
func TestWithheldDatagramIsReadButNotAcknowledged(t *testing.T) {
	inBothForms(t, func(t *testing.T, wide bool) {
		answer := fmt.Errorf("no baseline: %w", ErrWithhold)
		p := solo(t, Config{Wide: wide, Accept: func(Header, []byte) error { return answer }})
		p.send("x")
		p.wantEventsOut(0)
		p.sleep(30 * ms)
		bundle := append([]byte{byte(TypeSnapshot)}, eventList(Event{0, []byte("with it")})...)
		d := p.datagram(TypeBundle, 3, 0, 0, bundle...)
		in := p.take(d)
		require.Equal(t, TypeSnapshot, in.Type)
		require.EqualValues(t, 3, in.Sequence)
		require.Equal(t, Newest, in.Arrival)
		require.Nil(t, in.Payload)
		require.Nil(t, in.Events)
		require.False(t, in.Latest)
		p.wantInFlight(0)
		require.Equal(t, 30*ms, p.s.RTT())
		p.wantAcks(65535, 0)
		st := p.s.Stats()
		require.EqualValues(t, 1, st.Withheld)
		require.Zero(t, st.DatagramsReceived+st.BytesReceived+st.Rejected+st.Duplicates+st.Stale)

		p.sleepUntil(5029 * ms)
		p.flush()
		p.wantAlive() // it was heard at 30 ms
		require.Equal(t, Newest, p.take(d).Arrival, "the tracker has not moved")
		for range 100 {
			p.take(d)
		}
		p.wantNothing() // they are no burst
		p.sleep(4 * time.Second)
		answer = nil
		in = p.take(d)
		require.True(t, in.Latest)
		require.Empty(t, in.Payload)
		require.NotNil(t, in.Payload)
		p.wantEvents("with it")
	})
}

// --- 6.3 and 8.1: time

// Fault: a deadline sampled on a coarse tick.
// P-1.1.2, P-6.3.1.
func TestHeartbeatIsDueAtExactlyItsTime(t *testing.T) {
	inBothForms(t, func(t *testing.T, wide bool) {
		p := solo(t, Config{Wide: wide})
		p.wantDeadline(50 * ms)
		for _, at := range []time.Duration{16700 * time.Microsecond, 33300 * time.Microsecond, 49900 * time.Microsecond, 50*ms - 1} {
			p.sleepUntil(at)
			p.wantNothing()
			p.wantDeadline(50 * ms)
		}
		p.sleepUntil(50 * ms)
		k := p.wantDatagram(TypeHeartbeat)
		require.Empty(t, k.payload)
		p.wantNothing()
		p.wantDeadline(100 * ms)

		p = solo(t, Config{Wide: wide})
		p.sleepUntil(50*ms - 1) // the first look
		p.wantNothing()
	})
}

// P-6.3.1.
func TestAnyDatagramPutsTheHeartbeatOff(t *testing.T) {
	p := solo(t, Config{})
	p.sleep(20 * ms)
	p.emit(TypeInput)
	p.wantDeadline(70 * ms)
	p.advance(30 * ms)
	p.send("x")
	p.wantEventsOut(0)
	p.wantDeadline(100 * ms)
	p.advance(20 * ms)
	p.hear(TypeInput) // nothing that comes in does
	p.wantDeadline(100 * ms)
	p.advance(30 * ms)
	p.wantDatagram(TypeHeartbeat)
}

// A side that never sent must start by itself.
// P-6.3.1.
func TestFirstHeartbeatNeedsNoDatagramBefore(t *testing.T) {
	p := solo(t, Config{})
	p.advance(50 * ms)
	k := p.wantDatagram(TypeHeartbeat)
	require.Zero(t, k.Sequence)
	require.EqualValues(t, 65535, k.Ack)
	require.Zero(t, k.AckBits)
}

// No flood.
func TestIdleSessionSendsOneHeartbeatASilence(t *testing.T) {
	inBothForms(t, func(t *testing.T, wide bool) {
		p := solo(t, Config{Wide: wide})
		for p.now() < 4*time.Second { // in which more come in than a header can name
			p.clock.Advance(ms)
			if p.now()%(50*ms) == 20*ms {
				p.hear(TypeHeartbeat) // is not answered
			}
			if p.now()%(50*ms) == 0 {
				p.wantDatagram(TypeHeartbeat)
			}
			p.wantNothing()
		}
		require.Len(t, p.flying, 80)
	})
}

func TestCustomDelaysHold(t *testing.T) {
	p := solo(t, Config{Heartbeat: 20 * ms, Timeout: 300 * ms, ResendDelay: 7 * ms, StallTimeout: 40 * ms})
	p.send("x")
	p.wantEventsOut(0)
	p.wantDeadline(7 * ms)
	p.advance(7 * ms)
	p.wantEventsOut(0)
	p.sleepUntil(40*ms - 1)
	p.flush()
	p.wantAlive()
	p.sleep(1)
	p.wantNothing()
	p.wantErr(ErrStalled)
	p = solo(t, Config{Heartbeat: 4 * time.Second, ResendDelay: time.Minute, StallTimeout: 500 * ms})
	p.wantNothing() // not even looked at until the heartbeat, but for what comes up
	p.send("x")
	p.wantEventsOut(0)
	p.wantDeadline(500 * ms)
	p.sleep(500 * ms)
	p.wantNothing()
	p.wantErr(ErrStalled)
	p = solo(t, Config{Heartbeat: 4 * time.Second, ResendDelay: 7 * ms})
	p.wantNothing()
	p.send("x")
	p.wantEventsOut(0)
	require.False(t, p.s.channel.recheck)
	p.advance(7*ms - 1)
	p.wantNothing()
	p.advance(1)
	p.wantEventsOut(0)
	p = solo(t, Config{Heartbeat: 20 * ms, Timeout: 300 * ms})
	p.wantDeadline(20 * ms)
	p.sleepUntil(300*ms - 1)
	p.flush()
	p.wantAlive()
	p.wantDeadline(300 * ms)
	p.sleep(1)
	p.wantNothing()
	p.wantErr(ErrTimeout)
}

// P-1.1.2, P-8.1.1.
func TestTimeoutIsInclusiveAndCountsFromTheStart(t *testing.T) {
	p := solo(t, Config{})
	p.sleepUntil(5*time.Second - 1)
	p.wantDatagram(TypeHeartbeat)
	p.wantDeadline(5 * time.Second)
	p.sleep(1)
	p.wantNothing()
	p.wantErr(ErrTimeout)
}

// A live peer always sends newer ones; what does not move forward is an echo
// or a replay, and its acknowledgements are read nevertheless.
// P-8.1.1.
func TestEchoDoesNotRenewTheTimeout(t *testing.T) {
	for arrival, seq := range map[Arrival]uint16{Duplicate: 0, Stale: 50000} {
		t.Run(arrival.String(), func(t *testing.T) {
			p := solo(t, Config{})
			p.hear(TypeHeartbeat)
			p.send("event")
			p.wantEventsOut(0)
			p.sleep(5*time.Second - 1)
			require.Equal(t, arrival, p.take(p.datagram(TypeHeartbeat, seq, 0, 0)).Arrival)
			p.wantInFlight(0)
			p.flush()
			p.wantAlive()
			p.wantDeadline(5 * time.Second)
			p.sleep(1)
			p.wantNothing()
			p.wantErr(ErrTimeout)
		})
	}
}

// Whatever is Newest or Late keeps the session, whatever its type.
// P-8.1.1.
func TestWhatMovesForwardRenewsTheTimeout(t *testing.T) {
	for name, hear := range map[string]func(p *actor){
		"Event":     func(p *actor) { p.hear(TypeEvent, eventList(Event{p.foreign, nil})...) },
		"Heartbeat": func(p *actor) { p.hear(TypeHeartbeat) },
		"Input":     func(p *actor) { p.hear(TypeInput) },
		"own type":  func(p *actor) { p.hear(255) },
		"Bundle":    func(p *actor) { p.hear(TypeBundle, append([]byte{3}, eventList(Event{0, nil})...)...) },
	} {
		t.Run(name, func(t *testing.T) {
			p := solo(t, Config{})
			p.hear(TypeHeartbeat)
			for range 3 {
				p.sleep(5*time.Second - 1)
				hear(p)
				p.flush()
				p.wantAlive()
			}
			p.events = nil
			p.sleep(5 * time.Second)
			p.wantNothing()
			p.wantErr(ErrTimeout)
		})
	}
}

// P-8.1.1.
func TestWhatIsLateRenewsTheTimeout(t *testing.T) {
	p := solo(t, Config{})
	p.take(p.datagram(TypeInput, 1, nothingYet, 0))
	p.sleep(5*time.Second - 1)
	require.Equal(t, Late, p.take(p.datagram(TypeInput, 0, nothingYet, 0)).Arrival)
	p.flush()
	p.sleep(5*time.Second - 1)
	p.flush()
	p.wantAlive()
	p.sleep(1)
	p.wantNothing()
	p.wantErr(ErrTimeout)
}

func TestInvalidDatagramsDoNotKeepASessionAlive(t *testing.T) {
	p := solo(t, Config{Token: 1, Accept: func(Header, []byte) error { return errors.New("no") }})
	for range 9 {
		p.sleep(500 * ms)
		p.refuse(ErrRejected, p.datagram(TypeInput, 0, nothingYet, 0))
		p.refuse(ErrPayload, p.datagram(TypeHeartbeat, 0, nothingYet, 0, 1))
		p.refuse(ErrToken, Header{Type: TypeHeartbeat, Token: 2}.AppendTo(nil))
	}
	p.sleep(500 * ms)
	p.wantNothing()
	p.wantErr(ErrTimeout)
}

// Only AppendDue finds the timeout: what was waiting is received first.
// P-6.1.4.
func TestDatagramReceivedLateRevivesTheSession(t *testing.T) {
	p := solo(t, Config{})
	p.sleep(6 * time.Second)
	p.send("still takes events")
	p.emit(TypeInput)
	p.s.NextOutcome()
	p.wantAlive()
	p.hear(TypeHeartbeat)
	p.wantEventsOut(0)
	p.wantDeadline(6*time.Second + 50*ms)
}

// A stall of the application just under the limit.
func TestPauseOfTheCallerIsNoTimeout(t *testing.T) {
	p := solo(t, Config{})
	p.sleepUntil(4900 * ms)
	p.hear(TypeHeartbeat)
	p.wantDatagram(TypeHeartbeat)
	p.sleepUntil(9950 * ms) // no datagram was received for longer than the timeout
	for range 20 {
		p.hear(TypeHeartbeat)
	}
	p.wantDatagram(TypeHeartbeat)
	p.wantAlive()
	p.sleep(4999 * ms)
	p.flush()
	p.wantAlive()
}

// One step back must not underflow.
// P-1.1.1.
func TestClockThatStepsBackFiresNothing(t *testing.T) {
	for _, back := range []time.Duration{time.Nanosecond, ms, time.Hour, 100 * 365 * 24 * time.Hour} {
		p := solo(t, Config{})
		p.sleep(1971 * ms)
		p.hear(TypeHeartbeat)
		p.send("x")
		p.wantEventsOut(0)
		p.sleep(-back)
		p.wantNothing()
		p.sleep(50*ms - 1)
		p.wantNothing()
		p.sleep(1)
		p.wantDatagram(TypeHeartbeat)
		p.sleep(50 * ms)
		p.wantEventsOut(0) // 100 ms after the first, as if nothing had been
	}
}

func TestClockThatIsSetForwardFiresNothing(t *testing.T) {
	p := solo(t, Config{})
	p.sleep(24*time.Hour + 1)
	p.wantNothing()
	p.wantAlive()
	p.sleep(50*ms - 1)
	p.wantNothing()
	p.sleep(1)
	p.wantDatagram(TypeHeartbeat)
	p.sleep(24 * time.Hour) // is a long night
	p.wantNothing()
	p.wantErr(ErrTimeout)

	// A ManualClock that was first read at its zero.
	var clock ManualClock
	s, err := NewSession(Config{Clock: &clock})
	require.NoError(t, err)
	clock.Set(time.Now())
	_, ok := s.AppendDue(nil)
	require.False(t, ok)
	require.NoError(t, s.Err())
}

// PollInterval: early when the next poll would be late, never before P/2.
// P-6.3.2.
func TestPollIntervalMovesHeartbeatsEarly(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		heartbeat := time.Duration(rapid.Int64Range(1, 1000).Draw(rt, "heartbeat"))
		poll := time.Duration(rapid.OneOf(rapid.Int64Range(0, 3*int64(heartbeat)), rapid.Just[int64](math.MaxInt64)).Draw(rt, "P"))
		p := solo(rt, Config{Heartbeat: heartbeat, PollInterval: poll})
		due := func(silence time.Duration) bool {
			return silence >= heartbeat || poll > heartbeat-silence && silence >= poll-silence
		}
		last := p.now()
		for range 20 {
			if due(p.now() - last) {
				p.wantDatagram(TypeHeartbeat)
				last = p.now()
			}
			p.wantNothing()
			at := p.deadline() - last
			require.True(rt, due(at) && !due(at-1))
			step := at + last - p.now() - time.Duration(rapid.Int64Range(0, 1).Draw(rt, "early"))
			if rapid.Bool().Draw(rt, "any time") {
				step = time.Duration(rapid.Int64Range(0, 400).Draw(rt, "step"))
			}
			p.sleep(step)
		}
	})
}

func TestJitteryTickWithPollIntervalKeepsTheHeartbeat(t *testing.T) {
	const tick = time.Second / 60
	p := solo(t, Config{PollInterval: tick})
	last, sent := time.Duration(0), 0
	for i := range 600 {
		p.clock.Set(p.began.Add(time.Duration(i)*tick + time.Duration(i%3)*ms/10))
		p.hear(TypeHeartbeat)
		for range p.flush() {
			require.LessOrEqual(t, p.now()-last, 50*ms)
			last = p.now()
			sent++
		}
	}
	require.LessOrEqual(t, sent, 600/2, "not one every poll")
}

func TestPollIntervalMovesHeartbeatsOnly(t *testing.T) {
	p := solo(t, Config{PollInterval: 40 * ms})
	p.send("x")
	p.wantEventsOut(0)
	p.sleep(20 * ms)
	p.wantDatagram(TypeHeartbeat)
	p.sleepUntil(100*ms - 1)
	p.wantDatagram(TypeHeartbeat)
	p.wantNothing()
	p.sleep(1)
	p.wantEventsOut(0)
	p.sleepUntil(5*time.Second - 1)
	p.flush()
	p.wantAlive()
}

// Deadline is the earliest of them, exact, after any history.
// P-6.6.1.
func TestAppendDueDoesSomethingExactlyFromDeadlineOn(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		cfg := Config{
			Wide:         rapid.Bool().Draw(rt, "wide"),
			Ordered:      rapid.Bool().Draw(rt, "ordered"),
			Backlog:      rapid.SampledFrom([]int{0, 3}).Draw(rt, "backlog"),
			PollInterval: rapid.SampledFrom([]time.Duration{0, 16 * ms, 200 * ms}).Draw(rt, "P"),
			Heartbeat:    rapid.SampledFrom([]time.Duration{0, time.Second}).Draw(rt, "heartbeat"),
			ResendDelay:  rapid.SampledFrom([]time.Duration{0, 7 * ms}).Draw(rt, "retransmission"),
			StallTimeout: rapid.SampledFrom([]time.Duration{0, -1, 30 * ms, time.Second}).Draw(rt, "stall"),
			Adaptive:     rapid.Bool().Draw(rt, "adaptive"),
			Bundle:       rapid.Bool().Draw(rt, "bundle"),
			EventRate:    rapid.SampledFrom([]int{0, 0, 700}).Draw(rt, "rate"),
		}
		y := newStory(rt)
		a, b := y.enter("A", cfg), y.enter("B", cfg)
		probe := func(p *actor) bool {
			p.s.NextOutcome() // a reading
			due := p.s.Err() == nil && p.deadline() <= y.now()
			alive := p.s.Err() == nil
			out, ok := p.s.AppendDue(nil)
			require.Equal(rt, due, ok || alive && p.s.Err() != nil, "%v, deadline %v", y.now(), p.deadline())
			if ok {
				p.packet(out)
			}
			p.check()
			p.events = nil
			return ok
		}
		pick := func(label string) *actor { return rapid.SampledFrom([]*actor{a, b}).Draw(rt, label) }
		travel := func(rt *rapid.T, keep bool) {
			from := pick("from")
			to := b
			if from == b {
				to = a
			}
			if len(from.flying) == 0 {
				return
			}
			k := rapid.SampledFrom(from.flying).Draw(rt, "packet")
			if !keep {
				k.drop()
			}
			to.s.Receive(slices.Clone(k.bytes))
		}
		rt.Repeat(map[string]func(*rapid.T){
			"send": func(rt *rapid.T) {
				p := pick("who")
				for range rapid.SampledFrom([]int{1, 1, 3, 100}).Draw(rt, "n") {
					p.s.Send(make([]byte, rapid.SampledFrom([]int{0, 5, 600}).Draw(rt, "size")))
				}
			},
			"emit": func(rt *rapid.T) {
				p := pick("who")
				if out, _, err := p.s.AppendDatagram(nil, TypeInput, nil); err == nil {
					p.packet(out)
				}
			},
			"deliver":   func(rt *rapid.T) { travel(rt, false) },
			"duplicate": func(rt *rapid.T) { travel(rt, true) },
			"all arrive": func(rt *rapid.T) {
				for _, k := range slices.Clone(a.flying) {
					k.drop()
					b.s.Receive(k.bytes)
				}
				for _, k := range slices.Clone(b.flying) {
					k.drop()
					a.s.Receive(k.bytes)
				}
			},
			"burst": func(rt *rapid.T) {
				p := pick("who")
				to := map[*actor]*actor{a: b, b: a}[p]
				for range 40 {
					if out, _, err := p.s.AppendDatagram(nil, TypeInput, nil); err == nil {
						to.s.Receive(out)
					}
				}
			},
			"pass": func(rt *rapid.T) { y.clock.Advance(time.Duration(rapid.Int64Range(0, int64(120*ms)).Draw(rt, "d"))) },
			"pass long": func(rt *rapid.T) {
				y.clock.Advance(time.Duration(rapid.Int64Range(0, int64(2*time.Second)).Draw(rt, "d")))
			},
			"step back": func(rt *rapid.T) { y.clock.Advance(-time.Hour) },
			"close": func(rt *rapid.T) {
				if rapid.IntRange(0, 9).Draw(rt, "really") == 0 {
					pick("who").s.Close()
				}
			},
			"poll once": func(rt *rapid.T) { probe(pick("who")) },
			"edge": func(rt *rapid.T) {
				p := pick("who")
				for n := 0; probe(p); n++ {
					require.Less(rt, n, 1000)
				}
				if left := p.deadline() - y.now(); p.s.Err() == nil {
					require.Positive(rt, left)
					y.clock.Advance(left - 1)
					require.False(rt, probe(p))
					require.NoError(rt, p.s.Err())
					y.clock.Advance(1)
					require.True(rt, probe(p) || p.s.Err() != nil)
				}
			},
		})
	})
}

// AppendDue does nothing at Deadline − 1 ns. With EventRate, a due event
// that the budget holds back hides a lower, smaller one that comes due earlier.
func TestDeadlineIsExactWithEventRate(t *testing.T) {
	p := solo(t, Config{EventRate: 100, Heartbeat: 4 * time.Second})
	p.send("", long(200))
	p.wantEventsOut(0, 1)
	for range 6 {
		at := p.deadline()
		require.Greater(t, at, p.now())
		p.sleepUntil(at - 1)
		p.wantNothing()
		p.sleepUntil(at)
		out, ok := p.s.AppendDue(nil)
		require.True(t, ok)
		p.packet(out)
		p.flush()
		if at > 1300*ms {
			break
		}
	}
}

// --- 6.1: AppendDue

// P-6.1.1.
func TestTimeoutAndStallComeBeforeAnythingElse(t *testing.T) {
	p := solo(t, Config{})
	p.send("due", "due")
	p.wantEventsOut(0, 1)
	p.sleep(5 * time.Second)
	p.wantNothing()
	p.wantErr(ErrTimeout)

	p = solo(t, Config{})
	p.send("due")
	p.wantEventsOut(0)
	p.sleep(15 * time.Second)
	p.wantNothing()
	p.wantErr(ErrTimeout) // both have come; timeout first

	p = solo(t, Config{})
	p.send("due")
	p.wantEventsOut(0)
	p.sleep(15 * time.Second)
	p.hear(TypeHeartbeat)
	p.send("fresh")
	p.wantNothing()
	p.wantErr(ErrStalled)
}

// P-6.1.1, P-6.4.3.
func TestEventsComeBeforeTheHeartbeatLowestIdFirst(t *testing.T) {
	inBothForms(t, func(t *testing.T, wide bool) {
		p := solo(t, Config{Wide: wide})
		p.send("0", "1", "2")
		p.wantEventsOut(0, 1, 2)
		p.sleep(10 * ms)
		p.send("3")
		p.wantEventsOut(3)
		p.sleep(10 * ms)
		p.ack(1, 0) // 3 arrived
		p.sleepUntil(100 * ms)
		p.send("4", "5")
		p.wantEventsOut(0, 1, 2, 4, 5) // retransmissions first, since older
		p.wantNothing()                // they were the heartbeat
		p.wantDeadline(150 * ms)
	})
}

// Fault: a message that can never fit blocks everything.
// P-5.1.2.
func TestLargestEventFillsADatagramAndALargerOneIsRefused(t *testing.T) {
	for wide, largest := range map[bool]int{false: 1177, true: 1173} {
		p := solo(t, Config{Wide: wide})
		_, err := p.s.Send(make([]byte, largest+1))
		require.ErrorIs(t, err, ErrEventTooLarge)
		p.wantInFlight(0)
		p.send(long(largest), "")
		k := p.wantEventsOut(0)
		require.Len(t, k.bytes, 1200)
		p.wantEventsOut(1)
		p.wantNothing()
	}
}

// P-6.4.2.
func TestDatagramIsFilledUntilTheFirstDueEventThatDoesNotFit(t *testing.T) {
	inBothForms(t, func(t *testing.T, wide bool) {
		p := solo(t, Config{Wide: wide})
		room := p.s.MaxPayload() - 1 - 4 - 4 // beside two events
		p.send(long(600), long(room-600), "")
		require.Len(t, p.wantEventsOut(0, 1).bytes, 1200)
		p.wantEventsOut(2)
		p.send(long(600), long(room-600+1), "small")
		p.wantEventsOut(3) // 4 does not fit, and 5 does not overtake it
		p.wantEventsOut(4, 5)
	})
}

// P-6.4.2.
func TestDatagramHoldsAtMost255Events(t *testing.T) {
	p := solo(t, Config{})
	p.sendN(256, 0)
	require.Len(t, p.wantDatagram(TypeEvent).ids(), 255)
	p.wantEventsOut(255)
}

// P-6.3.3.
func TestBurstIsAcknowledgedAfter32Datagrams64Wide(t *testing.T) {
	for wide, burst := range map[bool]int{false: 32, true: 64} {
		p := solo(t, Config{Wide: wide, Accept: func(h Header, _ []byte) error {
			if h.Type == TypeSnapshot {
				return ErrWithhold
			}
			return nil
		}})
		seq := uint16(1000)
		hear := func(n int) { // 2n that count and some that do not
			for range n {
				seq += 2
				for _, back := range []uint16{0, 1, 1, 200} { // Newest, Late, Duplicate, Stale
					p.take(p.datagram(TypeInput, seq-back, nothingYet, 0))
				}
				p.take(p.datagram(TypeSnapshot, seq+1, nothingYet, 0)) // Withheld
			}
			p.foreign = seq + 1
		}
		hear(burst/2 - 1)
		p.hear(TypeInput)
		p.wantNothing()
		p.hear(TypeInput)
		seq += 2
		p.wantDeadline(0)
		p.wantDatagram(TypeHeartbeat)
		p.wantNothing()
		hear(burst/2 - 1)
		p.emit(TypeInput) // any datagram acknowledges
		hear(burst/2 - 1)
		p.send("x")
		p.wantEventsOut(0)
		p.hear(TypeInput)
		seq++
		p.wantNothing()
		hear(burst / 2)
		p.send("y")
		p.wantEventsOut(1) // an Event datagram does it too
		p.wantNothing()
	}
}

// 256 large events, flushed after every Receive.
// P-6.1.2.
func TestBurstOfLargeEventsNeedsNoRetransmission(t *testing.T) {
	inBothForms(t, func(t *testing.T, wide bool) {
		a, b := duo(t, Config{Wide: wide})
		a.sendN(256, 1100)
		out := a.flush()
		require.Len(t, out, 256)
		a.sleep(30 * ms)
		var back []*packet
		for _, k := range out {
			b.deliver(k)
			back = append(back, b.flush()...)
		}
		b.wantCount(256)
		a.sleep(30 * ms)
		a.deliver(back...)
		for range 5 {
			drop(a.flush()...)
			a.sleep(20 * ms)
		}
		drop(b.flush()...)
		b.deliver(a.flush()...)
		require.Zero(t, b.s.Stats().AcksOutrun)
		for range 3 {
			a.deliver(b.flush()...)
			b.deliver(a.flush()...)
			a.sleep(50 * ms)
		}
		a.deliver(b.flush()...)
		drop(a.flush()...)
		require.LessOrEqual(t, a.s.Stats().EventsResent, uint64(256%32))
	})
}

// readings counts how often a clock is read.
type readings struct {
	ManualClock
	n int
}

func (c *readings) Now() time.Time { c.n++; return c.ManualClock.Now() }

// I4: one reading per call; getters read none.
// P-1.1.1.
func TestEveryCallReadsTheClockOnceAndGettersNever(t *testing.T) {
	clock := new(readings)
	s, err := NewSession(Config{Clock: clock, Outcomes: true})
	require.NoError(t, err)
	r, err := NewReliableChannel(Config{Clock: clock})
	require.NoError(t, err)
	s.Send(nil)
	for name, call := range map[string]struct {
		n int
		f func()
	}{
		"Send":           {1, func() { s.Send(nil) }},
		"Receive":        {1, func() { s.Receive(Header{Type: TypeHeartbeat}.AppendTo(nil)) }},
		"bad Receive":    {1, func() { s.Receive(nil) }},
		"AppendDatagram": {1, func() { s.AppendDatagram(nil, TypeInput, nil) }},
		"AppendDue":      {1, func() { s.AppendDue(nil) }},
		"NextOutcome":    {1, func() { s.NextOutcome() }},
		"Close":          {1, func() { s.Close() }},
		"getters": {0, func() {
			s.Err()
			s.Deadline()
			s.Stats()
			s.RTT()
			s.InFlight()
			s.Room()
			s.MaxEvent()
			s.MaxPayload()
			s.Due(nil)
			r.Err()
			r.Deadline()
			r.Stats()
			r.RTT()
			r.InFlight()
			r.Room()
		}},
		"channel's Send":            {1, func() { r.Send(nil) }},
		"channel's NextHeader":      {1, func() { r.NextHeader(TypeEvent) }},
		"channel's AppendDueEvents": {1, func() { r.AppendDueEvents(nil, 0, 100) }},
		"channel's EventsDue":       {1, func() { r.EventsDue(100) }},
		"channel's Receive":         {1, func() { r.Receive(Header{Type: TypeInput}, nil) }},
		"channel's NextOutcome":     {1, func() { r.NextOutcome() }},
	} {
		clock.n = 0
		call.f()
		require.Equal(t, call.n, clock.n, name)
	}
}

// Err says what the last call found.
func TestErrDoesNotFindTheTimeoutItself(t *testing.T) {
	p := solo(t, Config{})
	p.sleep(time.Hour)
	p.wantAlive()
	require.NotZero(t, p.s.Room())
	p.wantNothing()
	p.wantErr(ErrTimeout)
}

// --- 8.4: leaving and ending

// Fault: what was queued just before the disconnect never arrived.
// P-8.4.2, P-8.4.5.
func TestCloseSendsFreshEventsThenThreeDisconnects(t *testing.T) {
	inBothForms(t, func(t *testing.T, wide bool) {
		a, b := duo(t, Config{Wide: wide})
		drop(a.emit(TypeInput))
		a.send("last words")
		a.s.Close()
		a.wantAlive()
		a.wantDeadline(0)
		first := a.wantEventsOut(0)
		require.EqualValues(t, 1, first.Sequence)
		b.deliver(first)
		var left []*packet
		for i := range 3 {
			k := a.wantDatagram(TypeDisconnect)
			require.EqualValues(t, 2+i, k.Sequence)
			require.Empty(t, k.payload)
			left = append(left, k)
			a.wantAlive()
			a.s.Close() // says nothing new
		}
		a.wantNothing()
		a.wantErr(ErrClosed)
		a.wantInFlight(1) // nobody has acknowledged it
		b.wantEvents("last words")
		b.deliver(left[1])
		b.wantErr(ErrPeerLeft)
		drop(left...)
		b.refuse(ErrPeerLeft, left[0].bytes)
		b.wantNothing()
	})
}

// P-8.4.1.
func TestCloseStopsRetransmissionsHeartbeatTimeoutAndStall(t *testing.T) {
	inBothForms(t, func(t *testing.T, wide bool) {
		for _, pause := range []time.Duration{0, 100 * ms, 6 * time.Second, time.Hour} {
			for _, polled := range []bool{false, true} {
				p := solo(t, Config{Wide: wide})
				p.send("lost")
				p.wantEventsOut(0)
				p.sleep(100 * ms)
				if polled {
					p.s.Deadline()
					p.send(long(1177 - 4*b2i(wide)))
					p.wantEventsOut(0)
					p.wantEventsOut(1)
					p.sleep(100 * ms)
					p.wantEventsOut(0)
				}
				p.s.Close()
				closed := p.now()
				p.wantDeadline(closed)
				p.sleep(pause)
				for range 3 {
					p.wantDatagram(TypeDisconnect)
					p.wantDeadline(closed)
					p.sleep(pause)
				}
				p.wantNothing()
				p.wantErr(ErrClosed)
			}
		}
	})
}

// From Close on there is no retransmission, not even in the company of fresh events.
// P-8.4.3.
func TestLeavingCarriesFreshEventsOnly(t *testing.T) {
	p := solo(t, Config{})
	p.send("retransmission")
	p.wantEventsOut(0)
	p.sleep(100 * ms)
	p.send("fresh")
	p.s.Close()
	p.wantEventsOut(1)
	p.wantDatagram(TypeDisconnect)

	p = solo(t, Config{}) // nor when the retransmission was already found due
	p.send(long(1000), long(1000))
	p.flush()
	p.sleep(100 * ms)
	p.wantEventsOut(0)
	p.send("fresh")
	p.s.Close()
	p.wantEventsOut(2)
	p.wantDatagram(TypeDisconnect)
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

// P-8.4.2.
func TestLeavingSendsOnlyEventsInsideTheWindow(t *testing.T) {
	p := solo(t, Config{Backlog: 400})
	p.sendN(600, 0)
	p.s.Close()
	require.Len(t, p.wantDatagram(TypeEvent).ids(), 255)
	p.wantEventsOut(255)
	p.ack(0, 0) // Receive works in full: room for 255 more
	ids := p.wantDatagram(TypeEvent).ids()
	require.Len(t, ids, 255)
	require.EqualValues(t, 256, ids[0])
	p.wantDatagram(TypeDisconnect)
	p.ack(1, 0) // room again, but the three go in a row
	p.wantDatagram(TypeDisconnect)
	p.wantDatagram(TypeDisconnect)
	p.wantNothing()
	p.wantErr(ErrClosed)
	p.wantInFlight(344)
}

// P-8.4.2.
func TestShutdownOfALeavingSessionBeginsNothingAnew(t *testing.T) {
	p := solo(t, Config{})
	p.s.Close()
	p.wantDatagram(TypeDisconnect)
	p.s.Shutdown(time.Second)
	p.wantDatagram(TypeDisconnect)
	p.s.Shutdown(0)
	p.wantDatagram(TypeDisconnect)
	p.wantNothing()
	p.wantErr(ErrClosed)
}

// P-8.4.1.
func TestClosedSessionStillReceives(t *testing.T) {
	inBothForms(t, func(t *testing.T, wide bool) {
		p := solo(t, Config{Wide: wide})
		p.send("x")
		p.wantEventsOut(0)
		p.s.Close()
		p.s.Close()
		p.wantAlive()
		p.sendFails(ErrClosed)
		p.emitFails(ErrClosed)
		require.Zero(t, p.s.Room())
		require.Equal(t, []byte{9}, p.take(p.datagram(TypeInput, 0, 0, 0, 9)).Payload)
		p.wantInFlight(0)
		p.hear(TypeEvent, eventList(Event{0, []byte("late")})...)
		p.wantEvents("late")
		require.EqualValues(t, 1, p.wantDatagram(TypeDisconnect).Ack)
		for range 40 {
			p.hear(TypeInput) // a burst asks for no heartbeat any more
		}
		p.wantDatagram(TypeDisconnect)
		p.hear(TypeDisconnect)
		p.wantErr(ErrPeerLeft)
		p.wantNothing()
		p.sendFails(ErrPeerLeft)
		p.emitFails(ErrPeerLeft)
	})
}

// The repeat of a control message must not be a new event.
// P-8.4.4.
func TestFirstNewestDisconnectEndsTheSessionOnce(t *testing.T) {
	inBothForms(t, func(t *testing.T, wide bool) {
		p := solo(t, Config{Wide: wide})
		p.send("x")
		p.wantEventsOut(0)
		p.sleep(20 * ms)
		in := p.take(p.datagram(TypeDisconnect, 8, 0, 0))
		require.Equal(t, TypeDisconnect, in.Type)
		require.Nil(t, in.Payload)
		p.wantErr(ErrPeerLeft)
		p.wantInFlight(0) // its acknowledgements are read first
		require.Equal(t, 20*ms, p.s.RTT())
		for _, seq := range []uint16{7, 9} {
			p.refuse(ErrPeerLeft, p.datagram(TypeDisconnect, seq, 0, 0))
		}
		p.sleep(time.Second)
		p.wantNothing()
	})
}

// P-8.4.4.
func TestDisconnectThatIsNotNewestOnlyHasItsAcknowledgementsRead(t *testing.T) {
	p := solo(t, Config{})
	p.send("0")
	p.wantEventsOut(0)
	p.foreign = 100
	p.hear(TypeHeartbeat)
	for i, seq := range []uint16{100, 99, 10} { // Duplicate, Late, Stale
		in := p.take(p.datagram(TypeDisconnect, seq, uint16(i), 0))
		require.NotEqual(t, Newest, in.Arrival)
		p.wantAlive()
		p.wantInFlight(0)
		p.send("next")
		p.wantEventsOut(uint16(i) + 1)
	}
}

// The calls of a session that has ended, for each reason.
// P-8.5.1.
func TestEndedSessionAnswersEveryCallWithTheReason(t *testing.T) {
	for reason, end := range map[error]func(p *actor){
		ErrTimeout: func(p *actor) { p.sleep(6 * time.Second); p.wantNothing() },
		ErrStalled: func(p *actor) { p.sleep(16 * time.Second); p.hear(TypeHeartbeat); p.wantNothing() },
		ErrPeerLeft: func(p *actor) {
			p.hear(TypeDisconnect)
		},
		ErrClosed: func(p *actor) {
			p.s.Close()
			p.flush()
		},
		ErrUnacknowledged: func(p *actor) {
			p.sendN(p.s.Room(), 0)
			p.sendFails(ErrUnacknowledged)
		},
	} {
		t.Run(reason.Error(), func(t *testing.T) {
			p := solo(t, Config{Outcomes: true})
			p.emit(TypeInput)
			p.sleep(30 * ms)
			p.ack(0, 0)
			p.send("left behind")
			p.wantEventsOut(0)
			end(p)
			p.wantErr(reason)
			inFlight, st := p.s.InFlight(), p.s.Stats()
			require.Positive(t, inFlight)
			for range 3 {
				p.sendFails(reason)
				_, err := p.s.Send(make([]byte, 2000))
				require.ErrorIs(t, err, reason, "the end comes first")
				p.emitFails(reason)
				_, _, err = p.s.AppendDatagram(nil, TypeEvent, make([]byte, 2000))
				require.ErrorIs(t, err, reason)
				p.refuse(reason, p.datagram(TypeInput, 900, 1, 0))
				p.refuse(reason, nil)
				p.s.Close()
				p.wantNothing()
				require.Empty(t, p.flush())
				p.sleep(time.Hour)
			}
			p.wantErr(reason)
			p.wantInFlight(inFlight)
			require.Equal(t, 30*ms, p.s.RTT())
			require.Equal(t, st, p.s.Stats())
			p.wantOutcome(Outcome{0, TypeInput, true, 30 * ms})
			p.wantOutcome(Outcome{1, TypeEvent, false, 0}) // NextOutcome still judges
			p.fetchOutcomes()
			p.outcomes = nil
		})
	}
}

// Fault: queues of a closed peer kept growing.
func TestEndedSessionKeepsNoEvents(t *testing.T) {
	p := solo(t, Config{Ordered: true})
	p.hear(TypeEvent, eventList(Event{1, []byte("behind a gap")})...)
	p.sendN(200, 64)
	p.flush()
	p.sleep(5 * time.Second)
	p.wantNothing()
	for range 1000 {
		_, err := p.s.Send(make([]byte, 64))
		require.Equal(t, ErrTimeout, err)
	}
	p.wantInFlight(200)
	o := p.s.channel.sender.outbox
	require.Equal(t, outbox{fresh: 200, end: 200, undelivered: 200, events: o.events, bytes: o.bytes}, o, "but what Undelivered yields")
	require.Zero(t, p.s.channel.receiver.inbox)
}

// Fault: old counters leaked into the next connection.
func TestNewSessionIsNew(t *testing.T) {
	inBothForms(t, func(t *testing.T, wide bool) {
		cfg := Config{Wide: wide, Adaptive: true, EventRate: 10000, Outcomes: true}
		fresh := solo(t, cfg).s
		for range 2 {
			a, b := duo(t, cfg)
			require.Equal(t, fresh.channel, a.s.channel)
			require.Equal(t, fresh.live, a.s.live)
			require.Zero(t, a.s.time.now)
			require.Zero(t, a.s.Stats())
			require.Zero(t, a.s.RTT())
			a.wantInFlight(0)
			a.wantDeadline(50 * ms)
			first := a.emit(TypeInput)
			require.Zero(t, first.Sequence)
			require.EqualValues(t, 65535, first.Ack)
			require.Zero(t, first.AckBits)
			require.Equal(t, Newest, b.deliver(first).Arrival)
			for i := range 300 {
				a.send("x")
				b.send("y")
				b.deliver(a.wantEventsOut(uint16(i)), a.emit(TypeInput), a.emit(TypeInput))
				a.deliver(b.wantEventsOut(uint16(i)), b.emit(TypeInput))
				a.wantEvents("y")
				b.wantEvents("x")
				a.sleep(10 * ms)
			}
			b.deliver(a.emit(TypeInput)) // and b has not answered
			b.wantNothing()
			a.s.Close()
			drop(a.flush()...)
			for _, p := range []*actor{a, b} {
				p.fetchOutcomes()
				p.outcomes = nil
			}
		}
	})
}

// Close sets ErrClosed by the AppendDue that finds nothing more.
func TestDueEndsAClosedSessionInOneLoop(t *testing.T) {
	p := solo(t, Config{})
	p.send("x")
	p.s.Close()
	require.Len(t, p.flush(), 4)
	p.wantErr(ErrClosed)
	p.wantDeadline(-1)
}

func TestDueBreaksOffAndGoesOn(t *testing.T) {
	p := solo(t, Config{})
	p.send(long(1000), long(1000), long(1000))
	for datagram := range p.s.Due(nil) {
		require.Equal(t, []uint16{0}, p.packet(datagram).ids())
		break
	}
	p.wantEventsOut(1)
	p.wantEventsOut(2)
	p.wantNothing()
}

// --- 8.2: stall

// Fault: the connection looks fine, events never get through.
// P-8.2.1, P-8.2.2.
func TestOldestEventThatWaitsTooLongEndsTheSession(t *testing.T) {
	inBothForms(t, func(t *testing.T, wide bool) {
		for _, off := range []bool{false, true} {
			cfg := Config{Wide: wide}
			if off {
				cfg.StallTimeout = -1
			}
			p := solo(t, cfg)
			p.sleep(500 * ms) // the wait begins when it is sent first
			p.send("never acknowledged")
			p.sleep(500 * ms)
			p.wantEventsOut(0)
			for p.now() < 16*time.Second-50*ms {
				p.sleep(50 * ms)
				p.hear(TypeHeartbeat)
				p.flush()
			}
			p.wantAlive()
			p.sleepUntil(16*time.Second - 1)
			p.flush()
			p.wantAlive()
			p.sleep(1)
			if off {
				p.flush()
				p.wantAlive()
				continue
			}
			p.wantDeadline(16 * time.Second)
			p.wantNothing()
			p.wantErr(ErrStalled)
			p.wantInFlight(1)
		}
	})
}

// P-8.2.1.
func TestStallGoesByTheOldestUndeliveredEvent(t *testing.T) {
	p := solo(t, Config{ResendDelay: time.Minute})
	p.send("first")
	p.wantEventsOut(0)
	p.sleep(10 * time.Second)
	p.hear(TypeHeartbeat)
	p.send("second")
	p.wantEventsOut(1)
	p.sleep(4 * time.Second)
	p.ack(0, 0) // now it is the second that waits, and from now on
	p.sleepUntil(19 * time.Second)
	p.hear(TypeHeartbeat)
	p.flush()
	p.sleepUntil(24 * time.Second)
	p.hear(TypeHeartbeat)
	p.flush()
	p.sleepUntil(29*time.Second - 1)
	p.hear(TypeHeartbeat)
	p.flush()
	p.wantAlive()
	p.sleep(1)
	p.wantNothing()
	p.wantErr(ErrStalled)
}

// P-8.2.1.
func TestEventThatWasNeverSentDoesNotStall(t *testing.T) {
	p := solo(t, Config{})
	p.send("queued by a caller who sleeps")
	p.sleep(time.Hour)
	p.hear(TypeHeartbeat)
	p.wantEventsOut(0)
	p.wantAlive()
}

// The oldest event is stalled however many newer ones are delivered meanwhile.
func TestNewerDeliveriesDoNotPutOffTheStall(t *testing.T) {
	p := solo(t, Config{StallTimeout: 500 * ms, ResendDelay: time.Hour})
	for id := range uint16(2) {
		p.send("x")
		p.wantEventsOut(id)
	}
	p.sleep(400 * ms)
	p.ack(1, 0)
	p.wantInFlight(1)
	p.sleep(100 * ms)
	p.wantNothing()
	p.wantErr(ErrStalled)
}

// --- fine print

// P-2.2.4.
func TestAppendDatagramTakesTheApplicationsTypesOnly(t *testing.T) {
	inBothForms(t, func(t *testing.T, wide bool) {
		p := solo(t, Config{Wide: wide})
		for typ := range 256 {
			if typ >= 1 && typ <= 4 || typ >= 16 {
				require.Equal(t, Type(typ), p.emit(Type(typ)).Type)
				continue
			}
			out, seq, err := p.s.AppendDatagram([]byte("kept"), Type(typ), nil)
			require.ErrorIs(t, err, ErrReservedType)
			require.Equal(t, "kept", string(out))
			require.Zero(t, seq)
		}
		require.EqualValues(t, 244, p.s.Stats().DatagramsSent)
	})
}

// P-2.2.4.
func TestAppendDatagramTakesWhatFits(t *testing.T) {
	for wide, fits := range map[bool]int{false: 1182, true: 1178} {
		p := solo(t, Config{Wide: wide})
		require.Equal(t, fits, p.s.MaxPayload())
		out, seq, err := p.s.AppendDatagram([]byte("kept"), TypeInput, make([]byte, fits+1))
		require.ErrorIs(t, err, ErrDatagramTooLarge)
		require.Equal(t, "kept", string(out))
		require.Zero(t, seq)
		k := p.emit(TypeInput, make([]byte, fits)...)
		require.Len(t, k.bytes, 1200)
		require.Zero(t, k.Sequence, "the refused one used up no sequence")
	}
}

// P-5.2.3.
func TestSendChecksTheSizeBeforeTheCap(t *testing.T) {
	p := solo(t, Config{MaxEvent: 10})
	p.sendN(256, 10)
	require.Zero(t, p.s.Room())
	_, err := p.s.Send(make([]byte, 11))
	require.ErrorIs(t, err, ErrEventTooLarge)
	p.wantAlive() // ErrEventTooLarge ends nothing
	p.wantInFlight(256)
	p.sendFails(ErrUnacknowledged)
	p.wantErr(ErrUnacknowledged)
	p.wantInFlight(256)
}

// P-2.2.2.
func TestEmptyApplicationPayloadIsEmptyNotNil(t *testing.T) {
	a, b := duo(t, Config{})
	in := b.deliver(a.emit(TypeSnapshot))
	require.NotNil(t, in.Payload)
	require.Empty(t, in.Payload)
	require.True(t, in.Latest)
	require.Nil(t, b.take(b.datagram(TypeHeartbeat, 9, nothingYet, 0)).Payload)
}

func TestStatsCountEachThingOnce(t *testing.T) {
	inBothForms(t, func(t *testing.T, wide bool) {
		a, b := duo(t, Config{Wide: wide})
		a.send("abc", "")
		lost := a.wantEventsOut(0, 1)
		a.sleep(100 * ms)
		retransmitted := a.wantEventsOut(0, 1)
		input := a.emit(TypeInput, 1, 2, 3)
		b.deliver(retransmitted, retransmitted, input)
		b.deliver(lost) // Late: its events are copies
		b.wantEvents("abc", "")
		require.Error(t, func() error { _, err := b.s.Receive(nil); return err }())
		answer := b.emit(TypeInput)
		a.deliver(answer)
		got, want := a.s.Stats(), Stats{
			DatagramsSent: 3, DatagramsReceived: 1, BytesSent: uint64(2*len(lost.bytes) + len(input.bytes)), BytesReceived: uint64(len(answer.bytes)),
			Delivered: 3, EventsSent: 2, EventsResent: 2, EventsDelivered: 2, RTT: got0(a), RTTVar: 0,
		}
		require.Equal(t, want, got)
		require.Equal(t, Stats{
			DatagramsSent: 1, DatagramsReceived: 4, BytesSent: uint64(len(answer.bytes)), BytesReceived: uint64(3*len(lost.bytes) + len(input.bytes)),
			Undecided: 1, Duplicates: 1, Rejected: 1, EventsReceived: 2, EventsDuplicate: 2,
		}, b.s.Stats())
		b.take(b.datagram(TypeHeartbeat, 40000, nothingYet, 0))
		require.EqualValues(t, 1, b.s.Stats().Stale)
	})
}

func got0(p *actor) time.Duration { return p.s.RTT() }

// AcksOutrun: the peer's datagrams that left the window before we sent.
// P-6.1.2.
func TestAcksOutrunCountsWhatNoHeaderAcknowledges(t *testing.T) {
	for wide, window := range map[bool]int{false: 33, true: 65} {
		p := solo(t, Config{Wide: wide})
		outrun := func() uint64 { return p.s.Stats().AcksOutrun }
		for range window {
			p.hear(TypeInput)
		}
		require.Zero(t, outrun())
		p.hear(TypeInput)
		require.EqualValues(t, 1, outrun()) // sequence 0 is out
		p.hear(TypeInput)
		require.EqualValues(t, 2, outrun())
		p.emit(TypeInput)
		p.hear(TypeInput)
		require.EqualValues(t, 2, outrun()) // the rest was acknowledged
		p.foreign += uint16(window) - 2
		p.hear(TypeInput)
		require.EqualValues(t, 2, outrun()) // at the far end of the window
		p.foreign += 1000
		p.hear(TypeInput)
		require.EqualValues(t, 4, outrun()) // both gone at once
		if !wide {
			seq := p.foreign - 1
			p.take(p.datagram(TypeInput, seq-32, nothingYet, 0))
			require.EqualValues(t, 4, outrun())
			p.take(p.datagram(TypeInput, seq-33, nothingYet, 0)) // Late, but outside at once
			require.EqualValues(t, 5, outrun())
		}
	}
}

// --- long runs

// The 15 s of play that a window must last, over a bad link.
func TestEveryEventArrivesOnceThroughABadNetwork(t *testing.T) {
	inBothForms(t, func(t *testing.T, wide bool) {
		for _, ordered := range []bool{false, true} {
			clock := &ManualClock{}
			clock.Set(time.Unix(0, 0))
			total := 20_000
			if testing.Short() {
				total = 2_000
			}
			conditions := simnet.Config{Delay: 10 * ms, Jitter: 70 * ms, Loss: 0.3, Duplicate: 0.05, Reorder: 0.1, ReorderDelay: 40 * ms}
			var ends [2]*endpoint
			var seen [2][]byte
			var got [2]int
			for i := range ends {
				s, err := NewSession(Config{Clock: clock, Wide: wide, Ordered: ordered})
				require.NoError(t, err)
				// Sequences and ids near the wrap, so that a short run crosses it too.
				(&actor{story: &story{}, s: s}).startAt(65500, 65000)
				(&actor{story: &story{}, s: s}).expectFrom(65500, 65000)
				seen[i] = make([]byte, total)
				ends[i] = &endpoint{Session: s, events: func(in Incoming) {
					for _, e := range in.Events {
						n := int(e.Data[0]) | int(e.Data[1])<<8
						if ordered {
							require.Equal(t, got[i], n)
						}
						seen[i][n]++
						got[i]++
					}
				}}
			}
			pair := simnet.NewPair(7, clock, ends[0], ends[1], conditions, conditions)
			sent := [2]int{}
			stop := pair.Every(100, time.Second, func() {
				for i, e := range ends {
					for sent[i] < total && e.InFlight() < 100 && e.Room() > 0 {
						_, err := e.Send([]byte{byte(sent[i]), byte(sent[i] >> 8), 3})
						require.NoError(t, err)
						sent[i]++
					}
				}
			})
			done := func() bool {
				return sent == [2]int{total, total} && ends[0].InFlight()+ends[1].InFlight() == 0
			}
			require.True(t, pair.RunUntil(done, 10*time.Minute))
			stop()
			for i := range ends {
				require.Equal(t, slices.Repeat([]byte{1}, total), seen[i])
				st := ends[i].Stats()
				require.EqualValues(t, total, st.EventsDelivered)
				require.EqualValues(t, total, st.EventsSent)
				require.EqualValues(t, total, st.EventsReceived)
				require.Zero(t, st.Rejected)
				require.Greater(t, st.DatagramsSent, uint64(1<<16-65500))
			}
		}
	})
}

// Acks travel on anything.
func TestOneWayEventsAreAcknowledgedByHeartbeats(t *testing.T) {
	inBothForms(t, func(t *testing.T, wide bool) {
		a, b := duo(t, Config{Wide: wide, Backlog: 300})
		a.sendN(500, 8)
		for i := 0; a.s.InFlight() > 0; i++ {
			require.Less(t, i, 50)
			out, back := a.flush(), b.flush()
			a.sleep(15 * ms)
			b.deliver(out...)
			a.deliver(back...)
			a.sleep(15 * ms)
		}
		b.wantCount(500)
		require.Zero(t, a.s.Stats().EventsResent)
		require.Zero(t, b.s.Stats().EventsSent)
		drop(append(slices.Clone(a.flying), b.flying...)...)
	})
}

// Lost heartbeats are nobody's business.
func TestLostHeartbeatsCostNothing(t *testing.T) {
	a, b := duo(t, Config{})
	for range 90 {
		a.sleep(50 * ms)
		drop(a.flush()...)
		a.deliver(b.flush()...)
	}
	for range 100 {
		a.sleep(50 * ms)
		b.deliver(a.flush()...)
		a.deliver(b.flush()...)
	}
	a.wantAlive()
	b.wantAlive()
	a.wantInFlight(0)
	st := a.s.Stats()
	require.Zero(t, st.EventsSent+st.EventsResent)
	require.EqualValues(t, 190, st.DatagramsSent, "no datagram more than one each 50 ms")
}

// A round trip beyond the outcomes: every datagram is declared lost before its
// acknowledgement comes, and the retransmissions push it out of memory. Events must
// still be delivered, and the round trip be learned.
func TestRoundTripBeyondTheOutcomesIsNotALivelock(t *testing.T) {
	for _, rtt := range []time.Duration{2500 * time.Millisecond, 4 * time.Second} {
		var clock ManualClock
		clock.Set(time.Unix(1000, 0))
		type flight struct {
			at       time.Time
			datagram []byte
		}
		var ends [2]*Session
		var links [2][]flight
		for i := range ends {
			ends[i], _ = NewSession(Config{Clock: &clock, Timeout: 10 * time.Second, Heartbeat: 20 * time.Millisecond})
		}
		buf := make([]byte, MaxDatagramSize)
		received := 0
		const ticks, wanted = 60 * 40, 100
		for tick := range ticks {
			clock.Advance(time.Second / 60)
			for i, s := range ends {
				for len(links[1-i]) > 0 && !clock.Now().Before(links[1-i][0].at) {
					in, err := s.Receive(links[1-i][0].datagram)
					require.NoError(t, err, rtt)
					links[1-i] = links[1-i][1:]
					if i == 1 {
						received += len(in.Events)
					}
				}
				if i == 0 && tick < wanted {
					_, err := s.Send([]byte("event"))
					require.NoError(t, err)
				}
				for datagram := range s.Due(buf) {
					links[i] = append(links[i], flight{clock.Now().Add(rtt / 2), bytes.Clone(datagram)})
				}
				require.NoError(t, s.Err(), rtt)
			}
		}
		require.Equal(t, wanted, received)
		require.Zero(t, ends[0].InFlight())
		require.InDelta(t, rtt.Seconds(), ends[0].RTT().Seconds(), 0.2)
	}
}

// A call before anything can be due costs a comparison, also when there is no
// datagram left to judge.
func TestLookWithNothingToJudgeIsTheLastForAWhile(t *testing.T) {
	p := solo(t, Config{Heartbeat: 4 * time.Second})
	p.emit(TypeInput)
	p.ack(0, 0)
	p.advance(time.Second)
	p.wantNothing()
	require.Equal(t, int64(2*time.Second), p.s.channel.quietUntil)
}

// However long it is, within what a datagram may have.
// P-2.1.4.
func TestOtherFormIsRefusedAtEveryLength(t *testing.T) {
	inBothForms(t, func(t *testing.T, wide bool) {
		p := solo(t, Config{Wide: wide})
		for n, reason := range map[int]error{
			17: ErrShort, 18: ErrFormat, 19: ErrFormat, 21: ErrFormat, 22: ErrFormat, 1199: ErrFormat, 1200: ErrFormat, 1201: ErrOversize,
		} {
			datagram := append(Header{Wide: !wide, Type: TypeInput}.AppendTo(nil), make([]byte, MaxDatagramSize)...)
			p.refuse(reason, datagram[:n])
		}
	})
}
