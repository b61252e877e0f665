package ackbits_test

import (
	"bytes"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"github.com/ackbits/ackbits"
)

const serverTick = 50 * time.Millisecond

// A seat is the address that a player's datagrams come from, and the token that the
// handshake gave to the player. As both are the key, a datagram from another address
// finds no session, nor does one of the player's earlier session.
type seat struct {
	addr  netip.AddrPort
	token uint64
}

// A gameServer has one session for each player and one socket for all of them.
type gameServer struct {
	clock   ackbits.ManualClock // all sessions read it
	players map[seat]*ackbits.Session
	socket  socket
	out     []byte
}

// join is what the end of a handshake calls.
func (g *gameServer) join(at seat) error {
	session, err := ackbits.NewSession(ackbits.Config{
		Token: at.token,
		Clock: &g.clock,
		// The server calls Due on a tick, not at Deadline: so heartbeats are sent a
		// tick early rather than a tick late.
		PollInterval: serverTick,
	})
	if err == nil {
		g.players[at] = session
	}
	return err
}

// tick is one turn of the server. The time is read once for all sessions.
func (g *gameServer) tick(now time.Time, snapshot []byte) {
	g.clock.Set(now)
	for _, p := range g.socket.receive() {
		h, _, err := ackbits.ParseHeader(p.datagram)
		session, ok := g.players[seat{p.addr, h.Token}]
		if err != nil || !ok {
			fmt.Printf("dropped: %v with token %d\n", p.addr, h.Token)
			continue // and not answered: the address may be forged
		}
		in, _ := session.Receive(p.datagram)
		for _, event := range in.Events {
			fmt.Printf("%v: %s\n", p.addr, event.Data)
		}
		g.flush(p.addr, session)
	}
	// Everything that has arrived was received before Due looks for timeouts.
	for at, session := range g.players {
		if datagram, _, err := session.AppendDatagram(g.out[:0], ackbits.TypeSnapshot, snapshot); err == nil {
			g.socket.send(at.addr, datagram)
		}
		g.flush(at.addr, session)
		if err := session.Err(); err != nil {
			fmt.Printf("%v leaves: %v\n", at.addr, err)
			delete(g.players, at)
		}
	}
}

func (g *gameServer) flush(addr netip.AddrPort, session *ackbits.Session) {
	for datagram := range session.Due(g.out) {
		g.socket.send(addr, datagram)
	}
}

// shutdown sends every player a last event and leaves. Go on calling tick until no
// player is left: the session of a player who has all events ends at once, that of one
// who does not answer after two seconds.
func (g *gameServer) shutdown() {
	for _, session := range g.players {
		if session.Room() > 0 {
			session.Send([]byte("the server restarts"))
		}
		session.Shutdown(2 * time.Second)
	}
}

// A server with three players. One falls silent and is removed after five seconds. A
// datagram with a token that was not given to its sender is dropped. Then the server
// shuts down, and every player learns why.
func ExampleSession_server() {
	server := &gameServer{
		players: make(map[seat]*ackbits.Session),
		socket:  socket{to: make(map[netip.AddrPort][][]byte)},
		out:     make([]byte, ackbits.MaxDatagramSize),
	}
	start := time.Date(2026, 6, 17, 12, 0, 0, 0, time.UTC)
	server.clock.Set(start)

	clients := make(map[netip.AddrPort]*ackbits.Session)
	for i, name := range []string{"192.0.2.1:4001", "192.0.2.2:4002", "192.0.2.3:4003"} {
		at := seat{netip.MustParseAddrPort(name), 100 + uint64(i)} // random ones, in a game
		client, err := ackbits.NewSession(ackbits.Config{Token: at.token, Clock: &server.clock})
		if err := errors.Join(err, server.join(at)); err != nil {
			panic(err)
		}
		clients[at.addr] = client
	}
	first := netip.MustParseAddrPort("192.0.2.1:4001")
	silent := netip.MustParseAddrPort("192.0.2.3:4003")
	clients[first].Send([]byte("hello from the first player"))
	server.socket.arrive(first, ackbits.Header{Type: ackbits.TypeInput, Token: 999}.AppendTo(nil))

	for at := time.Duration(0); at < 7*time.Second; at += serverTick {
		if at == 6*time.Second {
			server.shutdown()
		}
		server.tick(start.Add(at), []byte("the world"))
		for addr, client := range clients {
			for _, datagram := range server.socket.take(addr) {
				in, _ := client.Receive(datagram)
				for _, event := range in.Events {
					fmt.Printf("to %v: %s\n", addr, event.Data)
				}
			}
			for datagram := range client.Due(make([]byte, ackbits.MaxDatagramSize)) {
				if addr != silent {
					server.socket.arrive(addr, datagram)
				}
			}
		}
	}
	fmt.Println("players left:", len(server.players))
	// Unordered output:
	// dropped: 192.0.2.1:4001 with token 999
	// 192.0.2.1:4001: hello from the first player
	// 192.0.2.3:4003 leaves: ackbits: timeout
	// to 192.0.2.1:4001: the server restarts
	// to 192.0.2.2:4002: the server restarts
	// 192.0.2.1:4001 leaves: ackbits: session closed
	// 192.0.2.2:4002 leaves: ackbits: session closed
	// players left: 0
}

// A socket stands for a *net.UDPConn with its ReadFromUDPAddrPort and
// WriteToUDPAddrPort.
type socket struct {
	arrived []packet
	to      map[netip.AddrPort][][]byte
}

type packet struct {
	addr     netip.AddrPort
	datagram []byte
}

func (s *socket) arrive(from netip.AddrPort, datagram []byte) {
	s.arrived = append(s.arrived, packet{from, bytes.Clone(datagram)})
}

func (s *socket) receive() []packet {
	arrived := s.arrived
	s.arrived = nil
	return arrived
}

func (s *socket) send(to netip.AddrPort, datagram []byte) {
	s.to[to] = append(s.to[to], bytes.Clone(datagram))
}

func (s *socket) take(addr netip.AddrPort) [][]byte {
	datagrams := s.to[addr]
	delete(s.to, addr)
	return datagrams
}
