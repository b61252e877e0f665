package endpoint

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"hash"
	"net/netip"
	"time"
)

// Cookies: how a server proves an address without remembering it. When a client shows
// which cookie is decided in knock.go.

// cookieSlot is how long the cookies of one slot of time are given out. A cookie is good
// in its slot and in the next, so for 10 to 20 s. Shorter, a client on a slow path never
// returns one in time; longer, an overheard cookie can be used for longer, and clients
// must be remembered for longer.
const cookieSlot = 10 * time.Second

// cookieLife is the longest that a cookie is good. A server remembers a client for as
// long after its last Hello, so that a copy of that Hello is worthless once the client is
// forgotten.
const cookieLife = 2 * cookieSlot

// cookies makes and checks cookies. A cookie is a MAC over the address, the client's key
// and the slot of time, under a secret that only this server has, and only while it runs.
// So nothing is kept for whoever asks for one.
type cookies struct {
	mac     hash.Hash
	address []byte // scratch
	sum     []byte
}

func newCookies(secret []byte) cookies {
	return cookies{mac: hmac.New(sha256.New, secret)}
}

// check reports whether a cookie is good (P-13.2.2), and returns the one to give out now.
func (c *cookies) check(from netip.AddrPort, key, cookie []byte, now int64) (good bool, fresh [cookieSize]byte) {
	slot := uint64(now / int64(cookieSlot))
	fresh = c.of(from, key, slot)
	if hmac.Equal(cookie, fresh[:]) {
		return true, fresh
	}
	older := c.of(from, key, slot-1) // in the first slot one that nobody was given
	return hmac.Equal(cookie, older[:]), fresh
}

// goodUntil returns until when a cookie that is given out now is good.
func goodUntil(now int64) int64 { return (now/int64(cookieSlot))*int64(cookieSlot) + int64(cookieLife) }

// of returns the cookie of a slot. The zone of an address may have any length, so it comes
// last.
func (c *cookies) of(from netip.AddrPort, key []byte, slot uint64) (cookie [cookieSize]byte) {
	ip := from.Addr().As16()
	c.address = append(c.address[:0], ip[:]...)
	c.address = binary.LittleEndian.AppendUint16(c.address, from.Port())
	c.address = append(c.address, key...)
	c.address = binary.LittleEndian.AppendUint64(c.address, slot)
	c.address = append(c.address, from.Addr().Zone()...)
	c.mac.Reset()
	c.mac.Write(c.address)
	c.sum = c.mac.Sum(c.sum[:0])
	copy(cookie[:], c.sum)
	return cookie
}
