package tui_test

import (
	"crypto/ecdh"
	"net/netip"
	"testing"
	"time"

	"github.com/ackbits/ackbits"
	"github.com/ackbits/ackbits/endpoint"
	"github.com/ackbits/ackbits/examples/arena/client"
	"github.com/ackbits/ackbits/examples/arena/game"
	"github.com/ackbits/ackbits/examples/arena/proto"
	"github.com/stretchr/testify/require"
)

// pair is a real client with a session of a server made by hand, to have
// something to draw.
type pair struct {
	*testing.T
	client *client.Client
	server *ackbits.Session
}

func newPair(t *testing.T) *pair {
	p := &pair{T: t}
	key, err := ecdh.X25519().NewPrivateKey(append(make([]byte, 31), 1))
	require.NoError(t, err)
	gate, err := endpoint.NewGate(endpoint.ServerConfig{Key: key})
	require.NoError(t, err)
	p.client = client.New(client.Config{Send: func(datagram []byte) {
		answer, a := gate.Receive(netip.MustParseAddrPort("192.0.2.1:1000"), datagram, make([]byte, 0, 1200))
		if a != nil {
			var err error
			p.server, err = ackbits.NewSession(a.Config)
			require.NoError(t, err)
		}
		if len(answer) > 0 {
			p.client.Receive(answer)
		}
	}})
	p.client.Tick(0)
	require.NotNil(t, p.server)
	return p
}

// tell sends a snapshot and events: Ann at the wall, Bob below her.
func (p *pair) tell() {
	var empty, state game.State
	state[4] = game.Body{Present: true, Alive: true, HP: 2, X: 56 * game.Cell, Y: 12 * game.Cell}
	state[5] = game.Body{Present: true, Alive: true, HP: 3, X: 57 * game.Cell, Y: 20 * game.Cell, Facing: 6,
		Shot: true, ShotX: 59 * game.Cell, ShotY: 13 * game.Cell}
	out, _, err := p.server.AppendDatagram(nil, ackbits.TypeSnapshot, proto.AppendSnapshot(nil, 1, 0, &empty, &state))
	require.NoError(p, err)
	p.client.Receive(out)
	for _, e := range []proto.Event{
		{Kind: proto.Welcome, Slot: 4},
		{Kind: proto.Joined, Slot: 4, Text: "Ann"},
		{Kind: proto.Joined, Slot: 5, Text: "Bob"},
		{Kind: proto.Scored, Slot: 5, Score: 7},
		{Kind: proto.Said, Slot: 5, Text: "hello"},
	} {
		e.At = time.Now()
		_, err := p.server.Send(proto.AppendEvent(nil, e))
		require.NoError(p, err)
	}
	for datagram := range p.server.Due(nil) {
		p.client.Receive(datagram)
	}
}
