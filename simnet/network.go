package simnet

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
)

// What Pair and Net share: ends, the links between them, and virtual time.
// Addresses are numbers here; how ends are named and added is up to those two.

// Clock is the time as the code under test reads it; ackbits.ManualClock is one.
// A Pair or Net only ever sets it forward. Nobody else may set it meanwhile, and
// all ends of one Pair or Net must read the same clock.
type Clock interface {
	Now() time.Time
	Set(t time.Time)
}

// maxRounds is how many rounds there may be at one instant before Run panics. Larger delays
// the panic about an endless loop; smaller hits long exchanges over links without delay.
const maxRounds = 10_000

// network runs ends over links in virtual time.
type network struct {
	clock  Clock
	start  time.Time
	now    time.Duration
	ends   []*end   // in the order in which they were added
	times  []agenda // of ends, side by side since all are looked at in every round
	gone   int      // how many of the ends were removed
	holder []*end   // by addressID: the end that has the address, if any
	events heap[event]
	order  uint64 // of the next event
	rounds int    // since time moved

	// Ends are asked for their Deadline after every call. Those of a Net, which
	// may be a thousand, keep theirs until then or until stale is set; those of
	// a Pair are asked in every round, too, since one may call the other.
	remembers, stale bool

	unreachable int
	observe     func(h hop, what What, datagram []byte) // of what happens outside of links
}

// addressID stands for an address: an index of network.holder. 0 is none.
type addressID int32

// end is one end: a node, and the links that it sends and receives on.
type end struct {
	node    node // nil once it was removed
	name    string
	address addressID
	up      *Link // what it sends; nil in a Pair, which has one link each way
	down    *Link // what it receives
	index   int   // in network.ends
}

// agenda says when something happens at an end: a datagram leaves its up link, one arrives
// on its down link, its deadline comes.
type agenda struct{ up, down, due time.Duration }

const never = time.Duration(math.MaxInt64)

