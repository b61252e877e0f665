package endpoint

import (
	"bytes"
	"iter"
	"slices"
	"time"

	"github.com/ackbits/ackbits"
)

// The handshake at the client: when it sends a Hello, with which cookie, and how it
// handles the answers. The calls of the application are in client.go.

const (
	// helloInterval is how long a client waits for an answer to its Hello. Shorter asks
	// servers more often than they can answer when many players join; longer delays the
	// join when a Hello is lost.
	helloInterval = int64(250 * time.Millisecond)

	// triesPerSecond is how many answers a client computes X25519 for, of which
	// triesBurst may come at once. Each costs some 50 µs, so together they take at most 5
	// % of a core. Smaller, an attacker who sees nothing can block the true Accept with
	// junk ones from the server's address at a lower rate; larger, such junk takes more
	// of the player's machine.
	triesPerSecond = 1000
	triesBurst     = 250

	// hurriesPerSecond is how many cookies a client answers at once, of which
	// hurriesBurst may come together; hurriesBurst is also how many it keeps. Smaller, an
	// eavesdropper who forges Challenges with the client's key delays the true cookie;
	// larger, each forged Challenge of 99 bytes makes the client send more Hellos of 640.
	hurriesPerSecond = 128
	hurriesBurst     = 32
)

// knocking is the state of a client that is not admitted yet.
type knocking struct {
	offers      []offer   // in the order in which they will be shown: urgent ones, then the least recently shown
	urgent      int       // how many of offers are to be shown at once; they come first
	tries       allowance // of answers that cost a computation
	hurries     allowance // of offers that are urgent
	wrongKey    bool      // somebody challenged with another key than ServerKey
	wrongSpeech bool      // somebody challenged in another version
}

// offer is a Challenge that may be the server's. Which one really is becomes clear only
// when an answer opens, so several are kept and shown in turn.
type offer struct {
	server  [keySize]byte
	static  []byte // the secret of its key and ours
	cookie  [cookieSize]byte
	shownAt int64
}

func newKnocking() knocking {
	return knocking{
		tries:   newAllowance(triesPerSecond, triesBurst),
		hurries: newAllowance(hurriesPerSecond, hurriesBurst),
	}
}

// find returns where an offer with a key and a cookie is; -1 if it is not there.
func (w *knocking) find(server, cookie [keySize]byte) int {
	return slices.IndexFunc(w.offers, func(o offer) bool { return o.server == server && o.cookie == cookie })
}

// hurry adds an offer behind the other urgent ones. If the list is full, it replaces the
// one that was shown least recently; if all are urgent, it is dropped.
func (w *knocking) hurry(o offer) {
	if len(w.offers) == hurriesBurst {
		if w.urgent == len(w.offers) {
			return
		}
		w.offers = slices.Delete(w.offers, w.urgent, w.urgent+1)
	}
	w.offers = slices.Insert(w.offers, w.urgent, o)
	w.urgent++
}

// show returns the offer whose turn it is, and moves it to the end.
func (w *knocking) show(now int64) offer {
	o := w.offers[0]
	o.shownAt = now
	w.offers = append(slices.Delete(w.offers, 0, 1), o)
	w.urgent = max(0, w.urgent-1)
	return o
}

// static returns the secret shared with a server's static key, which is computed once.
func (c *Client) static(server [keySize]byte, now int64) (secret []byte, err error) {
	w := &c.knocks
	for _, o := range w.offers {
		if o.server == server {
			return o.static, nil
		}
	}
	if !w.tries.take(now) {
		return nil, nil
	}
	secret, ok := exchange(c.private, server[:])
	if !ok {
		return nil, ackbits.ErrForged
	}
	return secret, nil
}

// receiveChallenge keeps the cookie of a Challenge that may be the server's. One that
// cannot be is only noted: a forged one must not end the attempt (P-13.2.3). A cookie is
// answered at once, unless it was shown within the last 250 ms.
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
	now := c.time.Read()
	at := w.find(ch.serverKey, ch.cookie)
	if at >= 0 && (at < w.urgent || now-w.offers[at].shownAt < helloInterval) || !w.hurries.take(now) {
		return nil
	}
	static, err := c.static(ch.serverKey, now)
	if static == nil {
		return err
	}
	if at >= 0 {
		w.offers = slices.Delete(w.offers, at, at+1)
	}
	w.hurry(offer{server: ch.serverKey, static: static, cookie: ch.cookie})
	c.nextAt = now
	return nil
}

