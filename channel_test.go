package ackbits

import (
	"errors"
	"math"
	"testing"
	"time"

	"github.com/ackbits/ackbits/internal/trim"
	"github.com/stretchr/testify/require"
)

func newChannel(t *testing.T, cfg Config) (*ReliableChannel, *ManualClock) {
	t.Helper()
	clock := &ManualClock{}
	cfg.Clock = clock
	c, err := NewReliableChannel(cfg)
	require.NoError(t, err)
	return c, clock
}

// P-3.1.1.
func TestChannelNumbersAndAcknowledges(t *testing.T) {
	inBothForms(t, func(t *testing.T, wide bool) {
		c, clock := newChannel(t, Config{Wide: wide, Token: 77, Outcomes: true})
		h, ok := c.NextHeader(TypeSnapshot)
		require.True(t, ok)
		require.Equal(t, Header{Wide: wide, Type: TypeSnapshot, Ack: 65535}, h, "no token")
		for _, seq := range []uint16{0, 1, 4, 3} {
			_, err := c.Receive(Header{Wide: wide, Type: TypeInput, Sequence: seq, Ack: 65535}, nil)
			require.NoError(t, err)
		}
		h, _ = c.NextHeader(TypeInput)
		require.Equal(t, Header{Wide: wide, Type: TypeInput, Sequence: 1, Ack: 4, AckBits: 0b1101}, h)
		clock.Advance(30 * ms)
		in, err := c.Receive(Header{Wide: wide, Type: 255, Token: 3, Sequence: 5, Ack: 1}, []byte("p"))
		require.NoError(t, err)
		require.Equal(t, Incoming{Header: Header{Wide: wide, Type: 255, Token: 3, Sequence: 5, Ack: 1}, Arrival: Newest, Latest: true, Payload: []byte("p")}, in)
		require.Equal(t, 30*ms, c.RTT())
		o, ok := c.NextOutcome()
		require.True(t, ok)
		require.Equal(t, Outcome{1, TypeInput, true, 30 * ms}, o)
		_, ok = c.NextOutcome()
		require.False(t, ok)
		require.Zero(t, c.Stats().BytesReceived+c.Stats().BytesSent)
	})
}

func TestChannelAppendsAWholePayloadOrNothing(t *testing.T) {
	c, clock := newChannel(t, Config{})
	_, ok := c.Deadline()
	require.False(t, ok)
	c.Send([]byte("abc"))
	c.Send(nil)
	at, ok := c.Deadline() // includes first copies
	require.True(t, ok)
	require.Equal(t, clock.Now(), at)
	h, _ := c.NextHeader(TypeEvent)
	for _, short := range []int{math.MinInt, -1, 0, 1, 7} {
		require.False(t, c.EventsDue(short))
		require.Equal(t, "kept", string(c.AppendDueEvents([]byte("kept"), h.Sequence, short)))
	}
	require.True(t, c.EventsDue(8))
	require.Equal(t, append([]byte("kept"), eventList(Event{0, []byte("abc")})...), c.AppendDueEvents([]byte("kept"), h.Sequence, 8))
	require.True(t, c.EventsDue(5))
	h, _ = c.NextHeader(TypeEvent)
	require.Equal(t, eventList(Event{1, nil}), c.AppendDueEvents(nil, h.Sequence, math.MaxInt))
	require.False(t, c.EventsDue(math.MaxInt))
	require.Empty(t, c.AppendDueEvents(nil, h.Sequence, math.MaxInt))
	at, _ = c.Deadline()
	require.Equal(t, clock.Now().Add(100*ms), at)
	clock.Advance(100*ms - 1)
	require.False(t, c.EventsDue(math.MaxInt))
	clock.Advance(1)
	require.True(t, c.EventsDue(12))
	h, _ = c.NextHeader(TypeEvent)
	require.Equal(t, eventList(Event{0, []byte("abc")}, Event{1, nil}), c.AppendDueEvents(nil, h.Sequence, 12))
	require.Equal(t, 2, c.InFlight())
	c.Receive(Header{Type: TypeInput, Ack: 2}, nil)
	require.Zero(t, c.InFlight())
	_, ok = c.Deadline()
	require.False(t, ok)
}

func TestAppendDueEventsFindsRetransmissionsByItself(t *testing.T) {
	c, clock := newChannel(t, Config{})
	c.Send([]byte("x"))
	for seq := range uint16(3) {
		h, _ := c.NextHeader(TypeEvent)
		require.Equal(t, seq, h.Sequence)
		require.NotEmpty(t, c.AppendDueEvents(nil, seq, 100))
		require.Empty(t, c.AppendDueEvents(nil, seq, 100))
		clock.Advance(100 * ms)
	}
}

