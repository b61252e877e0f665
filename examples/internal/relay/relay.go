// Package relay is the bad network of examples that run on real sockets: two UDP sockets
// on this machine, and between them a relay that loses, delays, reorders and duplicates
// datagrams by two links of package simnet. What a peer does with its socket is each
// example's own.
package relay

import (
	"errors"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/ackbits/ackbits"
	"github.com/ackbits/ackbits/simnet"
)

// Relay is two sockets and what lies between them:
//
//	Client <-> front [relay] back <-> Server
type Relay struct {
	Client, Server *Socket

	front, back *Socket
	up, down    *simnet.Link
	forwards    sync.WaitGroup
}

// Start opens the sockets and begins to relay.
func Start(seed uint64, conditions simnet.Config) (*Relay, error) {
	r := &Relay{up: simnet.NewLink(seed, conditions), down: simnet.NewLink(seed+1, conditions)}
	for _, s := range []**Socket{&r.Client, &r.front, &r.back, &r.Server} {
		var err error
		if *s, err = newSocket(); err != nil {
			r.Close()
			return nil, err
		}
	}
	connect(r.Client, r.front)
	connect(r.back, r.Server)
	start := time.Now()
	r.forwards.Go(func() { forward(r.up, start, r.front, r.back) })
	r.forwards.Go(func() { forward(r.down, start, r.back, r.front) })
	return r, nil
}

// Close closes the sockets and waits until nothing is relayed any more.
func (r *Relay) Close() {
	for _, s := range []*Socket{r.Client, r.front, r.back, r.Server} {
		if s != nil {
			s.Close() // of front and back, it ends forward
		}
	}
	r.forwards.Wait()
}

// Stats returns what the links did, from the client and from the server. Call it after
// Close.
func (r *Relay) Stats() (up, down simnet.Stats) { return r.up.Stats(), r.down.Stats() }

// forward is one direction of the relay: it sends what arrives on the socket in over
// the link, and what comes out of the link over the socket out. It returns when in is
// closed.
func forward(link *simnet.Link, start time.Time, in, out *Socket) {
	buf := make([]byte, ackbits.MaxDatagramSize+1)
	for {
		now := time.Since(start)
		for datagram, ok := link.Receive(now); ok; datagram, ok = link.Receive(now) {
			out.Send(datagram)
		}
		var wake time.Time // zero: no limit
		if at, ok := link.Next(); ok {
			wake = start.Add(at)
		}
		datagram, err := in.Receive(buf, wake)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err == nil {
			link.Send(time.Since(start), datagram)
		}
	}
}

// Socket is a UDP socket that talks to one address.
type Socket struct {
	conn *net.UDPConn
	peer netip.AddrPort
}

// newSocket opens a socket on a free port of this machine.
func newSocket() (*Socket, error) {
	conn, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		return nil, err
	}
	_ = conn.SetReadBuffer(1 << 20) // a smaller one would lose what comes while the program is held up
	return &Socket{conn: conn}, nil
}

// connect tells two sockets each other's address. On the internet a server learns the
// address of a client from its first datagram.
func connect(a, b *Socket) {
	a.peer, b.peer = b.address(), a.address()
}

func (s *Socket) address() netip.AddrPort { return s.conn.LocalAddr().(*net.UDPAddr).AddrPort() }

// Send sends a datagram. If that fails, the datagram is lost, as on the way.
func (s *Socket) Send(datagram []byte) { _, _ = s.conn.WriteToUDPAddrPort(datagram, s.peer) }

// ErrStranger is returned by Receive for a datagram from another address than the
// peer's: anybody can send to a UDP port.
var ErrStranger = errors.New("datagram from an unknown address")

// Receive waits for a datagram until the given time, without limit if that is zero.
func (s *Socket) Receive(buf []byte, until time.Time) ([]byte, error) {
	if err := s.conn.SetReadDeadline(until); err != nil {
		return nil, err
	}
	n, from, err := s.conn.ReadFromUDPAddrPort(buf)
	if err != nil {
		return nil, err
	}
	if from != s.peer {
		return nil, ErrStranger
	}
	return buf[:n], nil
}

// Close closes the socket; Receive returns net.ErrClosed then.
func (s *Socket) Close() { s.conn.Close() }
