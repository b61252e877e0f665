package main

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ackbits/ackbits/endpoint"
	"github.com/ackbits/ackbits/examples/arena/client"
	"github.com/ackbits/ackbits/examples/arena/ledger"
	"github.com/ackbits/ackbits/examples/arena/server"
	"github.com/stretchr/testify/require"
)

// spawn starts the program in a process of its own.
func spawn(t *testing.T, args string) (cmd *exec.Cmd, log *bufio.Scanner) {
	cmd = exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), asArena+"="+args)
	stderr, err := cmd.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { cmd.Process.Kill() })
	return cmd, bufio.NewScanner(stderr)
}

// spawnServer starts a server with the key of these tests and returns where it
// listens.
func spawnServer(t *testing.T, args string) (*exec.Cmd, netip.AddrPort) {
	file := filepath.Join(t.TempDir(), "server.key")
	text := base64.RawURLEncoding.EncodeToString(serverKey.Bytes())
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	cmd, log := spawn(t, "serve -http= -key "+file+" "+args)
	for log.Scan() {
		if _, rest, ok := strings.Cut(log.Text(), "msg=serving addr="); ok {
			require.Contains(t, rest, "key="+server.EncodeKey(serverKey.PublicKey()))
			go func() {
				for log.Scan() { // or the pipe fills up
				}
			}()
			addr, _, _ := strings.Cut(rest, " ")
			return cmd, netip.MustParseAddrPort(addr)
		}
		t.Log(log.Text())
	}
	t.Fatal("the server did not start")
	return nil, netip.AddrPort{}
}

// A server killed under load and started again with its key: the new one tells the
// bots that it does not know them, and they are back within a second; within a
// session nothing was delivered twice.
func TestServerKilled(t *testing.T) {
	t.Parallel()
	const n = 24
	file := filepath.Join(t.TempDir(), "server.ledger")
	victim, addr := spawnServer(t, "-listen 127.0.0.1:0")
	f := &field{T: t}
	var second *exec.Cmd
	f.startSwarm(n, mild, addr, func() {
		require.NoError(t, second.Process.Signal(syscall.SIGTERM))
		require.NoError(t, second.Wait())
	})
	time.Sleep(time.Second)
	old := make(map[uint64]bool)
	for i := range n {
		old[f.swarm.Token(i)] = true
	}
	require.NoError(t, victim.Process.Kill())
	victim.Wait()
	second, _ = spawnServer(t, "-listen "+addr.String()+" -ledger "+file)
	restarted := time.Now()
	f.waitFor(3*time.Second, "all to join again", func() bool {
		for i := range n {
			if token := f.swarm.Token(i); token == 0 || old[token] {
				return false
			}
		}
		return f.swarm.Sum().Playing == n
	})
	took := time.Since(restarted)
	t.Logf("back after %v", took)
	if !raceDetector {
		require.Less(t, took, time.Second)
	}
	for i := range n {
		ends := f.swarm.Ends(i)
		require.Len(t, ends, 1)
		require.ErrorIs(t, ends[0].Err, endpoint.ErrReset)
	}
	time.Sleep(time.Second)
	f.stop()
	ours, err := readLedger(file)
	require.NoError(t, err)
	theirs, err := ledger.Read(&f.theirs)
	require.NoError(t, err)
	r := ledger.Compare(ours, theirs)
	t.Log(r)
	require.Empty(t, r.Problems)
	require.Equal(t, n, r.Sessions)
	require.Equal(t, n, r.OneSided, "the killed server's ledger is gone")
}

// SIGTERM tells every player why the game is over, and the ledgers are clean.
func TestServerTerminated(t *testing.T) {
	t.Parallel()
	const n = 16
	file := filepath.Join(t.TempDir(), "server.ledger")
	cmd, addr := spawnServer(t, "-listen 127.0.0.1:0 -ledger "+file)
	f := &field{T: t}
	f.startSwarm(n, mild, addr, func() {})
	time.Sleep(time.Second)
	require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
	require.NoError(t, cmd.Wait())
	f.waitFor(6*time.Second, "all to hear of it", func() bool {
		for i := range n {
			if len(f.swarm.Ends(i)) == 0 {
				return false
			}
		}
		return true
	})
	for i := range n {
		require.ErrorIs(t, f.swarm.Ends(i)[0].Err, client.ErrEnded)
	}
	f.stop()
	ours, err := readLedger(file)
	require.NoError(t, err)
	theirs, err := ledger.Read(&f.theirs)
	require.NoError(t, err)
	r := ledger.Compare(ours, theirs)
	require.Empty(t, r.Problems)
	require.Equal(t, n, r.Sessions)
}

// The program without arguments, only shorter, and bots against a server of
// another process: both end with clean ledgers and without an error.
func TestWholeProgram(t *testing.T) {
	t.Parallel()
	all, log := spawn(t, "-t 2s")
	var said bytes.Buffer
	for log.Scan() {
		said.WriteString(log.Text() + "\n")
	}
	require.NoError(t, all.Wait(), said.String())

	dir := t.TempDir()
	victim, addr := spawnServer(t, "-listen 127.0.0.1:0 -ledger "+dir+"/server")
	bots, _ := spawn(t, "bots -n 20 -t 2s -join "+addr.String()+" -key "+server.EncodeKey(serverKey.PublicKey())+" -ledger "+dir+"/bots")
	require.NoError(t, bots.Wait())
	require.NoError(t, victim.Process.Signal(syscall.SIGTERM))
	require.NoError(t, victim.Wait())
	require.NoError(t, run(t.Context(), []string{"compare", dir + "/server", dir + "/bots"}))
}

// A server on all addresses is found by name and by either kind of address.
func TestNames(t *testing.T) {
	t.Parallel()
	_, addr := spawnServer(t, "-listen [::]:0 -per-address 100 -per-network 100")
	for _, host := range []string{"localhost", "127.0.0.2", "[::1]"} {
		args := fmt.Sprintf("bots -n 2 -t 2s -loss 0 -ramp 100ms -join %s:%d -key %s", host, addr.Port(), server.EncodeKey(serverKey.PublicKey()))
		said, code := runArena(t, nil, args)
		require.Zero(t, code, said)
		require.Contains(t, said, "2 sessions")
	}
}