func TestDatagramThatHasItsOutcomeCarriesNothingMore(t *testing.T) {
	c, clock := newChannel(t, Config{})
	acked, _ := c.NextHeader(TypeEvent)
	lost, _ := c.NextHeader(TypeEvent)
	c.Receive(Header{Type: TypeInput, Ack: acked.Sequence}, nil)
	c.Send(nil)
	require.Empty(t, c.AppendDueEvents(nil, acked.Sequence, 100))
	clock.Advance(time.Second)
	c.NextOutcome()
	require.Empty(t, c.AppendDueEvents(nil, lost.Sequence, 100))
	require.True(t, c.EventsDue(100))
}

// Whatever was appended for a datagram is delivered with it.
func TestSecondListOfADatagramIsDeliveredWithIt(t *testing.T) {
	for _, between := range []bool{false, true} {
		c, _ := newChannel(t, Config{})
		first, _ := c.NextHeader(TypeEvent)
		other, _ := c.NextHeader(TypeEvent)
		c.Send([]byte("a"))
		require.NotEmpty(t, c.AppendDueEvents(nil, first.Sequence, 100))
		if between {
			c.Send([]byte("b"))
			require.NotEmpty(t, c.AppendDueEvents(nil, other.Sequence, 100))
		}
		c.Send([]byte("c"))
		second := c.AppendDueEvents(nil, first.Sequence, 100)
		left := 1
		if len(second) > 0 {
			left = 0
		}
		c.Receive(Header{Type: TypeInput, Ack: first.Sequence}, nil)
		require.Equal(t, left+b2i(between), c.InFlight())
		require.Equal(t, left > 0, c.EventsDue(100), "and else it is still due")
	}
}

// Both lists of a datagram are, also where the first one's events lie apart.
func TestSecondListAfterOneWithAGap(t *testing.T) {
	c, clock := newChannel(t, Config{})
	for range 3 {
		h, _ := c.NextHeader(TypeEvent)
		c.Send(nil)
		require.NotEmpty(t, c.AppendDueEvents(nil, h.Sequence, 100))
	}
	c.Receive(Header{Type: TypeInput, Ack: 1}, nil)
	clock.Advance(100 * ms)
	h, _ := c.NextHeader(TypeEvent)
	require.Len(t, c.AppendDueEvents(nil, h.Sequence, 100), 1+2*4, "0 and 2")
	c.Send(nil)
	require.Len(t, c.AppendDueEvents(nil, h.Sequence, 100), 1+4)
	c.Receive(Header{Type: TypeInput, Sequence: 1, Ack: h.Sequence}, nil)
	require.Zero(t, c.InFlight())
}

// What is said of bundles is none of a channel's business.
func TestChannelEventStaysDueHoweverOftenItIsRetransmitted(t *testing.T) {
	c, clock := newChannel(t, Config{Bundle: true})
	c.Send(make([]byte, MaxEventSize))
	for range 5 {
		require.True(t, c.EventsDue(MaxDatagramSize))
		h, _ := c.NextHeader(TypeEvent)
		require.NotEmpty(t, c.AppendDueEvents(nil, h.Sequence, MaxDatagramSize))
		require.False(t, c.EventsDue(MaxDatagramSize))
		clock.Advance(100 * ms)
	}
}

// No datagram's list is longer than one holds, whatever room the caller has.
func TestChannelListsFitADatagram(t *testing.T) {
	for second, want := range map[int]int{573: 1182, 574: 605, 600: 605} {
		c, _ := newChannel(t, Config{})
		c.Send(make([]byte, 600))
		c.Send(make([]byte, second))
		h, _ := c.NextHeader(TypeEvent)
		require.Len(t, c.AppendDueEvents(nil, h.Sequence, 1<<20), want, second)
	}
}

// A datagram without an outcome may outlive the log of its events.
func TestDatagramWhoseCopiesWereForgottenCarriesNothingMore(t *testing.T) {
	c, clock := newChannel(t, Config{LossDelay: time.Hour})
	c.Send([]byte("a"))
	first, _ := c.NextHeader(TypeEvent)
	require.NotEmpty(t, c.AppendDueEvents(nil, first.Sequence, 100))
	clock.Advance(100 * ms)
	second, _ := c.NextHeader(TypeEvent)
	require.NotEmpty(t, c.AppendDueEvents(nil, second.Sequence, 100))
	c.Receive(Header{Type: TypeInput, Ack: first.Sequence}, nil)
	require.Zero(t, c.InFlight())
	for range 4 {
		clock.Advance(time.Duration(trim.Period))
		c.NextHeader(TypeHeartbeat)
	}
	require.Empty(t, c.sender.outbox.log.runs)
	c.Send([]byte("b"))
	require.Empty(t, c.AppendDueEvents(nil, second.Sequence, 100))
	require.True(t, c.EventsDue(100))
	c.Receive(Header{Type: TypeInput, Sequence: 1, Ack: second.Sequence}, nil)
	require.Equal(t, 1, c.InFlight())
}

