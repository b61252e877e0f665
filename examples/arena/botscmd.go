package main

import (
	"context"
	"crypto/ecdh"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"runtime"
	"time"

	"github.com/ackbits/ackbits/endpoint"
	"github.com/ackbits/ackbits/examples/arena/bots"
	"github.com/ackbits/ackbits/examples/arena/client"
	"github.com/ackbits/ackbits/examples/arena/ledger"
	"github.com/ackbits/ackbits/examples/arena/link"
	"github.com/ackbits/ackbits/examples/arena/server"
)

// errLedger: an event was lost, changed, or delivered twice.
var errLedger = errors.New("the ledgers do not agree")

// conditionFlags adds the flags that say how bad a network is.
func conditionFlags(flags *flag.FlagSet, c *link.Conditions) {
	flags.Float64Var(&c.Loss, "loss", c.Loss, "share of datagrams lost in each direction, from 0 to 1")
	flags.DurationVar(&c.RTT, "rtt", c.RTT, "round trip time to add")
	flags.DurationVar(&c.Jitter, "jitter", c.Jitter, "the most by which a datagram is late, each way")
}

// mapFlag adds the flag with which bots fetch the map.
func mapFlag(flags *flag.FlagSet, cfg *bots.Config) {
	flags.BoolVar(&cfg.Map, "map", cfg.Map, "fetch the map first, as people do, and play once it is there")
}

// checkConditions refuses what no network can be.
func checkConditions(c link.Conditions) error {
	if !(c.Loss >= 0 && c.Loss <= 1) || c.RTT < 0 || c.RTT > time.Minute || c.Jitter < 0 || c.Jitter > time.Minute {
		fmt.Fprintf(os.Stderr, "no network has a loss of %v, a round trip of %v and a jitter of %v\n", c.Loss, c.RTT, c.Jitter)
		return errUsage
	}
	return nil
}

// checkBots refuses a crowd that cannot be.
func checkBots(cfg *bots.Config) error {
	if cfg.N < 1 || cfg.Workers < 1 {
		fmt.Fprintf(os.Stderr, "there are no %d bots of %d workers\n", cfg.N, cfg.Workers)
		return errUsage
	}
	return checkConditions(cfg.Conditions)
}

// resolve returns the address of a server from host:port, where the host may be a
// name, and its key from the text that it prints.
func resolve(join, key string) (netip.AddrPort, *ecdh.PublicKey, error) {
	addr, err := net.ResolveUDPAddr("udp", join)
	if err != nil {
		return netip.AddrPort{}, nil, fmt.Errorf("server address %q: %w", join, err)
	}
	if addr.IP == nil || addr.IP.IsUnspecified() || addr.Port == 0 {
		return netip.AddrPort{}, nil, fmt.Errorf("server address %q: needs a host and a port", join)
	}
	to := addr.AddrPort()
	to = netip.AddrPortFrom(to.Addr().Unmap(), to.Port())
	if key != "" {
		public, err := server.DecodeKey(key)
		return to, public, err
	}
	if !to.Addr().IsLoopback() {
		fmt.Fprintln(os.Stderr, "arena: without -key whoever answers at the server's address is believed to be the server")
	}
	return to, nil, nil
}

const keyHelp = "the server's public `key`, as the server prints it; empty: whoever answers is believed"

// runBots plays with many bots and checks their ledger.
func runBots(ctx context.Context, args []string) (err error) {
	flags := flag.NewFlagSet("arena bots", flag.ContinueOnError)
	cfg := bots.Config{Seed: rand.Uint64(), Conditions: link.Conditions{Loss: 0.1, RTT: 80 * time.Millisecond}}
	flags.IntVar(&cfg.N, "n", 32, "bots")
	join := flags.String("join", "127.0.0.1:7777", "`address` of the server")
	key := flags.String("key", "", keyHelp)
	flags.IntVar(&cfg.Workers, "workers", runtime.GOMAXPROCS(0), "goroutines that run bots")
	flags.DurationVar(&cfg.Ramp, "ramp", time.Second, "they join evenly over this time")
	conditionFlags(flags, &cfg.Conditions)
	mapFlag(flags, &cfg)
	duration := flags.Duration("t", 30*time.Second, "how long to play")
	file := flags.String("ledger", "", "`file` for the ledger; empty for a temporary one, which stays if it has problems")
	against := flags.String("against", "", "the server's ledger `file`, to compare with at the end")
	unsealed := flags.Bool("unsealed", false, "sessions without encryption, as serve -unsealed")
	if err := parse(flags, args); err != nil {
		return err
	}
	if err := checkBots(&cfg); err != nil {
		return err
	}
	if *unsealed {
		cfg.AEAD = noAEAD
	}
	if cfg.Server, cfg.ServerKey, err = resolve(*join, *key); err != nil {
		return err
	}
	book, err := createLedger(*file, "arena-bots-*.ledger")
	if err != nil {
		return err
	}
	defer func() {
		book.Close()
		if *file == "" && (err == nil || errors.Is(err, errNobodyJoined)) {
			err = errors.Join(err, os.Remove(book.Name()))
		}
	}()
	cfg.Ledger = ledger.NewBook(book)
	out := new(output)
	if err := playBots(ctx, out, cfg, *duration); err != nil {
		return err
	}
	if *against != "" {
		fmt.Fprintln(out, "waiting for the server to write its ledger")
		time.Sleep(settle)
	}
	if err := compareFiles(out, *against, book.Name()); err != nil {
		return fmt.Errorf("%w; the bots' is %s", err, book.Name())
	}
	return out.err
}

// errNobodyJoined: no bot has ever played.
var errNobodyJoined = errors.New("no bot could join")

// playBots runs a swarm for a while and reports on it.
func playBots(ctx context.Context, out io.Writer, cfg bots.Config, d time.Duration) error {
	swarm, err := bots.New(cfg)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	time.AfterFunc(cfg.Ramp+time.Second, swarm.Restart) // joining is not what latencies are about
	time.AfterFunc(giveUp, func() {
		if len(swarm.Reasons()) > 0 && swarm.Sum().Sessions == 0 {
			cancel()
		}
	})
	stop := showLive(out, swarm, nil)
	err = swarm.Run(ctx)
	stop()
	if err != nil {
		return err
	}
	report(out, swarm)
	if swarm.Sum().Sessions == 0 {
		return fmt.Errorf("%w %v: %s", errNobodyJoined, cfg.Server, whyNobody(swarm.Ends(0)))
	}
	return nil
}

// whyNobody says why a bot has never played.
func whyNobody(ends []bots.End) string {
	for _, end := range ends {
		if !errors.Is(end.Err, client.ErrLeft) && !errors.Is(end.Err, endpoint.ErrNoAnswer) {
			return end.Err.Error()
		}
	}
	return "no answer; is the server running there? (arena serve)"
}

// giveUp is when bots of which none could join stop trying: after the 5 s of an
// attempt.
const giveUp = 5500 * time.Millisecond

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
// server's it checks the clients' alone.
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
