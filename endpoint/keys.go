package endpoint

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/ecdh"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"io"
)

// Every key of the handshake and of the session, and the boxes that are sealed with them.
// Which message holds which box is in messages.go.

// Labels keep the keys apart: each is derived for one purpose, and none is used
// for two. A zero byte ends a label, so that none is the beginning of another.
const (
	labelHello    = "ackbits endpoint hello\x00"
	labelAccept   = "ackbits endpoint accept\x00"
	labelRefuse   = "ackbits endpoint refuse\x00"
	labelToServer = "ackbits endpoint client to server\x00"
	labelToClient = "ackbits endpoint server to client\x00"
	labelProbe    = "ackbits endpoint probe\x00"
	labelReset    = "ackbits endpoint reset\x00"
)

// parties is what client and server know of each other at the start. Every key is bound to
// it.
type parties struct {
	form      byte
	clientKey [keySize]byte // ephemeral
	serverKey [keySize]byte // static
}

// info returns the info of a key for HKDF (P-13.3.1): label, version, form, the two keys,
// and whatever else the key is bound to, all of fixed length.
func (p *parties) info(label string, more ...[]byte) string {
	b := append(make([]byte, 0, 256), label...)
	b = append(b, version, p.form)
	b = append(b, p.clientKey[:]...)
	b = append(b, p.serverKey[:]...)
	for _, m := range more {
		b = append(b, m...)
	}
	return string(b)
}

// helloKey seals the application's hello. Each cookie has another, and under one cookie a
// client seals one plaintext only, so the nonce may be zero.
func (p *parties) helloKey(static, cookie []byte) []byte {
	return derive(static, nil, p.info(labelHello, cookie))
}

// refuseKey seals the reason of a refusal. Each has a fresh salt.
func (p *parties) refuseKey(static, salt []byte) []byte {
	return derive(static, salt, p.info(labelRefuse))
}

// agreement is what both sides know once the server has answered. All keys of a session
// come from it.
type agreement struct {
	parties
	ephemeral [keySize]byte     // the server's
	hello     [sha256.Size]byte // hash of the application's hello
	root      []byte            // extracted from both secrets
}

// agree joins two secrets: the one that the server's static key proves, and the one of
// the ephemeral keys, which nobody can compute again once those are forgotten.
func (p *parties) agree(static, fresh, ephemeral []byte, hello [sha256.Size]byte) *agreement {
	a := &agreement{parties: *p, hello: hello}
	copy(a.ephemeral[:], ephemeral)
	root, err := hkdf.Extract(sha256.New, append(append(make([]byte, 0, 2*keySize), static...), fresh...), nil)
	must(err)
	a.root = root
	return a
}

func (a *agreement) expand(label string, more ...[]byte) []byte {
	info := a.info(label, append([][]byte{a.ephemeral[:], a.hello[:]}, more...)...)
	key, err := hkdf.Expand(sha256.New, a.root, info, keySize)
	must(err)
	return key
}

// acceptKey seals the box of an Accept. Each Accept has a fresh ephemeral key of the server,
// so the nonce may be zero.
func (a *agreement) acceptKey() []byte { return a.expand(labelAccept) }

// sessionKeys are those of a session, one for each direction and one for the
// replies to probes.
type sessionKeys struct{ toServer, toClient, probe []byte }

// session derives the keys of the session that an Accept begins. They are bound to the
// whole Accept (P-13.3.2).
func (a *agreement) session(accept []byte) sessionKeys {
	hash := sha256.Sum256(accept)
	return sessionKeys{
		toServer: a.expand(labelToServer, hash[:]),
		toClient: a.expand(labelToClient, hash[:]),
		probe:    a.expand(labelProbe, hash[:]),
	}
}

// derive is HKDF-SHA-256, RFC 5869.
func derive(secret, salt []byte, info string) []byte {
	key, err := hkdf.Key(sha256.New, secret, salt, info, keySize)
	must(err)
	return key
}

// zeroNonce is the nonce of every box of the handshake: each has a key of its own.
var zeroNonce [12]byte

// sealBox appends the sealed plaintext to dst.
func sealBox(dst, key, plain, head []byte) []byte {
	return boxAEAD(key).Seal(dst, zeroNonce[:], plain, head)
}

// openBox appends the plaintext of a box to dst, or fails.
func openBox(dst, key, box, head []byte) (plain []byte, ok bool) {
	plain, err := boxAEAD(key).Open(dst, zeroNonce[:], box, head)
	return plain, err == nil
}

func boxAEAD(key []byte) cipher.AEAD {
	aead, err := newGCM(key)
	must(err)
	return aead
}

// newGCM is the AEAD of the handshake, and the default of sessions.
func newGCM(key []byte) (cipher.AEAD, error) {
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCM(block)
}

// newKey makes an X25519 key from the next 32 bytes of rand. GenerateKey of crypto/ecdh
// would ignore rand.
func newKey(rand io.Reader) (*ecdh.PrivateKey, error) {
	var seed [keySize]byte
	if _, err := io.ReadFull(rand, seed[:]); err != nil {
		return nil, err
	}
	return ecdh.X25519().NewPrivateKey(seed[:])
}

// exchange is X25519 with a key from the wire. ok is false for a point of low order, whose
// secret is known to everybody.
func exchange(private *ecdh.PrivateKey, public []byte) (secret []byte, ok bool) {
	key, err := ecdh.X25519().NewPublicKey(public)
	if err != nil {
		return nil, false
	}
	secret, err = private.ECDH(key)
	return secret, err == nil
}

// shortMAC returns the first 16 bytes of HMAC-SHA-256.
func shortMAC(key []byte, parts ...[]byte) (code [codeSize]byte) {
	mac := hmac.New(sha256.New, key)
	for _, p := range parts {
		mac.Write(p)
	}
	copy(code[:], mac.Sum(nil))
	return code
}

// resetCode is the proof in a Reset of a session: only the server's key can make it.
func resetCode(key []byte, token uint64) [codeSize]byte {
	return shortMAC(key, binary.LittleEndian.AppendUint64(nil, token))
}

// must panics where the standard library reports an error that cannot happen: all lengths
// here are constants.
func must(err error) {
	if err != nil {
		panic("endpoint: BUG: " + err.Error())
	}
}
