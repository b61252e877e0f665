// Leaving is the fifth step of docs/guide.md: how a session ends, well and badly.
//
//	go run ./examples/guide/05-leaving
package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/ackbits/ackbits"
	"github.com/ackbits/ackbits/examples/guide/sim"
	"github.com/ackbits/ackbits/simnet"
)

// game is two players on a link that loses a fifth, and what bob hears.
type game struct {
	alice, bob *sim.Peer
	pair       *simnet.Pair
}

func newGame(token uint64, outages ...simnet.Window) *game {
	clock := new(ackbits.ManualClock)
	config := ackbits.Config{Token: token, Clock: clock}
	g := &game{alice: sim.NewPeer(config, func(ackbits.Incoming) {})}
	g.bob = sim.NewPeer(config, func(incoming ackbits.Incoming) {
		for _, event := range incoming.Events {
			fmt.Printf("  bob hears %q\n", event.Data)
		}
	})
	link := simnet.Config{Delay: 40 * time.Millisecond, Loss: 0.2, Blackouts: outages}
	g.pair = simnet.NewPair(3, clock, g.alice, g.bob, link, link)
	return g
}

func (g *game) run() {
	g.pair.RunUntil(func() bool { return g.alice.Err() != nil && g.bob.Err() != nil }, time.Minute)
}

// README: begin guide-leaving

// why says what the end of a session means to a player.
func why(err error) string {
	switch {
	case errors.Is(err, ackbits.ErrClosed):
		return "left, as I wanted"
	case errors.Is(err, ackbits.ErrPeerLeft):
		return "the other has left"
	default:
		return "lost: " + err.Error() // the connection, not the game: Undelivered is what to say again
	}
}

// leave says a last word and leaves once it is delivered, in two seconds at most.
func leave(session *ackbits.Session) {
	session.Send([]byte("good game"))
	session.Shutdown(2 * time.Second)
}

// again sends what an older session could not deliver over a new one.
func again(older, newer *ackbits.Session) {
	for event := range older.Undelivered() {
		newer.Send(event.Data)
	}
}

// README: end guide-leaving

func main() {
	fmt.Println("Alice leaves:")
	g := newGame(1)
	leave(g.alice.Session)
	g.run()
	fmt.Printf("  alice: %s; bob: %s\n", why(g.alice.Err()), why(g.bob.Err()))

	fmt.Println("A cable is cut:")
	g = newGame(2, simnet.Window{From: time.Second, To: time.Hour})
	g.pair.At(1100*time.Millisecond, func() { g.alice.Send([]byte("the flag is mine")) })
	g.run()
	fmt.Printf("  alice: %s, after %v\n", why(g.alice.Err()), g.pair.Now().Round(time.Second))

	fmt.Println("Alice joins again:")
	newer := newGame(3) // a new session has a new token
	again(g.alice.Session, newer.alice.Session)
	leave(newer.alice.Session)
	newer.run()
	fmt.Printf("  alice: %s\n", why(newer.alice.Err()))
}
