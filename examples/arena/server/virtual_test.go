package server

import (
	"log/slog"
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/ackbits/ackbits"
	"github.com/ackbits/ackbits/examples/arena/client"
	"github.com/ackbits/ackbits/examples/arena/game"
	"github.com/ackbits/ackbits/simnet"
	"github.com/stretchr/testify/require"
	"golang.org/x/net/ipv4"
)

// hall is a whole server with one room, and clients, in virtual time.
type hall struct {
	*simnet.Net
	t      *testing.T
	clock  ackbits.ManualClock
	server *Server
	sends  []parcel // by the server, not on their way yet
	guests int
}

type parcel struct {
	to       netip.AddrPort
	datagram []byte
}

var hallAddr = simnet.Addr(0)

// newHall returns a server whose line out is up.
func newHall(t *testing.T, seed uint64, up simnet.Config) *hall {
	h := &hall{t: t}
	h.clock.Set(time.Unix(1_700_000_000, 0))
	key, err := NewKey()
	require.NoError(t, err)
	h.server, err = newServer(Config{Key: key, Shards: 1, Seed: 7, Log: slog.New(slog.DiscardHandler),
		Limits: Limits{Rooms: 1, RoomSize: game.MaxPlayers, PerAddress: game.MaxPlayers}}, nil, &h.clock)
	require.NoError(t, err)
	h.shard().out.write = h.write
	h.Net = simnet.NewNet(seed, &h.clock)
	h.Add(hallAddr, h, up, simnet.Config{})
	h.Every(game.TickRate, time.Second, func() {
		h.shard().clock.Set(h.clock.Now())
		h.shard().step()
	})
	h.Every(1, mapPace, func() {
		h.shard().clock.Set(h.clock.Now())
		h.shard().feed()
	})
	return h
}

func (h *hall) shard() *shard { return h.server.shards[0] }
func (h *hall) room() *room   { return h.shard().rooms[0] }

// write is what the socket does.
func (h *hall) write(messages []ipv4.Message) (int, error) {
	for _, m := range messages {
		h.sends = append(h.sends, parcel{plain(m.Addr.(*net.UDPAddr)), append([]byte(nil), m.Buffers[0]...)})
	}
	return len(messages), nil
}

// Receive, Due and Deadline are of simnet.Node.
func (h *hall) Receive(from netip.AddrPort, datagram []byte) {
	answers := &outbox{write: h.write, messages: newMessages(maxRead), counters: &h.server.counters}
	h.server.table.mu.Lock()
	h.server.sort(arrival{datagram: datagram, from: from}, h.clock.Now(), answers)
	h.server.table.mu.Unlock()
	answers.flush()
	h.shard().receive()
}

func (h *hall) Due(send func(to netip.AddrPort, datagram []byte)) {
	for _, p := range h.sends {
		send(p.to, p.datagram)
	}
	h.sends = nil
}

func (h *hall) Deadline() (time.Time, bool) { return time.Time{}, false }

// guest is a client with an address.
type guest struct {
	*client.Client
	addr  netip.AddrPort
	held  game.Buttons
	sends [][]byte
}

// invite lets a client join now, which wants the map unless level is nil. Its ticks lie
// somewhere between the server's.
func (h *hall) invite(level *client.Level, up, down simnet.Config) *guest {
	h.guests++
	g := &guest{addr: simnet.Addr(h.guests)}
	g.Client = client.New(client.Config{Name: "guest", Clock: &h.clock, Level: level, Send: func(datagram []byte) {
		g.sends = append(g.sends, append([]byte(nil), datagram...))
	}})
	h.Dial(g.addr, hallAddr, g, up, down)
	h.At(h.Now()+time.Duration(h.guests*h.guests%17)*time.Millisecond, func() {
		h.Every(game.TickRate, time.Second, func() { g.Tick(g.held) })
	})
	return g
}

// Receive, Due and Deadline are of simnet.Endpoint.
func (g *guest) Receive(datagram []byte) { g.Client.Receive(datagram) }

func (g *guest) Due(send func(datagram []byte)) {
	for _, datagram := range g.sends {
		send(datagram)
	}
	g.sends = nil
}

func (g *guest) Deadline() (time.Time, bool) { return time.Time{}, false }

// sees reports whether the guest lives in the world, as it knows.
func (g *guest) sees() bool {
	slot, ok := g.View().Me()
	return ok && g.View().State[slot].Alive
}

// peer returns the server's end of a guest.
func (h *hall) peer(g *guest) *peer { return h.server.table.peers[g.Token()] }

// mapBytes counts what of the map leaves for an address from now on.
func (h *hall) mapBytes(to netip.AddrPort) *int {
	n := new(int)
	h.Observe(func(_ time.Duration, _, dst netip.AddrPort, what simnet.What, datagram []byte) {
		header, _, err := ackbits.ParseHeader(datagram)
		if err == nil && dst == to && what == simnet.Sent && header.Type == mapType {
			*n += len(datagram)
		}
	})
	return n
}

// When the server leaves, its Disconnects are on their way before it forgets who they go
// to: else it would answer their inputs with Resets, which may be there first.
func TestDisconnectsLeaveFirst(t *testing.T) {
	h := newHall(t, 1, simnet.Config{})
	guests := []*guest{h.invite(nil, dsl, dsl), h.invite(nil, dsl, dsl), h.invite(nil, dsl, dsl)}
	h.Run(time.Second)
	require.Equal(t, len(guests), h.server.Players())
	writes := 0
	h.shard().out.write = func(messages []ipv4.Message) (int, error) {
		writes++
		require.Equal(t, len(guests), h.server.Players())
		return h.write(messages)
	}
	h.shard().close()
	require.Positive(t, writes)
	require.Zero(t, h.server.Players())
	h.Run(2 * time.Second)
	for _, g := range guests {
		require.ErrorIs(t, g.Over(), ackbits.ErrPeerLeft)
	}
}
