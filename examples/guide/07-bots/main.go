// Bots is the seventh step of docs/guide.md: a server and a hundred bots, each on a line
// of its own, play half a minute in virtual time.
//
//	go run ./examples/guide/07-bots
package main

import (
	"fmt"
	"time"

	"github.com/ackbits/ackbits"
	"github.com/ackbits/ackbits/endpoint"
	"github.com/ackbits/ackbits/examples/guide/sim"
	"github.com/ackbits/ackbits/simnet"
)

// README: begin guide-bot

// bot picks up twenty coins, one a second. It is a client like any other: what is between it
// and the server is the whole library, and a network.
type bot struct {
	*sim.Client
	picked, score int // what it did, what the server says of it
}

func newBot(clock ackbits.Clock, number int) *bot {
	b := new(bot)
	cfg := endpoint.ClientConfig{Clock: clock, Hello: fmt.Append(nil, "bot ", number)}
	b.Client = sim.NewClient(cfg, uint64(number), func(incoming ackbits.Incoming) {
		b.score += len(incoming.Events)
	})
	return b
}

func (b *bot) pick() {
	if s := b.Session(); s != nil && s.Room() > 0 && b.picked < 20 { // nil until the server has admitted it
		s.Send(fmt.Append(nil, "coin ", b.picked))
		b.picked++
	}
}

// README: end guide-bot

// newServer returns a server that says to each player how many coins it has.
func newServer(clock ackbits.Clock) *sim.Server {
	cfg := endpoint.ServerConfig{Key: sim.Key(1), Clock: clock}
	return sim.NewServer(cfg, func(incoming endpoint.Incoming) {
		for range incoming.Events {
			if s := incoming.Peer.Session(); s.Room() > 0 {
				s.Send([]byte("yours"))
			}
		}
	}, func(endpoint.Event) {})
}

func main() {
	const count = 100
	clock := new(ackbits.ManualClock)

	// README: begin guide-net
	network := simnet.NewNet(1, clock)
	server := newServer(clock)
	network.Add(simnet.Addr(0), server, simnet.Config{}, simnet.Config{})
	bots := make([]*bot, count)
	for i := range bots {
		bots[i] = newBot(clock, i+1)
		line := simnet.Config{ // each worse than the one before
			Delay: 10*time.Millisecond + time.Duration(i)*time.Millisecond,
			Loss:  float64(i) / 500,
		}
		network.Dial(simnet.Addr(i+1), simnet.Addr(0), bots[i], line, line)
		network.At(time.Duration(i)*10*time.Millisecond, func() { // not all at the same instant
			network.Every(1, time.Second, bots[i].pick)
		})
	}
	network.Run(30 * time.Second)
	// README: end guide-net

	picked, counted := 0, 0
	for _, b := range bots {
		picked, counted = picked+b.picked, counted+b.score
	}
	fmt.Printf("%d players, %d coins picked up, %d counted\n", server.Stats().Peers, picked, counted)
}