// node is an Endpoint or a Node, as the network calls it.
type node interface {
	receive(from addressID, datagram []byte)
	due()
	Deadline() (time.Time, bool)
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

func newNetwork(clock Clock) network {
	return network{clock: clock, start: clock.Now(), holder: make([]*end, 1)}
}

// attach adds an end. Its Deadline is asked later, when its node is known.
func (n *network) attach(e *end) {
	e.index = len(n.ends)
	n.ends = append(n.ends, e)
	n.times = append(n.times, agenda{never, never, never})
	n.stale = true
}

// Now returns the virtual time since the start.
func (n *network) Now() time.Duration { return n.now }

// At schedules fn to run once at t, or at once if t has passed. Functions that are
// due at one instant run in the order in which they were scheduled.
func (n *network) At(t time.Duration, fn func()) {
	n.events.push(event{at: max(t, n.now), order: n.order, fn: fn})
	n.order++
}

// Every schedules fn to run times times every per, for the first time now, until
// stop is called. Every(60, time.Second, fn) is a game loop, Every(1, period, fn)
// a ticker. Run number i, from 0, is at i*per/times from now, rounded down to the
// nanosecond; rounding errors do not add up. It panics unless times is at least 1
// and per from times nanoseconds to a year.
func (n *network) Every(times int, per time.Duration, fn func()) (stop func()) {
	if times < 1 || time.Duration(times) > per || per > 365*24*time.Hour {
		panic(fmt.Sprintf("simnet: %d ticks every %v", times, per))
	}
	t := &ticker{base: n.now, n: int64(times), per: per}
	n.events.push(event{at: n.now, order: n.order, fn: fn, ticks: t})
	n.order++
	return func() { t.stopped = true }
}

// Run runs until the given time since the start, what happens at that instant
// included, and leaves the clock there. It does nothing if that time has passed.
// Two runs in a row are the same as one to the later time. It panics if it would
// run for ever at one instant. The code that it runs must not call it.
//
// What you queue at an end between two runs is sent when its Deadline says that it is due, or
// after the next scheduled function.
func (n *network) Run(until time.Duration) {
	n.RunUntil(func() bool { return false }, until)
}

// RunUntil is Run, but stops as soon as done reports true, and returns whether it
// did. done is called at the start and after each round, with the clock at that
// instant. limit is a time since the start.
func (n *network) RunUntil(done func() bool, limit time.Duration) bool {
	for n.stale = true; !done(); {
		at, ok := n.next()
		if !ok || at > limit {
			n.moveTo(max(limit, n.now))
			return false
		}
		n.moveTo(at)
		if n.rounds++; n.rounds > maxRounds {
			panic(n.stuck())
		}
		n.round()
	}
	return true
}

// next returns the next instant at which something happens, now at the earliest.
func (n *network) next() (at time.Duration, ok bool) {
	if n.stale || !n.remembers {
		n.askAll()
	}
	at = never
	for i := range n.times {
		t := &n.times[i]
		at = min(at, t.up, t.down, t.due)
	}
	if len(n.events) > 0 {
		at = min(at, n.events[0].at)
	}
	return max(at, n.now), at != never
}

func (n *network) askAll() {
	for _, e := range n.ends {
		n.ask(e)
	}
	n.stale = false
}

// ask asks an end for its Deadline.
func (n *network) ask(e *end) {
	due := never
	if e.node != nil {
		if t, ok := e.node.Deadline(); ok {
			due = t.Sub(n.start)
		}
	}
	n.times[e.index].due = due
}

// look notes when the next datagrams leave the links of an end.
func (n *network) look(e *end) {
	t := &n.times[e.index]
	t.up, t.down = never, never
	if e.up != nil {
		if at, ok := e.up.Next(); ok {
			t.up = at
		}
	}
	if at, ok := e.down.Next(); ok {
		t.down = at
	}
}

func (n *network) moveTo(t time.Duration) {
	if t > n.now {
		n.now, n.rounds = t, 0
	}
	n.clock.Set(n.start.Add(n.now))
}

// round does the steps that the doc of Pair and Net describes, once. What they
// cause at this same instant waits for the next round, so that each step ends.
// Ends may be added meanwhile; removed ones stay until the end of the round.
func (n *network) round() {
	for i := 0; i < len(n.times); i++ {
		if n.times[i].up <= n.now {
			n.forwardAll(n.ends[i])
		}
	}
	for i := 0; i < len(n.times); i++ {
		if n.times[i].down <= n.now {
			n.receiveAll(n.ends[i])
		}
	}
	ran := n.runEvents()
	if !n.remembers {
		n.askAll()
	}
	for i := 0; i < len(n.times); i++ {
		if ran || n.times[i].due <= n.now {
			n.due(n.ends[i])
		}
	}
	if n.gone > 0 {
		n.forget()
	}
}

// forwardAll moves what has left an end's up link on to the receivers' links.
func (n *network) forwardAll(e *end) {
	for h, datagram, ok := e.up.receive(n.now); ok; h, datagram, ok = e.up.receive(n.now) {
		n.forward(h, datagram)
	}
	n.look(e)
}

// receiveAll hands an end what has arrived for it before this round.
func (n *network) receiveAll(e *end) {
	for range e.down.InFlight() {
		h, datagram, ok := e.down.receive(n.now)
		if !ok {
			break
		}
		if n.holder[h.to] != e {
			n.unreachable++
			continue
		}
		e.node.receive(h.from, datagram)
		n.due(e)
	}
	n.look(e)
}

// due lets an end send, unless it is gone.
func (n *network) due(e *end) {
	if e.node != nil {
		e.node.due()
	}
	n.ask(e)
}

// send sends a datagram from an end, now.
func (n *network) send(e *end, to addressID, datagram []byte) {
	h := hop{e.address, to}
	if e.up == nil {
		n.forward(h, datagram)
		return
	}
	e.up.send(n.now, datagram, h)
	n.look(e)
}

// forward puts a datagram on the link to the end that has its address.
func (n *network) forward(h hop, datagram []byte) {
	if e := n.holder[h.to]; e != nil {
		e.down.send(n.now, datagram, h)
		n.look(e)
		return
	}
	n.unreachable++
	if n.observe != nil {
		n.observe(h, Unreachable, datagram)
	}
}

// runEvents runs the functions due now that were scheduled before it was
// called, and reports whether there were any.
func (n *network) runEvents() (ran bool) {
	for until := n.order; len(n.events) > 0 && n.events[0].at <= n.now && n.events[0].order < until; {
		e := n.events.pop()
		if t := e.ticks; t != nil {
			if t.stopped {
				continue
			}
			t.i++
			e.at = t.at()
			n.events.push(e)
		}
		e.fn()
		ran = true
	}
	return ran
}

// forget drops removed ends once nothing is in flight on their links.
func (n *network) forget() {
	n.ends = slices.DeleteFunc(n.ends, func(e *end) bool {
		return e.node == nil && e.up.InFlight()+e.down.InFlight() == 0
	})
	n.gone, n.times = 0, n.times[:len(n.ends)]
	for i, e := range n.ends {
		e.index = i
		n.look(e)
		n.ask(e)
		if e.node == nil {
			n.gone++
		}
	}
}

// stuck names what keeps an instant from ending.
func (n *network) stuck() string {
	const most = 8 // of a thousand ends, so many tell enough
	s := fmt.Sprintf("simnet: never idle: %d rounds at %v without time moving;", maxRounds, n.now)
	busy := 0
	for _, e := range n.ends {
		t := n.times[e.index]
		due, arrives := t.due <= n.now, t.down <= n.now
		if !due && !arrives {
			continue
		}
		if busy++; busy > most {
			continue
		}
		var why []string
		if due {
			why = append(why, "deadline "+t.due.String())
		}
		if arrives {
			why = append(why, "a datagram arrives")
		}
		s += fmt.Sprintf(" %s: %s;", e.name, strings.Join(why, " and "))
	}
	if busy > most {
		s += fmt.Sprintf(" and %d more;", busy-most)
	}
	return s + fmt.Sprintf(" function scheduled now: %t", len(n.events) > 0 && n.events[0].at <= n.now)
}
