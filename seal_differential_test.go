package ackbits

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ackbits/ackbits/simnet"
)

// chronicle is what happened at an end, but for bytes and for datagrams that came
// again.
type chronicle struct {
	lines []string
	stats Stats
}

// acceptMost withholds and refuses two datagrams of 41.
func acceptMost(h Header, _ []byte) error {
	switch h.Sequence % 41 {
	case 7:
		return ErrWithhold
	case 8:
		return errAcceptance
	}
	return nil
}

// chronicles plays the same conditions and the same calls with and without a seal.
func chronicles(t *testing.T, cfg Config, sealed bool, seed uint64) (both [2]*chronicle) {
	var clock ManualClock
	clock.Set(time.Unix(1_700_000_000, 0))
	cfg.Clock, cfg.MaxDatagram = &clock, 1200-16
	cfg.Accept = acceptMost
	var ends [2]*endpoint
	for i := range ends {
		if sealed {
			cfg.Seal, cfg.Open, cfg.MaxDatagram = gcm(byte(i)), gcm(byte(1-i)), 1200
		}
		s, err := NewSession(cfg)
		require.NoError(t, err)
		both[i] = &chronicle{}
		ends[i] = &endpoint{Session: s}
		ends[i].events = func(in Incoming) {
			withheld := in.Type.application() && in.Payload == nil // it comes again to a bare session
			if !withheld && (in.Arrival == Newest || in.Arrival == Late) {
				in.Sealed = false
				both[i].note("%v in %+v", s.time.now, in)
			}
		}
	}
	// Nothing is overtaken by 64 others, so that nothing true is Stale.
	conditions := simnet.Config{
		Delay: 25 * ms, Jitter: 15 * ms, Loss: 0.15, Duplicate: 0.1, Reorder: 0.05, ReorderDelay: 70 * ms,
		Blackouts: []simnet.Window{{From: 20 * time.Second, To: 23 * time.Second}},
	}
	p := simnet.NewPair(seed, &clock, ends[0], ends[1], conditions, conditions)
	r := rand.New(rand.NewPCG(seed, 3))
	p.Every(60, time.Second, func() {
		for i, s := range ends {
			for n := min(r.IntN(20)-16, s.Room()); n > 0; n-- {
				_, err := s.Send(make([]byte, r.IntN(1+r.IntN(400))))
				require.NoError(t, err)
			}
			if r.IntN(3) > 0 {
				out, seq, err := s.AppendDatagram(s.out[:0], Type(16+r.IntN(3)), make([]byte, r.IntN(300)))
				require.NoError(t, err)
				both[i].note("%v out %d", p.Now(), seq)
				p.Send(simnet.Direction(i), out)
			}
			for o, ok := s.NextOutcome(); ok; o, ok = s.NextOutcome() {
				both[i].note("%v %+v", p.Now(), o)
			}
			at, ok := s.Deadline()
			both[i].note("%v %v %t", p.Now(), at, ok)
		}
	})
	p.Run(40 * time.Second)
	for i, s := range ends {
		require.NoError(t, s.Err())
		both[i].stats = s.Stats()
	}
	return both
}

func (c *chronicle) note(format string, args ...any) {
	c.lines = append(c.lines, fmt.Sprintf(format, args...))
}

// TestSealedAndBareSessionsDoTheSame: every call, every datagram delivered, every
// outcome and every deadline is the same. They differ in bytes, and in datagrams
// that come again: a bare session reads the acknowledgements of those.
func TestSealedAndBareSessionsDoTheSame(t *testing.T) {
	for name, cfg := range map[string]Config{
		"protocol": {Outcomes: true},
		"wide":     {Wide: true, Outcomes: true, Ordered: true, Backlog: 300, PollInterval: 16 * ms},
		"adaptive": {Outcomes: true, Adaptive: true, Bundle: true, EventRate: 20_000},
	} {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(2) {
				bare, sealed := chronicles(t, cfg, false, seed), chronicles(t, cfg, true, seed)
				for i := range 2 {
					require.Equal(t, len(bare[i].lines), len(sealed[i].lines))
					for k, line := range bare[i].lines {
						require.Equal(t, line, sealed[i].lines[k])
					}
					b, s := bare[i].stats, sealed[i].stats
					require.Greater(t, s.Replayed, uint64(100))
					require.GreaterOrEqual(t, s.Replayed, b.Duplicates+b.Stale, "withheld and refused ones come again to a bare session")
					require.Equal(t, 16*s.DatagramsSent, s.BytesSent-b.BytesSent)
					require.Zero(t, s.Duplicates+s.Stale+s.Forged)
					// What the two count of what comes again.
					b.DatagramsReceived -= b.Duplicates + b.Stale
					s.Withheld, b.Withheld, s.Rejected, b.Rejected, s.Replayed = 0, 0, 0, 0, 0
					b.Duplicates, b.Stale = 0, 0
					s.BytesSent, b.BytesSent, s.BytesReceived, b.BytesReceived = 0, 0, 0, 0
					require.Equal(t, b, s)
				}
			}
		})
	}
}
