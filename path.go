package ackbits

import "github.com/ackbits/ackbits/internal/rtt"

// path is what acknowledgements tell of the way to the peer and back, whatever rule
// decides on copies. Both numbers are in nanoseconds.
type path struct {
	rtt    rtt.Estimator
	latest int64 // the newest sample; it contains the peer's wait for its next datagram
}

// sample takes in a round trip.
func (p *path) sample(roundTrip int64) {
	p.rtt.Add(roundTrip)
	p.latest = roundTrip
}
