package main

import (
	"fmt"
	"html/template"
	"image/color"
	"io"
	"math"
	"os"
	"slices"
	"testing"
	"text/tabwriter"
	"time"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/ackbits/ackbits/internal/figure"
)

// filesSection is the part of the report on a file beside the game.
type filesSection struct {
	Links  []string
	Rows   []row
	Charts []template.HTML
	Notes  []string
}

func (r *fileResult) time() time.Duration {
	var sum time.Duration
	for _, d := range r.took {
		sum += d
	}
	return sum / time.Duration(max(len(r.took), 1))
}

// p99 sorts, and returns never for nothing.
func p99(of []time.Duration) time.Duration {
	if len(of) == 0 {
		return never
	}
	slices.Sort(of)
	return of[min(len(of)*99/100, len(of)-1)]
}

// compareFiles plays, prints the tables and writes the report.
func (o *options) compareFiles(t *testing.T, args []string, out io.Writer) error {
	results := make([][]fileResult, len(fileLinks))
	for i, l := range fileLinks {
		fmt.Fprintf(out, "\n%s\n", l.name)
		w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
		fmt.Fprintln(w, "\ttime\tstates, p99\tevents, p99\t")
		results[i] = make([]fileResult, len(carriers))
		for k, c := range carriers {
			r := &results[i][k]
			for _, seed := range o.seeds {
				t.Run("game", func(t *testing.T) { c.play(t, seed, l.link, l.size, r) })
			}
			took := fmt.Sprintf("%.2f s", r.time().Seconds())
			if r.err != nil {
				took = r.err.Error()
			}
			fmt.Fprintf(w, "%s\t%s\t%s ms\t%s ms\t\n", c.name, took, number(p99(r.states)), number(p99(r.events)))
		}
		if err := w.Flush(); err != nil {
			return err
		}
	}
	if o.chartFile != "" {
		if err := writeFileChart(o.chartFile, results); err != nil {
			return err
		}
	}
	if o.out == "" {
		return nil
	}
	files, err := newFilesSection(results)
	if err != nil {
		return err
	}
	return o.write(&report{
		Command: command(args), Style: template.CSS(figure.Style()), Files: files,
		Setting: fmt.Sprintf("Games: %d for each, in virtual time", len(o.seeds)),
	}, out)
}

func newFilesSection(results [][]fileResult) (*filesSection, error) {
	s := &filesSection{Notes: fileNotes}
	for k, c := range carriers {
		r := row{legendEntry: legendEntry{Name: c.name}}
		for i := range fileLinks {
			of := &results[i][k]
			one := cell{Latency: fmt.Sprintf("%.2f s", of.time().Seconds()), Cost: fmt.Sprintf("%s, %s ms", number(p99(of.states)), number(p99(of.events)))}
			if of.err != nil {
				one.Latency = of.err.Error()
			}
			best := never
			for j := range carriers {
				best = min(best, worst(&results[i][j]))
			}
			one.Best = of.err == nil && worst(of) <= best+time.Millisecond
			r.Cells = append(r.Cells, one)
		}
		s.Rows = append(s.Rows, r)
	}
	for i, l := range fileLinks {
		s.Links = append(s.Links, l.name)
		raw, err := fileChart(i, results[i])
		if err != nil {
			return nil, err
		}
		s.Charts = append(s.Charts, template.HTML(figure.Inline(raw, "A file beside the game: "+l.name, fileWords)))
	}
	return s, nil
}

const fileWords = "How long the file takes, and the p99 of the ages of states and events meanwhile, a line for each way to send it. The table has the numbers."

func worst(r *fileResult) time.Duration { return max(p99(r.states), p99(r.events)) }

// fileNotes are a word on each bar that surprises.
var fileNotes = []string{
	"quic and sctp fill the queue, as TCP does, until it overflows or their round trip says so, and the game's datagrams wait in it.",
	"ackbits events: the file stands before the game's own events in one window and one order, so they wait behind it.",
	"kcp without its window has no limit but its 256 segments; with it, it leaves room where losses come early, and fills a queue that holds its window.",
	"100 Mbit/s: the whole file fits into the queue; kcp without its window sends it at once, which is quicker than to measure the link first, as transfer does.",
}

