package endpoint

import (
	"crypto/ecdh"
	"crypto/rand"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ackbits/ackbits"
)

// Once admitted, a client has nothing any more that could open its session again.
// P-13.3.3.
func TestClientForgetsItsKey(t *testing.T) {
	key, err := ecdh.X25519().GenerateKey(rand.Reader)
	require.NoError(t, err)
	var clock ackbits.ManualClock
	gate, err := NewGate(ServerConfig{Key: key, Clock: &clock})
	require.NoError(t, err)
	client, err := NewClient(ClientConfig{ServerKey: key.PublicKey(), Clock: &clock})
	require.NoError(t, err)
	require.NotNil(t, client.private)
	at := netip.MustParseAddrPort("192.0.2.1:1000")
	for range 3 {
		for datagram := range client.Due(nil) {
			if answer, _ := gate.Receive(at, datagram, nil); len(answer) > 0 {
				client.Receive(answer)
			}
		}
		clock.Advance(time.Second)
	}
	require.NotNil(t, client.Session())
	require.Nil(t, client.private)
	require.Nil(t, client.knocks.offers)

	client, err = NewClient(ClientConfig{ServerKey: key.PublicKey(), Clock: &clock})
	require.NoError(t, err)
	clock.Advance(time.Minute)
	for range client.Due(nil) {
	}
	require.ErrorIs(t, client.Err(), ErrNoAnswer)
	require.Nil(t, client.private, "nor when it has given up")
}
