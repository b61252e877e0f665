package main

import (
	"bytes"
	"fmt"
	"html/template"
	"image/color"
	"math"
	"strconv"
	"strings"
	"time"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"

	"github.com/ackbits/ackbits/internal/figure"
)

// look is how a policy is drawn everywhere.
type look struct {
	color  color.RGBA
	width  vg.Length
	dashes []vg.Length
	shape  draw.GlyphDrawer
}

var (
	ink, rule, faint = figure.Ink.Light, figure.Rule.Light, figure.Faint.Light
	bad, good, shade = figure.Bad.Light, figure.Good.Light, figure.Shade.Light

	ours   = []figure.Color{figure.Green, figure.Blue, figure.Violet, figure.Teal, figure.Slate, figure.Olive}
	theirs = []figure.Color{figure.Orange, figure.Red, figure.Pink, figure.Brown}
	dashes = [][]vg.Length{{7, 3}, {2, 2}, {7, 2, 2, 2}, {4, 3}}
	shapes = []draw.GlyphDrawer{draw.CircleGlyph{}, draw.BoxGlyph{}, draw.PyramidGlyph{}, draw.RingGlyph{}, draw.SquareGlyph{}, draw.TriangleGlyph{}, draw.CrossGlyph{}}
)

// looks gives each policy a look: ackbits in full lines, the peers in dashes of their
// own, and marks that tell them apart without colors.
func looks(policies []policy) []look {
	all := make([]look, len(policies))
	us, them := 0, 0
	for i, p := range policies {
		shape := shapes[i%len(shapes)]
		if p.peer == nil {
			all[i] = look{ours[us%len(ours)].Light, 2.6, nil, shape}
			us++
			continue
		}
		all[i] = look{theirs[them%len(theirs)].Light, 1.7, dashes[them%len(dashes)], shape}
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
	p.BackgroundColor = nil // figure draws the ground
	p.Title.Text, p.X.Label.Text, p.Y.Label.Text = title, x, y
	p.Title.TextStyle.Font.Size, p.Title.TextStyle.Font.Weight = 14, 3 // bold
	p.Title.TextStyle.Color = ink
	p.Title.Padding = 8
	for _, axis := range []*plot.Axis{&p.X, &p.Y} {
		axis.Label.TextStyle.Font.Size = 13
		axis.Label.TextStyle.Color = ink
		axis.Tick.Label.Font.Size = 13
		axis.Tick.Label.Color = ink
		axis.Color, axis.Tick.Color = rule, rule
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

// chartWidth is that of every chart: a phone's screen shows it nearly unscaled, and
// a page on a desk two or three beside each other.
const chartWidth = 430

// svg draws plots below each other, each of one height, and below them the legend.
func svg(height vg.Length, legend []legendEntry, plots ...*plot.Plot) ([]byte, error) {
	const line = 19
	rows := (len(legend) + 1) / 2
	strip := vg.Length(line*rows) + 6*vg.Length(min(rows, 1))
	canvas := vgsvg.New(chartWidth, height*vg.Length(len(plots))+strip)
	all := draw.New(canvas)
	column := make([][]*plot.Plot, len(plots))
	for i, p := range plots {
		column[i] = []*plot.Plot{p}
	}
	tiles := draw.Tiles{Rows: len(plots), Cols: 1, PadY: 14, PadTop: 6, PadBottom: 6, PadLeft: 6, PadRight: 14}
	for i, row := range plot.Align(column, tiles, draw.Crop(all, 0, 0, strip, 0)) {
		plots[i].Draw(row[0])
	}
	for i, entry := range legend {
		at := vg.Point{X: 12 + vg.Length(i/rows)*chartWidth*0.56, Y: strip - vg.Length(i%rows)*line - line/2 + 1}
		entry.look.key(&all, at)
		style := plots[0].X.Tick.Label
		style.XAlign, style.YAlign = text.XLeft, text.YCenter
		all.FillText(style, vg.Point{X: at.X + keyWidth + 6, Y: at.Y}, entry.Name)
	}
	var b bytes.Buffer
	_, err := canvas.WriteTo(&b)
	return b.Bytes(), err
}

const keyWidth = 30

// key draws the look of a policy for a legend.
func (l *look) key(c *draw.Canvas, at vg.Point) {
	c.StrokeLine2(l.line(), at.X, at.Y, at.X+keyWidth, at.Y)
	c.DrawGlyph(l.glyph(), vg.Point{X: at.X + keyWidth/2, Y: at.Y})
}

func (l *look) glyph() draw.GlyphStyle {
	return draw.GlyphStyle{Color: l.color, Radius: 3.4, Shape: l.shape}
}

// swatch is the key alone, for the page.
func (l *look) swatch() (template.HTML, error) {
	canvas := vgsvg.New(keyWidth, 12)
	all := draw.New(canvas)
	l.key(&all, vg.Point{X: 0, Y: 6})
	var b bytes.Buffer
	if _, err := canvas.WriteTo(&b); err != nil {
		return "", err
	}
	return template.HTML(figure.Decoration(b.Bytes())), nil
}

// ticks are marked ones of any scale.
func ticks(label func(float64) string, values ...float64) plot.ConstantTicks {
	var t plot.ConstantTicks
	for _, v := range values {
		t = append(t, plot.Tick{Value: v, Label: label(v)})
	}
	return t
}

// steps are up to n marks beyond 0, at round numbers: 0.1, 0.2, 0.5, 1 and so on.
func steps(until float64, n int) plot.ConstantTicks {
	step := 0.1
	for i := 0; until/step > float64(n); i++ {
		step *= []float64{2, 2.5, 2}[i%3]
	}
	var values []float64
	for i := 0; float64(i)*step <= until; i++ {
		values = append(values, float64(i)*step)
	}
	return ticks(plain, values...)
}

func plain(x float64) string { return strconv.FormatFloat(x, 'g', 6, 64) }
func share(x float64) string { return strconv.FormatFloat(x*100, 'g', 3, 64) + " %" }

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// series adds a line with marks; points that are not a number are left out.
func series(p *plot.Plot, l look, values []float64) error {
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
	marks.GlyphStyle = l.glyph()
	p.Add(line, marks)
	return nil
}

// across is a chart with a place for each link.
func across(title, y string, links []link) *plot.Plot {
	p := newPlot(title, "", y)
	names := make([]string, len(links))
	for i, l := range links {
		names[i] = strings.ReplaceAll(l.name, "+", "\n+") // long ones side by side would overlap
		if len(links) > 4 {
			names[i] = strings.ReplaceAll(names[i], "=", "=\n")
		}
	}
	p.NominalX(names...)
	p.X.Tick.Length = 4
	p.X.Min, p.X.Max = -0.3, float64(len(links))-0.7
	return p
}

// latencyChart shows the p99 over the links.
func latencyChart(l *lab, cells [][]outcome) (*plot.Plot, error) {
	p := across("p99: 99 of 100 events are delivered within (ms)", "", l.links)
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
		if err := series(p, style, values); err != nil {
			return nil, err
		}
	}
	p.Y.Scale = plot.LogScale{}
	p.Y.Tick.Marker = ticks(plain, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000, 20000, 50000)
	p.Y.Min, p.Y.Max = low*0.8, high*1.25
	if high == 0 {
		p.Y.Min, p.Y.Max = 1, 10
	}
	return p, nil
}

// bytesChart shows what an event costs over the links.
func bytesChart(l *lab, cells [][]outcome) (*plot.Plot, error) {
	p := across("Bytes sent per event", "", l.links)
	for k, style := range looks(l.policies) {
		values := make([]float64, len(l.links))
		for i := range values {
			values[i] = cells[i][k].bytes
			if cells[i][k].sent == 0 {
				values[i] = math.NaN()
			}
		}
		if err := series(p, style, values); err != nil {
			return nil, err
		}
	}
	p.Y.Min, p.Y.Max = 0, max(p.Y.Max*1.08, 1)
	p.Y.Tick.Marker = steps(p.Y.Max, 5)
	return p, nil
}

// tailChart shows for one link which share of the events takes longer than a
// time.
func tailChart(l *lab, over int, cells []outcome, until time.Duration) (*plot.Plot, error) {
	p := newPlot("link: "+l.links[over].name, "ms since Send", "")
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
	p.X.Tick.Marker = steps(p.X.Max, 5)
	p.Y.Scale = plot.LogScale{}
	p.Y.Min, p.Y.Max = floor, 1
	p.Y.Tick.Marker = ticks(share, 1, 0.1, 0.01, 0.001, 0.0001)
	return p, nil
}

// copiesChart shows how many copies an event takes as the link turns bad and
// good again.
func copiesChart(policies []policy, copies [][]float64, over link) (*plot.Plot, error) {
	p := newPlot("Copies per event over time", "seconds", "")
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
	label, err := plotter.NewLabels(plotter.XYLabels{XYs: plotter.XYs{{X: from + 1, Y: most * 0.94}}, Labels: []string{"link: " + over.name}})
	if err != nil {
		return nil, err
	}
	label.TextStyle[0].Color, label.TextStyle[0].Font.Size = bad, 13
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
	p.X.Tick.Marker = steps(p.X.Max, 8)
	return p, nil
}

// storyChart draws the copies of one event between its two ends.
func storyChart(name string, s story, until float64) (*plot.Plot, error) {
	p := newPlot(fmt.Sprintf("%s: %s", name, s.summary()), "ms since Send", "")
	p.Title.TextStyle.Font.Size = 13
	for _, y := range []float64{0, 1} {
		if err := addLine(p, draw.LineStyle{Color: rule, Width: 1.2}, plotter.XY{X: 0, Y: y}, plotter.XY{X: until, Y: y}); err != nil {
			return nil, err
		}
	}
	for _, f := range s.copies {
		from := plotter.XY{X: milliseconds(f.sent), Y: 1}
		var shape draw.GlyphDrawer = draw.BoxGlyph{}
		if f.bundled {
			shape = draw.CircleGlyph{}
		}
		style, to, end := draw.LineStyle{Color: rule, Width: 1.3}, plotter.XY{X: milliseconds(f.arrived), Y: 0}, color.Color(rule)
		switch {
		case f.lost || f.arrived == 0:
			style.Color, end = bad, bad
			to = plotter.XY{X: from.X + milliseconds(s.flightTime())/2, Y: 0.5}
		case f.arrived == s.latency:
			style, end = draw.LineStyle{Color: good, Width: 2.6}, good
		}
		if err := addLine(p, style, from, to); err != nil {
			return nil, err
		}
		if err := addMark(p, end, shape, 3, from); err != nil {
			return nil, err
		}
		arrival, radius := draw.GlyphDrawer(draw.CircleGlyph{}), vg.Length(2.5)
		if f.lost {
			arrival, radius = cross{}, 4
		}
		if err := addMark(p, end, arrival, radius, to); err != nil {
			return nil, err
		}
	}
	if s.known > 0 {
		if err := addMark(p, ink, draw.PyramidGlyph{}, 5, plotter.XY{X: milliseconds(s.known), Y: 1.1}); err != nil {
			return nil, err
		}
	}
	p.Y.Tick.Marker = plot.ConstantTicks{{Value: 1, Label: "sender"}, {Value: 0, Label: "receiver"}}
	p.X.Min, p.X.Max, p.Y.Min, p.Y.Max = 0, until, -0.1, 1.25
	p.X.Tick.Marker = steps(until, 7)
	return p, nil
}

func addLine(p *plot.Plot, style draw.LineStyle, points ...plotter.XY) error {
	line, err := plotter.NewLine(plotter.XYs(points))
	if err != nil {
		return err
	}
	line.LineStyle = style
	p.Add(line)
	return nil
}

func addMark(p *plot.Plot, c color.Color, shape draw.GlyphDrawer, radius vg.Length, at plotter.XY) error {
	m, err := plotter.NewScatter(plotter.XYs{at})
	if err != nil {
		return err
	}
	m.GlyphStyle = draw.GlyphStyle{Color: c, Radius: radius, Shape: shape}
	p.Add(m)
	return nil
}

// summary says how an event fared.
func (s *story) summary() string {
	copies := "1 copy"
	if n := len(s.copies); n != 1 {
		copies = fmt.Sprintf("%d copies", n)
	}
	if s.latency == never {
		return "not delivered, " + copies
	}
	return fmt.Sprintf("%.0f ms, %s", milliseconds(s.latency), copies)
}

// end is when the last thing happens, in milliseconds.
func (s *story) end() (until float64) {
	for _, f := range s.copies {
		until = max(until, milliseconds(f.sent), milliseconds(f.arrived))
	}
	return max(until, milliseconds(s.known))
}

// words are the chart for those who do not see it.
func (s *story) words() string {
	var b strings.Builder
	for i, f := range s.copies {
		fmt.Fprintf(&b, "Copy %d is sent after %.0f ms", i+1, milliseconds(f.sent))
		if f.lost || f.arrived == 0 {
			b.WriteString(" and lost. ")
		} else {
			fmt.Fprintf(&b, " and arrives after %.0f ms. ", milliseconds(f.arrived))
		}
	}
	if s.known > 0 {
		fmt.Fprintf(&b, "The sender learns of it after %.0f ms.", milliseconds(s.known))
	}
	return b.String()
}

// cross is the end of a copy that was lost.
type cross struct{}

func (cross) DrawGlyph(c *draw.Canvas, style draw.GlyphStyle, at vg.Point) {
	r := style.Radius
	line := draw.LineStyle{Color: style.Color, Width: 2}
	c.StrokeLine2(line, at.X-r, at.Y-r, at.X+r, at.Y+r)
	c.StrokeLine2(line, at.X-r, at.Y+r, at.X+r, at.Y-r)
}

// flightTime is how long a copy that arrived was in flight.
func (s *story) flightTime() time.Duration {
	for _, f := range s.copies {
		if !f.lost && f.arrived > 0 {
			return f.arrived - f.sent
		}
	}
	return 0
}
