package simnet_test

import (
	"fmt"
	"time"

	"github.com/ackbits/ackbits"
	"github.com/ackbits/ackbits/simnet"
)

// player is a session as a simnet.Endpoint. Deadline is the session's own.
type player struct {
	*ackbits.Session
	name  string
	clock *ackbits.ManualClock
	buf   []byte
}

func newPlayer(name string, clock *ackbits.ManualClock) *player {
	session, err := ackbits.NewSession(ackbits.Config{Token: 1, Clock: clock})
	if err != nil {
		panic(err)
	}
	return &player{session, name, clock, make([]byte, ackbits.MaxDatagramSize)}
}

func (p *player) Receive(datagram []byte) {
	in, err := p.Session.Receive(datagram)
	if err != nil {
		return // damaged on the way, or the session has ended: see Err
	}
	for _, event := range in.Events {
		fmt.Printf("%v: %s got %q\n", p.clock.Now().Sub(time.Time{}), p.name, event.Data)
	}
}

func (p *player) Due(send func(datagram []byte)) {
	for datagram := range p.Session.Due(p.buf) {
		send(datagram)
	}
}

// Two sessions talk over a link that loses a third of all datagrams.
func ExamplePair() {
	clock := new(ackbits.ManualClock)
	alice, bob := newPlayer("alice", clock), newPlayer("bob", clock)
	bad := simnet.Config{Delay: 40 * time.Millisecond, Jitter: 10 * time.Millisecond, Loss: 0.33}
	pair := simnet.NewPair(1, clock, alice, bob, bad, bad)

	alice.Send([]byte("ready?"))
	pair.At(500*time.Millisecond, func() { bob.Send([]byte("ready")) })
	arrived := func() bool { return alice.InFlight() == 0 && bob.InFlight() == 0 }
	pair.Run(time.Second)
	fmt.Println("all delivered:", pair.RunUntil(arrived, time.Minute))
	fmt.Println("datagrams lost:", pair.Link(simnet.AToB).Stats().Lost+pair.Link(simnet.BToA).Stats().Lost)
	// Output:
	// 145.571708ms: bob got "ready?"
	// 648.081074ms: alice got "ready"
	// all delivered: true
	// datagrams lost: 13
}

// An outage of two seconds, as in a tunnel: what was sent in it arrives once it is
// over, and the sessions survive, since it is shorter than their Timeout of 5 s.
func Example_outage() {
	clock := new(ackbits.ManualClock)
	alice, bob := newPlayer("alice", clock), newPlayer("bob", clock)
	tunnel := simnet.Config{
		Delay:     40 * time.Millisecond,
		Blackouts: []simnet.Window{{From: 1 * time.Second, To: 3 * time.Second}},
	}
	pair := simnet.NewPair(1, clock, alice, bob, tunnel, tunnel)

	pair.At(900*time.Millisecond, func() { alice.Send([]byte("before")) })
	pair.At(1500*time.Millisecond, func() { alice.Send([]byte("inside")) })
	pair.Run(10 * time.Second)
	fmt.Println("lost in the tunnel:", pair.Link(simnet.AToB).Stats().LostInBlackout, "datagrams")
	fmt.Println("ended:", alice.Err(), bob.Err())
	// Output:
	// 940ms: bob got "before"
	// 3.04s: bob got "inside"
	// lost in the tunnel: 40 datagrams
	// ended: <nil> <nil>
}
