package ackbits

import (
	"bytes"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ackbits/ackbits/simnet"
)

// The harness of the scars: faults that users of libraries of this kind have reported in
// public, each as a small case for this one. A test is named after the fault; the report
// stands above it. They lie by what goes wrong in scars_acks_test.go,
// scars_events_test.go, scars_timing_test.go and scars_end_test.go.

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

// pair runs two sessions over a link each way in virtual time.
type pair struct {
	*simnet.Pair
	clock ManualClock
	ends  [2]*endpoint
	times map[string]time.Duration // when an event came in at either end
	order []string
}

func newPair(t *testing.T, seed uint64, a, b Config, there, back simnet.Config) *pair {
	t.Helper()
	p := &pair{times: map[string]time.Duration{}}
	p.clock.Set(time.Unix(1000, 0))
	for i, cfg := range []Config{a, b} {
		if cfg.Clock == nil {
			cfg.Clock = &p.clock
		}
		s, err := NewSession(cfg)
		require.NoError(t, err)
		p.ends[i] = &endpoint{Session: s, events: func(in Incoming) {
			for _, event := range in.Events {
				p.times[string(event.Data)] = p.Now()
				p.order = append(p.order, string(event.Data))
			}
		}}
	}
	p.Pair = simnet.NewPair(seed, &p.clock, p.ends[0], p.ends[1], there, back)
	return p
}

// state lets both ends send application datagrams, so many a second.
func (p *pair) state(t *testing.T, hz ...int) {
	for i, n := range hz {
		if n == 0 {
			continue
		}
		s := p.ends[i]
		p.Every(n, time.Second, func() {
			if out, _, err := s.AppendDatagram(s.out[:0], TypeInput, []byte("state")); err == nil {
				p.Send(simnet.Direction(i), out)
			}
		})
	}
}
