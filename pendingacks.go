package ackbits

import "math/bits"

// Which datagrams of the peer no header of ours has acknowledged yet. Which were
// received at all is in ack.go.

// pendingAcks records the peer's datagrams that are still to be acknowledged, and
// counts those that fall out of the ack window first (Stats.AcksOutrun).
type pendingAcks struct {
	count int    // how many were accepted since we last sent a header
	ack   bool   // whether the newest datagram is still to be acknowledged
	bits  uint64 // those before it, by distance as in AckBits
}

// clear notes that a header was sent, which acknowledges all of them.
func (p *pendingAcks) clear() { *p = pendingAcks{} }

// newest notes a Newest datagram, step after the ack before. It returns how many others
// thereby fell out of an ack window of width bits.
func (p *pendingAcks) newest(step, width uint16) (outrun uint64) {
	p.count++
	if p.ack || p.bits != 0 {
		outrun = uint64(bits.OnesCount64(p.bits >> max(0, int(width)-int(step))))
		p.bits = p.bits << step & (1<<width - 1)
		if p.ack {
			if step <= width {
				p.bits |= 1 << (step - 1)
			} else {
				outrun++
			}
		}
	}
	p.ack = true
	return outrun
}

// late notes a Late datagram, back before the ack. It returns 1 if that is outside the
// ack window already.
func (p *pendingAcks) late(back, width uint16) (outrun uint64) {
	p.count++
	if back > width {
		return 1
	}
	p.bits |= 1 << (back - 1)
	return 0
}