// servers yields, for each server that challenged, what the keys are bound to and the
// shared secret. If ServerKey is set, there is only one.
func (c *Client) servers() iter.Seq2[parties, []byte] {
	return func(yield func(parties, []byte) bool) {
		offers := c.knocks.offers
		for i, o := range offers {
			if slices.ContainsFunc(offers[:i], func(other offer) bool { return other.server == o.server }) {
				continue
			}
			if !yield(c.parties(o.server), o.static) {
				return
			}
		}
	}
}

// parties returns what the keys are bound to with a server.
func (c *Client) parties(server [keySize]byte) parties {
	return parties{form: formOf(c.cfg.Session.Wide), clientKey: c.key, serverKey: server}
}

// receiveAccept opens an Accept, whichever Hello it answers, and begins the session
// (P-13.2.7).
func (c *Client) receiveAccept(datagram []byte) error {
	ephemeral, head, box, err := splitAccept(datagram)
	if err != nil {
		return err
	}
	if len(c.knocks.offers) == 0 || !c.knocks.tries.take(c.time.Read()) {
		return nil
	}
	fresh, ok := exchange(c.private, ephemeral)
	if !ok {
		return ackbits.ErrForged
	}
	for p, static := range c.servers() {
		agreed := p.agree(static, fresh, ephemeral, c.hello)
		if plain, ok := openBox(nil, agreed.acceptKey(), box, head); ok {
			return c.begin(agreed, plain, datagram)
		}
	}
	return ackbits.ErrForged
}

// begin begins the session of an Accept that opened.
func (c *Client) begin(agreed *agreement, plain, accept []byte) error {
	terms, err := parseGrant(plain)
	if err != nil {
		return err
	}
	keys := agreed.session(accept)
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

// receiveRefuse opens a Refuse and ends the attempt. As the shared secret is known
// already, this costs only some microseconds, so it needs no limit.
func (c *Client) receiveRefuse(datagram []byte) error {
	salt, head, box, err := splitRefuse(datagram)
	if err != nil {
		return err
	}
	if len(c.knocks.offers) == 0 {
		return nil
	}
	for p, static := range c.servers() {
		if reason, ok := openBox(nil, p.refuseKey(static, salt), box, head); ok {
			c.end(&RefusedError{Reason: string(reason)})
			return nil
		}
	}
	return ackbits.ErrForged
}

// dueHello yields the Hellos that are due, or ends the attempt (P-13.2.1).
func (c *Client) dueHello(buf []byte, now int64, yield func([]byte) bool) {
	if now >= c.endsAt {
		c.end(c.silence())
		return
	}
	for now >= c.nextAt && c.session == nil && c.err == nil {
		if !yield(c.appendHello(buf[:0], now)) {
			return
		}
	}
}

// appendHello appends the next Hello, with the cookie whose turn it is.
func (c *Client) appendHello(dst []byte, now int64) []byte {
	c.nextAt = now + helloInterval
	w := &c.knocks
	h := hello{version: version, form: formOf(c.cfg.Session.Wide), key: c.key}
	if len(w.offers) == 0 {
		return h.appendBare(dst)
	}
	o := w.show(now)
	if w.urgent > 0 {
		c.nextAt = now
	}
	h.cookie = o.cookie
	p := c.parties(o.server)
	head := h.appendHead(dst)
	return sealBox(head, p.helloKey(o.static, o.cookie[:]), padHello(c.cfg.Hello), head)
}

// silence returns the reason for which the client ends at its Timeout.
func (c *Client) silence() error {
	switch {
	case len(c.knocks.offers) > 0:
		return ErrNoAnswer
	case c.knocks.wrongKey:
		return ErrServerKey
	case c.knocks.wrongSpeech:
		return ErrVersion
	}
	return ErrNoAnswer
}
