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

// Every key of the handshake and of the session, and what is sealed with them. Nothing
// here is drawn or remembered but a fresh key; which message holds which box is in
// messages.go.

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

// parties is what client and server know of each other before anything is
// agreed. It is part of every key.
type parties struct {
	form      byte
	clientKey [keySize]byte // ephemeral
	serverKey [keySize]byte // static
}

// info returns what HKDF is told a key is for (P-13.3.1): label, version, form, the two
// keys, then whatever else it is bound to, all of fixed length.
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

// helloKey seals the application's hello. It is another for each cookie, and
// under one cookie a client seals one plaintext, so the nonce may be zero.
func (p *parties) helloKey(static, cookie []byte) []byte {
	return derive(static, nil, p.info(labelHello, cookie))
}

// refuseKey seals the reason of a refusal. The salt is fresh for each.
func (p *parties) refuseKey(static, salt []byte) []byte {
	return derive(static, salt, p.info(labelRefuse))
}

// agreement is what both sides know once the server has answered: all keys of a
// session come from it.
type agreement struct {
	parties
	ephemeral [keySize]byte     // the server's
	hello     [sha256.Size]byte // hash of the application's hello
	root      []byte            // extracted from both secrets
}

// agree joins the secret that the server's static key proves with the one of the
// ephemeral keys, which nobody can find again once they are forgotten.
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

// acceptKey seals what an Accept tells. The server's ephemeral key is fresh for
// each Accept, so the nonce may be zero.
func (a *agreement) acceptKey() []byte { return a.expand(labelAccept) }

// sessionKeys are those of a session, one for each direction and one for the
// replies to probes.
type sessionKeys struct{ toServer, toClient, probe []byte }

// session derives the keys of the session that an Accept begins, which they are
// bound to (P-13.3.2).
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

// newGCM is the AEAD of the handshake, and of sessions where the configuration
// says nothing else.
func newGCM(key []byte) (cipher.AEAD, error) {
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCM(block)
}

// newKey makes an X25519 key of the next 32 bytes of a source of randomness.
// ecdh's own GenerateKey reads the system's instead.
func newKey(rand io.Reader) (*ecdh.PrivateKey, error) {
	var seed [keySize]byte
	if _, err := io.ReadFull(rand, seed[:]); err != nil {
		return nil, err
	}
	return ecdh.X25519().NewPrivateKey(seed[:])
}

// exchange is X25519 with a key from the wire. It is not ok for a point of low
// order, whose secret anybody knows.
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

// resetCode is what a Reset of a session shows: only who has the server's key
// can make it.
func resetCode(key []byte, token uint64) [codeSize]byte {
	return shortMAC(key, binary.LittleEndian.AppendUint64(nil, token))
}

// must panics where the standard library reports what cannot be: keys and
// lengths here are constants.
func must(err error) {
	if err != nil {
		panic("endpoint: BUG: " + err.Error())
	}
}
