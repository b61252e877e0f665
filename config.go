package ackbits

import (
	"strconv"
	"time"
)

// What a caller chooses: Config, its defaults and the checks of its values. What each
// choice does is where it is used.

// Config configures a Session or ReliableChannel. The zero value of every field is
// its default, the protocol's own; NewSession and NewReliableChannel refuse invalid
// values with ErrConfig. Both peers need the same Token and the same Wide, and sealed
// sessions keys that match. Bundle needs a peer that understands it. Everything else
// may differ between them (P-17.1.4, P-17.1.5).
type Config struct {
	// Token names the session. Take a fresh random one from the handshake: with
	// the token of an earlier session, every datagram looks Stale. 0 is a token like
	// any other. Both directions share it, so a datagram that is reflected to its
	// sender looks like the peer's: let the socket layer check addresses (P-2.1.6).
	Token uint64
	// Clock is read once in every call that depends on time. If nil, the system's.
	Clock Clock

	// Wide selects headers of 22 bytes, which acknowledge the newest datagram and
	// the 64 before it, instead of 18 bytes for the newest and the 32 before it. It
	// is for rates at which more than 33 datagrams arrive within a round trip, or
	// between two datagrams that this side sends. A session has one form.
	Wide bool
	// Ordered delivers events in the order of their ids. The receiver keeps copies of
	// up to 255 events that wait for a missing one. Nothing changes on the wire, but
	// the sender must keep to the window of 256 ids, as this library does. Events are
	// acknowledged when they arrive. So those that still wait for a missing one when
	// the session ends count as delivered at the sender, but the application never
	// gets them (P-9.1.3).
	Ordered bool

	// Heartbeat is the maximum interval without sending; then a heartbeat goes out.
	// If 0, 50 ms; it must be below Timeout. Shorter costs datagrams. Longer delays
	// acknowledgements until the peer retransmits needlessly: with one second, and
	// nothing else to send, the peer sends each event ten times unless it is Adaptive.
	Heartbeat time.Duration
	// Timeout ends the session with ErrTimeout after this long without a datagram
	// that was Newest or Late. If 0, 5 s; it must be above Heartbeat. Shorter ends
	// sessions over a short outage; longer keeps lost players in the game.
	Timeout time.Duration
	// ResendDelay is how long after the last copy of an event the next is sent,
	// unless it was acknowledged. If 0, 100 ms. Below the round-trip time, which
	// includes the peer's wait for its next datagram, every event is sent more than
	// once; far above it, a lost event arrives later than it could. With Adaptive it
	// counts only until the first RTT sample.
	ResendDelay time.Duration
	// LossDelay decides when a datagram is declared lost: smoothed RTT + LossDelay
	// after it was sent. If 0, 1 s. Shorter takes reordered or delayed
	// acknowledgements for losses; longer reports losses late. A delivery counts at
	// once and a loss only then, so Stats under-report loss at the start.
	LossDelay time.Duration
	// StallTimeout ends the session with ErrStalled once the oldest undelivered event
	// has been the oldest, and on the wire, for so long, although datagrams arrive.
	// If 0, 15 s, or Timeout where that is longer; negative: never. Shorter ends
	// sessions over a slow path; longer keeps sessions alive whose events cannot get
	// through. Whatever its value, a session ends with ErrStalled before it sends the
	// 32,768th datagram since the newest one acknowledged, half of all sequences: at
	// 60 a second that takes 9 minutes, at 1,000 half a minute. A Timeout longer than
	// that is of use only to a session that sends less.
	StallTimeout time.Duration
	// PollInterval is for a caller that calls AppendDue on a tick: the length of that
	// tick. Heartbeats are then sent up to so much earlier, so that the interval
	// without sending never exceeds Heartbeat, and what Adaptive spreads over time is
	// sent a tick's worth at each. 0: the caller wakes at Deadline.
	PollInterval time.Duration

	// Backlog is how many events may be undelivered beyond the 256 that may be on the
	// wire: 0 to 65,024. With 0, the Send that would make 257 ends the session.
	Backlog int
	// Outcomes queues an Outcome for every datagram sent, see NextOutcome.
	Outcomes bool

	// Adaptive replaces the fixed ResendDelay by loss detection. An event is
	// retransmitted when datagrams sent after its last copy are acknowledged and that
	// copy is not (fast retransmit), or after a timeout that follows the smoothed RTT.
	// On a link that loses datagrams, new events also get proactive copies. Adaptive
	// also limits events to what the link carries: the rest wait and are sent spread
	// over time, and proactive copies stop while there is a queue on the link. It
	// changes nothing on the wire and needs nothing of the peer.
	Adaptive bool
	// Bundle lets application datagrams carry events that are due (type 8), so that an
	// event costs its bytes and no datagram of its own. For new events to ride along,
	// call Send before AppendDatagram, and AppendDue after it. A peer that does not
	// understand bundles drops such datagrams. An event that was retransmitted twice
	// goes in datagrams of its own from then on, in case the peer withholds the
	// datagrams that carried it.
	Bundle bool
	// EventRate limits all copies of events but the first ones, in bytes a second,
	// 4 + n for an event of n bytes. 0: no limit. It is a token bucket, one second
	// deep, of which proactive copies may use at most half. It never delays a first
	// copy, and the oldest undelivered event is retransmitted once a second whatever
	// the rate. If the link loses more than this rate replaces, delivery slows down,
	// and Room shrinks.
	EventRate int
	// MaxEvent is the largest event that Send accepts, in bytes. If 0, or more than
	// fits into a datagram: what fits, which is MaxEventSize or MaxWideEventSize less
	// what MaxDatagram and Seal take.
	MaxEvent int
	// MaxDatagram is the largest datagram that is sent, in bytes, header and seal
	// included: 128 to 1200. If 0, 1200. It is for paths that drop larger ones, such
	// as tunnels, relays and QUIC datagrams. The peer's may have up to 1200 bytes
	// all the same (P-2.1.2, P-6.5.1).
	MaxDatagram int

	// Seal and Open protect every datagram: the payload is secret, and without the
	// keys nobody can change a datagram, make one up, or have one accepted twice. Set
	// both or neither. The key of one side's Seal is the key of the other's Open. Keys
	// must be fresh for this session and different for the two directions: the number
	// of a datagram is its nonce, so with one key for both directions or two sessions
	// a nonce is used twice, and the protection is gone (P-11.1.2). A cipher.AEAD fits,
	// such as AES-GCM. Nonces must have at least 8 bytes and the overhead at most 64;
	// tags of less than 12 bytes are for tests. The header stays readable. Receive
	// opens in place, so it overwrites the datagram that it is given.
	Seal, Open AEAD

	// Accept decides on an application datagram before it is acknowledged; nil
	// accepts all. It is asked about Newest and Late ones only. If it returns nil, this
	// same Receive delivers exactly that payload, so you may decode in Accept. If it
	// returns ErrWithhold, the datagram is not acknowledged and nothing of it is
	// delivered, the events of a bundle included, but the acknowledgements in its
	// header are read. Any other error drops it as a whole (ErrRejected). Accept must
	// not call the session. payload belongs to the caller of Receive, as the rest of
	// the datagram does: copy what must outlive it.
	Accept func(h Header, payload []byte) error
}

