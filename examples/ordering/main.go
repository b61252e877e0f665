// Ordering sends the same events in three ways over the same bad network, in
// virtual time, and prints what each way costs:
//
//		go run ./examples/ordering
//
//	  - unordered: a Session's events, handed over as they arrive;
//	  - ordered: the same events and the same wire, with Config.Ordered at the
//	    receiver;
//	  - lane: an OrderedLane in the datagrams of a Session, see the package lane.
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
Take the unordered channel for events that stand on their own, and Ordered where each must follow the one before: on
the wire they are the same, and a lost event holds up those behind it only until its next copy, while they wait at the receiver.
Take the lane where the packets have a layout of their own, where droppable events should be refused before a queue bursts,
or where the receiver should keep nothing: what follows a lost event is thrown away and sent once more.
`

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

// run is the program; what it returns is the exit code.
func run(args []string, out, errOut io.Writer) int {
	var s setting
	f := flag.NewFlagSet("ordering", flag.ContinueOnError)
	f.SetOutput(errOut)
	f.Float64Var(&s.loss, "loss", 0.05, "`probability` that a datagram is lost, each way, from 0 to below 1")
	f.DurationVar(&s.rtt, "rtt", 80*time.Millisecond, "round trip `time` of the path")
	f.IntVar(&s.rate, "rate", 20, "events a second, from 1 to 200")
	f.IntVar(&s.events, "events", 5000, "how many events are sent")
	f.Uint64Var(&s.seed, "seed", 1, "decides which datagrams are lost")
	if err := f.Parse(args); errors.Is(err, flag.ErrHelp) {
		return 0
	} else if err != nil {
		return 2
	}
	if err := s.check(f.Args()); err != nil {
		fmt.Fprintln(errOut, "ordering:", err)
		return 2
	}

	fmt.Fprintf(out, "%d events of %d bytes, %d a second; round trip %v, loss %g %%, seed %d\n\n",
		s.events, eventSize, s.rate, s.rtt, s.loss*100, s.seed)
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "\tmean\tp50\tp99\tmax\tcopies\tbytes\tpeak at the sender\tat the receiver\t")
	for _, way := range []struct {
		name string
		open func(ackbits.Config) (end, error)
	}{{"unordered", openUnordered}, {"ordered", openOrdered}, {"lane", openLane}} {
		r, err := s.measure(way.open)
		if err != nil {
			fmt.Fprintf(errOut, "ordering: %s: %v\n", way.name, err)
			return 1
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%.2f\t%.0f\t%d\t%d\t\n", way.name,
			ms(r.mean()), ms(r.quantile(0.5)), ms(r.quantile(0.99)), ms(r.quantile(1)), r.copies, r.bytes, r.waiting, r.held)
	}
	if err := w.Flush(); err != nil {
		return 1
	}
	fmt.Fprintf(out, `
Milliseconds from Send to the hand-over; copies and bytes for each event, the bytes being all that both sides send
beyond their state; the peaks are the most events that one side kept at a time.
%s`, advice)
	return 0
}

func ms(d time.Duration) string { return fmt.Sprint(d.Round(time.Millisecond).Milliseconds()) }

// setting is what the three ways have in common.
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

// The traffic beside the events: both sides send their state, as a game does.
// The sender ticks at 60 Hz and sends state on each tick, the receiver on each
// third.
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
	waiting, held int             // the most events kept at the sender, and at the receiver
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

var errMissing = errors.New("events are missing")

// measure sends the events one way.
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
				return // shows in err
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
