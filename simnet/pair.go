package simnet

import (
	"fmt"
	"time"
)

// Pair: two endpoints and the two links between them.

// Endpoint is one end that exchanges datagrams with one peer: a side of a [Pair], or a
// client in a [Net]. The simulation calls its methods, which must not wait.
type Endpoint interface {
	// Receive takes a datagram that has arrived. The endpoint may change it,
	// and must not keep it after it returns.
	Receive(datagram []byte)

	// Due calls send for each datagram that is to leave now; send copies it.
	Due(send func(datagram []byte))

	// Deadline returns when Due next has something to send if nothing arrives
	// until then; ok is false if it never has. A time that has passed means now.
	// An endpoint that is driven by a scheduled function, as by a game loop, may
	// always return false.
	Deadline() (t time.Time, ok bool)
}

// Direction is one of the two links of a [Pair].
type Direction uint8

// The directions, between the endpoints a and b given to [NewPair].
const (
	AToB Direction = iota
	BToA
)

// String returns "a->b" or "b->a".
func (d Direction) String() string {
	switch d {
	case AToB:
		return "a->b"
	case BToA:
		return "b->a"
	}
	return fmt.Sprintf("Direction(%d)", uint8(d))
}

// Pair runs two endpoints over two links in virtual time. To run two sessions of
// package ackbits over it, give a session the methods of an [Endpoint]; Deadline it
// has already:
//
//	type player struct {
//		*ackbits.Session
//		buf []byte // of ackbits.MaxDatagramSize
//	}
//
//	func (p *player) Receive(datagram []byte) {
//		in, err := p.Session.Receive(datagram)
//		… // what the game does with in.Events and in.Payload
//	}
//
//	func (p *player) Due(send func([]byte)) {
//		for datagram := range p.Session.Due(p.buf) {
//			send(datagram)
//		}
//	}
//
//	clock := new(ackbits.ManualClock) // for both: ackbits.Config{Clock: clock, …}
//	pair := simnet.NewPair(1, clock, alice, bob, simnet.Config{Loss: 0.1}, simnet.Config{})
//	alice.Send([]byte("hello"))
//	pair.Run(time.Second)
//
// The example below is the whole program.
//
// At each instant, a Pair does the following:
//
//  1. Everything that has arrived at a is passed to its Receive, and its Due is
//     called after each; then the same for b.
//  2. Scheduled functions run, in the order in which they were scheduled.
//  3. Due of a, then of b, is called if a function ran or if its deadline has come.
//     Without a reason it is not called, so that a Deadline which is too late
//     shows in the test.
//
// What this causes at the same instant follows in another round of the three
// steps. If that never ends, Run panics.
type Pair struct{ network }

// NewPair returns a pair at time 0, which is what clock shows now. The two
// directions have their own network conditions and random numbers: what is sent
// one way does not change what becomes of datagrams on the other.
func NewPair(seed uint64, clock Clock, a, b Endpoint, aToB, bToA Config) *Pair {
	seed = mix(seed)
	p := &Pair{newNetwork(clock)}
	p.attach(&end{name: "a", address: 1, down: NewLink(seed+1, bToA)})
	p.attach(&end{name: "b", address: 2, down: NewLink(seed, aToB)})
	p.holder = append(p.holder, p.ends...)
	for i, endpoint := range []Endpoint{a, b} {
		p.ends[i].node = p.dial(p.ends[i], endpoint, p.ends[1-i].address)
	}
	return p
}

// Link returns the link of a direction, for its Stats and SetConfig.
func (p *Pair) Link(d Direction) *Link { return p.ends[1-d].down }

// Send sends a datagram now, as if the endpoint from which d leads had sent it. It
// may be called at any time, in scheduled functions too. The bytes are copied.
func (p *Pair) Send(d Direction, datagram []byte) {
	p.send(p.ends[d], p.ends[1-d].address, datagram)
}

// Observe sets a function that is called for everything that happens on both
// links, in order; nil for none. It replaces what [Link.Observe] set. The datagram
// is valid during the call only and must not be changed.
func (p *Pair) Observe(fn func(at time.Duration, d Direction, what What, datagram []byte)) {
	for d := AToB; d <= BToA; d++ {
		if fn == nil {
			p.Link(d).Observe(nil)
			continue
		}
		p.Link(d).Observe(func(at time.Duration, what What, datagram []byte) { fn(at, d, what, datagram) })
	}
}

// dialed is an Endpoint as a node: one that sends to one address, and receives
// from it alone.
type dialed struct {
	Endpoint
	peer addressID
	send func(datagram []byte)
}

func (n *network) dial(e *end, endpoint Endpoint, peer addressID) node {
	return &dialed{endpoint, peer, func(datagram []byte) { n.send(e, peer, datagram) }}
}

func (d *dialed) receive(from addressID, datagram []byte) {
	if from == d.peer {
		d.Receive(datagram)
	}
}

func (d *dialed) due() { d.Due(d.send) }
