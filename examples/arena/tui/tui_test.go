package tui_test

import (
	"errors"
	"regexp"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"charm.land/lipgloss/v2"
	"github.com/ackbits/ackbits"
	"github.com/ackbits/ackbits/endpoint"
	"github.com/ackbits/ackbits/examples/arena/client"
	"github.com/ackbits/ackbits/examples/arena/game"
	"github.com/ackbits/ackbits/examples/arena/tui"
	"github.com/stretchr/testify/require"
)

// fake is a player without a network.
type fake struct {
	level   *client.Level
	view    client.View
	network client.Network
	over    error
	held    game.Buttons // at the last Poll
	said    []string
	joins   int
	joining bool
	refused bool
	silence time.Duration
}

func (f *fake) Poll(held game.Buttons)  { f.held = held }
func (f *fake) Say(text string) bool    { f.said = append(f.said, text); return true }
func (f *fake) Leave()                  { f.over = errors.New("we left") }
func (f *fake) Rejoin()                 { f.over, f.joins = nil, f.joins+1 }
func (f *fake) Silence() time.Duration  { return f.silence }
func (f *fake) Refused() bool           { return f.refused }
func (f *fake) Playing() bool           { return f.over == nil && !f.joining }
func (f *fake) Over() error             { return f.over }
func (f *fake) Level() *client.Level    { return f.level }
func (f *fake) View() *client.View      { return &f.view }
func (f *fake) Network() client.Network { return f.network }

// table is a terminal by hand.
type table struct {
	*testing.T
	fake  *fake
	model tea.Model
}

func newTable(t *testing.T) *table {
	f := &fake{level: new(client.Level)}
	f.view.State = new(game.State)
	return &table{T: t, fake: f, model: tui.New(f, "example.net:7777")}
}

func (t *table) send(msg tea.Msg) (cmd tea.Cmd) {
	t.model, cmd = t.model.Update(msg)
	return cmd
}

func (t *table) press(keys ...tea.Key) {
	for _, key := range keys {
		t.send(tea.KeyPressMsg(key))
	}
}

func (t *table) typeText(text string) {
	for _, c := range text {
		t.press(tea.Key{Code: c, Text: string(c)})
	}
}

// tick waits for the next tick and lets the model poll.
func (t *table) tick() tea.Cmd { return t.send(t.model.Init()()) }

func (t *table) screen() string {
	return regexp.MustCompile("\x1b\\[[0-9;]*m").ReplaceAllString(t.model.View().Content, "")
}

var (
	right = tea.Key{Code: tea.KeyRight}
	space = tea.Key{Code: tea.KeySpace, Text: " "}
	enter = tea.Key{Code: tea.KeyEnter}
)

// Keys are held for a moment in a terminal that does not tell when they are let
// go, and until then in one that does.
func TestKeys(t *testing.T) {
	table := newTable(t)
	table.press(right, space)
	table.tick()
	require.Equal(t, game.Right|game.Fire, table.fake.held)
	time.Sleep(300 * time.Millisecond)
	table.tick()
	require.Zero(t, table.fake.held)

	table.send(tea.KeyboardEnhancementsMsg{Flags: 2})
	table.press(tea.Key{Code: 'w', Text: "w"})
	time.Sleep(300 * time.Millisecond)
	table.tick()
	require.Equal(t, game.Up, table.fake.held)
	table.send(tea.KeyReleaseMsg(tea.Key{Code: 'w', Text: "w"}))
	table.tick()
	require.Zero(t, table.fake.held)
}

// A line of chat is typed without moving anybody, and may be given up.
func TestChat(t *testing.T) {
	table := newTable(t)
	table.press(enter)
	table.typeText("hi theree")
	table.press(tea.Key{Code: tea.KeyBackspace})
	require.Contains(t, table.screen(), "say: hi there▏")
	table.press(enter)
	table.press(enter)
	table.typeText("never mind")
	table.press(tea.Key{Code: tea.KeyEscape})
	table.press(enter, enter)
	table.tick()
	require.Equal(t, []string{"hi there"}, table.fake.said)
	require.Zero(t, table.fake.held)
}

// The screen shows the arena around us, the scores and the network, in a
// terminal of any size.
func TestScreen(t *testing.T) {
	server := newPair(t)
	server.tell()
	server.load(game.MapSize)
	table := newTable(t)
	table.fake.view, table.fake.level = *server.client.View(), &server.level
	table.fake.network.RTT = 63 * time.Millisecond
	table.fake.network.Delivered, table.fake.network.Lost = 95, 5
	for _, size := range []tea.WindowSizeMsg{{Width: 80, Height: 24}, {Width: 200, Height: 60}, {Width: 20, Height: 8}, {Width: 1, Height: 1}} {
		table.send(size)
		screen := table.screen()
		require.Contains(t, screen, "▶", "us, facing right")
		require.Contains(t, screen, "rtt 63 ms")
		if size.Width >= 30 {
			require.Contains(t, screen, "loss 5.0%")
		}
		require.Contains(t, screen, "Ann  ♥♥")
		require.Contains(t, screen, "2 players")
	}
	table.send(tea.WindowSizeMsg{Width: 140, Height: 42})
	screen := table.screen()
	require.Contains(t, screen, "▲", "the other one")
	require.Contains(t, screen, "•", "a shot")
	for _, tile := range []string{"█", "♣", "~", ".", `"`} {
		require.Contains(t, screen, tile, "what stands on the map")
	}
	require.Regexp(t, `Bob +7`, screen)
	require.Less(t, strings.Index(screen, "Bob "), strings.Index(screen, "Ann  "), "the best first")
	require.Contains(t, screen, "<Bob> hello")
	for line := range strings.SplitSeq(screen, "\n") {
		require.LessOrEqual(t, lipgloss.Width(line), 140)
	}
}

