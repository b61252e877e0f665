package ackbits_test

import (
	"fmt"
	"time"

	"github.com/ackbits/ackbits"
)

// A server sends only what has changed since a baseline: the newest snapshot that the
// client is known to have. Outcomes tell which one that is. A lost snapshot never
// becomes a baseline, and is not retransmitted either.
func ExampleSession_NextOutcome_baseline() {
	clock := new(ackbits.ManualClock)
	server, err := ackbits.NewSession(ackbits.Config{Clock: clock, Outcomes: true})
	if err != nil {
		panic(err)
	}
	client, err := ackbits.NewSession(ackbits.Config{Clock: clock})
	if err != nil {
		panic(err)
	}

	sent := map[uint16]int{} // the world in each snapshot that has no outcome yet
	baseline, baselineSeq, hasBaseline := 0, uint16(0), false
	for tick, world := range []int{100, 103, 104, 110, 115} {
		for o, ok := server.NextOutcome(); ok; o, ok = server.NextOutcome() {
			// Outcomes may come out of order, and sequences wrap around.
			newer := !hasBaseline || int16(o.Sequence-baselineSeq) > 0
			if o.Type == ackbits.TypeSnapshot && o.Delivered && newer {
				baseline, baselineSeq, hasBaseline = sent[o.Sequence], o.Sequence, true
			}
			delete(sent, o.Sequence)
		}

		snapshot := fmt.Sprintf("world %d", world)
		if hasBaseline { // say which, so that the client knows what to add to
			snapshot = fmt.Sprintf("snapshot %d %+d", baselineSeq, world-baseline)
		}
		datagram, seq, err := server.AppendDatagram(nil, ackbits.TypeSnapshot, []byte(snapshot))
		if err != nil {
			panic(err)
		}
		sent[seq] = world
		clock.Advance(50 * time.Millisecond)
		if tick == 2 {
			fmt.Printf("snapshot %d: %s (lost)\n", seq, snapshot)
			continue
		}
		fmt.Printf("snapshot %d: %s\n", seq, snapshot)
		client.Receive(datagram)
		if answer, ok := client.AppendDue(nil); ok { // its acknowledgement
			server.Receive(answer)
		}
	}
	// Output:
	// snapshot 0: world 100
	// snapshot 1: snapshot 0 +3
	// snapshot 2: snapshot 1 +1 (lost)
	// snapshot 3: snapshot 1 +7
	// snapshot 4: snapshot 3 +5
}

// An event is retransmitted unchanged. Where only the newest content matters, send a
// datagram instead, and when it is lost, send another with the newest content. That
// costs no more, and what is sent is never out of date.
func ExampleSession_NextOutcome_resend() {
	clock := new(ackbits.ManualClock)
	player, err := ackbits.NewSession(ackbits.Config{
		Clock:     clock,
		Outcomes:  true,
		LossDelay: 200 * time.Millisecond, // outcomes soon; reordering may then look like loss
	})
	if err != nil {
		panic(err)
	}
	server, err := ackbits.NewSession(ackbits.Config{Clock: clock})
	if err != nil {
		panic(err)
	}

	const typeInventory = 16 // 16 to 255 are the application's own
	gold := 10
	sendInventory := func() (datagram []byte) {
		datagram, seq, err := player.AppendDatagram(nil, typeInventory, fmt.Appendf(nil, "%d gold", gold))
		if err != nil {
			panic(err)
		}
		fmt.Printf("datagram %d: %d gold\n", seq, gold)
		return datagram
	}

	sendInventory() // the network loses it
	gold = 25       // the server knows neither value yet
	clock.Advance(200 * time.Millisecond)
	for o, ok := player.NextOutcome(); ok; o, ok = player.NextOutcome() {
		if o.Type == typeInventory && !o.Delivered {
			fmt.Printf("datagram %d is lost\n", o.Sequence)
			server.Receive(sendInventory())
		}
	}
	heartbeat, _ := server.AppendDue(nil)
	player.Receive(heartbeat)
	for o, ok := player.NextOutcome(); ok; o, ok = player.NextOutcome() {
		fmt.Printf("datagram %d, delivered: %v\n", o.Sequence, o.Delivered)
	}
	// Output:
	// datagram 0: 10 gold
	// datagram 0 is lost
	// datagram 1: 25 gold
	// datagram 1, delivered: true
}
