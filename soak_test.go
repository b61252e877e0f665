package ackbits

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ackbits/ackbits/simnet"
)

// A soak plays for hours of virtual time under network conditions that change every few
// seconds: what a long session wraps, forgets, frees and allocates again. The
// events say themselves what they are, so that the receiver can judge alone.

// soakLength is five simulated minutes, or what ACKBITS_SOAK says ("24h").
func soakLength(t *testing.T) time.Duration {
	text := os.Getenv("ACKBITS_SOAK")
	if text == "" {
		if testing.Short() {
			return 20 * time.Second
		}
		return 5 * time.Minute
	}
	d, err := time.ParseDuration(text)
	require.NoError(t, err, "ACKBITS_SOAK")
	return d
}

// soaker is one end: it sends a state datagram at each tick and events in
// between, and checks what it gets.
type soaker struct {
	*Session
	t       *testing.T
	ordered bool

	sent     uint64
	received uint64 // all events before were received
	ahead    map[uint64]bool

	latest   uint64
	outcomes uint64

	event, want, state [80]byte
	out, due           [MaxDatagramSize]byte
}

// soakEvent writes an event that says which one it is: its number, and as many
// bytes that follow from it as it says.
func soakEvent(buf []byte, number uint64) []byte {
	b := binary.LittleEndian.AppendUint64(buf[:0], number)
	r := number*0x9E3779B97F4A7C15 + 1
	for range r >> 59 {
		b = append(b, byte(r), byte(r>>8))
		r = r*5 + 1
	}
	return b
}

func (s *soaker) Receive(datagram []byte) {
	in, err := s.Session.Receive(datagram)
	if err != nil {
		s.t.Fatalf("Receive: %v", err)
	}
	for _, event := range in.Events {
		number := binary.LittleEndian.Uint64(event.Data)
		if string(event.Data) != string(soakEvent(s.want[:], number)) {
			s.t.Fatalf("event %d has wrong bytes", number)
		}
		if number < s.received || s.ahead[number] {
			s.t.Fatalf("event %d came twice", number)
		}
		if s.ordered && number != s.received {
			s.t.Fatalf("event %d came before %d", number, s.received)
		}
		s.ahead[number] = true
		for s.ahead[s.received] {
			delete(s.ahead, s.received)
			s.received++
		}
	}
	if in.Payload != nil {
		number := binary.LittleEndian.Uint64(in.Payload)
		if in.Latest != (number >= s.latest) {
			s.t.Fatalf("state %d after %d: Latest is %t", number, s.latest, in.Latest)
		}
		s.latest = max(s.latest, number)
	}
}

func (s *soaker) Due(send func([]byte)) {
	for datagram := range s.Session.Due(s.due[:]) {
		send(datagram)
	}
}

// soakConditions is what the links go through: clean, every loss up to half, bursts,
// reordering past the acknowledgement window, doubles, a narrow pipe, and silence
// that is shorter than the timeout.
func soakConditions(r *rand.Rand) simnet.Config {
	ms := func(least, most int) time.Duration {
		return time.Duration(least+r.IntN(most-least+1)) * time.Millisecond
	}
	cfg := simnet.Config{Delay: ms(2, 60), Jitter: ms(0, 20)}
	switch r.IntN(7) {
	case 0: // clean
	case 1, 2:
		cfg.Loss = float64(r.IntN(51)) / 100
	case 3:
		cfg.Burst = simnet.Burst{MeanGood: ms(100, 900), MeanBad: ms(10, 200), LossGood: 0.01, LossBad: 0.8}
	case 4:
		cfg.Reorder, cfg.ReorderDelay, cfg.Loss = 0.1, ms(5, 1500), 0.05
	case 5:
		cfg.Duplicate, cfg.Jitter = 0.3, ms(20, 90)
	case 6:
		cfg.Rate, cfg.Queue = 20_000+r.IntN(40_000), 8000
	}
	return cfg
}

func (s *soaker) sendEvents(t *testing.T, n int) {
	for range n {
		if _, err := s.Send(soakEvent(s.event[:], s.sent)); err != nil {
			t.Fatal(err)
		}
		s.sent++
	}
}

func TestSoak(t *testing.T) {
	length := soakLength(t)
	for _, c := range []struct {
		name string
		cfg  Config
	}{
		{"protocol", Config{Outcomes: true}},
		{"everything", Config{Wide: true, Ordered: true, Adaptive: true, Bundle: true, Outcomes: true, Backlog: 500}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			soak(t, c.cfg, length)
		})
	}
}