// The defaults, from chapter 16 of docs/protocol.md. Config says what goes wrong if
// they are smaller or larger. A peer may have others (P-17.1.3).
const (
	defaultHeartbeat    = 50 * time.Millisecond
	defaultTimeout      = 5 * time.Second
	defaultResendDelay  = 100 * time.Millisecond
	defaultLossDelay    = time.Second
	defaultStallTimeout = 15 * time.Second

	// minMaxDatagram leaves room for events beside the wide header and the largest
	// overhead of a seal. Smaller, and such a session could send none; larger, and
	// a narrow path could not be used for nothing gained.
	minMaxDatagram = 128

	// maxBacklog keeps the number of ids in use below 65,536, including those of
	// events that were delivered while an older one was not (P-5.2.5).
	maxBacklog = 1<<16 - 2*eventWindow
)

// complete replaces zeros by the defaults and checks the values.
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

// checkSeal checks that Seal and Open are both set or both nil, and of usable sizes.
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

// maxPayload returns how many bytes of payload a datagram has room for. The Config
// must be complete.
func (cfg *Config) maxPayload() int {
	n := cfg.MaxDatagram - headerSize(cfg.Wide)
	if cfg.Seal != nil {
		n -= cfg.Seal.Overhead()
	}
	return n
}

// invalid returns an ErrConfig that names the field and its value.
func invalid(field, value, why string) error {
	return &valueError{ErrConfig, field + " of " + value + " " + why}
}
