package endpoint_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/ackbits/ackbits"
	"github.com/ackbits/ackbits/endpoint"
	"github.com/stretchr/testify/require"
)

// host returns an address of its own for each n.
func host(n int) netip.AddrPort {
	return netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, byte(n >> 16), byte(n >> 8), byte(n)}), 4000)
}

// shake brings a new client as far as its Accept or Refuse, as fast as can be, and
// gives it only the datagrams that the server sends to it.
func (w *world) shake(from netip.AddrPort, cfg endpoint.ClientConfig) *endpoint.Client {
	c := w.join(from.String(), cfg)
	for range 2 {
		for d := range c.Due(w.buf[:]) {
			w.server.Receive(from, append([]byte(nil), d...))
		}
		for to, d := range w.server.Due(w.buf[:]) {
			if to == from {
				c.Receive(append([]byte(nil), d...))
			}
		}
	}
	return c
}

func TestServerThatIsFullRefuses(t *testing.T) {
	w := newWorld(t, endpoint.ServerConfig{MaxPeers: 3})
	for i := range 3 {
		require.NotNil(t, w.shake(host(i), knowing("")).Session())
	}
	late := w.shake(host(3), knowing(""))
	require.ErrorIs(t, late.Err(), endpoint.ErrRefused)
	require.ErrorContains(t, late.Err(), "full")
	require.Equal(t, uint64(1), w.server.Stats().RefusedFull)

	first := w.clients[host(0)]
	first.Session().Close()
	for d := range first.Due(w.buf[:]) {
		w.server.Receive(host(0), append([]byte(nil), d...))
	}
	require.ErrorIs(t, w.shake(host(4), knowing("")).Err(), endpoint.ErrRefused, "its Left was not fetched")
	for e, ok := w.server.NextEvent(); ok; e, ok = w.server.NextEvent() {
		w.events = append(w.events, e)
	}
	require.NotNil(t, w.shake(host(5), knowing("")).Session())
}

func TestAddressMayHaveSoManyClients(t *testing.T) {
	for _, ends := range []string{"198.51.100.7", "2001:db8::%d"} {
		w := newWorld(t, endpoint.ServerConfig{MaxPerAddress: 2})
		at := func(i int) netip.AddrPort {
			if ends[0] == '1' {
				return netip.MustParseAddrPort(fmt.Sprintf("%s:%d", ends, 4000+i))
			}
			return netip.AddrPortFrom(netip.MustParseAddr(fmt.Sprintf(ends, i)), 4000)
		}
		a, b := w.shake(at(1), knowing("")), w.shake(at(2), knowing(""))
		require.NotNil(t, a.Session())
		require.NotNil(t, b.Session())
		for i := range 2 {
			require.ErrorIs(t, w.shake(at(3+i), knowing("")).Err(), endpoint.ErrRefused)
		}
		held := w.shake(at(5), knowing(""))
		require.NoError(t, held.Err(), "told nothing: too many were turned away")
		require.Equal(t, uint64(2), w.server.Stats().RefusedByAddress)
		require.Equal(t, uint64(1), w.server.Stats().HeldByAddress)
		require.NotNil(t, w.shake(address("192.0.2.77:1"), knowing("")).Session(), "others are not concerned")

		a.Session().Close()
		for d := range a.Due(w.buf[:]) {
			w.server.Receive(at(1), append([]byte(nil), d...))
		}
		w.clock.Advance(20*time.Second - 1) // the others' sessions end, too
		w.settle()
		require.Nil(t, w.shake(at(6), knowing("")).Session(), "who left is remembered for 20 s")
		w.clock.Advance(1)
		require.NotNil(t, w.shake(at(7), knowing("")).Session())
	}
}

func TestJoinsAreRationed(t *testing.T) {
	w := newWorld(t, endpoint.ServerConfig{MaxPeers: 10_000})
	joined := 0
	for i := range 300 {
		if w.shake(host(i), knowing("")).Session() != nil {
			joined++
		}
	}
	require.Equal(t, 256, joined)
	require.Equal(t, uint64(300-256), w.server.Stats().HeldByRate)
	w.run(300 * time.Millisecond)
	require.Equal(t, uint64(300), w.server.Stats().Joins, "they asked again")
}

