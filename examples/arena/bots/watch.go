package bots

import (
	"time"

	"github.com/ackbits/ackbits"
	"github.com/ackbits/ackbits/examples/arena/latency"
	"github.com/ackbits/ackbits/examples/arena/link"
	"github.com/ackbits/ackbits/examples/arena/tally"
)

// Sum is what a swarm has done.
type Sum struct {
	Playing     int
	Sessions    int // begun
	Stats       ackbits.Stats
	Events      latency.Histogram // from the server's stamp to the hand-over
	RTTs        latency.Histogram // of the sessions that live
	DatagramsIn uint64            // everything received, answers to Connects included
}

// Sum returns what the swarm has done so far.
func (s *Swarm) Sum() *Sum {
	sum := new(Sum)
	for _, w := range s.workers {
		w.mu.Lock()
		sum.Events.Merge(&w.events)
		sum.DatagramsIn += w.datagramsIn
		for _, b := range w.bots {
			sum.Sessions += b.sessions
			tally.Add(&sum.Stats, b.sofar)
			if !b.client.Playing() {
				continue
			}
			sum.Playing++
			network := b.client.Network()
			tally.Add(&sum.Stats, network.Stats)
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

// Token returns the token of a bot's session, 0 while it joins.
func (s *Swarm) Token(i int) uint64 {
	b := s.bots[i]
	b.worker.mu.Lock()
	defer b.worker.mu.Unlock()
	return b.client.Token()
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

// SetWeather changes the weather on every path.
func (s *Swarm) SetWeather(weather link.Weather) {
	for _, b := range s.bots {
		b.worker.mu.Lock()
		b.conn.SetWeather(weather)
		b.worker.mu.Unlock()
	}
}
