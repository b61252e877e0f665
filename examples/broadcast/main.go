// Broadcast is a chat over a bad network, in virtual time. Three clients send lines
// to a server, and the server sends each line to all of them. Both hops are reliable
// and ordered: each connection has an OrderedLane in either direction, which
// retransmits a line until it is acknowledged.
//
//	go run ./examples/broadcast
//
// It prints when each client received which line. All clients receive the same
// lines in the same order, the order in which the server received them, though not
// at the same time.
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
	loss := f.Float64("loss", 0.2, "`probability` that a datagram is lost, in each direction, from 0 to 0.9")
	rtt := f.Duration("rtt", 80*time.Millisecond, "round-trip `time` between a client and the server, from 0s to 1s")
	lines := f.Int("lines", 4, "how many lines each client sends, from 1 to 200")
	seed := f.Uint64("seed", 1, "seed of the simulated network: decides which datagrams are lost")
	if err := f.Parse(args); errors.Is(err, flag.ErrHelp) {
		return 0
	} else if err != nil {
		return 2
	}
	var err error
	switch {
	case f.NArg() > 0:
		err = fmt.Errorf("unexpected argument %q", f.Arg(0))
	case !(*loss >= 0 && *loss <= 0.9): // refuses NaN, too
		err = fmt.Errorf("-loss %v is not from 0 to 0.9", *loss)
	case *rtt < 0 || *rtt > time.Second:
		err = fmt.Errorf("-rtt %v is not from 0s to 1s", *rtt)
	case *lines < 1 || *lines > 200:
		err = fmt.Errorf("-lines %d is not from 1 to 200", *lines)
	}
	if err != nil {
		fmt.Fprintln(errOut, "broadcast:", err)
		return 2
	}

	names := []string{"alice", "bob", "carol"}
	r, err := newRoom(names, *seed, simnet.Config{Delay: *rtt / 2, Jitter: *rtt / 8, Loss: *loss})
	if err == nil {
		err = r.play(*lines)
	}
	if err == nil {
		err = r.report(out)
	}
	if err != nil {
		fmt.Fprintln(errOut, "broadcast:", err)
		return 1
	}
	return 0
}

// end is one end of a connection, with the link that its datagrams are sent over.
type end struct {
	*lane.Conn
	out *simnet.Link
}

// flush sends what is due.
func (e *end) flush(now time.Duration) {
	e.Due(func(datagram []byte) { e.out.Send(now, datagram) })
}

// receive processes the datagrams that have arrived over a link and calls apply for
// each line that they deliver.
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

// client is a client, and both ends of its connection to the server.
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

// room is the whole simulation: a server and its clients.
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
			// Every connection has a token of its own. Here it is made up from the
			// seed; in a real program the handshake agrees on a random one.
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

// broadcast sends a line to all clients. With 511 lines to a client undelivered the
// next one ends its lane, and the client would miss lines: it must be disconnected.
func (r *room) broadcast(line string) error {
	r.log = append(r.log, line)
	for _, c := range r.clients {
		if err := c.served.Send([]byte(line), ackbits.Critical); err != nil {
			return fmt.Errorf("%s must be disconnected: %w", c.name, err)
		}
	}
	return nil
}

const (
	tick  = 10 * time.Millisecond
	pause = 250 * time.Millisecond // between two lines of a client
	limit = 10 * time.Minute
)

var errMissing = errors.New("not every line arrived within 10 minutes")

// play lets each client send its lines, four a second, until every client has
// received all of them.
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

var errOrder = errors.New("a client received other lines than the server sent")

// report prints when each client received which line.
func (r *room) report(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(w, "\tline\t")
	for _, c := range r.clients {
		fmt.Fprintf(w, "%s got it at\t", c.name)
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
