package endpoint

import (
	"net/netip"
	"time"

	"github.com/ackbits/ackbits"
)

// Reset at the server: the answer to datagrams of sessions that live nowhere. What a
// client does with it is in client.go.

// Reset answers a datagram of a session that lives nowhere, in no shard, of a
// server with this Key: a client hears at once that there is nothing to wait for,
// after a restart or where the server ended the session by itself. The answer,
// built in buf, for which 26 bytes suffice, goes back to from; it is empty if the
// datagram is not a sealed one of at least 34 bytes, if its token was
// admitted here and did not End, or if there were too many of late: 1,000 a second,
// 256 at once, 200 a second for each IPv4 /24 or IPv6 /64. Nothing is kept but these counts.
func (g *Gate) Reset(buf []byte, from netip.AddrPort, datagram []byte) (answer []byte) {
	return g.reset(buf, unmap(from), datagram, g.time.Read())
}

// reset is Reset at a time (P-13.5.1).
func (g *Gate) reset(buf []byte, from netip.AddrPort, datagram []byte, now int64) (answer []byte) {
	if len(datagram) < sealedMin {
		return nil
	}
	h, _, err := ackbits.ParseHeader(datagram)
	if err != nil || !h.Sealed || g.memory.byToken[h.Token] != nil {
		return nil
	}
	if !g.mayReset(from, now) {
		g.stats.ResetsHeld++
		return nil
	}
	g.stats.Resets++
	code := resetCode(g.resetKey, h.Token)
	return appendCode(buf[:0], kindReset, h.Token, code[:])
}

// mayReset counts a Reset to an address, if there may be one. Only those that are told
// are counted for their network, so that the counts are no more than resets allows in
// a second.
func (g *Gate) mayReset(to netip.AddrPort, now int64) bool {
	if now-g.toldAt >= int64(time.Second) {
		clear(g.told)
		g.toldAt = now
	}
	network := networkOf(to.Addr(), 24, 64)
	if g.told[network] >= resetShare || !g.resets.take(now) {
		return false
	}
	g.told[network]++
	return true
}
