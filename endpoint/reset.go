package endpoint

import (
	"net/netip"
	"time"

	"github.com/ackbits/ackbits"
)

// Reset at the server: the answer to datagrams of sessions that no longer exist. How a
// client handles it is in client.go.

// Reset answers a datagram of a session that does not exist, in no shard of a server with
// this Key. So a client learns at once, and not at its timeout, that the server was
// restarted or has ended the session on its own. Send the answer to from. It is built in
// buf, from its start, for which 26 bytes suffice. It is empty if the datagram is no
// sealed one of at least 34 bytes, if this gate has admitted its token and End was not
// called, or if there were too many Resets: more than 1,000 a second, 256 at once, or 200
// a second for one IPv4 /24 or IPv6 /64. The gate keeps nothing but these counts.
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

// mayReset reports whether a Reset may go to an address, and counts it. Only those that
// are sent count for their network, so there are no more counts than resets allows in a
// second.
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
