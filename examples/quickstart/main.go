// Quickstart sends the lines of a text over a bad network, in both directions at
// once, and checks that every line is delivered exactly once and unchanged.
//
//	go run ./examples/quickstart
//
// Two peers, a client with 60 ticks a second and a server with 20, talk over UDP
// sockets on this machine. A relay between them loses, delays, reorders and
// duplicates datagrams. They are encrypted; -plain leaves that away, to look at them
// on the wire. Each peer sends its state on every tick, unreliably, and the
// lines as events, reliably. Start reading at [peer]: its methods Receive, tick and
// Due are all that a game needs.
package main

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
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

	// spread is the time over which the lines are sent, so that there is something
	// to watch: sent at once, the default text fits into ten datagrams. A text that
	// is too long to be sent in this time takes longer.
	spread = 6 * time.Second
)

// The exit codes.
const (
	exitFailed      = 1
	exitUsage       = 2
	exitInterrupted = 130 // what shells report after Ctrl-C
)

func main() {
	// The first Ctrl-C closes the sessions, a second one ends the program at once.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	context.AfterFunc(ctx, stop)
	p := &progress{out: os.Stdout}
	if _, ok := columns(os.Stdout); ok {
		p.columns = func() int { n, _ := columns(os.Stdout); return n }
	}
	os.Exit(run(ctx, os.Args[1:], spread, p, os.Stderr))
}

// run is the whole program. It returns the exit code.
func run(ctx context.Context, args []string, spread time.Duration, p *progress, errOut io.Writer) int {
	out := &checkedWriter{Writer: p.out}
	p.out = out
	code := start(ctx, args, spread, p, errOut)
	if code == 0 && out.err != nil {
		fmt.Fprintln(errOut, "quickstart: the output is incomplete:", out.err)
		return exitFailed
	}
	return code
}

// start reads the flags and the text, then makes the peers and runs them.
func start(ctx context.Context, args []string, spread time.Duration, p *progress, errOut io.Writer) int {
	o, err := parse(args)
	if errors.Is(err, flag.ErrHelp) {
		usage(p.out)
		return 0
	}
	var s script
	if err == nil {
		s, err = readScript(ctx, o.in, o.events, o.maxLine())
	}
	if errors.Is(err, context.Canceled) {
		fmt.Fprintf(errOut, "quickstart: interrupted while reading %s\n", o.in)
		return exitInterrupted
	}
	if err != nil {
		fmt.Fprintln(errOut, "quickstart:", err)
		return exitUsage
	}

	clock := new(ackbits.ManualClock)
	client, server, err := newPeers(o, clock, s, spread)
	if err == nil {
		_, err = fmt.Fprintf(p.out, "%d lines in each direction, %s\n", s.count, o)
	}
	var traffic traffic
	if err == nil {
		traffic, err = connectAndWatch(ctx, client, server, clock, o, p)
	}
	if err != nil {
		fmt.Fprintln(errOut, "quickstart:", err)
		return exitFailed
	}
	summary(p.out, client, server, traffic)
	return conclude(ctx, client, server, traffic, p.out, errOut)
}

// newPeers makes the two peers. What they have to agree on, the token and the keys,
// is random and new for each session. Here one function makes both sides of it; in
// a game the handshake does: package endpoint has one.
func newPeers(o options, clock *ackbits.ManualClock, s script, spread time.Duration) (client, server *peer, err error) {
	var token [8]byte
	_, _ = rand.Read(token[:]) // never fails
	cfg := ackbits.Config{
		Token:     binary.LittleEndian.Uint64(token[:]),
		LossDelay: 250 * time.Millisecond, // shows losses in the progress line sooner; a game needs no LossDelay
	}
	if o.virtual {
		cfg.Clock = clock
	}
	clientCfg, serverCfg := cfg, cfg
	if !o.plain {
		// One key for each direction: the same key for both would be unsafe.
		up, down := newKey(), newKey()
		clientCfg.Seal, clientCfg.Open = up, down
		serverCfg.Seal, serverCfg.Open = down, up
	}
	client, err = newPeer("client", clientRate, ackbits.TypeInput, clientCfg, s, spread)
	if err != nil {
		return nil, nil, err
	}
	server, err = newPeer("server", serverRate, ackbits.TypeSnapshot, serverCfg, s, spread)
	return client, server, err
}

// newKey returns AES-256-GCM with a random key.
func newKey() cipher.AEAD {
	var key [32]byte
	_, _ = rand.Read(key[:]) // never fails
	block, err := aes.NewCipher(key[:])
	if err != nil {
		panic(err) // cannot happen: the key has a valid length
	}
	aead, err := cipher.NewGCM(block)
	if err != nil {
		panic(err) // cannot happen: AES has the block size that GCM needs
	}
	return aead
}

