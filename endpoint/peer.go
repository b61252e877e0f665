package endpoint

import (
	"net/netip"

	"github.com/ackbits/ackbits"
)

// Peer and Incoming: what the application of a Server gets.

// Peer is a client that a Server has admitted.
type Peer struct {
	// Value is for the application; the server does not use it.
	Value any

	session *ackbits.Session
	path    Path
	hello   []byte
	token   uint64

	confirmed bool // a datagram of the session opened
	gone      bool // its Left is queued, or was fetched
	moving    bool // its Moved is queued
}

// Session returns the peer's session: use it to send, and close it to throw the peer out.
// Datagrams that arrive go to Server.Receive, and those that are due come out of
// Server.Due. Send what AppendDatagram returns to Addr.
func (p *Peer) Session() *ackbits.Session { return p.session }

// Addr returns the peer's address. It changes when the peer has proved another one; a
// Moved says so.
func (p *Peer) Addr() netip.AddrPort { return p.path.addr }

// Hello returns the hello with which the client joined. It must not be changed.
func (p *Peer) Hello() []byte { return p.hello }

// Incoming is what a datagram of a session brought, and whose session it is.
type Incoming struct {
	Peer *Peer
	ackbits.Incoming
}
