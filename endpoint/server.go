package endpoint

import (
	"iter"
	"net/netip"
	"slices"
	"time"

	"github.com/ackbits/ackbits"
)

// Server: the calls of an application on an open port, over a table of peers. The
// handshake is in gate.go, changes of address are in path.go.

// strangers is how many answers to strangers wait for Due: Challenges and Resets. Smaller
// loses some when many join between two calls of Due; larger lets a flood take more
// memory, 99 bytes each and what holds them.
const strangers = 256

// Server does all that an open port needs: it proves addresses, admits clients, keeps the
// table of sessions, follows peers whose address changes, and tells clients when their
// session is gone. It is not safe for concurrent use.
//
//	for each datagram that has arrived in inBuf {
//		in, err := s.Receive(from, inBuf[:n])
//		… in.Events, in.Payload of in.Peer, if it is not nil …
//	}
//	for e, ok := s.NextEvent(); ok; e, ok = s.NextEvent() { … }
//	for p := range s.Peers() {
//		datagram, _, err := p.Session().AppendDatagram(outBuf[:0], ackbits.TypeSnapshot, snapshot)
//		if err == nil { conn.WriteToUDPAddrPort(datagram, p.Addr()) }
//	}
//	for to, datagram := range s.Due(outBuf) { conn.WriteToUDPAddrPort(datagram, to) }
//
// Call Due at least once for every 32 datagrams of a peer: a header acknowledges the
// newest datagram and the 32 before it, so in a longer burst the rest would never be
// acknowledged. Due looks at every peer, which costs some 10 ns each. With many peers,
// flush only the session of the datagram after each Receive, with in.Peer.Session().Due,
// and call Due once a tick.
type Server struct {
	gate    *Gate
	byToken map[uint64]*Peer // of live sessions
	// peers are in the order in which they joined, until their Left is fetched.
	// They are copied where one goes, so that a loop over them may go on.
	peers   []*Peer
	turn    int     // of peers: with whom Due begins
	events  []Event // not fetched yet; at most three of a peer
	fetched int     // of events
	replies answers // Accepts and Refuses
	others  answers // Challenges and Resets
	scratch []byte
}

// NewServer returns a server that begins now. If a value of cfg is invalid, the error is
// ackbits.ErrConfig and names it; an error of Rand is returned as it is.
func NewServer(cfg ServerConfig) (*Server, error) {
	gate, err := NewGate(cfg)
	if err != nil {
		return nil, err
	}
	return &Server{
		gate:    gate,
		byToken: map[uint64]*Peer{},
		replies: answers{limit: max(strangers, gate.cfg.MaxPeers)},
		others:  answers{limit: strangers},
		scratch: make([]byte, 0, longest),
	}, nil
}

// Receive handles a datagram that came from an address. For a datagram of a session it
// returns the peer and what Session.Receive returns, and under the same conditions: the
// datagram is overwritten, and the result is part of it. For one of the handshake the
// result is empty, and its Peer nil. The error says why a datagram was dropped.
func (s *Server) Receive(from netip.AddrPort, datagram []byte) (Incoming, error) {
	now := s.gate.time.Read()
	from = unmap(from)
	if k, ok := handshakeKind(datagram); ok {
		return Incoming{}, s.handshake(k, from, datagram, now)
	}
	h, _, err := ackbits.ParseHeader(datagram)
	if err == nil && !h.Sealed {
		err = ackbits.ErrFormat
	}
	if err != nil {
		s.gate.stats.Foreign++
		return Incoming{}, err
	}
	p := s.byToken[h.Token]
	if p == nil {
		s.gate.stats.Foreign++
		s.answer(&s.others, from, s.gate.reset(s.scratch, from, datagram, now))
		return Incoming{}, ackbits.ErrToken
	}
	return s.receive(p, from, h.Sequence, datagram, now)
}

// receive handles a datagram of a session.
func (s *Server) receive(p *Peer, from netip.AddrPort, sequence uint16, datagram []byte, now int64) (Incoming, error) {
	in, err := p.session.Receive(datagram)
	if Opened(err) {
		if !p.confirmed {
			p.confirmed = true
			s.gate.Confirm(p.token)
		}
		if len(datagram) >= sealedMin {
			p.path.opened(from, sequence, now)
		}
	}
	s.reap(p)
	if err != nil {
		return Incoming{}, err
	}
	return Incoming{Peer: p, Incoming: in}, nil
}

// handshake handles a message of the handshake.
func (s *Server) handshake(k kind, from netip.AddrPort, datagram []byte, now int64) error {
	switch k {
	case kindHello:
		answer, a, err := s.gate.receiveHello(from, datagram, s.scratch, now)
		if a != nil {
			err = s.join(a)
		}
		if err != nil || len(answer) == 0 {
			return err
		}
		waiting := &s.replies
		if kind(answer[1]) == kindChallenge {
			waiting = &s.others
		}
		s.answer(waiting, from, answer)
		return nil
	case kindProbeReply:
		return s.proved(from, datagram)
	}
	s.gate.stats.Malformed++
	return ackbits.ErrType
}

