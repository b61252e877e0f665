package endpoint

import (
	"crypto/subtle"
	"encoding/binary"
	"errors"
	"net/netip"
	"time"

	"github.com/ackbits/ackbits"
	"github.com/ackbits/ackbits/internal/timeline"
)

// Path: where the datagrams of a session go, and the probe of a new address. Server uses
// it, and so do servers with a table of their own.

// probeInterval is the shortest time between two probes of a peer. Shorter lets a peer
// that forges addresses make the server send more to strangers; longer delays the move of
// a peer whose probe was lost.
const probeInterval = int64(100 * time.Millisecond)

// Path is where the datagrams of a session go, and how a peer moves. A session accepts
// its datagrams from any address, since it is the seal that proves them. But its own
// datagrams go to another address only once the peer has shown that it receives there. A
// Server does all of this by itself. A server with a table of its own takes a Path for
// each peer from its Admission, and
//
//   - calls Opened for every datagram of the session that opened;
//   - sends what AppendDue returns, after each Opened;
//   - passes Answer every datagram for which ProbeReply returns the session's token;
//   - sends the session's datagrams to Addr.
//
// If a datagram opens, is the newest so far and comes from another address, that address
// becomes the candidate and is probed, at most once in 100 ms. An answer from there moves
// the peer. A newer datagram from the old address ends the candidacy. So a copy that
// somebody sends from elsewhere, faster than the original, costs one Probe, and a peer
// that forges its address cannot direct the game at somebody else.
//
// Whoever sees the datagrams, gets a copy of each to the server before the original
// arrives, and relays Probe and answer between both ends, receives the peer's datagrams
// for as long as that lasts.
//
// A Path comes from an Admission; the zero value is not usable. It is not safe for
// concurrent use.
type Path struct {
	time    timeline.Timeline
	token   uint64
	key     []byte // of the client's replies to probes
	probing []byte // the gate's key, which makes Probes unpredictable

	addr   netip.AddrPort
	heard  bool
	newest uint16 // sequence of the newest datagram that opened

	candidate netip.AddrPort // not valid: none
	asked     [codeSize]byte // what the candidate was sent
	probed    bool           // a probe was ever due; the latest at probedAt
	probedAt  int64
	due       bool
	probes    uint64 // candidates so far: each is sent another number
}

func newPath(addr netip.AddrPort, token uint64, key, probing []byte, clock ackbits.Clock) Path {
	p := Path{token: token, key: key, probing: probing, addr: addr}
	p.time.Start(clock)
	return p
}

// Addr returns the peer's address: send the session's datagrams there.
func (p *Path) Addr() netip.AddrPort { return p.addr }

// Opened tells the path that a datagram of the session opened: that Session.Receive
// returned nil for it, or an error for which the function Opened returns true.
func (p *Path) Opened(from netip.AddrPort, sequence uint16) {
	p.opened(unmap(from), sequence, p.time.Read())
}

func (p *Path) opened(from netip.AddrPort, sequence uint16, now int64) {
	if p.heard && int16(sequence-p.newest) <= 0 {
		return
	}
	p.heard, p.newest = true, sequence
	switch {
	case from == p.addr:
		p.candidate, p.due = netip.AddrPort{}, false
	case p.probed && now-p.probedAt < probeInterval:
	default:
		p.probe(from, now)
	}
}

// probe makes an address the candidate, unless it is already, and a Probe due (P-13.4.2).
func (p *Path) probe(from netip.AddrPort, now int64) {
	if from != p.candidate {
		p.candidate = from
		p.probes++
		p.asked = shortMAC(p.probing,
			binary.LittleEndian.AppendUint64(nil, p.token), binary.LittleEndian.AppendUint64(nil, p.probes))
	}
	p.due, p.probed, p.probedAt = true, true, now
}

// AppendDue appends the Probe that is due to dst and returns the address that it goes to;
// ok is false if none is due. A Probe has 26 bytes, fewer than the datagram that caused
// it.
func (p *Path) AppendDue(dst []byte) (out []byte, to netip.AddrPort, ok bool) {
	if !p.due {
		return dst, netip.AddrPort{}, false
	}
	p.due = false
	return appendCode(dst, kindProbe, p.token, p.asked[:]), p.candidate, true
}

// Answer handles a reply to a Probe and reports whether the peer has moved: Addr is then
// the address that the reply came from (P-13.4.1, P-13.4.3).
func (p *Path) Answer(from netip.AddrPort, datagram []byte) (moved bool) {
	if k, _ := handshakeKind(datagram); k != kindProbeReply {
		return false
	}
	token, code, err := parseCode(datagram)
	if err != nil || token != p.token || !p.candidate.IsValid() || unmap(from) != p.candidate {
		return false
	}
	want := shortMAC(p.key, p.asked[:])
	if subtle.ConstantTimeCompare(code, want[:]) != 1 {
		return false
	}
	p.addr, p.candidate, p.due = p.candidate, netip.AddrPort{}, false
	return true
}

// ProbeReply returns the token of the session that a reply to a Probe belongs to. ok is
// false for every other datagram.
func ProbeReply(datagram []byte) (token uint64, ok bool) {
	if k, _ := handshakeKind(datagram); k != kindProbeReply {
		return 0, false
	}
	token, _, err := parseCode(datagram)
	return token, err == nil
}

// Opened reports whether a datagram of a sealed session came from the peer. err is what
// Session.Receive returned for it: the datagram may have opened and been refused all the
// same.
func Opened(err error) bool {
	return err == nil || errors.Is(err, ackbits.ErrRejected) || errors.Is(err, ackbits.ErrWindow) ||
		errors.Is(err, ackbits.ErrPayload) || errors.Is(err, ackbits.ErrType)
}
