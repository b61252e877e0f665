package client_test

import (
	"crypto/ecdh"
	"errors"
	"net/netip"
	"testing"
	"time"

	"github.com/ackbits/ackbits"
	"github.com/ackbits/ackbits/endpoint"
	"github.com/ackbits/ackbits/examples/arena/client"
	"github.com/ackbits/ackbits/examples/arena/game"
	"github.com/ackbits/ackbits/examples/arena/proto"
	"github.com/ackbits/ackbits/transfer"
	"github.com/stretchr/testify/require"
)

var addr = netip.MustParseAddrPort("192.0.2.1:1000")

// harness is a client and the server's end of its session, made by hand.
type harness struct {
	*testing.T
	clock  ackbits.ManualClock
	client *client.Client
	gate   *endpoint.Gate
	key    *ecdh.PrivateKey
	refuse error // what Admit returns
	hello  proto.Hello
	server *ackbits.Session
	files  *transfer.Transfers // of the server; nil: none
	sent   [][]byte            // by the client, not yet looked at
	buf    []byte
}

func newHarness(t *testing.T) *harness {
	h := &harness{T: t}
	h.clock.Set(time.Unix(1_700_000_000, 0))
	h.key = key(t, 1)
	var err error
	h.gate, err = endpoint.NewGate(endpoint.ServerConfig{Key: h.key, Clock: &h.clock,
		Session: ackbits.Config{Outcomes: true, Accept: func(header ackbits.Header, payload []byte) error {
			if header.Type == proto.TypeMap {
				return h.files.Receive(payload)
			}
			return nil
		}},
		Admit: func(r endpoint.Request) ([]byte, error) {
			var err error
			h.hello, err = proto.ParseHello(r.Hello)
			return nil, errors.Join(err, h.refuse)
		}})
	require.NoError(t, err)
	h.client = h.newClient(nil)
	return h
}

// newClient returns a client that has not asked to join yet, and wants the map unless
// level is nil.
func (h *harness) newClient(level *client.Level) *client.Client {
	return client.New(client.Config{Name: "Ann\x1b", ServerKey: h.key.PublicKey(), Clock: &h.clock, Level: level,
		Send: func(datagram []byte) { h.sent = append(h.sent, append([]byte(nil), datagram...)) }})
}

// key returns a private key for tests.
func key(t *testing.T, n byte) *ecdh.PrivateKey {
	k, err := ecdh.X25519().NewPrivateKey(append(make([]byte, 31), n))
	require.NoError(t, err)
	return k
}

// take returns what the client has sent since the last take.
func (h *harness) take() [][]byte {
	sent := h.sent
	h.sent = nil
	return sent
}

// answer has the gate answer what the client has sent.
func (h *harness) answer() {
	for _, datagram := range h.take() {
		answer, a := h.gate.Receive(addr, datagram, make([]byte, 0, 1200))
		if a != nil {
			var err error
			h.server, err = ackbits.NewSession(a.Config)
			require.NoError(h, err)
		}
		if len(answer) > 0 {
			h.client.Receive(answer)
		}
	}
}

// join takes the client through the handshake.
func (h *harness) join() {
	h.client.Tick(0)
	h.answer() // a challenge
	require.False(h, h.client.Playing())
	h.answer() // an accept
	require.True(h, h.client.Playing())
	require.Equal(h, "Ann", h.hello.Name)
}

// snapshot sends one and returns its sequence.
func (h *harness) snapshot(number uint32, age uint8, base, state *game.State) uint16 {
	out, seq, err := h.server.AppendDatagram(nil, ackbits.TypeSnapshot, proto.AppendSnapshot(nil, number, age, base, state))
	require.NoError(h, err)
	h.client.Receive(out)
	return seq
}

