package ackbits

import (
	"strconv"
	"time"
)

// Config says how a Session or ReliableChannel works. The zero value of every
// field stands for the protocol's own choice. Both peers need the same Token and
// the same Wide; Bundle needs a peer that understands it, not the same value. In all
// else they may differ (P-17.1.4, P-17.1.5).
type Config struct {
	// Token names the session. Take a fresh random one from the handshake: with
	// the token of an earlier session, everything looks Stale. 0 is a token like
	// any other. Both directions share it, so a datagram that comes back to its
	// sender looks like the peer's: let the socket layer check addresses (P-2.1.6).
	Token uint64
	// Clock is what every call reads once; nil is the system's.
	Clock Clock

	// Wide: headers of 22 bytes that carry 65 acknowledgements instead of 18
	// that carry 33, for rates at which 33 datagrams pass within a round trip or
	// between two datagrams of the other side. A session speaks one form.
	Wide bool
	// Ordered hands events over in the order of their ids. It keeps copies of
	// up to 255 that are ahead of a gap; nothing changes on the wire, but the
	// sender must keep to the span of 256 ids, as this library does. Events are
	// acknowledged when they arrive, so those that wait for a gap when a session
	// ends were delivered to this side but never handed over (P-9.1.3).
	Ordered bool

	// Heartbeat is the longest silence of ours; 0: 50 ms. Shorter costs
	// datagrams, longer delays acknowledgements until the peer resends for
	// nothing: with a second, and nothing else to send, it sends an event ten
	// times, unless it is Adaptive.
	Heartbeat time.Duration
	// Timeout is the longest silence of the peer; 0: 5 s. It must exceed
	// Heartbeat. Shorter ends sessions over a bad moment of the network, longer
	// leaves ghosts in the game.
	Timeout time.Duration
	// ResendDelay is how long an event waits for its acknowledgement until it is
	// sent again; 0: 100 ms. Below the round trip, which includes the peer's wait
	// for its next datagram, every event is sent more than once; far above it a
	// loss costs more than it must. Adaptive follows the round trip instead.
	ResendDelay time.Duration
	// LossDelay is how long after the projected arrival of its acknowledgement,
	// which is one smoothed round trip after it was sent, a datagram is taken
	// for lost; 0: 1 s. Shorter takes reordered and waiting acknowledgements for
	// losses; longer tells of losses late. Stats count a delivery at once and a
	// loss only then, so a young session seems to lose less than it does.
	LossDelay time.Duration
	// StallTimeout ends a session whose oldest undelivered event has been the
	// oldest, and on the wire, for so long, though datagrams arrive; 0: 15 s, or
	// Timeout where that is longer; negative: never. Shorter ends sessions over a
	// slow path, longer keeps those alive whose events cannot pass. Whatever it
	// is, a session ends with ErrStalled before it sends the 32,768th datagram
	// since the newest one acknowledged, half of the sequences there are: at 60 a
	// second that is 9 minutes, at 1,000 half a minute. A Timeout beyond that is
	// of use where less is sent.
	StallTimeout time.Duration
	// PollInterval is the tick of a caller that calls AppendDue on a tick rather
	// than at Deadline. Heartbeats then go early by up to that much, so that the
	// silence is never longer than Heartbeat; 0: the caller follows Deadline.
	PollInterval time.Duration

	// Backlog is how many events may be undelivered beyond the 256 that may be
	// on the wire; 65,024 at most. With 0 Send ends the session at 257.
	Backlog int
	// Outcomes queues an Outcome for every datagram sent, see NextOutcome.
	Outcomes bool

	// Adaptive resends an event when there is evidence or reason for it instead
	// of after ResendDelay: when datagrams sent after its last copy are
	// acknowledged and it is not, or nothing is for a round trip and some more;
	// and where the link is seen to lose, it sends copies of new events ahead.
	// It changes nothing on the wire and needs nothing of the peer.
	Adaptive bool
	// Bundle lets application datagrams carry events that are due (type 8), so
	// that an event costs its bytes and no datagram of its own. Call Send before
	// AppendDatagram, and AppendDue after it, for new events to ride along. A
	// peer that is not this library drops such datagrams. An event that was
	// resent twice goes in datagrams of its own from then on, for a peer that
	// withholds the ones it rode in.
	Bundle bool
	// EventRate is how many bytes of events a second, 4 + n each, resends and
	// extra copies may use, with one second of burst, half of which copies ahead
	// of a loss leave to the others; 0: no limit. First copies always go, and the
	// oldest undelivered event is resent once a second whatever the rate is: below
	// what the link loses, delivery slows down to that, and Room tells how far
	// Send is ahead of it.
	EventRate int
	// MaxEvent is the largest event that Send takes, in bytes; 0, or more than
	// fits: what fits, MaxEventSize or MaxWideEventSize if nothing else takes
	// room.
	MaxEvent int
	// MaxDatagram is the largest datagram that is sent, in bytes, header and seal
	// included: 128 to 1200, or 0 for 1200. It is for paths that swallow larger
	// ones, such as tunnels, relays and the datagrams of QUIC. What is received
	// may always have 1200 (P-2.1.2, P-6.5.1).
	MaxDatagram int

	// Seal and Open protect every datagram: the payload is secret, and nobody
	// without the keys can change or make up a datagram, or have one taken in
	// twice. Their keys must be fresh for this session and different for the two
	// directions: the number of a datagram is its nonce, so with one key for both,
	// or for two sessions, a nonce comes twice and the protection is gone (P-11.1.2). One
	// side's Seal has the key of the other's Open. A cipher.AEAD fits, such as
	// AES-GCM; tags of less than 12 bytes are for tests. Both or neither; nonces
	// of at least 8 bytes, an overhead of at most 64. The header stays readable.
	// Receive opens in place, so it overwrites what it is given.
	Seal, Open AEAD

	// Accept decides on an application datagram before it is acknowledged; nil
	// accepts all. It is asked about Newest and Late ones only. When it returns
	// nil, this Receive commits and hands over exactly that payload, so decode
	// in it. With ErrWithhold the datagram is not acknowledged and hands over
	// nothing, the events of a bundle included, but its own acknowledgements are
	// read; any other error drops it whole. Accept must not call the session, and
	// may keep payload no longer than the caller of Receive leaves it unchanged.
	Accept func(h Header, payload []byte) error
}

