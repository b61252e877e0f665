package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pion/sctp"
	"github.com/quic-go/quic-go"
	"github.com/xtaci/kcp-go/v5"

	"github.com/ackbits/ackbits"
	"github.com/ackbits/ackbits/simnet"
	"github.com/ackbits/ackbits/transfer"
)

// A file beside the game: how long it takes, and how old the game's states and events
// get meanwhile, by package transfer and by what one would take instead. All carry the
// same: states of 100 bytes, at 60 Hz from the client and 20 Hz from the server, 20
// events of 64 bytes a second each way, and one file from the server to the client.

// carrier is a way to do that.
type carrier struct {
	name, about string
	open        func(g *fileGame) (fileConn, error)
}

// fileConn is a connection of one. The game calls it from one goroutine; 0 is the client.
type fileConn interface {
	state(from int, payload []byte) error // once
	event(from int, payload []byte) error // reliably
	file(content []byte) error            // begins to send it; the game's whole learns of its end
	tick()
	close()
}

var carriers = []carrier{
	{"ackbits transfer", "this library, Adaptive and Bundle, the file by package transfer", openTransfer},
	{"ackbits events", "this library, Adaptive and Bundle, the file as events of 1 KiB", openEvents},
	{"quic", "quic-go, one connection: states as datagrams, events on one stream, the file on another", openFileQUIC},
	{"kcp", "kcp-go's core, a conversation for events and one for the file, both NoDelay(1, 10, 2, 1); states bare", func(g *fileGame) (fileConn, error) { return openFileKCP(g, 1) }},
	{"kcp, with its window", "the same, but the file NoDelay(0, 10, 2, 0): with KCP's congestion control", func(g *fileGame) (fileConn, error) { return openFileKCP(g, 0) }},
	{"sctp", "pion/sctp, one association: states unordered and never repeated, events and the file on streams of their own", openFileSCTP},
}

// fileLinks are what the file goes over.
var fileLinks = []struct {
	name string
	link simnet.Config
	size int
}{
	{"1 Mbit/s, 60 ms, queue of 1 s; 512 KiB", simnet.Config{Delay: 30 * time.Millisecond, Rate: 125_000, Queue: 125_000}, 512 << 10},
	{"2 Mbit/s, 60 ms, 32 KiB, 1 % lost; 300 KiB", simnet.Config{Delay: 30 * time.Millisecond, Rate: 250_000, Queue: 32 << 10, Loss: 0.01}, 300 << 10},
	{"2 Mbit/s, 60 ms, 32 KiB, 1 % lost; 2 MiB", simnet.Config{Delay: 30 * time.Millisecond, Rate: 250_000, Queue: 32 << 10, Loss: 0.01}, 2 << 20},
	{"10 Mbit/s, 60 ms, 128 KiB; 8 MiB", simnet.Config{Delay: 30 * time.Millisecond, Rate: 1_250_000, Queue: 128 << 10}, 8 << 20},
	{"100 Mbit/s, 60 ms, 256 KiB; 300 KiB", simnet.Config{Delay: 30 * time.Millisecond, Rate: 12_500_000, Queue: 256 << 10}, 300 << 10},
}

// fileGame is one game of a carrier.
type fileGame struct {
	mu       sync.Mutex
	start    time.Time
	links    [2]*peerLink
	began    time.Time
	whole    time.Time // when the client had the file; zero before
	states   []time.Duration
	events   []time.Duration
	received []byte
	content  []byte
}

// fileResult is what it came to, all seeds together.
type fileResult struct {
	took           []time.Duration
	states, events []time.Duration // how old they were at the client, while the file was in flight
	err            error
}

// stamp returns a payload that carries the time.
func (g *fileGame) stamp(size int) []byte {
	return binary.LittleEndian.AppendUint64(make([]byte, 0, size), uint64(time.Since(g.start)))[:size]
}

// arrived counts a state or an event at an end. What the client receives counts, of the
// time when the file was on its way.
func (g *fileGame) arrived(at int, payload []byte, ages *[]time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	sent := time.Duration(binary.LittleEndian.Uint64(payload))
	if at == 0 && !g.began.IsZero() && sent >= g.began.Sub(g.start) && (g.whole.IsZero() || sent < g.whole.Sub(g.start)) {
		*ages = append(*ages, time.Since(g.start)-sent)
	}
}

func (g *fileGame) state(at int, payload []byte) { g.arrived(at, payload, &g.states) }
func (g *fileGame) event(at int, payload []byte) { g.arrived(at, payload, &g.events) }

