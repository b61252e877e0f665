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

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"

	"github.com/ackbits/ackbits/internal/figure"
)

//go:embed page.tmpl
var page string

var pageTemplate = template.Must(template.New("report").Parse(page))

// report is what the page shows.
type report struct {
	Command   string
	Setting   string
	Style     template.CSS
	Legend    []legendEntry
	Sections  []section
	Copies    template.HTML
	CopyNotes []string
	Stories   []template.HTML
	StoryOf   string
	Policies  []described
	Missing   any
	Files     *filesSection // instead of all that
}

type legendEntry struct {
	Name   string
	Swatch template.HTML
	look   look
}

type section struct {
	Name, About string
	Links       []string
	Rows        []row
	Overview    []template.HTML
	Notes       []string
	Tails       []template.HTML
}

type row struct {
	legendEntry
	Cells []cell
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
	if s := &o.states; s.sent > 0 {
		c.Cost += fmt.Sprintf(" · state %s ms", number(p99(s.ages)))
		if s.lost() > 0.001 {
			c.Cost += fmt.Sprintf(", %.1f %% lost", 100*s.lost())
		}
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
		fmt.Fprint(w, p.title(), "\t")
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
		is = append(is, "Adaptive: losses are detected by acknowledgements, and where the link loses, proactive copies go")
	} else {
		delay := p.cfg.ResendDelay
		if delay == 0 {
			delay = 100 * time.Millisecond
		}
		is = append(is, fmt.Sprintf("The default, the protocol's fixed rule: a copy every %v until acknowledged", delay))
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
		is = append(is, "Ordered: events are delivered in the order of their ids")
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
	for _, link := range l.links {
		s.Links = append(s.Links, link.name)
	}
	until := tailsUntil(cells)
	legend, err := l.legend()
	if err != nil {
		return s, err
	}
	for k := range l.policies {
		r := row{legendEntry: legend[k]}
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
	latency, bytes, err := l.overview(cells)
	if err != nil {
		return s, err
	}
	s.Notes = l.notes(cells)
	s.Overview, err = l.inline(300, latencyWords(l), latency)
	if err != nil {
		return s, err
	}
	more, err := l.inline(300, "Bytes of all datagrams beyond the bare state, for each event, by link. "+numbersInTable, bytes)
	if err != nil {
		return s, err
	}
	s.Overview = append(s.Overview, more...)
	for i := range l.links {
		p, err := tailChart(l, i, cells[i], until)
		if err != nil {
			return s, err
		}
		tail, err := l.inline(290, "The share of events that take longer than a time, over "+l.links[i].name+". "+numbersInTable, p)
		if err != nil {
			return s, err
		}
		s.Tails = append(s.Tails, tail...)
	}
	return s, nil
}

// tailsUntil is how far the charts of delivery times go: as far as most policies do
// over each link.
func tailsUntil(cells [][]outcome) (until time.Duration) {
	for _, policies := range cells {
		var p999 []time.Duration
		for k := range policies {
			if d := policies[k].quantile(0.999); d != never {
				p999 = append(p999, d)
			}
		}
		if slices.Sort(p999); len(p999) > 0 {
			until = max(until, p999[len(p999)*2/3])
		}
	}
	return min(max(until.Truncate(100*time.Millisecond)+100*time.Millisecond, 200*time.Millisecond), 3*time.Second)
}

const numbersInTable = "The table has the numbers."

func latencyWords(l *lab) string {
	return "The time within which 99 of 100 events are delivered, by link, on a logarithmic scale. " + numbersInTable
}

// inline draws a chart for the page.
func (l *lab) inline(height vg.Length, description string, p *plot.Plot) ([]template.HTML, error) {
	raw, err := svg(height, nil, p)
	return []template.HTML{template.HTML(figure.Inline(raw, p.Title.Text, description))}, err
}

// legend names the policies, here and in every table alike.
func (l *lab) legend() (entries []legendEntry, err error) {
	for k, style := range looks(l.policies) {
		swatch, err := style.swatch()
		if err != nil {
			return nil, err
		}
		entries = append(entries, legendEntry{l.policies[k].title(), swatch, style})
	}
	return entries, nil
}

// overview is the chart of what is reached and the chart of what it costs.
func (l *lab) overview(cells [][]outcome) (latency, bytes *plot.Plot, err error) {
	if latency, err = latencyChart(l, cells); err != nil {
		return nil, nil, err
	}
	bytes, err = bytesChart(l, cells)
	return latency, bytes, err
}

// chart is both with the legend, alone in a file.
func (l *lab) chart(cells [][]outcome) ([]byte, error) {
	latency, bytes, err := l.overview(cells)
	if err != nil {
		return nil, err
	}
	legend, err := l.legend()
	if err != nil {
		return nil, err
	}
	raw, err := svg(270, legend, latency, bytes)
	return figure.File(raw, "Latency of events under loss, and what it costs", latencyWords(l)+" Below it, the bytes sent for each event."), err
}

// report makes the page.
func (l *lab) report(res results, bad link, command string) (*report, error) {
	r := &report{Command: command, Style: template.CSS(figure.Style()), Missing: missingPeers, StoryOf: bad.name}
	seeds := "one game"
	if n := len(l.seeds); n > 1 {
		seeds = fmt.Sprintf("%d games", n)
	}
	r.Setting = fmt.Sprintf("For each policy, link and workload %s of %s in virtual time", seeds, brief(l.duration))
	var err error
	if r.Legend, err = l.legend(); err != nil {
		return nil, err
	}
	for _, p := range l.policies {
		r.Policies = append(r.Policies, described{p.title(), p.about()})
	}
	for w := range l.workloads {
		s, err := l.section(w, res[w])
		if err != nil {
			return nil, err
		}
		r.Sections = append(r.Sections, s)
	}
	return r, l.tellAll(r, bad)
}

// tellAll adds what only ackbits can tell: which datagram carries what.
func (l *lab) tellAll(r *report, bad link) error {
	copies := make([][]float64, len(l.policies))
	stories := make([]*story, len(l.policies))
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
		copies[k] = copiesOverTime(p, seeds, bad, l.workloads[0].traffic)
		if s, ok := l.tell(p, bad, l.workloads[0], 0.99); ok {
			stories[k] = &s
		}
	})
	chart, err := copiesChart(l.policies, copies, bad)
	if err != nil {
		return err
	}
	drawn, err := l.inline(250, "Copies of an event by the second in which it was sent first, as the link turns bad and good again.", chart)
	if err != nil {
		return err
	}
	r.Copies, r.CopyNotes = drawn[0], copyNotes(l.policies, copies, bad)
	until := 0.
	for _, s := range stories {
		if s != nil {
			until = max(until, s.end())
		}
	}
	until = math.Ceil(until/50)*50 + 10
	for k, s := range stories {
		if s == nil {
			continue
		}
		p, err := storyChart(l.policies[k].title(), *s, until)
		if err != nil {
			return err
		}
		drawn, err := l.inline(140, s.words(), p)
		if err != nil {
			return err
		}
		r.Stories = append(r.Stories, drawn...)
	}
	return nil
}

func (r *report) write(out io.Writer) error { return pageTemplate.Execute(out, r) }
