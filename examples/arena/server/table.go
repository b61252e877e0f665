package server

import (
	"net/netip"
	"sync"

	"github.com/ackbits/ackbits/examples/arena/proto"
)

// table knows who is where. The reading goroutine looks up and admits, the
// shards remove; it takes the lock once for a batch of datagrams.
//
// A peer is its address and its token. A datagram with a known token from
// another address is foreign: to follow it would let whoever has seen one
// datagram take a session over. So a client whose address changes hears nothing
// more, times out, and joins again.
type table struct {
	mu      sync.Mutex
	peers   map[netip.AddrPort]*peer
	players map[netip.Addr]int // peers of each address, whatever the port
	rooms   []*room
	limits  Limits
	closing bool
}

// Limits bound what the players of a server may be.
type Limits struct {
	Rooms      int // worlds
	RoomSize   int // players in each, at most game.MaxPlayers
	PerAddress int // players with the same IP address
}

// seat finds a room for a new peer: the fullest one that has a seat, so that
// players meet. The caller holds the lock.
func (t *table) seat(addr netip.AddrPort) (*room, proto.Verdict) {
	if t.closing {
		return nil, proto.ShuttingDown
	}
	if t.players[addr.Addr()] >= t.limits.PerAddress {
		return nil, proto.TooMany
	}
	var best *room
	for _, r := range t.rooms {
		if r.taken < t.limits.RoomSize && (best == nil || r.taken > best.taken) {
			best = r
		}
	}
	if best == nil {
		return nil, proto.Full
	}
	return best, proto.Granted
}

// add enters a peer. The caller holds the lock.
func (t *table) add(p *peer) {
	t.peers[p.addr] = p
	t.players[p.addr.Addr()]++
	p.room.taken++
}

// remove forgets a peer that has ended.
func (t *table) remove(p *peer) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.peers, p.addr)
	ip := p.addr.Addr()
	if t.players[ip]--; t.players[ip] == 0 {
		delete(t.players, ip)
	}
	p.room.taken--
}

// close lets nobody in any more.
func (t *table) close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closing = true
}

// size returns how many peers there are.
func (t *table) size() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.peers)
}
