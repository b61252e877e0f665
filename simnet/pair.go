package simnet

import (
	"fmt"
	"time"
)

// Endpoint is one side of a [Pair].
type Endpoint interface {
	// Receive takes a datagram that has arrived. The endpoint may change it,
	// and must not keep it after it returns.
	Receive(datagram []byte)

	// Due calls send for each datagram that is due now; send copies it.
	Due(send func(datagram []byte))

	// Deadline returns when Due has something to do next; ok reports whether
	// it ever has without a Receive or a call from outside. A time that has
	// passed means now.
	Deadline() (t time.Time, ok bool)
}

// Clock is the time as the endpoints read it. The Pair only ever moves it
// forward; nobody else may move it while the Pair is in use.
type Clock interface {
	Now() time.Time
	Set(t time.Time)
}

// Direction is one of the two links of a [Pair].
type Direction uint8

// The directions, from the endpoints a and b given to [NewPair].
const (
	AToB Direction = iota
	BToA
)

func (d Direction) String() string {
	switch d {
	case AToB:
		return "a->b"
	case BToA:
		return "b->a"
	}
	return fmt.Sprintf("Direction(%d)", uint8(d))
}

// maxRounds is how often an instant may go on. Datagrams over links without
// delay can bounce a few times; ten thousand is no conversation but a loop.
const maxRounds = 10_000

// Pair runs two endpoints over two links in virtual time. Time moves from one
// instant to the next at which a datagram arrives, a deadline comes or a
// scheduled function is to run. At each instant, in this order:
//
//  1. All that has arrived at a is received, Due following each Receive; then
//     the same at b.
//  2. Scheduled functions run, those scheduled first before the others.
//  3. Due of a, then of b: if a function ran, or if its deadline has come. An
//     endpoint is not asked without a reason, so that a deadline which comes
//     too late shows.
//
// Whatever this makes happen at the same instant follows in another round of
// the three steps. If that never ends, Run panics.
type Pair struct {
	clock  Clock
	start  time.Time
	now    time.Duration
	sides  [2]side // a, b
	events heap[event]
	order  uint64 // of the next event
	rounds int    // since time moved
}

// side is an endpoint with the links as it sees them.
type side struct {
	Endpoint
	in, out *Link
	send    func(datagram []byte) // on out, now
}

// event is a scheduled function.
type event struct {
	at    time.Duration
	order uint64 // breaks ties; a ticker keeps its own
	fn    func()
	ticks *ticker // nil if it runs once
}

//lint:ignore U1000 the heap calls it
func (e event) before(f event) bool {
	return e.at < f.at || e.at == f.at && e.order < f.order
}

// ticker runs n times every per, at base plus i*per/n.
type ticker struct {
	base    time.Duration
	i, n    int64
	per     time.Duration
	stopped bool
}

// at is computed afresh for each tick: adding up a rounded period would drift
// by 2.4 ms an hour at 60 Hz. Whole multiples of per are split off so that i*per
// cannot overflow.
func (t *ticker) at() time.Duration {
	n, per := time.Duration(t.n), t.per
	i := time.Duration(t.i)
	return t.base + i/n*per + i%n*per/n
}

// NewPair returns a pair at time zero, which is the time clock shows now. Each
// direction has its own weather and its own random numbers: what is sent one
// way does not alter what becomes of datagrams on the other.
func NewPair(seed uint64, clock Clock, a, b Endpoint, aToB, bToA Config) *Pair {
	seed = mix(seed)
	ab, ba := NewLink(seed, aToB), NewLink(seed+1, bToA)
	p := &Pair{clock: clock, start: clock.Now()}
	p.sides = [2]side{
		{a, ba, ab, func(datagram []byte) { ab.Send(p.now, datagram) }},
		{b, ab, ba, func(datagram []byte) { ba.Send(p.now, datagram) }},
	}
	return p
}

// Now returns the virtual time since the start.
func (p *Pair) Now() time.Duration { return p.now }

// Link returns the link of a direction, for its Stats and SetConfig.
func (p *Pair) Link(d Direction) *Link { return p.sides[d].out }

// Send puts a datagram on a link now, as if the endpoint there had. It may be
// called at any time, from scheduled functions too. The bytes are copied.
func (p *Pair) Send(d Direction, datagram []byte) { p.sides[d].send(datagram) }

// Observe sets a function that is told everything that happens on both links,
// in order; nil for none. It replaces what [Link.Observe] set. The datagram is
// valid during the call only and must not be changed.
func (p *Pair) Observe(fn func(at time.Duration, d Direction, what What, datagram []byte)) {
	for d := AToB; d <= BToA; d++ {
		if fn == nil {
			p.Link(d).Observe(nil)
			continue
		}
		p.Link(d).Observe(func(at time.Duration, what What, datagram []byte) { fn(at, d, what, datagram) })
	}
}

