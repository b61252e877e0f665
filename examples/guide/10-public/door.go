package main

import (
	"crypto/ecdh"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"io/fs"
	"os"
	"time"

	"github.com/ackbits/ackbits"
	"github.com/ackbits/ackbits/endpoint"
)

// README: begin guide-key

// loadKey reads the server's identity, and makes it at the first start. Whoever has the
// file can pose as the server; its public half is shipped with the game.
func loadKey(file string) (*ecdh.PrivateKey, error) {
	secret, err := os.ReadFile(file)
	if err == nil {
		return ecdh.X25519().NewPrivateKey(secret)
	} else if !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	key, err := ecdh.X25519().GenerateKey(rand.Reader)
	if err != nil {
		return nil, err
	}
	return key, os.WriteFile(file, key.Bytes(), 0o600)
}

// README: end guide-key

// A ticket says until when somebody may join: 8 bytes of time, 32 that the backend
// alone can make, and a name.

func seal(backend []byte, expires []byte, name string) []byte {
	mac := hmac.New(sha256.New, backend)
	mac.Write(expires)
	mac.Write([]byte(name))
	return mac.Sum(nil)
}

// newTicket is what the backend gives to somebody who has logged in.
func newTicket(backend []byte, name string, expires time.Time) []byte {
	t := binary.LittleEndian.AppendUint64(nil, uint64(expires.Unix()))
	return append(append(t, seal(backend, t, name)...), name...)
}

var errTicket = errors.New("no ticket, or an old one: log in again")

// nameOf returns whose a ticket is.
func nameOf(backend, ticket []byte, now time.Time) (string, error) {
	if len(ticket) < 8+sha256.Size {
		return "", errTicket
	}
	expires, mac, name := ticket[:8], ticket[8:8+sha256.Size], string(ticket[8+sha256.Size:])
	if !hmac.Equal(mac, seal(backend, expires, name)) || now.Unix() > int64(binary.LittleEndian.Uint64(expires)) {
		return "", errTicket
	}
	return name, nil
}

// README: begin guide-door

// door is what stands between an open port and the game.
func door(key *ecdh.PrivateKey, backend []byte, clock ackbits.Clock) endpoint.ServerConfig {
	return endpoint.ServerConfig{
		Key:           key,
		Clock:         clock,
		MaxPeers:      100, // what the machine can carry
		MaxPerAddress: 4,   // a household's; with 100, one attacker takes every seat
		Session: ackbits.Config{
			Adaptive: true, Bundle: true, // both ends are this library
			EventRate: 4000, // bytes of copies a second, whatever a peer acknowledges or not
		},
		Admit: func(r endpoint.Request) (reply []byte, err error) {
			if _, err := nameOf(backend, r.Hello, clock.Now()); err != nil {
				return nil, err // which the player reads
			}
			return []byte("welcome"), nil
		},
	}
}

// limit is what a peer may do in a second. The session bounds its memory; what it makes
// the game do is yours to bound.
type limit struct {
	since  time.Time
	events int
}

const maxEvents = 20 // a second; who types or shoots faster is a program

// take handles what a peer did, and throws it out if that was too much.
func (l *limit) take(incoming endpoint.Incoming, now time.Time) {
	if now.Sub(l.since) >= time.Second {
		*l = limit{since: now}
	}
	if l.events += len(incoming.Events); l.events > maxEvents {
		incoming.Peer.Session().Close()
	}
}

// replace ends the older session of a player who joins again, after a crash, say, or
// with a ticket that somebody has copied.
func replace(server *endpoint.Server, backend []byte, joined *endpoint.Peer) {
	name, _ := nameOf(backend, joined.Hello(), time.Time{}) // Admit has seen that it is in time
	for p := range server.Peers() {
		if other, _ := nameOf(backend, p.Hello(), time.Time{}); p != joined && other == name {
			p.Session().Close()
		}
	}
}

// README: end guide-door
