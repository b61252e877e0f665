// State is the third step of docs/guide.md: where a player is, twenty times a second,
// over a link on which datagrams are lost and overtake each other.
//
//	go run ./examples/guide/03-state
package main

import (
	"fmt"
	"time"

	"github.com/ackbits/ackbits"
	"github.com/ackbits/ackbits/examples/guide/sim"
	"github.com/ackbits/ackbits/simnet"
)

func main() {
	clock := new(ackbits.ManualClock)
	var place byte // of alice, as bob knows it
	sent, arrived, used := 0, 0, 0

	// README: begin guide-latest
	alice := sim.NewPeer(ackbits.Config{Clock: clock}, func(ackbits.Incoming) {})
	bob := sim.NewPeer(ackbits.Config{Clock: clock}, func(incoming ackbits.Incoming) {
		if incoming.Type != ackbits.TypeInput || len(incoming.Payload) != 1 {
			return // a heartbeat, for example
		}
		arrived++
		if incoming.Latest { // else a newer one was here before
			place = incoming.Payload[0]
			used++
		}
	})
	// README: end guide-latest

	bad := simnet.Config{Delay: 40 * time.Millisecond, Loss: 0.1, Reorder: 0.2, ReorderDelay: 120 * time.Millisecond}
	pair := simnet.NewPair(3, clock, alice, bob, bad, bad)
	buf := make([]byte, ackbits.MaxDatagramSize)

	// README: begin guide-state
	stop := pair.Every(20, time.Second, func() { // a tick of alice's game
		sent++
		if datagram, _, err := alice.AppendDatagram(buf[:0], ackbits.TypeInput, []byte{byte(sent)}); err == nil {
			pair.Send(simnet.AToB, datagram) // once, whatever becomes of it: the next one replaces it
		}
	})
	// README: end guide-state
	pair.Run(5*time.Second - time.Nanosecond)
	stop()
	pair.Run(6 * time.Second)
	fmt.Printf("%d sent, %d arrived, %d were the latest; alice is at %d\n", sent, arrived, used, place)
}
