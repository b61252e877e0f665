package main

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"math"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

//go:embed page.tmpl
var page string

var pageTemplate = template.Must(template.New("report").Parse(page))

// report is what the page shows.
type report struct {
	Command  string
	Setting  string
	Legend   []legendEntry
	Sections []section
	Copies   template.HTML
	Stories  []template.HTML
	StoryOf  string
	Policies []described
	Missing  any
}

type legendEntry struct {
	Name, Color string
	Dashed      bool
}

type section struct {
	Name, About string
	Links       []string
	Rows        []row
	Overview    template.HTML
	Tails       []template.HTML
}

type row struct {
	Name, Color string
	Cells       []cell
}

// cell is one outcome as text.
type cell struct {
	Latency, P99, Cost string
	Best               bool // the lowest p99 of its column, or within a millisecond of it
}

type described struct{ Name, About string }

// number writes milliseconds, and a dash for an event that did not arrive.
func number(d time.Duration) string {
	if d == never {
		return "–"
	}
	return fmt.Sprintf("%.0f", milliseconds(d))
}

func newCell(o *outcome) cell {
	if o.err != nil {
		return cell{Latency: "failed", P99: "–", Cost: o.err.Error()}
	}
	c := cell{
		Latency: fmt.Sprintf("%s / %s / %s", number(o.quantile(0.5)), number(o.quantile(0.99)), number(o.quantile(0.999))),
		P99:     number(o.quantile(0.99)),
		Cost:    fmt.Sprintf("%.0f B", o.bytes),
	}
	if o.copies > 0 {
		c.Cost += fmt.Sprintf(" · %.2f×", o.copies)
	}
	if missing := o.sent - len(o.latencies); missing > 0 {
		c.Cost += fmt.Sprintf(" · %d of %d missing", missing, o.sent)
	}
	return c
}

// table prints the results of a workload.
func (l *lab) table(out io.Writer, cells [][]outcome) error {
	w := tabwriter.NewWriter(out, 0, 0, 3, ' ', 0)
	fmt.Fprint(w, "p50 / p99 / p99.9 ms\t")
	for _, link := range l.links {
		fmt.Fprint(w, link.name, "\t")
	}
	fmt.Fprintln(w)
	for k, p := range l.policies {
		fmt.Fprint(w, p.name, "\t")
		costs := ""
		for i := range l.links {
			c := newCell(&cells[i][k])
			fmt.Fprint(w, c.Latency, "\t")
			costs += c.Cost + "\t"
		}
		fmt.Fprintf(w, "\n\t%s\n", costs)
	}
	return w.Flush()
}

func hex(l look) string { return fmt.Sprintf("#%02x%02x%02x", l.color.R, l.color.G, l.color.B) }

// about says what traffic a workload is.
func (w *workload) about() string {
	t := w.traffic
	events := fmt.Sprintf("%d events a second", t.EventRate)
	if t.Burst > 0 {
		events = fmt.Sprintf("%d events in one tick every %v", t.Burst, t.BurstGap)
	}
	s := fmt.Sprintf("Each way %s, of %d bytes, on ticks of %d Hz; beside them state datagrams of %d bytes, %d a second from the client and %d from the server.",
		events, t.EventSize, t.TickRate, t.StateSize, t.StateA, t.StateB)
	if t.OnTicks {
		s += " What arrives waits for the next tick."
	}
	return s
}

// title names a policy among the libraries.
func (p *policy) title() string {
	if p.peer != nil {
		return p.name
	}
	return "ackbits " + p.name
}

// about says what a policy is.
func (p *policy) about() string {
	if p.peer != nil {
		return p.peer.about
	}
	var is []string
	if p.cfg.Adaptive {
		is = append(is, "Adaptive: copies by evidence and ahead of loss")
	} else {
		delay := p.cfg.ResendDelay
		if delay == 0 {
			delay = 100 * time.Millisecond
		}
		is = append(is, fmt.Sprintf("The protocol's fixed rule: a copy every %v until acknowledged", delay))
	}
	if p.cfg.Bundle {
		is = append(is, "Bundle: events ride in state datagrams")
	}
	if p.cfg.EventRate > 0 {
		is = append(is, fmt.Sprintf("EventRate: copies take at most %d bytes a second", p.cfg.EventRate))
	}
	if p.cfg.Wide {
		is = append(is, "Wide headers")
	}
	if p.cfg.Ordered {
		is = append(is, "Ordered hand-over")
	}
	return strings.Join(is, "; ")
}