// At schedules fn to run once at t, or now if t has passed.
func (p *Pair) At(t time.Duration, fn func()) {
	p.events.push(event{at: max(t, p.now), order: p.order, fn: fn})
	p.order++
}

// Every schedules fn to run n times every per, until stop is called: the i-th
// time, from i = 0, at i*per/n from now, rounded down to the nanosecond but
// without a rounding error that adds up. Every(60, time.Second, fn) is a game
// loop, Every(1, period, fn) a ticker.
func (p *Pair) Every(n int, per time.Duration, fn func()) (stop func()) {
	if n < 1 || time.Duration(n) > per || per > 365*24*time.Hour {
		panic(fmt.Sprintf("simnet: %d ticks every %v", n, per))
	}
	t := &ticker{base: p.now, n: int64(n), per: per}
	p.events.push(event{at: p.now, order: p.order, fn: fn, ticks: t})
	p.order++
	return func() { t.stopped = true }
}

// Run runs until the given time, what happens at that instant included, and
// leaves the clock there; it does nothing if that time has passed. Two runs in
// a row are the same as one. It panics if the pair never becomes idle at one
// instant. Endpoints and scheduled functions must not call it.
//
// What the caller made an endpoint send between two runs goes out when its
// Deadline says that it is due, or after the next scheduled function.
func (p *Pair) Run(until time.Duration) {
	p.RunUntil(func() bool { return false }, until)
}

// RunUntil is Run, but stops as soon as done reports true, and returns whether
// it did. It asks before the first round and after each, with the clock at that
// instant. The limit is a time since the start, like until of Run.
func (p *Pair) RunUntil(done func() bool, limit time.Duration) bool {
	for !done() {
		at, ok := p.next()
		if !ok || at > limit {
			p.moveTo(max(limit, p.now))
			return false
		}
		p.moveTo(at)
		if p.rounds++; p.rounds > maxRounds {
			panic(p.stuck())
		}
		p.round()
	}
	return true
}

// next returns the next instant at which something happens, now at the earliest.
func (p *Pair) next() (at time.Duration, ok bool) {
	soonest := func(t time.Duration) {
		if !ok || t < at {
			at, ok = t, true
		}
	}
	for i := range p.sides {
		s := &p.sides[i]
		if arrival, some := s.in.Next(); some {
			soonest(arrival)
		}
		if deadline, some := s.Deadline(); some {
			soonest(deadline.Sub(p.start))
		}
	}
	if len(p.events) > 0 {
		soonest(p.events[0].at)
	}
	return max(at, p.now), ok
}

func (p *Pair) moveTo(t time.Duration) {
	if t > p.now {
		p.now, p.rounds = t, 0
	}
	p.clock.Set(p.start.Add(p.now))
}

// round does the three steps once. What they add for this same instant waits
// for the next round, so that each step ends.
func (p *Pair) round() {
	for i := range p.sides {
		s := &p.sides[i]
		for range s.in.InFlight() {
			datagram, ok := s.in.Receive(p.now)
			if !ok {
				break
			}
			s.Receive(datagram)
			s.Due(s.send)
		}
	}
	ran := p.runEvents()
	for i := range p.sides {
		s := &p.sides[i]
		if t, ok := s.Deadline(); ran || ok && t.Sub(p.start) <= p.now {
			s.Due(s.send)
		}
	}
}

// runEvents runs the functions due now that were scheduled before it was
// called, and reports whether there were any.
func (p *Pair) runEvents() (ran bool) {
	for until := p.order; len(p.events) > 0 && p.events[0].at <= p.now && p.events[0].order < until; {
		e := p.events.pop()
		if t := e.ticks; t != nil {
			if t.stopped {
				continue
			}
			t.i++
			e.at = t.at()
			p.events.push(e)
		}
		e.fn()
		ran = true
	}
	return ran
}

// stuck describes a pair that is never idle.
func (p *Pair) stuck() string {
	s := fmt.Sprintf("simnet: never idle: %d rounds at %v without time moving;", maxRounds, p.now)
	for i := range p.sides {
		name, deadline := "ab"[i], "none"
		if t, ok := p.sides[i].Deadline(); ok {
			deadline = t.Sub(p.start).String()
		}
		at, ok := p.sides[i].in.Next()
		s += fmt.Sprintf(" %c has deadline %s, arrival now %t;", name, deadline, ok && at <= p.now)
	}
	return s + fmt.Sprintf(" function scheduled now %t", len(p.events) > 0 && p.events[0].at <= p.now)
}
