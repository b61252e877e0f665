// Quickstart sends a text through a bad network, both ways at once, and checks
// that every line arrives exactly once and unchanged.
//
//	go run ./examples/quickstart
//
// Two peers, a client that ticks at 60 Hz and a server at 20 Hz, talk over UDP
// sockets on this machine. Between them stands a relay that loses, delays,
// reorders and duplicates datagrams. Each peer sends its state every tick, which
// may be lost, and the lines of the text as events, which may not. Start reading
// at [peer]: Receive, tick and Due are all that a game needs.
package main

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"time"

	"github.com/ackbits/ackbits"
	"github.com/ackbits/ackbits/simnet"
)

const (
	clientRate = 60 // ticks a second
	serverRate = 20

	// spread is the time over which the lines are sent, if so many fit into it:
	// all at once, the default text would be through in ten datagrams.
	spread = 6 * time.Second
)

// The exit codes.
const (
	exitFailed      = 1
	exitUsage       = 2
	exitInterrupted = 130 // as a shell has it
)

func main() {
	// The first Ctrl-C lets the peers leave properly, a second one kills.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	context.AfterFunc(ctx, stop)
	out := &progress{out: os.Stdout, terminal: isTerminal(os.Stdout)}
	os.Exit(run(ctx, os.Args[1:], spread, out, os.Stderr))
}

// run is the program; what it returns is the exit code.
func run(ctx context.Context, args []string, spread time.Duration, p *progress, errOut io.Writer) int {
	o, err := parse(args)
	if errors.Is(err, flag.ErrHelp) {
		usage(p.out)
		return 0
	}
	var s script
	if err == nil {
		s, err = readScript(o.in, o.events)
	}
	if err != nil {
		fmt.Fprintln(errOut, "quickstart:", err)
		return exitUsage
	}

	// Both sides need the same token, a fresh random one for each session. A
	// game's handshake would agree on it.
	var token [8]byte
	_, _ = rand.Read(token[:]) // never fails
	cfg := ackbits.Config{
		Token:     binary.LittleEndian.Uint64(token[:]),
		LossDelay: 250 * time.Millisecond, // for a progress line that tells of losses soon; else leave it
	}
	clock := new(ackbits.ManualClock)
	if o.virtual {
		cfg.Clock = clock
	}
	client, err1 := newPeer("client", clientRate, ackbits.TypeInput, cfg, s, spread)
	server, err2 := newPeer("server", serverRate, ackbits.TypeSnapshot, cfg, s, spread)
	if err := errors.Join(err1, err2); err != nil {
		fmt.Fprintln(errOut, "quickstart:", err)
		return exitFailed
	}

	fmt.Fprintf(p.out, "Lines each way: %d, %s\n", s.count, o)
	traffic, err := connectAndWatch(ctx, client, server, clock, o, p)
	if err != nil {
		fmt.Fprintln(errOut, "quickstart:", err)
		return exitFailed
	}
	summary(p.out, client, server, traffic)
	return conclude(ctx, client, server, traffic, p.out, errOut)
}

// connectAndWatch runs the peers to the end and draws their progress.
func connectAndWatch(ctx context.Context, client, server *peer, clock *ackbits.ManualClock, o options, p *progress) (t traffic, err error) {
	weather := simnet.Config{Delay: o.rtt / 2, Jitter: o.jitter, Loss: o.loss, Duplicate: o.dup}
	done := make(chan struct{})
	go func() {
		defer close(done)
		if o.virtual {
			t = inVirtualTime(ctx, client, server, clock, o.seed, weather)
		} else {
			t, err = overUDP(ctx, client, server, o.seed, weather)
		}
	}()
	redraw := time.NewTicker(p.interval())
	defer redraw.Stop()
	for {
		select {
		case <-redraw.C:
			p.draw(client, server)
		case <-done:
			p.end(client, server)
			return t, err
		}
	}
}

