package main

import (
	"bytes"
	"fmt"
	"image/color"
	"math"
	"os"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

var (
	dark  = color.RGBA{R: 0x1f, G: 0x4e, B: 0x79, A: 0xff}
	light = color.RGBA{R: 0x8f, G: 0xb8, B: 0xde, A: 0xff}
)

// chart draws the table: CPU on a logarithmic scale, memory on a linear one.
func chart(results []result, path string) error {
	plot.DefaultFont = font.Font{Typeface: "Liberation", Variant: "Sans"}
	plotter.DefaultFont = plot.DefaultFont
	// The first row belongs at the top, and axes grow upwards.
	rows := slices.Clone(results)
	slices.Reverse(rows)
	names := make([]string, len(rows))
	single, stream, idle := make(plotter.Values, len(rows)), make(plotter.Values, len(rows)), make(plotter.Values, len(rows))
	for i, r := range rows {
		names[i] = r.Name
		single[i], stream[i], idle[i] = r.single.ns, r.stream.ns, r.idle.bytes/1024
	}

	cpu := plot.New()
	cpu.Title.Text = "CPU per delivered 64-byte message, both ends (ns, logarithmic)"
	cpu.NominalY(names...)
	cpu.X.Scale = logScale{}
	cpu.X.Tick.Marker = plot.LogTicks{Prec: -1}
	const width = 11
	for _, group := range []struct {
		name   string
		values plotter.Values
		color  color.Color
		offset vg.Length
	}{{"one in flight", single, dark, width / 2.}, {"ten a tick", stream, light, -width / 2.}} {
		b, err := bars(cpu, group.values, width, group.offset, group.color, "%.0f")
		if err != nil {
			return err
		}
		cpu.Legend.Add(group.name, b)
	}
	cpu.Legend.Top = true
	cpu.Legend.Padding = 3
	low, high := limits(append(slices.Clone(single), stream...))
	cpu.X.Min, cpu.X.Max = low, high*4 // room for the figures

	memory := plot.New()
	memory.Title.Text = "Heap of an idle connection, one end (KiB)"
	memory.NominalY(names...)
	if _, err := bars(memory, idle, 2*width, 0, dark, "%.1f"); err != nil {
		return err
	}
	memory.X.Min, memory.X.Max = 0, slices.Max(idle)*1.15

	const w = 760
	height := vg.Length(60 + 34*len(rows))
	for _, p := range []*plot.Plot{cpu, memory} {
		p.Title.Padding = 6
		p.Title.TextStyle.Font.Size = 13
		p.Y.Tick.Length, p.Y.LineStyle.Width = 0, 0
		p.Y.Min, p.Y.Max = -0.6, float64(len(rows))-0.4
	}
	canvas := vgsvg.New(w, 2*height)
	all := draw.New(canvas)
	tiles := draw.Tiles{Rows: 2, Cols: 1, PadX: 8, PadY: 14, PadTop: 8, PadBottom: 8, PadLeft: 8, PadRight: 8}
	both := [][]*plot.Plot{{cpu}, {memory}}
	for i, row := range plot.Align(both, tiles, all) {
		both[i][0].Draw(row[0])
	}
	var svg bytes.Buffer
	if _, err := canvas.WriteTo(&svg); err != nil {
		return err
	}
	// Fonts of the same widths, for readers without that one.
	fonts := bytes.ReplaceAll(svg.Bytes(), []byte("font-family:Liberation Sans;"), []byte("font-family:Liberation Sans,Arial,Helvetica,sans-serif;"))
	return os.WriteFile(path, fonts, 0o644)
}

// bars adds horizontal bars, each with its figure.
func bars(p *plot.Plot, values plotter.Values, width, offset vg.Length, c color.Color, format string) (*plotter.BarChart, error) {
	b, err := plotter.NewBarChart(values, width)
	if err != nil {
		return nil, err
	}
	b.Horizontal, b.Offset, b.Color = true, offset, c
	b.LineStyle.Width = 0
	labels := plotter.XYLabels{XYs: make(plotter.XYs, len(values)), Labels: make([]string, len(values))}
	for i, v := range values {
		labels.XYs[i] = plotter.XY{X: v, Y: float64(i)}
		labels.Labels[i] = fmt.Sprintf(format, v)
	}
	l, err := plotter.NewLabels(labels)
	if err != nil {
		return nil, err
	}
	l.Offset = vg.Point{X: 3, Y: offset}
	for i := range l.TextStyle {
		l.TextStyle[i].Font.Size = 9
		l.TextStyle[i].YAlign = text.YCenter
	}
	p.Add(b, l)
	return b, nil
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
