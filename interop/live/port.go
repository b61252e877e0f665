package main

import (
	"crypto/ecdh"
	"errors"
	"iter"
	"net/netip"

	"github.com/ackbits/ackbits"
	"github.com/ackbits/ackbits/endpoint"
)

// A port is what the command's datagrams go to: a session of which both sides know
// everything, or a server that the command has to join.
type port interface {
	receive(p packet) (ackbits.Incoming, error)
	due() iter.Seq2[netip.AddrPort, []byte]
	session() *ackbits.Session // nil until it has begun
	addr() netip.AddrPort      // of the command
	complete() error           // what is missing at the end
}

// known is the port of a session that begins with the first datagram.
type known struct {
	cfg   ackbits.Config
	other netip.AddrPort
	s     *ackbits.Session
}

func (k *known) receive(p packet) (in ackbits.Incoming, err error) {
	if k.s == nil {
		k.other = p.addr
		if k.s, err = ackbits.NewSession(k.cfg); err != nil {
			return in, err
		}
	}
	if p.addr != k.other {
		return in, nil
	}
	return k.s.Receive(p.datagram)
}

func (k *known) due() iter.Seq2[netip.AddrPort, []byte] {
	return func(yield func(netip.AddrPort, []byte) bool) {
		if k.s == nil {
			return
		}
		for d := range k.s.Due(nil) {
			if !yield(k.other, d) {
				return
			}
		}
	}
}

func (k *known) session() *ackbits.Session { return k.s }
func (k *known) addr() netip.AddrPort      { return k.other }
func (k *known) complete() error           { return nil }

// What the command says of itself, and hears.
const (
	goodHello = "somebody"
	reply     = "welcome"
	reason    = "not you"
)

// open is the port of a server that refuses the command once, puts it off once, admits
// it, and is left by it at another address than the one that it came from.
type open struct {
	server  *endpoint.Server
	peer    *endpoint.Peer
	refused int
	putOff  bool
	moves   int
}

// newOpen returns a server whose private key is 00 01 … 1F.
func newOpen(cfg ackbits.Config) (*open, error) {
	key := make([]byte, 32)
	for i := range key {
		key[i] = byte(i)
	}
	private, err := ecdh.X25519().NewPrivateKey(key)
	if err != nil {
		return nil, err
	}
	o := &open{}
	admit := func(r endpoint.Request) ([]byte, error) {
		if string(r.Hello) != goodHello {
			o.refused++
			return nil, errors.New(reason)
		}
		if !o.putOff {
			o.putOff = true
			return nil, endpoint.ErrPending
		}
		return []byte(reply), nil
	}
	o.server, err = endpoint.NewServer(endpoint.ServerConfig{Key: private, Session: cfg, Admit: admit})
	return o, err
}

func (o *open) receive(p packet) (ackbits.Incoming, error) {
	in, err := o.server.Receive(p.addr, p.datagram)
	return in.Incoming, err
}

func (o *open) due() iter.Seq2[netip.AddrPort, []byte] {
	for e, ok := o.server.NextEvent(); ok; e, ok = o.server.NextEvent() {
		switch e.Kind {
		case endpoint.Joined:
			o.peer = e.Peer
		case endpoint.Moved:
			o.moves++
		}
	}
	return o.server.Due(make([]byte, ackbits.MaxDatagramSize))
}

func (o *open) session() *ackbits.Session {
	if o.peer == nil {
		return nil
	}
	return o.peer.Session()
}

func (o *open) addr() netip.AddrPort { return o.peer.Addr() }

func (o *open) complete() error {
	switch {
	case o.refused != 1:
		return errors.New("the command was not refused once before it was admitted")
	case o.moves != 1:
		return errors.New("the command did not move once")
	case o.server.Stats().Joins != 1:
		return errors.New("the command joined more than once")
	}
	return nil
}
