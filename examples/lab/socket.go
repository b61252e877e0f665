package main

import (
	"net"
	"os"
	"time"
)

// A peerLink as the socket that the libraries expect.

func (l *peerLink) Read(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for {
		switch {
		case l.closed:
			return 0, net.ErrClosed
		case l.expired:
			return 0, os.ErrDeadlineExceeded
		case len(l.waiting) > 0:
			n := copy(p, l.waiting[0])
			l.waiting = l.waiting[1:]
			return n, nil
		}
		l.ready.Wait()
	}
}

func (l *peerLink) Write(p []byte) (int, error) {
	l.send(p)
	return len(p), nil
}

func (l *peerLink) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	l.ready.Broadcast()
	return nil
}

// SetReadDeadline knows the past and never, which is all that is asked of it.
func (l *peerLink) SetReadDeadline(t time.Time) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.expired = !t.IsZero() && !t.After(time.Now())
	l.ready.Broadcast()
	return nil
}

func (l *peerLink) ReadFrom(p []byte) (int, net.Addr, error) {
	n, err := l.Read(p)
	return n, l.RemoteAddr(), err
}

func (l *peerLink) WriteTo(p []byte, _ net.Addr) (int, error) { return l.Write(p) }
func (l *peerLink) SetDeadline(t time.Time) error             { return l.SetReadDeadline(t) }
func (l *peerLink) SetWriteDeadline(time.Time) error          { return nil }

// The ends tell each other apart by their ports.
func (l *peerLink) LocalAddr() net.Addr {
	return &net.UDPAddr{IP: net.IPv4(192, 0, 2, 1), Port: l.port}
}
func (l *peerLink) RemoteAddr() net.Addr { return l.other.LocalAddr() }

// quic-go asks for these.
func (l *peerLink) SetReadBuffer(int) error  { return nil }
func (l *peerLink) SetWriteBuffer(int) error { return nil }