func (s *soaker) readOutcomes() {
	for _, ok := s.NextOutcome(); ok; _, ok = s.NextOutcome() {
		s.outcomes++
	}
}

// changeConditions changes both directions for the nth time; now and then it is an outage.
func changeConditions(p *simnet.Pair, r *rand.Rand, n int) {
	for d := range 2 {
		now := soakConditions(r)
		if n%20 == 0 && d == n/20%2 || n%100 == 0 {
			now.Blackouts = []simnet.Window{{From: p.Now(), To: p.Now() + 2500*time.Millisecond}}
		}
		p.Link(simnet.Direction(d)).SetConfig(p.Now(), now)
	}
}

// wantAll wants every event at the peer once, and an outcome for each datagram.
func (s *soaker) wantAll(t *testing.T, peer *soaker) {
	stats := s.Stats()
	require.Equal(t, s.sent, peer.received, "every event once")
	require.Empty(t, peer.ahead)
	require.Equal(t, stats.DatagramsSent, stats.Delivered+stats.Lost+uint64(stats.Undecided))
	require.Equal(t, s.sent, stats.EventsSent)
	require.Equal(t, s.sent, stats.EventsDelivered)
	require.Equal(t, s.sent, peer.Stats().EventsReceived)
	require.Zero(t, stats.Rejected)
	require.Zero(t, stats.OutcomesDropped)
	s.readOutcomes()
	stats = s.Stats()
	require.Equal(t, stats.Delivered+stats.Lost, s.outcomes, "an outcome for each datagram that is decided")
}

func soak(t *testing.T, cfg Config, length time.Duration) {
	began := time.Now()
	var clock ManualClock
	clock.Set(time.Unix(1_700_000_000, 0))
	cfg.Clock = &clock
	var ends [2]*soaker
	for i := range ends {
		s, err := NewSession(cfg)
		require.NoError(t, err)
		ends[i] = &soaker{Session: s, t: t, ordered: cfg.Ordered, ahead: map[uint64]bool{}}
	}
	r := rand.New(rand.NewPCG(1, uint64(length)))
	p := simnet.NewPair(2, &clock, ends[0], ends[1], simnet.Config{}, simnet.Config{})

	tick, conditions := uint64(0), 0
	stop := p.Every(60, time.Second, func() {
		if tick%180 == 0 {
			conditions++
			changeConditions(p, r, conditions)
		}
		for i, s := range ends {
			if s.Err() != nil {
				t.Fatalf("session %d ended at %v: %v", i, p.Now(), s.Err())
			}
			// Twelve events a second on average, sometimes a burst; Room says when
			// to wait.
			n := r.IntN(10) / 8
			if r.IntN(600) == 0 {
				n = 100
			}
			s.sendEvents(t, min(n, s.Room()))
			if i == 0 || tick%3 == 0 {
				state := binary.LittleEndian.AppendUint64(s.state[:0], tick)
				out, _, err := s.AppendDatagram(s.out[:0], TypeSnapshot, state)
				if err != nil {
					t.Fatal(err)
				}
				p.Send(simnet.Direction(i), out)
			}
			s.readOutcomes()
		}
		tick++
	})
	p.Run(length)
	stop()
	for d := range 2 {
		p.Link(simnet.Direction(d)).SetConfig(p.Now(), simnet.Config{Delay: 5 * time.Millisecond})
	}
	settled := func() bool { return ends[0].InFlight() == 0 && ends[1].InFlight() == 0 }
	require.True(t, p.RunUntil(settled, p.Now()+time.Minute), "the sessions end with nothing in flight")

	for i, s := range ends {
		s.wantAll(t, ends[1-i])
		t.Logf("%d: %s", i, soakSummary(s.Stats(), s.RTT()))
	}
	t.Logf("%v simulated in %v", length, time.Since(began).Round(time.Millisecond))
}

func soakSummary(s Stats, rtt time.Duration) string {
	return fmt.Sprintf("%d datagrams (the sequence wrapped %d times), %.1f %% lost; %d events (wrapped %d times), %.2f copies each; round trip %v",
		s.DatagramsSent, s.DatagramsSent>>16, 100*float64(s.Lost)/float64(s.DatagramsSent),
		s.EventsSent, s.EventsSent>>16, float64(s.EventsSent+s.EventsResent)/float64(s.EventsSent), rtt.Round(time.Millisecond))
}
