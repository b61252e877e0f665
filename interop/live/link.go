package main

import (
	"bytes"
	"math/rand/v2"
	"net/netip"
	"slices"
	"time"
)

// A packet is a datagram with the address of the other side.
type packet struct {
	addr     netip.AddrPort
	datagram []byte
}

// A link is one direction of a network: what goes in comes out later, in another
// order, twice or not at all.
type link struct {
	rng           *rand.Rand
	loss, double  float64
	delay, jitter time.Duration
	held          []held // by due
}

type held struct {
	due time.Time
	packet
}

// put takes a copy of the datagram.
func (l *link) put(addr netip.AddrPort, datagram []byte, now time.Time) {
	if l.rng.Float64() < l.loss {
		return
	}
	l.hold(packet{addr, bytes.Clone(datagram)}, now)
	if l.rng.Float64() < l.double {
		l.hold(packet{addr, bytes.Clone(datagram)}, now)
	}
}

func (l *link) hold(p packet, now time.Time) {
	due := now.Add(l.delay + time.Duration(l.rng.Int64N(int64(l.jitter)+1)))
	at, _ := slices.BinarySearchFunc(l.held, due, func(h held, t time.Time) int {
		if h.due.After(t) {
			return 1
		}
		return -1
	})
	l.held = slices.Insert(l.held, at, held{due, p})
}

// take returns the next datagram that has arrived.
func (l *link) take(now time.Time) (p packet, ok bool) {
	if len(l.held) == 0 || l.held[0].due.After(now) {
		return packet{}, false
	}
	p = l.held[0].packet
	l.held = l.held[1:]
	return p, true
}

// mend makes it a good link.
func (l *link) mend() { l.loss, l.double = 0, 0 }
