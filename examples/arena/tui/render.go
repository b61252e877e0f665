package tui

import (
	"fmt"
	"image/color"
	"slices"
	"strings"
	"time"

	"charm.land/lipgloss/v2"
	"github.com/ackbits/ackbits/examples/arena/client"
	"github.com/ackbits/ackbits/examples/arena/game"
	"github.com/charmbracelet/x/ansi"
)

const (
	sidebar  = 26 // columns of the scores, and what is left and right of them
	logLines = 5
	barCells = 24
)

// What a tile looks like. Nothing is drawn of what has not arrived.
var tiles = [...]rune{
	game.Unknown: ' ',
	game.Ground:  ' ',
	game.Grass:   '"',
	game.Sand:    '.',
	game.Water:   '~',
	game.Tree:    '♣',
	game.Wall:    '█',
}

// The colours of what a cell of the arena can show.
var paint = map[rune]color.Color{
	'█': lipgloss.Color("#718096"),
	'·': lipgloss.Color("#4a5568"),
	'"': lipgloss.Color("#46664d"),
	'.': lipgloss.Color("#8a7a4a"),
	'~': lipgloss.Color("#4a7fb5"),
	'♣': lipgloss.Color("#4f8a5b"),
	'•': lipgloss.Color("#f6e05e"),
	'x': lipgloss.Color("#a0aec0"),
}

var (
	mine   = lipgloss.Color("#68d391")
	theirs = lipgloss.Color("#fc8181")

	frame  = lipgloss.NewStyle().Border(lipgloss.RoundedBorder()).BorderForeground(lipgloss.Color("#4a5568"))
	title  = lipgloss.NewStyle().Bold(true).Foreground(lipgloss.Color("#f6e05e"))
	faint  = lipgloss.NewStyle().Foreground(lipgloss.Color("#718096"))
	strong = lipgloss.NewStyle().Bold(true).Foreground(mine)
	alarm  = lipgloss.NewStyle().Bold(true).Foreground(lipgloss.Color("#1a202c")).Background(theirs).Padding(0, 1)
)

var arrows = [8]rune{'▶', '◢', '▼', '◣', '◀', '◤', '▲', '◥'}

// render draws everything, as wide and high as the terminal is.
func (m *Model) render() string {
	view := m.player.View()
	width := min(max(m.width-sidebar-2, 10), game.Columns)
	height := min(max(m.height-logLines-5, 5), game.Rows)
	arena := frame.Render(drawArena(view, m.player.Level(), width, height))
	top := lipgloss.JoinHorizontal(lipgloss.Top, arena, drawScores(view, height))
	return strings.Join([]string{
		title.Render("arena") + faint.Render("  move: arrows or wasd · fire: space · chat: enter · leave: q"),
		top,
		networkLine(m.player.Network(), m.width),
		drawLog(view, m.width),
		m.status(view),
	}, "\n")
}

// silence is how long the server may be silent before the player is told: a few
// snapshots. Shorter, the line would flicker on a bad network.
const silence = time.Second

// status is the last line: what is typed, or what the matter is.
func (m *Model) status(view *client.View) string {
	slot, seated := view.Me()
	switch err := m.player.Over(); {
	case !m.leaving.IsZero():
		return alarm.Render("leaving")
	case err != nil && client.Lost(err):
		return alarm.Render(fmt.Sprintf("%v · joining again in a moment · r: now · other keys: leave", err))
	case err != nil:
		return alarm.Render(fmt.Sprintf("over: %v · r: join again · other keys: leave", err))
	case !m.player.Playing():
		return m.joining()
	case m.player.Silence() > silence:
		return alarm.Render("no answer for " + seconds(m.player.Silence()))
	case m.typing:
		return "say: " + string(m.line) + "▏"
	case seated && m.player.Level().Map() == nil:
		return m.loading()
	case seated && !view.State[slot].Present:
		return faint.Render("the map is here; you are about to begin")
	case seated && !view.State[slot].Alive:
		return strong.Render("you were shot; back in a moment")
	case seated:
		return strong.Render(fmt.Sprintf("%s  %s", view.Names[slot], strings.Repeat("♥", int(view.State[slot].HP))))
	}
	return ""
}

// loading is the status of a player who watches until the map is there.
func (m *Model) loading() string {
	done, size := m.player.Level().Progress()
	if size == 0 {
		return faint.Render("waiting for the map")
	}
	text := m.bar.ViewAs(float64(done)/float64(size)) + faint.Render(fmt.Sprintf("  the map: %d of %d KiB · you watch until it is here", done>>10, size>>10))
	return lipgloss.NewStyle().MaxWidth(max(m.width, 1)).Render(text)
}

