package simnet

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"time"
)

// Net: any number of ends with addresses, each with two links of its own.

// Node is one end that exchanges datagrams with many others: a server, or a peer of a mesh.
// It is an [Endpoint] with addresses.
type Node interface {
	// Receive takes a datagram that has arrived, and the address that sent it.
	// The node may change the datagram, and must not keep it after it returns.
	Receive(from netip.AddrPort, datagram []byte)

	// Due calls send for each datagram that is to leave now; send copies it.
	Due(send func(to netip.AddrPort, datagram []byte))

	// Deadline returns when Due next has something to send if nothing arrives
	// until then; ok is false if it never has. A time that has passed means now.
	Deadline() (t time.Time, ok bool)
}

// Net runs any number of ends in virtual time: a server and its clients, a swarm of
// bots, a mesh.
//
//	sim := simnet.NewNet(1, clock)
//	server := simnet.Addr(0)
//	sim.Add(server, newServer(clock), simnet.Config{}, simnet.Config{})
//	for i := 1; i <= 100; i++ {
//		sim.Dial(simnet.Addr(i), server, newBot(clock), dsl, dsl)
//	}
//	sim.Run(time.Minute)
//
// Each end has an address and two links of its own, up for what it sends and down
// for what it receives, as a household has: a datagram passes the up link of its
// sender, then the down link of its receiver. Conditions add up, so give a client's
// links the path to the server, and the server's links what all clients share: the
// zero Config, or the Rate of its connection.
//
// A datagram goes to the end that has its address when it leaves the up link, and
// is lost ([Unreachable]) if there is none, or if that end no longer has the
// address when the datagram arrives. Ends may be added, removed and moved at any
// time, in scheduled functions too. What one end does never changes the random
// numbers of another's links; those follow from the seed of the Net and from how
// many ends were added before.
//
// At each instant, with the ends always in the order in which they were added:
//
//  1. What has left an up link enters a down link.
//  2. For each end, everything that has arrived is passed to its Receive, and its
//     Due is called after each.
//  3. Scheduled functions run, in the order in which they were scheduled.
//  4. Due of each end is called if a function ran or if its deadline has come.
//
// What this causes at the same instant follows in another round of the steps. If
// that never ends, Run panics.
//
// An end sends everything in Due, the states of its game included: a scheduled function
// queues them, and Due, which follows at once, sends them. This stays right when the end
// moves. For an end that never moves, [Net.Send] is shorter.
//
// An end is asked for its Deadline when Run begins, after each of its Receive and
// Due, and after scheduled functions. So do not let one end call another, which
// would send late: schedule that call for now, with At.
//
// A Server of package endpoint is nearly a Node, and a Client is nearly an Endpoint: the
// second example below adds what they lack.
type Net struct {
	network
	seed      uint64
	added     uint64 // ends so far
	ids       map[netip.AddrPort]addressID
	addresses []netip.AddrPort        // by addressID
	moved     map[addressID]addressID // from where an end moved last, and where to
}

// NewNet returns a Net without ends at time 0, which is what clock shows now.
func NewNet(seed uint64, clock Clock) *Net {
	n := &Net{
		network:   newNetwork(clock),
		seed:      mix(seed),
		ids:       map[netip.AddrPort]addressID{},
		addresses: make([]netip.AddrPort, 1),
		moved:     map[addressID]addressID{},
	}
	n.remembers = true
	return n
}

// Addr returns the address number i, for tests that do not care which addresses they use:
// 10.0.0.0:4000 for 0, 10.0.0.1:4000 for 1, 10.0.1.44:4000 for 300. It panics
// unless i is from 0 to 16,777,215.
func Addr(i int) netip.AddrPort {
	if i < 0 || i >= 1<<24 {
		panic(fmt.Sprintf("simnet: no address number %d", i))
	}
	var ip [4]byte
	binary.BigEndian.PutUint32(ip[:], 10<<24|uint32(i))
	return netip.AddrPortFrom(netip.AddrFrom4(ip), 4000)
}

// Add adds an end that may send to any address, a server for example. up and down
// are the network conditions on its links. An IPv4 address mapped to IPv6 is the
// same as the IPv4 address, everywhere in a Net. Add panics if another end has the
// address, or if it is the zero AddrPort.
func (n *Net) Add(addr netip.AddrPort, node Node, up, down Config) {
	e := n.newEnd(addr, up, down)
	e.node = &addressed{node, n, func(to netip.AddrPort, datagram []byte) { n.send(e, n.id(to), datagram) }}
}

// Dial adds an end that sends to peer and receives from peer alone, as a connected
// socket does: a client for example. Apart from that it is Add.
func (n *Net) Dial(addr, peer netip.AddrPort, endpoint Endpoint, up, down Config) {
	e := n.newEnd(addr, up, down)
	e.node = n.dial(e, endpoint, n.id(peer))
}

// Remove removes the end that has an address. Its node is not told, as in a crash. What
// it sent still arrives; what arrives for it is lost. The address may be used again at
// once, for example by a server that restarts. It panics if nobody has the address.
func (n *Net) Remove(addr netip.AddrPort) {
	e := n.end(addr)
	n.holder[e.address] = nil
	e.node = nil
	n.gone++
}

