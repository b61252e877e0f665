// Hello is the first step of docs/guide.md: two players greet each other over UDP
// sockets of this machine.
//
//	go run ./examples/guide/01-hello
package main

import (
	"fmt"
	"log"
	"net"
	"net/netip"
	"time"

	"github.com/ackbits/ackbits"
)

type player struct {
	name    string
	session *ackbits.Session
	conn    *net.UDPConn
	peer    netip.AddrPort
	in, out []byte
	greeted bool
}

func newPlayer(name string) *player {
	session, err := ackbits.NewSession(ackbits.Config{Token: 7}) // any number, the same at both ends
	if err != nil {
		log.Fatal(err)
	}
	conn, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		log.Fatal(err)
	}
	return &player{
		name: name, session: session, conn: conn,
		in:  make([]byte, ackbits.MaxDatagramSize+1), // so that what is too long is seen to be
		out: make([]byte, ackbits.MaxDatagramSize),
	}
}

func (p *player) addr() netip.AddrPort { return p.conn.LocalAddr().(*net.UDPAddr).AddrPort() }

// README: begin guide-hello

// turn is one turn of the game loop: what has arrived goes in, what is due goes out.
func (p *player) turn() error {
	p.conn.SetReadDeadline(time.Now().Add(5 * time.Millisecond)) // after which Read fails
	for n, from, err := p.conn.ReadFromUDPAddrPort(p.in); err == nil; n, from, err = p.conn.ReadFromUDPAddrPort(p.in) {
		if from != p.peer {
			continue // somebody else
		}
		incoming, _ := p.session.Receive(p.in[:n]) // empty if it was not of this session
		for _, event := range incoming.Events {
			fmt.Printf("%s hears %q\n", p.name, event.Data)
			p.greeted = true
		}
		p.flush()
	}
	p.flush()
	return p.session.Err() // why the session has ended, if it has
}

func (p *player) flush() {
	for datagram := range p.session.Due(p.out) {
		p.conn.WriteToUDPAddrPort(datagram, p.peer)
	}
}

// README: end guide-hello

func main() {
	alice, bob := newPlayer("alice"), newPlayer("bob")
	defer alice.conn.Close()
	defer bob.conn.Close()
	alice.peer, bob.peer = bob.addr(), alice.addr()

	alice.session.Send([]byte("hello, I am alice"))
	bob.session.Send([]byte("hello, I am bob"))
	for !alice.greeted || !bob.greeted {
		for _, p := range []*player{alice, bob} {
			if err := p.turn(); err != nil {
				log.Fatalf("%s: %v", p.name, err)
			}
		}
	}
}
