package main

import (
	"context"
	"flag"
	"fmt"
	"runtime"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/ackbits/ackbits/examples/arena/bots"
	"github.com/ackbits/ackbits/examples/arena/game"
	"github.com/ackbits/ackbits/examples/arena/link"
	"github.com/ackbits/ackbits/examples/arena/tui"
)

// printScreen plays among bots for a while and prints the screen of the terminal client as it
// is then: docs/picture.sh makes the README's picture of it.
func printScreen(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("arena screen", flag.ContinueOnError)
	cfg := bots.Config{Workers: runtime.GOMAXPROCS(0), Conditions: link.Conditions{Loss: 0.05, RTT: 60 * time.Millisecond}}
	flags.IntVar(&cfg.N, "n", 31, "bots")
	flags.Uint64Var(&cfg.Seed, "seed", 7, "of the map and of the bots")
	conditionFlags(flags, &cfg.Conditions)
	duration := flags.Duration("t", 12*time.Second, "how long to play")
	width := flags.Int("width", 132, "of the screen, in characters")
	height := flags.Int("height", 38, "of the screen, in lines")
	if err := parse(flags, args); err != nil {
		return err
	}
	if err := checkBots(&cfg); err != nil {
		return err
	}
	s, err := listenFor(&cfg, nil)
	if err != nil {
		return err
	}
	swarm, err := bots.New(cfg)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, *duration+time.Second)
	defer cancel()
	served := make(chan error, 1)
	go func() { served <- s.Serve(ctx) }()
	go swarm.Run(ctx)
	p, err := newPlayer("Ann", s.Addr(), cfg.ServerKey, cfg.Conditions)
	if err != nil {
		return err
	}
	defer p.conn.Close()
	look := tui.New(p, s.Addr().String())
	look.Update(tea.WindowSizeMsg{Width: *width, Height: *height})
	for began := time.Now(); time.Since(began) < *duration; time.Sleep(time.Second / game.TickRate) {
		walk := game.Toward(uint8(time.Since(began) / time.Second)) // around in a circle
		p.Poll(walk | game.Fire)
	}
	fmt.Println(look.View().Content)
	p.Leave()
	cancel()
	return <-served
}
