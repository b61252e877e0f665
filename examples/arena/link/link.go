// Package link is a UDP socket behind a simulated lossy link: what goes out and what
// comes in may be lost, and is delayed.
package link

import (
	"errors"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/ackbits/ackbits/simnet"
)

// Conditions are those of a network path. The zero value is the socket as it is.
type Conditions struct {
	Loss   float64       // in each direction, from 0 to 1
	RTT    time.Duration // half of it each way
	Jitter time.Duration // the most by which a datagram is late, each way
}

func (c Conditions) config() simnet.Config {
	return simnet.Config{Delay: c.RTT / 2, Jitter: c.Jitter, Loss: c.Loss}
}

// Conn is the client's end of a path. One goroutine uses it; another one, its
// own, reads the socket.
type Conn struct {
	server netip.AddrPort
	local  netip.Addr
	start  time.Time
	out    *simnet.Link
	socket *net.UDPConn

	refused atomic.Bool // the latest the socket heard is that nobody listens there

	mu sync.Mutex // guards in, which the reading goroutine fills
	in *simnet.Link
}

// Dial opens a socket at the local address local, which may be the zero value,
// towards a server. Paths with different seeds lose different datagrams.
func Dial(local netip.Addr, server netip.AddrPort, conditions Conditions, seed uint64) (*Conn, error) {
	c := &Conn{server: server, local: local, start: time.Now(),
		out: simnet.NewLink(2*seed, conditions.config()), in: simnet.NewLink(2*seed+1, conditions.config())}
	return c, c.open()
}

func (c *Conn) open() error {
	var from *net.UDPAddr
	if c.local.IsValid() {
		from = net.UDPAddrFromAddrPort(netip.AddrPortFrom(c.local, 0))
	}
	socket, err := net.DialUDP("udp", from, net.UDPAddrFromAddrPort(c.server))
	if err != nil {
		return err
	}
	c.socket = socket
	go c.read(socket)
	return nil
}

// read puts all that the socket receives on the link until it is closed. That
// nobody listens (ICMP port unreachable) is no reason to stop: the server may
// come back.
func (c *Conn) read(socket *net.UDPConn) {
	buf := make([]byte, 2048)
	for {
		n, err := socket.Read(buf)
		switch {
		case err == nil:
			c.refused.Store(false)
			c.mu.Lock()
			c.in.Send(time.Since(c.start), buf[:n])
			c.mu.Unlock()
		case errors.Is(err, net.ErrClosed):
			return
		default:
			c.refused.Store(errors.Is(err, syscall.ECONNREFUSED))
			time.Sleep(time.Millisecond)
		}
	}
}

// Refused reports whether the server's machine says that nobody listens at the
// address. A machine need not say so.
func (c *Conn) Refused() bool { return c.refused.Load() }

// Pause is how long a program may not have looked at its sockets until silence
// says nothing: it was stopped, or the machine slept, and what arrived meanwhile
// lies in the kernel. AfterPause lets the goroutines that read the sockets run;
// call it before a session is asked whether it has timed out.
const Pause = 500 * time.Millisecond

// AfterPause waits for what lies in the sockets of this process to be read.
func AfterPause() { time.Sleep(50 * time.Millisecond) }

// Send puts a datagram on the way out; it leaves in a Flush. The bytes are
// copied.
func (c *Conn) Send(now time.Time, datagram []byte) { c.out.Send(now.Sub(c.start), datagram) }

// Flush writes what has come to the end of the way out.
func (c *Conn) Flush(now time.Time) {
	for {
		datagram, ok := c.out.Receive(now.Sub(c.start))
		if !ok {
			return
		}
		c.socket.Write(datagram) // an error is a loss, as any other on UDP
	}
}

// Receive appends to dst the next datagram that has come to the end of the way
// in; ok reports whether there was one.
func (c *Conn) Receive(now time.Time, dst []byte) (datagram []byte, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	arrived, ok := c.in.Receive(now.Sub(c.start))
	return append(dst, arrived...), ok
}

// SetConditions changes the conditions for what is sent from now on.
func (c *Conn) SetConditions(conditions Conditions) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Since(c.start)
	c.out.SetConfig(now, conditions.config())
	c.in.SetConfig(now, conditions.config())
}

// Move closes the socket and opens another one, with another port: what a NAT
// does that forgets its client.
func (c *Conn) Move() error {
	if err := c.socket.Close(); err != nil {
		return err
	}
	return c.open()
}

// Close closes the socket.
func (c *Conn) Close() error { return c.socket.Close() }
