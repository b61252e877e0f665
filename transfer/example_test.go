package transfer_test

import (
	"bytes"
	"fmt"
	"io"
	"time"

	"github.com/ackbits/ackbits"
	"github.com/ackbits/ackbits/simnet"
	"github.com/ackbits/ackbits/transfer"
)

const fileType ackbits.Type = 200

// end is a session with transfers beside it.
type end struct {
	session *ackbits.Session
	files   *transfer.Transfers
	buf     []byte
}

// newEnd shows how a session and its transfers are made.
func newEnd(clock ackbits.Clock, accept func(transfer.Offer) (transfer.Sink, error)) *end {
	e := &end{buf: make([]byte, ackbits.MaxDatagramSize)}
	e.session, _ = ackbits.NewSession(ackbits.Config{
		Clock: clock, Outcomes: true,
		Accept: func(h ackbits.Header, payload []byte) error {
			if h.Type == fileType {
				return e.files.Receive(payload)
			}
			return nil // the game's own
		},
	})
	e.files, _ = transfer.New(e.session, transfer.Config{Type: fileType, Clock: clock, Accept: accept})
	return e
}

// Receive, Due and Deadline are the loop; simnet calls them, as a socket's loop would.
func (e *end) Receive(datagram []byte) { _, _ = e.session.Receive(datagram) }

func (e *end) Due(send func([]byte)) {
	// README: begin map
	for o, ok := e.session.NextOutcome(); ok; o, ok = e.session.NextOutcome() {
		e.files.Outcome(o)
	}
	for datagram := range e.session.Due(e.buf) {
		send(datagram)
	}
	for datagram := range e.files.Due(e.buf) {
		send(datagram) // as much as the game leaves of the link
	}
	// README: end map
}

func (e *end) Deadline() (time.Time, bool) {
	at, ok := e.session.Deadline()
	if t, some := e.files.Deadline(); some && (!ok || t.Before(at)) {
		return t, true
	}
	return at, ok
}

// sink keeps a file in memory; an *os.File is a Sink, too.
type sink struct{ data []byte }

func (s *sink) ReadAt(p []byte, off int64) (int, error) {
	return bytes.NewReader(s.data).ReadAt(p, off)
}

func (s *sink) WriteAt(p []byte, off int64) (int, error) { return copy(s.data[off:], p), nil }

// How do I send a map?
func Example() {
	clock := new(ackbits.ManualClock)
	var stored *sink
	client := newEnd(clock, func(o transfer.Offer) (transfer.Sink, error) {
		if o.Size > 1<<20 {
			return nil, fmt.Errorf("%s is too large", o.Name)
		}
		stored = &sink{make([]byte, o.Size)}
		return stored, nil
	})
	server := newEnd(clock, nil)
	link := simnet.Config{Delay: 30 * time.Millisecond, Rate: 1_250_000, Loss: 0.01}
	network := simnet.NewPair(1, clock, server, client, link, link)

	world := bytes.Repeat([]byte("wall wall door "), 20_000)
	// README: begin send
	out, err := server.files.Send([]byte("dust2"), bytes.NewReader(world), int64(len(world)))
	// README: end send
	if err != nil {
		fmt.Println(err)
	}
	network.Every(1, 200*time.Millisecond, func() {
		for in := range client.files.Incoming() {
			if done, size := in.Progress(); in.Err() == nil {
				fmt.Printf("%s: %d %%\n", in.Offer().Name, done*100/size)
			}
		}
	})
	network.RunUntil(func() bool { return out.Err() != nil }, time.Minute)
	fmt.Println(out.Err() == io.EOF, bytes.Equal(stored.data, world))
	// Output:
	// dust2: 18 %
	// dust2: 93 %
	// true true
}