// Move gives the end that has the address from the address to, as a NAT that forgot
// its mapping does, or a phone that leaves the Wi-Fi. What it sent before still
// comes from the old address; what arrives for that is lost. Its links stay. It
// panics if nobody has the address from, or if somebody has the address to.
// From then on, Send from the old address panics until another end has it.
func (n *Net) Move(from, to netip.AddrPort) {
	e := n.end(from)
	n.holder[e.address] = nil
	n.moved[e.address] = n.id(to)
	n.place(e, to)
}

// Up returns the link of what an end sends, for its Stats and SetConfig. It panics
// if nobody has the address.
func (n *Net) Up(addr netip.AddrPort) *Link { return n.end(addr).up }

// Down returns the link of what an end receives, for its Stats and SetConfig. It
// panics if nobody has the address.
func (n *Net) Down(addr netip.AddrPort) *Link { return n.end(addr).down }

// Unreachable returns how many datagrams were lost since nobody had their address.
func (n *Net) Unreachable() int { return n.unreachable }

// Send sends a datagram now, as if the end that has the address from had sent it: over
// its up link. If nobody has the address, it is [Net.Spoof]; but if an end moved away
// from there and no other came, Send panics: it would no longer be that end's datagram.
// An end that may move queues its datagrams and sends them in Due. Send may be called at
// any time, in scheduled functions too. The bytes are copied.
func (n *Net) Send(from, to netip.AddrPort, datagram []byte) {
	h := hop{n.id(from), n.id(to)}
	if e := n.holder[h.from]; e != nil {
		n.send(e, h.to, datagram)
		return
	}
	if now, ok := n.moved[h.from]; ok {
		panic(fmt.Sprintf("simnet: Send from %v, whose end moved to %v; Spoof sends as a stranger", from, n.addresses[now]))
	}
	n.spoof(h, datagram)
}

// Spoof sends a datagram now whose source address is forged: it comes from a stranger and
// passes only the receiver's link, whoever has the address from. Use it for spoofed and
// replayed datagrams. Like Send it may be called at any time, and copies the bytes.
func (n *Net) Spoof(from, to netip.AddrPort, datagram []byte) {
	n.spoof(hop{n.id(from), n.id(to)}, datagram)
}

func (n *Net) spoof(h hop, datagram []byte) {
	if n.observe != nil {
		n.observe(h, Sent, datagram)
	}
	n.forward(h, datagram)
}

// Observe sets a function that is called for everything that happens to datagrams, in
// order; nil for none. Each datagram is Sent once, whatever becomes of it on the two
// links, and each copy that arrives is Delivered. It replaces what [Link.Observe] set.
// The datagram is valid during the call only and must not be changed.
func (n *Net) Observe(fn func(at time.Duration, from, to netip.AddrPort, what What, datagram []byte)) {
	n.observe = nil
	if fn != nil {
		n.observe = func(h hop, what What, datagram []byte) {
			fn(n.now, n.addresses[h.from], n.addresses[h.to], what, datagram)
		}
	}
	for _, e := range n.ends {
		n.watch(e)
	}
}

// watch makes the links of an end tell the observer what happens on them, except that a
// datagram goes from one link to the other.
func (n *Net) watch(e *end) {
	e.up.observe, e.down.observe = nil, nil
	if n.observe == nil {
		return
	}
	e.up.observe = func(_ time.Duration, h hop, what What, datagram []byte) {
		if what != Delivered {
			n.observe(h, what, datagram)
		}
	}
	e.down.observe = func(_ time.Duration, h hop, what What, datagram []byte) {
		if what == Delivered && n.holder[h.to] != e {
			what = Unreachable
		}
		if what != Sent {
			n.observe(h, what, datagram)
		}
	}
}

// newEnd returns a new end with an address and links, but without a node.
func (n *Net) newEnd(addr netip.AddrPort, up, down Config) *end {
	e := &end{up: NewLink(n.seed+2*n.added, up), down: NewLink(n.seed+2*n.added+1, down)}
	n.place(e, addr)
	n.added++
	n.attach(e)
	n.watch(e)
	return e
}

// place gives an end an address.
func (n *Net) place(e *end, addr netip.AddrPort) {
	id := n.id(addr)
	if id == 0 {
		panic("simnet: the zero AddrPort is no address")
	}
	if n.holder[id] != nil {
		panic(fmt.Sprintf("simnet: two ends at %v", addr))
	}
	n.holder[id] = e
	delete(n.moved, id)
	e.address, e.name = id, addr.String()
}

// end returns the end that has an address.
func (n *Net) end(addr netip.AddrPort) *end {
	e := n.holder[n.id(addr)]
	if e == nil {
		panic(fmt.Sprintf("simnet: nobody at %v", addr))
	}
	return e
}

// id returns the number of an address, a new one if it was never seen before.
func (n *Net) id(addr netip.AddrPort) addressID {
	addr = netip.AddrPortFrom(addr.Addr().Unmap(), addr.Port())
	if addr == (netip.AddrPort{}) {
		return 0
	}
	id, ok := n.ids[addr]
	if !ok {
		id = addressID(len(n.addresses))
		n.ids[addr] = id
		n.addresses = append(n.addresses, addr)
		n.holder = append(n.holder, nil)
	}
	return id
}

// addressed is a Node as a node.
type addressed struct {
	Node
	net  *Net
	send func(to netip.AddrPort, datagram []byte)
}

func (a *addressed) receive(from addressID, datagram []byte) {
	a.Receive(a.net.addresses[from], datagram)
}

func (a *addressed) due() { a.Due(a.send) }
