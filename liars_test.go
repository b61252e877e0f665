package ackbits

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// What a peer draws out of a session that has a full window of the largest events and
// sends state at 60 Hz, by lying about what arrived. It sees everything, 20 ms after
// it was sent, and acknowledges each datagram as it likes.
type liar struct {
	name string
	// acknowledges says whether it names a datagram, and after how long.
	acknowledges func(number int, t Type) (after time.Duration, ok bool)
	// invents: it names the newest datagram before that can have arrived.
	invents bool

	bytesASecond int // at most, state included, over ten seconds
	memory       int // bytes in flight at most
}

var liars = []liar{
	{name: "never acknowledges", acknowledges: func(int, Type) (time.Duration, bool) { return 0, false },
		bytesASecond: 60_000, memory: 300 << 10},
	{name: "acknowledges only what carries no events", acknowledges: func(_ int, t Type) (time.Duration, bool) {
		return 0, t != TypeEvent && t != TypeBundle
	}, bytesASecond: 100_000, memory: 300 << 10},
	{name: "acknowledges every other datagram", acknowledges: func(n int, _ Type) (time.Duration, bool) { return 0, n%2 == 0 },
		bytesASecond: 200_000, memory: 300 << 10},
	{name: "acknowledges a second late", acknowledges: func(int, Type) (time.Duration, bool) { return time.Second, true },
		bytesASecond: 300_000, memory: 300 << 10},
	{name: "acknowledges what it cannot have", acknowledges: func(int, Type) (time.Duration, bool) { return 0, true }, invents: true,
		bytesASecond: 1_500_000, memory: 300 << 10},
}

// draw plays ten seconds against a liar, with every event that is delivered replaced
// by a new one. It returns the bytes that it drew and the most that was in flight.
func (l liar) draw(t *testing.T, cfg Config) (bytes, flying int) {
	var clock ManualClock
	clock.Set(time.Unix(1000, 0))
	cfg.Clock, cfg.StallTimeout, cfg.Timeout = &clock, -1, time.Minute
	s, err := NewSession(cfg)
	require.NoError(t, err)
	type said struct {
		at  time.Time
		seq uint16
	}
	var due []said
	buf, own, number := make([]byte, 0, MaxDatagramSize), uint16(0), 0
	sent := func(datagram []byte) {
		h, _, err := ParseHeader(datagram)
		require.NoError(t, err)
		if after, ok := l.acknowledges(number, h.Type); ok {
			at := clock.Now().Add(20*ms + after)
			if l.invents {
				at = clock.Now()
			}
			due = append(due, said{at, h.Sequence})
		}
		number++
		bytes += len(datagram)
	}
	for tick := range 600 {
		clock.Set(time.Unix(1000, 0).Add(time.Duration(tick) * time.Second / 60))
		for len(due) > 0 && !due[0].at.After(clock.Now()) {
			_, err := s.Receive(Header{Type: TypeHeartbeat, Sequence: own, Ack: due[0].seq}.AppendTo(nil))
			require.NoError(t, err)
			own++
			due = due[1:]
		}
		for s.InFlight() < eventWindow {
			_, err := s.Send(make([]byte, MaxEventSize))
			require.NoError(t, err)
		}
		datagram, _, err := s.AppendDatagram(buf, TypeInput, make([]byte, 100))
		require.NoError(t, err)
		sent(datagram)
		for datagram := range s.Due(buf) {
			sent(datagram)
		}
		if w := s.channel.sender.window; w != nil {
			flying = max(flying, int(w.inFlight))
		}
	}
	require.NoError(t, s.Err())
	return bytes, flying
}

func TestLiarsDrawNoMoreThanHonestPeers(t *testing.T) {
	for _, l := range liars {
		t.Run(l.name, func(t *testing.T) {
			bytes, flying := l.draw(t, Config{Adaptive: true, Bundle: true, PollInterval: time.Second / 60})
			t.Logf("%d KB/s, %d KiB in flight", bytes/10/1000, flying>>10)
			require.LessOrEqual(t, bytes/10, l.bytesASecond)
			require.LessOrEqual(t, flying, l.memory)
		})
	}
}
