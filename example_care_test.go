package ackbits_test

import (
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"time"

	"github.com/ackbits/ackbits"
)

// must is for examples, where no error is expected.
func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

// Use two buffers. Events and Payload are parts of the buffer that was passed to
// Receive; building an answer in the same buffer overwrites them.
func ExampleSession_Receive() {
	clock := new(ackbits.ManualClock)
	client := must(ackbits.NewSession(ackbits.Config{Clock: clock}))
	server := must(ackbits.NewSession(ackbits.Config{Clock: clock}))
	must(client.Send([]byte("hello")))

	inBuf := make([]byte, ackbits.MaxDatagramSize)
	outBuf := make([]byte, ackbits.MaxDatagramSize)
	datagram, _ := client.AppendDue(nil)
	n := copy(inBuf, datagram) // what reading from a socket does
	in := must(server.Receive(inBuf[:n]))
	event := in.Events[0].Data

	answer := []byte("a snapshot of the world")
	server.AppendDatagram(outBuf[:0], ackbits.TypeSnapshot, answer)
	fmt.Printf("right: %s\n", event)
	server.AppendDatagram(inBuf[:0], ackbits.TypeSnapshot, answer)
	fmt.Printf("wrong: %s\n", event)
	// Output:
	// right: hello
	// wrong: pshot
}

// Run Due after every Receive. A header acknowledges the newest datagram and the 32
// before it. If 64 are received without an answer in between, the first 31 can no
// longer be acknowledged, and the sender declares them lost.
func ExampleSession_Due() {
	clock := new(ackbits.ManualClock)
	sender := must(ackbits.NewSession(ackbits.Config{Clock: clock}))
	careful := must(ackbits.NewSession(ackbits.Config{Clock: clock}))
	careless := must(ackbits.NewSession(ackbits.Config{Clock: clock}))

	outBuf := make([]byte, ackbits.MaxDatagramSize)
	answers := 0
	for range 64 {
		datagram, _, _ := sender.AppendDatagram(nil, ackbits.TypeInput, []byte("jump"))
		must(careful.Receive(datagram))
		for range careful.Due(outBuf) { // send it
			answers++ // only when a burst requires one, so this is cheap
		}
		must(careless.Receive(datagram))
	}
	for range careless.Due(outBuf) { // too late
	}
	fmt.Printf("careful: %d unacknowledged, %d answers\n", careful.Stats().AcksOutrun, answers)
	fmt.Printf("careless: %d unacknowledged\n", careless.Stats().AcksOutrun)
	// Output:
	// careful: 0 unacknowledged, 2 answers
	// careless: 31 unacknowledged
}

// Take a fresh random token for each session. A client that was restarted counts from
// 0 again; with the old token, everything that it sends is Stale to the server.
func ExampleNewSession() {
	var random [8]byte
	rand.Read(random[:]) // never fails
	fresh := binary.LittleEndian.Uint64(random[:])

	clock := new(ackbits.ManualClock)
	cfg := ackbits.Config{Token: 0x01d, Clock: clock}
	crashed := must(ackbits.NewSession(cfg))
	server := must(ackbits.NewSession(cfg))
	for range 100 {
		datagram, _, _ := crashed.AppendDatagram(nil, ackbits.TypeInput, []byte("run"))
		must(server.Receive(datagram))
	}

	restarted := must(ackbits.NewSession(cfg))
	must(restarted.Send([]byte("I am back")))
	datagram, _ := restarted.AppendDue(nil)
	in := must(server.Receive(datagram))
	fmt.Printf("old token: %v, %d events\n", in.Arrival, len(in.Events))

	cfg.Token = fresh // both sides: the handshake agrees on it
	server, restarted = must(ackbits.NewSession(cfg)), must(ackbits.NewSession(cfg))
	must(restarted.Send([]byte("I am back")))
	datagram, _ = restarted.AppendDue(nil)
	in = must(server.Receive(datagram))
	fmt.Printf("fresh token: %v, %d events\n", in.Arrival, len(in.Events))
	// Output:
	// old token: Stale, 0 events
	// fresh token: Newest, 1 events
}

