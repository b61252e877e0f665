package endpoint

import (
	"bytes"
	"crypto/ecdh"
	"crypto/sha256"
	"crypto/subtle"
	"iter"
	"time"

	"github.com/ackbits/ackbits"
	"github.com/ackbits/ackbits/internal/timeline"
)

// Client: its calls, and the session that it joins. The handshake until then is in
// knock.go; the server's side is in gate.go and server.go.

// Client is one attempt to join a server, and then the session. It is not safe for
// concurrent use.
//
//	for each datagram that has arrived in inBuf {
//		in, err := c.Receive(inBuf[:n])
//		… in.Events, in.Payload as those of a session …
//		for datagram := range c.Due(outBuf) { conn.Write(datagram) }
//	}
//	if s := c.Session(); s != nil { s.Send(event); … }
//	for datagram := range c.Due(outBuf) { conn.Write(datagram) }
//	if c.Err() != nil { … }
//
// To leave, call Shutdown or Close of the session, and keep the loop going until Err is
// not nil.
type Client struct {
	cfg     ClientConfig
	time    timeline.Timeline
	private *ecdh.PrivateKey
	key     [keySize]byte
	hello   [sha256.Size]byte // hash of cfg.Hello

	endsAt int64
	nextAt int64 // of a Hello
	knocks knocking
	err    error

	session *ackbits.Session
	reply   []byte
	token   uint64
	code    [codeSize]byte // of a Reset
	probe   []byte         // key of replies to probes
	asked   [codeSize]byte // by a Probe that waits for its reply
	isAsked bool
}

// NewClient returns a client that begins to join now. If a value of cfg is invalid, the
// error is ackbits.ErrConfig and names it; an error of Rand is returned as it is.
// cfg.Hello is copied.
func NewClient(cfg ClientConfig) (*Client, error) {
	if err := cfg.complete(); err != nil {
		return nil, err
	}
	cfg.Hello = bytes.Clone(cfg.Hello)
	private, err := newKey(cfg.Rand)
	if err != nil {
		return nil, err
	}
	c := &Client{cfg: cfg, private: private, hello: sha256.Sum256(cfg.Hello), endsAt: int64(cfg.Timeout)}
	copy(c.key[:], private.PublicKey().Bytes())
	c.knocks = newKnocking()
	c.time.Start(cfg.Clock)
	return c, nil
}

// Receive handles a datagram of the server. The caller has checked that it came from the
// server's address, as a connected socket does. For a datagram of the session it returns
// what Session.Receive returns, and under the same conditions: the datagram may be
// overwritten, and the result is part of it. For one of the handshake it returns an empty
// Incoming. The error says why a datagram was dropped; once the client has ended, it is
// the reason.
func (c *Client) Receive(datagram []byte) (ackbits.Incoming, error) {
	if err := c.Err(); err != nil {
		return ackbits.Incoming{}, err
	}
	if k, ok := handshakeKind(datagram); ok {
		return ackbits.Incoming{}, c.handshake(k, datagram)
	}
	if c.session == nil {
		return ackbits.Incoming{}, ackbits.ErrToken // of a session that is not ours yet
	}
	return c.session.Receive(datagram)
}

// handshake handles a message of the handshake.
func (c *Client) handshake(k kind, datagram []byte) error {
	switch {
	case k == kindReset && c.session != nil:
		return c.receiveReset(datagram)
	case k == kindProbe && c.session != nil:
		return c.receiveProbe(datagram)
	case k == kindChallenge && c.session == nil:
		return c.receiveChallenge(datagram)
	case k == kindAccept && c.session == nil:
		return c.receiveAccept(datagram)
	case k == kindRefuse && c.session == nil:
		return c.receiveRefuse(datagram)
	case kindChallenge <= k && k <= kindProbe:
		return nil // late, or early
	}
	return ackbits.ErrType
}

// receiveReset ends the session if the Reset comes from the server that began it. One
// with a wrong code changes nothing (P-13.5.2).
func (c *Client) receiveReset(datagram []byte) error {
	token, code, err := parseCode(datagram)
	if err != nil {
		return err
	}
	if token != c.token {
		return ackbits.ErrToken
	}
	if subtle.ConstantTimeCompare(code, c.code[:]) != 1 {
		return ackbits.ErrForged
	}
	c.end(ErrReset)
	// Nobody hears the session any more: it ends without a Disconnect.
	c.session.Close()
	var unsaid [ackbits.MaxDatagramSize]byte
	for range c.session.Due(unsaid[:]) {
	}
	return nil
}

// receiveProbe keeps the Probe, which the next Due answers (P-13.4.3). Only the latest is
// kept.
func (c *Client) receiveProbe(datagram []byte) error {
	token, asked, err := parseCode(datagram)
	if err != nil {
		return err
	}
	if token != c.token {
		return ackbits.ErrToken
	}
	copy(c.asked[:], asked)
	c.isAsked = true
	return nil
}

// end ends the client with a reason, which it returns.
func (c *Client) end(reason error) error {
	c.err = reason
	c.private, c.knocks = nil, knocking{}
	return reason
}

// Due yields every datagram that is due: Hellos until the client is admitted, then those
// of the session and replies to probes. Each is built in buf, from its start, and valid
// until the next; ackbits.MaxDatagramSize bytes suffice for all. If the loop breaks, the
// rest stays due. Only Due detects that Timeout has passed.
func (c *Client) Due(buf []byte) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		now := c.time.Read()
		if c.err != nil {
			return
		}
		if c.session == nil {
			c.dueHello(buf, now, yield)
			return
		}
		if c.isAsked {
			c.isAsked = false
			reply := shortMAC(c.probe, c.asked[:])
			if !yield(appendCode(buf[:0], kindProbeReply, c.token, reply[:])) {
				return
			}
		}
		for datagram := range c.session.Due(buf) {
			if !yield(datagram) {
				return
			}
		}
	}
}

// Deadline returns when Due next has something to do, as far as the last call knew; any
// call of the client or its session may change it. ok is false once the client has ended.
func (c *Client) Deadline() (t time.Time, ok bool) {
	switch {
	case c.Err() != nil:
		return time.Time{}, false
	case c.session == nil:
		return c.time.Time(min(c.nextAt, c.endsAt)), true
	case c.isAsked:
		return c.time.Last, true
	}
	return c.session.Deadline()
}

// Session returns the session, or nil until the client is admitted. It is still there
// after the end, for Undelivered, Stats and the like.
func (c *Client) Session() *ackbits.Session { return c.session }

// Reply returns what the server's Admit replied, up to MaxReply bytes, or nil until the
// client is admitted. It must not be changed.
func (c *Client) Reply() []byte { return c.reply }

// Err returns why the client has ended, or nil if it has not: ErrRefused (a
// *RefusedError, which has the reason), ErrServerKey, ErrVersion, ErrNoAnswer, ErrReset,
// or the session's error. It reads no clock.
func (c *Client) Err() error {
	if c.err == nil && c.session != nil {
		return c.session.Err()
	}
	return c.err
}
