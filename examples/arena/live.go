package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"github.com/ackbits/ackbits/examples/arena/bots"
	"github.com/ackbits/ackbits/examples/arena/server"
)

// showLive prints a line a second about a swarm, and about a server unless it is
// nil, until stop is called.
func showLive(out io.Writer, swarm *bots.Swarm, s *server.Server) (stop func()) {
	done, stopped := make(chan struct{}), make(chan struct{})
	fmt.Fprintf(out, "%5s %7s %9s %9s %9s %8s %7s %7s %8s %8s %s\n", "time", "playing",
		"sent/s", "recv/s", "events/s", "copies/s", "loss", "rtt p50", "ev p50", "ev p99", "server")
	go func() {
		defer close(stopped)
		ticker := time.NewTicker(time.Second)
		defer ticker.Stop()
		start, last := time.Now(), new(bots.Sum)
		for {
			select {
			case <-done:
				return
			case now := <-ticker.C:
				sum := swarm.Sum()
				printLine(out, now.Sub(start), last, sum, s)
				last = sum
			}
		}
	}()
	return func() {
		close(done)
		<-stopped
	}
}

func printLine(out io.Writer, at time.Duration, last, sum *bots.Sum, s *server.Server) {
	a, b := &last.Stats, &sum.Stats
	decided := b.Delivered + b.Lost - a.Delivered - a.Lost
	loss := 0.0
	if decided > 0 {
		loss = float64(b.Lost-a.Lost) / float64(decided)
	}
	line := fmt.Sprintf("%4.0fs %7d %9d %9d %9d %8d %6.1f%% %7s %8s %8s", at.Seconds(), sum.Playing,
		b.DatagramsSent-a.DatagramsSent, b.DatagramsReceived-a.DatagramsReceived,
		b.EventsReceived-a.EventsReceived, b.EventsDuplicate-a.EventsDuplicate, 100*loss,
		ms(sum.RTTs.Quantile(0.5)), ms(sum.Events.Quantile(0.5)), ms(sum.Events.Quantile(0.99)))
	if s != nil {
		c := s.Counters()
		line += fmt.Sprintf(" %d players, %d dropped, %d late ticks", s.Players(),
			c.Foreign.Load()+c.Malformed.Load()+c.Throttled.Load(), c.LateTicks.Load())
	}
	fmt.Fprintln(out, line)
}

func ms(d time.Duration) string { return fmt.Sprintf("%.1fms", float64(d)/float64(time.Millisecond)) }

// report prints what a swarm did in all, and how its sessions ended.
func report(out io.Writer, swarm *bots.Swarm) {
	sum := swarm.Sum()
	fmt.Fprintf(out, "%d sessions: %d datagrams sent, %d received, %d withheld, %d acknowledgements outrun\n",
		sum.Sessions, sum.Stats.DatagramsSent, sum.Stats.DatagramsReceived, sum.Stats.Withheld, sum.Stats.AcksOutrun)
	fmt.Fprintf(out, "events: %d received, p50 %s, p99 %s, p99.9 %s\n", sum.Stats.EventsReceived,
		ms(sum.Events.Quantile(0.5)), ms(sum.Events.Quantile(0.99)), ms(sum.Events.Quantile(0.999)))
	if sum.Maps.Count() > 0 {
		fmt.Fprintf(out, "maps: %d loaded, p50 %s, p99 %s\n", sum.Maps.Count(), ms(sum.Maps.Quantile(0.5)), ms(sum.Maps.Quantile(0.99)))
	}
	reasons := swarm.Reasons()
	for _, reason := range slices.Sorted(maps.Keys(reasons)) {
		fmt.Fprintf(out, "ended: %d × %s\n", reasons[reason], reason)
	}
}
