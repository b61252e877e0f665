package main

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"encoding/binary"
	"errors"
	"fmt"
	"log"
	"math/rand/v2"
	"net"
	"time"

	"github.com/ackbits/ackbits"
)

const (
	token = 0x1122334455667788
	tick  = 15 * time.Millisecond
	poll  = time.Millisecond       // of the loop, which moves the link too
	good  = 500 * time.Millisecond // how long the link is a good one before this side leaves
)

type options struct {
	sealed, wide, bundle, adaptive, join bool
	events, port                         int
	seed                                 uint64
	loss, double                         float64
	delay, jitter                        time.Duration
}

// A peer is this library's side, with the link in front of it.
type peer struct {
	conn     *net.UDPConn
	port     port
	session  *ackbits.Session // the port's, once it has begun
	in, out  link
	inbox    chan packet
	events   int
	sent     int    // events
	received int    // events; in order, so it is also the next one to come
	counter  uint32 // of our state
	latest   uint32 // of theirs
	states   int    // of theirs
}

func newPeer(o options, conn *net.UDPConn) (*peer, error) {
	cfg := ackbits.Config{Token: token, Wide: o.wide, Ordered: true, Bundle: o.bundle, Adaptive: o.adaptive}
	if o.sealed && !o.join {
		var err error
		if cfg.Seal, err = testKey(0x00); err != nil {
			return nil, err
		}
		if cfg.Open, err = testKey(0x10); err != nil {
			return nil, err
		}
	}
	direction := func(stream uint64) link {
		return link{rng: rand.New(rand.NewPCG(o.seed, stream)), loss: o.loss, double: o.double, delay: o.delay, jitter: o.jitter}
	}
	p := &peer{conn: conn, port: &known{cfg: cfg}, in: direction(1), out: direction(2), inbox: make(chan packet, 1024), events: o.events}
	if o.join {
		var err error
		if p.port, err = newOpen(cfg); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// testKey returns AES-128-GCM with the key first, first + 1, …
func testKey(first byte) (cipher.AEAD, error) {
	key := make([]byte, 16)
	for i := range key {
		key[i] = first + byte(i)
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCM(block)
}

// play runs the session to its end.
func (p *peer) play(deadline time.Time) error {
	go p.read()
	if err := p.begin(deadline); err != nil {
		return err
	}
	began := time.Now()
	next := began      // tick
	var done time.Time // when everything had arrived, both ways
	for now := began; p.session.Err() == nil; now = time.Now() {
		if now.After(deadline) {
			return fmt.Errorf("not done in time: %s", p)
		}
		if err := p.takeIn(now); err != nil {
			return err
		}
		if !now.Before(next) {
			next = now.Add(tick)
			if err := p.tick(now); err != nil {
				return err
			}
		}
		p.flush(now)
		switch all := p.received == p.events && p.sent == p.events && p.session.InFlight() == 0; {
		case all && done.IsZero():
			done = now
			p.in.mend()
			p.out.mend()
		case all && now.Sub(done) >= good:
			p.session.Close()
			p.flush(now)
		}
		p.pass(now)
		p.wait(poll)
	}
	p.drain()
	if err := p.session.Err(); !errors.Is(err, ackbits.ErrClosed) {
		return fmt.Errorf("%w: %s", err, p)
	}
	if p.states == 0 {
		return errors.New("no Input came")
	}
	if err := p.port.complete(); err != nil {
		return err
	}
	stats := p.session.Stats()
	log.Printf("done in %v: %s; %d of %d datagrams of this side lost", done.Sub(began).Round(time.Millisecond), p, stats.Lost, stats.DatagramsSent)
	return nil
}

// begin waits until the session has begun.
func (p *peer) begin(deadline time.Time) error {
	for p.session == nil {
		now := time.Now()
		if now.After(deadline) {
			return errors.New("nobody came")
		}
		if err := p.takeIn(now); err != nil {
			return err
		}
		p.flush(now)
		p.pass(now)
		p.wait(poll)
	}
	return nil
}

// read passes on what the socket receives, until it is closed.
func (p *peer) read() {
	buf := make([]byte, 2048)
	for {
		n, from, err := p.conn.ReadFromUDPAddrPort(buf)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err == nil { // else the other side's port is closed, which the session will find
			p.inbox <- packet{from, bytes.Clone(buf[:n])}
		}
	}
}

// wait puts what comes within d on the link.
func (p *peer) wait(d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	for {
		select {
		case a := <-p.inbox:
			p.in.put(a.addr, a.datagram, time.Now())
		case <-timer.C:
			return
		}
	}
}

// takeIn hands the port what has passed the link, and checks what it brings.
func (p *peer) takeIn(now time.Time) error {
	for p.session == nil || p.session.Err() == nil {
		arrived, ok := p.in.take(now)
		if !ok {
			break
		}
		in, err := p.port.receive(arrived)
		if err != nil && !errors.Is(err, ackbits.ErrReplayed) {
			return fmt.Errorf("a datagram of %d bytes was refused: %w", len(arrived.datagram), err)
		}
		for _, e := range in.Events {
			if want := event(p.received); p.received == p.events || !bytes.Equal(e.Data, want) {
				return fmt.Errorf("event %d is %x", p.received, e.Data)
			}
			p.received++
		}
		if in.Latest {
			if in.Type != ackbits.TypeInput || len(in.Payload) < 4 {
				return fmt.Errorf("a datagram of type %v with %d bytes", in.Type, len(in.Payload))
			}
			counter := binary.LittleEndian.Uint32(in.Payload)
			if p.states > 0 && counter <= p.latest {
				return fmt.Errorf("state %d came as the latest after %d", counter, p.latest)
			}
			p.latest = counter
			p.states++
		}
		p.flush(now)
	}
	return nil
}

// tick sends the events for which there is room, and the state.
func (p *peer) tick(now time.Time) error {
	for p.sent < p.events && p.session.Room() > 0 {
		if _, err := p.session.Send(event(p.sent)); err != nil {
			return err
		}
		p.sent++
	}
	p.counter++
	state := binary.LittleEndian.AppendUint32(nil, p.counter)
	state = append(state, make([]byte, 60)...)
	datagram, _, err := p.session.AppendDatagram(nil, ackbits.TypeSnapshot, state)
	if err == nil {
		p.out.put(p.port.addr(), datagram, now)
	}
	return err
}

// event returns the bytes of event i.
func event(i int) []byte {
	data := binary.LittleEndian.AppendUint32(nil, uint32(i))
	return append(data, bytes.Repeat([]byte{byte(i)}, i%64)...)
}

// flush puts what is due on the link.
func (p *peer) flush(now time.Time) {
	for to, datagram := range p.port.due() {
		p.out.put(to, datagram, now)
	}
	p.session = p.port.session()
}

// pass writes what has passed the link. What the socket refuses is lost.
func (p *peer) pass(now time.Time) {
	for {
		leaves, ok := p.out.take(now)
		if !ok {
			return
		}
		_, _ = p.conn.WriteToUDPAddrPort(leaves.datagram, leaves.addr)
	}
}

// drain lets the last datagrams pass.
func (p *peer) drain() {
	for len(p.out.held) > 0 {
		p.pass(time.Now())
		p.wait(poll)
	}
}

func (p *peer) String() string {
	return fmt.Sprintf("%d of %d events received, %d sent, %d in flight, %d datagrams of state received", p.received, p.events, p.sent, p.session.InFlight(), p.states)
}
