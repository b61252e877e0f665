package endpoint

import (
	"net/netip"
	"slices"
)

// What a Server tells its application of its peers' lives: Joined, Moved, Left, and
// how a peer that has ended goes. What a session brings is an Incoming (peer.go).

// EventKind says what an Event tells.
type EventKind uint8

// The life of a peer: Joined, any number of Moved, Left.
const (
	Joined EventKind = iota + 1 // a new peer; events may be sent at once
	Moved                       // its datagrams go elsewhere from now on, to Peer.Addr
	Left                        // its session has ended; the seat is free with this
)

// String returns the kind's name.
func (k EventKind) String() string {
	switch k {
	case Joined:
		return "Joined"
	case Moved:
		return "Moved"
	case Left:
		return "Left"
	}
	return "none"
}

// Event is something that happened to a peer.
type Event struct {
	Kind EventKind
	Peer *Peer
	From netip.AddrPort // of Moved: the older address
	Err  error          // of Left: why, as Session.Err says
}

// reap sees to a peer that is not gone and whose session may have ended.
func (s *Server) reap(p *Peer) {
	err := p.session.Err()
	if err == nil {
		return
	}
	p.gone = true
	delete(s.byToken, p.token)
	s.gate.memory.end(p.token, s.gate.time.Now)
	s.tell(Event{Kind: Left, Peer: p, Err: err})
}

// tell queues an event.
func (s *Server) tell(e Event) {
	if s.fetched > len(s.events)/2 { // a caller that never fetches all
		s.events = slices.Delete(s.events, 0, s.fetched)
		s.fetched = 0
	}
	s.events = append(s.events, e)
}

// NextEvent returns the next event, in the order in which they happened. A seat is
// free once its Left was fetched, and of a peer at most one Moved waits, so that there are
// at most three events for each of MaxPeers.
func (s *Server) NextEvent() (Event, bool) {
	if s.fetched == len(s.events) {
		return Event{}, false
	}
	e := s.events[s.fetched]
	s.events[s.fetched] = Event{}
	if s.fetched++; s.fetched == len(s.events) {
		s.events, s.fetched = s.events[:0], 0
	}
	switch e.Kind {
	case Moved:
		e.Peer.moving = false
	case Left:
		s.remove(e.Peer)
	}
	return e, true
}

// remove frees the seat of a peer.
func (s *Server) remove(p *Peer) {
	at := slices.Index(s.peers, p)
	s.peers = slices.Concat(s.peers[:at], s.peers[at+1:])
	if s.turn > at {
		s.turn--
	}
	s.gate.seats--
}