// outcomes ticks the client and returns which datagrams of the server's it has
// acknowledged.
func (h *harness) outcomes() (delivered []uint16) {
	h.client.Tick(game.Fire)
	for _, datagram := range h.take() {
		_, err := h.server.Receive(datagram)
		require.NoError(h, err)
	}
	for {
		o, ok := h.server.NextOutcome()
		if !ok {
			return delivered
		}
		if o.Delivered {
			delivered = append(delivered, o.Sequence)
		}
	}
}

// A client asks until it is answered, and shows at once that it was let in.
func TestJoining(t *testing.T) {
	h := newHarness(t)
	h.client.Tick(0)
	require.Len(t, h.take(), 1, "is lost")
	h.clock.Advance(249 * time.Millisecond)
	h.client.Tick(0)
	require.Empty(t, h.take())
	h.clock.Advance(time.Millisecond)
	require.Equal(t, 250*time.Millisecond, h.client.Silence())
	h.join()
	first := h.take()
	require.Len(t, first, 1)
	in, err := h.server.Receive(first[0])
	require.NoError(t, err)
	require.Equal(t, ackbits.TypeInput, in.Type)
	require.Equal(t, in.Token, h.client.Token())
	require.Zero(t, h.client.Silence())
}

// It is told why it may not play, or gives up; and only where another attempt may
// do it is lost.
func TestNotJoining(t *testing.T) {
	h := newHarness(t)
	h.refuse = errors.New("the server is full")
	h.client.Tick(0)
	h.answer()
	h.answer()
	require.ErrorIs(t, h.client.Over(), endpoint.ErrRefused)
	require.ErrorContains(t, h.client.Over(), "the server is full")
	require.False(t, client.Lost(h.client.Over()))

	h = newHarness(t)
	h.client.Tick(0)
	h.clock.Advance(5 * time.Second)
	h.client.Tick(0)
	require.ErrorIs(t, h.client.Over(), endpoint.ErrNoAnswer)
	require.True(t, client.Lost(h.client.Over()))

	h = newHarness(t)
	other := client.New(client.Config{ServerKey: key(t, 2).PublicKey(), Clock: &h.clock,
		Send: func(datagram []byte) { h.sent = append(h.sent, append([]byte(nil), datagram...)) }})
	h.client = other
	h.client.Tick(0)
	h.answer()
	h.clock.Advance(5 * time.Second)
	h.client.Tick(0)
	require.ErrorIs(t, h.client.Over(), endpoint.ErrServerKey)
	require.False(t, client.Lost(h.client.Over()))
}

// A server that does not know the session any more is lost at once.
func TestReset(t *testing.T) {
	h := newHarness(t)
	h.join()
	h.take()
	restarted, err := endpoint.NewGate(endpoint.ServerConfig{Key: h.key, Clock: &h.clock})
	require.NoError(t, err)
	h.client.Tick(0)
	h.client.Receive(restarted.Reset(nil, addr, h.take()[0]))
	require.ErrorIs(t, h.client.Over(), endpoint.ErrReset)
	require.True(t, client.Lost(h.client.Over()))
	require.False(t, h.client.Playing())
}

// A snapshot whose baseline is missing is withheld: it is not acknowledged, so
// it never becomes a baseline, and the session goes on.
func TestMissingBaseline(t *testing.T) {
	h := newHarness(t)
	h.join()
	var empty, one, two game.State
	one[0] = game.Body{Present: true, X: 10}
	two[0] = game.Body{Present: true, X: 20}

	orphan := h.snapshot(5, 2, &one, &two)
	require.NotContains(t, h.outcomes(), orphan)
	require.EqualValues(t, 1, h.client.Network().Withheld)
	require.Equal(t, empty, *h.client.View().State)

	whole := h.snapshot(6, 0, &empty, &one)
	require.Contains(t, h.outcomes(), whole)
	require.Equal(t, one, *h.client.View().State)

	delta := h.snapshot(8, 2, &one, &two)
	require.Contains(t, h.outcomes(), delta)
	require.Equal(t, two, *h.client.View().State)

	// One that is late is kept as a baseline, but not shown.
	late := h.snapshot(7, 1, &one, &one)
	require.Contains(t, h.outcomes(), late)
	require.Equal(t, two, *h.client.View().State)

	// One too old to be kept would be a baseline that we do not have.
	h.snapshot(100, 0, &empty, &one)
	require.NotContains(t, h.outcomes(), h.snapshot(36, 0, &empty, &two))
	require.EqualValues(t, 2, h.client.Network().Withheld)
}

