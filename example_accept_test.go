package ackbits_test

import (
	"errors"
	"fmt"
	"time"

	"github.com/ackbits/ackbits"
)

var errGarbage = errors.New("game: garbage instead of a snapshot")

// A gallery keeps the snapshots that a client has decoded, as baselines for later
// ones. A snapshot is three bytes: its number, the number of its baseline, and what to
// add to that. Baseline 0 is the empty world.
type gallery map[byte]int

// accept is the Config.Accept of the client. It decodes here and not after Receive,
// because the server will build on every snapshot that is acknowledged.
func (g gallery) accept(h ackbits.Header, payload []byte) error {
	if h.Type != ackbits.TypeSnapshot {
		return nil
	}
	if len(payload) != 3 {
		return errGarbage // dropped whole, as if the network had lost it
	}
	baseline, ok := g[payload[1]]
	if !ok {
		return ackbits.ErrWithhold // valid, but of no use: do not acknowledge it
	}
	g[payload[0]] = baseline + int(payload[2])
	return nil // this datagram is now acknowledged and delivered
}

// A client decodes delta snapshots in Accept. The baseline of one was lost, so it
// withholds that one, and the server will not use it as a baseline.
func ExampleConfig_accept() {
	clock := new(ackbits.ManualClock)
	world := gallery{0: 0}
	server, err := ackbits.NewSession(ackbits.Config{Clock: clock, Outcomes: true})
	if err != nil {
		panic(err)
	}
	client, err := ackbits.NewSession(ackbits.Config{Clock: clock, Accept: world.accept})
	if err != nil {
		panic(err)
	}

	for _, snapshot := range [][]byte{{1, 0, 40}, {2, 1, 2}, {3, 2, 5}, {4, 1, 9}, []byte("?")} {
		datagram, seq, err := server.AppendDatagram(nil, ackbits.TypeSnapshot, snapshot)
		if err != nil {
			panic(err)
		}
		if seq == 1 {
			continue // lost on the way, and it is the baseline of the next
		}
		in, err := client.Receive(datagram)
		switch {
		case errors.Is(err, ackbits.ErrRejected):
			fmt.Printf("datagram %d: rejected, garbage: %v\n", seq, errors.Is(err, errGarbage))
		case in.Payload == nil:
			fmt.Printf("datagram %d: withheld\n", seq)
		default:
			fmt.Printf("datagram %d: the world is %d\n", seq, world[in.Payload[0]])
		}
	}

	clock.Advance(50 * time.Millisecond)
	heartbeat, _ := client.AppendDue(nil) // acknowledges what was accepted
	server.Receive(heartbeat)
	for o, ok := server.NextOutcome(); ok; o, ok = server.NextOutcome() {
		fmt.Printf("the server may build on datagram %d\n", o.Sequence)
	}
	// Output:
	// datagram 0: the world is 40
	// datagram 2: withheld
	// datagram 3: the world is 49
	// datagram 4: rejected, garbage: true
	// the server may build on datagram 0
	// the server may build on datagram 3
}
