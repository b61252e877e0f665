package main

import (
	"io"
	"sync"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/ackbits/ackbits"
	"github.com/ackbits/ackbits/examples/arena/client"
	"github.com/ackbits/ackbits/examples/arena/tui"
	"github.com/stretchr/testify/require"
)

// terminal runs the terminal client of a player with a keyboard and a screen
// that nobody looks at.
type terminal struct {
	*player
	keyboard *io.PipeWriter
	done     chan error
}

func startTerminal(t *testing.T, f *field) *terminal {
	p, err := newPlayer("Ann", f.server.Addr(), serverKey.PublicKey(), mild)
	require.NoError(t, err)
	in, keyboard := io.Pipe()
	term := &terminal{p, keyboard, make(chan error, 1)}
	program := tea.NewProgram(tui.New(p, "here"), tea.WithInput(in), tea.WithOutput(io.Discard), tea.WithWindowSize(120, 40), tea.WithoutSignals())
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
	term := startTerminal(t, f)
	f.waitFor(5*time.Second, "Ann to join", func() bool { return f.server.Players() == 3 })
	time.Sleep(300 * time.Millisecond)
	term.press(t, "d ")
	term.press(t, "\rhello\r")
	time.Sleep(500 * time.Millisecond)
	term.press(t, "q")
	require.NoError(t, <-term.done)
	require.ErrorIs(t, term.Over(), ackbits.ErrClosed)
	require.EqualValues(t, 1, term.Network().EventsSent, "the line of chat")
	require.Positive(t, term.Network().EventsReceived)
	require.Contains(t, term.View().Log, "<Ann> hello")
	f.waitFor(time.Second, "Ann to be gone", func() bool { return f.server.Players() == 2 })
	r := f.wantLedgersClean()
	require.Equal(t, 1, r.OneSided, "a human keeps no ledger")
}

// When the server goes away the screen says why, and any key ends the program.
func TestPlayUntilTheServerLeaves(t *testing.T) {
	t.Parallel()
	f := newField(t, 2, upTo(3), mild)
	term := startTerminal(t, f)
	f.waitFor(5*time.Second, "Ann to join", func() bool { return f.server.Players() == 3 })
	time.Sleep(300 * time.Millisecond)
	f.stop()
	time.Sleep(200 * time.Millisecond)
	term.press(t, "d")
	require.NoError(t, <-term.done)
	require.ErrorIs(t, term.Over(), client.ErrGoodbye)
	require.ErrorContains(t, term.Over(), "the server is shutting down")
}
