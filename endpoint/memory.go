package endpoint

import (
	"container/list"
	"net/netip"
)

// What a Gate remembers of clients that proved an address, and the limits of this memory.
// Nothing is remembered of anybody before that.

// memoryTime is how long a client is remembered after its last Hello or the end of its
// session: as long as a copy of its Hello could have a good cookie.
const memoryTime = int64(cookieLife)

// standing is how far a client that proved its address has come.
type standing uint8

const (
	heard     standing = iota // its shared secret was computed; nothing is decided
	barred                    // its key is a point of low order: it never gets in
	pending                   // Admit returned ErrPending
	refused                   // answer is the Refuse
	admitted                  // answer is the Accept, until its session's first datagram opened
	confirmed                 // its session lives
	ended                     // its session has ended
)

// live reports whether the client has a session.
func (s standing) live() bool { return s == admitted || s == confirmed }

// client is what is remembered of one attempt to join. Its key identifies it.
type client struct {
	key      [keySize]byte
	standing standing
	counted  bool // among the clients of its place, else among its strangers
	place    netip.Prefix
	static   []byte   // the secret shared with its key
	hello    [32]byte // hash of the hello that it was admitted or refused with
	token    uint64   // of its session
	answer   []byte   // repeated to the same Hello
	paid     bool     // a join was counted for it, and Admit was not asked since
	waited   bool     // Admit let it in once when there was no seat

	quietUntil int64  // until then its Hellos are dropped unread
	saidIn     uint64 // the gate's round in which answer was sent last
	until      int64  // when it is forgotten, unless it is live
	waiting    *list.Element
}

// settled reports whether a Hello of the client without a good cookie gets no Challenge:
// there is nothing more to say, and with a cookie that outlives this memory a copy of a
// Hello would look new. A client that was refused may have lost the Refuse. It gets its
// old cookie again, for as long as that one is still given out.
func (c *client) settled(now int64) bool {
	if c == nil {
		return false
	}
	return c.standing == confirmed || c.standing == ended || c.standing == refused && goodUntil(now) > c.until
}

// place counts the clients of an IPv4 address or an IPv6 /64, which is what one household
// or attacker has.
type place struct {
	clients   int // those that Admit was asked about
	strangers int // the others
}

// placeOf returns the place of an address, which must be unmapped.
func placeOf(addr netip.Addr) netip.Prefix { return networkOf(addr, 32, 64) }

// networkOf returns the network of an address: its first bits4 or bits6 bits.
func networkOf(addr netip.Addr, bits4, bits6 int) netip.Prefix {
	bits := bits6
	if addr.Is4() {
		bits = bits4
	}
	p, _ := addr.WithZone("").Prefix(bits) // not ok for no address at all: one network of its own
	return p
}

// siteShare says how much of the memory one IPv6 /48 may take: one part in so many.
// Anybody can get a /48, with its 65,536 places. Smaller, fewer such attackers fill the
// memory; larger holds up a site with many players. With this value, one site may still
// take all of MaxPeers.
const siteShare = remembered

// siteOf returns the IPv6 /48 of a place; an IPv4 address is one by itself.
func siteOf(p netip.Prefix) netip.Prefix { return networkOf(p.Addr(), 32, 48) }

// memory is all that a gate keeps: the clients that proved an address and for which
// something was computed. It holds capacity clients, a share of them for each site, and
// perPlace clients and perPlace strangers for each place. When it is full, nobody is
// added, and nobody is forgotten early (P-13.2.8).
type memory struct {
	capacity int
	perPlace int
	byKey    map[[keySize]byte]*client
	byToken  map[uint64]*client // of live sessions
	places   map[netip.Prefix]place
	sites    map[netip.Prefix]int // clients of each, remembered
	fading   list.List            // the clients that are not live, the next to be forgotten first
}

func newMemory(capacity, perPlace int) memory {
	return memory{
		capacity: capacity,
		perPlace: perPlace,
		byKey:    map[[keySize]byte]*client{},
		byToken:  map[uint64]*client{},
		places:   map[netip.Prefix]place{},
		sites:    map[netip.Prefix]int{},
	}
}

// sweep forgets the clients whose time is over.
func (m *memory) sweep(now int64) {
	for e := m.fading.Front(); e != nil; e = m.fading.Front() {
		c := e.Value.(*client)
		if c.until > now {
			return
		}
		m.fading.Remove(e)
		m.count(c, -1)
		m.countSite(c.place, -1)
		delete(m.byKey, c.key)
	}
}

// add remembers a stranger; the caller has checked that there is room.
func (m *memory) add(key [keySize]byte, from netip.Prefix, now int64) *client {
	c := &client{key: key, place: from}
	m.byKey[key] = c
	m.count(c, 1)
	m.countSite(from, 1)
	m.touch(c, now)
	return c
}

func (m *memory) full() bool { return len(m.byKey) >= m.capacity }

// crowded reports whether a place has as many clients as it may; besieged
// whether it has as many strangers, or its site as many clients in all.
func (m *memory) crowded(p netip.Prefix) bool { return m.places[p].clients >= m.perPlace }
func (m *memory) besieged(p netip.Prefix) bool {
	return m.places[p].strangers >= m.perPlace || m.sites[siteOf(p)] >= m.capacity/siteShare
}

// countSite adds n to the count of a place's site.
func (m *memory) countSite(p netip.Prefix, n int) {
	site := siteOf(p)
	if m.sites[site] += n; m.sites[site] == 0 {
		delete(m.sites, site)
	}
}

// count adds n to the client's place, among the clients or the strangers.
func (m *memory) count(c *client, n int) {
	p := m.places[c.place]
	if c.counted {
		p.clients += n
	} else {
		p.strangers += n
	}
	if p == (place{}) {
		delete(m.places, c.place)
		return
	}
	m.places[c.place] = p
}

// settle makes a stranger a client of a place.
func (m *memory) settle(c *client, at netip.Prefix) {
	m.count(c, -1)
	m.countSite(c.place, -1)
	c.place, c.counted = at, true
	m.count(c, 1)
	m.countSite(at, 1)
}

// touch restarts the time for which a client that is not live is remembered.
func (m *memory) touch(c *client, now int64) {
	if c.standing.live() {
		return
	}
	c.until = now + memoryTime
	if c.waiting == nil {
		c.waiting = m.fading.PushBack(c)
		return
	}
	m.fading.MoveToBack(c.waiting)
}

// begin makes a client live.
func (m *memory) begin(c *client, token uint64) {
	m.fading.Remove(c.waiting)
	c.waiting = nil
	c.standing, c.token = admitted, token
	m.byToken[token] = c
}

// end ends a session; its client is forgotten after memoryTime.
func (m *memory) end(token uint64, now int64) (ok bool) {
	c := m.byToken[token]
	if c == nil {
		return false
	}
	delete(m.byToken, token)
	c.standing, c.answer = ended, nil
	m.touch(c, now)
	return true
}