// rows is a chart with a line for each carrier, the first on top.
func rows(title string) *plot.Plot {
	p := newPlot(title, "", "")
	names := make([]string, len(carriers))
	for k, c := range carriers {
		names[len(carriers)-1-k] = c.name
	}
	p.NominalY(names...)
	p.Y.Tick.Length, p.Y.LineStyle.Width = 0, 0
	p.Y.Min, p.Y.Max = -0.6, float64(len(carriers))-0.4
	return p
}

// label writes a figure beside its mark.
func label(p *plot.Plot, at plotter.XY, words string, offset vg.Point) error {
	l, err := plotter.NewLabels(plotter.XYLabels{XYs: plotter.XYs{at}, Labels: []string{words}})
	if err != nil {
		return err
	}
	l.TextStyle[0].Font.Size, l.TextStyle[0].Color, l.TextStyle[0].YAlign = 12, ink, text.YCenter
	offset.Y = 3.5 // gonum sets labels half their height too low
	l.Offset = offset
	p.Add(l)
	return nil
}

func fileTimeChart(over int, results []fileResult) (*plot.Plot, error) {
	p := rows(fileLinks[over].name)
	p.X.Label.Text = "seconds until the file is whole"
	most := 0.
	for k := range results {
		at := plotter.XY{X: results[k].time().Seconds(), Y: float64(len(results) - 1 - k)}
		most = max(most, at.X)
		bar, err := plotter.NewLine(plotter.XYs{{X: 0, Y: at.Y}, at})
		if err != nil {
			return nil, err
		}
		bar.LineStyle = draw.LineStyle{Color: carrierColor(k), Width: 11}
		p.Add(bar)
		if err := label(p, at, fmt.Sprintf("%.2f", at.X), vg.Point{X: 4}); err != nil {
			return nil, err
		}
	}
	p.X.Min, p.X.Max = 0, most*1.22
	p.X.Tick.Marker = steps(p.X.Max, 5)
	return p, nil
}

// fileAgeChart has two marks for each: states and events.
func fileAgeChart(results []fileResult) (*plot.Plot, error) {
	p := rows("")
	p.X.Label.Text = "ms at the p99: ● states, ■ events"
	p.X.Scale = plot.LogScale{}
	p.X.Tick.Marker = ticks(plain, 20, 100, 500, 2000, 10000)
	low, high := 20., 100.
	for k := range results {
		y := float64(len(results) - 1 - k)
		var marks plotter.XYs
		for j, d := range []time.Duration{p99(results[k].states), p99(results[k].events)} {
			if d == never {
				continue
			}
			at := plotter.XY{X: max(milliseconds(d), low), Y: y}
			high = max(high, at.X)
			marks = append(marks, at)
			m, err := plotter.NewScatter(plotter.XYs{at})
			if err != nil {
				return nil, err
			}
			shape := []draw.GlyphDrawer{draw.CircleGlyph{}, draw.BoxGlyph{}}[j]
			m.GlyphStyle = draw.GlyphStyle{Color: carrierColor(k), Radius: 5, Shape: shape}
			p.Add(m)
		}
		if len(marks) == 2 {
			between, err := plotter.NewLine(marks)
			if err != nil {
				return nil, err
			}
			between.LineStyle = draw.LineStyle{Color: carrierColor(k), Width: 1.5}
			p.Add(between)
			right := plotter.XY{X: max(marks[0].X, marks[1].X), Y: y}
			if err := label(p, right, fmt.Sprintf("%.0f, %.0f", marks[0].X, marks[1].X), vg.Point{X: 8}); err != nil {
				return nil, err
			}
		}
	}
	p.X.Min, p.X.Max = low, high*math.Pow(high/low, 0.38)
	return p, nil
}

// fileChart is how long it takes above what it does to the game.
func fileChart(over int, results []fileResult) ([]byte, error) {
	took, err := fileTimeChart(over, results)
	if err != nil {
		return nil, err
	}
	ages, err := fileAgeChart(results)
	if err != nil {
		return nil, err
	}
	return svg(210, nil, took, ages)
}

// writeFileChart writes the chart of one link alone: the narrow one of the README.
func writeFileChart(path string, results [][]fileResult) error {
	const over = 1
	raw, err := fileChart(over, results[over])
	if err != nil {
		return err
	}
	return os.WriteFile(path, figure.File(raw, "A file beside the game: "+fileLinks[over].name, fileWords), 0o644)
}

// carrierColor is green for package transfer, and one other for what it is compared with.
func carrierColor(k int) color.RGBA {
	if k == 0 {
		return figure.Green.Light
	}
	return figure.Slate.Light
}