// After a pause, pass what has arrived to Receive before anything else. Timeouts are
// detected only in AppendDue and Due, and a datagram that waited in the socket keeps
// the session alive. Err detects nothing: it reports what the last call found.
func ExampleSession_AppendDue() {
	clock := new(ackbits.ManualClock)
	peer := must(ackbits.NewSession(ackbits.Config{Clock: clock}))
	right := must(ackbits.NewSession(ackbits.Config{Clock: clock}))
	wrong := must(ackbits.NewSession(ackbits.Config{Clock: clock}))

	clock.Advance(2 * time.Second)
	waiting, _ := peer.AppendDue(nil) // a heartbeat arrives
	clock.Advance(4 * time.Second)    // while a level is being loaded
	fmt.Println("after the pause:", right.Err())

	must(right.Receive(waiting))
	right.AppendDue(nil)
	fmt.Println("Receive first:", right.Err())

	wrong.AppendDue(nil)
	_, err := wrong.Receive(waiting)
	fmt.Println("AppendDue first:", err)
	// Output:
	// after the pause: <nil>
	// Receive first: <nil>
	// AppendDue first: ackbits: timeout
}

// Drain before Close: wait until InFlight is 0, because nothing is retransmitted after
// Close and a lost event would stay lost. Shutdown does both.
func ExampleSession_Close() {
	clock := new(ackbits.ManualClock)
	server := must(ackbits.NewSession(ackbits.Config{Clock: clock}))
	client := must(ackbits.NewSession(ackbits.Config{Clock: clock}))
	buf := make([]byte, ackbits.MaxDatagramSize)
	must(server.Send([]byte("final score 3:2")))

	lose, closed := true, false
	for server.Err() == nil {
		if !closed && server.InFlight() == 0 {
			server.Close()
			closed = true
		}
		for datagram := range server.Due(buf) { // after Close, three Disconnects
			if lose {
				lose = false
				continue
			}
			in, _ := client.Receive(datagram)
			for _, event := range in.Events {
				fmt.Printf("the client hears: %s\n", event.Data)
			}
		}
		for datagram := range client.Due(make([]byte, ackbits.MaxDatagramSize)) {
			server.Receive(datagram) // with the acknowledgement
		}
		clock.Advance(50 * time.Millisecond)
	}
	fmt.Println("server:", server.Err())
	fmt.Println("client:", client.Err())
	// Output:
	// the client hears: final score 3:2
	// server: ackbits: session closed
	// client: ackbits: peer left
}

// Slow down by Room. Sending an event without room ends the session, because a peer that
// acknowledges nothing must not fill the memory. A caller with much to send waits until
// there is room again. Config.Backlog makes more room.
func ExampleSession_Room() {
	clock := new(ackbits.ManualClock)
	server := must(ackbits.NewSession(ackbits.Config{Clock: clock}))
	client := must(ackbits.NewSession(ackbits.Config{Clock: clock}))
	outBuf := make([]byte, ackbits.MaxDatagramSize)
	answerBuf := make([]byte, ackbits.MaxDatagramSize)

	received := 0
	for tile := 0; tile < 600 || server.InFlight() > 0; { // a map, in 600 events
		batch := 0
		for ; tile < 600 && server.Room() > 0; tile++ {
			must(server.Send([]byte{byte(tile), byte(tile >> 8)}))
			batch++
		}
		for datagram := range server.Due(outBuf) {
			in := must(client.Receive(datagram))
			received += len(in.Events)
		}
		fmt.Printf("%d more, %d received\n", batch, received)
		clock.Advance(50 * time.Millisecond)
		for datagram := range client.Due(answerBuf) {
			must(server.Receive(datagram))
		}
	}
	// Output:
	// 256 more, 256 received
	// 256 more, 512 received
	// 88 more, 600 received
}

// What to turn on when both peers are this library. With Bundle, datagrams that are sent
// anyway carry events, here a snapshot. With Adaptive, retransmissions and proactive
// copies follow what the link needs.
func ExampleConfig_adaptive() {
	clock := new(ackbits.ManualClock)
	cfg := ackbits.Config{
		Clock:     clock,
		Adaptive:  true,
		Bundle:    true,
		EventRate: 8000, // bytes a second for all copies but the first ones
	}
	server := must(ackbits.NewSession(cfg))
	client := must(ackbits.NewSession(cfg))
	outBuf := make([]byte, ackbits.MaxDatagramSize)

	must(server.Send([]byte("a goal for blue")))
	datagram, _, err := server.AppendDatagram(nil, ackbits.TypeSnapshot, []byte("ball at 3,4"))
	if err != nil {
		panic(err)
	}
	for range server.Due(outBuf) {
		fmt.Println("a datagram of its own for the event") // not with Bundle
	}

	in := must(client.Receive(datagram)) // takes the bundle apart
	fmt.Printf("%v: %s\n", in.Type, in.Payload)
	fmt.Printf("event %d: %s\n", in.Events[0].ID, in.Events[0].Data)
	// Output:
	// Snapshot: ball at 3,4
	// event 0: a goal for blue
}
