package main

import (
	"context"
	"errors"
	"os"
	"sync"
	"time"

	"github.com/ackbits/ackbits"
	"github.com/ackbits/ackbits/examples/internal/relay"
	"github.com/ackbits/ackbits/simnet"
)

// The network between the peers, in two forms: UDP sockets with a relay between
// them (examples/internal/relay), and a simulation in virtual time. Both lose, delay, reorder and duplicate
// datagrams by two links of package simnet.

// traffic is what the network did with the datagrams.
type traffic struct {
	took     time.Duration
	up, down simnet.Stats // from the client, from the server
}

// overUDP runs the peers on sockets until both sessions have ended. When ctx is
// cancelled, both leave.
func overUDP(ctx context.Context, client, server *peer, seed uint64, conditions simnet.Config) (traffic, error) {
	network, err := relay.Start(seed, conditions)
	if err != nil {
		return traffic{}, err
	}
	start := time.Now()
	var peers sync.WaitGroup
	peers.Go(func() { play(ctx, client, network.Client) })
	peers.Go(func() { play(ctx, server, network.Server) })
	peers.Wait()
	took := time.Since(start)
	network.Close()
	up, down := network.Stats()
	return traffic{took, up, down}, nil
}

// play runs a peer on a socket. It waits until a datagram arrives, the next tick is
// due or the session has something to send, then does that.
func play(ctx context.Context, p *peer, s *relay.Socket) {
	interval := time.Second / time.Duration(p.rate)
	nextTick := time.Now()
	buf := make([]byte, ackbits.MaxDatagramSize+1) // one more, so that a longer datagram is refused, not cut to size
	for !p.over() {
		wake := nextTick
		if t, ok := p.Deadline(); ok && t.Before(wake) {
			wake = t
		}
		datagram, err := s.Receive(buf, wake)
		if errors.Is(err, os.ErrDeadlineExceeded) && time.Since(wake) > interval {
			// The program was stopped for a while (Ctrl-Z, a debugger, a closed lid).
			// Datagrams that arrived meanwhile are still in the socket: with a read
			// deadline that has passed, Read did not look. Receive them first, or
			// Due finds a timeout.
			datagram, err = s.Receive(buf, time.Now().Add(50*time.Millisecond))
		}
		if err == nil {
			p.Receive(datagram)
		}
		if ctx.Err() != nil {
			p.leave()
		}
		if now := time.Now(); !now.Before(nextTick) {
			p.tick(s.Send)
			if nextTick = nextTick.Add(interval); nextTick.Before(now) {
				nextTick = now.Add(interval) // too slow: skip ticks instead of catching up
			}
		}
		p.Due(s.Send)
	}
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