// A Hello that does not open costs its address a place among those turned away.
// P-13.2.4.
func TestHelloThatDoesNotOpenIsCounted(t *testing.T) {
	asked := 0
	w := newWorld(t, endpoint.ServerConfig{MaxPerAddress: 4, Admit: func(endpoint.Request) ([]byte, error) { asked++; return nil, nil }})
	for i := range 10 {
		w.join(netip.AddrPortFrom(host(1).Addr(), uint16(i+1)).String(), knowing(""))
	}
	w.flush()
	for range 2 {
		for _, p := range w.take() {
			if kindOf(p.data) == "Hello" {
				p.data[100]++
			}
			w.deliver(p)
		}
		w.flush()
	}
	for _, p := range w.take() {
		if kindOf(p.data) == "Hello" {
			p.data[100]++
			w.deliver(p)
		}
	}
	s := w.server.Stats()
	require.Zero(t, asked)
	require.Equal(t, 4, s.Remembered)
	require.Equal(t, uint64(4), s.Forged)
	require.Equal(t, uint64(6), s.HeldByAddress)

	for _, a := range w.order { // they give up
		delete(w.clients, a)
	}
	w.clock.Advance(20 * time.Second)
	require.NotNil(t, w.shake(host(2), knowing("")).Session())
	require.Equal(t, 1, w.server.Stats().Remembered)
}

// A key of low order gives away every secret that is made with it.
// P-13.2.4.
func TestPointsOfLowOrderAreDropped(t *testing.T) {
	w := newWorld(t, endpoint.ServerConfig{})
	for _, point := range [][]byte{{}, {1}} {
		hello := make([]byte, 640)
		hello[0], hello[1], hello[2] = 0x0E, 1, 1
		copy(hello[4:], point)
		for range 3 {
			w.deliver(packet{address(home), w.at, hello})
			w.flush()
			for _, p := range w.take() {
				require.Equal(t, "Challenge", kindOf(p.data))
				copy(hello[36:], p.data[67:])
			}
		}
	}
	require.Equal(t, uint64(4), w.server.Stats().Forged)
	require.Zero(t, w.server.Stats().Joins)

	c := w.join(elsewhere, endpoint.ClientConfig{}) // trusts whoever answers
	w.flush()
	var key []byte
	for _, p := range w.take() {
		key = p.data[4:36]
	}
	forged := append(append([]byte{0x0E, 2, 1}, key...), make([]byte, 64)...)
	_, err := c.Receive(forged)
	require.ErrorIs(t, err, ackbits.ErrForged)
	w.run(300 * time.Millisecond)
	require.NotNil(t, c.Session())
}

// failing is a Rand that fails while it is told to.
type failing struct {
	io.Reader
	fails bool
}

func (f *failing) Read(p []byte) (int, error) {
	if f.fails {
		return 0, errors.New("no entropy")
	}
	return f.Reader.Read(p)
}

func TestRandThatFailsAdmitsNobody(t *testing.T) {
	source := &failing{Reader: seeded(1)}
	asked := 0
	w := newWorld(t, endpoint.ServerConfig{Rand: source, Admit: func(endpoint.Request) ([]byte, error) { asked++; return nil, nil }})
	c := w.join(home, knowing("ann"))
	source.fails = true
	w.run(time.Second)
	require.Nil(t, c.Session())
	require.Zero(t, asked)
	require.NotZero(t, w.server.Stats().Failed)
	source.fails = false
	w.run(300 * time.Millisecond)
	require.NotNil(t, c.Session())

	_, err := endpoint.NewServer(endpoint.ServerConfig{Key: serverKey, Rand: &failing{fails: true}})
	require.ErrorContains(t, err, "no entropy")
	_, err = endpoint.NewClient(endpoint.ClientConfig{Rand: &failing{fails: true}})
	require.ErrorContains(t, err, "no entropy")
}

// constant is a Rand that repeats itself.
type constant struct{}

func (constant) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 7
	}
	return len(p), nil
}

// P-13.2.5.
func TestTokenThatIsLiveIsDrawnAgain(t *testing.T) {
	w := newWorld(t, endpoint.ServerConfig{Rand: constant{}})
	require.NotNil(t, w.shake(host(1), knowing("")).Session())
	require.Nil(t, w.shake(host(2), knowing("")).Session(), "there is no other token")
	require.Equal(t, uint64(1), w.server.Stats().Failed)
	require.Equal(t, 1, w.server.Stats().Peers)
}

