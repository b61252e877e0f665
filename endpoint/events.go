package endpoint

import (
	"net/netip"
	"slices"
)

// What a Server tells its application about peers: Joined, Moved and Left, and how a peer
// that has ended is removed. What a session receives is an Incoming (peer.go).

// EventKind says what happened to a peer.
type EventKind uint8

// Every peer has one Joined, then any number of Moved, then one Left.
const (
	Joined EventKind = iota + 1 // a new peer; its session can be used at once
	Moved                       // its datagrams now go to another address, Peer.Addr
	Left                        // its session has ended; its seat is free once this is fetched
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
	From netip.AddrPort // of Moved: the old address
	Err  error          // of Left: what Session.Err returns
}

// reap removes a peer from the table if its session has ended. It may be gone already: a
// loop over Due may range over Due again.
func (s *Server) reap(p *Peer) {
	err := p.session.Err()
	if err == nil || p.gone {
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

// NextEvent returns the next event, in the order in which they happened; ok is false if
// there is none. The seat of a peer becomes free when its Left is fetched. At most three
// events of a peer wait, since a Moved that was not fetched stands for later ones, too.
func (s *Server) NextEvent() (e Event, ok bool) {
	if s.fetched == len(s.events) {
		return Event{}, false
	}
	e = s.events[s.fetched]
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
