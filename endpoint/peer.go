package endpoint

import (
	"net/netip"

	"github.com/ackbits/ackbits"
)

// Peer and what its datagrams bring, as the application of a Server sees them.

// Peer is a client that a Server has admitted.
type Peer struct {
	// Value is the application's own: the server never looks at it.
	Value any

	session *ackbits.Session
	path    Path
	hello   []byte
	token   uint64

	confirmed bool // a datagram of the session opened
	gone      bool // its Left is queued, or was fetched
	moving    bool // its Moved is queued
}

// Session returns the peer's session: send by it, close it to throw the peer
// out. Datagrams go into Server.Receive and come out of Server.Due; what
// AppendDatagram returns goes to Addr.
func (p *Peer) Session() *ackbits.Session { return p.session }

// Addr returns where the peer is. It changes when the peer has proved another
// address; a Moved tells.
func (p *Peer) Addr() netip.AddrPort { return p.path.addr }

// Hello returns what the client said of itself when it joined. It must not be
// changed.
func (p *Peer) Hello() []byte { return p.hello }

// Incoming is a datagram of a session, and whose it is.
type Incoming struct {
	Peer *Peer
	ackbits.Incoming
}
