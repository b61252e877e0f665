package endpoint

import (
	"net/netip"

	"github.com/ackbits/ackbits"
)

// Reset answers a datagram of a session that lives nowhere, in no shard, of a
// server with this Key: a client hears at once that there is nothing to wait for,
// after a restart or where the server ended the session by itself. The answer,
// built in buf, for which 26 bytes suffice, goes back to from; it is empty if the
// datagram is not a sealed one of at least 34 bytes, if its token was
// admitted here and did not End, or if there were too many of late: 1,000 a second,
// 256 at once. Nothing is kept.
func (g *Gate) Reset(buf []byte, from netip.AddrPort, datagram []byte) (answer []byte) {
	return g.reset(buf, datagram, g.time.read())
}

// reset is Reset at a time (P-13.5.1).
func (g *Gate) reset(buf, datagram []byte, now int64) (answer []byte) {
	if len(datagram) < sealedMin {
		return nil
	}
	h, _, err := ackbits.ParseHeader(datagram)
	if err != nil || !h.Sealed || g.memory.byToken[h.Token] != nil {
		return nil
	}
	if !g.resets.take(now) {
		g.stats.ResetsHeld++
		return nil
	}
	g.stats.Resets++
	code := resetCode(g.resetKey, h.Token)
	return appendCode(buf[:0], kindReset, h.Token, code[:])
}
