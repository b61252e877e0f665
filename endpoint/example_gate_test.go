package endpoint_test

import (
	"fmt"
	"net/netip"

	"github.com/ackbits/ackbits"
	"github.com/ackbits/ackbits/endpoint"
)

// player is what a server with a table of its own keeps of a peer.
type player struct {
	session *ackbits.Session
	path    endpoint.Path
	heard   bool // a datagram of the session opened
}

// shards stands for such a table: one map here, many behind locks elsewhere.
type shards struct {
	gate    *endpoint.Gate
	players map[uint64]*player // by token
	send    func(to netip.AddrPort, datagram []byte)
	buf     []byte
}

// receive handles a datagram of any kind.
func (s *shards) receive(from netip.AddrPort, datagram []byte) {
	if token, ok := endpoint.ProbeReply(datagram); ok {
		if p := s.players[token]; p != nil && p.path.Answer(from, datagram) {
			fmt.Println("moved to", p.path.Addr())
		}
		return
	}
	h, _, err := ackbits.ParseHeader(datagram)
	if err != nil { // not a session's
		s.knock(from, datagram)
		return
	}
	if p := s.players[h.Token]; p != nil {
		s.play(p, from, h, datagram)
	} else if answer := s.gate.Reset(s.buf, from, datagram); len(answer) > 0 {
		s.send(from, answer)
	}
}

// knock handles a message of the handshake.
func (s *shards) knock(from netip.AddrPort, datagram []byte) {
	answer, admission := s.gate.Receive(from, datagram, s.buf)
	if admission != nil {
		session, err := ackbits.NewSession(admission.Config)
		if err != nil {
			panic(err) // NewGate has tried
		}
		s.players[admission.Config.Token] = &player{session: session, path: admission.Path}
		fmt.Println("joined from", admission.Addr)
	}
	if len(answer) > 0 {
		s.send(from, answer)
	}
}

// play handles a datagram of a session.
func (s *shards) play(p *player, from netip.AddrPort, h ackbits.Header, datagram []byte) {
	in, err := p.session.Receive(datagram)
	if endpoint.Opened(err) {
		if !p.heard {
			p.heard = true
			s.gate.Confirm(h.Token)
		}
		p.path.Opened(from, h.Sequence)
		if probe, to, ok := p.path.AppendDue(s.buf); ok {
			s.send(to, probe)
		}
	}
	for _, event := range in.Events {
		fmt.Printf("%q\n", event.Data)
	}
	for datagram := range p.session.Due(s.buf) {
		s.send(p.path.Addr(), datagram)
	}
	if p.session.Err() != nil {
		s.gate.End(h.Token)
		delete(s.players, h.Token)
	}
}

// A server that keeps its own table takes the handshake from a Gate and lets each
// peer move by a Path.
func ExampleGate() {
	gate, err := endpoint.NewGate(endpoint.ServerConfig{Key: exampleKey()})
	if err != nil {
		panic(err)
	}
	client, err := endpoint.NewClient(endpoint.ClientConfig{ServerKey: exampleKey().PublicKey()})
	if err != nil {
		panic(err)
	}
	s := &shards{
		gate:    gate,
		players: map[uint64]*player{},
		send:    func(_ netip.AddrPort, datagram []byte) { client.Receive(append([]byte(nil), datagram...)) },
		buf:     make([]byte, 0, ackbits.MaxDatagramSize),
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
			s.receive(from, datagram)
		}
	}
	// Output:
	// joined from 192.0.2.7:4000
	// "turn 2"
	// "turn 3"
	// moved to 203.0.113.9:5000
	// "turn 4"
}