func TestChannelIgnoresASequenceItNeverNumbered(t *testing.T) {
	c, _ := newChannel(t, Config{})
	c.Send(nil)
	for _, seq := range []uint16{0, 1, 65535, 32768} {
		require.Empty(t, c.AppendDueEvents(nil, seq, 1000))
	}
	require.True(t, c.EventsDue(1000), "and the event is still due")
}

func TestChannelEventsTravelInApplicationDatagrams(t *testing.T) {
	// A caller with a format of his own may number a datagram of any type.
	c, clock := newChannel(t, Config{})
	c.Send([]byte("x"))
	h, _ := c.NextHeader(TypeInput)
	require.NotEmpty(t, c.AppendDueEvents(nil, h.Sequence, 100))
	c.Receive(Header{Type: TypeInput, Ack: h.Sequence}, nil)
	require.Zero(t, c.InFlight())
	clock.Advance(time.Minute)
	require.False(t, c.EventsDue(100))
}

func TestChannelReadsEitherForm(t *testing.T) {
	inBothForms(t, func(t *testing.T, wide bool) {
		c, _ := newChannel(t, Config{Wide: !wide})
		_, err := c.Receive(Header{Wide: wide, Type: TypeInput}, nil)
		require.NoError(t, err)
	})
}

// P-2.2.1, P-2.2.3.
func TestChannelChecksFraming(t *testing.T) {
	refuse := errors.New("no")
	c, _ := newChannel(t, Config{Accept: func(h Header, _ []byte) error {
		if h.Type == TypeSnapshot {
			return refuse
		}
		return nil
	}})
	for _, bad := range []Type{0, 9, 10, 11, 12, 13, 14, 15} {
		_, err := c.Receive(Header{Type: bad}, nil)
		require.ErrorIs(t, err, ErrType)
	}
	for typ, payload := range map[Type][]byte{TypeEvent: {0}, TypeHeartbeat: {0}, TypeDisconnect: {0}, TypeBundle: {0}} {
		_, err := c.Receive(Header{Type: typ}, payload)
		require.ErrorIs(t, err, ErrPayload)
	}
	_, err := c.Receive(Header{Type: TypeEvent}, eventList(Event{4096, nil}))
	require.ErrorIs(t, err, ErrWindow)
	_, err = c.Receive(Header{Type: TypeSnapshot}, nil)
	require.ErrorIs(t, err, ErrRejected)
	require.ErrorIs(t, err, refuse)
	require.EqualValues(t, 14, c.Stats().Rejected)
	in, err := c.Receive(Header{Type: TypeInput}, nil)
	require.NoError(t, err)
	require.Equal(t, Newest, in.Arrival)
	require.NotNil(t, in.Payload)
	in, err = c.Receive(Header{Type: TypeBundle, Sequence: 1}, append(append([]byte{200}, eventList(Event{0, []byte("e")})...), "rest"...))
	require.NoError(t, err)
	require.EqualValues(t, 200, in.Type)
	require.Equal(t, "rest", string(in.Payload))
	require.Equal(t, []Event{{0, []byte("e")}}, in.Events)
}

func TestDisconnectIsAnOrdinaryDatagramToAChannel(t *testing.T) {
	c, clock := newChannel(t, Config{})
	in, err := c.Receive(Header{Type: TypeDisconnect}, nil)
	require.NoError(t, err)
	require.Equal(t, Newest, in.Arrival)
	require.NoError(t, c.Err())
	clock.Advance(time.Hour) // nor has it a timeout or a stall
	c.Send(nil)
	h, ok := c.NextHeader(TypeDisconnect)
	require.True(t, ok)
	require.Zero(t, h.Ack)
	c.AppendDueEvents(nil, h.Sequence, 100)
	clock.Advance(time.Hour)
	require.True(t, c.EventsDue(100))
	require.NoError(t, c.Err())
}

// P-6.3.3.
func TestChannelAckDueAfter32Datagrams64Wide(t *testing.T) {
	for wide, burst := range map[bool]uint16{false: 32, true: 64} {
		c, _ := newChannel(t, Config{Wide: wide})
		for seq := range 2 * burst {
			if seq == burst {
				c.NextHeader(TypeHeartbeat)
			}
			require.False(t, c.AckDue())
			c.Receive(Header{Wide: wide, Type: TypeInput, Sequence: seq, Ack: 65535}, nil)
			require.Equal(t, seq%burst == burst-1, c.AckDue())
		}
	}
}

