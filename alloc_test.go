package ackbits

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// shuffler is a link that loses, duplicates and reorders datagrams, and
// allocates nothing.
type shuffler struct {
	rng   *rand.Rand
	slots [16]struct {
		bytes [MaxDatagramSize]byte
		n     int
		ticks int // until it arrives; 0: free
	}
}

func (l *shuffler) send(datagram []byte) {
	if l.rng.IntN(10) == 0 {
		return // lost
	}
	for copies := 1 + l.rng.IntN(20)/19; copies > 0; copies-- {
		for i := range l.slots {
			if s := &l.slots[i]; s.ticks == 0 {
				s.n = copy(s.bytes[:], datagram)
				s.ticks = 1 + l.rng.IntN(4)
				break
			}
		}
	}
}

func (l *shuffler) arrive(to func(datagram []byte)) {
	for i := range l.slots {
		s := &l.slots[i]
		if s.ticks == 0 {
			continue
		}
		if s.ticks--; s.ticks == 0 {
			to(s.bytes[:s.n])
		}
	}
}

// allocations counts those of n calls after as many to warm up: the fewest of
// ten tries, since the runtime itself allocates now and then.
func allocations(n int, f func()) float64 {
	fewest := math.Inf(1)
	for range 10 {
		fewest = min(fewest, testing.AllocsPerRun(1, func() {
			for range n {
				f()
			}
		}))
		if fewest == 0 {
			break
		}
	}
	return fewest
}

func allocForms(t *testing.T, test func(t *testing.T, cfg Config)) {
	for bits := range 64 {
		cfg := Config{Wide: bits&1 != 0, Ordered: bits&2 != 0, Outcomes: bits&4 != 0, Backlog: bits & 8 * 10}
		if bits&16 != 0 {
			cfg.Adaptive, cfg.Bundle, cfg.EventRate = true, true, 20_000
		}
		if bits&32 != 0 {
			if bits&7 != 0 && testing.Short() {
				continue
			}
			cfg.Seal, cfg.Open = gcm(1), gcm(1)
		}
		t.Run(fmt.Sprintf("wide=%t,ordered=%t,outcomes=%t,backlog=%d,adaptive=%t,sealed=%t", cfg.Wide, cfg.Ordered, cfg.Outcomes, cfg.Backlog, cfg.Adaptive, cfg.Seal != nil),
			func(t *testing.T) { test(t, cfg) })
	}
}

func repeat(n int, do func()) {
	for range n {
		do()
	}
}

func readOutcomes(s *Session) {
	for _, ok := s.NextOutcome(); ok; _, ok = s.NextOutcome() {
	}
}

// acceptNearlyAll returns an Accept that refuses one datagram of 50 and withholds another.
func acceptNearlyAll() func(Header, []byte) error {
	refusal := errors.New("no")
	n := 0
	return func(Header, []byte) error {
		switch n++; n % 50 {
		case 0:
			return refusal
		case 25:
			return ErrWithhold
		}
		return nil
	}
}

const tick = time.Second / 60

