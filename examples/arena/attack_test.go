package main

import (
	"context"
	"encoding/binary"
	"math/rand/v2"
	"net"
	"net/netip"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/ackbits/ackbits"
	"github.com/ackbits/ackbits/endpoint"
	"github.com/ackbits/ackbits/examples/arena/bots"
	"github.com/stretchr/testify/require"
)

// tap relays datagrams between one client and a server and keeps copies of the
// first: what an attacker on the way would have.
type tap struct {
	towardClient, towardServer *net.UDPConn

	mu       sync.Mutex
	client   netip.AddrPort
	captured [][]byte // on the way to the server
}

func newTap(t *testing.T, server netip.AddrPort) *tap {
	near, err := net.ListenUDP("udp4", net.UDPAddrFromAddrPort(netip.MustParseAddrPort("127.0.0.1:0")))
	require.NoError(t, err)
	far, err := net.DialUDP("udp4", nil, net.UDPAddrFromAddrPort(server))
	require.NoError(t, err)
	tap := &tap{towardClient: near, towardServer: far}
	t.Cleanup(func() { near.Close(); far.Close() })
	go tap.relayToServer()
	go tap.relayToClient()
	return tap
}

func (tap *tap) addr() netip.AddrPort { return tap.towardClient.LocalAddr().(*net.UDPAddr).AddrPort() }

func (tap *tap) relayToServer() {
	buf := make([]byte, 2048)
	for {
		n, from, err := tap.towardClient.ReadFromUDPAddrPort(buf)
		if err != nil {
			return
		}
		tap.mu.Lock()
		tap.client = from
		if len(tap.captured) < 500 {
			tap.captured = append(tap.captured, append([]byte(nil), buf[:n]...))
		}
		tap.mu.Unlock()
		tap.towardServer.Write(buf[:n])
	}
}

func (tap *tap) relayToClient() {
	buf := make([]byte, 2048)
	for {
		n, err := tap.towardServer.Read(buf)
		if err != nil {
			return
		}
		tap.mu.Lock()
		to := tap.client
		tap.mu.Unlock()
		tap.towardClient.WriteToUDPAddrPort(buf[:n], to)
	}
}

func (tap *tap) capture() [][]byte {
	tap.mu.Lock()
	defer tap.mu.Unlock()
	return append([][]byte(nil), tap.captured...)
}

// flood sends hostile datagrams from many sockets of other addresses until done
// is closed, rate a second.
type flood struct {
	sockets  []*net.UDPConn
	rng      *rand.Rand
	captured [][]byte
	tokens   []uint64
	replay   *net.UDPConn // at the address of an honest client
}

// datagram makes the next hostile datagram.
func (f *flood) datagram() []byte {
	captured := f.captured[f.rng.IntN(len(f.captured))]
	token := f.tokens[f.rng.IntN(len(f.tokens))]
	switch f.rng.IntN(6) {
	case 0: // random bytes, some with our first byte
		b := make([]byte, f.rng.IntN(1400))
		for i := range b {
			b[i] = byte(f.rng.Uint32())
		}
		if len(b) > 0 && f.rng.IntN(2) == 0 {
			b[0] = []byte{0x0A, 0x0C, 0x0E}[f.rng.IntN(3)]
		}
		return b
	case 1: // truncations of real ones
		return captured[:f.rng.IntN(len(captured))]
	case 2: // real ones with a wrong token
		b := append([]byte(nil), captured...)
		binary.LittleEndian.PutUint64(b[2:], f.rng.Uint64())
		return b
	case 3: // replayed as they were
		return captured
	case 4: // Disconnects with the right token, bare and sealed by nobody
		h := ackbits.Header{Type: ackbits.TypeDisconnect, Token: token, Sequence: uint16(f.rng.Uint32()), Ack: 65535}
		h.Sealed = f.rng.IntN(2) == 0
		return append(h.AppendTo(nil), make([]byte, 16)...)
	default: // Hellos, with and without a guessed cookie
		b := make([]byte, 640)
		copy(b, []byte{0x0E, 1, 1, 0})
		for i := range b[4:36] {
			b[4+i] = byte(f.rng.Uint32())
		}
		if f.rng.IntN(2) == 0 {
			for i := range b[36:] {
				b[36+i] = byte(f.rng.Uint32())
			}
		}
		return b
	}
}

func (f *flood) run(rate int, done <-chan struct{}) (sent int) {
	ticker := time.NewTicker(5 * time.Millisecond)
	defer ticker.Stop()
	start := time.Now()
	for {
		select {
		case <-done:
			return sent
		case now := <-ticker.C:
			for due := int(now.Sub(start).Seconds() * float64(rate)); sent < due; sent++ {
				if sent%50 == 0 { // what an honest client sent, at its own address, again
					f.replay.Write(f.captured[f.rng.IntN(len(f.captured))])
					continue
				}
				f.sockets[f.rng.IntN(len(f.sockets))].Write(f.datagram())
			}
		}
	}
}

