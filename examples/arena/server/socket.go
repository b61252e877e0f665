package server

import (
	"errors"
	"net"
	"net/netip"
	"sync/atomic"

	"golang.org/x/net/ipv4"
	"golang.org/x/net/ipv6"
)

const (
	// batchSize is how many datagrams one socket call moves: at 64 the call itself
	// is a small part of the cost, and more would only hold more memory.
	batchSize = 64

	// maxRead is one byte more than a datagram of ours may have, so that longer ones
	// show.
	maxRead = 1201

	// maxControl is room for the control message that tells which address of ours
	// a datagram was sent to.
	maxControl = 128

	// socketBuffer is how much the kernel may hold for us, if it lets us: what comes
	// in while a scheduler looks elsewhere for some milliseconds.
	socketBuffer = 4 << 20
)

// socket is the UDP socket of a server, for IPv4, IPv6, or both.
//
// Bound to all addresses of a machine that has several, it answers from the one
// that was asked (IP_PKTINFO, IPV6_PKTINFO): left alone, the kernel takes the one
// that its routes prefer, and the client drops the answer.
type socket struct {
	conn   *net.UDPConn
	six    *ipv6.PacketConn // nil on an IPv4 socket
	four   *ipv4.PacketConn // nil on an IPv6 socket, which may carry IPv4 as well
	every  bool             // bound to every address
	local  netip.AddrPort
	dst4   ipv4.ControlMessage // scratch of the reader
	dst6   ipv6.ControlMessage
	shrunk error // the kernel gave smaller buffers
}

// open opens a socket at "host:port". The host may be a name; without one, or
// with "::", the socket is bound to all addresses, IPv4 ones included.
func open(listen string) (*socket, error) {
	addr, err := net.ResolveUDPAddr("udp", listen)
	if err != nil {
		return nil, err
	}
	family := "udp"
	if addr.IP.To4() != nil {
		family = "udp4"
	}
	conn, err := net.ListenUDP(family, addr)
	if err != nil {
		return nil, err
	}
	s := &socket{conn: conn, local: plain(conn.LocalAddr().(*net.UDPAddr))}
	bound := conn.LocalAddr().(*net.UDPAddr).IP
	s.every = bound.IsUnspecified()
	s.shrunk = errors.Join(conn.SetReadBuffer(socketBuffer), conn.SetWriteBuffer(socketBuffer))
	if bound.To4() != nil {
		s.four = ipv4.NewPacketConn(conn)
		if s.every {
			err = s.four.SetControlMessage(ipv4.FlagDst, true)
		}
	} else {
		s.six = ipv6.NewPacketConn(conn)
		if s.every {
			err = s.six.SetControlMessage(ipv6.FlagDst, true)
		}
	}
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return s, nil
}

// messages returns empty messages to read into.
func (s *socket) messages() []ipv4.Message {
	messages := newMessages(maxRead)
	if s.every {
		for i := range messages {
			messages[i].OOB = make([]byte, maxControl)
		}
	}
	return messages
}

func (s *socket) read(messages []ipv4.Message) (int, error) {
	if s.six != nil {
		return s.six.ReadBatch(messages, 0)
	}
	return s.four.ReadBatch(messages, 0)
}

func (s *socket) write(messages []ipv4.Message) (int, error) {
	if s.six != nil {
		return s.six.WriteBatch(messages, 0)
	}
	return s.four.WriteBatch(messages, 0)
}

// asked returns which address of ours a datagram was sent to. It is the zero
// value where the socket has but one, or the kernel does not tell. Only the reader
// may call it.
func (s *socket) asked(m *ipv4.Message) netip.Addr {
	if !s.every || m.NN == 0 {
		return netip.Addr{}
	}
	var dst net.IP
	if s.six != nil {
		if s.dst6.Parse(m.OOB[:m.NN]) == nil {
			dst = s.dst6.Dst
		}
	} else if s.dst4.Parse(m.OOB[:m.NN]) == nil {
		dst = s.dst4.Dst
	}
	addr, ok := netip.AddrFromSlice(dst)
	if !ok || addr.IsMulticast() {
		return netip.Addr{}
	}
	return addr.Unmap()
}

