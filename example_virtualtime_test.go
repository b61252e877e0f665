package ackbits_test

import (
	"fmt"
	"time"

	"github.com/ackbits/ackbits"
)

// Your own tests need not wait. With a ManualClock, five seconds of silence take
// microseconds: Deadline says when something is due next, so jump there. As long as
// nothing arrives, nothing happens in between.
func Example_virtualTime() {
	clock := new(ackbits.ManualClock)
	start := time.Date(2026, 6, 17, 12, 0, 0, 0, time.UTC)
	clock.Set(start)
	session, err := ackbits.NewSession(ackbits.Config{Clock: clock})
	if err != nil {
		panic(err)
	}
	if _, err := session.Send([]byte("is anybody there?")); err != nil {
		panic(err)
	}

	buf := make([]byte, ackbits.MaxDatagramSize)
	datagrams := 0
	for next, ok := session.Deadline(); ok; next, ok = session.Deadline() {
		clock.Set(next)
		for datagram := range session.Due(buf) {
			if datagrams++; datagrams <= 4 {
				h, _, _ := ackbits.ParseHeader(datagram)
				fmt.Printf("%v: %v\n", clock.Now().Sub(start), h.Type)
			}
		}
	}
	fmt.Printf("… and %d more\n", datagrams-4)
	fmt.Printf("%v: %v\n", clock.Now().Sub(start), session.Err())
	// Output:
	// 0s: Event
	// 50ms: Heartbeat
	// 100ms: Event
	// 150ms: Heartbeat
	// … and 96 more
	// 5s: ackbits: timeout
}
