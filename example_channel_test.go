package ackbits_test

import (
	"encoding/binary"
	"fmt"
	"time"

	"github.com/ackbits/ackbits"
)

// The header of a game that already has a format of its own: type, sequence, ack and ack
// bits. Its socket layer knows the sender, so there is no token.
const ownHeader = 1 + 2 + 2 + 4

func appendOwnHeader(dst []byte, h ackbits.Header) []byte {
	dst = append(dst, byte(h.Type))
	dst = binary.BigEndian.AppendUint16(dst, h.Sequence)
	dst = binary.BigEndian.AppendUint16(dst, h.Ack)
	return binary.BigEndian.AppendUint32(dst, uint32(h.AckBits))
}

func parseOwnHeader(datagram []byte) (h ackbits.Header, payload []byte, ok bool) {
	if len(datagram) < ownHeader {
		return h, nil, false
	}
	h.Type = ackbits.Type(datagram[0])
	h.Sequence = binary.BigEndian.Uint16(datagram[1:])
	h.Ack = binary.BigEndian.Uint16(datagram[3:])
	h.AckBits = uint64(binary.BigEndian.Uint32(datagram[5:]))
	return h, datagram[ownHeader:], true
}

// ownDue returns the datagrams to send now: events, and after a burst one that
// acknowledges it. Heartbeats and timeouts are the game's own.
func ownDue(c *ackbits.ReliableChannel) (datagrams [][]byte) {
	const room = 500 - ownHeader // this game's datagrams are at most 500 bytes
	for c.EventsDue(room) {
		h, ok := c.NextHeader(ackbits.TypeEvent)
		if !ok {
			break // the channel has ended
		}
		datagram := appendOwnHeader(nil, h)
		datagrams = append(datagrams, c.AppendDueEvents(datagram, h.Sequence, room))
	}
	if c.AckDue() {
		if h, ok := c.NextHeader(ackbits.TypeHeartbeat); ok {
			datagrams = append(datagrams, appendOwnHeader(nil, h))
		}
	}
	return datagrams
}

// Reliable events under a header of nine bytes. The first datagram is lost. After the
// retransmission comes a burst, whose acknowledgement must not wait.
func ExampleReliableChannel() {
	clock := new(ackbits.ManualClock)
	clock.Set(time.Date(2026, 6, 17, 12, 0, 0, 0, time.UTC))
	cfg := ackbits.Config{
		Clock:    clock,
		MaxEvent: 400, // or an event could be sent that never fits into 500 bytes
	}
	alice, err := ackbits.NewReliableChannel(cfg)
	if err != nil {
		panic(err)
	}
	bob, err := ackbits.NewReliableChannel(cfg)
	if err != nil {
		panic(err)
	}
	deliver := func(to *ackbits.ReliableChannel, datagram []byte) {
		if h, payload, ok := parseOwnHeader(datagram); ok {
			in, _ := to.Receive(h, payload)
			for _, event := range in.Events {
				fmt.Printf("event %d: %s\n", event.ID, event.Data)
			}
		}
	}

	alice.Send([]byte("goal!"))
	fmt.Println("lost datagrams:", len(ownDue(alice)))
	next, _ := alice.Deadline()
	fmt.Println("again in", next.Sub(clock.Now()))
	clock.Set(next)
	for _, datagram := range ownDue(alice) {
		deliver(bob, datagram)
	}
	for range 31 { // many inputs at once
		h, _ := alice.NextHeader(ackbits.TypeInput)
		deliver(bob, append(appendOwnHeader(nil, h), "run"...))
	}
	fmt.Println("acknowledge now:", bob.AckDue())
	for _, datagram := range ownDue(bob) {
		deliver(alice, datagram)
	}
	fmt.Println("undelivered:", alice.InFlight())
	// Output:
	// lost datagrams: 1
	// again in 100ms
	// event 0: goal!
	// acknowledge now: true
	// undelivered: 0
}
