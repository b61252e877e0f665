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

// The network between the peers, in two forms: UDP sockets with a relay between
// them, and a simulation in virtual time. Both lose, delay, reorder and duplicate
// datagrams by two links of package simnet.

// traffic is what the network did with the datagrams.
type traffic struct {
	took     time.Duration
	up, down simnet.Stats // from the client, from the server
}

// overUDP runs the peers on sockets until both sessions have ended. When ctx is
// cancelled, both leave.
func overUDP(ctx context.Context, client, server *peer, seed uint64, conditions simnet.Config) (traffic, error) {
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
	up, down := simnet.NewLink(seed, conditions), simnet.NewLink(seed+1, conditions)
	var relay, peers sync.WaitGroup
	relay.Go(func() { forward(up, start, front, back) })
	relay.Go(func() { forward(down, start, back, front) })
	peers.Go(func() { play(ctx, client, atClient) })
	peers.Go(func() { play(ctx, server, atServer) })

	peers.Wait()
	took := time.Since(start)
	front.conn.Close() // ends forward
	back.conn.Close()
	relay.Wait()
	return traffic{took, up.Stats(), down.Stats()}, nil
}

// play runs a peer on a socket. It waits until a datagram arrives, the next tick is
// due or the session has something to send, then does that.
func play(ctx context.Context, p *peer, s *socket) {
	interval := time.Second / time.Duration(p.rate)
	nextTick := time.Now()
	buf := make([]byte, ackbits.MaxDatagramSize+1) // one more, so that a longer datagram is refused, not cut to size
	for !p.over() {
		wake := nextTick
		if t, ok := p.Deadline(); ok && t.Before(wake) {
			wake = t
		}
		datagram, err := s.receive(buf, wake)
		if errors.Is(err, os.ErrDeadlineExceeded) && time.Since(wake) > interval {
			// The program was stopped for a while (Ctrl-Z, a debugger, a closed lid).
			// Datagrams that arrived meanwhile are still in the socket: with a read
			// deadline that has passed, Read did not look. Receive them first, or
			// Due finds a timeout.
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
				nextTick = now.Add(interval) // too slow: skip ticks instead of catching up
			}
		}
		p.Due(s.send)
	}
}

// forward is one direction of the relay: it sends what arrives on the socket in over
// the link, and what comes out of the link over the socket out. It returns when in
// is closed.
func forward(link *simnet.Link, start time.Time, in, out *socket) {
	buf := make([]byte, ackbits.MaxDatagramSize+1)
	for {
		now := time.Since(start)
		for datagram, ok := link.Receive(now); ok; datagram, ok = link.Receive(now) {
			out.send(datagram)
		}
		var wake time.Time // zero: no limit
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

// connect tells two sockets each other's address. On the internet a server learns
// the address of a client from its first datagram.
func connect(a, b *socket) {
	a.peer, b.peer = b.address(), a.address()
}

func (s *socket) address() netip.AddrPort { return s.conn.LocalAddr().(*net.UDPAddr).AddrPort() }

// send sends a datagram. If that fails, the datagram is lost, as on the way.
func (s *socket) send(datagram []byte) { _, _ = s.conn.WriteToUDPAddrPort(datagram, s.peer) }

// errStranger is returned by receive for a datagram from another address than the
// peer's: anybody can send to a UDP port.
var errStranger = errors.New("datagram from an unknown address")

// receive waits for a datagram until the given time, without limit if that is zero.
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

// inVirtualTime runs the peers in a simulation until both sessions have ended.
// Nothing waits: the clock that the sessions read is set from one instant at which
// something happens to the next.
func inVirtualTime(ctx context.Context, client, server *peer, clock *ackbits.ManualClock, seed uint64, conditions simnet.Config) traffic {
	pair := simnet.NewPair(seed, clock, client, server, conditions, conditions)
	pair.Every(client.rate, time.Second, func() {
		client.tick(func(datagram []byte) { pair.Send(simnet.AToB, datagram) })
	})
	pair.Every(server.rate, time.Second, func() {
		server.tick(func(datagram []byte) { pair.Send(simnet.BToA, datagram) })
	})
	const limit = 365 * 24 * time.Hour // never reached: the sessions end long before
	pair.RunUntil(func() bool {
		if ctx.Err() != nil {
			client.leave()
			server.leave()
		}
		return client.over() && server.over()
	}, limit)
	return traffic{pair.Now(), pair.Link(simnet.AToB).Stats(), pair.Link(simnet.BToA).Stats()}
}