// A flood at ten times the honest rate, of everything that strangers can send,
// ends no honest session, costs no memory, and does not double the time that
// events take. Where something else keeps the machine busy, the time of one
// attempt says little, so there are three.
func TestFlood(t *testing.T) {
	const n = 24
	const rate = 10 * (n + 1) * 60
	f := newField(t, n, upTo(2*n), mild)
	tap := newTap(t, f.server.Addr())
	tapped, err := bots.New(bots.Config{N: 1, Server: tap.addr(), ServerKey: serverKey.PublicKey(), Local: netip.MustParseAddr("127.0.0.1"), Seed: 99})
	require.NoError(t, err)
	ran := make(chan error, 1)
	ctx, stopTapped := context.WithCancel(t.Context())
	go func() { ran <- tapped.Run(ctx) }()
	time.Sleep(2 * time.Second) // for the joins to be over

	attack := newFlood(t, f, tap, tapped)
	heap, attempts := heapInUse(), 0
	for !attack.bearable(f, rate) && !raceDetector {
		attempts++
		require.Less(t, attempts, 3, "attempts")
	}
	heapAfter := heapInUse()
	t.Logf("heap %d -> %d KiB", heap>>10, heapAfter>>10)
	require.Less(t, heapAfter, heap+2<<20)
	require.Equal(t, n+1, f.server.Players(), "no honest session ended, and no stranger has one")
	for i := range n {
		require.Empty(t, f.swarm.Ends(i))
	}
	require.Empty(t, tapped.Ends(0))
	stopTapped()
	require.NoError(t, <-ran)
	require.ErrorIs(t, tapped.Ends(0)[0].Err, ackbits.ErrClosed)
	f.wantLedgersClean()
}

// newFlood opens many sockets at other addresses, and knows all that an attacker
// could know.
func newFlood(t *testing.T, f *field, tap *tap, tapped *bots.Swarm) *flood {
	attack := &flood{rng: rand.New(rand.NewPCG(1, 2)), captured: tap.capture(), replay: tap.towardServer}
	require.Greater(t, len(attack.captured), 100)
	attack.tokens = append(attack.tokens, tapped.Token(0))
	for i := range f.swarm.Sum().Playing {
		attack.tokens = append(attack.tokens, f.swarm.Token(i))
	}
	for i := range 256 {
		local := net.UDPAddrFromAddrPort(netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, byte(2 + i%8)}), 0))
		socket, err := net.DialUDP("udp4", local, net.UDPAddrFromAddrPort(f.server.Addr()))
		require.NoError(t, err)
		t.Cleanup(func() { socket.Close() })
		attack.sockets = append(attack.sockets, socket)
	}
	return attack
}

// bearable is one attempt: some quiet time, then the flood. It reports whether
// the flood was one, arrived, and did not double the time that events take.
func (a *flood) bearable(f *field, rate int) bool {
	quietFor, floodFor := 3*time.Second, 5*time.Second
	if testing.Short() {
		quietFor, floodFor = 2*time.Second, 3*time.Second
	}
	f.swarm.Restart()
	time.Sleep(quietFor)
	quiet := f.swarm.Sum().Events.Quantile(0.99)
	before := f.server.Counters().DatagramsIn.Load()
	f.swarm.Restart()
	done := make(chan struct{})
	time.AfterFunc(floodFor, func() { close(done) })
	sent := float64(a.run(rate, done))
	flooded := f.swarm.Sum().Events.Quantile(0.99)
	arrived := float64(f.server.Counters().DatagramsIn.Load() - before)
	f.Logf("event p99 %v quiet, %v in a flood of %.0f, of which with the honest ones %.0f arrived", quiet, flooded, sent, arrived)
	return sent > 0.8*float64(rate)*floodFor.Seconds() && arrived > 0.8*sent && flooded < 2*quiet
}

// heapInUse returns how much memory is in use after a collection.
func heapInUse() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// Strangers who do go through the handshake get no more than their address's
// share, and are gone as soon as they stay silent.
func TestJoinStorm(t *testing.T) {
	t.Parallel()
	const share = 4
	f := newField(t, share, upTo(share), mild)
	storm, err := bots.New(bots.Config{N: 40, Server: f.server.Addr(), ServerKey: serverKey.PublicKey(), Local: netip.MustParseAddr("127.0.0.9"), Seed: 7})
	require.NoError(t, err)
	ctx, stop := context.WithCancel(t.Context())
	ran := make(chan error, 1)
	go func() { ran <- storm.Run(ctx) }()
	f.waitFor(5*time.Second, "the share to be used up", func() bool { return f.server.Players() == 2*share })
	time.Sleep(500 * time.Millisecond)
	require.Equal(t, 2*share, f.server.Players())
	refused := 0
	for i := range 40 {
		if ends := storm.Ends(i); len(ends) > 0 {
			require.ErrorIs(t, ends[0].Err, endpoint.ErrRefused)
			require.ErrorContains(t, ends[0].Err, "too many players at this address")
			refused++
		}
	}
	require.Positive(t, refused, "the others are not even answered: they were too many at once")
	for i := range 40 {
		storm.Freeze(i, time.Hour)
	}
	f.waitFor(7*time.Second, "the silent to be forgotten", func() bool { return f.server.Players() == share })
	for i := range 40 {
		storm.Freeze(i, 0)
	}
	stop()
	require.NoError(t, <-ran)
	f.stop()
}
