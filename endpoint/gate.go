package endpoint

import (
	"crypto/sha256"
	"io"
	"net/netip"
	"time"

	"github.com/ackbits/ackbits"
	"github.com/ackbits/ackbits/internal/timeline"
)

// Gate: the handshake at the server, and the tokens it admitted, for servers with a table
// of their own. Which clients it admits is decided in admit.go. Server (server.go) puts a
// table of peers on top of it.

const (
	// joinRate limits the joins that a server computes for in a second, of which
	// joinBurst may come at once. One costs 0.1 to 0.2 ms, so this is the share of a
	// core, and the longest delay in one turn of the loop, that a flood from many proved
	// addresses can take. Smaller makes players wait who all come back after a restart;
	// at this rate 1,024 of them are in after a second.
	joinRate  = 1000
	joinBurst = 256

	// resetRate limits the Resets, each of which costs a MAC. Smaller, fewer clients hear
	// of a restart before their Timeout; larger, a flood of forged datagrams costs more.
	resetRate  = 1000
	resetBurst = 256

	// resetShare is how many Resets go to one IPv4 /24 or IPv6 /64 in a second. Smaller,
	// the players of one network hear of a restart later; larger, a few networks can use
	// up resetRate.
	resetShare = 200

	// repeatInterval is the shortest time between two answers to one client. Shorter lets
	// copies of its Hello draw more answers; longer than helloInterval delays an Accept
	// that was lost.
	repeatInterval = int64(100 * time.Millisecond)

	// remembered is how many clients are remembered for each of MaxPeers, and
	// rememberedLeast how many at least: joins, refusals and failed attempts of 20 s.
	// Smaller holds up a rush of players; larger lets a flood from many proved addresses
	// take more memory, up to 800 bytes each.
	remembered      = 4
	rememberedLeast = 4096
)

// Gate is the server's half of the handshake alone, for servers that keep their own table
// of sessions, for example in shards on several goroutines. It is not safe for concurrent
// use: guard it with a lock, or use it only on the goroutine that reads the socket.
type Gate struct {
	cfg      ServerConfig
	time     timeline.Timeline
	public   [keySize]byte // the server's static key
	cookies  cookies
	resetKey []byte
	probing  []byte // key of the unpredictable part of Probes
	memory   memory
	joins    allowance
	resets   allowance
	told     map[netip.Prefix]int // Resets to each network in the second that began at toldAt
	toldAt   int64
	round    uint64 // of answers: a client gets one in each, so at most one waits for Due
	leaving  bool
	seats    int // taken
	stats    Stats
	plain    []byte // scratch
}

// Admission is a new peer: all that is needed to make its session.
type Admission struct {
	Addr   netip.AddrPort
	Hello  []byte         // the client's hello; a copy that the caller may keep
	Config ackbits.Config // of its session, complete with Token, Clock, Seal and Open
	Path   Path           // where its datagrams go; copy it once, before the first use
}

// NewGate returns a gate that begins now. If a value of cfg is invalid, the error is
// ackbits.ErrConfig and names it; an error of Rand is returned as it is.
func NewGate(cfg ServerConfig) (*Gate, error) {
	if err := cfg.complete(); err != nil {
		return nil, err
	}
	secrets := make([]byte, 2*keySize)
	if _, err := io.ReadFull(cfg.Rand, secrets); err != nil {
		return nil, err
	}
	g := &Gate{
		cfg:      cfg,
		cookies:  newCookies(secrets[:keySize]),
		probing:  secrets[keySize:],
		resetKey: derive(cfg.Key.Bytes(), nil, labelReset),
		memory:   newMemory(max(remembered*cfg.MaxPeers, rememberedLeast), cfg.MaxPerAddress),
		joins:    newAllowance(joinRate, joinBurst),
		resets:   newAllowance(resetRate, resetBurst),
		told:     map[netip.Prefix]int{},
		round:    1,
	}
	copy(g.public[:], cfg.Key.PublicKey().Bytes())
	g.time.Start(cfg.Clock)
	return g, nil
}

// Receive handles a datagram that begins with the format of the handshake, 0x0E, and
// drops any other. If answer is not empty, send it to from. It is built in buf, from its
// start, for which 640 bytes suffice. If the Admission is not nil, there is a new peer:
// make its session before you handle any further datagram.
func (g *Gate) Receive(from netip.AddrPort, datagram, buf []byte) (answer []byte, a *Admission) {
	now := g.time.Read()
	if k, _ := handshakeKind(datagram); k != kindHello {
		g.stats.Malformed++
		return nil, nil
	}
	g.round++ // the answer before is sent, or lost
	answer, a, _ = g.receiveHello(unmap(from), datagram, buf, now)
	return answer, a
}

