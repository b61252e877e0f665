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
	key, err := ecdh.X25519().NewPrivateKey([]byte("thirty-two bytes, from a secret.")[:32])
	if err != nil {
		panic(err)
	}
	return key
}

// A chat server: whoever has the password gets in, and everybody hears everybody. Over a
// socket, Receive takes what ReadFromUDPAddrPort returned, and what Due yields goes to
// WriteToUDPAddrPort; here datagrams are handed over by hand.
func ExampleServer() {
	var clock ackbits.ManualClock
	server, err := endpoint.NewServer(endpoint.ServerConfig{
		Key:   exampleKey(),
		Clock: &clock,
		Admit: func(r endpoint.Request) ([]byte, error) {
			name, password, _ := strings.Cut(string(r.Hello), "\n")
			if password != "swordfish" {
				return nil, errors.New("wrong password")
			}
			return []byte("hello, " + name), nil
		},
	})
	if err != nil {
		panic(err)
	}
	// tick hands in what has arrived and returns what is to be sent.
	tick := func(from netip.AddrPort, arrived [][]byte) (out [][]byte) {
		buf := make([]byte, ackbits.MaxDatagramSize)
		for _, datagram := range arrived {
			in, _ := server.Receive(from, datagram)
			for _, event := range in.Events {
				fmt.Printf("%s says %q\n", in.Peer.Value, event.Data)
				for p := range server.Peers() {
					if p.Session().Room() > 0 {
						p.Session().Send(event.Data)
					}
				}
			}
			for e, ok := server.NextEvent(); ok; e, ok = server.NextEvent() {
				switch e.Kind {
				case endpoint.Joined:
					e.Peer.Value, _, _ = strings.Cut(string(e.Peer.Hello()), "\n")
					fmt.Printf("%s joined from %v\n", e.Peer.Value, e.Peer.Addr())
				case endpoint.Left:
					fmt.Printf("%s left: %v\n", e.Peer.Value, e.Err)
				}
			}
			for _, datagram := range server.Due(buf) { // to whom: from, here
				out = append(out, append([]byte(nil), datagram...))
			}
		}
		return out
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
		for range 10 {
			var sent [][]byte
			for datagram := range client.Due(make([]byte, ackbits.MaxDatagramSize)) {
				sent = append(sent, append([]byte(nil), datagram...))
			}
			for _, datagram := range tick(from, sent) {
				in, _ := client.Receive(datagram)
				for _, event := range in.Events {
					fmt.Printf("ann hears %q\n", event.Data)
					client.Session().Close()
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

// The loop of a client. The connection's Read has a deadline of some milliseconds.
func ExampleClient() {
	var conn interface {
		Read([]byte) (int, error)
		Write([]byte) (int, error)
	}
	play := func(client *endpoint.Client) error {
		in, out := make([]byte, ackbits.MaxDatagramSize+1), make([]byte, ackbits.MaxDatagramSize)
		for client.Err() == nil {
			for n, err := conn.Read(in); err == nil; n, err = conn.Read(in) {
				incoming, _ := client.Receive(in[:n])
				for _, event := range incoming.Events {
					fmt.Printf("%s\n", event.Data)
				}
				for datagram := range client.Due(out) {
					conn.Write(datagram)
				}
			}
			if s := client.Session(); s != nil { // admitted
				s.Send([]byte("an event, now and then"))
			}
			for datagram := range client.Due(out) {
				conn.Write(datagram)
			}
		}
		var refused *endpoint.RefusedError
		switch err := client.Err(); {
		case errors.As(err, &refused):
			return fmt.Errorf("the server does not let us in: %s", refused.Reason)
		case errors.Is(err, endpoint.ErrReset):
			return errors.New("the server was restarted: knock again with a new Client")
		default:
			return err
		}
	}
	_ = play
}

// A server that keeps its own table takes the handshake from a Gate and lets each
// peer move by a Path.
func ExampleGate() {
	type player struct {
		session *ackbits.Session
		path    endpoint.Path
		heard   bool
	}
	gate, err := endpoint.NewGate(endpoint.ServerConfig{Key: exampleKey()})
	if err != nil {
		panic(err)
	}
	players := map[uint64]*player{} // by token; of one shard or of many
	buf := make([]byte, 0, ackbits.MaxDatagramSize)

	receive := func(from netip.AddrPort, datagram []byte, send func(netip.AddrPort, []byte)) {
		if token, ok := endpoint.ProbeReply(datagram); ok {
			if p := players[token]; p != nil && p.path.Answer(from, datagram) {
				fmt.Println("moved to", p.path.Addr())
			}
			return
		}
		h, _, err := ackbits.ParseHeader(datagram)
		if err != nil { // not a session's
			answer, admission := gate.Receive(from, datagram, buf)
			if admission != nil {
				session, err := ackbits.NewSession(admission.Config)
				if err != nil {
					panic(err) // NewGate has tried
				}
				players[admission.Config.Token] = &player{session: session, path: admission.Path}
				fmt.Println("joined from", admission.Addr)
			}
			if len(answer) > 0 {
				send(from, answer)
			}
			return
		}
		p := players[h.Token]
		if p == nil {
			if answer := gate.Reset(buf, from, datagram); len(answer) > 0 {
				send(from, answer)
			}
			return
		}
		in, err := p.session.Receive(datagram)
		if endpoint.Opened(err) {
			if !p.heard {
				p.heard = true
				gate.Confirm(h.Token)
			}
			p.path.Opened(from, h.Sequence)
			if probe, to, ok := p.path.AppendDue(buf); ok {
				send(to, probe)
			}
		}
		for _, event := range in.Events {
			fmt.Printf("%q\n", event.Data)
		}
		for datagram := range p.session.Due(buf) {
			send(p.path.Addr(), datagram)
		}
		if p.session.Err() != nil {
			gate.End(h.Token)
			delete(players, h.Token)
		}
	}

	client, err := endpoint.NewClient(endpoint.ClientConfig{ServerKey: exampleKey().PublicKey()})
	if err != nil {
		panic(err)
	}
	from := netip.MustParseAddrPort("192.0.2.7:4000")
	for turn := range 5 {
		if turn == 3 {
			from = netip.MustParseAddrPort("203.0.113.9:5000")
		}
		if client.Session() != nil {
			client.Session().Send(fmt.Append(nil, "turn ", turn))
		}
		var sent [][]byte
		for datagram := range client.Due(make([]byte, ackbits.MaxDatagramSize)) {
			sent = append(sent, append([]byte(nil), datagram...))
		}
		for _, datagram := range sent {
			receive(from, datagram, func(_ netip.AddrPort, answer []byte) { client.Receive(append([]byte(nil), answer...)) })
		}
	}
	// Output:
	// joined from 192.0.2.7:4000
	// "turn 2"
	// "turn 3"
	// moved to 203.0.113.9:5000
	// "turn 4"
}
