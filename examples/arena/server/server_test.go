package server_test

import (
	"context"
	"crypto/ecdh"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/ackbits/ackbits"
	"github.com/ackbits/ackbits/endpoint"
	"github.com/ackbits/ackbits/examples/arena/internal/hostile"
	"github.com/ackbits/ackbits/examples/arena/ledger"
	"github.com/ackbits/ackbits/examples/arena/proto"
	"github.com/ackbits/ackbits/examples/arena/server"
	"github.com/stretchr/testify/require"
)

// key is the server's in these tests.
var key = func() *ecdh.PrivateKey {
	k, err := server.NewKey()
	if err != nil {
		panic(err)
	}
	return k
}()

// start runs a server for the time of a test; of cfg it fills in what is missing.
func start(t *testing.T, cfg server.Config) *server.Server {
	if cfg.Listen == "" {
		cfg.Listen = "127.0.0.1:0"
	}
	cfg.Key, cfg.Shards, cfg.Log = key, 1, slog.New(slog.DiscardHandler)
	s, err := server.Listen(cfg)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- s.Serve(ctx) }()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-served)
	})
	return s
}

var roomy = server.Config{Limits: server.Limits{Rooms: 1, RoomSize: 64, PerAddress: 64}}

// dial opens a socket towards a server at a local address.
func dial(t *testing.T, s *server.Server, local string) *hostile.Peer {
	p, err := hostile.Dial(s.Addr(), netip.MustParseAddr(local), key.PublicKey(), "x")
	require.NoError(t, err)
	t.Cleanup(func() { p.Close() })
	return p
}

// join joins a server from a local address.
func join(t *testing.T, s *server.Server, local string) *hostile.Peer {
	p := dial(t, s, local)
	require.NoError(t, p.Join())
	return p
}

func waitFor(t *testing.T, patience time.Duration, what string, ok func() bool) {
	t.Helper()
	require.Eventually(t, ok, patience, 5*time.Millisecond, what)
}

// A copy of the Hello that was let in makes no second peer, is not answered once
// the session lives, and not after it has ended: no late one makes a ghost.
func TestLateHelloMakesNoGhost(t *testing.T) {
	t.Parallel()
	s := start(t, roomy)
	p := join(t, s, "127.0.0.1")
	require.NoError(t, p.Run(300*time.Millisecond))
	require.Equal(t, 1, s.Players())
	hello := p.Hellos[len(p.Hellos)-1]
	hushed := s.Gate().Hushed
	p.Write(hello)
	waitFor(t, time.Second, "the copy to be dropped", func() bool { return s.Gate().Hushed > hushed })

	p.Leave()
	waitFor(t, time.Second, "the peer to be gone", func() bool { return s.Players() == 0 })
	for p.Read(50*time.Millisecond) != nil {
	}
	hushed = s.Gate().Hushed
	p.Write(hello)
	waitFor(t, time.Second, "the late copy to be dropped", func() bool { return s.Gate().Hushed > hushed })
	require.Nil(t, p.Read(200*time.Millisecond))
	require.Zero(t, s.Players())
	require.EqualValues(t, 1, s.Gate().Joins)
}

// A spoofed source is sent no more than it sent, whatever it sends.
func TestNoAmplification(t *testing.T) {
	t.Parallel()
	s := start(t, roomy)
	p := dial(t, s, "127.0.0.1")
	p.Flush()
	hello := p.Hellos[0]
	for p.Read(200*time.Millisecond) != nil {
	}
	sent, received := p.BytesOut, p.BytesIn
	require.Positive(t, received, "the whole Hello is answered")
	require.Less(t, received, sent)
	for n := range len(hello) {
		p.Write(hello[:n])
	}
	for _, sealed := range []bool{false, true} {
		for _, typ := range []ackbits.Type{1, 2, 3, 4, 5, 6, 7, 8, 9, 16, 255} {
			for _, size := range []int{0, 15, 16, 100} {
				p.Write(append(ackbits.Header{Type: typ, Token: 9, Sealed: sealed}.AppendTo(nil), make([]byte, size)...))
			}
		}
	}
	for datagram := p.Read(300 * time.Millisecond); datagram != nil; datagram = p.Read(200 * time.Millisecond) {
		require.Len(t, datagram, 26, "nothing is answered but what may be of a session of before a restart, with a Reset")
	}
	require.Less(t, p.BytesIn, p.BytesOut)
	require.Zero(t, s.Players())
}

