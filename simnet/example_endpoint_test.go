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
	states map[netip.AddrPort]int // how many came, by where from
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
	return &openServer{Server: s, buf: make([]byte, ackbits.MaxDatagramSize), states: map[netip.AddrPort]int{}}
}

func (s *openServer) Receive(from netip.AddrPort, datagram []byte) {
	in, _ := s.Server.Receive(from, datagram)
	s.events += len(in.Events)
	if in.Latest && in.Type == ackbits.TypeInput {
		s.states[from]++
	}
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

// openClient is an endpoint.Client as a simnet.Endpoint. What the game sends is queued,
// and leaves in Due: so it comes from where the client is by then.
type openClient struct {
	*endpoint.Client
	buf    []byte
	queued [][]byte
	sent   int
}

// tick is the game: a state, and now and then an event.
func (c *openClient) tick(event bool) {
	s := c.Session()
	if s == nil || c.Err() != nil {
		return // not joined yet, or no more
	}
	if datagram, _, err := s.AppendDatagram(nil, ackbits.TypeInput, []byte("jump")); err == nil {
		c.queued = append(c.queued, datagram)
	}
	if event && c.sent < 5 {
		s.Send([]byte("hit"))
		c.sent++
	}
}

func (c *openClient) Receive(datagram []byte) { c.Client.Receive(datagram) }

func (c *openClient) Due(send func(datagram []byte)) {
	for _, datagram := range c.queued {
		send(datagram)
	}
	c.queued = c.queued[:0]
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
	ticks := 0
	sim.Every(20, time.Second, func() { // and Due of each, after it
		for _, c := range clients {
			c.tick(ticks%20 == 0)
		}
		ticks++
	})
	moved := netip.MustParseAddrPort("203.0.113.9:5000")
	sim.At(3*time.Second, func() { sim.Move(simnet.Addr(7), moved) })
	sim.Run(7 * time.Second)
	fmt.Println(server.events, "events")
	fmt.Println("states from both addresses:", server.states[simnet.Addr(7)] > 40 && server.states[moved] > 50)

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
	// states from both addresses: true
	// all know of the restart within half a second: true
}
