package simnet_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/ackbits/ackbits"
	"github.com/ackbits/ackbits/simnet"
)

// TestNimEnds is a property test of somebody else's game, nim: whatever the network
// does, as long as some datagrams get through, the game ends and both players saw
// the same moves. When it fails, rapid looks for simpler conditions that fail, too.
func TestNimEnds(t *testing.T) {
	chance := rapid.Float64Range(0, 0.4)
	delay := rapid.Map(rapid.IntRange(0, 200), func(ms int) time.Duration { return time.Duration(ms) * time.Millisecond })
	conditions := rapid.Custom(func(t *rapid.T) simnet.Config {
		return simnet.Config{
			Delay: delay.Draw(t, "Delay"), Jitter: delay.Draw(t, "Jitter"), Loss: chance.Draw(t, "Loss"),
			Duplicate: chance.Draw(t, "Duplicate"), Corrupt: chance.Draw(t, "Corrupt"), Truncate: chance.Draw(t, "Truncate"),
		}
	})
	rapid.Check(t, func(t *rapid.T) {
		a, b := &seat{nim{player: 0}}, &seat{nim{player: 1}}
		pair := simnet.NewPair(rapid.Uint64().Draw(t, "seed"), new(ackbits.ManualClock), a, b,
			conditions.Draw(t, "from a to b"), conditions.Draw(t, "from b to a"))
		pair.Every(20, time.Second, func() {
			pair.Send(simnet.AToB, a.Tick())
			pair.Send(simnet.BToA, b.Tick())
		})
		ended := pair.RunUntil(func() bool { return a.Left() == 0 && b.Left() == 0 }, time.Minute)
		require.True(t, ended, "a minute was not enough: %d stones left", max(a.Left(), b.Left()))
		require.Equal(t, a.moves, b.moves)
	})
}

// seat is the game as a simnet.Endpoint. What it sends, the test sends on ticks.
type seat struct{ nim }

func (s *seat) Receive(datagram []byte)     { s.Input(datagram) }
func (s *seat) Due(func([]byte))            {}
func (s *seat) Deadline() (time.Time, bool) { return time.Time{}, false }
