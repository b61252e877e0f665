package simnet_test

import (
	"crypto/ecdh"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"time"

	"github.com/ackbits/ackbits"
	"github.com/ackbits/ackbits/endpoint"
	"github.com/ackbits/ackbits/simnet"
)

// openServer is an endpoint.Server as a simnet.Node.
type openServer struct {
	*endpoint.Server
	buf    []byte
	events int
}

func newOpenServer(clock *ackbits.ManualClock, seed byte) *openServer {
	key, err := ecdh.X25519().NewPrivateKey(make([]byte, 32))
	if err != nil {
		panic(err)
	}
	s, err := endpoint.NewServer(endpoint.ServerConfig{Key: key, Clock: clock, Rand: rand.NewChaCha8([32]byte{seed})})
	if err != nil {
		panic(err)
	}
	return &openServer{Server: s, buf: make([]byte, ackbits.MaxDatagramSize)}
}

func (s *openServer) Receive(from netip.AddrPort, datagram []byte) {
	in, _ := s.Server.Receive(from, datagram)
	s.events += len(in.Events)
	for e, ok := s.NextEvent(); ok; e, ok = s.NextEvent() {
		if e.Kind == endpoint.Moved {
			fmt.Println("moved from", e.From, "to", e.Peer.Addr())
		}
	}
}

func (s *openServer) Due(send func(to netip.AddrPort, datagram []byte)) {
	for to, datagram := range s.Server.Due(s.buf) {
		send(to, datagram)
	}
}

// openClient is an endpoint.Client as a simnet.Endpoint.
type openClient struct {
	*endpoint.Client
	buf  []byte
	sent int
}

func (c *openClient) Receive(datagram []byte) { c.Client.Receive(datagram) }

func (c *openClient) Due(send func(datagram []byte)) {
	for datagram := range c.Client.Due(c.buf) {
		send(datagram)
	}
}

// A hundred clients join a server of package endpoint over bad lines and play. One of
// them moves to another address. Then the server crashes and is started again, and
// every client hears of that.
func ExampleNet_endpoint() {
	clock := new(ackbits.ManualClock)
	sim := simnet.NewNet(1, clock)
	port, server := simnet.Addr(0), newOpenServer(clock, 1)
	sim.Add(port, server, simnet.Config{}, simnet.Config{})
	bad := simnet.Config{Delay: 40 * time.Millisecond, Jitter: 10 * time.Millisecond, Loss: 0.1}
	var clients []*openClient
	for i := 1; i <= 100; i++ {
		c, err := endpoint.NewClient(endpoint.ClientConfig{Clock: clock, Rand: rand.NewChaCha8([32]byte{2, byte(i)})})
		if err != nil {
			panic(err)
		}
		clients = append(clients, &openClient{Client: c, buf: make([]byte, ackbits.MaxDatagramSize)})
		sim.Dial(simnet.Addr(i), port, clients[i-1], bad, bad)
	}
	sim.Every(1, time.Second, func() {
		for _, c := range clients {
			if s := c.Session(); s != nil && c.sent < 5 {
				s.Send([]byte("hit"))
				c.sent++
			}
		}
	})
	sim.At(3*time.Second, func() { sim.Move(simnet.Addr(7), netip.MustParseAddrPort("203.0.113.9:5000")) })
	sim.Run(7 * time.Second)
	fmt.Println(server.events, "events")

	sim.Remove(port)
	sim.Add(port, newOpenServer(clock, 3), simnet.Config{}, simnet.Config{})
	start := sim.Now()
	sim.RunUntil(func() bool {
		for _, c := range clients {
			if !errors.Is(c.Err(), endpoint.ErrReset) {
				return false
			}
		}
		return true
	}, start+time.Minute)
	fmt.Println("all know of the restart within half a second:", sim.Now()-start < 500*time.Millisecond)
	// Output:
	// moved from 10.0.0.7:4000 to 203.0.113.9:5000
	// 500 events
	// all know of the restart within half a second: true
}
