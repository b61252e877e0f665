package ackbits_test

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/ackbits/ackbits"
)

// A player is one side of the connection. It has two buffers because what Receive
// returns is part of the first.
type player struct {
	name    string
	session *ackbits.Session
	conn    io.ReadWriter
	in, out []byte
}

// README: begin loop

// pump is one turn of the game loop. With a net.Conn, first set the read deadline to a
// millisecond from now: Read then fails once nothing more has arrived.
func (p *player) pump(event, state []byte) error {
	for n, err := p.conn.Read(p.in); err == nil; n, err = p.conn.Read(p.in) {
		incoming, _ := p.session.Receive(p.in[:n]) // empty if it was invalid or of another session
		for _, event := range incoming.Events {
			p.onEvent(event.Data) // exactly once
		}
		if incoming.Latest && incoming.Type == ackbits.TypeInput { // a Connect can set Latest, too
			p.onState(incoming.Payload) // newer than all before
		}
		p.flush() // sends acks inside the loop, so that a burst cannot overrun the ack window
	}
	if event != nil && p.session.Room() > 0 { // one too many would end the session
		p.session.Send(event) // flush sends it, and retransmits it until it is acknowledged
	}
	if datagram, _, err := p.session.AppendDatagram(p.out[:0], ackbits.TypeInput, state); err == nil {
		p.conn.Write(datagram) // once; the next one replaces it
	}
	p.flush()
	return p.session.Err() // why the session has ended, if it has
}

// flush sends what is due: events, retransmissions and heartbeats.
func (p *player) flush() {
	for datagram := range p.session.Due(p.out) {
		p.conn.Write(datagram)
	}
}

// README: end loop

func (p *player) onEvent(event []byte) { fmt.Printf("%s hears: %s\n", p.name, event) }
func (p *player) onState(state []byte) { fmt.Printf("%s sees: %s\n", p.name, state) }

// Two players at 20 turns a second. The datagram with Anna's event is lost. Ben hears it
// after the retransmission, and once. States are never retransmitted: that of the next
// turn replaces them.
func Example() {
	clock := new(ackbits.ManualClock) // leave Config.Clock nil for the system's
	clock.Set(time.Date(2026, 6, 17, 12, 0, 0, 0, time.UTC))
	toAnna, toBen := new(mailbox), new(mailbox)
	anna := newPlayer("Anna", clock, wire{toAnna, toBen})
	ben := newPlayer("Ben", clock, wire{toBen, toAnna})

	for turn := range 4 {
		fmt.Printf("%d ms\n", 50*turn)
		var event []byte
		if turn == 0 {
			event = []byte("open the door")
			toBen.lose = ackbits.TypeEvent
		}
		if err := anna.pump(event, fmt.Appendf(nil, "Anna at %d", 10+turn)); err != nil {
			fmt.Println(err)
		}
		if err := ben.pump(nil, []byte("Ben at 7")); err != nil {
			fmt.Println(err)
		}
		clock.Advance(50 * time.Millisecond)
	}
	fmt.Println("events of Anna's that Ben may not have:", anna.session.InFlight())
	// Output:
	// 0 ms
	// the network loses: Event
	// Ben sees: Anna at 10
	// 50 ms
	// Anna sees: Ben at 7
	// Ben sees: Anna at 11
	// 100 ms
	// Anna sees: Ben at 7
	// Ben hears: open the door
	// Ben sees: Anna at 12
	// 150 ms
	// Anna sees: Ben at 7
	// Ben sees: Anna at 13
	// events of Anna's that Ben may not have: 0
}

func newPlayer(name string, clock ackbits.Clock, conn io.ReadWriter) *player {
	session, err := ackbits.NewSession(ackbits.Config{
		Token:        0x5eed, // in a game a fresh random one, from the handshake
		Clock:        clock,
		PollInterval: 50 * time.Millisecond, // how often pump is called
	})
	if err != nil {
		panic(err)
	}
	return &player{
		name:    name,
		session: session,
		conn:    conn,
		in:      make([]byte, ackbits.MaxDatagramSize+1), // so that an oversized datagram is rejected, not silently truncated
		out:     make([]byte, ackbits.MaxDatagramSize),
	}
}

// A wire stands for a net.Conn: it reads from one mailbox and writes to another.
type wire struct{ from, to *mailbox }

type mailbox struct {
	datagrams [][]byte
	lose      ackbits.Type // the next datagram of this type
}

func (w wire) Read(buf []byte) (n int, err error) {
	if len(w.from.datagrams) == 0 {
		return 0, os.ErrDeadlineExceeded
	}
	n = copy(buf, w.from.datagrams[0])
	w.from.datagrams = w.from.datagrams[1:]
	return n, nil
}

func (w wire) Write(datagram []byte) (n int, err error) {
	if h, _, err := ackbits.ParseHeader(datagram); err == nil && h.Type == w.to.lose {
		fmt.Println("the network loses:", h.Type)
		w.to.lose = 0
		return len(datagram), nil
	}
	w.to.datagrams = append(w.to.datagrams, bytes.Clone(datagram))
	return len(datagram), nil
}
