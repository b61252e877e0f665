package ackbits

import "math/bits"

// pendingAcks knows the peer's datagrams that no header of ours has acknowledged
// yet, and notices those that leave the window of acknowledgements before one could.
// What was received at all is AckTracker's.
type pendingAcks struct {
	count int    // Newest or Late since we sent one
	ack   bool   // whether the newest is among them
	bits  uint64 // as in the header
}

func (p *pendingAcks) clear() { *p = pendingAcks{} }

// newest notes a datagram that moves ack by step, and returns how many that
// pushes out of a window of width bits.
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

// late notes a datagram that is back steps before ack.
func (p *pendingAcks) late(back, width uint16) (outrun uint64) {
	p.count++
	if back > width {
		return 1
	}
	p.bits |= 1 << (back - 1)
	return 0
}