// A flood of strangers' Hellos takes no place from the answers of those that
// proved their address.
func TestAcceptsWaitApartFromStrangers(t *testing.T) {
	w := newWorld(t, endpoint.ServerConfig{})
	c := w.join(home, knowing("ann"))
	for hello := range c.Due(w.buf[:]) {
		w.server.Receive(address(home), append([]byte(nil), hello...))
	}
	for to, d := range w.server.Due(w.buf[:]) {
		require.Equal(t, address(home), to)
		c.Receive(append([]byte(nil), d...))
	}
	flood(w, 0, 1000)
	for hello := range c.Due(w.buf[:]) {
		w.server.Receive(address(home), append([]byte(nil), hello...))
	}
	strangers := 0
	for to, d := range w.server.Due(w.buf[:]) {
		if to == address(home) {
			c.Receive(append([]byte(nil), d...))
			continue
		}
		strangers++
	}
	require.NotNil(t, c.Session())
	require.Equal(t, 256, strangers)
	require.Equal(t, uint64(1000-256), w.server.Stats().AnswersDropped)
}

// flood sends Hellos of n strangers, each from an address of its own.
func flood(w *world, from, n int) {
	hello := make([]byte, 640)
	hello[0], hello[1], hello[2] = 0x0E, 1, 1
	for i := range n {
		binary.LittleEndian.PutUint32(hello[4:], uint32(from+i))
		hello[36] = byte(i % 2) // every other with a cookie that it made up
		w.server.Receive(host(from+i), hello)
	}
}

// heap returns how much memory is in use.
func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// P-13.2.8.
func TestFloodFrom10000AddressesLeavesMemoryAndPeersAlone(t *testing.T) {
	w, c, peer := joined(t, endpoint.ServerConfig{})
	w.log = nil
	before := heap()
	for round := range 20 {
		for i := range 10 {
			flood(w, 1000*i, 1000)
		}
		for range w.server.Due(w.buf[:]) {
		}
		_, err := c.Session().Send(fmt.Append(nil, round))
		require.NoError(t, err)
		w.run(20 * time.Millisecond)
	}
	w.run(time.Second)
	w.log = nil
	grown := int64(heap()) - int64(before)
	t.Logf("%d bytes more after 200,000 Hellos from 10,000 addresses", grown)
	require.Less(t, grown, int64(128<<10), "256 answers that waited, and what the test holds")
	require.Len(t, w.got[peer], 20)
	require.NoError(t, c.Err())
	require.Equal(t, 1, w.server.Stats().Remembered)
	require.Len(t, w.events, 1)
}

// Addresses that are proved cost more, and what they cost is bounded, too.
// P-13.2.8.
func TestProvedAddressesFillABoundedMemory(t *testing.T) {
	w, c, peer := joined(t, endpoint.ServerConfig{
		MaxPeers: 16,
		Admit: func(r endpoint.Request) ([]byte, error) {
			if string(r.Hello) == "ann" {
				return nil, nil
			}
			return nil, errors.New("you are not on the list, and this is the longest reason that there is for that: " + string(make([]byte, 300)))
		},
	})
	clients := 0
	knock := func() {
		w.shake(host(clients), knowing("intruder"))
		delete(w.clients, host(clients))
		w.order = w.order[:1]
		clients++
	}
	before := heap()
	for range 45 {
		for range 100 {
			knock()
		}
		w.clock.Advance(100 * time.Millisecond)
		w.settle()
		w.wire, w.log = nil, nil
	}
	s := w.server.Stats()
	grown := int64(heap()) - int64(before)
	t.Logf("%d bytes for %d remembered of %d", grown, s.Remembered, clients)
	require.Equal(t, 4096, s.Remembered)
	require.NotZero(t, s.HeldByMemory)
	require.Less(t, grown, int64(4096*1300))
	require.NoError(t, c.Err())
	require.NoError(t, peer.Session().Err())

	w.run(21 * time.Second)
	w.wire, w.log = nil, nil
	knock()
	require.Equal(t, 2, w.server.Stats().Remembered, "and the others are forgotten")
}