// answer queues a datagram for Due, if there is one and there is room for it.
func (s *Server) answer(waiting *answers, to netip.AddrPort, datagram []byte) {
	if len(datagram) > 0 && !waiting.push(to, datagram) {
		s.gate.stats.AnswersDropped++
	}
}

// join adds a peer to the table.
func (s *Server) join(a *Admission) error {
	p := &Peer{path: a.Path, hello: a.Hello, token: a.Config.Token}
	if accept := s.gate.cfg.Accept; accept != nil {
		a.Config.Accept = func(h ackbits.Header, payload []byte) error { return accept(p, h, payload) }
	}
	session, err := ackbits.NewSession(a.Config)
	if err != nil { // an AEAD that depends on its key
		s.gate.stats.Failed++
		s.gate.memory.end(p.token, s.gate.time.Now)
		s.gate.seats--
		return err
	}
	p.session = session
	s.byToken[p.token] = p
	s.peers = append(s.peers, p)
	s.tell(Event{Kind: Joined, Peer: p})
	return nil
}

// proved handles the reply to a Probe.
func (s *Server) proved(from netip.AddrPort, datagram []byte) error {
	token, _, err := parseCode(datagram)
	if err != nil {
		s.gate.stats.Malformed++
		return err
	}
	p := s.byToken[token]
	if p == nil {
		s.gate.stats.Foreign++
		return ackbits.ErrToken
	}
	older := p.path.addr
	if !p.path.Answer(from, datagram) {
		s.gate.stats.Forged++
		return ackbits.ErrForged
	}
	s.gate.stats.Moves++
	if !p.moving {
		p.moving = true
		s.tell(Event{Kind: Moved, Peer: p, From: older})
	}
	return nil
}

// Due yields every datagram that is due and the address that it goes to: answers of the
// handshake, then for each peer a Probe and the datagrams of its session. Each is built
// in buf, from its start, and valid until the next; ackbits.MaxDatagramSize bytes suffice
// for all. If the loop breaks, the rest stays due, and the next call begins with the next
// peer. Only Due, of the server or of a session, detects timeouts.
//
// The loop must not call Receive.
func (s *Server) Due(buf []byte) iter.Seq2[netip.AddrPort, []byte] {
	return func(yield func(netip.AddrPort, []byte) bool) {
		s.gate.time.Read()
		for _, waiting := range []*answers{&s.replies, &s.others} {
			for to, datagram, ok := waiting.pop(buf); ok; to, datagram, ok = waiting.pop(buf) {
				if !yield(to, datagram) {
					return
				}
			}
		}
		s.gate.round++ // no answer waits any more
		peers, first := s.peers, s.turn
		for i := range peers {
			at := (first + i) % len(peers)
			if !s.duePeer(peers[at], buf, yield) {
				s.turn = at + 1
				return
			}
		}
		s.turn = 0
	}
}

// duePeer yields what is due to a peer. It reports false when the loop was
// broken off.
func (s *Server) duePeer(p *Peer, buf []byte, yield func(netip.AddrPort, []byte) bool) bool {
	if p.gone {
		return true
	}
	if probe, to, ok := p.path.AppendDue(buf[:0]); ok {
		s.gate.stats.Probes++
		if !yield(to, probe) {
			return false
		}
	}
	for datagram := range p.session.Due(buf) {
		if !yield(p.path.addr, datagram) {
			return false
		}
	}
	s.reap(p)
	return true
}

// Deadline returns when Due next has something to do, as far as the last call knew; any
// call of the server or of a peer's session may change it. ok is false while there is no
// peer and no answer waits. It looks at every peer.
func (s *Server) Deadline() (t time.Time, ok bool) {
	if s.replies.n > 0 || s.others.n > 0 {
		return s.gate.time.Last, true
	}
	for _, p := range s.peers {
		if p.gone {
			continue
		}
		at, lives := p.session.Deadline()
		if p.path.due || !lives {
			return s.gate.time.Last, true
		}
		if !ok || at.Before(t) {
			t, ok = at, true
		}
	}
	return t, ok
}

// Peers yields the peers in the order in which they joined, including those that have
// left but whose Left was not fetched.
func (s *Server) Peers() iter.Seq[*Peer] { return slices.Values(s.peers) }

// Stats returns the counters.
func (s *Server) Stats() Stats { return s.gate.Stats() }

// Shutdown admits nobody from now on and calls Session.Shutdown of every session: each
// leaves once its events are delivered or patience has passed. Go on with Receive, Due and
// NextEvent until there are no Peers.
func (s *Server) Shutdown(patience time.Duration) {
	s.gate.leaving = true
	for _, p := range s.peers {
		p.session.Shutdown(patience)
	}
}
