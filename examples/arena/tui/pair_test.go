package tui_test

import (
	"bytes"
	"crypto/ecdh"
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

// pair is a real client with a session of a server made by hand, to have
// something to draw.
type pair struct {
	*testing.T
	clock  ackbits.ManualClock
	level  client.Level
	client *client.Client
	server *ackbits.Session
	files  *transfer.Transfers // of the server
	sends  [][]byte            // by the client, once it plays
}

func newPair(t *testing.T) *pair {
	p := &pair{T: t}
	p.clock.Set(time.Unix(1_700_000_000, 0))
	key, err := ecdh.X25519().NewPrivateKey(append(make([]byte, 31), 1))
	require.NoError(t, err)
	gate, err := endpoint.NewGate(endpoint.ServerConfig{Key: key, Clock: &p.clock, Session: ackbits.Config{
		Outcomes: true,
		Accept: func(h ackbits.Header, payload []byte) error {
			if h.Type == proto.TypeMap {
				return p.files.Receive(payload)
			}
			return nil
		},
	}})
	require.NoError(t, err)
	p.client = client.New(client.Config{Clock: &p.clock, Level: &p.level, Send: func(datagram []byte) {
		if p.server != nil {
			p.sends = append(p.sends, append([]byte(nil), datagram...))
			return
		}
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

// load lets the map arrive until the client has so many bytes of it, or plays.
func (p *pair) load(until int64) {
	if p.files == nil {
		var err error
		p.files, err = transfer.New(p.server, transfer.Config{Type: proto.TypeMap, Clock: &p.clock})
		require.NoError(p, err)
		ground := game.Generate(1).Bytes()
		_, err = p.files.Send([]byte(proto.MapName), bytes.NewReader(ground), int64(len(ground)))
		require.NoError(p, err)
	}
	for range 20_000 {
		if done, _ := p.level.Progress(); done >= until && (until < game.MapSize || p.level.Map() != nil) {
			return
		}
		p.clock.Advance(time.Millisecond)
		p.client.Tick(0)
		for _, datagram := range p.sends {
			_, err := p.server.Receive(datagram)
			require.NoError(p, err)
		}
		p.sends = nil
		for o, ok := p.server.NextOutcome(); ok; o, ok = p.server.NextOutcome() {
			p.files.Outcome(o)
		}
		for datagram := range p.files.Due(nil) {
			p.client.Receive(datagram)
		}
	}
	p.Fatal("the map does not arrive")
}

// watch sends a snapshot in which the player is not in the world yet.
func (p *pair) watch() {
	var empty, state game.State
	state[5] = game.Body{Present: true, Alive: true, HP: 3, X: game.Width / 2, Y: game.Height / 2, Facing: 6}
	out, _, err := p.server.AppendDatagram(nil, ackbits.TypeSnapshot, proto.AppendSnapshot(nil, 2, 0, &empty, &state))
	require.NoError(p, err)
	p.client.Receive(out)
}

// tell sends a snapshot and events: Ann in the middle, Bob below her.
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
		e.At = p.clock.Now()
		_, err := p.server.Send(proto.AppendEvent(nil, e))
		require.NoError(p, err)
	}
	for datagram := range p.server.Due(nil) {
		p.client.Receive(datagram)
	}
}
