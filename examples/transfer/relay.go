package main

import (
	"errors"
	"os"
	"sync"
	"time"

	"github.com/ackbits/ackbits"
	"github.com/ackbits/ackbits/examples/internal/relay"
	"github.com/ackbits/ackbits/simnet"
)

// The loop of a peer on its socket. The bad network between the sockets is
// examples/internal/relay.

// network is the peers on their sockets, and the relay between them.
type network struct {
	*relay.Relay
	peers sync.WaitGroup
}

// connect puts the peers on sockets and begins to play.
func connect(client, server *peer, seed uint64, conditions simnet.Config) (*network, error) {
	r, err := relay.Start(seed, conditions)
	if err != nil {
		return nil, err
	}
	n := &network{Relay: r}
	client.start = time.Now()
	server.start = client.start
	n.peers.Go(func() { play(client, r.Client) })
	n.peers.Go(func() { play(server, r.Server) })
	return n, nil
}

// wait waits until both sessions have ended.
func (n *network) wait() { n.peers.Wait() }

// play is the loop of a peer on a socket: sleep until a datagram arrives, the next tick
// comes, or something is due; then do it.
func play(p *peer, s *relay.Socket) {
	p.send = s.Send
	const interval = time.Second / tickRate
	nextTick := time.Now()
	buf := make([]byte, ackbits.MaxDatagramSize+1) // one more, so that a longer datagram is refused, not cut to size
	for !p.over() {
		wake := nextTick
		if t, ok := p.deadline(); ok && t.Before(wake) {
			wake = t
		}
		datagram, err := s.Receive(buf, wake)
		if errors.Is(err, os.ErrDeadlineExceeded) && time.Since(wake) > interval {
			datagram, err = s.Receive(buf, time.Now().Add(50*time.Millisecond)) // we were held up: first receive what has arrived
		}
		if err == nil {
			p.Receive(datagram)
		}
		if now := time.Now(); !now.Before(nextTick) {
			p.tick()
			if nextTick = nextTick.Add(interval); nextTick.Before(now) {
				nextTick = now.Add(interval) // too slow: skip ticks instead of catching up
			}
		}
		p.flush()
	}
}
