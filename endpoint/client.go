package endpoint

import (
	"bytes"
	"crypto/ecdh"
	"crypto/sha256"
	"crypto/subtle"
	"iter"
	"time"

	"github.com/ackbits/ackbits"
)

const (
	// helloInterval is how long a client waits for an answer to its Hello.
	// Shorter, the servers of a game that begins are asked more often than they
	// can answer; longer, a Hello that is lost delays the join more.
	helloInterval = int64(250 * time.Millisecond)

	// triesEach is how many answers a client computes for between two Hellos.
	// Fewer, forged ones keep the true one out; more, they cost more.
	triesEach = 8
)

// Client is one attempt to join a server, and the session that comes of it. It
// is not safe for concurrent use.
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
// To leave, call Shutdown or Close of the session and go on as before until Err
// is not nil.
type Client struct {
	cfg     ClientConfig
	time    timeline
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

// knocking is what a client learns while it is not admitted yet.
type knocking struct {
	server      *ecdh.PublicKey // that challenged last; nil: none did
	static      []byte          // the secret of its key and ours
	cookie      [cookieSize]byte
	shown       bool // a Hello with a cookie went out
	tries       int  // answers that may be computed for until the next Hello
	wrongKey    bool // somebody challenged with another key than ServerKey
	wrongSpeech bool // somebody challenged in another version
}

// NewClient returns a client that begins to knock now. What is wrong with cfg is
// ackbits.ErrConfig, and the error names it; an error of Rand is returned.
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
	c.knocks.tries = triesEach
	c.time.start(cfg.Clock)
	return c, nil
}

// Receive takes in a datagram that came from the server's address, which the
// socket's layer checks, as a connected socket does. Of the session's it returns
// what Session.Receive returns, under the same conditions; of the handshake
// nothing. An error says why a datagram was dropped; once the client has ended,
// for which reason.
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

// handshake takes in a message of the handshake.
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

// receiveChallenge takes the cookie of a Challenge that may be the server's. One that
// may not is only remembered: a forged one must end nothing (P-13.2.3).
func (c *Client) receiveChallenge(datagram []byte) error {
	ch, err := parseChallenge(datagram)
	if err != nil {
		return err
	}
	w := &c.knocks
	switch {
	case ch.clientKey != c.key:
		return ackbits.ErrForged
	case ch.version != version:
		w.wrongSpeech = true
		return nil
	case c.cfg.ServerKey != nil && !bytes.Equal(ch.serverKey[:], c.cfg.ServerKey.Bytes()):
		w.wrongKey = true
		return nil
	}
	if w.server == nil || !bytes.Equal(w.server.Bytes(), ch.serverKey[:]) {
		if !w.try() {
			return nil
		}
		static, ok := exchange(c.private, ch.serverKey[:])
		if !ok {
			return ackbits.ErrForged
		}
		w.server, _ = ecdh.X25519().NewPublicKey(ch.serverKey[:]) // it was one just now
		w.static = static
	}
	w.cookie = ch.cookie
	if !w.shown { // the first is answered at once, others with the next Hello
		c.nextAt = c.time.read()
	}
	return nil
}

// try counts an answer that costs a computation; not ok if there were enough.
func (w *knocking) try() (ok bool) {
	if w.tries == 0 {
		return false
	}
	w.tries--
	return true
}

// parties returns what the keys are bound to.
func (c *Client) parties() parties {
	p := parties{form: formOf(c.cfg.Session.Wide), clientKey: c.key}
	copy(p.serverKey[:], c.knocks.server.Bytes())
	return p
}

// receiveAccept opens an Accept, whichever Hello it answers, and begins the session
// (P-13.2.7).
func (c *Client) receiveAccept(datagram []byte) error {
	ephemeral, head, box, err := splitAccept(datagram)
	if err != nil {
		return err
	}
	if c.knocks.server == nil || !c.knocks.try() {
		return nil
	}
	fresh, ok := exchange(c.private, ephemeral)
	if !ok {
		return ackbits.ErrForged
	}
	p := c.parties()
	agreed := p.agree(c.knocks.static, fresh, ephemeral, c.hello)
	plain, ok := openBox(nil, agreed.acceptKey(), box, head)
	if !ok {
		return ackbits.ErrForged
	}
	terms, err := parseGrant(plain)
	if err != nil {
		return err
	}
	keys := agreed.session(datagram)
	cfg := c.cfg.Session
	cfg.Token, cfg.Clock = terms.token, c.cfg.Clock
	if cfg.Seal, cfg.Open, err = aeads(c.cfg.AEAD, keys.toServer, keys.toClient); err != nil {
		return c.end(err)
	}
	if c.session, err = ackbits.NewSession(cfg); err != nil {
		return c.end(err)
	}
	c.token, c.code, c.reply, c.probe = terms.token, terms.code, terms.reply, keys.probe
	c.private, c.knocks = nil, knocking{} // what could open this session again is forgotten (P-13.3.3)
	return nil
}

