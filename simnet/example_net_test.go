package simnet_test

import (
	"fmt"
	"net/netip"
	"time"

	"github.com/ackbits/ackbits"
	"github.com/ackbits/ackbits/simnet"
)

// server is a simnet.Node: a session for each address that sends. (On an open port
// an address has to be proved first. Package endpoint does that.)
type server struct {
	clock *ackbits.ManualClock
	peers []peer // in a fixed order, which that of a map is not
	hits  int
	buf   []byte
}

type peer struct {
	addr    netip.AddrPort
	session *ackbits.Session
}

func (s *server) Receive(from netip.AddrPort, datagram []byte) {
	for _, p := range s.peers {
		if p.addr == from {
			in, _ := p.session.Receive(datagram)
			s.hits += len(in.Events)
			return
		}
	}
	s.peers = append(s.peers, peer{from, newSession(s.clock)})
	s.Receive(from, datagram)
}

func (s *server) Due(send func(to netip.AddrPort, datagram []byte)) {
	for _, p := range s.peers {
		for datagram := range p.session.Due(s.buf) {
			send(p.addr, datagram)
		}
	}
}

func (s *server) Deadline() (soonest time.Time, ok bool) {
	for _, p := range s.peers {
		if t, some := p.session.Deadline(); some && (!ok || t.Before(soonest)) {
			soonest, ok = t, true
		}
	}
	return soonest, ok
}

// bot is a simnet.Endpoint that shoots ten times, four times a second.
type bot struct {
	*ackbits.Session
	clock *ackbits.ManualClock
	next  time.Time // when it shoots
	shots int
	buf   []byte
}

func (b *bot) Receive(datagram []byte) { b.Session.Receive(datagram) }

func (b *bot) Due(send func(datagram []byte)) {
	if b.shots < 10 && !b.clock.Now().Before(b.next) {
		b.Send([]byte("hit"))
		b.shots++
		b.next = b.next.Add(time.Second / 4)
	}
	for datagram := range b.Session.Due(b.buf) {
		send(datagram)
	}
}

func (b *bot) Deadline() (time.Time, bool) {
	t, ok := b.Session.Deadline()
	if b.shots < 10 && (!ok || b.next.Before(t)) {
		return b.next, true
	}
	return t, ok
}

func newSession(clock *ackbits.ManualClock) *ackbits.Session {
	session, err := ackbits.NewSession(ackbits.Config{Token: 1, Clock: clock})
	if err != nil {
		panic(err)
	}
	return session
}

// A server and a hundred bots, each with a bad line of its own. No hit is lost and
// none counts twice.
func ExampleNet() {
	clock := new(ackbits.ManualClock)
	sim := simnet.NewNet(1, clock)
	s := &server{clock: clock, buf: make([]byte, ackbits.MaxDatagramSize)}
	sim.Add(simnet.Addr(0), s, simnet.Config{}, simnet.Config{})
	for i := 1; i <= 100; i++ {
		b := &bot{Session: newSession(clock), clock: clock, buf: make([]byte, ackbits.MaxDatagramSize)}
		b.next = clock.Now().Add(time.Duration(i) * 2 * time.Millisecond) // not all at once
		line := simnet.Config{Delay: time.Duration(i) * time.Millisecond, Jitter: 10 * time.Millisecond, Loss: 0.1}
		sim.Dial(simnet.Addr(i), simnet.Addr(0), b, line, line)
	}
	sim.Run(5 * time.Second)

	fmt.Println(len(s.peers), "bots,", s.hits, "hits")
	down := sim.Down(simnet.Addr(7)).Stats()
	fmt.Printf("lost on the way to bot 7: %.0f %%\n", 100*float64(down.Lost)/float64(down.Sent))
	// Output:
	// 100 bots, 1000 hits
	// lost on the way to bot 7: 9 %
}
