package main

import (
	"errors"
	"flag"
	"fmt"
	"net"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/ackbits/ackbits/endpoint"
	"github.com/ackbits/ackbits/examples/arena/link"
	"github.com/ackbits/ackbits/examples/arena/server"
	"github.com/stretchr/testify/require"
)

// A bot that is frozen for 4.9 s goes on with its session; one that is frozen
// for 5.2 s has lost it, is told so as soon as it is back, and joins again.
func TestFrozen(t *testing.T) {
	t.Parallel()
	f := newField(t, 8, upTo(2*8), link.Conditions{RTT: 20 * time.Millisecond})
	const short, long = 3, 4
	kept, lost := f.swarm.Token(short), f.swarm.Token(long)
	f.swarm.Freeze(short, 4900*time.Millisecond)
	f.swarm.Freeze(long, 5200*time.Millisecond)
	time.Sleep(4 * time.Second)
	require.Equal(t, 8, f.server.Players(), "nobody is given up before 5 s")
	f.waitFor(2*time.Second, "the server to give up one", func() bool { return f.server.Players() == 7 })

	// The server, which does not know it any more, tells it so at its next datagram.
	f.waitFor(2*time.Second, "the other to join again", func() bool {
		token := f.swarm.Token(long)
		return token != 0 && token != lost && f.swarm.Sum().Playing == 8
	})
	ends := f.swarm.Ends(long)
	require.Len(t, ends, 1)
	require.ErrorIs(t, ends[0].Err, endpoint.ErrReset)
	require.Equal(t, kept, f.swarm.Token(short))
	require.Empty(t, f.swarm.Ends(short))
	f.wantLedgersClean()
}

// Three seconds in which every link loses everything end nothing, and no event.
func TestBlackout(t *testing.T) {
	t.Parallel()
	f := newField(t, 16, upTo(2*16), mild)
	time.Sleep(500 * time.Millisecond)
	f.swarm.SetConditions(link.Conditions{Loss: 1})
	time.Sleep(500 * time.Millisecond) // for what was in flight
	before := f.swarm.Sum()
	time.Sleep(2500 * time.Millisecond)
	require.Equal(t, before.DatagramsIn, f.swarm.Sum().DatagramsIn, "it is dark")
	f.swarm.SetConditions(mild)
	f.waitFor(time.Second, "events to come through again", func() bool {
		return f.swarm.Sum().Stats.EventsReceived > before.Stats.EventsReceived
	})
	time.Sleep(time.Second)
	for i := range 16 {
		require.Empty(t, f.swarm.Ends(i))
	}
	r := f.wantLedgersClean()
	require.Equal(t, 16, r.Sessions)
}

// A client whose address changes plays on: the server sees its datagrams come from
// elsewhere, asks whether it is there, and sends there from then on.
func TestAddressChange(t *testing.T) {
	t.Parallel()
	f := newField(t, 4, upTo(4), mild)
	token := f.swarm.Token(2)
	for move := range uint64(3) {
		require.NoError(t, f.swarm.Move(2))
		f.waitFor(time.Second, "the server to follow", func() bool { return f.server.Counters().Moves.Load() > move })
		before := f.swarm.Got(2)
		f.waitFor(time.Second, "datagrams at the new address", func() bool { return f.swarm.Got(2) > before+5 })
	}
	require.Equal(t, token, f.swarm.Token(2))
	require.Empty(t, f.swarm.Ends(2))
	require.EqualValues(t, 3, f.server.Counters().Moves.Load())
	require.Equal(t, 4, f.server.Players())
	r := f.wantLedgersClean()
	require.Equal(t, 4, r.Sessions)
}

// Everything that a link can do to datagrams, short of silence, costs no event.
func TestBadNetwork(t *testing.T) {
	t.Parallel()
	f := newField(t, 16, upTo(2*16), link.Conditions{Loss: 0.2, RTT: 60 * time.Millisecond, Jitter: 30 * time.Millisecond})
	time.Sleep(3 * time.Second)
	r := f.wantLedgersClean()
	require.Equal(t, 16, r.Sessions)
}

