// Events is the second step of docs/guide.md: ten events over a link that loses a third
// of all datagrams, each delivered exactly once.
//
//	go run ./examples/guide/02-events
package main

import (
	"fmt"
	"time"

	"github.com/ackbits/ackbits"
	"github.com/ackbits/ackbits/examples/guide/sim"
	"github.com/ackbits/ackbits/simnet"
)

// README: begin guide-events

// shoot sends ten shots from alice to bob and returns them as bob got them.
func shoot(ordered bool) (shots string) {
	clock := new(ackbits.ManualClock)
	config := ackbits.Config{Clock: clock, Ordered: ordered}
	alice := sim.NewPeer(config, func(ackbits.Incoming) {})
	bob := sim.NewPeer(config, func(incoming ackbits.Incoming) {
		for _, event := range incoming.Events {
			shots += " " + string(event.Data)
		}
	})
	bad := simnet.Config{Delay: 40 * time.Millisecond, Loss: 0.33, Duplicate: 0.1}
	pair := simnet.NewPair(3, clock, alice, bob, bad, bad)

	for i := range 10 {
		pair.At(time.Duration(i)*50*time.Millisecond, func() {
			if alice.Room() > 0 { // one more than the session has room for would end it
				alice.Send(fmt.Append(nil, i))
			}
		})
	}
	pair.Run(2 * time.Second)
	return shots
}

// README: end guide-events

func main() {
	fmt.Println("as they arrive:      " + shoot(false))
	fmt.Println("in the order of Send:" + shoot(true))
}