// receiveRefuse opens a Refuse and ends the attempt.
func (c *Client) receiveRefuse(datagram []byte) error {
	salt, head, box, err := splitRefuse(datagram)
	if err != nil {
		return err
	}
	if c.knocks.server == nil || !c.knocks.try() {
		return nil
	}
	p := c.parties()
	reason, ok := openBox(nil, p.refuseKey(c.knocks.static, salt), box, head)
	if !ok {
		return ackbits.ErrForged
	}
	c.end(&RefusedError{Reason: string(reason)})
	return nil
}

// receiveReset ends the session if the server says so that began it. A code that
// is not right says nothing (P-13.5.2).
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
	// Nobody hears the session any more: it ends without a farewell.
	c.session.Close()
	var unsaid [ackbits.MaxDatagramSize]byte
	for range c.session.Due(unsaid[:]) {
	}
	return nil
}

// receiveProbe has a Probe answered by the next Due (P-13.4.3). One reply waits at
// most.
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

// Due yields every datagram that is due, each built from buf[:0] and valid until
// the next: Hellos until the client is admitted, then the session's and replies
// to probes. A buf of ackbits.MaxDatagramSize bytes fits them all. Breaking off
// leaves the rest due. It is here that the client finds out that nobody answered.
func (c *Client) Due(buf []byte) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		now := c.time.read()
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

// dueHello yields the Hello that is due, if one is, or ends the attempt (P-13.2.1).
func (c *Client) dueHello(buf []byte, now int64, yield func([]byte) bool) {
	if now >= c.endsAt {
		c.end(c.silence())
		return
	}
	if now < c.nextAt {
		return
	}
	c.nextAt = now + helloInterval
	w := &c.knocks
	w.tries = triesEach
	h := hello{version: version, form: formOf(c.cfg.Session.Wide), key: c.key}
	if w.server == nil {
		yield(h.appendBare(buf[:0]))
		return
	}
	w.shown = true
	h.cookie = w.cookie
	p := c.parties()
	head := h.appendHead(buf[:0])
	yield(sealBox(head, p.helloKey(w.static, w.cookie[:]), padHello(c.cfg.Hello), head))
}

// silence returns why nobody admitted the client.
func (c *Client) silence() error {
	switch {
	case c.knocks.server != nil:
		return ErrNoAnswer
	case c.knocks.wrongKey:
		return ErrServerKey
	case c.knocks.wrongSpeech:
		return ErrVersion
	}
	return ErrNoAnswer
}

// Deadline returns when Due next has something to do, as far as is known at the
// last call; any call may change it, and any of the session's. It is not ok once
// the client has ended.
func (c *Client) Deadline() (t time.Time, ok bool) {
	switch {
	case c.Err() != nil:
		return time.Time{}, false
	case c.session == nil:
		return c.time.time(min(c.nextAt, c.endsAt)), true
	case c.isAsked:
		return c.time.last, true
	}
	return c.session.Deadline()
}

// Session returns the session; nil until the client is admitted. It stays, after
// the end too, for what is to be asked of it then, such as Undelivered.
func (c *Client) Session() *ackbits.Session { return c.session }

// Reply returns what the server's Admit said, up to MaxReply bytes; nil until the
// client is admitted.
func (c *Client) Reply() []byte { return c.reply }

// Err returns the reason for which the client has ended: ErrRefused (a
// *RefusedError, with the reason), ErrServerKey, ErrVersion, ErrNoAnswer,
// ErrReset, or the session's. It is nil before, and reads no clock.
func (c *Client) Err() error {
	if c.err == nil && c.session != nil {
		return c.session.Err()
	}
	return c.err
}