// What a peer takes besides its session: two AEADs of AES-256, its path, and what
// the gate remembers of it.
func TestPeerTakesLittleMemory(t *testing.T) {
	w := newWorld(t, endpoint.ServerConfig{MaxPeers: 1000})
	const n = 200
	before := heap()
	for i := range n {
		require.NotNil(t, w.shake(host(i), knowing("a name")).Session())
		delete(w.clients, host(i))
	}
	w.order, w.events = nil, nil
	each := (int64(heap()) - int64(before)) / n
	t.Logf("%d bytes for each peer", each)
	require.Less(t, each, int64(8<<10))
	runtime.KeepAlive(w)
}

// counted is a Rand that counts what is read.
type counted struct {
	failing
	n int
}

func (c *counted) Read(p []byte) (int, error) {
	c.n += len(p)
	return c.failing.Read(p)
}

// Copies of a Hello that Admit has put off cost nothing: it is asked once in 250 ms.
// P-13.2.5.
func TestCopiesOfAPendingHelloAskOnce(t *testing.T) {
	asked := 0
	source := &counted{failing: failing{Reader: seeded(1)}}
	w := newWorld(t, endpoint.ServerConfig{Rand: source, Admit: func(endpoint.Request) ([]byte, error) {
		asked++
		return nil, endpoint.ErrPending
	}})
	w.join(home, knowing("ann"))
	w.settle()
	hellos := w.logged("Hello")
	hello := hellos[len(hellos)-1]
	require.Equal(t, 1, asked)
	before := source.n
	for range 999 {
		w.deliver(hello)
		w.clock.Advance(time.Millisecond)
	}
	require.Equal(t, 1+3, asked)
	require.Equal(t, before+3*40, source.n)
}

// And all that is asked again is rationed with the joins.
// P-13.2.8.
func TestPendingJoinsAreRationed(t *testing.T) {
	asked := 0
	w := newWorld(t, endpoint.ServerConfig{Admit: func(endpoint.Request) ([]byte, error) {
		asked++
		return nil, endpoint.ErrPending
	}})
	for i := range 200 {
		w.shake(host(i), knowing(""))
	}
	require.Equal(t, 200, asked)
	again := func() {
		for _, a := range w.order {
			for d := range w.clients[a].Due(w.buf[:]) {
				w.server.Receive(a, append([]byte(nil), d...))
			}
		}
	}
	w.clock.Advance(250 * time.Millisecond)
	again()
	require.Equal(t, 400, asked)
	for i := 200; i < 256; i++ {
		w.shake(host(i), knowing(""))
	}
	require.Equal(t, 456, asked)
	w.shake(host(256), knowing(""))
	require.Equal(t, 456, asked)
	require.Equal(t, uint64(1), w.server.Stats().HeldByRate)
	w.clock.Advance(250 * time.Millisecond) // 250 more are paid for, and 257 ask
	again()
	require.Equal(t, 456+250, asked)
	require.Equal(t, uint64(1+7), w.server.Stats().HeldByRate)
}

// Whom Admit puts off has its place at the address, and is not turned away for that; the place
// stays where it was first.
func TestWhoIsPutOffKeepsItsPlace(t *testing.T) {
	var verdict error = endpoint.ErrPending
	w := newWorld(t, endpoint.ServerConfig{MaxPerAddress: 1, Admit: func(endpoint.Request) ([]byte, error) { return nil, verdict }})
	ann := w.shake(address("198.51.100.7:1"), knowing("ann"))
	require.NoError(t, ann.Err())
	w.run(250 * time.Millisecond)
	require.Equal(t, uint64(2), w.server.Stats().Pending)
	w.clock.Advance(250 * time.Millisecond)
	w.rebind("198.51.100.7:1", "198.51.100.8:1") // and asks from there
	w.settle()
	require.NoError(t, ann.Err())
	require.Equal(t, uint64(3), w.server.Stats().Pending)
	bob := w.shake(address("198.51.100.7:2"), knowing("bob"))
	require.ErrorIs(t, bob.Err(), endpoint.ErrRefused)
	require.Equal(t, uint64(1), w.server.Stats().RefusedByAddress)
	verdict = nil
	w.run(500 * time.Millisecond)
	require.NotNil(t, ann.Session())
}

