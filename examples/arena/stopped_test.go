//go:build unix

package main

import (
	"context"
	"net/netip"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/ackbits/ackbits/examples/arena/internal/hostile"
	"github.com/stretchr/testify/require"
)

// A server that was stopped for longer than the timeout of its sessions ends none
// whose datagrams wait in the kernel: it reads what came before it believes that
// nobody is there.
func TestServerStopped(t *testing.T) {
	t.Parallel()
	const n = 8
	cmd, addr := spawnServer(t, "-listen 127.0.0.1:0")
	var wg sync.WaitGroup
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	peers := make([]*hostile.Peer, n)
	for i := range peers {
		var err error
		peers[i], err = hostile.Dial(addr, netip.Addr{}, serverKey.PublicKey(), "patient")
		require.NoError(t, err)
		defer peers[i].Close()
		require.NoError(t, peers[i].Join())
		wg.Go(func() { // with a timeout of 20 s of its own
			for ctx.Err() == nil && peers[i].Run(16*time.Millisecond) == nil {
				peers[i].Input(0)
			}
		})
	}
	time.Sleep(300 * time.Millisecond)
	require.NoError(t, cmd.Process.Signal(syscall.SIGSTOP))
	time.Sleep(5500 * time.Millisecond)
	require.NoError(t, cmd.Process.Signal(syscall.SIGCONT))
	time.Sleep(1500 * time.Millisecond)
	stop()
	wg.Wait()
	for _, p := range peers {
		require.NoError(t, p.Client.Err())
		before := p.DatagramsIn
		require.NoError(t, p.Run(200*time.Millisecond))
		require.Greater(t, p.DatagramsIn, before, "the session goes on")
	}
}
