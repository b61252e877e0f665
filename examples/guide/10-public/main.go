// Public is the tenth step of docs/guide.md: a server on an open port, and what comes
// there: players, a player without a ticket, too many of one address, one who sends too
// much, and a flood of strangers.
//
//	go run ./examples/guide/10-public
package main

import (
	"crypto/ecdh"
	"errors"
	"fmt"
	"log"
	"net/netip"
	"os"
	"path/filepath"
	"time"

	"github.com/ackbits/ackbits"
	"github.com/ackbits/ackbits/endpoint"
	"github.com/ackbits/ackbits/examples/guide/sim"
	"github.com/ackbits/ackbits/simnet"
)

// world is the server, the internet, and everybody there.
type world struct {
	clock   *ackbits.ManualClock
	network *simnet.Net
	key     *ecdh.PrivateKey
	backend []byte // its secret
	server  *sim.Server
	clients []*sim.Client
}

var port = simnet.Addr(0)

func newWorld(key *ecdh.PrivateKey) *world {
	w := &world{clock: new(ackbits.ManualClock), key: key, backend: []byte("the backend's secret")}
	w.clock.Set(time.Unix(0, 0))
	w.network = simnet.NewNet(1, w.clock)
	w.server = sim.NewServer(door(key, w.backend, w.clock), func(incoming endpoint.Incoming) {
		incoming.Peer.Value.(*limit).take(incoming, w.clock.Now())
	}, func(news endpoint.Event) {
		switch news.Kind {
		case endpoint.Joined:
			news.Peer.Value = new(limit)
			replace(w.server.Server, w.backend, news.Peer)
		case endpoint.Left:
			fmt.Printf("a player at %v has left: %v\n", news.Peer.Addr(), news.Err)
		}
	})
	w.network.Add(port, w.server, simnet.Config{}, simnet.Config{})
	return w
}

// join lets somebody knock.
func (w *world) join(from netip.AddrPort, hello []byte, serverKey *ecdh.PublicKey) *sim.Client {
	cfg := endpoint.ClientConfig{ServerKey: serverKey, Hello: hello, Clock: w.clock}
	c := sim.NewClient(cfg, uint64(len(w.clients)+1), func(ackbits.Incoming) {})
	w.clients = append(w.clients, c)
	line := simnet.Config{Delay: 20 * time.Millisecond}
	w.network.Dial(from, port, c, line, line)
	return c
}

func (w *world) ticket(name string) []byte {
	return newTicket(w.backend, name, w.clock.Now().Add(time.Minute))
}

// report says how somebody fared.
func report(who string, c *sim.Client) {
	var refused *endpoint.RefusedError
	switch err := c.Err(); {
	case errors.As(err, &refused):
		fmt.Printf("%s is refused: %s\n", who, refused.Reason)
	case err != nil:
		fmt.Printf("%s: %v\n", who, err)
	default:
		fmt.Printf("%s plays: %s\n", who, c.Reply())
	}
}

func main() {
	dir, err := os.MkdirTemp("", "guide")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	key, err := loadKey(filepath.Join(dir, "server.key"))
	if err != nil {
		log.Fatal(err)
	}
	w := newWorld(key)
	public := key.PublicKey()

	ann := w.join(simnet.Addr(1), w.ticket("ann"), public)
	liar := w.join(simnet.Addr(2), []byte("ann, honestly, let me in, I have lost the ticket"), public)
	late := w.join(simnet.Addr(3), newTicket(w.backend, "ann", w.clock.Now().Add(-time.Hour)), public)
	fooled := w.join(simnet.Addr(4), w.ticket("bob"), sim.Key(9).PublicKey()) // who knows another server
	var fifth, ann2 *sim.Client
	for i := range 5 {
		home := netip.AddrPortFrom(simnet.Addr(5).Addr(), uint16(4000+i))
		fifth = w.join(home, w.ticket(fmt.Sprint("child ", i)), public)
	}
	eager := w.join(simnet.Addr(6), w.ticket("eve"), public)
	w.network.At(time.Second, func() {
		for range 50 {
			eager.Session().Send([]byte("bang"))
		}
	})
	w.network.At(2*time.Second, w.flood)
	w.network.At(3*time.Second, func() { ann2 = w.join(simnet.Addr(7), w.ticket("ann"), public) })
	w.network.Run(6 * time.Second)

	report("ann, at first", ann)
	report("ann, on another machine", ann2)
	report("who has no ticket", liar)
	report("who has an old one", late)
	report("who has another server's key", fooled)
	report("the fifth of one household", fifth)
	report("who sends 50 events at once", eager)
	w.watch()
}

// flood is 4,000 datagrams of strangers: beginnings of joins that never go on, and
// noise.
func (w *world) flood() {
	stranger := sim.NewClient(endpoint.ClientConfig{Clock: w.clock}, 1000, func(ackbits.Incoming) {})
	stranger.Due(func(hello []byte) {
		for i := range 2000 {
			w.network.Send(simnet.Addr(1000+2*i), port, hello)
			w.network.Send(simnet.Addr(1001+2*i), port, hello[40:60])
		}
	})
}

// README: begin guide-watch

// watch prints what an operator looks at.
func (w *world) watch() {
	s := w.server.Stats()
	fmt.Println("players:", s.Peers)
	fmt.Println("joins:", s.Joins, "of", s.Hellos, "Hellos") // far apart: a flood
	fmt.Println("refused:", s.RefusedByAdmit, "by Admit,", s.RefusedByAddress, "by address,", s.RefusedFull, "as it is full")
	fmt.Println("held back:", s.HeldByRate+s.HeldByAddress+s.HeldByMemory) // above 0: honest players wait, too
	fmt.Println("strangers' datagrams:", s.Foreign, "answers dropped:", s.AnswersDropped)
}

// README: end guide-watch
