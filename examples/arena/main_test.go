package main

import (
	"bytes"
	"context"
	"crypto/ecdh"
	"log/slog"
	"net/netip"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/ackbits/ackbits/examples/arena/bots"
	"github.com/ackbits/ackbits/examples/arena/ledger"
	"github.com/ackbits/ackbits/examples/arena/link"
	"github.com/ackbits/ackbits/examples/arena/server"
	"github.com/stretchr/testify/require"
)

// asArena is the environment variable that makes the test binary be the program,
// for tests that need a process to kill.
const asArena = "ARENA_TEST_ARGS"

func TestMain(m *testing.M) {
	args, ok := os.LookupEnv(asArena)
	if !ok {
		os.Exit(m.Run())
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	os.Exit(exit(run(ctx, strings.Fields(args)), os.Stderr))
}

// field is a server and a swarm on real sockets, with ledgers.
type field struct {
	*testing.T
	server       *server.Server
	swarm        *bots.Swarm
	ours, theirs bytes.Buffer
	stop         func() // ends both; once
}

var mild = link.Conditions{Loss: 0.05, RTT: 40 * time.Millisecond}

// serverKey is the key of all servers of these tests.
var serverKey = func() *ecdh.PrivateKey {
	key, err := server.NewKey()
	if err != nil {
		panic(err)
	}
	return key
}()

// startServer makes the server of a field.
func (f *field) startServer(ctx context.Context, cfg server.Config) (served chan error) {
	cfg.Listen, cfg.Key, cfg.Shards = "127.0.0.1:0", serverKey, 2
	cfg.Ledger, cfg.Log = ledger.NewBook(&f.ours), slog.New(slog.DiscardHandler)
	var err error
	f.server, err = server.Listen(cfg)
	require.NoError(f, err)
	served = make(chan error, 1)
	go func() { served <- f.server.Serve(ctx) }()
	return served
}

// upTo are the limits of a server that lets so many players of an address in.
func upTo(perAddress int) server.Config {
	return server.Config{Limits: server.Limits{Rooms: 2, RoomSize: 64, PerAddress: perAddress}}
}

// newField starts a server and n bots, and waits until all of them play.
func newField(t *testing.T, n int, cfg server.Config, conditions link.Conditions) *field {
	f := &field{T: t}
	ctx, cancel := context.WithCancel(context.Background())
	served := f.startServer(ctx, cfg)
	f.startSwarm(n, conditions, f.server.Addr(), func() {
		cancel()
		require.NoError(t, <-served)
	})
	return f
}

// startSwarm starts bots that join the server at an address and waits until all
// of them play. Stopping the field calls stopServer after the bots have left.
func (f *field) startSwarm(n int, conditions link.Conditions, to netip.AddrPort, stopServer func()) {
	var err error
	f.swarm, err = bots.New(bots.Config{N: n, Server: to, ServerKey: serverKey.PublicKey(), Conditions: conditions, Workers: 1, Seed: 1,
		Ledger: ledger.NewBook(&f.theirs)})
	require.NoError(f, err)
	ctx, cancel := context.WithCancel(context.Background())
	ran := make(chan error, 1)
	go func() { ran <- f.swarm.Run(ctx) }()
	f.stop = sync.OnceFunc(func() {
		cancel()
		require.NoError(f, <-ran)
		stopServer()
	})
	f.Cleanup(f.stop)
	f.waitFor(5*time.Second, "all to play", func() bool { return f.swarm.Sum().Playing == n })
}

// waitFor fails the test unless ok becomes true in time.
func (f *field) waitFor(patience time.Duration, what string, ok func() bool) {
	f.Helper()
	for deadline := time.Now().Add(patience); !ok(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			f.Fatalf("waited %v in vain for %s", patience, what)
		}
	}
}

// wantLedgersClean ends the field and compares the ledgers.
func (f *field) wantLedgersClean() ledger.Report {
	f.Helper()
	f.stop()
	ours, err := ledger.Read(&f.ours)
	require.NoError(f, err)
	theirs, err := ledger.Read(&f.theirs)
	require.NoError(f, err)
	r := ledger.Compare(ours, theirs)
	f.Log(r)
	require.Empty(f, r.Problems)
	require.Positive(f, r.Events)
	return r
}
