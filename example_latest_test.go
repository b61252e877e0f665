package ackbits_test

import (
	"fmt"
	"time"

	"github.com/ackbits/ackbits"
)

// Three datagrams arrive in reverse order. Arrival compares a datagram with all others,
// so both snapshots are Late. Latest compares it with those of its own type: the second
// snapshot is still the newest one, and a game that checked Arrival would drop it.
func ExampleIncoming_latest() {
	clock := new(ackbits.ManualClock)
	cfg := ackbits.Config{Clock: clock}
	server, err := ackbits.NewSession(cfg)
	if err != nil {
		panic(err)
	}
	client, err := ackbits.NewSession(cfg)
	if err != nil {
		panic(err)
	}

	var sent [][]byte
	for _, snapshot := range []string{"door closed", "door open"} {
		datagram, _, err := server.AppendDatagram(nil, ackbits.TypeSnapshot, []byte(snapshot))
		if err != nil {
			panic(err)
		}
		sent = append(sent, datagram)
	}
	clock.Advance(50 * time.Millisecond) // of silence: a heartbeat is due
	heartbeat, _ := server.AppendDue(nil)
	sent = append(sent, heartbeat)

	for i := len(sent) - 1; i >= 0; i-- { // the network turns them around
		in, err := client.Receive(sent[i])
		if err != nil {
			panic(err)
		}
		fmt.Printf("%-9v %-6v latest: %-5v %q\n", in.Type, in.Arrival, in.Latest, in.Payload)
	}
	// Output:
	// Heartbeat Newest latest: false ""
	// Snapshot  Late   latest: true  "door open"
	// Snapshot  Late   latest: false "door closed"
}
