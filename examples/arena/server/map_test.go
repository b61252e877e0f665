package server

import (
	"fmt"
	"net/netip"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/ackbits/ackbits"
	"github.com/ackbits/ackbits/endpoint"
	"github.com/ackbits/ackbits/examples/arena/client"
	"github.com/ackbits/ackbits/examples/arena/game"
	"github.com/ackbits/ackbits/examples/arena/proto"
	"github.com/ackbits/ackbits/simnet"
	"github.com/ackbits/ackbits/transfer"
	"github.com/stretchr/testify/require"
)

const mapType = proto.TypeMap

// dsl is the line of a household, one way.
var dsl = simnet.Config{Delay: 15 * time.Millisecond, Jitter: 3 * time.Millisecond, Rate: 500_000, Queue: 64 << 10}

// lossy is a line that loses so many datagrams.
func lossy(loss float64) simnet.Config {
	c := dsl
	c.Loss = loss
	return c
}

// The map arrives whatever is lost. Until it is there the player watches: it gets the
// states of the others and is not in the world; then it is.
func TestMapArrives(t *testing.T) {
	for seed := range uint64(4) {
		for _, loss := range []float64{0, 0.05, 0.3} {
			t.Run(fmt.Sprintf("seed %d, loss %v", seed, loss), func(t *testing.T) {
				h := newHall(t, seed, simnet.Config{})
				other := h.invite(nil, dsl, dsl)
				h.Run(time.Second)
				require.True(t, other.sees(), "who wants no map plays at once")
				level := new(client.Level)
				g := h.invite(level, lossy(loss), lossy(loss))
				watched := false
				loaded := h.RunUntil(func() bool {
					require.NoError(t, g.Over())
					done, size := level.Progress()
					if level.Map() != nil {
						return true
					}
					require.False(t, g.sees(), "nobody plays without the map")
					require.LessOrEqual(t, done, size)
					slot, _ := other.View().Me()
					watched = watched || done > 0 && done < size && g.View().State[slot].Alive
					return false
				}, time.Minute)
				require.True(t, loaded)
				require.True(t, watched, "it saw the other one while it was loading")
				require.Equal(t, h.room().level.Bytes(), level.Map().Bytes())
				h.Run(h.Now() + 2*time.Second)
				require.True(t, g.sees())
				require.Zero(t, h.peer(g).loading, "the server keeps nothing of it")
				require.Zero(t, g.Network().OutcomesDropped)
			})
		}
	}
}

// p99 returns the 99th percentile.
func p99(d []time.Duration) time.Duration {
	slices.Sort(d)
	return d[len(d)*99/100]
}

// states collects how long the server's datagrams to so many players take, over some
// seconds. In the first of them one more player joins who wants the map, if joins is set.
func states(t *testing.T, seed uint64, up simnet.Config, joins bool) (took []time.Duration, loaded time.Duration) {
	h := newHall(t, seed, up)
	for range 8 {
		h.invite(nil, dsl, dsl).held = game.Right | game.Fire
	}
	h.Run(2 * time.Second)
	began := h.Now()
	level := new(client.Level)
	joiner := netip.AddrPort{}
	if joins {
		joiner = h.invite(level, dsl, dsl).addr
	}
	type way struct{ left, arrived time.Duration }
	ways := make(map[string]*way)
	h.Observe(func(at time.Duration, from, to netip.AddrPort, what simnet.What, datagram []byte) {
		if from != hallAddr || to == joiner {
			return
		}
		key := to.String() + string(datagram)
		switch w := ways[key]; {
		case w == nil && what == simnet.Sent:
			ways[key] = &way{left: at}
		case w != nil && what == simnet.Delivered: // twice: by the server's line, and by the player's
			w.arrived = at
		}
	})
	for h.Now() < began+4*time.Second {
		h.Run(h.Now() + 10*time.Millisecond)
		if loaded == 0 && level.Map() != nil {
			loaded = h.Now() - began
		}
	}
	for _, w := range ways {
		if w.arrived > 0 {
			took = append(took, w.arrived-w.left)
		}
	}
	return took, loaded
}