// brief writes a duration without the units that are 0.
func brief(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// section makes the part of a workload.
func (l *lab) section(w int, cells [][]outcome) (section, error) {
	s := section{Name: l.workloads[w].name, About: l.workloads[w].about()}
	styles := looks(l.policies)
	until := time.Duration(0) // of the tails: what most policies do in most links
	for i, link := range l.links {
		s.Links = append(s.Links, link.name)
		var p999 []time.Duration
		for k := range cells[i] {
			if d := cells[i][k].quantile(0.999); d != never {
				p999 = append(p999, d)
			}
		}
		if slices.Sort(p999); len(p999) > 0 {
			until = max(until, p999[len(p999)*2/3])
		}
	}
	until = min(max(until.Truncate(100*time.Millisecond)+100*time.Millisecond, 200*time.Millisecond), 3*time.Second)
	for k, p := range l.policies {
		r := row{Name: p.name, Color: hex(styles[k])}
		for i := range l.links {
			c := newCell(&cells[i][k])
			best := never
			for j := range cells[i] {
				best = min(best, cells[i][j].quantile(0.99))
			}
			d := cells[i][k].quantile(0.99)
			c.Best = d != never && d <= best+time.Millisecond
			r.Cells = append(r.Cells, c)
		}
		s.Rows = append(s.Rows, r)
	}
	overview, err := l.overview(cells, false)
	if err != nil {
		return s, err
	}
	s.Overview = template.HTML(overview)
	for i := range l.links {
		p, err := tailChart(l, i, cells[i], until)
		if err != nil {
			return s, err
		}
		text, err := svg(400, 270, p)
		if err != nil {
			return s, err
		}
		s.Tails = append(s.Tails, template.HTML(text))
	}
	return s, nil
}

// overview is the chart of what is reached beside the chart of what it costs.
func (l *lab) overview(cells [][]outcome, legend bool) (string, error) {
	latency, err := latencyChart(l, cells, legend)
	if err != nil {
		return "", err
	}
	cost, err := bytesChart(l, cells)
	if err != nil {
		return "", err
	}
	return svg(860, 330, latency, cost)
}

// report makes the page.
func (l *lab) report(res results, bad link, command string) (*report, error) {
	r := &report{Command: command, Missing: missingPeers, StoryOf: bad.name}
	seeds := "one game"
	if n := len(l.seeds); n > 1 {
		seeds = fmt.Sprintf("%d games", n)
	}
	r.Setting = fmt.Sprintf("For each policy, link and workload %s of %s in virtual time", seeds, brief(l.duration))
	styles := looks(l.policies)
	for k, p := range l.policies {
		r.Legend = append(r.Legend, legendEntry{p.title(), hex(styles[k]), p.peer != nil})
		r.Policies = append(r.Policies, described{p.title(), p.about()})
	}
	for w := range l.workloads {
		s, err := l.section(w, res[w])
		if err != nil {
			return nil, err
		}
		r.Sections = append(r.Sections, s)
	}

	// What only ackbits can tell: which datagram carries what.
	traffic := l.workloads[0].traffic
	copies := make([][]float64, len(l.policies))
	stories := make([]*story, len(l.policies))
	until := 0.
	one := *l
	one.links, one.workloads = l.links[:1], l.workloads[:1]
	one.each(func(_, _, k int) {
		p := l.policies[k]
		if p.peer != nil {
			return
		}
		seeds := make([]uint64, 8)
		for i := range seeds {
			seeds[i] = l.seeds[0] + uint64(i)
		}
		copies[k] = copiesOverTime(p, seeds, bad, traffic)
		short := traffic
		short.Duration = min(l.duration, time.Minute)
		s := tell(p, l.seeds[0], bad, short, 0.99)
		stories[k] = &s
	})
	chart, err := copiesChart(l.policies, copies, bad)
	if err == nil {
		var text string
		text, err = svg(860, 260, chart)
		r.Copies = template.HTML(text)
	}
	if err != nil {
		return nil, err
	}
	for _, s := range stories {
		if s != nil {
			for _, f := range s.copies {
				until = max(until, milliseconds(f.sent), milliseconds(f.arrived))
			}
			until = max(until, milliseconds(s.known))
		}
	}
	until = math.Ceil(until/50)*50 + 10
	for k, s := range stories {
		if s == nil {
			continue
		}
		p, err := storyChart(l.policies[k].name, *s, until)
		if err != nil {
			return nil, err
		}
		text, err := svg(860, 130, p)
		if err != nil {
			return nil, err
		}
		r.Stories = append(r.Stories, template.HTML(text))
	}
	return r, nil
}

func (r *report) write(out io.Writer) error { return pageTemplate.Execute(out, r) }
