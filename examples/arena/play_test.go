package main

import (
	"io"
	"net/netip"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/ackbits/ackbits"
	"github.com/ackbits/ackbits/examples/arena/client"
	"github.com/ackbits/ackbits/examples/arena/tui"
	"github.com/stretchr/testify/require"
)

// terminal runs the terminal client of a player with a keyboard and a screen.
type terminal struct {
	*player
	keyboard *io.PipeWriter
	screen   *screen
	done     chan error
}

// screen keeps what a program writes to its terminal.
type screen struct {
	mu   sync.Mutex
	text strings.Builder
}

func (s *screen) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(b)
}

// shown reports whether a text was shown since the last call that found one.
func (s *screen) shown(text string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !strings.Contains(s.text.String(), text) {
		return false
	}
	s.text.Reset()
	return true
}

func startTerminal(t *testing.T, server netip.AddrPort) *terminal {
	p, err := newPlayer("Ann", server, serverKey.PublicKey(), mild)
	require.NoError(t, err)
	in, keyboard := io.Pipe()
	term := &terminal{p, keyboard, new(screen), make(chan error, 1)}
	program := tea.NewProgram(tui.New(p, "here"), tea.WithInput(in), tea.WithOutput(term.screen), tea.WithWindowSize(120, 40), tea.WithoutSignals())
	go func() {
		_, err := program.Run()
		term.done <- err
	}()
	t.Cleanup(sync.OnceFunc(func() {
		program.Kill()
		keyboard.Close()
		p.conn.Close()
	}))
	return term
}

func (term *terminal) press(t *testing.T, keys string) {
	_, err := io.WriteString(term.keyboard, keys)
	require.NoError(t, err)
}

// A human joins, walks, chats and leaves; the others see it come and go.
func TestPlay(t *testing.T) {
	t.Parallel()
	f := newField(t, 2, upTo(3), mild)
	term := startTerminal(t, f.server.Addr())
	f.waitFor(10*time.Second, "Ann to have the map, and to live", func() bool { return term.screen.shown("♥") })
	term.press(t, "d ")
	term.press(t, "\rhello\r")
	time.Sleep(time.Second)
	term.press(t, "q")
	require.NoError(t, <-term.done)
	require.ErrorIs(t, term.Over(), ackbits.ErrClosed)
	require.EqualValues(t, 1, term.Network().EventsSent, "the line of chat")
	require.Positive(t, term.Network().EventsReceived)
	require.NotNil(t, term.Level().Map())
	require.Contains(t, term.View().Log, "<Ann> hello")
	f.waitFor(time.Second, "Ann to be gone", func() bool { return f.server.Players() == 2 })
	r := f.wantLedgersClean()
	require.Equal(t, 1, r.OneSided, "a human keeps no ledger")
}

// When the server goes away the screen says why, and any key ends the program.
func TestPlayUntilTheServerLeaves(t *testing.T) {
	t.Parallel()
	f := newField(t, 2, upTo(3), mild)
	term := startTerminal(t, f.server.Addr())
	f.waitFor(5*time.Second, "Ann to join", func() bool { return f.server.Players() == 3 })
	time.Sleep(300 * time.Millisecond)
	f.stop()
	time.Sleep(200 * time.Millisecond)
	term.press(t, "d")
	require.NoError(t, <-term.done)
	require.ErrorIs(t, term.Over(), client.ErrEnded)
	require.ErrorContains(t, term.Over(), "the server is shutting down")
}

// A server that is killed does not leave a frozen screen: the silence is shown, then
// that nobody is there, and when it is back the player is, by itself.
func TestPlayThroughRestart(t *testing.T) {
	t.Parallel()
	f := &field{T: t}
	victim, addr := spawnServer(t, "-listen 127.0.0.1:0")
	term := startTerminal(t, addr)
	f.waitFor(5*time.Second, "Ann to play", func() bool { return term.screen.shown("Ann") })
	require.NoError(t, victim.Process.Kill())
	victim.Wait()
	f.waitFor(4*time.Second, "the silence to be shown", func() bool { return term.screen.shown("no answer for ") })
	f.waitFor(10*time.Second, "the reason to be shown", func() bool { return term.screen.shown("nobody listens there") })
	second, _ := spawnServer(t, "-listen "+addr.String())
	f.waitFor(5*time.Second, "Ann to play again", func() bool { return term.screen.shown("Ann") })
	term.press(t, "q")
	require.NoError(t, <-term.done)
	require.ErrorIs(t, term.Over(), ackbits.ErrClosed)
	require.NoError(t, second.Process.Signal(syscall.SIGTERM))
	require.NoError(t, second.Wait())
}