// Nobody notices that somebody joins: not on the server's line when that is wide, and
// little when the map has to share two megabits with everybody's states.
func TestOthersDoNotNotice(t *testing.T) {
	for _, link := range []struct {
		name  string
		up    simnet.Config
		worse time.Duration // what p99 may rise by
	}{
		{"wide", simnet.Config{Rate: 12_500_000}, time.Millisecond},
		{"10 Mbit/s", simnet.Config{Rate: 1_250_000, Queue: 64 << 10}, 5 * time.Millisecond},
		{"2 Mbit/s", simnet.Config{Rate: 250_000, Queue: 64 << 10}, 22 * time.Millisecond},
	} {
		t.Run(link.name, func(t *testing.T) {
			var without, with []time.Duration
			var slowest time.Duration
			for seed := range uint64(4) {
				took, _ := states(t, seed, link.up, false)
				without = append(without, took...)
				took, loaded := states(t, seed, link.up, true)
				require.NotZero(t, loaded, "the map came")
				with, slowest = append(with, took...), max(slowest, loaded)
			}
			a, b := p99(without), p99(with)
			t.Logf("others' states p99 %v, while somebody loads the map %v; the map took %v", a, b, slowest)
			require.LessOrEqual(t, b, a+link.worse)
		})
	}
}

// A session that is lost in the middle costs what had not arrived: the next one brings
// the rest. Who has all of it gets nothing more of it, and plays.
func TestMapResumes(t *testing.T) {
	for seed := range uint64(6) {
		h := newHall(t, seed, simnet.Config{})
		level := new(client.Level)
		g := h.invite(level, lossy(0.02), lossy(0.02))
		part := int64(20_000 + 15_000*seed)
		require.True(t, h.RunUntil(func() bool { done, _ := level.Progress(); return done >= part }, time.Minute))
		dead := simnet.Config{Loss: 1}
		h.Up(g.addr).SetConfig(h.Now(), dead)
		h.Down(g.addr).SetConfig(h.Now(), dead)
		require.True(t, h.RunUntil(func() bool { return g.Over() != nil }, h.Now()+time.Minute))
		require.True(t, client.Lost(g.Over()))
		had, size := level.Progress()
		require.Nil(t, level.Map())
		require.Greater(t, size, had)

		h.Run(h.Now() + 10*time.Second)
		require.Zero(t, h.server.Players(), "the server has noticed")
		again := h.invite(level, dsl, dsl)
		sent := h.mapBytes(again.addr)
		require.True(t, h.RunUntil(func() bool { return level.Map() != nil && again.sees() }, h.Now()+time.Minute))
		require.Equal(t, h.room().level.Bytes(), level.Map().Bytes())
		rest := int(size - had)
		require.Greater(t, *sent, rest, "seed %d", seed)
		require.Less(t, *sent, rest*115/100+2000, "seed %d: headers and little else beyond the %d that were missing", seed, rest)

		again.Leave()
		third := h.invite(level, dsl, dsl)
		sent = h.mapBytes(third.addr)
		require.True(t, h.RunUntil(third.sees, h.Now()+time.Minute))
		require.Less(t, *sent, 4000, "the offer, and the first probe behind it")
	}
}

// Another map, of a server that was started again, takes the place of the old one.
func TestOtherMap(t *testing.T) {
	level := new(client.Level)
	h := newHall(t, 1, simnet.Config{})
	h.invite(level, dsl, dsl)
	require.True(t, h.RunUntil(func() bool { return level.Map() != nil }, time.Minute))
	old := level.Map()
	h = newHall(t, 2, simnet.Config{})
	h.room().level = newLevel(99)
	g := h.invite(level, dsl, dsl)
	require.True(t, h.RunUntil(func() bool { return level.Map() != nil && level.Map() != old }, time.Minute))
	require.Equal(t, h.room().level.Bytes(), level.Map().Bytes())
	require.NotEqual(t, old.Bytes(), level.Map().Bytes())
	require.NoError(t, g.Over())
}

