package main

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/ackbits/ackbits"
	"github.com/ackbits/ackbits/simnet"
)

// progress shows how far the peers are: in one line of a terminal that is written
// again and again, or in a new line each second if the output goes elsewhere.
type progress struct {
	out     io.Writer
	columns func() int // of the terminal, now; nil if out is none
	last    string     // what was shown last
}

// checkedWriter remembers the first error, so that not every print must check.
type checkedWriter struct {
	io.Writer
	err error
}

func (w *checkedWriter) Write(b []byte) (int, error) {
	n, err := w.Writer.Write(b)
	if w.err == nil {
		w.err = err
	}
	return n, err
}

func (p *progress) interval() time.Duration {
	if p.columns != nil {
		return 100 * time.Millisecond
	}
	return time.Second
}

func (p *progress) draw(client, server *peer) {
	c, s := client.status.Load(), server.status.Load()
	line := fmt.Sprintf("%5.1f s  up %d, down %d of %d  rtt %s  loss %s  retransmitted %d  in flight %d",
		float64(c.ticks)/float64(client.rate), s.received, c.received, client.script.count,
		milliseconds(c.RTT), percent(c.Lost+s.Lost, c.Lost+s.Lost+c.Delivered+s.Delivered),
		c.EventsResent+s.EventsResent, c.inFlight+s.inFlight)
	if p.columns == nil {
		if line != p.last {
			fmt.Fprintln(p.out, line)
			p.last = line
		}
		return
	}
	// A line that reaches the last column may wrap, and then \r no longer goes back
	// to its start. Blanks overwrite the rest of a longer line.
	room := max(p.columns()-1, 0)
	line = fitting(line, room)
	fmt.Fprintf(p.out, "\r%-*s", min(len(p.last), room), line)
	p.last = line
}

// fitting returns as many whole columns of a progress line, which two blanks part, as room
// takes: half a number would be read as another one.
func fitting(line string, room int) string {
	for len(line) > room {
		line = line[:max(strings.LastIndex(line, "  "), 0)]
	}
	return line
}

// end shows the progress for the last time and ends the line.
func (p *progress) end(client, server *peer) {
	p.draw(client, server)
	if p.columns != nil {
		fmt.Fprintln(p.out)
	}
}

// summary prints a table of what both sides and the relay did.
func summary(out io.Writer, client, server *peer, t traffic) {
	row := func(name string, left, right any) {
		fmt.Fprintf(out, "%-26s%18v%18v\n", name, left, right)
	}
	c, s := client.session.Stats(), server.session.Stats()
	row("each peer", client.name, server.name)
	row("  events sent", c.EventsSent, s.EventsSent)
	row("    copies per event", copies(c), copies(s))
	row("    acknowledged", c.EventsDelivered, s.EventsDelivered)
	row("  events received", client.tally.lines, server.tally.lines)
	row("    delivered twice", client.tally.twice, server.tally.twice)
	row("    duplicates dropped", c.EventsDuplicate, s.EventsDuplicate)
	row("  states received", client.current, server.current)
	row("    dropped as outdated", client.older, server.older)
	row("  round-trip time", milliseconds(c.RTT), milliseconds(s.RTT))
	row("  session ended with", end(client), end(server))
	row("the relay", "from "+client.name, "from "+server.name)
	row("  datagrams received", t.up.Sent, t.down.Sent)
	row("    lost", lost(t.up), lost(t.down))
	row("    duplicated", t.up.Duplicated, t.down.Duplicated)
	row("    reordered", t.up.Reordered, t.down.Reordered)
}

// copies returns how often an event was sent, on average.
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