func TestSteadyStateAllocatesNothing(t *testing.T) {
	allocForms(t, func(t *testing.T, cfg Config) {
		clock := &ManualClock{}
		cfg.Clock = clock
		cfg.Accept = acceptNearlyAll()
		rng := rand.New(rand.NewPCG(1, 2))
		var ends [2]*Session
		var links [2]shuffler
		for i := range ends {
			var err error
			ends[i], err = NewSession(cfg)
			require.NoError(t, err)
			links[i].rng = rng
		}
		var in, out [MaxDatagramSize]byte
		var events [2]uint64
		flush := func(i int) {
			for datagram := range ends[i].Due(out[:]) {
				links[i].send(datagram)
			}
		}
		receivers := [2]func([]byte){}
		for i, s := range ends {
			receivers[i] = func(datagram []byte) {
				got, _ := s.Receive(in[:copy(in[:], datagram)])
				events[i] += uint64(len(got.Events))
				flush(i)
			}
		}
		ticks := 0
		step := func() {
			ticks++
			clock.Advance(tick)
			for i, s := range ends {
				links[1-i].arrive(receivers[i])
				repeat(ticks%3, func() { s.Send(in[:rng.IntN(80)]) })
				if ticks%100 == 0 {
					s.Send(in[:1000])
				}
				if i == 0 || ticks%3 == 0 {
					dg, _, _ := s.AppendDatagram(out[:0], TypeSnapshot, in[:rng.IntN(200)])
					links[i].send(dg)
				}
				flush(i)
				readOutcomes(s)
				s.Deadline()
				s.Stats()
			}
		}
		repeat(60*60, step)
		require.Zero(t, allocations(10*60, step))
		for i, s := range ends {
			require.NoError(t, s.Err())
			st := s.Stats()
			require.Greater(t, st.EventsResent, uint64(100))
			require.Greater(t, st.Duplicates+st.Replayed, uint64(30))
			require.Greater(t, events[i], uint64(4000))
		}
	})
}

func TestChannelsSteadyStateAllocatesNothing(t *testing.T) {
	allocForms(t, func(t *testing.T, cfg Config) {
		clock := &ManualClock{}
		cfg.Clock = clock
		var ends [2]*ReliableChannel
		for i := range ends {
			var err error
			ends[i], err = NewReliableChannel(cfg)
			require.NoError(t, err)
		}
		rng := rand.New(rand.NewPCG(3, 4))
		var buf [1000]byte
		step := func() {
			clock.Advance(tick)
			for i, c := range ends {
				c.Send(buf[:rng.IntN(60)])
				h, _ := c.NextHeader(TypeEvent)
				payload := c.AppendDueEvents(buf[:0], h.Sequence, len(buf))
				if len(payload) == 0 {
					h.Type = TypeInput
				}
				if rng.IntN(10) > 0 {
					ends[1-i].Receive(h, payload)
				}
				for _, ok := c.NextOutcome(); ok; _, ok = c.NextOutcome() {
				}
				c.EventsDue(100)
				c.Deadline()
			}
		}
		for range 60 * 20 {
			step()
		}
		require.Zero(t, allocations(10*60, step))
		require.Positive(t, ends[0].Stats().EventsResent)
	})
}

// What the wire supplies costs an error value that exists and a counter.
// P-2.3.3.
func TestHostileInputAllocatesNothing(t *testing.T) {
	inBothForms(t, func(t *testing.T, wide bool) {
		for name, bad := range hostile(wide) {
			t.Run(name, func(t *testing.T) {
				refusal := errors.New("no")
				clock := &ManualClock{}
				s, err := NewSession(Config{Clock: clock, Wide: wide, Accept: func(h Header, _ []byte) error {
					if h.Type == TypeInput {
						return ErrWithhold
					}
					return refusal
				}})
				require.NoError(t, err)
				s.Receive(Header{Wide: wide, Type: TypeHeartbeat, Sequence: 300, Ack: nothingYet}.AppendTo(nil))
				require.Zero(t, allocations(1, func() { s.Receive(bad) }), "a second copy already")
			})
		}
	})
}

