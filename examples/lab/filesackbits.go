package main

import (
	"bytes"
	"io"
	"sync"
	"time"

	"github.com/ackbits/ackbits"
	"github.com/ackbits/ackbits/transfer"
)

// The file beside the game by this library: by package transfer, or as events.

// ackbitsEnd is one end.
type ackbitsEnd struct {
	session *ackbits.Session
	files   *transfer.Transfers
	link    *peerLink
	timer   *time.Timer
	buf     []byte
	closed  bool
}

// ackbitsConn is both, which share a lock: what arrives and what is due come from timers.
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
		e := &ackbitsEnd{link: g.links[i], buf: make([]byte, ackbits.MaxDatagramSize)}
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