// A client shows its player where the server will have it, at once and with the
// server's map: it never stands in a wall, and where it stops the server has it stop.
func TestPrediction(t *testing.T) {
	for seed := range uint64(6) {
		h := newHall(t, seed, simnet.Config{})
		level := new(client.Level)
		far := simnet.Config{Delay: 80 * time.Millisecond}
		g := h.invite(level, far, far)
		require.True(t, h.RunUntil(g.sees, time.Minute))
		slot, _ := g.View().Me()
		walked := false
		for i := range 40 {
			from := g.View().Self
			g.held = game.Toward(uint8(uint64(i) + seed))
			h.Run(h.Now() + 60*time.Millisecond) // before the server can have answered
			self := g.View().Self
			require.True(t, level.Map().Walkable(self.X, self.Y))
			walked = walked || i%8 == 0 && (self.X != from.X || self.Y != from.Y)
			h.Run(h.Now() + 340*time.Millisecond)
			g.held = 0
			h.Run(h.Now() + 400*time.Millisecond)
			require.Equal(t, h.room().world.State()[slot], g.View().Self, "seed %d, walk %d", seed, i)
		}
		require.True(t, walked)
	}
}

// leech is a client that does with the map what the test wants.
type leech struct {
	door  *endpoint.Client
	files *transfer.Transfers
	takes func() bool // whether a datagram of the map is acknowledged
	sends [][]byte
	buf   [ackbits.MaxDatagramSize]byte
}

type discard struct{}

func (discard) WriteAt(b []byte, _ int64) (int, error) { return len(b), nil }
func (discard) ReadAt(b []byte, _ int64) (int, error)  { return len(b), nil }

// newLeech lets one join now.
func (h *hall) newLeech(takes func(*leech) bool) *leech {
	h.guests++
	l := new(leech)
	l.takes = func() bool { return takes(l) }
	var err error
	l.door, err = endpoint.NewClient(endpoint.ClientConfig{
		Hello: proto.AppendHello(nil, proto.Hello{Version: proto.HelloVersion, Map: true, Name: "leech"}),
		Clock: &h.clock,
		Session: ackbits.Config{Adaptive: true, Bundle: true, Outcomes: true, Accept: func(header ackbits.Header, payload []byte) error {
			if header.Type != mapType || l.files == nil {
				return nil
			}
			if !l.takes() {
				return ackbits.ErrWithhold
			}
			return l.files.Receive(payload)
		}},
	})
	require.NoError(h.t, err)
	h.Dial(simnet.Addr(h.guests), hallAddr, l, dsl, dsl)
	h.Every(game.TickRate, time.Second, l.tick)
	return l
}

func (l *leech) tick() {
	if s := l.door.Session(); s != nil && s.Err() == nil {
		if out, _, err := s.AppendDatagram(l.buf[:0], ackbits.TypeInput, []byte{0}); err == nil {
			l.sends = append(l.sends, append([]byte(nil), out...))
		}
	}
}

func (l *leech) Receive(datagram []byte) {
	_, _ = l.door.Receive(datagram)
	if s := l.door.Session(); s != nil && l.files == nil {
		l.files, _ = transfer.New(s, transfer.Config{Type: mapType, Accept: func(transfer.Offer) (transfer.Sink, error) { return discard{}, nil }})
	}
}

func (l *leech) Due(send func([]byte)) {
	for _, datagram := range l.sends {
		send(datagram)
	}
	l.sends = nil
	for datagram := range l.door.Due(l.buf[:]) {
		send(datagram)
	}
	if l.files != nil {
		for o, ok := l.door.Session().NextOutcome(); ok; o, ok = l.door.Session().NextOutcome() {
			l.files.Outcome(o)
		}
		for datagram := range l.files.Due(l.buf[:]) {
			send(datagram)
		}
	}
}

func (l *leech) Deadline() (time.Time, bool) { return l.door.Deadline() }

// offered reports whether the leech has got the offer of the map: that it takes, to be
// sent the rest.
func (l *leech) offered() bool {
	for range l.files.Incoming() {
		return true
	}
	return false
}

// heap returns how much memory lives.
func heap() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// mapMemory is what the server may remember of the map's way to one player; README
// says so.
const mapMemory = 16 << 10

