package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"github.com/ackbits/ackbits/examples/arena/bots"
	"github.com/ackbits/ackbits/examples/arena/ledger"
	"github.com/ackbits/ackbits/examples/arena/link"
	"github.com/ackbits/ackbits/examples/arena/server"
)

// all runs a server and bots behind lossy links in one process and compares
// their ledgers.
func all(ctx context.Context, args []string) (err error) {
	flags := flag.NewFlagSet("arena", flag.ContinueOnError)
	cfg := bots.Config{Workers: runtime.GOMAXPROCS(0), Seed: rand.Uint64(),
		Weather: link.Weather{Loss: 0.05, RTT: 60 * time.Millisecond, Jitter: 5 * time.Millisecond}}
	flags.IntVar(&cfg.N, "n", 32, "bots")
	weatherFlags(flags, &cfg.Weather)
	duration := flags.Duration("t", 10*time.Second, "how long to play")
	http := flags.String("http", "", "loopback `address` of /metrics and /debug/pprof; empty for none")
	dir := flags.String("dir", "", "`folder` for the ledgers; empty for a temporary one")
	if err := parse(flags, args); err != nil {
		return err
	}
	if err := checkWeather(cfg.Weather); err != nil {
		return err
	}
	if *dir == "" {
		if *dir, err = os.MkdirTemp("", "arena-*"); err != nil {
			return err
		}
	}
	serverFile, botsFile := filepath.Join(*dir, "server.ledger"), filepath.Join(*dir, "bots.ledger")
	ours, err := os.Create(serverFile)
	if err != nil {
		return err
	}
	defer ours.Close()
	theirs, err := os.Create(botsFile)
	if err != nil {
		return err
	}
	defer theirs.Close()

	s, err := server.Listen(server.Config{
		Listen: "127.0.0.1:0",
		Shards: runtime.GOMAXPROCS(0),
		Limits: server.Limits{Rooms: max(runtime.GOMAXPROCS(0), (cfg.N+31)/32), RoomSize: 32, PerAddress: cfg.N},
		Seed:   cfg.Seed,
		Ledger: ledger.NewBook(ours),
		Log:    logger(false),
	})
	if err != nil {
		return err
	}
	if *http != "" {
		stop, err := s.ServeHTTP(*http)
		if err != nil {
			return err
		}
		defer stop()
	}
	cfg.Server, cfg.Ledger = s.Addr(), ledger.NewBook(theirs)
	swarm, err := bots.New(cfg)
	if err != nil {
		return err
	}
	if err := playTogether(ctx, s, swarm, *duration); err != nil {
		return err
	}
	report(os.Stdout, swarm)
	fmt.Println("in", *dir)
	return compareFiles(os.Stdout, serverFile, botsFile)
}

// playTogether runs the server for a while and the swarm until the server has
// sent it away.
func playTogether(ctx context.Context, s *server.Server, swarm *bots.Swarm, d time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	served := make(chan error, 1)
	go func() { served <- s.Serve(ctx) }()
	stop := showLive(os.Stdout, swarm, s)
	defer stop()
	// The swarm gets more time than the server: it ends because the server
	// says goodbye, or, where that was lost, because of the timeout.
	last, cancelSwarm := context.WithTimeout(context.Background(), d+10*time.Second)
	defer cancelSwarm()
	err := swarm.Run(last)
	cancel() // the server goes on no longer than the swarm
	return errors.Join(err, <-served)
}
