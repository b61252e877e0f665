package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
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
	flags.Usage = func() {
		fmt.Fprint(flags.Output(), usage, "\nFlags of arena all:\n")
		flags.PrintDefaults()
	}
	cfg := bots.Config{Workers: runtime.GOMAXPROCS(0), Seed: rand.Uint64(), Map: true,
		Conditions: link.Conditions{Loss: 0.05, RTT: 60 * time.Millisecond, Jitter: 5 * time.Millisecond}}
	flags.IntVar(&cfg.N, "n", 32, "bots")
	conditionFlags(flags, &cfg.Conditions)
	mapFlag(flags, &cfg)
	duration := flags.Duration("t", 10*time.Second, "how long to play")
	http := flags.String("http", "", "loopback `address` of /metrics; empty for none")
	pprof := flags.Bool("pprof", false, "serve profiles at /debug/pprof/, too")
	dir := flags.String("dir", "", "`folder` for the ledgers; empty for a temporary one, which stays if they do not agree")
	if err := parse(flags, args); err != nil {
		return err
	}
	if err := checkBots(&cfg); err != nil {
		return err
	}
	if *dir != "" {
		return allIn(ctx, *dir, cfg, *duration, *http, *pprof)
	}
	if *dir, err = os.MkdirTemp("", "arena-*"); err != nil {
		return err
	}
	if err := allIn(ctx, *dir, cfg, *duration, *http, *pprof); err != nil {
		return err
	}
	return os.RemoveAll(*dir)
}

// allIn is all, with the ledgers in a folder and the metrics at an address, unless
// that is empty.
func allIn(ctx context.Context, dir string, cfg bots.Config, d time.Duration, http string, profiles bool) error {
	serverFile, botsFile := filepath.Join(dir, "server.ledger"), filepath.Join(dir, "bots.ledger")
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

	s, err := listenFor(&cfg, ledger.NewBook(ours))
	if err != nil {
		return err
	}
	if http != "" {
		stop, err := s.ServeHTTP(http, profiles)
		if err != nil {
			return err
		}
		defer stop()
	}
	cfg.Ledger = ledger.NewBook(theirs)
	swarm, err := bots.New(cfg)
	if err != nil {
		return err
	}
	out := new(output)
	if err := playTogether(ctx, out, s, swarm, d); err != nil {
		return err
	}
	report(out, swarm)
	if err := compareFiles(out, serverFile, botsFile); err != nil {
		return fmt.Errorf("%w; they are in %s", err, dir)
	}
	return out.err
}

// listenFor opens a server for a swarm, and tells the swarm where it is.
func listenFor(cfg *bots.Config, book *ledger.Book) (*server.Server, error) {
	key, err := server.NewKey()
	if err != nil {
		return nil, err
	}
	s, err := server.Listen(server.Config{
		Listen: "127.0.0.1:0",
		Key:    key,
		Shards: runtime.GOMAXPROCS(0),
		Limits: server.Limits{Rooms: max(runtime.GOMAXPROCS(0), (cfg.N+31)/32), RoomSize: 32, PerAddress: 2 * cfg.N},
		Seed:   cfg.Seed,
		Ledger: book,
		Log:    logger(false),
	})
	if err != nil {
		return nil, err
	}
	cfg.Server, cfg.ServerKey = s.Addr(), key.PublicKey()
	return s, nil
}

// playTogether runs the server for a while and the swarm until the server has
// sent it away.
func playTogether(ctx context.Context, out io.Writer, s *server.Server, swarm *bots.Swarm, d time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	served := make(chan error, 1)
	go func() { served <- s.Serve(ctx) }()
	stop := showLive(out, swarm, s)
	defer stop()
	// The swarm gets more time than the server: it ends because the server
	// disconnects it or, where that was lost, because of the timeout.
	last, cancelSwarm := context.WithTimeout(context.Background(), d+10*time.Second)
	defer cancelSwarm()
	err := swarm.Run(last)
	cancel() // the server goes on no longer than the swarm
	return errors.Join(err, <-served)
}