// A room of players that take the offer of the map and acknowledge nothing of it costs
// the server a bounded memory for each and little traffic, and they do not keep
// their seats.
func TestUnacknowledgedMap(t *testing.T) {
	h := newHall(t, 1, simnet.Config{})
	leeches := make([]*leech, game.MaxPlayers)
	for i := range leeches {
		leeches[i] = h.newLeech(func(l *leech) bool { return !l.offered() })
	}
	h.Run(300 * time.Millisecond)
	before := heap()
	var worst int64
	sent := h.mapBytes(simnet.Addr(1))
	atTen := 0
	for second := range 29 {
		h.Run(time.Duration(second+1) * time.Second)
		worst = max(worst, heap()-before)
		if second == 9 {
			atTen = *sent
		}
	}
	require.Equal(t, game.MaxPlayers, h.server.Players())
	t.Logf("%d KiB for each of %d players at worst; %d KiB in ten seconds, %d in the nineteen after", worst/game.MaxPlayers>>10, len(leeches), atTen>>10, (*sent-atTen)>>10)
	require.Less(t, worst/int64(len(leeches)), int64(mapMemory))
	require.Positive(t, *sent, "the chunks were sent")
	require.Less(t, atTen, 2*game.MapSize)
	require.Less(t, *sent-atTen, 20*8192, "a few kilobytes a second from then on")
	h.Run(mapPatience + 2*time.Second)
	require.Zero(t, h.server.Players())
	runtime.KeepAlive(leeches)
}

// Who receives nothing at all loses its session, and with it whatever the map took.
func TestMapForNobody(t *testing.T) {
	h := newHall(t, 1, simnet.Config{})
	g := h.invite(new(client.Level), dsl, dsl)
	require.True(t, h.RunUntil(func() bool { return h.peer(g) != nil && h.peer(g).confirmed }, time.Minute))
	sent := h.mapBytes(g.addr)
	h.Down(g.addr).SetConfig(h.Now(), simnet.Config{Loss: 1})
	require.True(t, h.RunUntil(func() bool { return h.server.Players() == 0 }, time.Minute))
	require.Less(t, *sent, 200_000)
}

// Who is not heard is sent nothing more of the map until it is heard again.
func TestMapForTheSilent(t *testing.T) {
	h := newHall(t, 1, simnet.Config{})
	level := new(client.Level)
	g := h.invite(level, dsl, dsl)
	require.True(t, h.RunUntil(func() bool { done, _ := level.Progress(); return done > 20_000 }, time.Minute))
	h.Up(g.addr).SetConfig(h.Now(), simnet.Config{Loss: 1})
	h.Run(h.Now() + silent + 100*time.Millisecond)
	sent := h.mapBytes(g.addr)
	h.Run(h.Now() + 2*time.Second)
	require.Zero(t, *sent)
	h.Up(g.addr).SetConfig(h.Now(), dsl)
	require.True(t, h.RunUntil(g.sees, h.Now()+time.Minute))
}

// Who loads the map for longer than players may be idle, or the map may stand still, is
// not kicked, though it presses nothing; once it plays it has to.
func TestLoadingIsNotIdle(t *testing.T) {
	h := newHall(t, 1, simnet.Config{})
	h.server.cfg.Idle = 5 * time.Second
	slow := dsl
	slow.Rate = 5_000
	level := new(client.Level)
	g := h.invite(level, slow, slow)
	require.True(t, h.RunUntil(func() bool { return g.sees() || g.Over() != nil }, time.Minute))
	require.NoError(t, g.Over())
	require.Greater(t, h.Now(), mapPatience)
	require.True(t, h.RunUntil(func() bool { return g.Over() != nil }, h.Now()+time.Minute))
	require.ErrorContains(t, g.Over(), "you did nothing")
}

// Who refuses the map, or cancels it, is told that it cannot play.
func TestMapRefused(t *testing.T) {
	h := newHall(t, 1, simnet.Config{})
	l := h.newLeech(func(*leech) bool { return true })
	h.RunUntil(func() bool {
		if l.files == nil {
			return false
		}
		for in := range l.files.Incoming() {
			in.Cancel()
			return true
		}
		return false
	}, time.Minute)
	require.True(t, h.RunUntil(func() bool { return h.server.Players() == 0 }, h.Now()+time.Minute))
	require.EqualValues(t, 1, h.server.counters.Kicked.Load())
}
