package peers

import (
	"net"
	"os"
	"sync"
	"time"
)

// Link is the pipe between two ends that have goroutines of their own. Each of
// its sides is a net.PacketConn and a net.Conn.
type Link struct {
	mu    sync.Mutex
	now   int // ticks
	delay int
	A, B  LinkEnd

	watch   bool          // main waits for a datagram of A
	watched chan struct{} // capacity 1
}

// LinkEnd is a side of a Link.
type LinkEnd struct {
	link    *Link
	peer    *LinkEnd
	addr    net.UDPAddr
	in      queue
	ready   sync.Cond
	expired bool // a read deadline in the past
	closed  bool
}

// NewLink returns a Link without delay.
func NewLink() *Link {
	l := &Link{watched: make(chan struct{}, 1)}
	for _, e := range []*LinkEnd{&l.A, &l.B} {
		e.link = l
		e.ready.L = &l.mu
	}
	l.A.peer, l.B.peer = &l.B, &l.A
	l.A.addr = net.UDPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 1}
	l.B.addr = net.UDPAddr{IP: net.IPv4(192, 0, 2, 2), Port: 2}
	return l
}

// SetDelay makes datagrams wait for ticks from now on. Those in flight leave at
// once.
func (l *Link) SetDelay(ticks int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.now += l.delay
	l.delay = ticks
	l.A.ready.Broadcast()
	l.B.ready.Broadcast()
}

// Advance is a tick.
func (l *Link) Advance() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.now++
	l.A.wake()
	l.B.wake()
}

// Trim gives back the buffers of datagrams that are gone.
func (l *Link) Trim() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, e := range []*LinkEnd{&l.A, &l.B} {
		if e.in.size == 0 {
			e.in = queue{}
		}
	}
}

// Watch makes the next datagram that A sends show up on the channel it returns.
func (l *Link) Watch() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case <-l.watched:
	default:
	}
	l.watch = true
	return l.watched
}

func (e *LinkEnd) wake() {
	if e.in.size > 0 && e.in.slots[e.in.head].due <= e.link.now {
		e.ready.Broadcast()
	}
}

func (e *LinkEnd) Read(p []byte) (int, error) {
	l := e.link
	l.mu.Lock()
	defer l.mu.Unlock()
	for {
		switch d, ok := e.in.pop(l.now); {
		case e.closed:
			return 0, net.ErrClosed
		case e.expired:
			return 0, os.ErrDeadlineExceeded
		case ok:
			return copy(p, d), nil
		}
		e.ready.Wait()
	}
}

func (e *LinkEnd) Write(p []byte) (int, error) {
	l := e.link
	l.mu.Lock()
	defer l.mu.Unlock()
	if e.closed {
		return 0, net.ErrClosed
	}
	if !e.peer.closed {
		e.peer.in.push(p, l.now+l.delay)
		if l.delay == 0 {
			e.peer.ready.Signal()
		}
	}
	if l.watch && e == &l.A {
		l.watch = false
		l.watched <- struct{}{}
	}
	return len(p), nil
}

func (e *LinkEnd) Close() error {
	e.link.mu.Lock()
	defer e.link.mu.Unlock()
	e.closed = true
	e.in = queue{}
	e.ready.Broadcast()
	return nil
}

func (e *LinkEnd) SetReadDeadline(t time.Time) error {
	e.link.mu.Lock()
	defer e.link.mu.Unlock()
	e.expired = !t.IsZero() && !t.After(time.Now()) // the only kind that the subjects use
	e.ready.Broadcast()
	return nil
}

func (e *LinkEnd) ReadFrom(p []byte) (int, net.Addr, error) {
	n, err := e.Read(p)
	return n, &e.peer.addr, err
}

func (e *LinkEnd) WriteTo(p []byte, _ net.Addr) (int, error) { return e.Write(p) }
func (e *LinkEnd) SetDeadline(t time.Time) error             { return e.SetReadDeadline(t) }
func (e *LinkEnd) SetWriteDeadline(time.Time) error          { return nil }
func (e *LinkEnd) LocalAddr() net.Addr                       { return &e.addr }
func (e *LinkEnd) RemoteAddr() net.Addr                      { return &e.peer.addr }

// SetReadBuffer and SetWriteBuffer are there for quic-go, which asks.
func (e *LinkEnd) SetReadBuffer(int) error  { return nil }
func (e *LinkEnd) SetWriteBuffer(int) error { return nil }