// P-8.5.1.
func TestEndedChannelAnswersEveryCallWithTheReason(t *testing.T) {
	c, clock := newChannel(t, Config{Outcomes: true, Backlog: 4})
	require.Equal(t, 260, c.Room())
	h, _ := c.NextHeader(TypeInput)
	for range 260 {
		c.Send(nil)
	}
	for range 40 {
		c.Receive(Header{Type: TypeInput, Ack: 65535, Sequence: uint16(c.Stats().DatagramsReceived)}, nil)
	}
	require.True(t, c.AckDue())
	for _, event := range [][]byte{nil, make([]byte, 2000)} {
		id, err := c.Send(event)
		require.Equal(t, ErrUnacknowledged, err)
		require.Zero(t, id)
		require.Equal(t, ErrUnacknowledged, c.Err())
		require.Zero(t, c.Room())
		require.Equal(t, 260, c.InFlight())
		next, ok := c.NextHeader(TypeInput)
		require.False(t, ok)
		require.Zero(t, next)
		require.False(t, c.EventsDue(1000))
		require.False(t, c.AckDue())
		require.Equal(t, "kept", string(c.AppendDueEvents([]byte("kept"), h.Sequence, 1000)))
		in, err := c.Receive(Header{Type: TypeInput}, nil)
		require.Equal(t, ErrUnacknowledged, err)
		require.Zero(t, in)
		at, ok := c.Deadline()
		require.False(t, ok)
		require.Zero(t, at)
	}
	clock.Advance(time.Minute)
	o, ok := c.NextOutcome()
	require.True(t, ok)
	require.Equal(t, Outcome{0, TypeInput, false, 0}, o)
	require.Equal(t, "kept", string(c.AppendDueEvents([]byte("kept"), h.Sequence, 1000)), "all outcomes are known")
}

// A channel ends once: half the number space is no second reason.
func TestChannelKeepsTheReasonOfItsEnd(t *testing.T) {
	c, _ := newChannel(t, Config{})
	for range 1<<15 - 1 {
		c.NextHeader(TypeInput)
	}
	for range eventWindow + 1 {
		c.Send(nil)
	}
	require.ErrorIs(t, c.Err(), ErrUnacknowledged)
	_, ok := c.NextHeader(TypeInput)
	require.False(t, ok)
	require.ErrorIs(t, c.Err(), ErrUnacknowledged)
}

// What does not fit into the window of Config.Adaptive waits.
func TestChannelsEventsWaitForTheWindow(t *testing.T) {
	c, _ := newChannel(t, Config{Adaptive: true})
	const size = 1000
	for range 2 * firstWindow / size {
		c.Send(make([]byte, size))
	}
	sent := 0
	for {
		h, _ := c.NextHeader(TypeEvent)
		list := c.AppendDueEvents(nil, h.Sequence, maxListSize)
		if list == nil {
			break
		}
		sent += size
	}
	require.Less(t, sent, firstWindow+size)
	require.False(t, c.EventsDue(maxListSize))
}

// A channel that only receives is as busy as one that sends: it keeps the memory that
// the next burst takes. One that receives heartbeats is not.
func TestChannelThatReceivesIsBusy(t *testing.T) {
	for heard, kept := range map[Type]bool{TypeInput: true, TypeHeartbeat: false} {
		c, clock := newChannel(t, Config{})
		_, err := c.Receive(Header{Type: TypeEvent}, eventList(make([]Event, 100)...))
		require.NoError(t, err)
		for seq := range uint16(5) {
			c.Receive(Header{Type: heard, Sequence: 1 + seq}, nil)
			clock.Advance(time.Duration(trim.Period))
			c.NextHeader(TypeHeartbeat)
		}
		require.Equal(t, kept, cap(c.receiver.inbox.parsed) > 0, heard)
	}
}

// While nothing is acknowledged, events ride in bundles; a channel has none.
func TestChannelsEventsDoNotRide(t *testing.T) {
	c, clock := newChannel(t, Config{Adaptive: true})
	h, _ := c.NextHeader(TypeInput)
	clock.Advance(30 * ms)
	c.Receive(Header{Type: TypeInput, Ack: h.Sequence}, nil)
	c.Send([]byte("x"))
	for range 3 {
		require.True(t, c.EventsDue(100))
		h, _ = c.NextHeader(TypeEvent)
		require.NotEmpty(t, c.AppendDueEvents(nil, h.Sequence, 100))
		due, _ := c.Deadline()
		clock.Set(due.Add(-1))
		require.False(t, c.EventsDue(100))
		clock.Set(due)
	}
	require.Greater(t, clock.Now().Sub(time.Time{}), 300*ms, "a silence")
}
