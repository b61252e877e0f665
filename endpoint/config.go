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

// What a caller chooses, the defaults and the checks of the values. What each choice
// does is where it is used.

// ServerConfig says how a Server or a Gate works. Key is required; the zero
// value of every other field stands for the choice that its comment names.
type ServerConfig struct {
	// Key is the server's identity, an X25519 key: clients that know its public
	// half talk to nobody else. It belongs to one server (its shards included): two
	// with one key can be played off against each other by Resets. Whoever steals it can
	// pose as the server and read the Hellos that were recorded, not the sessions.
	Key *ecdh.PrivateKey
	// Clock is what every call reads once; nil is the system's.
	Clock ackbits.Clock
	// Rand is read for secrets at the start and 40 bytes for each join; nil is
	// crypto/rand. A seeded one makes a test repeat itself. Where it fails nobody
	// is admitted. One that repeats, in a machine that is restored from a snapshot,
	// say, repeats keys, and then nothing is secret any more.
	Rand io.Reader
	// Session is the configuration of every session. Token, Clock, Seal and Open
	// are filled in. Clients need the same Wide.
	Session ackbits.Config
	// Admit decides on a client whose address is proved and whose hello opened;
	// nil admits all. The reply, up to MaxReply bytes, goes to the client in the
	// Accept. An error refuses it, with the error's text, cut to MaxReason bytes,
	// as the reason; ErrPending puts the decision off. A client that was admitted
	// before and comes back, after a crash, is a new one here: Admit knows both
	// by their hello, and may close the session of the older. It is called within
	// Receive, and must not call Receive or range over Due.
	//
	// It is asked when there is no seat, too. Whom it lets in then is put off once, and
	// is in if there is one when its next Hello asks again, 250 ms later: the Left of the
	// older session was fetched, or End told of it. Otherwise it is refused.
	Admit func(Request) (reply []byte, err error)
	// MaxPeers is how many sessions there may be; 0: 1,024. More are refused.
	MaxPeers int
	// MaxPerAddress is how many clients there may be at one IPv4 address or in
	// one IPv6 /64, those that left or were refused less than 20 s ago included;
	// 0: 16. Smaller, households and schools behind one address do not get in;
	// larger, one attacker takes more seats. It is the join rate of an address as well,
	// so many in 20 s, whatever Admit says: somebody who reconnects a 17th time within 20 s waits.
	// For a farm of bots at one address, or a test on one machine, set it to how many of
	// them join in 20 s, those that come again included.
	MaxPerAddress int
	// AEAD makes the protection of sessions from a key of 32 bytes; nil is
	// AES-256-GCM, which the handshake itself always uses. Clients need the same.
	AEAD func(key []byte) (cipher.AEAD, error)
	// Accept, of a Server, takes the place of Session.Accept and is told whose datagram
	// it is; its Joined may not have been fetched yet. See ackbits.Config.Accept.
	Accept func(p *Peer, h ackbits.Header, payload []byte) error
}

// Request is a client that asks to be admitted.
type Request struct {
	Addr  netip.AddrPort // proved: it got what was sent there
	Hello []byte         // what the client says of itself; the callee's to keep
}

// ClientConfig says how a Client works.
type ClientConfig struct {
	// ServerKey is the server's public key, which came with the game or from a
	// backend. With nil the client trusts whoever answers: an eavesdropper learns
	// nothing, but one on the path can pose as the server, read Hello and sit in
	// between.
	ServerKey *ecdh.PublicKey
	// Hello is what the server's Admit sees, up to MaxHello bytes: a name, a
	// version, a ticket. It is sealed, and its length does not show; but whoever
	// steals the server's key later can open it.
	Hello []byte
	// Clock is what every call reads once; nil is the system's.
	Clock ackbits.Clock
	// Rand is read for 32 bytes; nil is crypto/rand. See ServerConfig.Rand.
	Rand io.Reader
	// Session is the session's configuration. Token, Clock, Seal and Open are
	// filled in. The server needs the same Wide.
	Session ackbits.Config
	// AEAD is as ServerConfig.AEAD.
	AEAD func(key []byte) (cipher.AEAD, error)
	// Timeout is how long the client knocks; 0: 5 s. Longer than the server's
	// Session.Timeout helps only until the server has admitted the client: one that
	// it never hears of after that is given up, and has to come as a new Client.
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

// checkSession makes a session that nobody uses, so that a configuration which
// makes none is found at the start.
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
