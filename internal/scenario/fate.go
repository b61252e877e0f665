package scenario

import (
	"slices"
	"time"
)

// Fate is what became of one event or state datagram.
type Fate struct {
	At      time.Duration // when it was sent first
	Latency time.Duration // until it was handed over; 0: never
	Copies  int           // how often it was sent
}

func (f *Fate) arrive(now time.Duration) { f.Latency = max(now-f.At, 1) }

// account counts the copies of events in a datagram that this side sends.
func (p *peer) account(datagram []byte) {
	if !p.details {
		return
	}
	p.list = Carried(p.list[:0], datagram)
	for _, e := range p.list {
		p.events[Number(e)].Copies++
	}
}

// Span is a part of what was sent.
type Span []Fate

// Between returns those sent from one moment on, before another.
func (s Span) Between(from, to time.Duration) (part Span) {
	for _, f := range s {
		if f.At >= from && f.At < to {
			part = append(part, f)
		}
	}
	return part
}

// Quantile returns the latency that the share q of those which arrived does not
// exceed.
func (s Span) Quantile(q float64) time.Duration {
	var latencies []time.Duration
	for _, f := range s {
		if f.Latency > 0 {
			latencies = append(latencies, f.Latency)
		}
	}
	slices.Sort(latencies)
	return (&Result{Latencies: latencies}).Quantile(q)
}

// Loss returns the share that never arrived.
func (s Span) Loss() float64 {
	lost := 0
	for _, f := range s {
		if f.Latency == 0 {
			lost++
		}
	}
	return float64(lost) / float64(max(len(s), 1))
}

// Copies returns how often each was sent.
func (s Span) Copies() float64 {
	copies := 0
	for _, f := range s {
		copies += f.Copies
	}
	return float64(copies) / float64(max(len(s), 1))
}

// Done returns when the last of them arrived; 0 if one never did.
func (s Span) Done() (at time.Duration) {
	for _, f := range s {
		if f.Latency == 0 {
			return 0
		}
		at = max(at, f.At+f.Latency)
	}
	return at
}