// In the smallest usual terminal nothing is cut: the network line fits, and we are
// among the scores, however many are better; wide and combining characters keep
// to their columns.
func TestSmallTerminal(t *testing.T) {
	table := newTable(t)
	server := newPair(t)
	server.tell()
	server.load(game.MapSize)
	table.fake.level = &server.level
	view := &table.fake.view
	*view = *server.client.View() // we are Ann, in slot 4
	for slot := range view.Names {
		if slot != 4 {
			view.Names[slot], view.Scores[slot] = "漢字漢字漢", uint16(1000+slot)
		}
	}
	view.Names[5] = "e\u0301\u0302e\u0301\u0302"
	view.Scores[5] = 9999
	n := &table.fake.network
	n.RTT, n.RTTVar, n.Delivered, n.Lost, n.InFlight = 163*time.Millisecond, 12*time.Millisecond, 95, 5, 17
	n.EventsReceived, n.EventsDuplicate, n.Withheld = 12345, 1234, 12
	table.send(tea.WindowSizeMsg{Width: 80, Height: 24})
	screen := table.screen()
	lines := strings.Split(screen, "\n")
	require.LessOrEqual(t, len(lines), 24)
	for _, line := range lines {
		require.LessOrEqual(t, lipgloss.Width(line), 80, "%q", line)
	}
	require.Contains(t, screen, "rtt 163 ms ±12 ms · loss 5.0% · in flight 17 · events in 12345 (1234 copies)")
	require.Regexp(t, `Ann +0`, screen)
	ends := map[int]bool{}
	for _, line := range lines {
		if strings.Contains(line, "漢") || strings.Contains(line, "9999") || strings.Contains(line, "Ann  ") && !strings.Contains(line, "♥") {
			ends[lipgloss.Width(line)] = true
		}
	}
	require.Len(t, ends, 1, "all scores end in the same column")
}

// While the map arrives the player sees how far it is and who plays, and the map grows;
// then it says that it is about to begin.
func TestLoading(t *testing.T) {
	table := newTable(t)
	server := newPair(t)
	server.tell()
	server.watch()
	table.fake.level = &server.level
	look := func() string {
		table.fake.view = *server.client.View()
		return table.screen()
	}
	for _, width := range []int{200, 80} {
		table.send(tea.WindowSizeMsg{Width: width, Height: 60})
		for line := range strings.SplitSeq(look(), "\n") {
			require.LessOrEqual(t, lipgloss.Width(line), width)
		}
	}
	table.send(tea.WindowSizeMsg{Width: 200, Height: 60})
	require.Contains(t, look(), "waiting for the map")
	require.Contains(t, look(), "▲", "the other one")
	server.load(game.MapSize / 4)
	quarter := look()
	require.Regexp(t, `[2-5]\d% +the map: [3-6]\d of 128 KiB · you watch until it is here`, quarter)
	table.send(tea.WindowSizeMsg{Width: 80, Height: 24})
	for line := range strings.SplitSeq(look(), "\n") {
		require.LessOrEqual(t, lipgloss.Width(line), 80, "%q", line)
	}
	table.send(tea.WindowSizeMsg{Width: 200, Height: 60})
	server.load(game.MapSize * 9 / 10)
	most := look()
	require.Greater(t, strings.Count(most, "~"), strings.Count(quarter, "~"))
	server.load(game.MapSize)
	require.Contains(t, look(), "you are about to begin")
}

// A person is never left without a word: not while joining, not while the server
// is silent, not when it was lost.
func TestSilence(t *testing.T) {
	table := newTable(t)
	f := table.fake
	f.joining = true
	require.Contains(t, table.screen(), "joining example.net:7777 …")
	f.silence = 2100 * time.Millisecond
	require.Contains(t, table.screen(), "joining example.net:7777: no answer for 2.1 s")
	f.refused = true
	require.Contains(t, table.screen(), "nobody listens there (is arena serve running?)")
	f.joining, f.refused = false, false
	require.Contains(t, table.screen(), "no answer for 2.1 s")

	f.over = ackbits.ErrTimeout
	table.tick()
	require.Contains(t, table.screen(), "joining again in a moment · r: now")
	table.press(tea.Key{Code: 'r', Text: "r"})
	require.Equal(t, 1, f.joins)
	require.NoError(t, f.over)

	f.over, f.joining = endpoint.ErrReset, true
	table.tick()
	require.Equal(t, 1, f.joins, "the reason is shown for a moment")
	time.Sleep(1100 * time.Millisecond)
	table.tick()
	require.Equal(t, 2, f.joins, "by itself")
	require.Contains(t, table.screen(), "joining example.net:7777 again")

	f.over = &endpoint.RefusedError{Reason: "the server is full"}
	table.tick()
	time.Sleep(1100 * time.Millisecond)
	table.tick()
	require.Equal(t, 2, f.joins, "the server has decided")
	require.Contains(t, table.screen(), "the server is full · r: join again")
}

// The end is told with its reason, and any key but r leaves; q leaves the game first.
func TestEnd(t *testing.T) {
	table := newTable(t)
	table.fake.over = errors.New("the server is full")
	require.Contains(t, table.screen(), "over: the server is full")
	cmd := table.send(tea.KeyPressMsg(right))
	require.NotNil(t, cmd)
	require.Equal(t, tea.QuitMsg{}, cmd())

	table = newTable(t)
	table.press(tea.Key{Code: 'q', Text: "q"})
	require.Error(t, table.fake.over, "the player has left")
	require.Contains(t, table.screen(), "leaving")
	time.Sleep(350 * time.Millisecond)
	require.Equal(t, tea.QuitMsg{}, table.tick()(), "after the Disconnects went out")
}
