package server

import (
	"github.com/ackbits/ackbits"
	"github.com/ackbits/ackbits/examples/arena/latency"
)

// Sum is what the sessions of a shard, or of a server, have done together. RTT
// and RTTVar of Sessions are not used: see RTTs.
type Sum struct {
	Players  int
	Loading  int // of these: watch until they have the map
	InFlight int
	Sessions ackbits.Stats
	RTTs     latency.Histogram // one value for each player
}

// Sum returns what all sessions have done, as of up to a second ago.
func (s *Server) Sum() Sum {
	var all Sum
	for _, sh := range s.shards {
		sum := sh.sum.Load()
		all.Players += sum.Players
		all.Loading += sum.Loading
		all.InFlight += sum.InFlight
		all.Sessions.Add(sum.Sessions)
		all.RTTs.Merge(&sum.RTTs)
	}
	return all
}

// publish lets other goroutines see what the sessions of the shard have done.
func (sh *shard) publish() {
	sum := &Sum{Players: sh.peers, Sessions: sh.totals}
	for _, r := range sh.rooms {
		for _, p := range r.seats {
			if p == nil {
				continue
			}
			stats := p.session.Stats()
			sum.Sessions.Add(stats)
			if !p.plays {
				sum.Loading++
			}
			sum.InFlight += p.session.InFlight()
			if stats.RTT > 0 {
				sum.RTTs.Add(stats.RTT)
			}
		}
	}
	sh.sum.Store(sum)
}
