package endpoint

import (
	"bytes"
	"crypto/cipher"
	"crypto/ecdh"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"strings"
	"unicode/utf8"

	"github.com/ackbits/ackbits"
)

// How a Gate decides on a client that has proved its address: which are refused or put
// off, and what is drawn and derived for one that is admitted. What is remembered of
// clients is in memory.go; messages are in messages.go, keys in keys.go.

// knock is a Hello that opened and is to be decided on.
type knock struct {
	parties
	client *client
	from   netip.AddrPort
	app    []byte // the application's hello
	hash   [sha256.Size]byte
	buf    []byte
	now    int64
}

// Reasons of the server's own. The client gets these words.
const (
	reasonWide    = "the server's sessions are wide"
	reasonNarrow  = "the server's sessions are narrow"
	reasonForm    = "unknown form of sessions"
	reasonLeaving = "the server is shutting down"
	reasonFull    = "the server is full"
	reasonAddress = "too many players at this address"
)

// judge decides on a client (P-13.2.5): first by the server's own reasons, then by Admit.
func (g *Gate) judge(k *knock) ([]byte, *Admission, error) {
	at := placeOf(k.from.Addr())
	if reason := g.objection(k, at); reason != "" {
		return g.refuse(k, reason)
	}
	if !k.client.paid && !g.joins.take(k.now) { // asked again: as much work as a join
		g.stats.HeldByRate++
		return nil, nil, nil
	}
	k.client.paid = false
	// Rand is read before Admit is asked: a client that Admit has let in must not fail
	// because of Rand.
	draw, err := g.draw()
	if err != nil {
		g.stats.Failed++
		return nil, nil, err
	}
	if !k.client.counted {
		g.memory.settle(k.client, at)
	}
	app := bytes.Clone(k.app)
	var reply []byte
	if g.cfg.Admit != nil {
		reply, err = g.cfg.Admit(Request{Addr: k.from, Hello: app})
	}
	if err == nil && len(reply) > MaxReply {
		err = fmt.Errorf("endpoint: reply of %d bytes, the limit is %d", len(reply), MaxReply)
	}
	switch {
	case errors.Is(err, ErrPending):
		g.stats.Pending++
		return g.putOff(k)
	case err != nil:
		g.stats.RefusedByAdmit++
		return g.refuse(k, err.Error())
	case g.seats >= g.cfg.MaxPeers && !k.client.waited: // for the seat that Admit may have freed
		k.client.waited = true
		g.stats.HeldFull++
		return g.putOff(k)
	case g.seats >= g.cfg.MaxPeers:
		g.stats.RefusedFull++
		return g.refuse(k, reasonFull)
	}
	return g.admit(k, draw, app, reply)
}

// putOff sends no answer. Admit is asked again by a later Hello, no sooner than the
// client sends its next.
func (g *Gate) putOff(k *knock) ([]byte, *Admission, error) {
	k.client.standing = pending
	k.client.quietUntil = k.now + helloInterval
	return nil, nil, nil
}

// objection returns why the server refuses a client whatever Admit says, or "". A full
// server refuses here only if there is no Admit, which might free a seat.
func (g *Gate) objection(k *knock, at netip.Prefix) (reason string) {
	s, cfg := &g.stats, &g.cfg
	switch {
	case k.form != formOf(cfg.Session.Wide):
		s.RefusedForm++
		switch {
		case k.form > formWide:
			return reasonForm
		case cfg.Session.Wide:
			return reasonWide
		}
		return reasonNarrow
	case g.leaving:
		s.RefusedLeaving++
		return reasonLeaving
	case g.seats >= cfg.MaxPeers && cfg.Admit == nil:
		s.RefusedFull++
		return reasonFull
	case !k.client.counted && g.memory.crowded(at):
		s.RefusedByAddress++
		return reasonAddress
	}
	return ""
}

// draw is the randomness of a join. The key is computed from the seed only once Admit has
// said yes.
type draw struct {
	seed  [keySize]byte
	token uint64
}

