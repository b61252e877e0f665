package server

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/ackbits/ackbits"
	"github.com/ackbits/ackbits/endpoint"
	"github.com/ackbits/ackbits/examples/arena/proto"
)

// handshakeFormat is the first byte of a datagram of the handshake.
const handshakeFormat = 0x0E

// arrival is a datagram as the socket gave it.
type arrival struct {
	datagram []byte
	from     netip.AddrPort
	at       netip.Addr // our address that it was sent to, where we have several
}

// door is the gate with its lock: the reader joins peers, the shards confirm and
// end them.
type door struct {
	mu   sync.Mutex
	gate *endpoint.Gate
}

func (d *door) confirm(token uint64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.gate.Confirm(token)
}

func (d *door) end(token uint64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.gate.End(token)
}

func (d *door) stats() endpoint.Stats {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.gate.Stats()
}

// read reads the socket until it is closed.
func (s *Server) read() {
	messages := s.socket.messages()
	answers := newOutbox(s.socket, &s.counters)
	var complained time.Time
	for {
		before := time.Now()
		n, err := s.socket.read(messages)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			if before.Sub(complained) > time.Minute {
				s.log.Warn("reading", "err", err)
				complained = before
			}
			time.Sleep(10 * time.Millisecond) // whatever it is, do not spin
			continue
		}
		now := time.Now()
		s.counters.DatagramsIn.Add(uint64(n))
		s.table.mu.Lock()
		for i := range messages[:n] {
			m := &messages[i]
			s.sort(arrival{m.Buffers[0][:m.N], plain(m.Addr.(*net.UDPAddr)), s.socket.asked(m)}, now, answers)
		}
		s.table.mu.Unlock()
		answers.flush()
		for _, sh := range s.shards {
			sh.mail.ring()
		}
		if n < len(messages) {
			s.emptied.Store(int64(before.Sub(s.began)))
		}
	}
}

// sort gives a datagram to the shard of its session, or answers it. It is where
// hostile bytes end: what belongs to no session and is no Hello costs a look-up.
// The caller holds the lock of the table.
func (s *Server) sort(a arrival, now time.Time, answers *outbox) {
	s.counters.BytesIn.Add(uint64(len(a.datagram)))
	if token, ok := endpoint.ProbeReply(a.datagram); ok {
		s.deliver(token, a, probeReply, now)
		return
	}
	if len(a.datagram) > 0 && a.datagram[0] == handshakeFormat {
		s.knock(a, answers)
		return
	}
	h, _, err := ackbits.ParseHeader(a.datagram)
	if err != nil || !h.Sealed {
		s.counters.Foreign.Add(1)
		return
	}
	if s.table.peers[h.Token] == nil {
		s.counters.Foreign.Add(1)
		s.reset(a, answers)
		return
	}
	s.deliver(h.Token, a, sessionDatagram, now)
}

// deliver puts a datagram into the mailbox of its session's shard, unless the
// session has had more than enough.
func (s *Server) deliver(token uint64, a arrival, kind itemKind, now time.Time) {
	p := s.table.peers[token]
	switch {
	case p == nil:
		s.counters.Foreign.Add(1)
	case !p.admits(kind, a.from, now):
		s.counters.Throttled.Add(1)
	case !p.room.shard.mail.put(item{peer: p, from: a.from, at: a.at, kind: kind}, a.datagram):
		s.counters.Overrun.Add(1)
	}
}

// knock answers a Hello, and seats whom the gate admits.
func (s *Server) knock(a arrival, answers *outbox) {
	s.door.mu.Lock()
	defer s.door.mu.Unlock()
	answer, admission := s.door.gate.Receive(a.from, a.datagram, answers.buffer())
	if admission != nil {
		s.join(admission, a)
	}
	if len(answer) > 0 {
		answers.send(answer, newRoute(a.from, a.at))
	}
}

// reset tells a client that its session is not known: it need not wait for its
// timeout.
func (s *Server) reset(a arrival, answers *outbox) {
	s.door.mu.Lock()
	defer s.door.mu.Unlock()
	if answer := s.door.gate.Reset(answers.buffer(), a.from, a.datagram); len(answer) > 0 {
		answers.send(answer, newRoute(a.from, a.at))
	}
}

// admit decides on a client whose address is proved. The gate calls it, in knock.
func (s *Server) admit(r endpoint.Request) (reply []byte, err error) {
	h, err := proto.ParseHello(r.Hello)
	switch {
	case err != nil:
		return nil, err
	case h.Version != proto.HelloVersion:
		return nil, fmt.Errorf("the server speaks version %d of the arena, you speak %d", proto.HelloVersion, h.Version)
	}
	_, err = s.table.seat(r.Addr.Addr())
	return nil, err
}

// join seats a client that was admitted.
func (s *Server) join(a *endpoint.Admission, from arrival) {
	h, err := proto.ParseHello(a.Hello)
	room, err2 := s.table.seat(a.Addr.Addr())
	if err := errors.Join(err, err2); err != nil {
		panic(err) // admit has just found both in order
	}
	p := newPeer(a, h, room, newRoute(a.Addr, from.at))
	s.table.add(p)
	room.shard.mail.put(item{peer: p, kind: join}, nil)
}
