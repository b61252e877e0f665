package endpoint_test

import (
	"crypto/ecdh"
	"math/rand/v2"
	"net/netip"
	"time"

	"github.com/ackbits/ackbits"
	"github.com/ackbits/ackbits/endpoint"
	"github.com/stretchr/testify/require"
)

// seeded is a source of randomness that repeats itself.
func seeded(n int) *rand.ChaCha8 {
	return rand.NewChaCha8([32]byte{byte(n), byte(n >> 8), byte(n >> 16)})
}

// serverKey is the identity of the servers of the tests.
var serverKey = func() *ecdh.PrivateKey {
	key, err := ecdh.X25519().NewPrivateKey([]byte("a server's key of thirty-two b\x01\x02"))
	if err != nil {
		panic(err)
	}
	return key
}()

// packet is a datagram with both of its addresses.
type packet struct {
	from, to netip.AddrPort
	data     []byte
}

func address(s string) netip.AddrPort { return netip.MustParseAddrPort(s) }

// world is a server and clients in virtual time. Datagrams wait in wire until a
// test delivers them.
type world struct {
	t       require.TestingT
	clock   ackbits.ManualClock
	server  *endpoint.Server
	at      netip.AddrPort // the server's address
	clients map[netip.AddrPort]*endpoint.Client
	order   []netip.AddrPort
	joins   int // clients so far
	wire    []packet
	log     []packet // everything that was ever on the wire
	events  []endpoint.Event
	hold    bool // events are fetched by fetch alone
	lost    func(packet) bool
	onHeard func(*endpoint.Peer)
	got     map[*endpoint.Peer][]string // events that the server's peers sent
	heard   map[netip.AddrPort][]string // and those that a client got
	buf     [ackbits.MaxDatagramSize]byte
}

func newWorld(t require.TestingT, cfg endpoint.ServerConfig) *world {
	w := &world{
		t: t, at: address("192.0.2.1:9000"), clients: map[netip.AddrPort]*endpoint.Client{},
		got: map[*endpoint.Peer][]string{}, heard: map[netip.AddrPort][]string{},
	}
	w.clock.Set(time.Unix(1_700_000_000, 0))
	w.serve(cfg)
	return w
}

// serve starts the server, anew if there was one.
func (w *world) serve(cfg endpoint.ServerConfig) {
	cfg.Clock = &w.clock
	if cfg.Key == nil {
		cfg.Key = serverKey
	}
	if cfg.Rand == nil {
		cfg.Rand = seeded(1)
	}
	var err error
	w.server, err = endpoint.NewServer(cfg)
	require.NoError(w.t, err)
}

// join starts a client at an address.
func (w *world) join(from string, cfg endpoint.ClientConfig) *endpoint.Client {
	cfg.Clock = &w.clock
	if cfg.Rand == nil {
		w.joins++
		cfg.Rand = seeded(1000 + w.joins)
	}
	c, err := endpoint.NewClient(cfg)
	require.NoError(w.t, err)
	a := address(from)
	w.clients[a] = c
	w.order = append(w.order, a)
	return c
}

// flush puts on the wire what is due.
func (w *world) flush() {
	for _, a := range w.order {
		if c := w.clients[a]; c != nil {
			for d := range c.Due(w.buf[:]) {
				w.send(a, w.at, d)
			}
		}
	}
	for to, d := range w.server.Due(w.buf[:]) {
		w.send(w.at, to, d)
	}
	if !w.hold {
		w.fetch()
	}
}

// fetch fetches the server's events.
func (w *world) fetch() {
	for e, ok := w.server.NextEvent(); ok; e, ok = w.server.NextEvent() {
		w.events = append(w.events, e)
	}
}

// tooMany is more than is ever on the wire at once: a Due that yields so many has no end.
const tooMany = 30_000

// send puts a datagram on the wire.
func (w *world) send(from, to netip.AddrPort, data []byte) {
	require.Less(w.t, len(w.wire), tooMany)
	p := packet{from, to, append([]byte(nil), data...)}
	w.wire = append(w.wire, p)
	w.log = append(w.log, p)
}

// take removes what is on the wire and returns it.
func (w *world) take() []packet {
	wire := w.wire
	w.wire = nil
	return wire
}

// kinds tells what datagrams are.
func kinds(packets []packet) (names []string) {
	for _, p := range packets {
		names = append(names, kindOf(p.data))
	}
	return names
}

func kindOf(data []byte) string {
	if len(data) > 1 && data[0] == 0x0E {
		return []string{"?", "Hello", "Challenge", "Accept", "Refuse", "Reset", "Probe", "ProbeReply"}[min(data[1], 7)]
	}
	return "session"
}

// logged returns what was sent of a kind.
func (w *world) logged(kind string) (found []packet) {
	for _, p := range w.log {
		if kindOf(p.data) == kind {
			found = append(found, p)
		}
	}
	return found
}

// deliver hands a datagram in where it belongs.
func (w *world) deliver(p packet) error {
	data := append([]byte(nil), p.data...)
	if p.to == w.at {
		in, err := w.server.Receive(p.from, data)
		if in.Peer != nil && w.onHeard != nil {
			w.onHeard(in.Peer)
		}
		for _, e := range in.Events {
			w.got[in.Peer] = append(w.got[in.Peer], string(e.Data))
		}
		return err
	}
	c := w.clients[p.to]
	if c == nil {
		return nil
	}
	in, err := c.Receive(data)
	for _, e := range in.Events {
		w.heard[p.to] = append(w.heard[p.to], string(e.Data))
	}
	return err
}

// settle delivers everything until nothing is due at this instant.
func (w *world) settle() {
	for w.flush(); len(w.wire) > 0; w.flush() {
		for _, p := range w.take() {
			w.deliver(p)
		}
	}
}

// run lets time pass in steps of 10 ms, with a perfect network.
func (w *world) run(d time.Duration) {
	w.settle()
	for range d / (10 * time.Millisecond) {
		w.clock.Advance(10 * time.Millisecond)
		w.settle()
	}
}
