package scenario

import (
	"slices"
	"time"
)

// The outcome of each event and state datagram of a game, and figures over many of them.
// scenario.go plays the game; it only notes the times.

// Outcome is what became of one event or state datagram.
type Outcome struct {
	At      time.Duration // when it was sent first
	Latency time.Duration // until it was delivered; 0: never
	Copies  int           // how often it was sent
}

func (o *Outcome) arrive(now time.Duration) { o.Latency = max(now-o.At, 1) }

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

// Outcomes is a part of what was sent.
type Outcomes []Outcome

// Between returns those sent from one moment on, before another.
func (list Outcomes) Between(from, to time.Duration) (part Outcomes) {
	for _, o := range list {
		if o.At >= from && o.At < to {
			part = append(part, o)
		}
	}
	return part
}

// Quantile returns the latency that the share q of those which arrived does not
// exceed.
func (list Outcomes) Quantile(q float64) time.Duration {
	var latencies []time.Duration
	for _, o := range list {
		if o.Latency > 0 {
			latencies = append(latencies, o.Latency)
		}
	}
	slices.Sort(latencies)
	return (&Result{Latencies: latencies}).Quantile(q)
}

// Loss returns the share that never arrived.
func (list Outcomes) Loss() float64 {
	lost := 0
	for _, o := range list {
		if o.Latency == 0 {
			lost++
		}
	}
	return float64(lost) / float64(max(len(list), 1))
}

// Copies returns how often each was sent.
func (list Outcomes) Copies() float64 {
	copies := 0
	for _, o := range list {
		copies += o.Copies
	}
	return float64(copies) / float64(max(len(list), 1))
}

// Done returns when the last of them arrived; 0 if one never did.
func (list Outcomes) Done() (at time.Duration) {
	for _, o := range list {
		if o.Latency == 0 {
			return 0
		}
		at = max(at, o.At+o.Latency)
	}
	return at
}
