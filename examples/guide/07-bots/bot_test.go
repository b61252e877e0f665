package main

// README: begin bot-test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ackbits/ackbits"
	"github.com/ackbits/ackbits/endpoint"
	"github.com/ackbits/ackbits/examples/guide/sim"
	"github.com/ackbits/ackbits/simnet"
)

// play lets a bot play half a minute over a line that loses a fifth of all datagrams each
// way, and returns what the server heard, with the times, and how often it answered. What
// the network does follows from seed.
func play(seed uint64) (heard []string, answers int) {
	clock := new(ackbits.ManualClock) // the network moves it
	cfg := endpoint.ServerConfig{Key: sim.Key(1), Clock: clock}
	server := sim.NewServer(cfg, func(incoming endpoint.Incoming) {
		for _, event := range incoming.Events {
			heard = append(heard, clock.Now().Format("05.000 ")+string(event.Data))
			incoming.Peer.Session().Send([]byte("yours"))
		}
	}, func(endpoint.Event) {}) // somebody has joined, moved or left

	network := simnet.NewNet(seed, clock)
	network.Add(simnet.Addr(0), server, simnet.Config{}, simnet.Config{}) // a perfect line, up and down
	bot := newBot(clock, 1)
	line := simnet.Config{Delay: 40 * time.Millisecond, Loss: 0.2} // one way
	network.Dial(simnet.Addr(1), simnet.Addr(0), bot, line, line)
	network.Every(1, time.Second, bot.pick)
	network.Run(30 * time.Second) // the last coin has ten seconds to arrive
	return heard, bot.score
}

func TestEveryCoinArrivesOnce(t *testing.T) {
	heard, answers := play(1)
	if answers != 20 {
		t.Errorf("%d answers for 20 coins", answers)
	}
	times := make(map[string]int)
	for _, line := range heard {
		_, coin, _ := strings.Cut(line, " ")
		times[coin]++
	}
	for n := range 20 {
		if coin := fmt.Sprint("coin ", n); times[coin] != 1 {
			t.Errorf("%s arrived %d times", coin, times[coin])
		}
	}
	if again, _ := play(1); !slices.Equal(heard, again) {
		t.Errorf("the same seed gave %q, then %q", heard, again)
	}
}

// README: end bot-test
