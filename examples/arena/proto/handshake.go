package proto

import (
	"encoding/binary"
	"strconv"

	"github.com/ackbits/ackbits"
)

// Before there is a session, Connect and Accept datagrams go alone. Their
// header's token is a nonce of the client's choice, by which it knows its
// answers; sequence and acknowledgements are zero.
//
// A Connect has exactly ConnectSize bytes and no answer is longer, so a server
// never sends an address more than came from it.
const (
	ConnectSize = 64
	CookieSize  = 16

	version = 1
)

// Cookie proves that a client receives what is sent to its address. The zero
// value stands for none.
type Cookie [CookieSize]byte

// Connect asks for a session.
type Connect struct {
	Nonce  uint64
	Cookie Cookie
	Name   string
}

// AppendConnect appends a Connect datagram, padded to ConnectSize.
func AppendConnect(dst []byte, c Connect) []byte {
	start := len(dst)
	dst = ackbits.Header{Type: ackbits.TypeConnect, Token: c.Nonce}.AppendTo(dst)
	dst = append(dst, version)
	dst = append(dst, c.Cookie[:]...)
	dst = appendText(dst, c.Name)
	for len(dst) < start+ConnectSize {
		dst = append(dst, 0)
	}
	return dst
}

// ParseConnect reads what follows the header of a Connect datagram.
func ParseConnect(h ackbits.Header, payload []byte) (Connect, error) {
	if h.Wide || h.Type != ackbits.TypeConnect || len(payload) != ConnectSize-ackbits.HeaderSize {
		return Connect{}, ErrMalformed
	}
	r := reader{rest: payload}
	c := Connect{Nonce: h.Token}
	if r.u8() != version {
		return Connect{}, ErrMalformed
	}
	copy(c.Cookie[:8], r.take(8))
	copy(c.Cookie[8:], r.take(8))
	c.Name = r.text(MaxName)
	for _, pad := range r.rest {
		r.failed = r.failed || pad != 0
	}
	if r.failed {
		return Connect{}, ErrMalformed
	}
	return c, nil
}

// Verdict is what an Accept answers.
type Verdict uint8

const (
	Challenge    Verdict = iota + 1 // ask again with Cookie
	Granted                         // the session's token is Token
	Full                            // no slot is free
	TooMany                         // too many players have this address
	Busy                            // this address has a session that has not ended yet; ask again
	ShuttingDown                    // the server is going away
	firstBeyond
)

var verdicts = [...]string{"", "asked for a cookie", "granted", "the server is full",
	"too many players from this address", "an earlier session of this address has not ended", "the server is shutting down"}

func (v Verdict) String() string {
	if int(v) < len(verdicts) {
		return verdicts[v]
	}
	return "verdict " + strconv.Itoa(int(v))
}

// Accept answers a Connect.
type Accept struct {
	Nonce   uint64
	Verdict Verdict
	Cookie  Cookie // of a Challenge
	Token   uint64 // when Granted
}

// AppendAccept appends an Accept datagram.
func AppendAccept(dst []byte, a Accept) []byte {
	dst = ackbits.Header{Type: ackbits.TypeAccept, Token: a.Nonce}.AppendTo(dst)
	dst = append(dst, byte(a.Verdict))
	switch a.Verdict {
	case Challenge:
		return append(dst, a.Cookie[:]...)
	case Granted:
		return binary.LittleEndian.AppendUint64(dst, a.Token)
	}
	return dst
}

// ParseAccept reads what follows the header of an Accept datagram.
func ParseAccept(h ackbits.Header, payload []byte) (Accept, error) {
	if h.Wide || h.Type != ackbits.TypeAccept {
		return Accept{}, ErrMalformed
	}
	r := reader{rest: payload}
	a := Accept{Nonce: h.Token, Verdict: Verdict(r.u8())}
	switch {
	case a.Verdict == 0 || a.Verdict >= firstBeyond:
		r.failed = true
	case a.Verdict == Challenge:
		copy(a.Cookie[:8], r.take(8))
		copy(a.Cookie[8:], r.take(8))
	case a.Verdict == Granted:
		a.Token = r.u64()
	}
	if r.failed || len(r.rest) != 0 {
		return Accept{}, ErrMalformed
	}
	return a, nil
}
