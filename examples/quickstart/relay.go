package main

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"os"
	"sync"
	"time"

	"github.com/ackbits/ackbits"
	"github.com/ackbits/ackbits/simnet"
)

// The network between the peers, in two forms: real UDP sockets with a relay
// between them, and a simulation in virtual time. Both lose, delay, reorder and
// duplicate datagrams with the same two simnet links.

// traffic is what became of the datagrams.
type traffic struct {
	took     time.Duration
	up, down simnet.Stats // from the client, from the server
}

// overUDP runs the peers on sockets until both sessions are over. When ctx is
// done, they leave.
func overUDP(ctx context.Context, client, server *peer, seed uint64, weather simnet.Config) (traffic, error) {
	// client <-> front [relay] back <-> server
	var sockets [4]*socket
	for i := range sockets {
		s, err := newSocket()
		if err != nil {
			return traffic{}, err
		}
		defer s.conn.Close()
		sockets[i] = s
	}
	atClient, front, back, atServer := sockets[0], sockets[1], sockets[2], sockets[3]
	connect(atClient, front)
	connect(back, atServer)

	start := time.Now()
	up, down := simnet.NewLink(seed, weather), simnet.NewLink(seed+1, weather)
	var relay, peers sync.WaitGroup
	relay.Go(func() { forward(up, start, front, back) })
	relay.Go(func() { forward(down, start, back, front) })
	peers.Go(func() { play(ctx, client, atClient) })
	peers.Go(func() { play(ctx, server, atServer) })

	peers.Wait()
	took := time.Since(start)
	front.conn.Close() // which ends forward
	back.conn.Close()
	relay.Wait()
	return traffic{took, up.Stats(), down.Stats()}, nil
}

// play is the loop of a peer on a socket: sleep until a datagram arrives, the
// next tick is due, or the session has something to do; then do it.
func play(ctx context.Context, p *peer, s *socket) {
	interval := time.Second / time.Duration(p.rate)
	nextTick := time.Now()
	buf := make([]byte, 2*ackbits.MaxDatagramSize) // more than fits, so that nothing is cut to a legal size
	for !p.over() {
		wake := nextTick
		if t, ok := p.Deadline(); ok && t.Before(wake) {
			wake = t
		}
		datagram, err := s.receive(buf, wake)
		if errors.Is(err, os.ErrDeadlineExceeded) && time.Since(wake) > interval {
			// We were held up (Ctrl-Z, a debugger, a closed lid). The deadline has
			// passed and hides what arrived meanwhile, and Due would take the
			// silence for the end of the session. So look again first.
			datagram, err = s.receive(buf, time.Now().Add(50*time.Millisecond))
		}
		if err == nil {
			p.Receive(datagram)
		}
		if ctx.Err() != nil {
			p.leave()
		}
		if now := time.Now(); !now.Before(nextTick) {
			p.tick(s.send)
			if nextTick = nextTick.Add(interval); nextTick.Before(now) {
				nextTick = now.Add(interval) // too slow: skip ticks rather than hurry
			}
		}
		p.Due(s.send)
	}
}

// forward is the relay in one direction: what arrives on a socket goes through
// the link, and if it comes out at the other end, out of the other socket. It
// ends when in is closed.
func forward(link *simnet.Link, start time.Time, in, out *socket) {
	buf := make([]byte, 2*ackbits.MaxDatagramSize)
	for {
		now := time.Since(start)
		for datagram, ok := link.Receive(now); ok; datagram, ok = link.Receive(now) {
			out.send(datagram)
		}
		var wake time.Time // none: wait for as long as it takes
		if at, ok := link.Next(); ok {
			wake = start.Add(at)
		}
		datagram, err := in.receive(buf, wake)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err == nil {
			link.Send(time.Since(start), datagram)
		}
	}
}

// socket is a UDP socket that talks to one address.
type socket struct {
	conn *net.UDPConn
	peer netip.AddrPort
}

func newSocket() (*socket, error) {
	conn, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		return nil, err
	}
	return &socket{conn: conn}, nil
}

// connect tells two sockets each other's address. On the internet a server
// learns the address of a client when it first hears of it.
func connect(a, b *socket) {
	a.peer, b.peer = b.address(), a.address()
}

func (s *socket) address() netip.AddrPort { return s.conn.LocalAddr().(*net.UDPAddr).AddrPort() }

// send sends a datagram. One that could not be sent is one that was lost.
func (s *socket) send(datagram []byte) { _, _ = s.conn.WriteToUDPAddrPort(datagram, s.peer) }

// errStranger is what receive returns for a datagram from elsewhere: anyone may
// send to a UDP port.
var errStranger = errors.New("datagram from an unknown address")

// receive waits for a datagram until a time; the zero time means for ever.
func (s *socket) receive(buf []byte, until time.Time) ([]byte, error) {
	if err := s.conn.SetReadDeadline(until); err != nil {
		return nil, err
	}
	n, from, err := s.conn.ReadFromUDPAddrPort(buf)
	if err != nil {
		return nil, err
	}
	if from != s.peer {
		return nil, errStranger
	}
	return buf[:n], nil
}

// inVirtualTime runs the peers in a simulation until both sessions are over.
// Nothing waits: the clock, which the sessions read too, jumps from one instant
// at which something happens to the next.
func inVirtualTime(ctx context.Context, client, server *peer, clock *ackbits.ManualClock, seed uint64, weather simnet.Config) traffic {
	pair := simnet.NewPair(seed, clock, client, server, weather, weather)
	pair.Every(client.rate, time.Second, func() {
		client.tick(func(datagram []byte) { pair.Send(simnet.AToB, datagram) })
	})
	pair.Every(server.rate, time.Second, func() {
		server.tick(func(datagram []byte) { pair.Send(simnet.BToA, datagram) })
	})
	const limit = 365 * 24 * time.Hour // never reached: a session ends long before
	pair.RunUntil(func() bool {
		if ctx.Err() != nil {
			client.leave()
			server.leave()
		}
		return client.over() && server.over()
	}, limit)
	return traffic{pair.Now(), pair.Link(simnet.AToB).Stats(), pair.Link(simnet.BToA).Stats()}
}
