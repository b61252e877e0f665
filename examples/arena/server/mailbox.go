package server

import (
	"net/netip"
	"sync"
)

// maxWaiting is how many datagrams may wait for a shard: those of 500 players in
// half a second. Smaller, a pause of the shard costs datagrams; larger, a shard
// that cannot keep up works on older and older ones, and holds more memory.
const maxWaiting = 1 << 14

// mailbox carries datagrams and joins from the reader to a shard. The reader
// never waits: what finds the box full is dropped, but for joins, of which there
// are no more than seats.
type mailbox struct {
	mu    sync.Mutex
	batch *batch
	wake  chan struct{} // holds a token while there may be something to take
	rung  bool          // since the latest put; the reader's
}

// batch is what waits for a shard, in the order of arrival.
type batch struct {
	items []item
	bytes []byte // of all datagrams, one after the other
}

// item is one datagram, or a peer that joins.
type item struct {
	peer *peer
	from netip.AddrPort
	at   netip.Addr // our address that was asked; see arrival
	size int        // of the datagram, in bytes
	kind itemKind
}

type itemKind uint8

const (
	sessionDatagram itemKind = iota
	probeReply
	join
)

func newMailbox() *mailbox {
	return &mailbox{batch: new(batch), wake: make(chan struct{}, 1), rung: true}
}

// put adds an item and a copy of its datagram. It reports false if the box is
// full.
func (m *mailbox) put(it item, datagram []byte) bool {
	m.rung = false
	m.mu.Lock()
	defer m.mu.Unlock()
	b := m.batch
	if len(b.items) >= maxWaiting && it.kind != join {
		return false
	}
	it.size = len(datagram)
	b.items = append(b.items, it)
	b.bytes = append(b.bytes, datagram...)
	return true
}

// ring tells the shard that something waits, if it does not know.
func (m *mailbox) ring() {
	if m.rung {
		return
	}
	m.rung = true
	select {
	case m.wake <- struct{}{}:
	default:
	}
}

// take returns what waits and leaves an empty batch in its place.
func (m *mailbox) take(empty *batch) *batch {
	m.mu.Lock()
	defer m.mu.Unlock()
	b := m.batch
	m.batch = empty
	return b
}

// keptBytes is how large the memory of a batch may stay. A flood makes it larger.
const keptBytes = 1 << 20

func (b *batch) reset() {
	if cap(b.bytes) > keptBytes {
		*b = batch{}
		return
	}
	clear(b.items) // for the peers in them
	b.items, b.bytes = b.items[:0], b.bytes[:0]
}
