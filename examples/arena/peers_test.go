package main

import (
	"context"
	"fmt"
	"net/netip"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ackbits/ackbits"
	"github.com/ackbits/ackbits/examples/arena/internal/hostile"
	"github.com/ackbits/ackbits/examples/arena/link"
	"github.com/ackbits/ackbits/examples/arena/proto"
	"github.com/ackbits/ackbits/examples/arena/server"
	"github.com/stretchr/testify/require"
)

// Attacks of peers who have joined, or try to, from addresses that are theirs.

// guest returns a client of the field's server without a game.
func (f *field) guest(local string) *hostile.Peer {
	p, err := hostile.Dial(f.server.Addr(), netip.MustParseAddr(local), serverKey.PublicKey(), "guest")
	require.NoError(f, err)
	f.Cleanup(func() { p.Close() })
	return p
}

// wantNobodyHarmed fails the test if the session of a bot has ended.
func (f *field) wantNobodyHarmed() {
	f.Helper()
	for i := range f.swarm.Sum().Playing {
		require.Empty(f, f.swarm.Ends(i))
	}
}

// Twelve sockets of one address that join, chat and leave as fast as they can end
// no session of the room, not even one whose link can hardly carry its own events.
// The first time the address has the usual share of joins, the second any number.
func TestChurn(t *testing.T) {
	t.Parallel()
	for name, limits := range map[string]server.Limits{
		"limited":   {Rooms: 2, RoomSize: 64, PerAddress: 16, Chat: 120},
		"unlimited": {Rooms: 2, RoomSize: 64, PerAddress: 10_000},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newField(t, 8, server.Config{Limits: limits}, link.Conditions{Loss: 0.3, RTT: 150 * time.Millisecond})
			var joins atomic.Int64
			var wg sync.WaitGroup
			end := time.Now().Add(4 * time.Second)
			for range 12 {
				wg.Go(func() {
					for time.Now().Before(end) {
						p, err := hostile.Dial(f.server.Addr(), netip.MustParseAddr("127.0.0.5"), serverKey.PublicKey(), "churn")
						if err != nil {
							return
						}
						if p.Join() == nil {
							joins.Add(1)
							for i := range 5 {
								p.Say(fmt.Sprintf("line %d", i))
							}
							p.Run(20 * time.Millisecond)
							p.Leave()
						}
						p.Close()
					}
				})
			}
			wg.Wait()
			got := f.swarm.Sum().Stats.EventsReceived / 8
			t.Logf("%d joins, %d events to each bot, %d merged", joins.Load(), got, f.server.Counters().Merged.Load())
			f.wantNobodyHarmed()
			if name == "limited" {
				require.LessOrEqual(t, joins.Load(), int64(limits.PerAddress), "within 20 s")
			} else {
				require.Greater(t, joins.Load(), int64(50), "the attack is one")
			}
			f.wantLedgersClean()
		})
	}
}

// Idle players of many addresses cannot take all seats: a network gets no more than
// it leaves free, and who presses nothing goes.
func TestFill(t *testing.T) {
	t.Parallel()
	f := newField(t, 2, server.Config{Limits: server.Limits{Rooms: 2, RoomSize: 32, PerAddress: 64, PerNetwork: 24},
		Idle: 12 * time.Second}, link.Conditions{})
	var wg sync.WaitGroup
	var in atomic.Int64
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	for i := range 64 {
		p := f.guest(fmt.Sprintf("127.1.%d.%d", i%4, 1+i/16))
		wg.Go(func() {
			if p.Join() == nil {
				in.Add(1)
				for ctx.Err() == nil && p.Run(50*time.Millisecond) == nil {
				}
			}
		})
	}
	f.waitFor(5*time.Second, "the seats to be short", func() bool { return f.server.Players() >= 48 })
	require.NoError(t, f.guest("127.2.0.1").Join(), "there is a seat for somebody else")
	f.waitFor(10*time.Second, "the idle to be gone", func() bool { return f.server.Players() < 48 })
	f.wantNobodyHarmed()
	t.Logf("%d of 64 got in, %d were kicked", in.Load(), f.server.Counters().Kicked.Load())
	stop()
	wg.Wait()
}