// hostile is a collection of datagrams that are refused, or mean nothing.
func hostile(wide bool) map[string][]byte {
	make := func(typ Type, seq uint16, payload ...byte) []byte {
		h := Header{Wide: wide, Type: typ, Sequence: seq, Ack: 4000, AckBits: 1<<64 - 1}
		return append(h.AppendTo(nil), payload...)
	}
	list := func(n int, id uint16) []byte {
		payload := []byte{byte(n)}
		for i := range n {
			payload = append(payload, byte(id+uint16(i)), byte((id+uint16(i))>>8), 0, 0)
		}
		return payload
	}
	foreign := make(TypeHeartbeat, 301)
	foreign[5]++
	format := make(TypeHeartbeat, 301)
	format[0] ^= 1
	return map[string][]byte{
		"empty":                         {},
		"short":                         make(TypeHeartbeat, 301)[:17],
		"oversize":                      append(make(TypeHeartbeat, 301), list(254, 0)[:1]...),
		"format":                        format,
		"token":                         foreign,
		"type":                          make(9, 301),
		"payload":                       make(TypeHeartbeat, 301, 1),
		"no events":                     make(TypeEvent, 301, 0),
		"many events, the last cut":     make(TypeEvent, 301, list(255, 0)[:1+4*254+3]...),
		"many events and a byte":        make(TypeEvent, 301, append(list(255, 0), 0)...),
		"a bundle of many, cut":         make(TypeBundle, 301, append([]byte{200}, list(255, 0)[:1000]...)...),
		"many events out of the window": make(TypeEvent, 301, list(255, 20000)...),
		"one event out of the window":   make(TypeEvent, 301, append(list(255, 0)[:1+4*254], 0, 90, 0, 0)...),
		"rejected":                      make(TypeSnapshot, 301, 1, 2, 3),
		"withheld":                      make(TypeInput, 301, 1, 2, 3),
		"stale events":                  make(TypeEvent, 1, list(255, 0)...),
		"duplicate events":              make(TypeEvent, 300, list(255, 0)...),
		"stale input":                   make(TypeSnapshot, 300+32768),
		"late disconnect":               make(TypeDisconnect, 299),
	}
}

// Whatever room there is behind the events that dst holds already.
// P-2.3.3.
func TestMalformedListMakesNoRoom(t *testing.T) {
	list, err := AppendEvents(nil, make([]Event, 5)...)
	require.NoError(t, err)
	for room := range 12 {
		dst := make([]Event, min(room, 6), room)
		require.Zero(t, allocations(10, func() { ParseEvents(dst, list[:len(list)-1]) }))
	}
}

// What must be remembered of datagrams sent depends on the rate, the outcomes and
// the losses. The log keeps room for it; it is not freed at every trim only to
// be taken again.
func TestLogOfALinkThatLosesAllocatesNothing(t *testing.T) {
	for _, tc := range []struct {
		name      string
		tick      time.Duration
		lossDelay time.Duration
		oneIn     int
	}{
		{"500 a second, 5 % lost", 2 * ms, 1030 * ms, 20},
		{"60 a second, outcomes after 8.8 s", time.Second / 60, 8800 * ms, 10},
		{"60 a second, one lost in 10 s", time.Second / 60, time.Second, 600},
		{"60 a second, one lost in 30 s", time.Second / 60, time.Second, 1800},
		{"500 a second, one lost in 30 s", 2 * ms, time.Second, 15000},
	} {
		for _, outcomes := range []bool{false, true} {
			cfg := Config{Clock: &ManualClock{}, LossDelay: tc.lossDelay, Outcomes: outcomes}
			var ends [2]*ReliableChannel
			for i := range ends {
				var err error
				ends[i], err = NewReliableChannel(cfg)
				require.NoError(t, err)
			}
			n := 0
			step := func() {
				cfg.Clock.(*ManualClock).Advance(tc.tick)
				n++
				for i, c := range ends {
					h, _ := c.NextHeader(TypeInput)
					if i == 1 || n%tc.oneIn != 0 {
						ends[1-i].Receive(h, nil)
					}
					for _, ok := c.NextOutcome(); ok; _, ok = c.NextOutcome() {
					}
				}
			}
			tenSeconds := int(10 * time.Second / tc.tick)
			for range 6 * tenSeconds {
				step()
			}
			require.Zero(t, allocations(max(tenSeconds, 2*tc.oneIn), step), "%s, outcomes %v", tc.name, outcomes)
			require.Positive(t, ends[0].Stats().Lost)
		}
	}
}

// delayLine delivers a datagram three ticks after it was sent, and allocates nothing.
type delayLine [3]struct {
	bytes [2][MaxDatagramSize]byte
	sizes []int
}

func newDelayLine() *delayLine {
	l := new(delayLine)
	for i := range l {
		l[i].sizes = make([]int, 0, 2)
	}
	return l
}

