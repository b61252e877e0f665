package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net/netip"
	"os"
	"runtime"
	"time"

	"github.com/ackbits/ackbits/examples/arena/bots"
	"github.com/ackbits/ackbits/examples/arena/ledger"
	"github.com/ackbits/ackbits/examples/arena/link"
)

// errLedger: an event was lost, changed, or handed over twice.
var errLedger = errors.New("the ledgers do not agree")

// weatherFlags adds the flags that say how bad a path is.
func weatherFlags(flags *flag.FlagSet, w *link.Weather) {
	flags.Float64Var(&w.Loss, "loss", w.Loss, "share of datagrams lost in each direction, from 0 to 1")
	flags.DurationVar(&w.RTT, "rtt", w.RTT, "round trip time to add")
	flags.DurationVar(&w.Jitter, "jitter", w.Jitter, "the most by which a datagram is late, each way")
}

// checkWeather refuses what no path can be.
func checkWeather(w link.Weather) error {
	if !(w.Loss >= 0 && w.Loss <= 1) || w.RTT < 0 || w.RTT > time.Minute || w.Jitter < 0 || w.Jitter > time.Minute {
		fmt.Fprintf(os.Stderr, "no path has a loss of %v, a round trip of %v and a jitter of %v\n", w.Loss, w.RTT, w.Jitter)
		return errUsage
	}
	return nil
}

// runBots plays with many bots and checks their ledger.
func runBots(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("arena bots", flag.ContinueOnError)
	cfg := bots.Config{Seed: rand.Uint64(), Weather: link.Weather{Loss: 0.1, RTT: 80 * time.Millisecond}}
	flags.IntVar(&cfg.N, "n", 32, "bots")
	join := flags.String("join", "127.0.0.1:7777", "`address` of the server")
	flags.IntVar(&cfg.Workers, "workers", runtime.GOMAXPROCS(0), "goroutines that run bots")
	flags.DurationVar(&cfg.Ramp, "ramp", time.Second, "they join evenly over this time")
	weatherFlags(flags, &cfg.Weather)
	duration := flags.Duration("t", 30*time.Second, "how long to play")
	file := flags.String("ledger", "", "`file` for the ledger; empty for a temporary one")
	against := flags.String("against", "", "the server's ledger `file`, to compare with at the end")
	if err := parse(flags, args); err != nil {
		return err
	}
	if err := checkWeather(cfg.Weather); err != nil {
		return err
	}
	var err error
	if cfg.Server, err = netip.ParseAddrPort(*join); err != nil {
		return err
	}
	book, err := createLedger(*file, "arena-bots-*.ledger")
	if err != nil {
		return err
	}
	defer book.Close()
	cfg.Ledger = ledger.NewBook(book)
	swarm, err := bots.New(cfg)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, *duration)
	defer cancel()
	time.AfterFunc(cfg.Ramp+time.Second, swarm.Restart) // joining is not what latencies are about
	stop := showLive(os.Stdout, swarm, nil)
	err = swarm.Run(ctx)
	stop()
	if err != nil {
		return err
	}
	report(os.Stdout, swarm)
	if *against != "" {
		fmt.Println("waiting for the server to close its books")
		time.Sleep(settle)
	}
	return compareFiles(os.Stdout, *against, book.Name())
}

// settle is how long a server may take to notice that a client has left: its
// timeout, where all three Disconnects were lost.
const settle = 6 * time.Second

// createLedger creates a file, or a temporary one.
func createLedger(name, pattern string) (*os.File, error) {
	if name == "" {
		return os.CreateTemp("", pattern)
	}
	return os.Create(name)
}

// compare compares two ledgers.
func compare(args []string) error {
	flags := flag.NewFlagSet("arena compare", flag.ContinueOnError)
	if err := flags.Parse(args); err != nil || flags.NArg() != 2 {
		fmt.Fprint(os.Stderr, usage)
		return errUsage
	}
	return compareFiles(os.Stdout, flags.Arg(0), flags.Arg(1))
}

// compareFiles compares the ledgers of a server and of clients; without the
// server's it checks what the clients' says by itself.
func compareFiles(out io.Writer, server, clients string) error {
	theirs, err := readLedger(clients)
	if err != nil {
		return err
	}
	var ours []*ledger.Session
	if server != "" {
		if ours, err = readLedger(server); err != nil {
			return err
		}
	}
	r := ledger.Compare(ours, theirs)
	fmt.Fprintln(out, "ledgers:", r)
	for _, p := range r.Problems[:min(len(r.Problems), 20)] {
		fmt.Fprintln(out, "  ", p)
	}
	if len(r.Problems) > 0 {
		return fmt.Errorf("%w: %d problems", errLedger, len(r.Problems))
	}
	return nil
}

func readLedger(name string) ([]*ledger.Session, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return ledger.Read(f)
}
