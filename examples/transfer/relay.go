package main

import (
	"errors"
	"net"
	"net/netip"
	"os"
	"sync"
	"time"

	"github.com/ackbits/ackbits"
	"github.com/ackbits/ackbits/simnet"
)

// network is the peers on their sockets, and the relay between them:
//
//	client <-> front [relay] back <-> server
type network struct {
	relay, peers sync.WaitGroup
	sockets      [4]*socket
}

// connect puts the peers on sockets and begins to play.
func connect(client, server *peer, seed uint64, conditions simnet.Config) (*network, error) {
	n := new(network)
	for i := range n.sockets {
		s, err := newSocket()
		if err != nil {
			n.close()
			return nil, err
		}
		n.sockets[i] = s
	}
	atClient, front, back, atServer := n.sockets[0], n.sockets[1], n.sockets[2], n.sockets[3]
	atClient.peer, front.peer = front.address(), atClient.address()
	back.peer, atServer.peer = atServer.address(), back.address()
	start := time.Now()
	client.start, server.start = start, start
	up, down := simnet.NewLink(seed, conditions), simnet.NewLink(seed+1, conditions)
	n.relay.Go(func() { forward(up, start, front, back) })
	n.relay.Go(func() { forward(down, start, back, front) })
	n.peers.Go(func() { play(client, atClient) })
	n.peers.Go(func() { play(server, atServer) })
	return n, nil
}

// wait waits until both sessions have ended.
func (n *network) wait() { n.peers.Wait() }

func (n *network) close() {
	for _, s := range n.sockets {
		if s != nil {
			s.conn.Close() // which ends forward
		}
	}
	n.relay.Wait()
}

// play is the loop of a peer on a socket: sleep until a datagram arrives, the next tick
// comes, or something is due; then do it.
func play(p *peer, s *socket) {
	p.send = s.send
	const interval = time.Second / tickRate
	nextTick := time.Now()
	buf := make([]byte, ackbits.MaxDatagramSize+1) // so that a longer datagram is seen to be too long
	for !p.over() {
		wake := nextTick
		if t, ok := p.deadline(); ok && t.Before(wake) {
			wake = t
		}
		datagram, err := s.receive(buf, wake)
		if errors.Is(err, os.ErrDeadlineExceeded) && time.Since(wake) > interval {
			datagram, err = s.receive(buf, time.Now().Add(50*time.Millisecond)) // we were held up: first what waited
		}
		if err == nil {
			p.Receive(datagram)
		}
		if now := time.Now(); !now.Before(nextTick) {
			p.tick()
			if nextTick = nextTick.Add(interval); nextTick.Before(now) {
				nextTick = now.Add(interval) // too slow: skip ticks rather than hurry
			}
		}
		p.flush()
	}
}

// forward is the relay in one direction: what arrives on a socket goes through the
// link, and what comes out of it out of the other socket.
func forward(link *simnet.Link, start time.Time, in, out *socket) {
	buf := make([]byte, ackbits.MaxDatagramSize+1)
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
	_ = conn.SetReadBuffer(1 << 20) // less would lose what comes while we are held up
	return &socket{conn: conn}, nil
}

func (s *socket) address() netip.AddrPort { return s.conn.LocalAddr().(*net.UDPAddr).AddrPort() }

// send sends a datagram. One that could not be sent is one that was lost.
func (s *socket) send(datagram []byte) { _, _ = s.conn.WriteToUDPAddrPort(datagram, s.peer) }

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
