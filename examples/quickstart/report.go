package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/ackbits/ackbits"
	"github.com/ackbits/ackbits/simnet"
)

// progress draws how things stand: over and over in one line of a terminal, or
// a line a second into anything else.
type progress struct {
	out      io.Writer
	terminal bool
	last     string // what was drawn last
}

func (p *progress) interval() time.Duration {
	if p.terminal {
		return 100 * time.Millisecond
	}
	return time.Second
}

func (p *progress) draw(client, server *peer) {
	c, s := client.status.Load(), server.status.Load()
	line := fmt.Sprintf("%5.1f s  up %d, down %d of %d  rtt %s  loss %s  resent %d  in flight %d",
		float64(c.ticks)/float64(client.rate), s.received, c.received, client.script.count,
		milliseconds(c.RTT), percent(c.Lost+s.Lost, c.Lost+s.Lost+c.Delivered+s.Delivered),
		c.EventsResent+s.EventsResent, c.inFlight+s.inFlight)
	if !p.terminal {
		if line != p.last {
			fmt.Fprintln(p.out, line)
			p.last = line
		}
		return
	}
	line = line[:min(len(line), 79)]                // a longer one could wrap
	fmt.Fprintf(p.out, "\r%-*s", len(p.last), line) // blanks over the rest of a longer one
	p.last = line
}

// end draws for the last time and leaves the line as it is.
func (p *progress) end(client, server *peer) {
	p.draw(client, server)
	if p.terminal {
		fmt.Fprintln(p.out)
	}
}

// summary prints what happened.
func summary(out io.Writer, client, server *peer, t traffic) {
	row := func(name string, left, right any) {
		fmt.Fprintf(out, "%-26s%18v%18v\n", name, left, right)
	}
	c, s := client.session.Stats(), server.session.Stats()
	row("each side", client.name, server.name)
	row("  events sent", c.EventsSent, s.EventsSent)
	row("    copies per event", copies(c), copies(s))
	row("    acknowledged", c.EventsDelivered, s.EventsDelivered)
	row("  events delivered to it", client.tally.lines, server.tally.lines)
	row("    delivered twice", client.tally.twice, server.tally.twice)
	row("    copies discarded", c.EventsDuplicate, s.EventsDuplicate)
	row("  states delivered to it", client.current, server.current)
	row("    discarded as old", client.older, server.older)
	row("  round trip", milliseconds(c.RTT), milliseconds(s.RTT))
	row("  ended because", end(client), end(server))
	row("the relay", "from "+client.name, "from "+server.name)
	row("  datagrams taken in", t.up.Sent, t.down.Sent)
	row("    lost", lost(t.up), lost(t.down))
	row("    duplicated", t.up.Duplicated, t.down.Duplicated)
	row("    overtaken on the way", t.up.Reordered, t.down.Reordered)
}

// copies is how often an event was sent on average.
func copies(s ackbits.Stats) string {
	if s.EventsSent == 0 {
		return "-"
	}
	return fmt.Sprintf("%.2f", float64(s.EventsSent+s.EventsResent)/float64(s.EventsSent))
}

func lost(s simnet.Stats) string {
	return fmt.Sprintf("%d (%s)", s.Lost, percent(s.Lost, s.Sent))
}

func end(p *peer) string {
	if p.session.Err() == nil {
		return "-"
	}
	return strings.TrimPrefix(p.session.Err().Error(), "ackbits: ")
}

func percent[T int | uint64](part, whole T) string {
	if whole == 0 {
		return "-"
	}
	return fmt.Sprintf("%.0f %%", 100*float64(part)/float64(whole))
}

func milliseconds(d time.Duration) string {
	if d == 0 {
		return "-"
	}
	return fmt.Sprintf("%.0f ms", float64(d)/float64(time.Millisecond))
}

// isTerminal reports whether a file is one, or a device much like it.
func isTerminal(f *os.File) bool {
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
