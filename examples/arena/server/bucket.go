package server

import (
	"net/netip"
	"sync"
	"time"
)

// rate is what a bucket allows: burst at once, then one more each period.
type rate struct {
	burst  int
	period time.Duration
}

// The rates that one peer may have. Each is several times what an honest client
// needs, so that a pause of its network, after which everything comes at once,
// costs it nothing; larger, a hostile peer costs more.
var (
	// peerDatagrams: a client sends 60 inputs a second, and some acknowledgements.
	peerDatagrams = rate{400, 5 * time.Millisecond}
	// strayDatagrams are those that show a peer's token and come from another
	// address than its own. Whoever has seen a token can send them, so they have a
	// rate of their own: a peer that moves needs a round trip's worth.
	strayDatagrams = rate{40, 50 * time.Millisecond}
	// probeReplies have one of their own, so that a peer that moves does not crowd
	// out its own: there is a probe in 100 ms.
	probeReplies = rate{10, 100 * time.Millisecond}
	// peerEvents: chat is all that a client sends. Delivered events
	// cannot be dropped, so who exceeds this is kicked.
	peerEvents = rate{100, 50 * time.Millisecond}
	// peerChat: a line is repeated to a whole room.
	peerChat = rate{5, 500 * time.Millisecond}
)

// placeBurst is how many lines of chat may come from a place at once.
const placeBurst = 10

// bucket is a token bucket, full as its zero value.
type bucket struct{ full time.Time } // when it is full again

// take reports whether one more may happen now, and counts it if so.
func (b *bucket) take(now time.Time, r rate) bool {
	if b.full.Before(now) {
		b.full = now
	}
	full := b.full.Add(r.period)
	if full.Sub(now) > time.Duration(r.burst)*r.period {
		return false
	}
	b.full = full
	return true
}

// place returns the IPv4 address or the IPv6 /64 that one household or one
// attacker has at the least; network the IPv4 /24 or IPv6 /48 that a larger one may
// have.
func place(addr netip.Addr) netip.Prefix   { return prefix(addr, 32, 64) }
func network(addr netip.Addr) netip.Prefix { return prefix(addr, 24, 48) }

func prefix(addr netip.Addr, bits4, bits6 int) netip.Prefix {
	addr = addr.Unmap().WithZone("")
	bits := bits6
	if addr.Is4() {
		bits = bits4
	}
	p, _ := addr.Prefix(bits) // fails for no address at all: one prefix of its own
	return p
}

// maxPlaces is how many places the chat budgets remember. Each has a player or
// had one some seconds ago; beyond that nobody new chats.
const maxPlaces = 8192

// budgets hold the chat budget of every place. It outlives the sessions there, so
// that joining again refills nothing. The shards share them.
type budgets struct {
	rate   rate // zero: no limit
	mu     sync.Mutex
	places map[netip.Prefix]bucket
}

// newBudgets returns budgets of so many lines a minute; of any number for 0.
func newBudgets(perMinute int) *budgets {
	b := &budgets{places: make(map[netip.Prefix]bucket)}
	if perMinute > 0 {
		b.rate = rate{placeBurst, time.Minute / time.Duration(perMinute)}
	}
	return b
}

// take takes a line of chat off the budget of a place.
func (b *budgets) take(p netip.Prefix, now time.Time) bool {
	if b.rate.burst == 0 {
		return true
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	budget, known := b.places[p]
	if !known && len(b.places) >= maxPlaces {
		b.sweep(now)
		if len(b.places) >= maxPlaces {
			return false
		}
	}
	ok := budget.take(now, b.rate)
	b.places[p] = budget
	return ok
}

// sweep forgets the places whose budget is full.
func (b *budgets) sweep(now time.Time) {
	for p, budget := range b.places {
		if !budget.full.After(now) {
			delete(b.places, p)
		}
	}
}
