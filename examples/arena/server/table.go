package server

import (
	"errors"
	"net/netip"
	"sync"
)

// Limits bound what the players of a server may be.
type Limits struct {
	Rooms      int // worlds
	RoomSize   int // players in each, at most game.MaxPlayers
	PerAddress int // players of an IPv4 address or IPv6 /64, those who left in the last 20 s included
	Chat       int // lines of chat of an IPv4 address or IPv6 /64 a minute; 0: no limit
	PerNetwork int // players of an IPv4 /24 or IPv6 /48, and never more than it leaves free seats; 0: no limit
}

func (l Limits) seats() int { return l.Rooms * l.RoomSize }

// Reasons for which a client is refused a seat. The client gets these texts.
var (
	errLeaving = errors.New("the server is shutting down")
	errNetwork = errors.New("too many players from this network")
	errFull    = errors.New("the server is full")
)

// table finds sessions by their token and gives out seats. The reading goroutine
// looks up and admits, the shards remove; it takes the lock once for a batch of
// datagrams.
type table struct {
	mu       sync.Mutex
	peers    map[uint64]*peer // by token
	networks map[netip.Prefix]int
	rooms    []*room
	limits   Limits
	closing  bool
}

func newTable(limits Limits) table {
	return table{peers: make(map[uint64]*peer), networks: make(map[netip.Prefix]int), limits: limits}
}

// seat finds a room for a new peer: the fullest one that has a seat, so that
// players meet. The caller holds the lock.
//
// A network may hold no more seats than it leaves free, so k of them leave one
// in k + 1 to everybody else, however many players each could send.
func (t *table) seat(addr netip.Addr) (*room, error) {
	free := t.limits.seats() - len(t.peers)
	held := t.networks[network(addr)]
	switch {
	case t.closing:
		return nil, errLeaving
	case free == 0:
		return nil, errFull
	case t.limits.PerNetwork > 0 && (held >= t.limits.PerNetwork || held >= free):
		return nil, errNetwork
	}
	var best *room
	for _, r := range t.rooms {
		if r.taken < t.limits.RoomSize && (best == nil || r.taken > best.taken) {
			best = r
		}
	}
	return best, nil
}

// add enters a peer. The caller holds the lock.
func (t *table) add(p *peer) {
	t.peers[p.token] = p
	t.networks[p.network]++
	p.room.taken++
}

// remove forgets a peer that has ended.
func (t *table) remove(p *peer) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.peers, p.token)
	if t.networks[p.network]--; t.networks[p.network] == 0 {
		delete(t.networks, p.network)
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

// crowded reports whether so many seats are taken, in all or by the network of a
// player, that idle players go early.
func (t *table) crowded(network netip.Prefix) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return 4*len(t.peers) >= 3*t.limits.seats() ||
		t.limits.PerNetwork > 0 && 4*t.networks[network] >= 3*t.limits.PerNetwork
}
