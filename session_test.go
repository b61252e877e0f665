package ackbits

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ackbits/ackbits/simnet"
)

// The calls of a Session: what they accept, that each reads the clock once, what Stats count,
// and that two sessions deliver everything through a bad network. What is due when, refusals,
// timers and the end have files of their own.

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
