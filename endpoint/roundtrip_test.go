package endpoint_test

import (
	"testing"
	"time"

	"github.com/ackbits/ackbits"
	"github.com/ackbits/ackbits/endpoint"
	"github.com/stretchr/testify/require"
)

// P-13.3.2.
func TestClientJoinsPlaysAndLeaves(t *testing.T) {
	w := newWorld(t, endpoint.ServerConfig{Admit: func(r endpoint.Request) ([]byte, error) {
		require.Equal(t, address("198.51.100.7:4000"), r.Addr)
		return append([]byte("welcome, "), r.Hello...), nil
	}})
	c := w.join("198.51.100.7:4000", endpoint.ClientConfig{ServerKey: serverKey.PublicKey(), Hello: []byte("ann")})
	require.Nil(t, c.Session())
	w.settle()

	require.NoError(t, c.Err())
	require.NotNil(t, c.Session(), "joined without time passing")
	require.Equal(t, "welcome, ann", string(c.Reply()))
	require.Len(t, w.events, 1)
	require.Equal(t, endpoint.Joined, w.events[0].Kind)
	peer := w.events[0].Peer
	require.Equal(t, "ann", string(peer.Hello()))

	_, err := c.Session().Send([]byte("hello, server"))
	require.NoError(t, err)
	_, err = peer.Session().Send([]byte("hello, ann"))
	require.NoError(t, err)
	w.run(100 * time.Millisecond)
	require.Equal(t, []string{"hello, server"}, w.got[peer])
	require.Equal(t, []string{"hello, ann"}, w.heard[peer.Addr()])

	c.Session().Shutdown(time.Second)
	w.run(100 * time.Millisecond)
	require.ErrorIs(t, c.Err(), ackbits.ErrClosed)
	require.Len(t, w.events, 2)
	require.Equal(t, endpoint.Event{Kind: endpoint.Left, Peer: peer, Err: ackbits.ErrPeerLeft}, w.events[1])
	require.Zero(t, w.server.Stats().Peers)
}

func TestGateAdmitsForATableOfOnesOwn(t *testing.T) {
	var clock ackbits.ManualClock
	gate, err := endpoint.NewGate(endpoint.ServerConfig{Key: serverKey, Clock: &clock, Rand: seeded(1)})
	require.NoError(t, err)
	c, err := endpoint.NewClient(endpoint.ClientConfig{ServerKey: serverKey.PublicKey(), Clock: &clock, Rand: seeded(2)})
	require.NoError(t, err)

	from := address("[2001:db8::1]:4000")
	var admission *endpoint.Admission
	out, answers := make([]byte, 1200), make([]byte, 0, 640)
	for range 2 {
		for hello := range c.Due(out) {
			answer, a := gate.Receive(from, hello, answers)
			_, err := c.Receive(answer)
			require.NoError(t, err)
			admission = a
		}
	}
	require.NotNil(t, c.Session())
	require.NotNil(t, admission)
	require.Equal(t, from, admission.Addr)

	s, err := ackbits.NewSession(admission.Config)
	require.NoError(t, err)
	dg, _, err := c.Session().AppendDatagram(nil, ackbits.TypeInput, []byte("left"))
	require.NoError(t, err)
	in, err := s.Receive(dg)
	require.NoError(t, err)
	require.Equal(t, "left", string(in.Payload))
	gate.Confirm(admission.Config.Token)
	gate.End(admission.Config.Token)
	require.Zero(t, gate.Stats().Peers)
}
