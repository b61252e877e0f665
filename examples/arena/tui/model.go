// Package tui draws the arena in a terminal and reads its keys.
package tui

import (
	"strings"
	"time"

	"charm.land/bubbles/v2/progress"
	tea "charm.land/bubbletea/v2"
	"github.com/ackbits/ackbits/examples/arena/client"
	"github.com/ackbits/ackbits/examples/arena/game"
	"github.com/ackbits/ackbits/examples/arena/proto"
)

// Player is a client with its socket. It is over until Rejoin.
type Player interface {
	// Poll receives what has arrived, and sends the buttons and what is due.
	Poll(held game.Buttons)
	Say(text string) (ok bool)
	Leave()
	Playing() bool
	Over() error            // why it has ended
	Rejoin()                // begins another attempt
	Silence() time.Duration // since the server was last heard
	Refused() bool          // the server's machine says that nobody listens there
	View() *client.View
	Level() *client.Level // the map, as far as it has arrived
	Network() client.Network
}

// hold is how long a key counts as held in a terminal that does not tell when it
// is let go: longer than the pause before a key repeats would feel like ice,
// shorter than between two repeats would stutter.
const hold = 250 * time.Millisecond

const (
	// parting is how long a player who left stays to let the Disconnects go out.
	parting = 300 * time.Millisecond

	// rejoinAfter is how long the reason is shown for which the server was lost,
	// until the next attempt.
	rejoinAfter = time.Second
)

var keys = map[string]game.Buttons{
	"up": game.Up, "w": game.Up, "k": game.Up,
	"down": game.Down, "s": game.Down, "j": game.Down,
	"left": game.Left, "a": game.Left, "h": game.Left,
	"right": game.Right, "d": game.Right, "l": game.Right,
	"space": game.Fire,
}

// Model is the terminal client as Bubble Tea runs it.
type Model struct {
	player        Player
	server        string
	width, height int

	releases bool // the terminal tells when a key is let go
	held     game.Buttons
	until    [8]time.Time // by bit of Buttons: when it is let go by itself

	bar     progress.Model // of the map
	typing  bool
	line    []rune
	leaving time.Time // when we asked to leave
	lostAt  time.Time // when the server was lost; zero while it is not
	lost    error     // why it was lost, until we play again
}

// New returns a model that plays at a server, of which the name is shown.
func New(player Player, server string) *Model {
	return &Model{player: player, server: server, width: 80, height: 24,
		bar: progress.New(progress.WithWidth(barCells), progress.WithColors(mine))}
}

type tickMsg time.Time

func tick() tea.Cmd {
	return tea.Tick(time.Second/game.TickRate, func(t time.Time) tea.Msg { return tickMsg(t) })
}

// Init is of tea.Model.
func (m *Model) Init() tea.Cmd { return tick() }

// Update is of tea.Model.
func (m *Model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.width, m.height = msg.Width, msg.Height
	case tea.KeyboardEnhancementsMsg:
		m.releases = msg.SupportsEventTypes()
	case tea.KeyPressMsg:
		return m, m.press(msg, time.Now())
	case tea.KeyReleaseMsg:
		m.held &^= keys[tea.Key(msg).Keystroke()]
	case tickMsg:
		return m, m.tick(time.Time(msg))
	}
	return m, nil
}

// tick plays a sixtieth of a second.
func (m *Model) tick(now time.Time) tea.Cmd {
	if !m.releases {
		for bit, until := range m.until {
			if now.After(until) {
				m.held &^= 1 << bit
			}
		}
	}
	m.player.Poll(m.held)
	m.rejoin(now)
	if !m.leaving.IsZero() && now.Sub(m.leaving) >= parting {
		return tea.Quit
	}
	return tick()
}

// rejoin joins again where the server was lost, after a moment.
func (m *Model) rejoin(now time.Time) {
	switch err := m.player.Over(); {
	case m.player.Playing():
		m.lost, m.lostAt = nil, time.Time{}
	case err == nil || !client.Lost(err) || !m.leaving.IsZero():
	case m.lostAt.IsZero():
		m.lost, m.lostAt = err, now
	case now.Sub(m.lostAt) >= rejoinAfter:
		m.lostAt = time.Time{}
		m.player.Rejoin()
	}
}

// press handles a key.
func (m *Model) press(msg tea.KeyPressMsg, now time.Time) tea.Cmd {
	key := msg.String()
	if m.player.Over() != nil && m.leaving.IsZero() { // the reason is shown
		if key == "r" || key == "R" {
			m.lostAt = time.Time{}
			m.player.Rejoin()
			return nil
		}
		return tea.Quit
	}
	if key == "ctrl+c" {
		m.leave(now)
		return nil
	}
	if m.typing {
		m.typed(key, msg.Text)
		return nil
	}
	switch key {
	case "q":
		m.leave(now)
	case "enter", "t":
		m.typing, m.held = true, 0
	default:
		button := keys[key]
		m.held |= button
		for bit := range m.until {
			if button>>bit&1 != 0 {
				m.until[bit] = now.Add(hold)
			}
		}
	}
	return nil
}

func (m *Model) leave(now time.Time) {
	if m.leaving.IsZero() {
		m.player.Leave()
		m.leaving = now
	}
}

// typed edits the line of chat.
func (m *Model) typed(key, text string) {
	switch key {
	case "enter":
		if len(m.line) > 0 {
			m.player.Say(string(m.line))
		}
		m.typing, m.line = false, nil
	case "esc":
		m.typing, m.line = false, nil
	case "backspace":
		m.line = m.line[:max(len(m.line)-1, 0)]
	default:
		const end = "|" // keeps the space that a word is about to follow
		m.line = []rune(strings.TrimSuffix(proto.Clip(string(m.line)+text+end, proto.MaxText+len(end)), end))
	}
}

// View is of tea.Model.
func (m *Model) View() tea.View {
	v := tea.NewView(m.render())
	v.AltScreen = true
	v.WindowTitle = "arena"
	v.KeyboardEnhancements.ReportEventTypes = true
	return v
}