// A full server says so, and so does one that has enough of a network or of an
// address; those who have left count for 20 s.
func TestLimits(t *testing.T) {
	t.Parallel()
	refused := func(s *server.Server, local, reason string) {
		t.Helper()
		err := dial(t, s, local).Join()
		require.ErrorIs(t, err, endpoint.ErrRefused)
		require.ErrorContains(t, err, reason)
	}
	s := start(t, server.Config{Limits: server.Limits{Rooms: 2, RoomSize: 2, PerAddress: 3}})
	join(t, s, "127.0.0.1").Leave()
	waitFor(t, time.Second, "the seat to be free", func() bool { return s.Players() == 0 })
	for range 2 {
		join(t, s, "127.0.0.1")
	}
	refused(s, "127.0.0.1", "too many players at this address")
	join(t, s, "127.0.0.2")
	join(t, s, "127.0.0.2")
	refused(s, "127.0.0.2", "the server is full")
	require.Equal(t, 4, s.Players())

	// Of eight seats a network gets three, and another no more than it leaves free.
	s = start(t, server.Config{Limits: server.Limits{Rooms: 1, RoomSize: 8, PerAddress: 8, PerNetwork: 3}})
	for range 3 {
		join(t, s, "127.0.1.1")
	}
	refused(s, "127.0.1.2", "too many players from this network")
	for range 3 {
		join(t, s, "127.0.2.1")
	}
	join(t, s, "127.0.3.1")
	refused(s, "127.0.3.1", "too many players from this network")
	join(t, s, "127.0.4.1")
	refused(s, "127.0.5.1", "the server is full")
}

// A client of another version is told so.
func TestVersion(t *testing.T) {
	t.Parallel()
	s := start(t, roomy)
	c, err := endpoint.NewClient(endpoint.ClientConfig{ServerKey: key.PublicKey(), Hello: []byte{proto.HelloVersion + 1}})
	require.NoError(t, err)
	p := dial(t, s, "127.0.0.1")
	p.Client = c
	require.ErrorContains(t, p.Join(), fmt.Sprintf("you speak %d", proto.HelloVersion+1))
}

// Whoever has seen the token but not the keys changes nothing, from wherever it
// sends, and gets nothing but one probe.
func TestForged(t *testing.T) {
	t.Parallel()
	s := start(t, roomy)
	honest := join(t, s, "127.0.0.1")
	thief := dial(t, s, "127.0.0.2")
	token := honest.Token()
	for n := range uint16(30) {
		thief.Write(append(ackbits.Header{Type: ackbits.TypeDisconnect, Token: token, Sequence: n, Ack: 65535, Sealed: true}.AppendTo(nil), make([]byte, 16)...))
	}
	thief.Write(ackbits.Header{Type: ackbits.TypeDisconnect, Token: token, Sequence: 5, Ack: 65535}.AppendTo(nil))
	require.Nil(t, thief.Read(200*time.Millisecond))
	require.Equal(t, 1, s.Players())
	require.NoError(t, honest.Run(200*time.Millisecond))
	honest.Leave()
	waitFor(t, time.Second, "the peer to be gone", func() bool { return s.Players() == 0 })
}

// While it leaves, a server lets nobody in and says so; then the socket closes.
func TestShutdown(t *testing.T) {
	t.Parallel()
	cfg := roomy
	cfg.Listen, cfg.Key, cfg.Shards, cfg.Log = "127.0.0.1:0", key, 1, slog.New(slog.DiscardHandler)
	s, err := server.Listen(cfg)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- s.Serve(ctx) }()
	player := join(t, s, "127.0.0.1")
	require.NoError(t, player.Run(100*time.Millisecond))
	cancel()
	time.Sleep(50 * time.Millisecond)
	require.ErrorContains(t, dial(t, s, "127.0.0.1").Join(), "the server is shutting down")
	require.ErrorIs(t, player.Run(3*time.Second), ackbits.ErrPeerLeft)
	require.NoError(t, <-served)
	last, err := proto.ParseEvent(player.Got[len(player.Got)-1].Data)
	require.NoError(t, err)
	require.Equal(t, proto.Closing, last.Kind)
}

// A server that listens on every address of its machine answers from the one that
// was asked, in both families, and goes on there.
func TestAnswersFromTheAddressAsked(t *testing.T) {
	t.Parallel()
	for listen, asked := range map[string][]string{
		"0.0.0.0:0":   {"127.0.0.1", "127.0.0.2"},
		":0":          {"127.0.0.3", "::1"},
		"[::]:0":      {"127.0.0.2", "::1"},
		"[::1]:0":     {"::1"},
		"localhost:0": {"127.0.0.1"},
	} {
		cfg := roomy
		cfg.Listen = listen
		s := start(t, cfg)
		for _, host := range asked {
			to := netip.AddrPortFrom(netip.MustParseAddr(host), s.Addr().Port())
			p, err := hostile.Dial(to, netip.Addr{}, key.PublicKey(), "x")
			require.NoError(t, err)
			require.NoError(t, p.Join(), "%s asked at %s", listen, host)
			before := p.DatagramsIn
			require.NoError(t, p.Run(300*time.Millisecond))
			require.Greater(t, p.DatagramsIn, before+3, "%s asked at %s", listen, host)
			require.NoError(t, p.Close())
		}
	}
}