// redraws is how often a token is drawn until one is not in use. The first one does
// unless Rand repeats itself; without a limit the loop might not end.
const redraws = 4

var errTokens = errors.New("endpoint: Rand returns tokens that are live only")

func (g *Gate) draw() (d draw, err error) {
	if _, err = io.ReadFull(g.cfg.Rand, d.seed[:]); err != nil {
		return draw{}, err
	}
	for range redraws {
		var b [8]byte
		if _, err = io.ReadFull(g.cfg.Rand, b[:]); err != nil {
			return draw{}, err
		}
		d.token = binary.LittleEndian.Uint64(b[:])
		if g.memory.byToken[d.token] == nil {
			return d, nil
		}
	}
	return draw{}, errTokens
}

// admit makes the Accept, and the Admission of the new session.
func (g *Gate) admit(k *knock, d draw, app, reply []byte) ([]byte, *Admission, error) {
	private, err := ecdh.X25519().NewPrivateKey(d.seed[:])
	must(err)
	fresh, ok := exchange(private, k.clientKey[:])
	if !ok { // the static key's would not have been either
		return nil, nil, ackbits.ErrForged
	}
	ephemeral := private.PublicKey().Bytes()
	agreed := k.agree(k.client.static, fresh, ephemeral, k.hash)
	head := append([]byte{format, byte(kindAccept)}, ephemeral...)
	terms := grant{token: d.token, code: resetCode(g.resetKey, d.token), reply: reply}
	accept := sealBox(bytes.Clone(head), agreed.acceptKey(), terms.appendTo(nil), head)
	keys := agreed.session(accept)
	seal, open, err := aeads(g.cfg.AEAD, keys.toClient, keys.toServer)
	if err != nil {
		g.stats.Failed++
		return nil, nil, err
	}
	a := &Admission{Addr: k.from, Hello: app, Config: g.cfg.Session}
	a.Config.Token, a.Config.Clock, a.Config.Seal, a.Config.Open = d.token, g.cfg.Clock, seal, open
	a.Path = newPath(k.from, d.token, keys.probe, g.probing, g.cfg.Clock)
	k.client.hello, k.client.answer = k.hash, accept
	g.memory.begin(k.client, d.token)
	g.seats++
	g.stats.Joins++
	return g.say(k.client, k.buf, k.now), a, nil
}

// refuse makes the Refuse and remembers it.
func (g *Gate) refuse(k *knock, reason string) ([]byte, *Admission, error) {
	head := append([]byte{format, byte(kindRefuse)}, make([]byte, saltSize)...)
	salt := head[2:]
	if _, err := io.ReadFull(g.cfg.Rand, salt); err != nil {
		g.stats.Failed++
		return nil, nil, err
	}
	key := k.refuseKey(k.client.static, salt)
	k.client.standing, k.client.hello = refused, k.hash
	k.client.answer = sealBox(bytes.Clone(head), key, []byte(cut(reason, MaxReason)), head)
	return g.say(k.client, k.buf, k.now), nil, nil
}

// cut shortens a text to at most n bytes, and never within a character.
func cut(text string, n int) string {
	text = strings.ToValidUTF8(text, "\uFFFD")
	if len(text) <= n {
		return text
	}
	for n > 0 && !utf8.RuneStart(text[n]) {
		n--
	}
	return text[:n]
}

// aeads makes the two ciphers of a session.
func aeads(make func([]byte) (cipher.AEAD, error), sealKey, openKey []byte) (seal, open cipher.AEAD, err error) {
	if seal, err = make(sealKey); err != nil {
		return nil, nil, err
	}
	open, err = make(openKey)
	return seal, open, err
}

// unmap returns the IPv4 address that a dual-stack socket shows as an IPv6 address.
func unmap(a netip.AddrPort) netip.AddrPort {
	return netip.AddrPortFrom(a.Addr().Unmap(), a.Port())
}
