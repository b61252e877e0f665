package main

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"

	"github.com/ackbits/ackbits/internal/figure"
)

// bar is a row of the table as the chart shows it, under the same name.
type bar struct {
	name                 string
	single, stream, idle float64 // ns, ns, KiB
}

func barsOf(results []result) (all []bar) {
	for _, r := range results {
		all = append(all, bar{title(r.Subject), r.single.ns, r.stream.ns, r.idle.bytes / 1024})
	}
	return all
}

// barsOfTable reads a table that markdown wrote, so that the chart can be drawn anew
// without measuring. The last row, the driver alone, is not in the chart.
func barsOfTable(table string) (all []bar, err error) {
	for line := range strings.Lines(table) {
		columns := strings.Split(line, "|")
		if len(columns) != 9 || strings.HasPrefix(strings.TrimSpace(columns[2]), "one in flight") || strings.HasPrefix(columns[1], "--") {
			continue
		}
		b := bar{name: strings.TrimSpace(columns[1])}
		for column, value := range map[int]*float64{2: &b.single, 4: &b.stream, 6: &b.idle} {
			first, _, _ := strings.Cut(strings.TrimSpace(columns[column]), " ")
			if *value, err = strconv.ParseFloat(first, 64); err != nil {
				return nil, fmt.Errorf("%s: %w", b.name, err)
			}
		}
		all = append(all, b)
	}
	if len(all) < 2 {
		return nil, fmt.Errorf("no table of figures there")
	}
	return all[:len(all)-1], nil
}

const (
	chartWidth = 430 // a phone shows it nearly unscaled
	rowHeight  = 52
)

// chart draws the table: CPU on a logarithmic scale, memory on a linear one.
func chart(rows []bar, path string) error {
	plot.DefaultFont = font.Font{Typeface: "Liberation", Variant: "Sans"}
	plotter.DefaultFont = plot.DefaultFont
	rows = slices.Clone(rows)
	slices.Reverse(rows) // the first row belongs at the top, and axes grow upwards
	single, stream, idle := make(plotter.Values, len(rows)), make(plotter.Values, len(rows)), make(plotter.Values, len(rows))
	for i, r := range rows {
		single[i], stream[i], idle[i] = r.single, r.stream, r.idle
	}

	cpu := newPlot("CPU ns per delivered message, logarithmic", rows)
	cpu.X.Scale = logScale{}
	cpu.X.Tick.Marker = plot.LogTicks{Prec: -1}
	if err := addBars(cpu, single, figure.Navy, 0, "%.0f one in flight"); err != nil {
		return err
	}
	if err := addBars(cpu, stream, figure.Sky, -13, "%.0f ten a tick"); err != nil {
		return err
	}

	low, high := limits(append(slices.Clone(single), stream...))
	cpu.X.Min, cpu.X.Max = low, high*4 // room for the figures

	memory := newPlot("Heap of an idle connection, one end, KiB", rows)
	if err := addBars(memory, idle, figure.Navy, -3, "%.1f"); err != nil {
		return err
	}

	memory.X.Min, memory.X.Max = 0, slices.Max(idle)*1.2
	for _, p := range []*plot.Plot{cpu, memory} {
		p.Y.Min, p.Y.Max = -0.6, float64(len(rows))-0.4
	}

	height := vg.Length(60 + rowHeight*len(rows))
	below := vg.Length(60 + 38*len(rows))
	canvas := vgsvg.New(chartWidth, height+below)
	all := draw.New(canvas)
	cpu.Draw(draw.Crop(all, 8, -12, below+8, -8))
	memory.Draw(draw.Crop(all, 8, -12, 8, -height-8))
	var svg bytes.Buffer
	if _, err := canvas.WriteTo(&svg); err != nil {
		return err
	}
	picture := figure.File(svg.Bytes(), "What a delivered message and an idle connection cost", "Bars of CPU time per delivered 64-byte message, one in flight and ten a tick, and of the heap of an idle connection, by library. table.md has the numbers.")
	return os.WriteFile(path, picture, 0o644)
}

// newPlot is one with a name above the place of each row's bars.
func newPlot(title string, rows []bar) *plot.Plot {
	p := plot.New()
	p.BackgroundColor = nil // figure draws the ground
	p.Title.Text = title
	p.Title.Padding = 6
	p.Title.TextStyle.Font.Size, p.Title.TextStyle.Font.Weight = 14, 3 // bold
	p.Title.TextStyle.Color = figure.Ink.Light
	p.X.Tick.Label.Font.Size, p.X.Tick.Label.Color = 13, figure.Ink.Light
	p.X.Color, p.X.Tick.Color = figure.Rule.Light, figure.Rule.Light
	p.HideY()
	p.Add(names(rows))
	return p
}

// names writes each row's name above its bars, at the left.
type names []bar

func (n names) Plot(c draw.Canvas, p *plot.Plot) {
	style := p.X.Tick.Label
	style.XAlign, style.YAlign = text.XLeft, text.YBottom
	_, y := p.Transforms(&c)
	for i, r := range n {
		c.FillText(style, vg.Point{X: c.Min.X, Y: y(float64(i)) + 8}, r.name)
	}
}

// addBars adds horizontal bars, each with its figure.
func addBars(p *plot.Plot, values plotter.Values, c figure.Color, offset vg.Length, format string) error {
	b, err := plotter.NewBarChart(values, 10)
	if err != nil {
		return err
	}
	b.Horizontal, b.Offset, b.Color = true, offset, c.Light
	b.LineStyle.Width = 0
	labels := plotter.XYLabels{XYs: make(plotter.XYs, len(values)), Labels: make([]string, len(values))}
	for i, v := range values {
		labels.XYs[i] = plotter.XY{X: v, Y: float64(i)}
		labels.Labels[i] = fmt.Sprintf(format, v)
		if i < len(values)-1 {
			labels.Labels[i], _, _ = strings.Cut(labels.Labels[i], " ") // the first says of what
		}
	}
	l, err := plotter.NewLabels(labels)
	if err != nil {
		return err
	}
	l.Offset = vg.Point{X: 4, Y: offset + 1}
	for i := range l.TextStyle {
		l.TextStyle[i].Font.Size, l.TextStyle[i].Color = 12, figure.Ink.Light
		l.TextStyle[i].YAlign = text.YCenter
	}
	p.Add(b, l)
	return nil
}

// limits are powers of ten around the values.
func limits(values []float64) (low, high float64) {
	low = math.Pow(10, math.Floor(math.Log10(max(slices.Min(values), 1))))
	return low, max(slices.Max(values), 10*low)
}

// logScale is plot.LogScale for bars, which start at 0: there they start at the
// axis.
type logScale struct{}

func (logScale) Normalize(low, high, x float64) float64 {
	return math.Log(max(x, low)/low) / math.Log(high/low)
}