// After the burst joins come one a millisecond, and Resets too.
func TestJoinsAndResetsHaveTheirRates(t *testing.T) {
	for wait, want := range map[time.Duration]int{time.Millisecond - 1: 0, time.Millisecond: 1} {
		w := newWorld(t, endpoint.ServerConfig{MaxPeers: 10_000})
		for i := range 256 {
			require.NotNil(t, w.shake(host(i), knowing("")).Session())
		}
		w.clock.Advance(wait)
		w.shake(host(256), knowing(""))
		require.Equal(t, 256+want, w.server.Stats().Peers)

		d := make([]byte, 34)
		d[0], d[1] = 0x0C, 6
		for i := range 257 {
			w.server.Receive(host(i<<8), bytes.Clone(d))
		}
		require.Equal(t, uint64(256), w.server.Stats().Resets)
		w.clock.Advance(wait)
		for i := range 2 {
			w.server.Receive(host(i<<8), bytes.Clone(d))
		}
		require.Equal(t, uint64(256+want), w.server.Stats().Resets)
	}
}

// lapsing is a Rand of which one read fails.
type lapsing struct {
	io.Reader
	reads, fails int
}

func (l *lapsing) Read(p []byte) (int, error) {
	if l.reads++; l.reads == l.fails {
		return 0, errors.New("no entropy")
	}
	return l.Reader.Read(p)
}

// Whichever read of Rand fails, nothing is made of what was not read.
func TestEachReadOfRandMayFail(t *testing.T) {
	for _, verdict := range []error{nil, errors.New("no")} {
		for fails := 2; fails <= 4; fails++ { // the first is the server's secrets; then seed, token, salt
			w := newWorld(t, endpoint.ServerConfig{
				Rand:  &lapsing{Reader: seeded(1), fails: fails},
				Admit: func(endpoint.Request) ([]byte, error) { return nil, verdict },
			})
			c := w.shake(host(1), knowing(""))
			failed := verdict != nil || fails < 4
			require.Equal(t, failed, c.Session() == nil)
			require.NoError(t, c.Err())
			require.Equal(t, failed, w.server.Stats().Failed == 1)
			w.run(300 * time.Millisecond)
			require.True(t, c.Session() != nil || verdict != nil && c.Err() != nil, "it asks again")
		}
	}
}

// An error of Admit counts for more than its reply; a reason is cut to 256 bytes.
func TestErrorOfAdmitIsTheReason(t *testing.T) {
	for reason, want := range map[string]string{"banned": "banned", strings.Repeat("x", 300): strings.Repeat("x", 256)} {
		w := newWorld(t, endpoint.ServerConfig{Admit: func(endpoint.Request) ([]byte, error) { return make([]byte, 600), errors.New(reason) }})
		var refused *endpoint.RefusedError
		require.ErrorAs(t, w.shake(host(1), knowing("")).Err(), &refused)
		require.Equal(t, want, refused.Reason)
	}
}

// A copy of its Hello does not have a client that plays forgotten.
func TestWhoPlaysIsNotForgotten(t *testing.T) {
	w, c, _ := joined(t, endpoint.ServerConfig{})
	hello := w.logged("Hello")[1]
	w.run(5 * time.Second)
	w.deliver(hello)
	w.run(40 * time.Second)
	w.deliver(w.logged("Hello")[0]) // has the memory swept
	require.NoError(t, c.Err())
	require.Equal(t, 1, w.server.Stats().Remembered)
	c.Session().Close()
	w.run(100 * time.Millisecond)
	require.Zero(t, w.server.Stats().Peers)
}

// Copies are dropped unread to the last nanosecond.
func TestCopiesAreQuietToTheEnd(t *testing.T) {
	for verdict, quiet := range map[error]time.Duration{endpoint.ErrPending: 250 * time.Millisecond, errors.New("no"): 100 * time.Millisecond} {
		asked := 0
		w := newWorld(t, endpoint.ServerConfig{Admit: func(endpoint.Request) ([]byte, error) { asked++; return nil, verdict }})
		w.join(home, knowing("ann"))
		w.settle()
		hello := w.logged("Hello")[1]
		w.clock.Advance(quiet - 1)
		w.deliver(hello)
		require.Equal(t, uint64(1), w.server.Stats().Hushed)
		w.clock.Advance(1)
		w.deliver(hello)
		require.Equal(t, uint64(1), w.server.Stats().Hushed)
		require.Equal(t, 2, asked+int(w.server.Stats().Repeated))
	}
}

