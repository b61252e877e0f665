// Ordering sends the same events in three ways over the same bad network, in
// virtual time, and prints what each way costs.
//
//	go run ./examples/ordering
//
// The three ways are:
//
//   - unordered: events of a Session, each delivered when it arrives;
//   - ordered: events of a Session whose receiver has Config.Ordered set, delivered
//     in the order in which they were sent. The datagrams are the same;
//   - lane: events of an OrderedLane, which travel in the application datagrams of
//     a Session. See the package lane.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/ackbits/ackbits"
	"github.com/ackbits/ackbits/simnet"
)

const advice = `
Which to take: unordered for events that do not depend on one another. Ordered if each event must follow the one before:
it sends the same datagrams, and the receiver keeps the events that follow a lost one until that arrives. The lane if your
packets have a layout of their own, if less important events should be refused while many are undelivered, or if the receiver
must not buffer anything: it drops the events that follow a lost one, and the sender retransmits them all.
`

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

// run is the program; what it returns is the exit code.
func run(args []string, out, errOut io.Writer) int {
	var s setting
	f := flag.NewFlagSet("ordering", flag.ContinueOnError)
	f.SetOutput(errOut)
	f.Float64Var(&s.loss, "loss", 0.05, "`probability` that a datagram is lost, in each direction, from 0 to below 1")
	f.DurationVar(&s.rtt, "rtt", 80*time.Millisecond, "round-trip `time` of the path, from 0s to 2s")
	f.IntVar(&s.rate, "rate", 20, "events a second, from 1 to 200")
	f.IntVar(&s.events, "events", 5000, "how many events are sent, from 1 to 1000000")
	f.Uint64Var(&s.seed, "seed", 1, "seed of the simulated network: decides which datagrams are lost")
	if err := f.Parse(args); errors.Is(err, flag.ErrHelp) {
		return 0
	} else if err != nil {
		return 2
	}
	if err := s.check(f.Args()); err != nil {
		fmt.Fprintln(errOut, "ordering:", err)
		return 2
	}

	if err := s.compare(out); err != nil {
		fmt.Fprintln(errOut, "ordering:", err)
		return 1
	}
	return 0
}

// compare measures the three ways and prints a table.
func (s *setting) compare(out io.Writer) error {
	fmt.Fprintf(out, "%d events of %d bytes, %d a second; round-trip time %v, %g %% loss, seed %d\n\n",
		s.events, eventSize, s.rate, s.rtt, s.loss*100, s.seed)
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "\tmean ms\tp50\tp99\tmax\tcopies\tbytes\tsender keeps\treceiver keeps\t")
	for _, way := range []struct {
		name string
		open func(ackbits.Config) (end, error)
	}{{"unordered", openUnordered}, {"ordered", openOrdered}, {"lane", openLane}} {
		r, err := s.measure(way.open)
		if err != nil {
			return fmt.Errorf("%s: %w", way.name, err)
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%.2f\t%.0f\t%d\t%d\t\n", way.name,
			ms(r.mean()), ms(r.quantile(0.5)), ms(r.quantile(0.99)), ms(r.quantile(1)), r.copies, r.bytes, r.waiting, r.held)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(out, `
The first four columns are the latency, in milliseconds from Send to delivery. Copies is how often each event was sent, bytes
what both sides sent for each event, beyond the state datagrams that they send anyway. The last two columns are the most events
that a side kept at one time.
%s`, advice)
	return err
}

func ms(d time.Duration) string { return fmt.Sprint(d.Round(time.Millisecond).Milliseconds()) }

// setting is the network and the traffic, the same for all three ways.
type setting struct {
	loss         float64
	rtt          time.Duration
	rate, events int
	seed         uint64
}

func (s *setting) check(rest []string) error {
	switch {
	case len(rest) > 0:
		return fmt.Errorf("unexpected argument %q", rest[0])
	case !(s.loss >= 0 && s.loss < 1):
		return fmt.Errorf("-loss %v is not from 0 to below 1", s.loss)
	case s.rtt < 0 || s.rtt > 2*time.Second:
		return fmt.Errorf("-rtt %v is not from 0 to 2s", s.rtt)
	case s.rate < 1 || s.rate > 200:
		return fmt.Errorf("-rate %d is not from 1 to 200", s.rate)
	case s.events < 1 || s.events > 1_000_000:
		return fmt.Errorf("-events %d is not from 1 to 1000000", s.events)
	}
	return nil
}

// Beside the events, both sides send their state, as a game does: the sender on
// each of its 60 ticks a second, the receiver on every third.
const (
	tickRate      = 60
	receiverEvery = 3
	stateSize     = 100
	eventSize     = 64
)

// result is what one run measured.
type result struct {
	latencies     []time.Duration // sorted
	copies, bytes float64         // for each event
	waiting, held int             // the most events that the sender kept at one time, and the receiver
}

func (r *result) quantile(q float64) time.Duration {
	return r.latencies[min(int(q*float64(len(r.latencies))), len(r.latencies)-1)]
}

func (r *result) mean() (sum time.Duration) {
	for _, l := range r.latencies {
		sum += l
	}
	return sum / time.Duration(len(r.latencies))
}

var errMissing = errors.New("events did not arrive")

// measure sends the events in one of the ways.
func (s *setting) measure(open func(ackbits.Config) (end, error)) (result, error) {
	clock := new(ackbits.ManualClock)
	clock.Set(time.Unix(0, 0))
	cfg := ackbits.Config{Token: s.seed, Clock: clock, PollInterval: time.Second / tickRate, Backlog: 4096}
	from, errFrom := open(cfg)
	to, errTo := open(cfg)
	if err := errors.Join(errFrom, errTo); err != nil {
		return result{}, err
	}
	a, b := &side{end: from}, &side{end: to}
	link := simnet.Config{Delay: s.rtt / 2, Loss: s.loss}
	pair := simnet.NewPair(s.seed, clock, a, b, link, link)

	var r result
	sentAt := make([]time.Duration, 0, s.events)
	b.deliver = func(event []byte) { r.latencies = append(r.latencies, pair.Now()-sentAt[number(event)]) }
	ticks := 0
	pair.Every(tickRate, time.Second, func() {
		ticks++
		due := min(ticks*s.rate/tickRate, s.events)
		for len(sentAt) < due {
			if err := from.send(event(len(sentAt))); err != nil {
				return // the session has ended: from.err says why
			}
			sentAt = append(sentAt, pair.Now())
		}
		pair.Send(simnet.AToB, a.state())
		if ticks%receiverEvery == 0 {
			pair.Send(simnet.BToA, b.state())
		}
		r.waiting, r.held = max(r.waiting, from.waiting()), max(r.held, to.held())
	})
	limit := time.Duration(s.events)*time.Second/time.Duration(s.rate) + time.Minute
	pair.RunUntil(func() bool {
		return from.err() != nil || to.err() != nil || len(sentAt) == s.events && from.waiting() == 0
	}, limit)
	if err := errors.Join(from.err(), to.err()); err != nil {
		return result{}, err
	}
	if len(r.latencies) != s.events {
		return result{}, fmt.Errorf("%w: %d of %d", errMissing, s.events-len(r.latencies), s.events)
	}

	var sent uint64
	for _, p := range []*side{a, b} {
		st := p.end.stats()
		sent += st.BytesSent + simnet.UDPOverIPv4*st.DatagramsSent - p.states*(simnet.UDPOverIPv4+stateSize)
	}
	r.copies = float64(from.copies()) / float64(s.events)
	r.bytes = float64(sent) / float64(s.events)
	slices.Sort(r.latencies)
	return r, nil
}
