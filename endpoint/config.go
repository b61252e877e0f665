package endpoint

import (
	"crypto/cipher"
	"crypto/ecdh"
	"crypto/rand"
	"fmt"
	"io"
	"net/netip"
	"time"

	"github.com/ackbits/ackbits"
)

// What a caller chooses, the defaults, and the checks of the values. What a choice does
// is in the file that uses it.

// ServerConfig configures a Server or a Gate. Key is required; the zero value of every
// other field is its default. NewServer and NewGate refuse invalid values with
// ackbits.ErrConfig.
type ServerConfig struct {
	// Key is the server's identity, an X25519 key: a client that knows its public half
	// joins no other server. Give each server its own (the shards of one server share
	// one): if two servers had the same, an attacker could use the Resets of one to end
	// sessions of the other. Whoever steals the key can pose as the server and read the
	// Hellos that were recorded, but no sessions.
	Key *ecdh.PrivateKey
	// Clock is read once in every call that depends on time. If nil, the system's.
	Clock ackbits.Clock
	// Rand is the source of secrets: 64 bytes at the start, 40 for each join, 16 for each
	// refusal. If nil, crypto/rand. A seeded one makes a test repeatable. If it fails,
	// nobody is admitted. It must never repeat itself, as in a virtual machine that is
	// restored from a snapshot: then keys repeat, and nothing is secret any more.
	Rand io.Reader
	// Session configures every session. Token, Clock, Seal and Open are filled in.
	// Clients need the same Wide.
	Session ackbits.Config
	// Admit decides on a client that has proved its address and whose hello has opened;
	// nil admits every one. The reply, up to MaxReply bytes, goes to the client in the
	// Accept. An error refuses the client, and the error's text, cut to MaxReason bytes,
	// is the reason that it gets; ErrPending puts the decision off. A client that was
	// admitted before and comes back, after a crash for example, is a new client here:
	// Admit can recognize it by its hello and close the older session. Admit is called
	// within Receive, and must not call Receive or range over Due.
	//
	// Admit is asked even if the server is full. If it then admits a client, the client
	// is put off once, until its next Hello 250 ms later. It joins if a seat is free by
	// then, because the Left of an older session was fetched or End was called; otherwise
	// it is refused.
	Admit func(Request) (reply []byte, err error)
	// MaxPeers is how many sessions there may be at once. If 0, 1,024. Further clients are
	// refused.
	MaxPeers int
	// MaxPerAddress is how many clients there may be at one IPv4 address, or in one IPv6
	// /64, including those that left or were refused less than 20 s ago. If 0, 16. So it
	// also limits how fast clients of one address can join, whatever Admit says: with 16,
	// somebody who reconnects for the 17th time within 20 s has to wait. Smaller locks
	// out households and schools behind one address; larger gives one attacker more
	// seats. For bots or tests that share an address, set it to the number of joins
	// within 20 s, reconnects included.
	MaxPerAddress int
	// AEAD makes the cipher of a session from a key of 32 bytes. If nil, AES-256-GCM,
	// which the handshake itself always uses. Clients need the same.
	AEAD func(key []byte) (cipher.AEAD, error)
	// Accept is for a Server: it replaces Session.Accept and also gets the peer whose
	// datagram it is. The peer's Joined may not have been fetched yet. See
	// ackbits.Config.Accept.
	Accept func(p *Peer, h ackbits.Header, payload []byte) error
}

// Request is a client that asks to be admitted.
type Request struct {
	Addr  netip.AddrPort // proved: the client receives what is sent there
	Hello []byte         // ClientConfig.Hello, up to MaxHello bytes; a copy that Admit may keep
}

// ClientConfig configures a Client. The zero value of every field is its default;
// NewClient refuses invalid values with ackbits.ErrConfig.
type ClientConfig struct {
	// ServerKey is the server's public key, which came with the game or from a backend.
	// If nil, the client trusts whoever answers: a mere eavesdropper still learns
	// nothing, but an attacker on the path can pose as the server, read Hello and relay
	// the game.
	ServerKey *ecdh.PublicKey
	// Hello is what the server's Admit sees: a name, a version, a ticket; up to MaxHello
	// bytes. It is sealed, and its length does not show. But whoever steals the server's
	// key later can open a recording of it.
	Hello []byte
	// Clock is read once in every call that depends on time. If nil, the system's.
	Clock ackbits.Clock
	// Rand is read for 32 bytes. If nil, crypto/rand. See ServerConfig.Rand.
	Rand io.Reader
	// Session configures the session. Token, Clock, Seal and Open are filled in. The
	// server needs the same Wide.
	Session ackbits.Config
	// AEAD is like ServerConfig.AEAD, and must be the same.
	AEAD func(key []byte) (cipher.AEAD, error)
	// Timeout is how long the client tries to join. If 0, 5 s. A value above the Timeout
	// of the server's sessions helps only while the server has not admitted the client. A
	// server that has admitted it, and then hears nothing of the session for its Timeout,
	// ends the session; the client then has to try again as a new Client.
	Timeout time.Duration
}

const (
	defaultMaxPeers      = 1024
	defaultMaxPerAddress = 16
	defaultTimeout       = 5 * time.Second
)

// complete checks the values and puts the defaults in the place of zeros.
func (cfg *ServerConfig) complete() error {
	if cfg.Key == nil {
		return invalid("Key is missing")
	}
	if cfg.Key.Curve() != ecdh.X25519() {
		return invalid("Key is of %v, not of X25519", cfg.Key.Curve())
	}
	for _, n := range []struct {
		field string
		value *int
		zero  int
	}{{"MaxPeers", &cfg.MaxPeers, defaultMaxPeers}, {"MaxPerAddress", &cfg.MaxPerAddress, defaultMaxPerAddress}} {
		if *n.value < 0 {
			return invalid("%s of %d is negative", n.field, *n.value)
		}
		if *n.value == 0 {
			*n.value = n.zero
		}
	}
	if cfg.Rand == nil {
		cfg.Rand = rand.Reader
	}
	if cfg.AEAD == nil {
		cfg.AEAD = newGCM
	}
	return checkSession(cfg.Session, cfg.Clock, cfg.AEAD)
}

func (cfg *ClientConfig) complete() error {
	if cfg.ServerKey != nil && cfg.ServerKey.Curve() != ecdh.X25519() {
		return invalid("ServerKey is of %v, not of X25519", cfg.ServerKey.Curve())
	}
	if len(cfg.Hello) > MaxHello {
		return invalid("Hello of %d bytes is more than %d", len(cfg.Hello), MaxHello)
	}
	if cfg.Timeout < 0 {
		return invalid("Timeout of %v is negative", cfg.Timeout)
	}
	if cfg.Timeout == 0 {
		cfg.Timeout = defaultTimeout
	}
	if cfg.Rand == nil {
		cfg.Rand = rand.Reader
	}
	if cfg.AEAD == nil {
		cfg.AEAD = newGCM
	}
	return checkSession(cfg.Session, cfg.Clock, cfg.AEAD)
}

// checkSession makes a session that nobody uses, so that an invalid configuration is
// found at the start.
func checkSession(cfg ackbits.Config, clock ackbits.Clock, aead func([]byte) (cipher.AEAD, error)) error {
	box, err := aead(make([]byte, keySize))
	if err != nil {
		return fmt.Errorf("%w: AEAD: %w", ackbits.ErrConfig, err)
	}
	cfg.Clock, cfg.Seal, cfg.Open = clock, box, box
	_, err = ackbits.NewSession(cfg)
	return err
}

func invalid(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ackbits.ErrConfig, fmt.Sprintf(format, args...))
}
