package endpoint_test

import (
	"crypto/ecdh"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"time"

	"github.com/ackbits/ackbits"
	"github.com/ackbits/ackbits/endpoint"
)

// exampleKey is a server's identity; a real one comes from a file, and its public half
// with the game. ecdh's GenerateKey makes one.
func exampleKey() *ecdh.PrivateKey {
	key, err := ecdh.X25519().NewPrivateKey([]byte("thirty-two bytes, from a secret."))
	if err != nil {
		panic(err)
	}
	return key
}

// admit lets in who has the password.
func admit(r endpoint.Request) (reply []byte, err error) {
	name, password, _ := strings.Cut(string(r.Hello), "\n")
	if password != "swordfish" {
		return nil, errors.New("wrong password")
	}
	return []byte("hello, " + name), nil
}

// chat handles a datagram and returns what is to be sent, here all of it to one
// address; over a socket, what Due yields goes to WriteToUDPAddrPort.
func chat(server *endpoint.Server, from netip.AddrPort, datagram []byte) (out [][]byte) {
	in, _ := server.Receive(from, datagram)
	for e, ok := server.NextEvent(); ok; e, ok = server.NextEvent() {
		switch e.Kind {
		case endpoint.Joined:
			e.Peer.Value, _, _ = strings.Cut(string(e.Peer.Hello()), "\n")
			fmt.Printf("%s joined from %v\n", e.Peer.Value, e.Peer.Addr())
		case endpoint.Left:
			fmt.Printf("%s left: %v\n", e.Peer.Value, e.Err)
		}
	}
	for _, event := range in.Events {
		fmt.Printf("%s says %q\n", in.Peer.Value, event.Data)
		for p := range server.Peers() {
			if p.Session().Room() > 0 {
				p.Session().Send(event.Data)
			}
		}
	}
	for _, datagram := range server.Due(make([]byte, ackbits.MaxDatagramSize)) {
		out = append(out, append([]byte(nil), datagram...))
	}
	return out
}

// A chat server: whoever has the password gets in, and everybody hears everybody.
func ExampleServer() {
	var clock ackbits.ManualClock
	server, err := endpoint.NewServer(endpoint.ServerConfig{Key: exampleKey(), Clock: &clock, Admit: admit})
	if err != nil {
		panic(err)
	}
	for i, password := range []string{"guess", "swordfish"} {
		client, err := endpoint.NewClient(endpoint.ClientConfig{
			ServerKey: exampleKey().PublicKey(), Hello: []byte("ann\n" + password), Clock: &clock,
		})
		if err != nil {
			panic(err)
		}
		from := netip.AddrPortFrom(netip.MustParseAddr("192.0.2.7"), uint16(4000+i))
		said := false
		for client.Err() == nil {
			var sent [][]byte
			for datagram := range client.Due(make([]byte, ackbits.MaxDatagramSize)) {
				sent = append(sent, append([]byte(nil), datagram...))
			}
			for _, datagram := range sent {
				for _, answer := range chat(server, from, datagram) {
					in, _ := client.Receive(answer)
					for _, event := range in.Events {
						fmt.Printf("ann hears %q\n", event.Data)
						client.Session().Close()
					}
				}
			}
			if s := client.Session(); s != nil && !said {
				fmt.Printf("the server says %q\n", client.Reply())
				s.Send([]byte("hi all"))
				said = true
			}
			clock.Advance(20 * time.Millisecond)
		}
		fmt.Println("ann:", client.Err())
	}
	// Output:
	// ann: endpoint: refused: wrong password
	// ann joined from 192.0.2.7:4001
	// the server says "hello, ann"
	// ann says "hi all"
	// ann hears "hi all"
	// ann left: ackbits: peer left
	// ann: ackbits: session closed
}
