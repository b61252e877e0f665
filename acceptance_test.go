package ackbits

import (
	"encoding/binary"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ackbits/ackbits/simnet"
)

// What the protocol's text claims of itself ("every event arrives once"), and at
// rates at which its letter loses events without a word (18.8 of docs/protocol.md).

// claimant is an end that counts which of its peer's events came how often.
type claimant struct {
	*Session
	t     *testing.T
	sent  int
	times []uint8
	buf   [MaxDatagramSize]byte
}

func (c *claimant) Receive(datagram []byte) {
	in, err := c.Session.Receive(datagram)
	if err != nil {
		c.t.Fatalf("Receive: %v", err)
	}
	for _, event := range in.Events {
		n := int(binary.LittleEndian.Uint32(event.Data))
		if uint16(n) != event.ID || len(event.Data) != 4+n%23 {
			c.t.Fatalf("event %d came as %v", n, event)
		}
		if c.times[n]++; c.times[n] > 1 {
			c.t.Fatalf("event %d came %d times", n, c.times[n])
		}
	}
}

func (c *claimant) Due(send func([]byte)) {
	for datagram := range c.Session.Due(c.buf[:]) {
		send(datagram)
	}
}

func (c *claimant) send() {
	var event [4 + 22]byte
	binary.LittleEndian.PutUint32(event[:], uint32(c.sent))
	if _, err := c.Session.Send(event[:4+c.sent%23]); err != nil {
		c.t.Fatalf("event %d: %v", c.sent, err)
	}
	c.sent++
}

// claim sends events each way at a rate, as Room allows, and wants each to
// arrive once, in so much time.
func claim(t *testing.T, events [2]int, perSecond int, within time.Duration, conditions simnet.Config, cfg Config) {
	var clock ManualClock
	clock.Set(time.Unix(1_700_000_000, 0))
	cfg.Clock = &clock
	var ends [2]*claimant
	for i := range ends {
		s, err := NewSession(cfg)
		require.NoError(t, err)
		ends[i] = &claimant{Session: s, t: t, times: make([]uint8, events[1-i])}
	}
	p := simnet.NewPair(3, &clock, ends[0], ends[1], conditions, conditions)
	owed, held := 0, 0
	p.Every(60, time.Second, func() {
		owed += perSecond
		n := owed / 60
		owed %= 60
		for i, c := range ends {
			for range min(n, events[i]-c.sent) {
				if c.Room() == 0 {
					held++
					break
				}
				c.send()
			}
		}
	})
	done := func() bool {
		for i, c := range ends {
			if c.sent < events[i] || c.InFlight() > 0 || c.Err() != nil {
				return false
			}
		}
		return true
	}
	require.True(t, p.RunUntil(done, within), "%d of %v, %d of %v sent; %v, %v", ends[0].sent, events[0], ends[1].sent, events[1], ends[0].Err(), ends[1].Err())
	for i, c := range ends {
		for n, times := range c.times {
			require.EqualValues(t, 1, times, "event %d", n)
		}
		s := c.Stats()
		require.EqualValues(t, events[i], s.EventsSent)
		require.EqualValues(t, events[i], s.EventsDelivered)
		require.EqualValues(t, events[1-i], s.EventsReceived)
		t.Logf("%d: %d events in %v, %.2f copies each, %d datagrams; Room made them wait %d times",
			i, events[i], p.Now().Round(time.Millisecond), 1+float64(s.EventsResent)/float64(max(1, s.EventsSent)), s.DatagramsSent, held)
	}
}

func TestAcceptance1800EventsAtTenPercentLoss(t *testing.T) {
	claim(t, [2]int{1800, 0}, 60, 35*time.Second, simnet.Config{Delay: 20 * time.Millisecond, Loss: 0.1}, Config{})
}

func TestAcceptance70000EventsEachWayThroughAStorm(t *testing.T) {
	storm := simnet.Config{
		Delay: 10 * time.Millisecond, Jitter: 70 * time.Millisecond, Loss: 0.3,
		Reorder: 0.1, ReorderDelay: 60 * time.Millisecond, Duplicate: 0.05,
	}
	claim(t, [2]int{70_000, 70_000}, 400, 200*time.Second, storm, Config{})
}

func TestAcceptance1000EventsASecondAtThirtyPercentLoss(t *testing.T) {
	for _, cfg := range []Config{{}, {Adaptive: true, Bundle: true}} {
		claim(t, [2]int{20_000, 20_000}, 1000, 35*time.Second, simnet.Config{Delay: 10 * time.Millisecond, Loss: 0.3}, cfg)
	}
}

func TestAcceptance2000EventsASecondAtTenPercentLoss(t *testing.T) {
	claim(t, [2]int{40_000, 0}, 2000, 25*time.Second, simnet.Config{Delay: 10 * time.Millisecond, Loss: 0.1}, Config{})
}
