// Broadcast is a chat over a bad network, in virtual time, in which both hops are
// reliable: a client sends its lines over a lane of its own until the server has
// them, and the server keeps a lane for each recipient and sends every line to
// each of them until that one has it.
//
//	go run ./examples/broadcast
//
// It prints what each client received. All received the same lines in the same
// order, the order in which the server got them, though not at the same time.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/ackbits/ackbits"
	"github.com/ackbits/ackbits/examples/ordering/lane"
	"github.com/ackbits/ackbits/simnet"
)

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

// run is the program; what it returns is the exit code.
func run(args []string, out, errOut io.Writer) int {
	f := flag.NewFlagSet("broadcast", flag.ContinueOnError)
	f.SetOutput(errOut)
	loss := f.Float64("loss", 0.2, "`probability` that a datagram is lost, each way, from 0 to 0.9")
	rtt := f.Duration("rtt", 80*time.Millisecond, "round trip `time` of the paths")
	lines := f.Int("lines", 4, "lines that each client sends, from 1 to 200")
	seed := f.Uint64("seed", 1, "decides which datagrams are lost")
	if err := f.Parse(args); errors.Is(err, flag.ErrHelp) {
		return 0
	} else if err != nil {
		return 2
	}
	if f.NArg() > 0 || !(*loss >= 0 && *loss <= 0.9) || *rtt < 0 || *rtt > time.Second || *lines < 1 || *lines > 200 {
		fmt.Fprintln(errOut, "broadcast: a value is out of range, see -h")
		return 2
	}

	names := []string{"alice", "bob", "carol"}
	r, err := newRoom(names, *seed, simnet.Config{Delay: *rtt / 2, Jitter: *rtt / 8, Loss: *loss})
	if err == nil {
		err = r.play(*lines)
	}
	if err != nil {
		fmt.Fprintln(errOut, "broadcast:", err)
		return 1
	}
	if err := r.report(out); err != nil {
		fmt.Fprintln(errOut, "broadcast:", err)
		return 1
	}
	return 0
}

// end is one end of a connection: a lane and the link that its datagrams take.
type end struct {
	*lane.Conn
	out *simnet.Link
}

// flush sends what is due.
func (e *end) flush(now time.Duration) {
	e.Due(func(datagram []byte) { e.out.Send(now, datagram) })
}

// receive takes in what has arrived over a link and hands each line to apply.
func (e *end) receive(now time.Duration, in *simnet.Link, apply func(line string) error) error {
	for datagram, ok := in.Receive(now); ok; datagram, ok = in.Receive(now) {
		line, ok, _, err := e.Conn.Receive(datagram)
		if err != nil {
			return err
		}
		if ok {
			if err := apply(string(line)); err != nil {
				return err
			}
		}
		e.flush(now)
	}
	return nil
}

// client is a client and the server's end of its connection.
type client struct {
	name     string
	own      end // the client's
	served   end // the server's
	received []heard
}

// heard is a line as a client received it.
type heard struct {
	line string
	at   time.Duration
}

// room is the whole world: a server and its clients.
type room struct {
	clock   ackbits.ManualClock
	now     time.Duration
	clients []*client
	log     []string // the lines in the order in which the server got them
}

func newRoom(names []string, seed uint64, link simnet.Config) (*room, error) {
	r := new(room)
	r.clock.Set(time.Unix(0, 0))
	for i, name := range names {
		c := &client{name: name}
		for k, e := range []*end{&c.own, &c.served} {
			// Each connection has a token from its handshake, and fresh lanes.
			conn, err := lane.New(ackbits.Config{Token: seed<<8 + uint64(i), Clock: &r.clock}, ackbits.LaneConfig{})
			if err != nil {
				return nil, err
			}
			*e = end{conn, simnet.NewLink(seed*64+uint64(2*i+k), link)}
		}
		r.clients = append(r.clients, c)
	}
	return r, nil
}

// broadcast is the second hop. A recipient whose lane refuses a line, with 511 of
// them undelivered, would miss it for good: it has to be disconnected.
func (r *room) broadcast(line string) error {
	r.log = append(r.log, line)
	for _, c := range r.clients {
		if err := c.served.Send([]byte(line), ackbits.Critical); err != nil {
			return fmt.Errorf("%s is to be disconnected: %w", c.name, err)
		}
	}
	return nil
}

const (
	tick  = 10 * time.Millisecond
	pause = 250 * time.Millisecond // between two lines of a client
	limit = 10 * time.Minute
)

var errMissing = errors.New("lines are missing")

// play has each client say its lines, a few a second, until all have heard all.
func (r *room) play(lines int) error {
	total := lines * len(r.clients)
	for said := 0; ; r.now += tick {
		r.clock.Set(time.Unix(0, 0).Add(r.now))
		for i, c := range r.clients {
			if err := c.served.receive(r.now, c.own.out, r.broadcast); err != nil {
				return err
			}
			if err := c.own.receive(r.now, c.served.out, func(line string) error {
				c.received = append(c.received, heard{line, r.now})
				return nil
			}); err != nil {
				return err
			}
			if said < total && said%len(r.clients) == i && r.now >= time.Duration(said/len(r.clients))*pause {
				line := fmt.Sprintf("%s says %d", c.name, said/len(r.clients)+1)
				if err := c.own.Send([]byte(line), ackbits.Droppable); err != nil {
					return err
				}
				said++
			}
			c.own.flush(r.now)
			c.served.flush(r.now)
			if err := errors.Join(c.own.Err(), c.served.Err()); err != nil {
				return fmt.Errorf("%s: %w", c.name, err)
			}
		}
		if !slices.ContainsFunc(r.clients, func(c *client) bool { return len(c.received) < total }) {
			return nil
		}
		if r.now > limit {
			return errMissing
		}
	}
}

var errOrder = errors.New("a client received something else than the server sent")

// report prints who received what and when.
func (r *room) report(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(w, "\tline\t")
	for _, c := range r.clients {
		fmt.Fprintf(w, "at %s\t", c.name)
	}
	fmt.Fprintln(w)
	for i, line := range r.log {
		fmt.Fprintf(w, "%d\t%s\t", i+1, line)
		for _, c := range r.clients {
			if c.received[i].line != line {
				return fmt.Errorf("%w: %s, line %d", errOrder, c.name, i+1)
			}
			fmt.Fprintf(w, "%d ms\t", c.received[i].at.Milliseconds())
		}
		fmt.Fprintln(w)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	names := make([]string, len(r.clients))
	for i, c := range r.clients {
		names[i] = c.name
	}
	_, err := fmt.Fprintf(out, "\n%s received the same %d lines in the same order.\n", strings.Join(names, ", "), len(r.log))
	return err
}
