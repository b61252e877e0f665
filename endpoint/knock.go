package endpoint

import (
	"bytes"
	"crypto/ecdh"
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