// conclude says whether all is well, and returns the exit code.
func conclude(ctx context.Context, client, server *peer, t traffic, out, errOut io.Writer) int {
	err := errors.Join(verdict(client, server), verdict(server, client))
	switch {
	case err == nil:
		fmt.Fprintf(out, "\nEvery line arrived exactly once and unchanged, both ways, in %.1f s (hash of all: %v).\n", t.took.Seconds(), client.tally.digest)
		return 0
	case ctx.Err() != nil:
		fmt.Fprintf(errOut, "\nInterrupted after %.1f s:\n%v\n", t.took.Seconds(), err)
		return exitInterrupted
	default:
		fmt.Fprintf(errOut, "\nFailed after %.1f s:\n%v\n", t.took.Seconds(), err)
		return exitFailed
	}
}

// options are the flags.
type options struct {
	in          string
	events      int
	loss, dup   float64
	rtt, jitter time.Duration
	seed        uint64
	virtual     bool
}

func (o options) String() string {
	network := "over UDP"
	if o.virtual {
		network = "in virtual time"
	}
	return fmt.Sprintf("%s: %.4g %% loss, %v round trip and up to 2 x %v jitter, %.4g %% duplicates, seed %d",
		network, 100*o.loss, o.rtt, o.jitter, 100*o.dup, o.seed)
}

func flags(o *options) *flag.FlagSet {
	f := flag.NewFlagSet("quickstart", flag.ContinueOnError)
	f.SetOutput(io.Discard)
	f.StringVar(&o.in, "in", "", "the `file` whose lines are sent (default a poem)")
	f.IntVar(&o.events, "events", 0, "send `n` lines each way, repeating the text if need be (default all, once)")
	f.Float64Var(&o.loss, "loss", 0.2, "`probability` that a datagram is lost, each way, from 0 to 1")
	f.DurationVar(&o.rtt, "rtt", 60*time.Millisecond, "round trip `time` of the path, without jitter, such as 60ms or 1.5s")
	f.DurationVar(&o.jitter, "jitter", 20*time.Millisecond, "the most `time` by which a datagram is late, each way; what reorders them")
	f.Float64Var(&o.dup, "dup", 0.05, "`probability` that a datagram comes twice, each way, from 0 to 1")
	f.Uint64Var(&o.seed, "seed", 1, "decides which datagrams suffer; with -virtual, the `number` decides everything")
	f.BoolVar(&o.virtual, "virtual", false, "simulate in virtual time, which takes next to none, instead of over UDP")
	return f
}

func parse(args []string) (o options, err error) {
	f := flags(&o)
	if err := f.Parse(args); errors.Is(err, flag.ErrHelp) {
		return o, err
	} else if err != nil {
		return o, fmt.Errorf("%w; -h shows what the flags take", err)
	}
	switch {
	case f.NArg() > 0:
		err = fmt.Errorf("what is %q for? There are only flags, and -h lists them", f.Arg(0))
	case !(o.loss >= 0 && o.loss <= 1): // so that NaN is refused too
		err = fmt.Errorf("-loss %v: a probability is from 0 to 1 (20 %% is 0.2)", o.loss)
	case !(o.dup >= 0 && o.dup <= 1):
		err = fmt.Errorf("-dup %v: a probability is from 0 to 1 (5 %% is 0.05)", o.dup)
	case o.rtt < 0 || o.rtt > time.Minute:
		err = fmt.Errorf("-rtt %v: from 0s to 1m", o.rtt)
	case o.jitter < 0 || o.jitter > time.Minute:
		err = fmt.Errorf("-jitter %v: from 0s to 1m", o.jitter)
	case o.events < 0 || o.events > maxEvents:
		err = fmt.Errorf("-events %d: from 1 to %d, or 0 for every line once", o.events, maxEvents)
	}
	return o, err
}

func usage(out io.Writer) {
	fmt.Fprintln(out, "Sends a text through a bad network, both ways at once, and checks that every\nline arrives exactly once and unchanged.")
	f := flags(new(options))
	f.SetOutput(out)
	f.PrintDefaults()
}