func (l *delayLine) send(tick int, datagram []byte) {
	slot := &l[tick%len(l)]
	slot.sizes = append(slot.sizes, copy(slot.bytes[len(slot.sizes)][:], datagram))
}

// arrive passes on what was sent three ticks ago. It must come before send of that tick.
func (l *delayLine) arrive(tick int, receive func([]byte)) {
	slot := &l[tick%len(l)]
	for i, size := range slot.sizes {
		receive(slot.bytes[i][:size])
	}
	slot.sizes = slot.sizes[:0]
}

// A loss takes memory: for what waits behind it, and until it is known. A link that
// loses one datagram in a while takes it once, and so does one that seldom has an
// event to send.
func TestRareLossesAndEventsAllocateNothing(t *testing.T) {
	for _, tc := range []struct {
		events, ticks int // so many events in so many ticks
		loss          int // one datagram in so many ticks, each way
	}{
		{1, 3, 600}, {1, 1, 600}, {3, 1, 1200}, {1, 600, 600}, {5, 600, 1800},
	} {
		for name, cfg := range map[string]Config{
			"plain":      {},
			"ordered":    {Ordered: true},
			"adaptive":   {Adaptive: true},
			"everything": {Wide: true, Ordered: true, Outcomes: true, Backlog: 100, Adaptive: true, Bundle: true, EventRate: 50_000},
		} {
			t.Run(fmt.Sprintf("%s, %d in %d ticks, one lost in %d", name, tc.events, tc.ticks, tc.loss), func(t *testing.T) {
				pair, clock, _ := couples(t, 1, cfg)
				ends := [2]*Session{pair[0].a, pair[0].b}
				links := [2]*delayLine{newDelayLine(), newDelayLine()}
				n := 0
				send := func(i int, datagram []byte) {
					if n%tc.loss != 100*i {
						links[i].send(n, datagram)
					}
				}
				var in, out [MaxDatagramSize]byte
				step := func() {
					n++
					clock.Advance(tick)
					for i, s := range ends {
						links[1-i].arrive(n, func(datagram []byte) { s.Receive(in[:copy(in[:], datagram)]) })
						if n%tc.ticks == 0 {
							for k := range tc.events {
								s.Send(in[:20+n%7+k])
							}
						}
					}
					for i, s := range ends {
						datagram, _, _ := s.AppendDatagram(out[:0], TypeSnapshot, in[:100])
						send(i, datagram)
						for datagram := range s.Due(out[:]) {
							send(i, datagram)
						}
						readOutcomes(s)
					}
				}
				repeat(60*60, step)
				fiveMinutes := func() { repeat(5*60*60, step) }
				require.LessOrEqual(t, testing.AllocsPerRun(1, fiveMinutes), 2.0) // of the runtime's own
				for _, s := range ends {
					require.NoError(t, s.Err())
					require.Greater(t, s.Stats().Lost, uint64(4))
				}
			})
		}
	}
}

// Many datagrams at once, every two seconds: between two of these little is in
// flight.
func TestLogOfBurstsAllocatesNothing(t *testing.T) {
	c, clock := newChannel(t, Config{})
	peer := uint16(0)
	send := func(n uint16) {
		var h Header
		for range n {
			h, _ = c.NextHeader(TypeInput)
		}
		for back := (n - 1) / 20 * 20; ; back -= 20 { // acknowledged 21 at a time
			c.Receive(Header{Type: TypeHeartbeat, Sequence: peer, Ack: h.Sequence - back, AckBits: 1<<20 - 1}, nil)
			peer++
			if back == 0 {
				return
			}
		}
	}
	twoSeconds := func() {
		send(101)
		for range 100 {
			clock.Advance(20 * ms)
			send(1)
		}
	}
	for range 10 {
		twoSeconds()
	}
	require.Zero(t, allocations(5, twoSeconds))
	require.Zero(t, c.Stats().Lost)
}