// The values of chapter 16 of docs/protocol.md; see Config for what breaks when they
// are smaller or larger. A peer may have others (P-17.1.3).
const (
	defaultHeartbeat    = 50 * time.Millisecond
	defaultTimeout      = 5 * time.Second
	defaultResendDelay  = 100 * time.Millisecond
	defaultLossDelay    = time.Second
	defaultStallTimeout = 15 * time.Second

	// minMaxDatagram leaves room for events beside the widest header and seal.
	minMaxDatagram = 128

	// maxBacklog keeps the ids that are in use, delivered ones behind a
	// straggler included, below 65,536 (P-5.2.5).
	maxBacklog = 1<<16 - 2*nearSpan
)

// complete checks the values and puts the defaults in the place of zeros.
func (cfg *Config) complete() error {
	for _, d := range []struct {
		field string
		value *time.Duration
		zero  time.Duration
	}{
		{"Heartbeat", &cfg.Heartbeat, defaultHeartbeat},
		{"Timeout", &cfg.Timeout, defaultTimeout},
		{"ResendDelay", &cfg.ResendDelay, defaultResendDelay},
		{"LossDelay", &cfg.LossDelay, defaultLossDelay},
		{"PollInterval", &cfg.PollInterval, 0},
	} {
		if *d.value < 0 {
			return invalid(d.field, d.value.String(), "is negative")
		}
		if *d.value == 0 {
			*d.value = d.zero
		}
	}
	if cfg.StallTimeout == 0 {
		cfg.StallTimeout = max(defaultStallTimeout, cfg.Timeout) // P-8.2.2
	}
	if cfg.Heartbeat >= cfg.Timeout {
		return invalid("Heartbeat", cfg.Heartbeat.String(), "is not below Timeout, "+cfg.Timeout.String())
	}
	for _, n := range []struct {
		field string
		value int
	}{{"Backlog", cfg.Backlog}, {"EventRate", cfg.EventRate}, {"MaxEvent", cfg.MaxEvent}} {
		if n.value < 0 {
			return invalid(n.field, strconv.Itoa(n.value), "is negative")
		}
	}
	if cfg.Backlog > maxBacklog {
		return invalid("Backlog", strconv.Itoa(cfg.Backlog), "is more than "+strconv.Itoa(maxBacklog))
	}
	if cfg.MaxDatagram == 0 {
		cfg.MaxDatagram = MaxDatagramSize
	}
	if cfg.MaxDatagram < minMaxDatagram || cfg.MaxDatagram > MaxDatagramSize {
		return invalid("MaxDatagram", strconv.Itoa(cfg.MaxDatagram), "is not 128 to 1200")
	}
	if err := cfg.checkSeal(); err != nil {
		return err
	}
	if fits := cfg.maxPayload() - listOverhead - eventOverhead; cfg.MaxEvent == 0 || cfg.MaxEvent > fits {
		cfg.MaxEvent = fits
	}
	return nil
}

// checkSeal checks Seal and Open.
func (cfg *Config) checkSeal() error {
	if cfg.Seal == nil && cfg.Open == nil {
		return nil
	}
	for _, a := range []struct {
		field string
		aead  AEAD
	}{{"Seal", cfg.Seal}, {"Open", cfg.Open}} {
		switch {
		case a.aead == nil:
			return invalid(a.field, "nil", "does not go with the other direction's AEAD")
		case a.aead.NonceSize() < minNonce:
			return invalid(a.field, "nonces of "+strconv.Itoa(a.aead.NonceSize())+" bytes", "has no room for the 8 of a number")
		case a.aead.Overhead() < 0 || a.aead.Overhead() > maxSealOverhead:
			return invalid(a.field, "an overhead of "+strconv.Itoa(a.aead.Overhead())+" bytes", "is not 0 to 64")
		}
	}
	return nil
}

// maxPayload returns how many bytes of payload a datagram has room for, of a
// Config that was completed.
func (cfg *Config) maxPayload() int {
	n := cfg.MaxDatagram - headerSize(cfg.Wide)
	if cfg.Seal != nil {
		n -= cfg.Seal.Overhead()
	}
	return n
}

func invalid(field, value, why string) error {
	return &valueError{ErrConfig, field + " of " + value + " " + why}
}
