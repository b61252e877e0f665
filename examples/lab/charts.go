package main

import (
	"bytes"
	"fmt"
	"image/color"
	"math"
	"strconv"
	"time"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

// look is how a policy is drawn everywhere.
type look struct {
	color  color.RGBA
	width  vg.Length
	dashes []vg.Length
	shape  draw.GlyphDrawer
}

var (
	ink   = color.RGBA{0x2b, 0x30, 0x36, 0xff}
	faint = color.RGBA{0xe3, 0xe6, 0xea, 0xff}
	red   = color.RGBA{0xc8, 0x32, 0x2b, 0xff}
	green = color.RGBA{0x0a, 0x7d, 0x55, 0xff}
	grey  = color.RGBA{0x9a, 0xa1, 0xa9, 0xff}
	shade = color.RGBA{0xfb, 0xec, 0xea, 0xff}

	ours   = []color.RGBA{{0x0a, 0x7d, 0x55, 0xff}, {0x2a, 0x62, 0xc9, 0xff}, {0x7c, 0x4d, 0xbd, 0xff}, {0x0b, 0x9a, 0xad, 0xff}, {0x5a, 0x67, 0x78, 0xff}, {0x9b, 0xb4, 0x00, 0xff}}
	theirs = []color.RGBA{{0xe0, 0x7b, 0x00, 0xff}, {0xc8, 0x32, 0x2b, 0xff}, {0xe2, 0x7f, 0xa4, 0xff}, {0x8c, 0x64, 0x3c, 0xff}}
)

// looks gives each policy a look: ackbits in full lines, the peers in dashes.
func looks(policies []policy) []look {
	all := make([]look, len(policies))
	us, them := 0, 0
	for i, p := range policies {
		if p.peer == nil {
			all[i] = look{ours[us%len(ours)], 2.4, nil, draw.CircleGlyph{}}
			us++
			continue
		}
		all[i] = look{theirs[them%len(theirs)], 1.5, []vg.Length{5, 3}, draw.BoxGlyph{}}
		them++
	}
	return all
}

func (l *look) line() draw.LineStyle {
	return draw.LineStyle{Color: l.color, Width: l.width, Dashes: l.dashes}
}

func newPlot(title, x, y string) *plot.Plot {
	plot.DefaultFont = font.Font{Typeface: "Liberation", Variant: "Sans"}
	plotter.DefaultFont = plot.DefaultFont
	p := plot.New()
	p.Title.Text, p.X.Label.Text, p.Y.Label.Text = title, x, y
	p.Title.TextStyle.Font.Size, p.Title.TextStyle.Font.Weight = 13, 3 // bold
	p.Title.Padding = 8
	p.Legend.TextStyle.Font.Size = 11
	p.Legend.ThumbnailWidth = 26
	p.Legend.Padding = 2
	for _, axis := range []*plot.Axis{&p.X, &p.Y} {
		axis.Label.TextStyle.Font.Size = 11
		axis.Label.TextStyle.Color = ink
		axis.Tick.Label.Font.Size = 10.5
		axis.Tick.Label.Color = ink
		axis.Color, axis.Tick.Color = grey, grey
		axis.LineStyle.Width = 0.7
		axis.Tick.LineStyle.Width = 0.7
		axis.Tick.Length = 4
		axis.Label.Padding = 4
	}
	grid := plotter.NewGrid()
	grid.Horizontal.Color, grid.Vertical.Color = faint, faint
	p.Add(grid)
	return p
}

// svg draws plots beside each other.
func svg(width, height vg.Length, plots ...*plot.Plot) (string, error) {
	canvas := vgsvg.New(width, height)
	if len(plots) == 1 {
		plots[0].Draw(draw.Crop(draw.New(canvas), 6, -12, 6, -6))
		return text(canvas)
	}
	tiles := draw.Tiles{Rows: 1, Cols: len(plots), PadX: 18, PadTop: 6, PadBottom: 6, PadLeft: 6, PadRight: 12}
	for i, row := range plot.Align([][]*plot.Plot{plots}, tiles, draw.New(canvas))[0] {
		plots[i].Draw(row)
	}
	return text(canvas)
}

func text(canvas *vgsvg.Canvas) (string, error) {
	var b bytes.Buffer
	if _, err := canvas.WriteTo(&b); err != nil {
		return "", err
	}
	out := b.Bytes()
	out = out[max(bytes.Index(out, []byte("<svg")), 0):] // without the XML prologue, for HTML
	// Fonts of the same widths, for readers without that one.
	return string(bytes.ReplaceAll(out, []byte("font-family:Liberation Sans;"), []byte("font-family:Liberation Sans,Arial,Helvetica,sans-serif;"))), nil
}

// ticks are marked ones of any scale.
func ticks(label func(float64) string, values ...float64) plot.ConstantTicks {
	var t plot.ConstantTicks
	for _, v := range values {
		t = append(t, plot.Tick{Value: v, Label: label(v)})
	}
	return t
}

// steps are up to n marks from 0 on, at round numbers.
func steps(until float64, n int) plot.ConstantTicks {
	step := 10.
	for _, factor := range []float64{2, 2.5, 2, 2, 2.5, 2, 2, 2.5} { // 20, 50, 100, …
		if until/step <= float64(n) {
			break
		}
		step *= factor
	}
	var values []float64
	for x := 0.; x <= until; x += step {
		values = append(values, x)
	}
	return ticks(plain, values...)
}

func plain(x float64) string { return strconv.FormatFloat(x, 'g', 6, 64) }
func share(x float64) string { return strconv.FormatFloat(x*100, 'g', 3, 64) + " %" }

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// series adds a line with marks; points that are not a number are left out.
func series(p *plot.Plot, l look, name string, values []float64) error {
	var points plotter.XYs
	for i, v := range values {
		if !math.IsNaN(v) && !math.IsInf(v, 0) {
			points = append(points, plotter.XY{X: float64(i), Y: v})
		}
	}
	if len(points) == 0 {
		return nil
	}
	line, marks, err := plotter.NewLinePoints(points)
	if err != nil {
		return err
	}
	line.LineStyle = l.line()
	marks.GlyphStyle = draw.GlyphStyle{Color: l.color, Radius: 3, Shape: l.shape}
	p.Add(line, marks)
	if name != "" {
		p.Legend.Add(name, line, marks)
	}
	return nil
}

// across is a chart with a place for each link.
func across(title, y string, links []link) *plot.Plot {
	p := newPlot(title, "", y)
	names := make([]string, len(links))
	for i, l := range links {
		names[i] = l.name
	}
	p.NominalX(names...)
	p.X.Tick.Length = 4
	p.X.Min, p.X.Max = -0.3, float64(len(links))-0.7
	return p
}

// latencyChart shows the p99 over the links.
func latencyChart(l *lab, cells [][]outcome, legend bool) (*plot.Plot, error) {
	p := across("99 of 100 events are delivered within (ms)", "", l.links)
	low, high := math.Inf(1), 0.
	for k, style := range looks(l.policies) {
		values := make([]float64, len(l.links))
		for i := range values {
			values[i] = math.NaN()
			if d := cells[i][k].quantile(0.99); d != never {
				values[i] = max(milliseconds(d), 1)
				low, high = min(low, values[i]), max(high, values[i])
			}
		}
		name := l.policies[k].title()
		if !legend {
			name = ""
		}
		if err := series(p, style, name, values); err != nil {
			return nil, err
		}
	}
	p.Y.Scale = plot.LogScale{}
	p.Y.Tick.Marker = ticks(plain, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000, 20000, 50000)
	p.Y.Min, p.Y.Max = low*0.8, high*1.25
	if high == 0 {
		p.Y.Min, p.Y.Max = 1, 10
	}
	p.Legend.Top, p.Legend.Left = true, true
	p.Legend.XOffs, p.Legend.YOffs = 10, -6
	return p, nil
}

// bytesChart shows what an event costs over the links.
func bytesChart(l *lab, cells [][]outcome) (*plot.Plot, error) {
	p := across("bytes sent per event", "", l.links)
	for k, style := range looks(l.policies) {
		values := make([]float64, len(l.links))
		for i := range values {
			values[i] = cells[i][k].bytes
			if cells[i][k].sent == 0 {
				values[i] = math.NaN()
			}
		}
		if err := series(p, style, "", values); err != nil {
			return nil, err
		}
	}
	p.Y.Min = 0
	p.Y.Max *= 1.08
	return p, nil
}

// tailChart shows for one link which share of the events takes longer than a
// time.
func tailChart(l *lab, over int, cells []outcome, until time.Duration) (*plot.Plot, error) {
	p := newPlot(l.links[over].name, "ms since Send", "")
	floor := 1e-4
	for k, style := range looks(l.policies) {
		o := &cells[k]
		if o.sent == 0 {
			continue
		}
		points := plotter.XYs{{X: 0, Y: 1}}
		for i := 0; i < len(o.latencies); {
			at := o.latencies[i]
			before := float64(o.sent-i) / float64(o.sent)
			for i < len(o.latencies) && o.latencies[i]-at < time.Millisecond/2 {
				i++ // one step for what comes within half a millisecond
			}
			after := float64(o.sent-i) / float64(o.sent)
			if at > until {
				break
			}
			x := milliseconds(at)
			points = append(points, plotter.XY{X: x, Y: max(before, floor)}, plotter.XY{X: x, Y: max(after, floor)})
			if after <= floor {
				break
			}
		}
		if last := points[len(points)-1]; last.Y > floor {
			points = append(points, plotter.XY{X: milliseconds(until), Y: last.Y})
		}
		line, err := plotter.NewLine(points)
		if err != nil {
			return nil, err
		}
		line.LineStyle = style.line()
		p.Add(line)
	}
	p.X.Min, p.X.Max = 0, milliseconds(until)
	p.X.Tick.Marker = steps(p.X.Max, 6)
	p.Y.Scale = plot.LogScale{}
	p.Y.Min, p.Y.Max = floor, 1
	p.Y.Tick.Marker = ticks(share, 1, 0.1, 0.01, 0.001, 0.0001)
	return p, nil
}

// copiesChart shows how many copies an event takes as the link turns bad and
// good again.
func copiesChart(policies []policy, copies [][]float64, bad link) (*plot.Plot, error) {
	p := newPlot("", "seconds", "copies per event")
	most := 2.
	for _, list := range copies {
		for _, c := range list {
			most = max(most, c)
		}
	}
	most = math.Ceil(most*2) / 2
	from, to := badSpell.from.Seconds(), badSpell.to.Seconds()
	area, err := plotter.NewPolygon(plotter.XYs{{X: from, Y: 0}, {X: to, Y: 0}, {X: to, Y: most}, {X: from, Y: most}})
	if err != nil {
		return nil, err
	}
	area.Color, area.LineStyle.Width = shade, 0
	label, err := plotter.NewLabels(plotter.XYLabels{XYs: plotter.XYs{{X: from + 1, Y: most * 0.94}}, Labels: []string{"link: " + bad.name}})
	if err != nil {
		return nil, err
	}
	label.TextStyle[0].Color, label.TextStyle[0].Font.Size = red, 11
	p.Add(area, label)
	for k, style := range looks(policies) {
		if len(copies[k]) == 0 {
			continue
		}
		points := make(plotter.XYs, len(copies[k]))
		for s, c := range copies[k] {
			points[s] = plotter.XY{X: float64(s) + 0.5, Y: c}
		}
		line, err := plotter.NewLine(points)
		if err != nil {
			return nil, err
		}
		line.LineStyle = style.line()
		line.Width = 1.8
		p.Add(line)
	}
	p.X.Min, p.X.Max, p.Y.Min, p.Y.Max = 0, badSpell.end.Seconds(), 0, most
	p.X.Tick.Marker = steps(p.X.Max, 15)
	return p, nil
}

// storyChart draws the copies of one event between its two ends.
func storyChart(name string, s story, until float64) (*plot.Plot, error) {
	copies := fmt.Sprintf("%d copies", len(s.copies))
	if len(s.copies) == 1 {
		copies = "1 copy"
	}
	p := newPlot(fmt.Sprintf("%s: delivered after %.0f ms, %s", name, milliseconds(s.latency), copies), "ms since Send", "")
	add := func(style draw.LineStyle, points ...plotter.XY) error {
		line, err := plotter.NewLine(plotter.XYs(points))
		if err != nil {
			return err
		}
		line.LineStyle = style
		p.Add(line)
		return nil
	}
	mark := func(c color.Color, shape draw.GlyphDrawer, radius vg.Length, at plotter.XY) error {
		m, err := plotter.NewScatter(plotter.XYs{at})
		if err != nil {
			return err
		}
		m.GlyphStyle = draw.GlyphStyle{Color: c, Radius: radius, Shape: shape}
		p.Add(m)
		return nil
	}
	for _, y := range []float64{0, 1} {
		if err := add(draw.LineStyle{Color: grey, Width: 1.2}, plotter.XY{X: 0, Y: y}, plotter.XY{X: until, Y: y}); err != nil {
			return nil, err
		}
	}
	for _, f := range s.copies {
		from := plotter.XY{X: milliseconds(f.sent), Y: 1}
		var shape draw.GlyphDrawer = draw.BoxGlyph{}
		if f.bundled {
			shape = draw.CircleGlyph{}
		}
		style, to, end := draw.LineStyle{Color: grey, Width: 1.3}, plotter.XY{X: milliseconds(f.arrived), Y: 0}, color.Color(grey)
		switch {
		case f.lost || f.arrived == 0:
			style.Color, end = red, red
			to = plotter.XY{X: from.X + milliseconds(s.flightTime())/2, Y: 0.5}
		case f.arrived == s.latency:
			style, end = draw.LineStyle{Color: green, Width: 2.6}, green
		}
		if err := add(style, from, to); err != nil {
			return nil, err
		}
		if err := mark(end, shape, 3, from); err != nil {
			return nil, err
		}
		arrival, radius := draw.GlyphDrawer(draw.CircleGlyph{}), vg.Length(2.5)
		if f.lost {
			arrival, radius = cross{}, 4
		}
		if err := mark(end, arrival, radius, to); err != nil {
			return nil, err
		}
	}
	if s.known > 0 {
		if err := mark(ink, draw.PyramidGlyph{}, 5, plotter.XY{X: milliseconds(s.known), Y: 1.1}); err != nil {
			return nil, err
		}
	}
	p.Y.Tick.Marker = plot.ConstantTicks{{Value: 1, Label: "sender"}, {Value: 0, Label: "receiver"}}
	p.X.Min, p.X.Max, p.Y.Min, p.Y.Max = 0, until, -0.1, 1.25
	p.X.Tick.Marker = steps(until, 12)
	return p, nil
}

// cross is the end of a copy that was lost.
type cross struct{}

func (cross) DrawGlyph(c *draw.Canvas, style draw.GlyphStyle, at vg.Point) {
	r := style.Radius
	line := draw.LineStyle{Color: style.Color, Width: 2}
	c.StrokeLine2(line, at.X-r, at.Y-r, at.X+r, at.Y+r)
	c.StrokeLine2(line, at.X-r, at.Y+r, at.X+r, at.Y-r)
}

// flightTime is how long a copy that arrived was under way.
func (s *story) flightTime() time.Duration {
	for _, f := range s.copies {
		if !f.lost && f.arrived > 0 {
			return f.arrived - f.sent
		}
	}
	return 0
}