// part counts the next bytes of the file.
func (g *fileGame) part(b []byte) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.received = append(g.received, b...); len(g.received) == len(g.content) {
		g.whole = time.Now()
	}
}

// read reads the file from a stream.
func (g *fileGame) read(r io.Reader) {
	buf := make([]byte, 16<<10)
	for {
		n, err := r.Read(buf)
		if g.part(buf[:n]); err != nil {
			return
		}
	}
}

// play plays the game with one carrier. The connection is made over a perfect link; the
// file begins two seconds later, and then all plays on until it is whole.
func (c *carrier) play(t *testing.T, seed uint64, link simnet.Config, size int, into *fileResult) {
	link.Overhead = simnet.UDPOverIPv4
	synctest.Test(t, func(*testing.T) {
		g := &fileGame{start: time.Now(), content: make([]byte, size)}
		for i := range g.content {
			g.content[i] = byte(i * 7 >> (i % 5))
		}
		for i := range g.links {
			g.links[i] = newPeerLink(i+1, simnet.NewLink(seed*2+uint64(i), simnet.Config{Delay: link.Delay}))
		}
		g.links[0].other, g.links[1].other = g.links[1], g.links[0]
		conn, err := c.open(g)
		if err == nil {
			for _, l := range g.links {
				l.become(link)
			}
			err = g.run(conn, seed)
			conn.close()
		}
		into.err = errors.Join(into.err, err)
		into.states, into.events = append(into.states, g.states...), append(into.events, g.events...)
		if !g.whole.IsZero() {
			into.took = append(into.took, g.whole.Sub(g.began))
		}
		time.Sleep(2 * time.Minute) // for goroutines that take their time to end
		synctest.Wait()
	})
}

const (
	fileBegins = 2 * time.Second
	fileLimit  = 2 * time.Minute
)

func (g *fileGame) run(conn fileConn, seed uint64) error {
	begins := fileBegins + time.Duration(seed*997%1000)*100*time.Microsecond // at any phase of the ticks
	g.start = time.Now()
	ended := time.Duration(0)
	for tick := range 60 * int(fileLimit/time.Second) {
		at := time.Duration(tick) * time.Second / 60
		if g.began.IsZero() && at > begins {
			time.Sleep(time.Until(g.start.Add(begins)))
			g.mu.Lock()
			g.began = time.Now()
			g.mu.Unlock()
			if err := conn.file(g.content); err != nil {
				return err
			}
		}
		time.Sleep(time.Until(g.start.Add(at)))
		synctest.Wait()
		g.mu.Lock()
		whole := !g.whole.IsZero()
		g.mu.Unlock()
		if whole && ended == 0 {
			ended = at
		}
		if ended > 0 && at > ended+2*time.Second { // what was in flight has arrived
			if !bytes.Equal(g.received, g.content) {
				return errors.New("the file differs")
			}
			return nil
		}
		for from := range g.links {
			if from == 0 || tick%3 == 0 {
				if err := conn.state(from, g.stamp(100)); err != nil {
					return err
				}
			}
			if tick%3 == 0 {
				if err := conn.event(from, g.stamp(64)); err != nil {
					return err
				}
			}
		}
		conn.tick()
	}
	return fmt.Errorf("not done within %v", fileLimit)
}

// This library.

type ackbitsEnd struct {
	mu      *sync.Mutex // of both ends
	session *ackbits.Session
	files   *transfer.Transfers
	link    *peerLink
	timer   *time.Timer
	buf     []byte
	closed  bool
}

type ackbitsConn struct {
	mu       sync.Mutex
	game     *fileGame
	ends     [2]*ackbitsEnd
	asEvents bool
	left     []byte // of the file, as events
}

func openTransfer(g *fileGame) (fileConn, error) { return openAckbits(g, false) }
func openEvents(g *fileGame) (fileConn, error)   { return openAckbits(g, true) }

func openAckbits(g *fileGame, asEvents bool) (fileConn, error) {
	c := &ackbitsConn{game: g, asEvents: asEvents}
	for i := range c.ends {
		e := &ackbitsEnd{mu: &c.mu, link: g.links[i], buf: make([]byte, ackbits.MaxDatagramSize)}
		var err error
		e.session, err = ackbits.NewSession(ackbits.Config{
			Adaptive: true, Bundle: true, Outcomes: true, Ordered: asEvents,
			Accept: func(h ackbits.Header, payload []byte) error {
				if h.Type == fileType {
					return e.files.Receive(payload)
				}
				return nil
			},
		})
		if err != nil {
			return nil, err
		}
		e.files, err = transfer.New(e.session, transfer.Config{Type: fileType, Accept: func(transfer.Offer) (transfer.Sink, error) {
			return &fileSink{game: g, data: make([]byte, len(g.content))}, nil
		}})
		if err != nil {
			return nil, err
		}
		c.ends[i] = e
		e.timer = time.AfterFunc(time.Hour, func() {
			c.mu.Lock()
			defer c.mu.Unlock()
			e.flush()
		})
		g.links[i].arrive = func(datagram []byte) { c.arrive(i, datagram) }
	}
	return c, nil
}

