package endpoint

import (
	"bytes"
	"encoding/binary"

	"github.com/ackbits/ackbits"
)

// The wire form of the handshake's messages: writing and parsing. What they mean is in
// gate.go and knock.go.

// Every message of the handshake begins with the format byte 0x0E, which differs from
// those of sessions, and a kind (P-13.1.1). Numbers are little-endian. The package
// comment has the layouts.
const (
	format  = 0x0E
	version = 1
)

type kind byte

const (
	kindHello      kind = 1
	kindChallenge  kind = 2
	kindAccept     kind = 3
	kindRefuse     kind = 4
	kindReset      kind = 5
	kindProbe      kind = 6
	kindProbeReply kind = 7
)

// Sizes in bytes. Nothing that a server sends to an address that is not proved is longer
// than what it answers: a Challenge, an Accept and a Refuse are shorter than the Hello,
// which is padded for this; a Reset and a Probe are shorter than the session's datagram
// that causes them (P-13.1.2).
const (
	keySize    = 32 // X25519, and every symmetric key
	cookieSize = 32
	saltSize   = 16
	codeSize   = 16 // of a Reset, a Probe and its reply
	tagSize    = 16 // AES-GCM

	helloHead      = 4 + keySize + cookieSize // in the clear, and authenticated
	helloSize      = 640
	challengeSize  = 3 + keySize + keySize + cookieSize
	acceptHead     = 2 + keySize
	acceptPlain    = 8 + codeSize + 2 // before the reply
	acceptOverhead = acceptHead + acceptPlain + tagSize
	refuseHead     = 2 + saltSize
	refuseOverhead = refuseHead + tagSize
	codeMessage    = 2 + 8 + codeSize // Reset, Probe, ProbeReply
	sealedMin      = ackbits.HeaderSize + tagSize

	// longest is the length of the longest message of the handshake that is sent.
	longest = helloSize
)

// Limits on what the application puts into a handshake, in bytes.
const (
	MaxHello  = 512 // ClientConfig.Hello
	MaxReply  = 512 // what ServerConfig.Admit returns
	MaxReason = 256 // the reason of a refusal; a longer one is cut
)

// The form of the session's datagrams, as a Hello names it.
const (
	formNarrow = 0
	formWide   = 1
)

func formOf(wide bool) byte {
	if wide {
		return formWide
	}
	return formNarrow
}

// handshakeKind returns the kind of a datagram that is a message of the
// handshake; 0, which is none, if it is not.
func handshakeKind(datagram []byte) (k kind, ok bool) {
	if len(datagram) < 2 || datagram[0] != format {
		return 0, false
	}
	return kind(datagram[1]), true
}

// hello is a Hello. Its box has the application's hello, sealed, once there is a cookie.
type hello struct {
	version byte
	form    byte
	key     [keySize]byte // the client's ephemeral one
	cookie  [cookieSize]byte
	head    []byte // the message's first bytes, which the box authenticates
	box     []byte
}

// appendHead appends the part that is not sealed.
func (h *hello) appendHead(dst []byte) []byte {
	dst = append(dst, format, byte(kindHello), h.version, h.form)
	dst = append(dst, h.key[:]...)
	return append(dst, h.cookie[:]...)
}

// appendBare appends a Hello without a cookie: zeros to its full length.
func (h *hello) appendBare(dst []byte) []byte {
	dst = h.appendHead(dst)
	return append(dst, make([]byte, helloSize-helloHead)...)
}

// parseHello reads a Hello of any version (P-13.1.3); the parts alias datagram.
func parseHello(datagram []byte) (h hello, err error) {
	if len(datagram) < helloSize {
		return hello{}, ackbits.ErrShort
	}
	if len(datagram) > ackbits.MaxDatagramSize {
		return hello{}, ackbits.ErrOversize
	}
	h.version, h.form = datagram[2], datagram[3]
	copy(h.key[:], datagram[4:])
	copy(h.cookie[:], datagram[4+keySize:])
	h.head, h.box = datagram[:helloHead], datagram[helloHead:]
	return h, nil
}

// padHello returns the plaintext of a Hello's box (P-13.1.4): the length, the
// application's hello, and zeros, so that its length does not show.
func padHello(app []byte) []byte {
	plain := make([]byte, helloSize-helloHead-tagSize)
	binary.LittleEndian.PutUint16(plain, uint16(len(app)))
	copy(plain[2:], app)
	return plain
}

