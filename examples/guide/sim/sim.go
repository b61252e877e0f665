// Package sim lets the programs of the guide (docs/guide.md) play in virtual time: it
// gives sessions, and servers and clients of package endpoint, the methods by which
// simnet runs them.
package sim

import (
	"crypto/ecdh"
	"math/rand/v2"
	"net/netip"

	"github.com/ackbits/ackbits"
	"github.com/ackbits/ackbits/endpoint"
)

// Peer is a session as a simnet.Endpoint. Deadline is the session's own.
type Peer struct {
	*ackbits.Session
	on  func(ackbits.Incoming)
	buf []byte
}

// NewPeer returns a peer that calls on for every datagram it receives.
func NewPeer(cfg ackbits.Config, on func(ackbits.Incoming)) *Peer {
	return &Peer{must(ackbits.NewSession(cfg)), on, make([]byte, ackbits.MaxDatagramSize)}
}

// Receive handles a datagram that has arrived.
func (p *Peer) Receive(datagram []byte) {
	if in, err := p.Session.Receive(datagram); err == nil {
		p.on(in)
	}
}

// Due sends what is due.
func (p *Peer) Due(send func(datagram []byte)) {
	for datagram := range p.Session.Due(p.buf) {
		send(datagram)
	}
}

// Client is a client of package endpoint as a simnet.Endpoint.
type Client struct {
	*endpoint.Client
	on  func(ackbits.Incoming)
	buf []byte
}

// NewClient returns a client that calls on for every datagram of its session, with
// random numbers that seed decides.
func NewClient(cfg endpoint.ClientConfig, seed uint64, on func(ackbits.Incoming)) *Client {
	cfg.Rand = random(seed)
	return &Client{must(endpoint.NewClient(cfg)), on, make([]byte, ackbits.MaxDatagramSize)}
}

// Receive handles a datagram that has arrived.
func (c *Client) Receive(datagram []byte) {
	if in, err := c.Client.Receive(datagram); err == nil {
		c.on(in)
	}
}

// Due sends what is due.
func (c *Client) Due(send func(datagram []byte)) {
	for datagram := range c.Client.Due(c.buf) {
		send(datagram)
	}
}

// Server is a server of package endpoint as a simnet.Node.
type Server struct {
	*endpoint.Server
	on   func(endpoint.Incoming)
	news func(endpoint.Event)
	buf  []byte
}

// NewServer returns a server that calls on for every datagram of a session, and news
// for everybody who joins, moves or leaves, with random numbers that are the same
// each time.
func NewServer(cfg endpoint.ServerConfig, on func(endpoint.Incoming), news func(endpoint.Event)) *Server {
	cfg.Rand = random(0)
	return &Server{must(endpoint.NewServer(cfg)), on, news, make([]byte, ackbits.MaxDatagramSize)}
}

// Receive handles a datagram that has arrived.
func (s *Server) Receive(from netip.AddrPort, datagram []byte) {
	in, err := s.Server.Receive(from, datagram)
	s.tell()
	if err == nil && in.Peer != nil {
		s.on(in)
	}
}

// tell passes on who has joined, moved or left.
func (s *Server) tell() {
	for e, ok := s.NextEvent(); ok; e, ok = s.NextEvent() {
		s.news(e)
	}
}

// Due sends what is due.
func (s *Server) Due(send func(to netip.AddrPort, datagram []byte)) {
	for to, datagram := range s.Server.Due(s.buf) {
		send(to, datagram)
	}
	s.tell() // Due finds the timeouts
}

// Key returns a server's key for programs that must do the same each time. A real one
// is of crypto/rand and stays secret.
func Key(seed byte) *ecdh.PrivateKey {
	return must(ecdh.X25519().NewPrivateKey(append(make([]byte, 31), seed)))
}

// random is for simulations alone: who knows the seed knows the keys.
func random(seed uint64) *rand.ChaCha8 {
	var key [32]byte
	for i := range 8 {
		key[i] = byte(seed >> (8 * i))
	}
	return rand.NewChaCha8(key)
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