const fileType ackbits.Type = 200

// fileSink is where the file goes.
type fileSink struct {
	game *fileGame
	data []byte
}

func (s *fileSink) ReadAt(p []byte, off int64) (int, error) {
	return bytes.NewReader(s.data).ReadAt(p, off)
}

func (s *fileSink) WriteAt(p []byte, off int64) (int, error) { return copy(s.data[off:], p), nil }

func (c *ackbitsConn) arrive(i int, datagram []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.ends[i]
	in, _ := e.session.Receive(datagram)
	if in.Type == ackbits.TypeSnapshot && in.Payload != nil {
		c.game.state(i, in.Payload)
	}
	for _, event := range in.Events {
		if len(event.Data) == 64 {
			c.game.event(i, event.Data)
		} else {
			c.game.part(event.Data)
		}
	}
	e.flush()
	for in := range e.files.Incoming() {
		if in.Err() == io.EOF {
			c.game.part(c.game.content) // the digest has proved it
		}
	}
}

// flush sends what is due and sets the timer for what follows.
func (e *ackbitsEnd) flush() {
	if e.closed {
		return
	}
	for o, ok := e.session.NextOutcome(); ok; o, ok = e.session.NextOutcome() {
		e.files.Outcome(o)
	}
	for datagram := range e.session.Due(e.buf) {
		e.link.send(datagram)
	}
	for datagram := range e.files.Due(e.buf) {
		e.link.send(datagram)
	}
	at, ok := e.session.Deadline()
	if t, some := e.files.Deadline(); some && (!ok || t.Before(at)) {
		at, ok = t, true
	}
	if ok {
		e.timer.Reset(time.Until(at))
	}
}

func (c *ackbitsConn) state(from int, payload []byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	datagram, _, err := c.ends[from].session.AppendDatagram(c.ends[from].buf[:0], ackbits.TypeSnapshot, payload)
	if err == nil {
		c.ends[from].link.send(datagram)
	}
	return err
}

func (c *ackbitsConn) event(from int, payload []byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, err := c.ends[from].session.Send(payload)
	return err
}

func (c *ackbitsConn) file(content []byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.asEvents {
		c.left = content
		c.feed()
		return nil
	}
	_, err := c.ends[1].files.Send([]byte("file"), bytes.NewReader(content), int64(len(content)))
	c.ends[1].flush()
	return err
}

// feed sends as much of the file as there is room for, but for the game's events.
func (c *ackbitsConn) feed() {
	s := c.ends[1].session
	for len(c.left) > 0 && s.Room() > 4 {
		n := min(1024, len(c.left))
		if _, err := s.Send(c.left[:n]); err != nil {
			return
		}
		c.left = c.left[n:]
	}
	c.ends[1].flush()
}

func (c *ackbitsConn) tick() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.feed()
	for _, e := range c.ends {
		e.flush()
	}
}

func (c *ackbitsConn) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, e := range c.ends {
		e.closed = true
		e.timer.Stop()
	}
}

// QUIC.

type fileQUIC struct {
	*quicConn
	events [2]*quic.SendStream
}

func openFileQUIC(g *fileGame) (fileConn, error) {
	c, err := dialQUIC(g.links)
	if err != nil {
		return nil, err
	}
	f := &fileQUIC{quicConn: c}
	for i, end := range c.ends {
		if f.events[i], err = end.OpenUniStream(); err != nil {
			return nil, err
		}
		go func() {
			for {
				payload, err := end.ReceiveDatagram(context.Background())
				if err != nil {
					return
				}
				g.state(i, payload)
			}
		}()
		go func() {
			in, err := end.AcceptUniStream(context.Background())
			go func() { // the file, if it comes
				if in, err := end.AcceptUniStream(context.Background()); err == nil {
					g.read(in)
				}
			}()
			event := make([]byte, 64)
			for err == nil {
				if _, err = io.ReadFull(in, event); err == nil {
					g.event(i, event)
				}
			}
		}()
	}
	return f, nil
}

