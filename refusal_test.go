package ackbits

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Which datagrams a session refuses, in which order it checks, and that a refusal changes
// nothing: framing, windows, and Config.Accept.

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