// joining is the status of a player who is not let in yet.
func (m *Model) joining() string {
	text := "joining " + m.server
	if m.lost != nil {
		text += " again"
	}
	switch {
	case m.player.Refused():
		return alarm.Render(text + ": nobody listens there (is arena serve running?)")
	case m.player.Silence() > silence:
		return alarm.Render(text + ": no answer for " + seconds(m.player.Silence()))
	}
	return faint.Render(text + " …")
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.1f s", d.Seconds()) }

// camera returns the tile in the middle of the screen: that of the player or, while it
// watches, of the best who lives.
func camera(view *client.View) (column, row int) {
	at := game.Body{X: game.Width / 2, Y: game.Height / 2}
	if me, seated := view.Me(); seated && view.State[me].Present && view.Self.X|view.Self.Y != 0 {
		at = view.Self
	} else {
		best := -1
		for slot := range view.State {
			if view.State[slot].Alive && (best < 0 || view.Scores[slot] > view.Scores[best]) {
				best, at = slot, view.State[slot]
			}
		}
	}
	return int(at.X) / game.Cell, int(at.Y) / game.Cell
}

// drawArena draws the part of the arena around the player, of a map that is arriving
// what there is of it.
func drawArena(view *client.View, level *client.Level, width, height int) string {
	me, seated := view.Me()
	column, row := camera(view)
	left, top := clamp(column-width/2, game.Columns-width), clamp(row-height/2, game.Rows-height)
	cells := slices.Repeat([]rune{' '}, width*height)
	put := func(x, y int, c rune) {
		if x, y = x-left, y-top; x >= 0 && y >= 0 && x < width && y < height {
			cells[y*width+x] = c
		}
	}
	ground := level.Arriving()
	for y := top; y < top+height; y++ {
		for x := left; x < left+width; x++ {
			if x%8 == 4 && y%4 == 2 {
				put(x, y, '·') // so that one sees oneself move
			}
			if ground == nil {
				continue
			}
			if tile := tiles[ground.At(x, y)]; tile != ' ' {
				put(x, y, tile)
			}
		}
	}
	for i := range view.State {
		if p := &view.State[i]; p.Present && !p.Alive && p.X|p.Y != 0 {
			put(int(p.X)/game.Cell, int(p.Y)/game.Cell, 'x')
		}
	}
	for i := range view.State {
		p := &view.State[i]
		if p.Alive && !(seated && i == me) {
			put(int(p.X)/game.Cell, int(p.Y)/game.Cell, arrows[p.Facing&7])
		}
		if p.Shot {
			put(int(p.ShotX)/game.Cell, int(p.ShotY)/game.Cell, '•')
		}
	}
	ours := -1
	if seated && view.State[me].Alive {
		x, y := int(view.Self.X)/game.Cell, int(view.Self.Y)/game.Cell
		put(x, y, arrows[view.Self.Facing&7])
		ours = (y-top)*width + x - left
	}
	return colour(cells, width, ours)
}

// colour writes cells out, one style for each run of the same cells.
func colour(cells []rune, width, ours int) string {
	var out strings.Builder
	for from := 0; from < len(cells); {
		to := from + 1
		for to < len(cells) && to%width != 0 && cells[to] == cells[from] && to != ours && from != ours {
			to++
		}
		text := string(cells[from:to])
		fill, known := paint[cells[from]]
		switch {
		case cells[from] == ' ':
			out.WriteString(text)
		case from == ours:
			out.WriteString(strong.Render(text))
		case known:
			out.WriteString(lipgloss.NewStyle().Foreground(fill).Render(text))
		default:
			out.WriteString(lipgloss.NewStyle().Foreground(theirs).Render(text))
		}
		if to%width == 0 && to < len(cells) {
			out.WriteByte('\n')
		}
		from = to
	}
	return out.String()
}

// drawScores lists the players, the best first, and in any case us.
func drawScores(view *client.View, height int) string {
	var slots []int
	for slot, name := range view.Names {
		if name != "" {
			slots = append(slots, slot)
		}
	}
	slices.SortStableFunc(slots, func(a, b int) int { return int(view.Scores[b]) - int(view.Scores[a]) })
	lines := []string{title.Render(fmt.Sprintf("%d players", len(slots)))}
	me, seated := view.Me()
	room := height - 1
	if ours := slices.Index(slots, me); seated && ours >= room {
		slots[room-1] = me
	}
	for _, slot := range slots[:min(len(slots), room)] {
		line := fmt.Sprintf("%s %5d", cells(view.Names[slot], nameCells), view.Scores[slot])
		if seated && slot == me {
			line = strong.Render(line)
		}
		lines = append(lines, line)
	}
	return lipgloss.NewStyle().Padding(1, 0, 0, 2).Render(strings.Join(lines, "\n"))
}

// nameCells is how wide the column of names is. Wide characters take two cells,
// combining marks none.
const nameCells = 16

// cells cuts or fills a text to n cells.
func cells(s string, n int) string {
	s = ansi.Truncate(s, n, "…")
	return s + strings.Repeat(" ", max(n-lipgloss.Width(s), 0))
}

// networkLine tells how the connection is doing, as much of it as fits.
func networkLine(n client.Network, width int) string {
	loss := 0.0
	if decided := n.Delivered + n.Lost; decided > 0 {
		loss = 100 * float64(n.Lost) / float64(decided)
	}
	line := fmt.Sprintf("rtt %s ±%s", ms(n.RTT), ms(n.RTTVar))
	for _, part := range []string{
		fmt.Sprintf("loss %.1f%%", loss),
		fmt.Sprintf("in flight %d", n.InFlight),
		fmt.Sprintf("events in %d (%d copies)", n.EventsReceived, n.EventsDuplicate),
		fmt.Sprintf("withheld %d", n.Withheld),
	} {
		if longer := line + " · " + part; lipgloss.Width(longer) <= width {
			line = longer
		}
	}
	if heading := "network "; lipgloss.Width(heading+line) <= width {
		line = faint.Render(heading) + line
	}
	return line
}

func ms(d time.Duration) string { return fmt.Sprintf("%d ms", d.Milliseconds()) }

// drawLog shows the latest lines of news and chat.
func drawLog(view *client.View, width int) string {
	lines := view.Log[max(len(view.Log)-logLines, 0):]
	out := make([]string, logLines)
	for i, line := range lines {
		out[i] = faint.MaxWidth(max(width, 1)).Render(line)
	}
	return strings.Join(out, "\n")
}

func clamp(v, limit int) int { return min(max(v, 0), max(limit, 0)) }