// A player who presses nothing goes, and is told why; sooner in a crowded server.
func TestIdle(t *testing.T) {
	t.Parallel()
	s := start(t, server.Config{Limits: server.Limits{Rooms: 1, RoomSize: 4, PerAddress: 8}, Idle: 6 * time.Second})
	began := time.Now()
	idle, busy := join(t, s, "127.0.0.1"), join(t, s, "127.0.0.1")
	others := []*hostile.Peer{join(t, s, "127.0.0.1"), join(t, s, "127.0.0.1")}
	held := byte(0)
	for idle.Client.Err() == nil && time.Since(began) < 4*time.Second {
		held ^= 1
		busy.Input(held)
		require.NoError(t, busy.Run(10*time.Millisecond))
		for _, p := range append(others, idle) {
			p.Input(0)
			p.Run(5 * time.Millisecond)
		}
	}
	require.ErrorIs(t, idle.Client.Err(), ackbits.ErrPeerLeft, "a second of four taken seats")
	last, err := proto.ParseEvent(idle.Got[len(idle.Got)-1].Data)
	require.NoError(t, err)
	require.Equal(t, proto.Closing, last.Kind)
	require.Regexp(t, "you did nothing for [12]s", last.Text)
	require.NoError(t, busy.Client.Err())
}

// Idle players of a network that has few seats left go early, too, so that they do
// not keep their neighbours out.
func TestIdleInACrowdedNetwork(t *testing.T) {
	t.Parallel()
	s := start(t, server.Config{Limits: server.Limits{Rooms: 1, RoomSize: 32, PerAddress: 8, PerNetwork: 2}, Idle: 6 * time.Second})
	join(t, s, "127.1.0.1")
	require.Equal(t, 1, s.Players())
	idle := []*hostile.Peer{join(t, s, "127.0.0.1"), join(t, s, "127.0.0.2")}
	require.ErrorContains(t, dial(t, s, "127.0.0.3").Join(), "too many players from this network")
	for began := time.Now(); s.Players() > 2 && time.Since(began) < 4*time.Second; {
		for _, p := range idle {
			p.Run(10 * time.Millisecond)
		}
	}
	require.Less(t, s.Players(), 3)
	require.NoError(t, join(t, s, "127.0.0.3").Client.Err())
}

// A burst, as after a pause of the network, does not overrun the acknowledgements.
func TestBurstIsAcknowledged(t *testing.T) {
	t.Parallel()
	s := start(t, roomy)
	p := join(t, s, "127.0.0.1")
	require.NoError(t, p.Run(100*time.Millisecond))
	for range 300 {
		p.Input(1)
	}
	for range 150 { // until the server's counters are up to date
		p.Input(1)
		require.NoError(t, p.Run(10*time.Millisecond))
	}
	sum := s.Sum()
	require.Greater(t, sum.Sessions.DatagramsReceived, uint64(300))
	require.Zero(t, sum.Sessions.AcksOutrun)
}

// Who sends nothing is soon sent nothing but heartbeats, though it has joined.
func TestSilentPeer(t *testing.T) {
	t.Parallel()
	s := start(t, roomy)
	p := join(t, s, "127.0.0.1")
	for range 50 { // plays, and gets snapshots
		p.Input(0)
		require.NoError(t, p.Run(10*time.Millisecond))
	}
	for end := time.Now().Add(800 * time.Millisecond); time.Now().Before(end); {
		p.Read(10 * time.Millisecond) // takes all in, and says nothing
	}
	snapshot := func() bool { // within 10 ms
		datagram := p.Read(10 * time.Millisecond)
		return datagram != nil && ackbits.Type(datagram[1]) != ackbits.TypeHeartbeat
	}
	for end := time.Now().Add(500 * time.Millisecond); time.Now().Before(end); {
		require.False(t, snapshot())
	}
	require.NoError(t, p.Client.Err())
	waitFor(t, time.Second, "snapshots to come again", func() bool { p.Input(0); return snapshot() })
}

