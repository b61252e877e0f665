// Transfer sends a file of 64 MiB beside a game, over real UDP sockets on this machine
// and through a narrow relay that loses datagrams, and shows that the game's states do
// not notice.
//
//	go -C examples/transfer run .
//
// Press Ctrl-C and run it again: it goes on where it was. At the end the SHA-256 of what
// was stored is that of what was sent. Start reading at [peer]: it is the loop of a game
// with a transfer beside it; [store] is where a file goes and what is kept of it between
// two runs.
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
	"path/filepath"
	"time"

	"github.com/ackbits/ackbits/simnet"
	"github.com/ackbits/ackbits/transfer"
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
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// options are the flags.
type options struct {
	in, out string
	size    int64
	mbit    float64
	loss    float64
	rtt     time.Duration
	seed    uint64
	limit   float64
	alone   time.Duration
}

func parse(args []string, errOut io.Writer) (o options, err error) {
	f := flag.NewFlagSet("transfer", flag.ContinueOnError)
	f.SetOutput(errOut)
	var mib float64
	f.StringVar(&o.in, "in", "", "the `file` to send (default one that is made up)")
	f.StringVar(&o.out, "out", filepath.Join(os.TempDir(), "ackbits-transfer"), "the `file` it is stored as; one that is not complete has .part and .have behind its name")
	f.Float64Var(&mib, "size", 64, "`MiB` of the file that is made up")
	f.Float64Var(&o.mbit, "rate", 20, "`Mbit/s` of the relay, each way")
	f.Float64Var(&o.loss, "loss", 0.01, "`probability` that the relay loses a datagram, from 0 to 1")
	f.DurationVar(&o.rtt, "rtt", 40*time.Millisecond, "round trip `time` of the path")
	f.Uint64Var(&o.seed, "seed", 1, "decides which datagrams are lost")
	f.Float64Var(&o.limit, "limit", 0, "`Mbit/s` that the transfer may take; 0: what the game leaves")
	f.DurationVar(&o.alone, "alone", 2*time.Second, "the `time` for which the game is played without the transfer first, to compare")
	if err := f.Parse(args); err != nil {
		return o, err
	}
	o.size = int64(mib * (1 << 20))
	switch {
	case f.NArg() > 0:
		err = fmt.Errorf("what is %q for? There are only flags, and -h lists them", f.Arg(0))
	case !(o.loss >= 0 && o.loss < 1):
		err = fmt.Errorf("-loss %v: a probability is from 0 to below 1 (1 %% is 0.01)", o.loss)
	case !(o.mbit >= 0.1 && o.mbit <= 1000):
		err = fmt.Errorf("-rate %v: from 0.1 to 1000 Mbit/s", o.mbit)
	case !(mib >= 0 && mib <= 1<<20):
		err = fmt.Errorf("-size %v: from 0 to 1048576 MiB", mib)
	case o.rtt < 0 || o.rtt > 10*time.Second:
		err = fmt.Errorf("-rtt %v: from 0s to 10s", o.rtt)
	case !(o.limit >= 0 && o.limit <= 1000):
		err = fmt.Errorf("-limit %v: from 0 to 1000 Mbit/s", o.limit)
	}
	if err != nil {
		fmt.Fprintln(errOut, "transfer:", err)
	}
	return o, err
}

// run is the program; what it returns is the exit code.
func run(ctx context.Context, args []string, out, errOut io.Writer) int {
	o, err := parse(args, errOut)
	if errors.Is(err, flag.ErrHelp) {
		return 0
	} else if err != nil {
		return exitUsage
	}
	if err := send(ctx, o, out); errors.Is(err, context.Canceled) {
		fmt.Fprintln(errOut, "Interrupted. Run it again to go on.")
		return exitInterrupted
	} else if err != nil {
		fmt.Fprintln(errOut, "transfer:", err)
		return exitFailed
	}
	return 0
}