// connectAndWatch runs the peers until both sessions have ended, and shows their
// progress.
func connectAndWatch(ctx context.Context, client, server *peer, clock *ackbits.ManualClock, o options, p *progress) (t traffic, err error) {
	conditions := simnet.Config{Delay: o.rtt / 2, Jitter: o.jitter, Loss: o.loss, Duplicate: o.dup}
	done := make(chan struct{})
	go func() {
		defer close(done)
		if o.virtual {
			t = inVirtualTime(ctx, client, server, clock, o.seed, conditions)
		} else {
			t, err = overUDP(ctx, client, server, o.seed, conditions)
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

// conclude prints whether every line arrived as it should, and returns the exit
// code.
func conclude(ctx context.Context, client, server *peer, t traffic, out, errOut io.Writer) int {
	err := errors.Join(problem(client, server), problem(server, client))
	switch {
	case err == nil:
		fmt.Fprintf(out, "\nEvery line was delivered exactly once and unchanged, in both directions, in %.1f s (hash of all lines: %v).\n", t.took.Seconds(), client.tally.digest)
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
	plain       bool
}

// sealOverhead is how many bytes sealing adds to a datagram.
const sealOverhead = 16

// maxLine returns how long a line may be: an event has to hold it and its number.
func (o options) maxLine() int {
	if o.plain {
		return ackbits.MaxEventSize - numberSize
	}
	return ackbits.MaxEventSize - sealOverhead - numberSize
}

func (o options) String() string {
	network := "over UDP"
	if o.virtual {
		network = "in virtual time"
	}
	sealed := "encrypted"
	if o.plain {
		sealed = "not encrypted"
	}
	return fmt.Sprintf("%s, %s: %.4g %% loss, round-trip time %v plus up to 2 x %v of jitter, %.4g %% duplicates, seed %d",
		network, sealed, 100*o.loss, o.rtt, o.jitter, 100*o.dup, o.seed)
}

func flags(o *options) *flag.FlagSet {
	f := flag.NewFlagSet("quickstart", flag.ContinueOnError)
	f.SetOutput(io.Discard)
	f.StringVar(&o.in, "in", "", "`file` whose lines are sent (default a poem)")
	f.IntVar(&o.events, "events", 0, "how many lines, `n`, each peer sends; a shorter text is repeated (default the whole text, once)")
	f.Float64Var(&o.loss, "loss", 0.2, "`probability` that a datagram is lost, in each direction, from 0 to 1")
	f.DurationVar(&o.rtt, "rtt", 60*time.Millisecond, "round-trip `time` of the path, without jitter, such as 60ms or 1.5s")
	f.DurationVar(&o.jitter, "jitter", 20*time.Millisecond, "greatest `time` that is added to the delay of a datagram, in each direction; it reorders them")
	f.Float64Var(&o.dup, "dup", 0.05, "`probability` that a datagram arrives twice, in each direction, from 0 to 1")
	f.Uint64Var(&o.seed, "seed", 1, "seed of the bad network, a `number`; with -virtual, the same seed gives the same output")
	f.BoolVar(&o.virtual, "virtual", false, "run in a simulation instead of over UDP, without waiting: 6 s take a few milliseconds")
	f.BoolVar(&o.plain, "plain", false, "do not encrypt, so that Wireshark and the like can show what is in the datagrams")
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
		err = fmt.Errorf("unexpected argument %q; -h lists the flags", f.Arg(0))
	case !(o.loss >= 0 && o.loss <= 1): // refuses NaN, too
		err = fmt.Errorf("-loss %v is not a probability from 0 to 1 (20 %% is 0.2)", o.loss)
	case !(o.dup >= 0 && o.dup <= 1):
		err = fmt.Errorf("-dup %v is not a probability from 0 to 1 (5 %% is 0.05)", o.dup)
	case o.rtt < 0 || o.rtt > time.Minute:
		err = fmt.Errorf("-rtt %v is not from 0s to 1m", o.rtt)
	case o.jitter < 0 || o.jitter > time.Minute:
		err = fmt.Errorf("-jitter %v is not from 0s to 1m", o.jitter)
	case o.events < 0 || o.events > maxEvents:
		err = fmt.Errorf("-events %d is not from 1 to %d, or 0 for every line once", o.events, maxEvents)
	}
	return o, err
}

func usage(out io.Writer) {
	fmt.Fprintln(out, "Sends the lines of a text over a bad network, in both directions at once, and\nchecks that every line is delivered exactly once and unchanged.")
	f := flags(new(options))
	f.SetOutput(out)
	f.PrintDefaults()
}