// Who has proved an address and says its Hello over and over draws one answer in 100 ms,
// and one at most waits for Due.
// P-13.2.6.
func TestCopiesOfAHelloDrawFewAnswers(t *testing.T) {
	for _, refusal := range []error{nil, errors.New("no")} {
		w := newWorld(t, endpoint.ServerConfig{Admit: func(endpoint.Request) ([]byte, error) { return nil, refusal }})
		w.join(home, knowing("ann"))
		w.flush()
		w.deliver(w.take()[0])
		w.flush()
		w.deliver(w.take()[0])
		w.flush()
		hello := w.take()[0]
		answers := func() (n int) {
			for _, d := range w.server.Due(w.buf[:]) {
				if k := kindOf(d); k == "Accept" || k == "Refuse" {
					n++
				}
			}
			return n
		}
		for range 5 {
			for range 1000 {
				w.deliver(hello)
			}
			w.clock.Advance(50 * time.Millisecond)
			w.deliver(hello)
			require.Equal(t, 1, answers())
			w.deliver(hello)
			require.Zero(t, answers())
			w.clock.Advance(50 * time.Millisecond)
		}
		for range 10 { // nobody fetches them
			w.deliver(hello)
			w.clock.Advance(100 * time.Millisecond)
		}
		require.Equal(t, 1, answers())
		require.Zero(t, w.server.Stats().AnswersDropped)
	}
}

// A server that is full asks Admit nevertheless: who crashed, and comes back, may take
// its own seat.
func TestAdmitFreesTheSeatOfWhoCrashed(t *testing.T) {
	var w *world
	asked := 0
	w = newWorld(t, endpoint.ServerConfig{MaxPeers: 1, Admit: func(r endpoint.Request) ([]byte, error) {
		asked++
		for p := range w.server.Peers() {
			if string(p.Hello()) == string(r.Hello) {
				p.Session().Close()
			}
		}
		return nil, nil
	}})
	w.join(home, knowing("ann"))
	w.run(time.Second)
	delete(w.clients, address(home)) // it crashed
	again := w.join("198.51.100.7:4001", knowing("ann"))
	w.run(400 * time.Millisecond)
	require.NotNil(t, again.Session(), "%v", again.Err())
	require.NoError(t, again.Err())

	asked = 0
	other := w.join(elsewhere, knowing("bob"))
	w.run(time.Second)
	require.ErrorContains(t, other.Err(), "full")
	require.Equal(t, 2, asked)
	s := w.server.Stats()
	require.Equal(t, uint64(2), s.HeldFull)
	require.Equal(t, uint64(1), s.RefusedFull)
	require.NoError(t, again.Err())
}

// One site of 65,536 networks does not fill the memory.
// P-13.2.8.
func TestSiteTakesAShareOfTheMemory(t *testing.T) {
	w := newWorld(t, endpoint.ServerConfig{Admit: func(endpoint.Request) ([]byte, error) { return nil, errors.New("no") }})
	at := func(site byte, i int) netip.AddrPort {
		return netip.AddrPortFrom(netip.AddrFrom16([16]byte{0x20, 1, 0xd, 0xb8, 0, site, byte(i >> 8), byte(i)}), 7)
	}
	for i := range 1100 {
		w.clock.Advance(2 * time.Millisecond)
		w.shake(at(1, i), knowing(""))
		delete(w.clients, at(1, i))
		w.order = nil
	}
	s := w.server.Stats()
	require.Equal(t, 1024, s.Remembered)
	require.Equal(t, uint64(1100-1024), s.HeldByAddress)
	require.ErrorIs(t, w.shake(at(2, 1), knowing("")).Err(), endpoint.ErrRefused, "others are heard")
	require.ErrorIs(t, w.shake(host(1), knowing("")).Err(), endpoint.ErrRefused)
	w.clock.Advance(20 * time.Second)
	require.ErrorIs(t, w.shake(at(1, 2000), knowing("")).Err(), endpoint.ErrRefused)
	require.Equal(t, 1, w.server.Stats().Remembered)
}