// The command line refuses what makes no sense, in words, and once.
func TestCommandLine(t *testing.T) {
	for _, args := range [][]string{{""}, {"dance"}, {"bots", "-loss", "2"}, {"bots", "-n", "0"}, {"serve", "extra"},
		{"bots", "-n", "x"}, {"compare", "one"}, {"play", "-name", "\u3164"}} {
		require.ErrorIs(t, run(t.Context(), args), errUsage, "%q", args)
	}
	for _, join := range []string{"nowhere", ":7777", "0.0.0.0:7777", "127.0.0.1:0"} {
		require.ErrorContains(t, run(t.Context(), []string{"bots", "-join", join}), join)
	}
	require.ErrorIs(t, run(t.Context(), []string{"bots", "-key", "x"}), server.ErrKey)
	require.ErrorIs(t, run(t.Context(), []string{"-h"}), flag.ErrHelp)
	require.ErrorIs(t, run(t.Context(), []string{"serve", "-key", t.TempDir() + "/k", "-http", "0.0.0.0:0", "-listen", "127.0.0.1:0"}), server.ErrNotLoopback)
	require.False(t, errors.Is(run(t.Context(), []string{"compare", "/nonexistent/a", "/nonexistent/b"}), errUsage))
}

// What a person sees: commands in the help, no "arena: arena:", no success without
// a server, no name that nobody can read, and no folder left behind.
func TestWords(t *testing.T) {
	t.Parallel()
	said, code := runArena(t, nil, "-h")
	require.Zero(t, code)
	for _, command := range []string{"arena serve", "arena bots", "arena play", "arena compare", "-loss"} {
		require.Contains(t, said, command)
	}

	temporary := t.TempDir()
	nobody, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)}) // listens, and says nothing
	require.NoError(t, err)
	defer nobody.Close()
	said, code = runArena(t, []string{"TMPDIR=" + temporary}, "bots -n 2 -rtt 0 -loss 0 -join "+nobody.LocalAddr().String())
	require.Equal(t, 1, code)
	require.Contains(t, said, "arena: no bot could join 127.0.0.1:")
	require.Contains(t, said, "is the server running there? (arena serve)")
	require.Contains(t, said, "endpoint: no answer")
	require.NotContains(t, said, "arena: arena:")
	requireEmpty(t, temporary)

	f := newField(t, 1, upTo(10), link.Conditions{})
	other, err := server.NewKey()
	require.NoError(t, err)
	said, code = runArena(t, []string{"TMPDIR=" + temporary}, fmt.Sprintf("bots -n 2 -rtt 0 -loss 0 -t 30s -join %v -key %s",
		f.server.Addr(), server.EncodeKey(other.PublicKey())))
	require.Equal(t, 1, code)
	require.Contains(t, said, "the server has another key")
	require.NotContains(t, said, "is the server running")

	said, code = runArena(t, []string{"TMPDIR=" + temporary}, "-n 4 -t 1s")
	require.Zero(t, code, said)
	requireEmpty(t, temporary)

	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err == nil { // Linux
		defer full.Close()
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), asArena+"=-n 2 -t 1s", "TMPDIR="+temporary)
		cmd.Stdout = full
		require.Error(t, cmd.Run(), "a full disk is no success")
	}
}

func requireEmpty(t *testing.T, dir string) {
	t.Helper()
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, left)
}

// runArena runs the program and returns all that it said and its exit code.
func runArena(t *testing.T, env []string, args string) (said string, code int) {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(append(os.Environ(), asArena+"="+args), env...)
	out, err := cmd.CombinedOutput()
	if exit := (*exec.ExitError)(nil); !errors.As(err, &exit) {
		require.NoError(t, err)
	}
	return string(out), cmd.ProcessState.ExitCode()
}

func TestUserName(t *testing.T) {
	for _, variable := range []string{"USER", "USERNAME", "LOGNAME"} {
		t.Setenv(variable, "")
	}
	require.Equal(t, "player", userName())
	t.Setenv("LOGNAME", "ann\x1b")
	require.Equal(t, "ann", userName())
}
