// Map is the eighth step of docs/guide.md: a map of 300 KiB is sent beside the game, and
// the game does not notice.
//
//	go run ./examples/guide/08-map
package main

import (
	"bytes"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/ackbits/ackbits"
	"github.com/ackbits/ackbits/examples/guide/sim"
	"github.com/ackbits/ackbits/simnet"
	"github.com/ackbits/ackbits/transfer"
)

const fileType ackbits.Type = 200 // of the transfer's datagrams: from 16 to 255, the same at both ends

// README: begin guide-map

// end is a session with transfers beside it.
type end struct {
	*sim.Peer
	files *transfer.Transfers
	buf   []byte
}

func newEnd(clock ackbits.Clock, on func(ackbits.Incoming), accept func(transfer.Offer) (transfer.Sink, error)) *end {
	e := &end{buf: make([]byte, ackbits.MaxDatagramSize)}
	e.Peer = sim.NewPeer(ackbits.Config{
		Clock: clock, Outcomes: true,
		Accept: func(h ackbits.Header, payload []byte) error {
			if h.Type == fileType {
				return e.files.Receive(payload) // an error: could not be stored, so not acknowledged
			}
			return nil // the game's own
		},
	}, on)
	var err error
	if e.files, err = transfer.New(e.Session, transfer.Config{Type: fileType, Clock: clock, Accept: accept}); err != nil {
		log.Fatal(err)
	}
	return e
}

// Due is the session's, then the transfer's: what the game leaves of the link.
func (e *end) Due(send func(datagram []byte)) {
	for o, ok := e.NextOutcome(); ok; o, ok = e.NextOutcome() {
		e.files.Outcome(o)
	}
	e.Peer.Due(send)
	for datagram := range e.files.Due(e.buf) {
		send(datagram)
	}
}

// Deadline is the earlier of the two.
func (e *end) Deadline() (time.Time, bool) {
	at, ok := e.Peer.Deadline()
	if t, some := e.files.Deadline(); some && (!ok || t.Before(at)) {
		return t, true
	}
	return at, ok
}

// README: end guide-map

// memory is where a file goes here; an *os.File does as well.
type memory []byte

func (m memory) ReadAt(p []byte, off int64) (int, error)  { return bytes.NewReader(m).ReadAt(p, off) }
func (m memory) WriteAt(p []byte, off int64) (int, error) { return copy(m[off:], p), nil }

// README: begin guide-offer

var stored memory

// accept is the client's word on a file that is offered: what the offer says is the
// peer's, so its size is looked at before any memory is taken.
func accept(o transfer.Offer) (transfer.Sink, error) {
	if o.Size > 1<<20 {
		return nil, errors.New("too large")
	}
	stored = make(memory, o.Size)
	return stored, nil
}

// README: end guide-offer

func main() {
	clock := new(ackbits.ManualClock)
	clock.Set(time.Unix(0, 0))
	sent, worst := map[byte]time.Time{}, time.Duration(0)
	client := newEnd(clock, func(incoming ackbits.Incoming) {
		if incoming.Latest && incoming.Type == ackbits.TypeSnapshot {
			worst = max(worst, clock.Now().Sub(sent[incoming.Payload[0]]))
		}
	}, accept)
	server := newEnd(clock, func(ackbits.Incoming) {}, nil)
	link := simnet.Config{Delay: 30 * time.Millisecond, Rate: 250_000, Queue: 32 << 10, Loss: 0.01} // 2 Mbit/s
	pair := simnet.NewPair(1, clock, server, client, link, link)

	buf, snapshot := make([]byte, ackbits.MaxDatagramSize), make([]byte, 100)
	pair.Every(20, time.Second, func() { // the game
		snapshot[0]++
		sent[snapshot[0]] = clock.Now()
		if datagram, _, err := server.AppendDatagram(buf[:0], ackbits.TypeSnapshot, snapshot); err == nil {
			pair.Send(simnet.AToB, datagram)
		}
	})
	pair.Run(time.Second)
	fmt.Println("a state is at most", worst.Round(time.Millisecond), "old alone")

	world, began := bytes.Repeat([]byte("wall wall door "), 20_480), pair.Now()
	out, err := server.files.Send([]byte("dust2"), bytes.NewReader(world), int64(len(world)))
	if err != nil {
		log.Fatal(err)
	}
	pair.RunUntil(func() bool { return out.Err() != nil }, time.Minute) // io.EOF: stored, and the digest is right
	fmt.Printf("%s, %d KiB, took %v: %v\n", out.Offer().Name, len(world)>>10, (pair.Now() - began).Round(100*time.Millisecond), out.Err())
	fmt.Println("a state was at most", worst.Round(time.Millisecond), "old meanwhile")
	fmt.Println("the map is the same:", bytes.Equal(stored, world))
}