// Hostile payloads are dropped, and no type but Snapshot is the server's.
func TestHostileServer(t *testing.T) {
	h := newHarness(t)
	h.join()
	for _, typ := range []ackbits.Type{ackbits.TypeSnapshot, ackbits.TypeInput, ackbits.TypeAccept, 200} {
		out, seq, err := h.server.AppendDatagram(nil, typ, []byte{1, 2, 3})
		require.NoError(t, err)
		h.client.Receive(out)
		require.NotContains(t, h.outcomes(), seq)
	}
	require.EqualValues(t, 4, h.client.Network().Rejected)
	require.NoError(t, h.client.Over())
}

// Events make the names, the scores and the log; the end is told with what the
// server said about it.
func TestEventsAndEnd(t *testing.T) {
	h := newHarness(t)
	h.join()
	for _, e := range []proto.Event{
		{Kind: proto.Welcome, Slot: 4},
		{Kind: proto.Joined, Slot: 4, Text: "Ann"},
		{Kind: proto.Joined, Slot: 5, Text: "Bob"},
		{Kind: proto.Died, Slot: 5, By: 4},
		{Kind: proto.Scored, Slot: 4, Score: 1},
		{Kind: proto.Said, Slot: 5, Text: "ouch"},
		{Kind: proto.Left, Slot: 5, Text: "ackbits: peer left"},
		{Kind: proto.Closing, Text: "good night"},
	} {
		_, err := h.server.Send(proto.AppendEvent(nil, e))
		require.NoError(t, err)
	}
	h.server.Close()
	for datagram := range h.server.Due(h.buf) {
		h.client.Receive(datagram)
	}
	view := h.client.View()
	slot, ok := view.Me()
	require.True(t, ok)
	require.Equal(t, 4, slot)
	require.Equal(t, "Ann", view.Names[4])
	require.Empty(t, view.Names[5])
	require.EqualValues(t, 1, view.Scores[4])
	require.Equal(t, []string{"Ann joined", "Bob joined", "Ann shot Bob", "<Bob> ouch", "Bob left: ackbits: peer left", "server: good night"}, view.Log)
	require.ErrorIs(t, h.client.Over(), client.ErrEnded)
	require.ErrorIs(t, h.client.Over(), ackbits.ErrPeerLeft)
	require.ErrorContains(t, h.client.Over(), "good night")
	require.False(t, client.Lost(h.client.Over()), "the server has decided")
	require.False(t, h.client.Say("too late"))
}

// Whoever leaves sends three Disconnects, after the events that were not sent yet.
func TestLeave(t *testing.T) {
	h := newHarness(t)
	h.join()
	h.take()
	require.True(t, h.client.Say("bye"))
	h.client.Leave()
	require.ErrorIs(t, h.client.Over(), ackbits.ErrClosed)
	sent := h.take()
	require.Len(t, sent, 4)
	for i, want := range []ackbits.Type{ackbits.TypeEvent, ackbits.TypeDisconnect, ackbits.TypeDisconnect, ackbits.TypeDisconnect} {
		header, _, err := ackbits.ParseHeader(sent[i])
		require.NoError(t, err)
		require.Equal(t, want, header.Type)
	}
	h.client.Tick(0)
	require.Empty(t, h.take())

	h = newHarness(t)
	h.client.Tick(0)
	h.client.Leave()
	require.ErrorIs(t, h.client.Over(), client.ErrLeft)
}
