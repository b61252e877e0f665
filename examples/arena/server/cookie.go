package server

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"hash"
	"net/netip"
	"time"

	"github.com/ackbits/ackbits/examples/arena/proto"
)

// cookieLife is for how long a cookie is good, up to twice that: shorter would
// fail slow paths, longer would let one who was once at an address go on
// joining from there.
const cookieLife = 10 * time.Second

// cookies makes and checks proofs that a client receives what is sent to its
// address. They are computed, not kept: whoever spoofs a source costs us nothing
// but the computation.
type cookies struct {
	mac hash.Hash
	sum []byte
}

func newCookies() *cookies {
	secret := make([]byte, 32)
	rand.Read(secret) // never fails
	return &cookies{mac: hmac.New(sha256.New, secret)}
}

// cookie returns the cookie for an address and nonce in a period of time.
func (c *cookies) cookie(addr netip.AddrPort, nonce uint64, period int64) (cookie proto.Cookie) {
	var b [16 + 2 + 8 + 8]byte
	ip := addr.Addr().As16()
	copy(b[:], ip[:])
	binary.LittleEndian.PutUint16(b[16:], addr.Port())
	binary.LittleEndian.PutUint64(b[18:], nonce)
	binary.LittleEndian.PutUint64(b[26:], uint64(period))
	c.mac.Reset()
	c.mac.Write(b[:])
	c.sum = c.mac.Sum(c.sum[:0])
	copy(cookie[:], c.sum)
	return cookie
}

// issue returns the cookie of now.
func (c *cookies) issue(addr netip.AddrPort, nonce uint64, now time.Time) proto.Cookie {
	return c.cookie(addr, nonce, now.UnixNano()/int64(cookieLife))
}

// valid reports whether a cookie is of this period or the one before.
func (c *cookies) valid(cookie proto.Cookie, addr netip.AddrPort, nonce uint64, now time.Time) bool {
	period := now.UnixNano() / int64(cookieLife)
	for _, p := range [...]int64{period, period - 1} {
		if want := c.cookie(addr, nonce, p); hmac.Equal(cookie[:], want[:]) {
			return true
		}
	}
	return false
}