// A peer that acknowledges only datagrams without events makes the server send its
// events again and again: no more of that than the rate for copies.
func TestLyingAcks(t *testing.T) {
	t.Parallel()
	const long = 4 * time.Second
	f := newField(t, 30, upTo(64), link.Conditions{})
	honest, liar := f.guest("127.0.0.6"), f.guest("127.0.0.7")
	require.NoError(t, honest.Join())
	require.NoError(t, liar.Join())
	var wg sync.WaitGroup
	wg.Go(func() {
		for range long / (50 * time.Millisecond) {
			honest.Input(1)
			honest.Run(50 * time.Millisecond)
		}
	})
	wg.Go(func() { lie(liar, long) })
	wg.Wait()
	seconds := long.Seconds()
	t.Logf("bytes a second: honest %.0f sent, %.0f received; liar %.0f sent, %.0f received", float64(honest.BytesOut)/seconds,
		float64(honest.BytesIn)/seconds, float64(liar.BytesOut)/seconds, float64(liar.BytesIn)/seconds)
	const copies = 4000 // bytes a second of events, and headers and tags with them
	require.Less(t, float64(liar.BytesIn-honest.BytesIn), 2*copies*(seconds+1))
	f.wantNobodyHarmed()
}

// lie plays on by hand, acknowledging what carries no events.
func lie(p *hostile.Peer, d time.Duration) {
	var acks ackbits.AckTracker
	s := p.Client.Session().Stats()
	number, newest := s.DatagramsSent, int64(s.DatagramsReceived)-1
	token := p.Token()
	number++ // Token has sent one
	for next, end := time.Now(), time.Now().Add(d); time.Now().Before(end); {
		if datagram := p.Read(5 * time.Millisecond); datagram != nil {
			if h, _, err := ackbits.ParseHeader(datagram); err == nil {
				newest = max(newest, newest+int64(int16(h.Sequence-uint16(newest))))
				if h.Type == ackbits.TypeSnapshot || h.Type == ackbits.TypeHeartbeat {
					acks.Receive(h.Sequence)
				}
			}
		}
		if !time.Now().Before(next) {
			next = next.Add(50 * time.Millisecond)
			h := ackbits.Header{Type: ackbits.TypeInput, Token: token, Ack: acks.Ack(), AckBits: uint64(acks.AckBits())}
			p.Write(p.Seal(number, h, []byte{1}))
			number++
		}
	}
}

// A peer that sends as much as it can costs the others nothing: what is over its
// rate ends in the reader.
func TestFloodOfAPeer(t *testing.T) {
	t.Parallel()
	f := newField(t, 16, upTo(64), mild)
	p := f.guest("127.0.0.6")
	require.NoError(t, p.Join())
	token, number := p.Token(), p.Client.Session().Stats().DatagramsSent
	sent := 0
	time.Sleep(time.Second)
	quiet := f.swarm.Sum().Events.Quantile(0.99)
	f.swarm.Restart()
	start := time.Now()
	for ; time.Since(start) < 2*time.Second; sent++ {
		p.Write(p.Seal(number, ackbits.Header{Type: ackbits.TypeInput, Token: token, Ack: 65535}, []byte{byte(sent & 1)}))
		number++
	}
	took := time.Since(start)
	c := f.server.Counters()
	t.Logf("%.0f datagrams a second, %d over the rate; event p99 %v before, %v in the flood", float64(sent)/took.Seconds(),
		c.Throttled.Load(), quiet, f.swarm.Sum().Events.Quantile(0.99))
	require.Greater(t, sent, 10_000, "the flood is one")
	require.Positive(t, c.Throttled.Load())
	require.Zero(t, c.Overrun.Load())
	before := f.swarm.Sum().Stats.EventsReceived
	f.waitFor(time.Second, "the game to go on", func() bool { return f.swarm.Sum().Stats.EventsReceived > before })
	f.wantNobodyHarmed()
	f.wantLedgersClean()
}

// A peer that sends more events than a player could is kicked, and the ledger
// does not grow with what it sends.
func TestFloodOfEvents(t *testing.T) {
	t.Parallel()
	f := newField(t, 2, upTo(64), link.Conditions{})
	p := f.guest("127.0.0.6")
	require.NoError(t, p.Join())
	start := time.Now()
	for time.Since(start) < 4*time.Second && p.Client.Err() == nil {
		for p.Client.Session().Room() > 0 && p.Client.Session().InFlight() < 200 {
			p.Say("flood")
		}
		p.Run(10 * time.Millisecond)
	}
	require.ErrorIs(t, p.Client.Err(), ackbits.ErrPeerLeft)
	last, err := proto.ParseEvent(p.Got[len(p.Got)-1].Data)
	require.NoError(t, err)
	require.Equal(t, "you sent too many events", last.Text)
	f.wantNobodyHarmed()
	f.stop()
	require.Less(t, f.ours.Len(), 64<<10)
}
