package ackbits_test

import (
	"fmt"
	"time"

	"github.com/ackbits/ackbits"
)

// Three lines of a chat. The first copy of the second line is lost. The third arrives
// too early, is discarded, and is retransmitted after the second.
func ExampleOrderedLane() {
	clock := &ackbits.ManualClock{}
	clock.Set(time.Date(2026, 6, 17, 12, 0, 0, 0, time.UTC))
	alice, err := ackbits.NewOrderedLane(ackbits.LaneConfig{Clock: clock})
	if err != nil {
		panic(err)
	}
	bob, err := ackbits.NewOrderedLane(ackbits.LaneConfig{Clock: clock})
	if err != nil {
		panic(err)
	}

	for _, line := range []string{"hello", "anyone there?", "bye"} {
		if _, err := alice.Send([]byte(line), ackbits.Droppable); err != nil {
			fmt.Println(err) // full: the line will not be sent
		}
	}
	for packet := 1; alice.InFlight() > 0; {
		for ev, ok := alice.NextDue(1000); ok; ev, ok = alice.NextDue(1000) {
			if packet++; packet == 3 {
				fmt.Printf("event %d is lost\n", ev.ID)
				continue
			}
			deliver, ack := bob.Receive(ev.ID)
			if deliver {
				fmt.Printf("event %d: %s\n", ev.ID, ev.Data)
			} else {
				fmt.Printf("event %d is early or old, still at %d\n", ev.ID, ack)
			}
			if err := alice.ReceiveAck(ack); err != nil {
				fmt.Println(err)
			}
		}
		if alice.Err() != nil {
			return
		}
		if next, ok := alice.Deadline(); ok {
			fmt.Println("waiting for", next.Sub(clock.Now()))
			clock.Set(next)
		}
	}
	// Output:
	// event 1: hello
	// event 2 is lost
	// event 3 is early or old, still at 1
	// waiting for 250ms
	// event 2: anyone there?
	// event 3: bye
}
