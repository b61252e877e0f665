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

// Path: where the datagrams of a session go, and the probe of a new address. It is the
// same for Server and for servers with a table of their own.

// probeInterval is the shortest time between two probes of a peer. Shorter, a
// peer that forges addresses makes the server send more to strangers; longer,
// a peer whose probe was lost moves later.
const probeInterval = int64(100 * time.Millisecond)

// Path is where the datagrams of a session go, and how a peer moves. A session
// takes its datagrams from any address, as they open or they do not; but where
// its own go changes only when the peer has shown that it is there. A Server does
// all this by itself; a server with its own table has a Path for each peer, from
// its Admission:
//
//   - it tells Opened of every datagram of the session that opened;
//   - it sends what AppendDue returns, after each Opened;
//   - it hands Answer every datagram for which ProbeReply returns the
//     session's token;
//   - it sends the session's datagrams to Addr.
//
// A datagram that opened, is the newest so far, and came from elsewhere makes
// that address the candidate, which is probed, at most once in 100 ms. An answer
// from there moves the peer; a newer datagram from the old address ends the
// candidacy. So a copy that somebody raced from elsewhere costs one Probe, and
// a peer that forges its address cannot point the game at another.
//
// Who sees the datagrams, has each of them at the server before the true one, and carries
// Probe and answer between both ends, has the address for as long as it does so.
//
// A Path comes from an Admission: the zero value is not usable. It is not safe for
// concurrent use.
type Path struct {
	time    timeline.Timeline
	token   uint64
	key     []byte // what the client answers with
	probing []byte // the gate's, for numbers that nobody else can guess

	addr   netip.AddrPort
	heard  bool
	newest uint16 // sequence of the newest datagram that opened

	candidate netip.AddrPort // not valid: none
	asked     [codeSize]byte // of the candidate
	probed    bool           // ever
	probedAt  int64
	due       bool
	probes    uint64 // candidates so far: each is asked something else
}

func newPath(addr netip.AddrPort, token uint64, key, probing []byte, clock ackbits.Clock) Path {
	p := Path{token: token, key: key, probing: probing, addr: addr}
	p.time.Start(clock)
	return p
}

// Addr returns where the peer is.
func (p *Path) Addr() netip.AddrPort { return p.addr }

// Opened tells of a datagram of the session that opened: Session.Receive
// returned nil for it, or an error for which the function Opened is true.
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

// probe makes an address the candidate, unless it is, and has it asked (P-13.4.2).
func (p *Path) probe(from netip.AddrPort, now int64) {
	if from != p.candidate {
		p.candidate = from
		p.probes++
		p.asked = shortMAC(p.probing,
			binary.LittleEndian.AppendUint64(nil, p.token), binary.LittleEndian.AppendUint64(nil, p.probes))
	}
	p.due, p.probed, p.probedAt = true, true, now
}

// AppendDue appends the Probe that is due, if one is, and says where it goes. It
// has 26 bytes: fewer than the datagram that drew it.
func (p *Path) AppendDue(dst []byte) (out []byte, to netip.AddrPort, ok bool) {
	if !p.due {
		return dst, netip.AddrPort{}, false
	}
	p.due = false
	return appendCode(dst, kindProbe, p.token, p.asked[:]), p.candidate, true
}

// Answer handles a reply to a Probe, and reports whether the peer has moved by
// it: Addr is another then (P-13.4.1, P-13.4.3).
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

// ProbeReply returns the token of a session to whose Probe a datagram is the reply.
// It is not ok for every other datagram.
func ProbeReply(datagram []byte) (token uint64, ok bool) {
	if k, _ := handshakeKind(datagram); k != kindProbeReply {
		return 0, false
	}
	token, _, err := parseCode(datagram)
	return token, err == nil
}

// Opened reports whether a datagram of a sealed session, for which
// Session.Receive returned err, was the peer's: it opened, whatever was wrong with
// it then.
func Opened(err error) bool {
	return err == nil || errors.Is(err, ackbits.ErrRejected) || errors.Is(err, ackbits.ErrWindow) ||
		errors.Is(err, ackbits.ErrPayload) || errors.Is(err, ackbits.ErrType)
}