// route is how datagrams get to a peer.
type route struct {
	to      netip.AddrPort
	at      netip.Addr   // our address that they leave from; see asked
	addr    *net.UDPAddr // to, for the socket
	control []byte       // at, for the socket
}

func newRoute(to netip.AddrPort, at netip.Addr) *route {
	r := &route{to: to, at: at, addr: net.UDPAddrFromAddrPort(to)}
	switch {
	case !at.IsValid():
	case to.Addr().Is4():
		r.control = (&ipv4.ControlMessage{Src: at.AsSlice()}).Marshal()
	default:
		r.control = (&ipv6.ControlMessage{Src: at.AsSlice()}).Marshal()
	}
	return r
}

// newMessages returns empty messages, with buffers of size bytes.
func newMessages(size int) []ipv4.Message {
	messages := make([]ipv4.Message, batchSize)
	for i := range messages {
		messages[i].Buffers = [][]byte{make([]byte, size)}
	}
	return messages
}

// outbox gathers datagrams and sends them with few calls. Each goroutine has its
// own; they share the socket.
type outbox struct {
	write    func([]ipv4.Message) (int, error)
	messages []ipv4.Message
	used     int
	counters *Counters
}

func newOutbox(s *socket, counters *Counters) *outbox {
	return &outbox{write: s.write, messages: newMessages(maxRead), counters: counters}
}

// buffer returns where the next datagram may be built.
func (o *outbox) buffer() []byte { return o.messages[o.used].Buffers[0][:0] }

// send queues a datagram that was built in buffer.
func (o *outbox) send(datagram []byte, to *route) {
	m := &o.messages[o.used]
	m.Buffers[0], m.Addr, m.OOB = datagram, to.addr, to.control
	if o.used++; o.used == len(o.messages) {
		o.flush()
	}
}

// flush sends what is queued. A datagram that the kernel refuses is lost, as
// others are on the way: UDP offers nothing better.
func (o *outbox) flush() {
	for rest := o.messages[:o.used]; len(rest) > 0; {
		n, err := o.write(rest)
		if err != nil || n <= 0 {
			o.counters.Unsent.Add(1)
			rest = rest[1:]
			continue
		}
		for i := range rest[:n] {
			o.counters.BytesOut.Add(uint64(len(rest[i].Buffers[0])))
		}
		o.counters.DatagramsOut.Add(uint64(n))
		rest = rest[n:]
	}
	o.used = 0
}

// plain returns the address in the one form that tables use.
func plain(a *net.UDPAddr) netip.AddrPort {
	ap := a.AddrPort()
	return netip.AddrPortFrom(ap.Addr().Unmap(), ap.Port())
}

// Counters are what the server has done since it began.
type Counters struct {
	DatagramsIn, DatagramsOut, BytesIn, BytesOut atomic.Uint64

	Unsent    atomic.Uint64 // datagrams that the kernel refused
	Foreign   atomic.Uint64 // neither of the handshake nor of an active session
	Malformed atomic.Uint64 // of a session, and refused by it
	Throttled atomic.Uint64 // of a session that sent too many
	Overrun   atomic.Uint64 // for which a shard had no room
	Moves     atomic.Uint64 // peers that proved another address
	Ended     atomic.Uint64 // sessions that have ended
	Kicked    atomic.Uint64 // of these: kicked, idle, without the map, or for too many events
	Maps      atomic.Uint64 // that have arrived, and were found right
	Merged    atomic.Uint64 // events not sent to a peer that was slow

	Ticks     atomic.Uint64
	TickNanos atomic.Uint64 // spent in ticks
	LateTicks atomic.Uint64 // that took longer than there was time
}
