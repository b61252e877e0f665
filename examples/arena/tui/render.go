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
)

const (
	sidebar  = 26 // columns of the scores, and what is left and right of them
	logLines = 5
	columns  = game.Width / game.Cell
	rows     = game.Height / game.Cell
)

// The colours of what a cell of the arena can show.
var paint = map[rune]color.Color{
	'█': lipgloss.Color("#4a5568"),
	'·': lipgloss.Color("#2d3748"),
	'•': lipgloss.Color("#f6e05e"),
	'x': lipgloss.Color("#718096"),
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
	width := min(max(m.width-sidebar-2, 10), columns)
	height := min(max(m.height-logLines-5, 5), rows)
	arena := frame.Render(drawArena(view, width, height))
	top := lipgloss.JoinHorizontal(lipgloss.Top, arena, drawScores(view, height))
	return strings.Join([]string{
		title.Render("arena") + faint.Render("  move: arrows or wasd · fire: space · chat: enter · leave: q"),
		top,
		networkLine(m.player.Network()),
		drawLog(view, m.width),
		m.status(view),
	}, "\n")
}

// status is the last line: what is typed, or what the matter is.
func (m *Model) status(view *client.View) string {
	slot, seated := view.Me()
	switch err := m.player.Over(); {
	case !m.leaving.IsZero():
		return alarm.Render("leaving")
	case err != nil:
		return alarm.Render(fmt.Sprintf("over: %v · press any key", err))
	case m.typing:
		return "say: " + string(m.line) + "▏"
	case !m.player.Playing():
		return faint.Render("joining …")
	case seated && !view.State[slot].Alive:
		return strong.Render("you were shot; back in a moment")
	case seated:
		return strong.Render(fmt.Sprintf("%s  %s", view.Names[slot], strings.Repeat("♥", int(view.State[slot].HP))))
	}
	return ""
}

// drawArena draws the part of the arena around the player.
func drawArena(view *client.View, width, height int) string {
	me, seated := view.Me()
	left, top := 0, 0
	if seated {
		left = clamp(int(view.State[me].X)/game.Cell-width/2, columns-width)
		top = clamp(int(view.State[me].Y)/game.Cell-height/2, rows-height)
	}
	cells := slices.Repeat([]rune{' '}, width*height)
	put := func(x, y int, c rune) {
		if x, y = x-left, y-top; x >= 0 && y >= 0 && x < width && y < height {
			cells[y*width+x] = c
		}
	}
	for y := range rows {
		for x := range columns {
			if x%8 == 4 && y%4 == 2 {
				put(x, y, '·') // so that one sees oneself move
			}
		}
	}
	for _, wall := range game.Walls {
		for y := wall.MinY; y < wall.MaxY; y += game.Cell {
			for x := wall.MinX; x < wall.MaxX; x += game.Cell {
				put(int(x)/game.Cell, int(y)/game.Cell, '█')
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
		if p.Alive {
			put(int(p.X)/game.Cell, int(p.Y)/game.Cell, arrows[p.Facing&7])
		}
		if p.Shot {
			put(int(p.ShotX)/game.Cell, int(p.ShotY)/game.Cell, '•')
		}
	}
	ours := -1
	if seated && view.State[me].Alive {
		x, y := int(view.State[me].X)/game.Cell, int(view.State[me].Y)/game.Cell
		put(x, y, arrows[view.State[me].Facing&7])
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

// drawScores lists the players, the best first.
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
	for _, slot := range slots[:min(len(slots), height-1)] {
		line := fmt.Sprintf("%-16s %5d", view.Names[slot], view.Scores[slot])
		if seated && slot == me {
			line = strong.Render(line)
		}
		lines = append(lines, line)
	}
	return lipgloss.NewStyle().Padding(1, 0, 0, 2).Render(strings.Join(lines, "\n"))
}

// networkLine tells how the connection is doing.
func networkLine(n client.Network) string {
	loss := 0.0
	if decided := n.Delivered + n.Lost; decided > 0 {
		loss = 100 * float64(n.Lost) / float64(decided)
	}
	return faint.Render("network ") + fmt.Sprintf("rtt %s ±%s · loss %.1f%% · in flight %d · events in %d (%d copies) · withheld %d",
		ms(n.RTT), ms(n.RTTVar), loss, n.InFlight, n.EventsReceived, n.EventsDuplicate, n.Withheld)
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
