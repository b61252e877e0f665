package main

import (
	"context"
	"errors"
	"flag"
	"math/rand/v2"
	"os"
	"runtime"

	"github.com/ackbits/ackbits/examples/arena/ledger"
	"github.com/ackbits/ackbits/examples/arena/server"
)

// serve runs the server until a signal asks it to leave.
func serve(ctx context.Context, args []string) (err error) {
	flags := flag.NewFlagSet("arena serve", flag.ContinueOnError)
	cfg := server.Config{Seed: rand.Uint64()}
	flags.StringVar(&cfg.Listen, "listen", "127.0.0.1:7777", "`address` of the game, IPv4")
	flags.IntVar(&cfg.Shards, "shards", runtime.GOMAXPROCS(0), "goroutines that run rooms")
	flags.IntVar(&cfg.Rooms, "rooms", 32, "worlds")
	flags.IntVar(&cfg.RoomSize, "size", 32, "players in a room, at most 64")
	flags.IntVar(&cfg.PerAddress, "per-address", 64, "players with the same IP address")
	http := flags.String("http", "127.0.0.1:7778", "loopback `address` of /metrics and /debug/pprof; empty for none")
	file := flags.String("ledger", "", "`file` for the ledger; empty for none")
	verbose := flags.Bool("v", false, "log every player")
	if err := parse(flags, args); err != nil {
		return err
	}
	cfg.Log = logger(*verbose)
	if *file != "" {
		f, err2 := os.Create(*file)
		if err2 != nil {
			return err2
		}
		defer func() { err = errors.Join(err, f.Close()) }()
		cfg.Ledger = ledger.NewBook(f)
	}
	s, err := server.Listen(cfg)
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
	return s.Serve(ctx)
}