// unpadHello returns the application's hello, a part of plain.
func unpadHello(plain []byte) (app []byte, err error) {
	if len(plain) < 2 {
		return nil, ackbits.ErrPayload
	}
	n := int(binary.LittleEndian.Uint16(plain))
	if n > MaxHello || 2+n > len(plain) || len(bytes.Trim(plain[2+n:], "\x00")) > 0 {
		return nil, ackbits.ErrPayload
	}
	return plain[2 : 2+n], nil
}

// challenge asks the client to show that it gets what is sent to its address.
type challenge struct {
	version   byte
	clientKey [keySize]byte // echoed
	serverKey [keySize]byte
	cookie    [cookieSize]byte
}

func (c *challenge) appendTo(dst []byte) []byte {
	dst = append(dst, format, byte(kindChallenge), c.version)
	dst = append(dst, c.clientKey[:]...)
	dst = append(dst, c.serverKey[:]...)
	return append(dst, c.cookie[:]...)
}

// parseChallenge reads a Challenge. Of another version only the client's key
// before the rest is known to be there.
func parseChallenge(datagram []byte) (c challenge, err error) {
	if len(datagram) < 3+keySize {
		return challenge{}, ackbits.ErrShort
	}
	c.version = datagram[2]
	copy(c.clientKey[:], datagram[3:])
	if c.version != version {
		return c, nil
	}
	if len(datagram) != challengeSize {
		return challenge{}, ackbits.ErrPayload
	}
	copy(c.serverKey[:], datagram[3+keySize:])
	copy(c.cookie[:], datagram[3+2*keySize:])
	return c, nil
}

// grant is what an Accept tells the client, sealed.
type grant struct {
	token uint64
	code  [codeSize]byte // that a Reset will show
	reply []byte
}

func (a *grant) appendTo(dst []byte) []byte {
	dst = binary.LittleEndian.AppendUint64(dst, a.token)
	dst = append(dst, a.code[:]...)
	dst = binary.LittleEndian.AppendUint16(dst, uint16(len(a.reply)))
	return append(dst, a.reply...)
}

func parseGrant(plain []byte) (a grant, err error) {
	if len(plain) < acceptPlain {
		return grant{}, ackbits.ErrShort
	}
	a.token = binary.LittleEndian.Uint64(plain)
	copy(a.code[:], plain[8:])
	a.reply = plain[acceptPlain:]
	if int(binary.LittleEndian.Uint16(plain[8+codeSize:])) != len(a.reply) || len(a.reply) > MaxReply {
		return grant{}, ackbits.ErrPayload
	}
	return a, nil
}

// splitAccept splits an Accept into the server's ephemeral key, the bytes that
// are authenticated and the box.
func splitAccept(datagram []byte) (key, head, box []byte, err error) {
	if len(datagram) < acceptOverhead {
		return nil, nil, nil, ackbits.ErrShort
	}
	if len(datagram) > acceptOverhead+MaxReply {
		return nil, nil, nil, ackbits.ErrOversize
	}
	return datagram[2:acceptHead], datagram[:acceptHead], datagram[acceptHead:], nil
}

// splitRefuse splits a Refuse likewise; its salt takes the place of the key.
func splitRefuse(datagram []byte) (salt, head, box []byte, err error) {
	if len(datagram) < refuseOverhead {
		return nil, nil, nil, ackbits.ErrShort
	}
	if len(datagram) > refuseOverhead+MaxReason {
		return nil, nil, nil, ackbits.ErrOversize
	}
	return datagram[2:refuseHead], datagram[:refuseHead], datagram[refuseHead:], nil
}

// appendCode appends a Reset, a Probe or a ProbeReply, which differ in their
// kind alone.
func appendCode(dst []byte, k kind, token uint64, code []byte) []byte {
	dst = append(dst, format, byte(k))
	dst = binary.LittleEndian.AppendUint64(dst, token)
	return append(dst, code[:codeSize]...)
}

func parseCode(datagram []byte) (token uint64, code []byte, err error) {
	if len(datagram) < codeMessage {
		return 0, nil, ackbits.ErrShort
	}
	if len(datagram) > codeMessage {
		return 0, nil, ackbits.ErrOversize
	}
	return binary.LittleEndian.Uint64(datagram[2:]), datagram[10:], nil
}
