package server_test

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"testing"
	"time"

	"github.com/ackbits/ackbits"
	"github.com/ackbits/ackbits/examples/arena/proto"
	"github.com/ackbits/ackbits/examples/arena/server"
	"github.com/stretchr/testify/require"
)

// start runs a server for the time of a test.
func start(t *testing.T, limits server.Limits) *server.Server {
	s, err := server.Listen(server.Config{Listen: "127.0.0.1:0", Shards: 1, Limits: limits,
		Log: slog.New(slog.DiscardHandler)})
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

var roomy = server.Limits{Rooms: 1, RoomSize: 64, PerAddress: 64}

// peer is a socket that talks to a server by hand.
type peer struct {
	*testing.T
	conn *net.UDPConn
}

func dial(t *testing.T, s *server.Server, local string) peer {
	from := net.UDPAddrFromAddrPort(netip.AddrPortFrom(netip.MustParseAddr(local), 0))
	conn, err := net.DialUDP("udp4", from, net.UDPAddrFromAddrPort(s.Addr()))
	require.NoError(t, err)
	t.Cleanup(func() { conn.Close() })
	return peer{t, conn}
}

func (p peer) send(datagram []byte) {
	_, err := p.conn.Write(datagram)
	require.NoError(p, err)
}

// receive returns the next datagram, nil if none comes for a while.
func (p peer) receive(patience time.Duration) []byte {
	buf := make([]byte, 2048)
	p.conn.SetReadDeadline(time.Now().Add(patience))
	n, err := p.conn.Read(buf)
	if err != nil {
		require.ErrorIs(p, err, os.ErrDeadlineExceeded)
		return nil
	}
	return buf[:n]
}

// ask sends a Connect and returns the answer.
func (p peer) ask(c proto.Connect) proto.Accept {
	p.send(proto.AppendConnect(nil, c))
	for {
		datagram := p.receive(2 * time.Second)
		require.NotNil(p, datagram, "no answer")
		h, payload, err := ackbits.ParseHeader(datagram)
		require.NoError(p, err)
		if h.Type != ackbits.TypeAccept {
			continue // of a session that we have already
		}
		a, err := proto.ParseAccept(h, payload)
		require.NoError(p, err)
		require.Equal(p, c.Nonce, a.Nonce)
		return a
	}
}

// join goes through the handshake and returns the verdict on the cookie.
func (p peer) join(nonce uint64) proto.Accept {
	challenge := p.ask(proto.Connect{Nonce: nonce, Name: "x"})
	require.Equal(p, proto.Challenge, challenge.Verdict)
	return p.ask(proto.Connect{Nonce: nonce, Name: "x", Cookie: challenge.Cookie})
}

// Without the right cookie nothing is remembered, and no answer is longer than
// what it answers.
func TestHandshake(t *testing.T) {
	t.Parallel()
	s := start(t, roomy)
	a, b := dial(t, s, "127.0.0.1"), dial(t, s, "127.0.0.1")
	cookie := a.ask(proto.Connect{Nonce: 1}).Cookie
	require.Zero(t, s.Players())

	for name, wrong := range map[string]proto.Accept{
		"another socket's": b.ask(proto.Connect{Nonce: 1, Cookie: cookie}),
		"another nonce's":  a.ask(proto.Connect{Nonce: 2, Cookie: cookie}),
		"a guess":          a.ask(proto.Connect{Nonce: 1, Cookie: proto.Cookie{1}}),
	} {
		require.Equal(t, proto.Challenge, wrong.Verdict, name)
	}
	require.Zero(t, s.Players())

	granted := a.ask(proto.Connect{Nonce: 1, Cookie: cookie})
	require.Equal(t, proto.Granted, granted.Verdict)
	require.Equal(t, 1, s.Players())

	// The answer may be lost: the same question gets the same answer.
	require.Equal(t, granted, a.ask(proto.Connect{Nonce: 1, Cookie: cookie}))
	require.Equal(t, 1, s.Players())

	// Another client at the same address has to wait for the end of the first.
	require.Equal(t, proto.Busy, a.join(3).Verdict)

	tokens := map[uint64]bool{granted.Token: true}
	for range 10 {
		next := dial(t, s, "127.0.0.1").join(1)
		require.Equal(t, proto.Granted, next.Verdict)
		require.False(t, tokens[next.Token], "a token came twice")
		tokens[next.Token] = true
	}
}

// A spoofed source is sent no more than it sent, whatever it sends.
func TestNoAmplification(t *testing.T) {
	t.Parallel()
	s := start(t, roomy)
	p := dial(t, s, "127.0.0.1")
	connect := proto.AppendConnect(nil, proto.Connect{Nonce: 9, Name: "x"})
	sent, received := 0, 0
	for n := range len(connect) + 1 {
		p.send(connect[:n])
		sent += n
	}
	for _, typ := range []ackbits.Type{2, 3, 4, 5, 6, 7, 8, 9, 16, 255} {
		datagram := ackbits.Header{Type: typ, Token: 9}.AppendTo(nil)
		p.send(datagram)
		sent += len(datagram)
	}
	for answer := p.receive(time.Second); answer != nil; answer = p.receive(200 * time.Millisecond) {
		received += len(answer)
		require.LessOrEqual(t, len(answer), proto.ConnectSize)
	}
	require.Positive(t, received, "the whole Connect is answered")
	require.LessOrEqual(t, received, proto.ConnectSize, "nothing else is")
	require.Less(t, received, sent)
	require.Zero(t, s.Players())
}

// A full server says so, and so does one that has enough of an address.
func TestLimits(t *testing.T) {
	t.Parallel()
	s := start(t, server.Limits{Rooms: 2, RoomSize: 2, PerAddress: 3})
	for range 3 {
		require.Equal(t, proto.Granted, dial(t, s, "127.0.0.1").join(1).Verdict)
	}
	require.Equal(t, proto.TooMany, dial(t, s, "127.0.0.1").join(1).Verdict)
	require.Equal(t, proto.Granted, dial(t, s, "127.0.0.2").join(1).Verdict)
	require.Equal(t, proto.Full, dial(t, s, "127.0.0.2").join(1).Verdict)
	require.Equal(t, 4, s.Players())
	require.EqualValues(t, 2, s.Counters().Refused.Load())
}

// A datagram with the right token from another address is foreign: it changes
// nothing, and the session's own address goes on.
func TestForeignAddress(t *testing.T) {
	t.Parallel()
	s := start(t, roomy)
	honest, thief := dial(t, s, "127.0.0.1"), dial(t, s, "127.0.0.1")
	token := honest.join(1).Token
	session, err := ackbits.NewSession(ackbits.Config{Token: token})
	require.NoError(t, err)
	input, _, err := session.AppendDatagram(nil, ackbits.TypeInput, proto.AppendInput(nil, 0))
	require.NoError(t, err)
	thief.send(input)
	thief.send(ackbits.Header{Type: ackbits.TypeDisconnect, Token: token, Sequence: 5, Ack: 65535}.AppendTo(nil))
	require.Nil(t, thief.receive(200*time.Millisecond))
	require.EqualValues(t, 2, s.Counters().Foreign.Load())
	require.Equal(t, 1, s.Players())
	require.NotNil(t, honest.receive(time.Second))

	honest.send(ackbits.Header{Type: ackbits.TypeDisconnect, Token: token, Sequence: 5, Ack: 65535}.AppendTo(nil))
	require.Eventually(t, func() bool { return s.Players() == 0 }, time.Second, 5*time.Millisecond)
}

// While it leaves, a server lets nobody in and says so; then the socket closes.
func TestShutdown(t *testing.T) {
	t.Parallel()
	s, err := server.Listen(server.Config{Listen: "127.0.0.1:0", Shards: 1, Limits: roomy, Log: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- s.Serve(ctx) }()
	player, late := dial(t, s, "127.0.0.1"), dial(t, s, "127.0.0.1")
	require.Equal(t, proto.Granted, player.join(1).Verdict)
	cookie := late.ask(proto.Connect{Nonce: 2}).Cookie
	cancel()
	time.Sleep(100 * time.Millisecond)
	require.Equal(t, proto.ShuttingDown, late.ask(proto.Connect{Nonce: 2, Cookie: cookie}).Verdict)
	require.NoError(t, <-served)
	disconnects := 0
	for {
		datagram := player.receive(100 * time.Millisecond)
		if datagram == nil {
			break
		}
		if h, _, err := ackbits.ParseHeader(datagram); err == nil && h.Type == ackbits.TypeDisconnect {
			disconnects++
		}
	}
	require.Equal(t, 3, disconnects)
}

func TestConfig(t *testing.T) {
	t.Parallel()
	for _, cfg := range []server.Config{
		{Shards: 0, Limits: roomy},
		{Shards: 2, Limits: roomy},
		{Shards: 1, Limits: server.Limits{Rooms: 1, RoomSize: 65, PerAddress: 1}},
		{Shards: 1, Limits: server.Limits{Rooms: 1, RoomSize: 1}},
	} {
		cfg.Listen = "127.0.0.1:0"
		_, err := server.Listen(cfg)
		require.ErrorIs(t, err, server.ErrConfig)
	}
}

// Metrics and profiles are served, and to this machine only.
func TestHTTP(t *testing.T) {
	t.Parallel()
	s := start(t, roomy)
	for _, addr := range []string{"0.0.0.0:0", "192.0.2.1:0", ":0"} {
		_, err := s.ServeHTTP(addr)
		require.ErrorIs(t, err, server.ErrNotLoopback)
	}
	probe, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	addr := probe.Addr().String()
	require.NoError(t, probe.Close())
	stop, err := s.ServeHTTP(addr)
	require.NoError(t, err)
	defer stop()
	dial(t, s, "127.0.0.1").join(1)
	for path, want := range map[string]string{
		"/metrics":      "arena_sessions_granted_total 1",
		"/debug/pprof/": "goroutine",
	} {
		answer, err := http.Get("http://" + addr + path)
		require.NoError(t, err)
		body, err := io.ReadAll(answer.Body)
		require.NoError(t, err)
		require.NoError(t, answer.Body.Close())
		require.Contains(t, string(body), want)
	}
}
