package endpoint

import (
	"container/list"
	"net/netip"
)

// What a Gate remembers of clients that proved an address, and how much of it. Nothing
// is remembered of anybody before that.

// memoryTime is how long a client is remembered after the last that was heard of
// it: as long as a copy of its Hello could be good for anything.
const memoryTime = int64(cookieLife)

// standing is what became of a client that proved an address.
type standing uint8

const (
	heard     standing = iota // its secret was computed, nothing it sent has opened yet, or nothing was decided
	barred                    // its key is a point of low order: never
	pending                   // Admit returned ErrPending
	refused                   // answer is the Refuse
	admitted                  // answer is the Accept, until its session's first datagram opened
	confirmed                 // its session lives
	ended                     // its session has ended
)

// live reports whether a session hangs on the client.
func (s standing) live() bool { return s == admitted || s == confirmed }

// client is what is remembered of one attempt to join, which its key names.
type client struct {
	key      [keySize]byte
	standing standing
	counted  bool // in its place's count of clients, else in that of strangers
	place    netip.Prefix
	static   []byte   // the secret of its key and ours
	hello    [32]byte // hash of what it was admitted or refused with
	token    uint64   // of its session
	answer   []byte   // said again to the same Hello
	paid     bool     // it was taken from joins, and Admit was not asked since
	waited   bool     // Admit let it in once when there was no seat

	quietUntil int64  // until then its Hellos are dropped unread
	saidIn     uint64 // in which of the gate's rounds answer was said last
	until      int64  // forgotten at; of one that is not live
	waiting    *list.Element
}

// settled reports whether a Hello of the client without a good cookie gets no other:
// there is nothing to say any more, and a copy of a Hello with a cookie that outlives the
// memory would be news then. Who was refused may have lost the Refuse, and gets the cookie
// that it had then again, for as long as that is the one that is given out.
func (c *client) settled(now int64) bool {
	if c == nil {
		return false
	}
	return c.standing == confirmed || c.standing == ended || c.standing == refused && goodUntil(now) > c.until
}

// place is an IPv4 address or an IPv6 /64, what one household or attacker has.
type place struct {
	clients   int // who are or were joined, refused by Admit, or pending
	strangers int // others that something was computed for
}

// placeOf returns the place of an address, which is unmapped already.
func placeOf(addr netip.Addr) netip.Prefix { return networkOf(addr, 32, 64) }

// networkOf returns the network of an address, of so many bits for IPv4 and IPv6.
func networkOf(addr netip.Addr, bits4, bits6 int) netip.Prefix {
	bits := bits6
	if addr.Is4() {
		bits = bits4
	}
	p, _ := addr.WithZone("").Prefix(bits) // not ok for no address at all: one network of its own
	return p
}

// siteShare is the part of the memory, one in so many, that an IPv6 /48 may take, which
// anybody can have for the asking, with its 65,536 places. Smaller, fewer such
// attackers fill the memory; larger, a site whose players are many is held up:
// at this share one site may still take all of MaxPeers.
const siteShare = remembered

// siteOf returns the IPv6 /48 of a place; an IPv4 address is one by itself.
func siteOf(p netip.Prefix) netip.Prefix { return networkOf(p.Addr(), 32, 48) }

// memory is all that a gate keeps: clients that proved an address and for which
// something was computed. It is bounded by capacity, a share of it for each site, and by
// perPlace for the clients of a place and once more for its strangers. When it is full
// nobody is taken up, and nobody is forgotten for it (P-13.2.8).
type memory struct {
	capacity int
	perPlace int
	byKey    map[[keySize]byte]*client
	byToken  map[uint64]*client // of live sessions
	places   map[netip.Prefix]place
	sites    map[netip.Prefix]int // clients of each, remembered
	fading   list.List            // of clients that are not live, in the order in which they will be forgotten
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

// sweep forgets who was not heard of for long enough.
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

// add remembers a stranger, if the caller has found room.
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

// count adds n to the count of the client's place that it belongs to.
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

// touch has a client that is not live remembered from now on anew.
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

// end ends a session; the client fades.
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