// send plays the game from the first tick to the last chunk.
func send(ctx context.Context, o options, out io.Writer) error {
	source, size, err := open(o)
	if err != nil {
		return err
	}
	defer source.Close()
	target := &store{path: o.out}
	defer target.close()

	// Both sides need the same token, a fresh random one for each session. A game's
	// handshake would agree on it.
	var token [8]byte
	_, _ = rand.Read(token[:]) // never fails
	cfg := config{token: binary.LittleEndian.Uint64(token[:]), limit: int(o.limit * 1e6 / 8)}
	client, err1 := newPeer(cfg, target)
	server, err2 := newPeer(cfg, nil)
	if err := errors.Join(err1, err2); err != nil {
		return err
	}
	rate := int(o.mbit * 1e6 / 8)
	conditions := simnet.Config{Delay: o.rtt / 2, Loss: o.loss, Rate: rate, Queue: max(rate/10, 4<<10), Overhead: simnet.UDPOverIPv4}
	fmt.Fprintf(out, "%.1f MiB through %g Mbit/s with %g %% loss and a round trip of %v, to %s\n", float64(size)/(1<<20), o.mbit, 100*o.loss, o.rtt, o.out)

	network, err := connect(client, server, o.seed, conditions)
	if err != nil {
		return err
	}
	defer network.Close()
	name := "a map"
	if o.in != "" {
		name = filepath.Base(o.in)
	}
	server.later(o.alone, func() { server.offer(name, source, size) })
	watch(ctx, out, client, size)
	if ctx.Err() != nil {
		client.leave()
	}
	network.wait()
	return conclude(ctx, out, client, server, target, rate)
}

// conclude says how it went.
func conclude(ctx context.Context, out io.Writer, client, server *peer, target *store, rate int) error {
	r := client.result()
	before, during := quantile(r.before, 0.99), quantile(r.during, 0.99)
	fmt.Fprintf(out, "states, p99: %v without the transfer, %v beside it\n", before.Round(100*time.Microsecond), during.Round(100*time.Microsecond))
	switch {
	case r.err == io.EOF:
		took := r.ended.Sub(r.began)
		fmt.Fprintf(out, "%.1f MiB in %.1f s, %.0f %% of the relay's rate with all headers\n", float64(r.got)/(1<<20), took.Seconds(), 100*float64(r.wire)/took.Seconds()/float64(rate))
		if err := target.finish(); err != nil {
			return err
		}
		fmt.Fprintf(out, "stored, and its SHA-256 is that of what was sent: %x\n", r.digest)
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(r.err, transfer.ErrDigest):
		target.discard()
		return fmt.Errorf("%w: what was there is thrown away, run it again", r.err)
	}
	if target.err != nil {
		return target.err
	}
	if r.ended.IsZero() { // no file came: the server knows why
		return server.result().err
	}
	return r.err
}

// file is what is sent.
type file interface {
	io.ReaderAt
	io.Closer
}

// open opens what is to be sent.
func open(o options) (file, int64, error) {
	if o.in == "" {
		return landscape{o.size}, o.size, nil
	}
	f, err := os.Open(o.in)
	if err != nil {
		return nil, 0, err
	}
	info, err := f.Stat()
	if err != nil {
		f.Close()
		return nil, 0, err
	}
	return f, info.Size(), nil
}

// landscape is a file that is made up: the same in each run, no two places alike.
type landscape struct{ size int64 }

func (l landscape) ReadAt(p []byte, off int64) (n int, err error) {
	var word [8]byte
	for ; n < len(p) && off < l.size; n, off = n+1, off+1 {
		if n == 0 || off%8 == 0 {
			x := uint64(off/8)*0x9e3779b97f4a7c15 + 1 // a step of SplitMix64
			x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
			x = (x ^ x>>27) * 0x94d049bb133111eb
			binary.LittleEndian.PutUint64(word[:], x^x>>31)
		}
		p[n] = word[off%8]
	}
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

func (landscape) Close() error { return nil }