// What a full disk does to the ledger ends the server with that error.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if errors.Is(err, os.ErrNotExist) {
		return // not Linux
	}
	require.NoError(t, err)
	defer full.Close()
	cfg := roomy
	cfg.Listen, cfg.Key, cfg.Shards, cfg.Log = "127.0.0.1:0", key, 1, slog.New(slog.DiscardHandler)
	cfg.Ledger = ledger.NewBook(full)
	s, err := server.Listen(cfg)
	require.NoError(t, err)
	served := make(chan error, 1)
	go func() { served <- s.Serve(t.Context()) }()
	p := join(t, s, "127.0.0.1")
	require.NoError(t, p.Run(50*time.Millisecond))
	p.Leave()
	select {
	case err := <-served:
		require.ErrorContains(t, err, "no space left on device")
	case <-time.After(4 * time.Second):
		t.Fatal("the server goes on")
	}
}

// A key is made once and read again, by its owner alone; what is none is named.
func TestKeyFile(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "new", "server.key")
	made, err := server.LoadKey(file)
	require.NoError(t, err)
	info, err := os.Stat(file)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode())
	read, err := server.LoadKey(file)
	require.NoError(t, err)
	require.True(t, made.Equal(read))

	public, err := server.DecodeKey(server.EncodeKey(made.PublicKey()))
	require.NoError(t, err)
	require.True(t, made.PublicKey().Equal(public))
	for _, text := range []string{"", "x", server.EncodeKey(made.PublicKey()) + "AA"} {
		_, err := server.DecodeKey(text)
		require.ErrorIs(t, err, server.ErrKey)
	}
	require.NoError(t, os.WriteFile(file, []byte("rubbish\n"), 0o600))
	_, err = server.LoadKey(file)
	require.ErrorIs(t, err, server.ErrKey)
	require.ErrorContains(t, err, file)
}

func TestConfig(t *testing.T) {
	t.Parallel()
	one := server.Limits{Rooms: 1, RoomSize: 1, PerAddress: 1}
	for _, cfg := range []server.Config{
		{Shards: 0, Key: key, Limits: one},
		{Shards: 2, Key: key, Limits: one},
		{Shards: 1, Key: key, Limits: server.Limits{Rooms: 1, RoomSize: 65, PerAddress: 1}},
		{Shards: 1, Key: key, Limits: server.Limits{Rooms: 1, RoomSize: 1}},
		{Shards: 1, Key: key, Limits: server.Limits{Rooms: 1, RoomSize: 1, PerAddress: 1, PerNetwork: -1}},
		{Shards: 1, Key: key, Limits: one, Idle: -1},
		{Shards: 1, Key: key, Limits: server.Limits{Rooms: 1, RoomSize: 1, PerAddress: 1, Chat: -1}},
	} {
		cfg.Listen = "127.0.0.1:0"
		_, err := server.Listen(cfg)
		require.ErrorIs(t, err, server.ErrConfig)
	}
	_, err := server.Listen(server.Config{Listen: "127.0.0.1:0", Shards: 1, Limits: one})
	require.ErrorIs(t, err, ackbits.ErrConfig, "without a key")
}

// Metrics are served, to this machine and to pages of this machine only; profiles
// where they are asked for.
func TestHTTP(t *testing.T) {
	t.Parallel()
	s := start(t, roomy)
	for _, addr := range []string{"0.0.0.0:0", "192.0.2.1:0", ":0"} {
		_, err := s.ServeHTTP(addr, true)
		require.ErrorIs(t, err, server.ErrNotLoopback)
	}
	join(t, s, "127.0.0.1")
	get := func(addr, host, path string) (status int, body string) {
		request, err := http.NewRequest(http.MethodGet, "http://"+addr+path, nil)
		require.NoError(t, err)
		request.Host = host
		answer, err := http.DefaultClient.Do(request)
		require.NoError(t, err)
		text, err := io.ReadAll(answer.Body)
		require.NoError(t, err)
		require.NoError(t, answer.Body.Close())
		return answer.StatusCode, string(text)
	}
	for _, profiles := range []bool{false, true} {
		probe, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		addr := probe.Addr().String()
		require.NoError(t, probe.Close())
		stop, err := s.ServeHTTP(addr, profiles)
		require.NoError(t, err)
		for _, host := range []string{addr, "localhost", "localhost:7778", "[::1]:80", "127.0.0.1"} {
			status, body := get(addr, host, "/metrics")
			require.Equal(t, http.StatusOK, status, host)
			require.Contains(t, body, "arena_joins_total 1")
		}
		for _, host := range []string{"evil.example", "evil.example:7778", "192.0.2.1", "127.0.0.1.evil.example"} {
			status, body := get(addr, host, "/metrics")
			require.Equal(t, http.StatusForbidden, status, host)
			require.NotContains(t, body, "arena_")
		}
		status, body := get(addr, "localhost", "/debug/pprof/")
		require.Equal(t, profiles, status == http.StatusOK && len(body) > 100)
		stop()
	}
}