// Confirm tells the gate that a datagram of a session opened. So the client has got the
// Accept, which is not repeated any more.
func (g *Gate) Confirm(token uint64) {
	if c := g.memory.byToken[token]; c != nil {
		c.standing, c.answer = confirmed, nil
	}
}

// End tells the gate that a session has ended. Its seat is free, and its client is
// remembered for another 20 s.
func (g *Gate) End(token uint64) {
	if g.memory.end(token, g.time.Read()) {
		g.seats--
	}
}

// Stats returns the counters.
func (g *Gate) Stats() Stats {
	s := g.stats
	s.Peers, s.Remembered = g.seats, len(g.memory.byKey)
	return s
}

// receiveHello answers a Hello: with a Challenge until its cookie is good, then with the
// decision.
func (g *Gate) receiveHello(from netip.AddrPort, datagram, buf []byte, now int64) ([]byte, *Admission, error) {
	h, err := parseHello(datagram)
	if err != nil {
		g.stats.Malformed++
		return nil, nil, err
	}
	g.stats.Hellos++
	g.memory.sweep(now)
	c := g.memory.byKey[h.key]
	if c != nil && (now < c.quietUntil || c.saidIn == g.round) { // before any cryptography
		g.stats.Hushed++
		return nil, nil, nil
	}
	good, fresh := g.cookies.check(from, h.key[:], h.cookie[:], now)
	if !good && c.settled(now) {
		g.stats.Hushed++
		return nil, nil, nil
	}
	if !good || h.version != version { // nothing is kept (P-13.2.2)
		if h.cookie != [cookieSize]byte{} && !good {
			g.stats.BadCookies++
		}
		g.stats.Challenges++
		ch := challenge{version: version, clientKey: h.key, serverKey: g.public, cookie: fresh}
		return ch.appendTo(buf[:0]), nil, nil
	}
	if c == nil {
		if c = g.meet(&h, placeOf(from.Addr()), now); c == nil {
			return nil, nil, nil
		}
	}
	return g.hear(c, from, &h, buf, now)
}

// meet computes the shared secret of an unknown client and remembers it, if the limits
// leave room.
func (g *Gate) meet(h *hello, at netip.Prefix, now int64) *client {
	switch {
	case g.memory.full():
		g.stats.HeldByMemory++
		return nil
	case g.memory.besieged(at):
		g.stats.HeldByAddress++
		return nil
	case !g.joins.take(now):
		g.stats.HeldByRate++
		return nil
	}
	c := g.memory.add(h.key, at, now)
	c.paid = true
	var ok bool
	if c.static, ok = exchange(g.cfg.Key, h.key[:]); !ok {
		c.standing = barred
	}
	return c
}

// hear opens a Hello and answers it. Nothing in it counts before it has opened
// (P-13.2.4). A decision that was made is repeated (P-13.2.6).
func (g *Gate) hear(c *client, from netip.AddrPort, h *hello, buf []byte, now int64) ([]byte, *Admission, error) {
	p := parties{form: h.form, clientKey: h.key, serverKey: g.public}
	app, err := g.open(c, &p, h)
	if err != nil {
		return nil, nil, err
	}
	g.memory.touch(c, now)
	hash := sha256.Sum256(app)
	switch c.standing {
	case heard, pending:
		return g.judge(&knock{parties: p, client: c, from: from, app: app, hash: hash, buf: buf, now: now})
	case refused, admitted:
		if hash != c.hello {
			break
		}
		g.stats.Repeated++
		return g.say(c, buf, now), nil, nil
	}
	g.stats.Hushed++
	return nil, nil, nil
}

// say returns the decision on a client, which is sent now.
func (g *Gate) say(c *client, buf []byte, now int64) []byte {
	c.quietUntil, c.saidIn = now+repeatInterval, g.round
	return append(buf[:0], c.answer...)
}

// open opens the box of a Hello. The application's hello lies in the gate's scratch.
func (g *Gate) open(c *client, p *parties, h *hello) (app []byte, err error) {
	if c.standing == barred {
		g.stats.Forged++
		return nil, ackbits.ErrForged
	}
	plain, ok := openBox(g.plain[:0], p.helloKey(c.static, h.cookie[:]), h.box, h.head)
	if !ok {
		g.stats.Forged++
		return nil, ackbits.ErrForged
	}
	g.plain = plain
	if app, err = unpadHello(plain); err != nil {
		g.stats.Malformed++
	}
	return app, err
}