func (f *fileQUIC) state(from int, payload []byte) error {
	_ = f.ends[from].SendDatagram(payload) // what does not fit its queue is lost
	return nil
}

func (f *fileQUIC) event(from int, payload []byte) error {
	_, err := f.events[from].Write(payload)
	return err
}

func (f *fileQUIC) file(content []byte) error {
	s, err := f.ends[1].OpenUniStream()
	if err != nil {
		return err
	}
	go func() {
		_, _ = s.Write(content)
		_ = s.Close()
	}()
	return nil
}

// KCP.

type fileKCP struct {
	mu   sync.Mutex
	game *fileGame
	ends [2][2]*kcp.KCP // by end; events and file
	left []byte
}

// The conversations, and what a bare state begins with in their place.
const (
	kcpEvents, kcpFile = 1, 2
	kcpState           = 0xffffffff
)

func openFileKCP(g *fileGame, fast int) (fileConn, error) {
	c := &fileKCP{game: g}
	buf := make([]byte, 64<<10)
	for i := range c.ends {
		for k := range c.ends[i] {
			end := kcp.NewKCP(uint32(kcpEvents+k), func(buf []byte, size int) { g.links[i].send(buf[:size]) })
			end.SetMtu(1200)
			if k == 0 {
				end.NoDelay(1, 10, 2, 1)
			} else {
				end.NoDelay(fast, 10, 2, fast)
			}
			end.WndSize(256, 256)
			c.ends[i][k] = end
		}
		g.links[i].arrive = func(datagram []byte) {
			c.mu.Lock()
			defer c.mu.Unlock()
			conversation := binary.LittleEndian.Uint32(datagram)
			if conversation == kcpState {
				g.state(i, datagram[4:])
				return
			}
			end := c.ends[i][conversation-kcpEvents]
			end.Input(datagram, kcp.IKCP_PACKET_REGULAR, true)
			for n := end.Recv(buf); n >= 0; n = end.Recv(buf) {
				if conversation == kcpEvents {
					g.event(i, buf[:n])
				} else {
					g.part(buf[:n])
				}
			}
			c.feed()
			end.Update()
		}
	}
	return c, nil
}

func (c *fileKCP) state(from int, payload []byte) error {
	c.game.links[from].send(append(binary.LittleEndian.AppendUint32(nil, kcpState), payload...))
	return nil
}

func (c *fileKCP) event(from int, payload []byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ends[from][0].Send(payload) < 0 {
		return errors.New("kcp: Send failed")
	}
	return nil
}

func (c *fileKCP) file(content []byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.left = content
	c.feed()
	return nil
}

func (c *fileKCP) feed() {
	for end := c.ends[1][1]; len(c.left) > 0 && end.WaitSnd() < 512; {
		n := min(1024, len(c.left))
		end.Send(c.left[:n])
		c.left = c.left[n:]
	}
}

func (c *fileKCP) tick() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, end := range c.ends {
		end[0].Update()
		end[1].Update()
	}
}

func (c *fileKCP) close() {}

// SCTP.

type fileSCTP struct {
	*sctpConn
	states, events [2]*sctp.Stream
}

func openFileSCTP(g *fileGame) (fileConn, error) {
	c, err := dialSCTP(g.links)
	if err != nil {
		return nil, err
	}
	f := &fileSCTP{sctpConn: c}
	for i, end := range c.ends {
		for id, use := range []struct {
			stream **sctp.Stream
			take   func(message []byte)
		}{
			{&f.states[i], func(m []byte) { g.state(i, m) }},
			{&f.events[i], func(m []byte) { g.event(i, m) }},
			{&c.streams[i], g.part},
		} {
			s, err := end.OpenStream(uint16(id+1), sctp.PayloadTypeWebRTCBinary)
			if err != nil {
				return nil, err
			}
			*use.stream = s
			go func() {
				message := make([]byte, 64<<10)
				for {
					n, err := s.Read(message)
					if err != nil {
						return
					}
					use.take(message[:n])
				}
			}()
		}
		f.states[i].SetReliabilityParams(true, sctp.ReliabilityTypeRexmit, 0)
	}
	return f, nil
}

func (f *fileSCTP) state(from int, payload []byte) error {
	_, err := f.states[from].Write(payload)
	return err
}

func (f *fileSCTP) event(from int, payload []byte) error {
	_, err := f.events[from].Write(payload)
	return err
}

func (f *fileSCTP) file(content []byte) error {
	for len(content) > 0 {
		n := min(1024, len(content))
		if _, err := f.streams[1].Write(content[:n]); err != nil {
			return err
		}
		content = content[n:]
	}
	return nil
}
