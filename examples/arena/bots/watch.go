package bots

import (
	"time"

	"github.com/ackbits/ackbits"
	"github.com/ackbits/ackbits/examples/arena/latency"
	"github.com/ackbits/ackbits/examples/arena/link"
)

// Sum is what a swarm has done.
type Sum struct {
	Playing     int
	Sessions    int // begun
	Stats       ackbits.Stats
	Events      latency.Histogram // from the server's stamp to delivery
	Maps        latency.Histogram // from the beginning of a session until the map was there
	RTTs        latency.Histogram // of active sessions
	DatagramsIn uint64            // everything received, the handshake included
}

// Sum returns what the swarm has done so far.
func (s *Swarm) Sum() *Sum {
	sum := new(Sum)
	for _, w := range s.workers {
		w.mu.Lock()
		sum.Events.Merge(&w.events)
		sum.Maps.Merge(&w.maps)
		sum.DatagramsIn += w.datagramsIn
		for _, b := range w.bots {
			sum.Sessions += b.sessions
			sum.Stats.Add(b.sofar)
			if !b.client.Playing() {
				continue
			}
			sum.Playing++
			network := b.client.Network()
			sum.Stats.Add(network.Stats)
			if network.RTT > 0 {
				sum.RTTs.Add(network.RTT)
			}
		}
		w.mu.Unlock()
	}
	return sum
}

// Restart forgets the latencies seen so far, to measure from now on.
func (s *Swarm) Restart() {
	for _, w := range s.workers {
		w.mu.Lock()
		w.events = latency.Histogram{}
		w.mu.Unlock()
	}
}

// Ends returns how the sessions of a bot have ended so far.
func (s *Swarm) Ends(i int) []End {
	b := s.bots[i]
	b.worker.mu.Lock()
	defer b.worker.mu.Unlock()
	return append([]End(nil), b.ends...)
}

// Reasons returns how often sessions and attempts to join have ended for which
// reason so far.
func (s *Swarm) Reasons() map[string]int {
	reasons := make(map[string]int)
	for i := range s.bots {
		for _, end := range s.Ends(i) {
			reasons[end.Err.Error()]++
		}
	}
	return reasons
}

// Token returns the token of a bot's session, 0 while it joins.
func (s *Swarm) Token(i int) uint64 {
	b := s.bots[i]
	b.worker.mu.Lock()
	defer b.worker.mu.Unlock()
	return b.client.Token()
}

// Got returns how many datagrams of its present session a bot has received.
func (s *Swarm) Got(i int) uint64 {
	b := s.bots[i]
	b.worker.mu.Lock()
	defer b.worker.mu.Unlock()
	return b.client.Network().DatagramsReceived
}

// Freeze stops a bot for some time, as a sleeping computer would.
func (s *Swarm) Freeze(i int, d time.Duration) {
	b := s.bots[i]
	b.worker.mu.Lock()
	defer b.worker.mu.Unlock()
	b.frozenUntil = time.Now().Add(d)
}

// Move gives a bot another address.
func (s *Swarm) Move(i int) error {
	b := s.bots[i]
	b.worker.mu.Lock()
	defer b.worker.mu.Unlock()
	return b.conn.Move()
}

// SetConditions changes the conditions on every path.
func (s *Swarm) SetConditions(conditions link.Conditions) {
	for _, b := range s.bots {
		b.worker.mu.Lock()
		b.conn.SetConditions(conditions)
		b.worker.mu.Unlock()
	}
}
