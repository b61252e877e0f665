// Package scenario plays a game's traffic between two sessions over lossy links
// in virtual time, and measures how long events take and what they cost. Tests
// pin the library's latency with it and the examples draw it.
package scenario

import (
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/ackbits/ackbits"
	"github.com/ackbits/ackbits/simnet"
)

// Traffic is what both sides send, a being the client and b the server. All
// happens on ticks.
type Traffic struct {
	Duration  time.Duration // for which events are sent; what is in flight then is waited for
	TickRate  int           // ticks a second
	EventRate int           // events a second and side
	EventSize int           // bytes, 8 at least
	Burst     int           // if not 0: so many events in the last tick of every BurstGap, instead of EventRate
	BurstGap  time.Duration
	StateSize int // bytes of a state datagram
	StateA    int // state datagrams a second, at most TickRate
	StateB    int

	Once   int           // if not 0: the client sends so many events at OnceAt, beside the others
	OnceAt time.Duration // later by up to a tick

	// Phases lets the two sides' ticks begin at moments of their own, by the seed,
	// instead of at one.
	Phases bool

	// OnTicks hands arrivals in at the next tick, as a game loop does that polls
	// its socket; otherwise they are handed in as they arrive.
	OnTicks bool
}

// W1 is 20 events a second of 64 bytes each way, beside state datagrams of 100
// bytes at 60 Hz from the client and 20 Hz from the server.
var W1 = Traffic{
	Duration: 5 * time.Minute, TickRate: 60, EventRate: 20, EventSize: 64,
	StateSize: 100, StateA: 60, StateB: 20,
}

// udpIP is the size of the headers below ours, which every datagram costs.
const udpIP = simnet.UDPOverIPv4

// Result is what one run measured, both directions together.
type Result struct {
	Latencies []time.Duration  // from Send to delivery, sorted
	Sent      int              // events; as many as Latencies unless some were lost
	Twice     int              // events delivered more than once
	Copies    float64          // copies sent of each event
	Bytes     float64          // sent for each event, beyond what the state alone would cost
	Err       error            // why a session ended
	Events    [2]Outcomes      // of the client's and the server's events, if the game asked for Details
	States    [2]Outcomes      // of their state datagrams, likewise
	Stats     [2]ackbits.Stats // of the client and the server, when all was over
}

// Quantile returns the latency that the share q of the events does not exceed.
func (r *Result) Quantile(q float64) time.Duration {
	if len(r.Latencies) == 0 {
		return 0
	}
	return r.Latencies[min(int(q*float64(len(r.Latencies))), len(r.Latencies)-1)]
}

// Game is one run: traffic between two sessions of one configuration.
type Game struct {
	Seed    uint64
	Config  ackbits.Config // Clock, Token and PollInterval are set by Play
	Link    simnet.Config  // both ways
	Traffic Traffic
	Changes []Change // of both links
	Police  Policer  // of both links
	Others  Others   // who share the link from the client
	// Withhold is when both sides' Accept withholds every state datagram.
	Withhold simnet.Window
	Details  bool // Result.Events and States are wanted
	// Observe, if not nil, is told what happens on the links, see
	// simnet.Pair.Observe. Carried tells which events a datagram has.
	Observe func(at time.Duration, d simnet.Direction, what simnet.What, datagram []byte)
}

// Change is how the links are from a moment on.
type Change struct {
	At   time.Duration
	Link simnet.Config
}

// Run plays traffic over a link that stays as it is.
func Run(seed uint64, cfg ackbits.Config, link simnet.Config, traffic Traffic) Result {
	g := Game{Seed: seed, Config: cfg, Link: link, Traffic: traffic}
	return g.Play()
}

// Play runs the game from its start. Two runs are the same.
func (g *Game) Play() Result {
	clock := new(ackbits.ManualClock)
	clock.Set(time.Unix(0, 0))
	cfg, traffic := g.Config, g.Traffic
	cfg.Clock = clock
	cfg.Token = g.Seed
	cfg.PollInterval = time.Second / time.Duration(traffic.TickRate)
	a, b := newPeer(cfg, g, traffic.StateA), newPeer(cfg, g, traffic.StateB)
	a.other, b.other = b, a
	a.once = traffic.Once
	pair := simnet.NewPair(g.Seed, clock, a, b, g.Link, g.Link)
	if g.Observe != nil {
		pair.Observe(g.Observe)
	}
	for _, c := range g.Changes {
		pair.At(c.At, func() {
			pair.Link(simnet.AToB).SetConfig(pair.Now(), c.Link)
			pair.Link(simnet.BToA).SetConfig(pair.Now(), c.Link)
		})
	}
	for i, p := range []*peer{a, b} {
		police := g.Police.Bucket()
		p.now = pair.Now
		p.send = func(datagram []byte) {
			p.account(datagram)
			if police.Passes(pair.Now(), len(datagram)+udpIP) {
				pair.Send(simnet.Direction(i), datagram)
			}
		}
	}
	g.Others.start(pair, g.Seed)
	startTicks(pair, g, a, b)
	pair.Run(traffic.Duration)
	a.quiet, b.quiet = true, true
	pair.RunUntil(func() bool {
		ended := a.session.Err() != nil || b.session.Err() != nil
		return ended || a.session.InFlight() == 0 && b.session.InFlight() == 0
	}, traffic.Duration+time.Minute)

	r := Result{Stats: [2]ackbits.Stats{a.session.Stats(), b.session.Stats()}}
	var copies, bytes uint64
	for i, p := range []*peer{a, b} {
		r.Events[i], r.States[i] = p.events, p.stateOutcomes
		if err := p.session.Err(); err != nil && r.Err == nil {
			r.Err = err
		}
		r.Latencies = append(r.Latencies, p.latencies...)
		r.Sent += len(p.sentAt)
		r.Twice += p.twice
		copies += p.atEnd.EventsSent + p.atEnd.EventsResent
		bytes += p.atEnd.BytesSent + udpIP*p.atEnd.DatagramsSent - uint64(p.states*(udpIP+traffic.StateSize))
	}
	slices.Sort(r.Latencies)
	if r.Sent > 0 {
		r.Copies = float64(copies) / float64(r.Sent)
		r.Bytes = float64(bytes) / float64(r.Sent)
	}
	return r
}

// startTicks lets both sides tick: at the same moments, the client first, or each at moments
// of its own.
func startTicks(pair *simnet.Pair, g *Game, a, b *peer) {
	rate := g.Traffic.TickRate
	if !g.Traffic.Phases {
		pair.Every(rate, time.Second, func() {
			a.tick()
			b.tick()
		})
		return
	}
	random := rand.New(rand.NewPCG(g.Seed, 7))
	for _, p := range []*peer{a, b} {
		phase := time.Duration(random.Int64N(int64(time.Second) / int64(rate)))
		pair.At(phase, func() { pair.Every(rate, time.Second, p.tick) })
	}
}

// Carried appends the events that a session's datagram carries to dst, alone or
// beside a payload of the application's. Data aliases datagram.
func Carried(dst []ackbits.Event, datagram []byte) []ackbits.Event {
	h, list, err := ackbits.ParseHeader(datagram)
	if err == nil && h.Type == ackbits.TypeBundle && len(list) > 1 {
		list = list[1:] // the inner type
	} else if err != nil || h.Type != ackbits.TypeEvent || len(list) == 0 {
		return dst
	}
	end := 1
	for range list[0] {
		if len(list) < end+4 {
			return dst
		}
		end += 4 + int(binary.LittleEndian.Uint16(list[end+2:]))
	}
	dst, _ = ackbits.ParseEvents(dst, list[:min(end, len(list))])
	return dst
}

// Number returns the number of an event of a Game, which each side counts from
// 0.
func Number(e ackbits.Event) int { return int(binary.LittleEndian.Uint64(e.Data)) }

// peer is one side of the game.
type peer struct {
	session *ackbits.Session
	traffic Traffic
	other   *peer
	send    func([]byte)
	now     func() time.Duration

	stateRate int
	ticks     int
	quiet     bool // no more events
	states    int
	arrived   [][]byte
	buf       []byte
	payload   []byte
	event     []byte

	once     int // events still to be sent at Traffic.OnceAt
	withhold simnet.Window
	list     []ackbits.Event

	// What becomes of what this side sends, if details are wanted.
	details       bool
	events        []Outcome
	stateOutcomes []Outcome

	sentAt    []time.Duration // of the events sent, by the number in them
	received  []bool          // of the other side's
	latencies []time.Duration
	twice     int
	atEnd     ackbits.Stats // when the last event was sent
}

func newPeer(cfg ackbits.Config, g *Game, stateRate int) *peer {
	traffic := g.Traffic
	p := &peer{
		traffic: traffic, stateRate: stateRate, withhold: g.Withhold, details: g.Details,
		buf:     make([]byte, 0, ackbits.MaxDatagramSize),
		payload: make([]byte, traffic.StateSize),
		event:   make([]byte, max(traffic.EventSize, 8)),
	}
	if p.withhold != (simnet.Window{}) {
		cfg.Accept = p.accept
	}
	var err error
	if p.session, err = ackbits.NewSession(cfg); err != nil {
		panic(err)
	}
	return p
}

// accept withholds state for a while, like an application that lacks its baseline.
func (p *peer) accept(ackbits.Header, []byte) error {
	if now := p.now(); now >= p.withhold.From && now < p.withhold.To {
		return ackbits.ErrWithhold
	}
	return nil
}

// Receive takes a datagram from the link.
func (p *peer) Receive(datagram []byte) {
	if foreign(datagram) {
		return
	}
	if p.traffic.OnTicks {
		p.arrived = append(p.arrived, slices.Clone(datagram))
		return
	}
	p.take(datagram)
}

func (p *peer) take(datagram []byte) {
	in, err := p.session.Receive(datagram)
	if err != nil {
		return // a session that has ended; Run reports it
	}
	if p.details && len(in.Payload) >= 8 {
		p.other.stateOutcomes[binary.LittleEndian.Uint64(in.Payload)].arrive(p.now())
	}
	for _, e := range in.Events {
		k := Number(e)
		if p.received = slices.Grow(p.received, max(0, k+1-len(p.received))); k >= len(p.received) {
			p.received = p.received[:k+1]
		}
		if p.received[k] {
			p.twice++
			continue
		}
		p.received[k] = true
		if p.details {
			p.other.events[k].arrive(p.now())
		}
		p.latencies = append(p.latencies, p.now()-p.other.sentAt[k])
	}
}

// Due flushes the session. The pair calls it after each Receive and each tick.
func (p *peer) Due(send func([]byte)) {
	if p.traffic.OnTicks {
		return
	}
	p.flush()
}

func (p *peer) flush() {
	for datagram := range p.session.Due(p.buf) {
		p.send(datagram)
	}
}

// Deadline never has one: this peer polls.
func (p *peer) Deadline() (time.Time, bool) { return time.Time{}, false }

func (p *peer) tick() {
	for _, datagram := range p.arrived {
		p.take(datagram)
		p.flush()
	}
	p.arrived = p.arrived[:0]
	for range p.eventsNow() {
		if p.session.Room() == 0 {
			break
		}
		binary.LittleEndian.PutUint64(p.event, uint64(len(p.sentAt)))
		if _, err := p.session.Send(p.event); err == nil {
			p.sentAt = append(p.sentAt, p.now())
			if p.details {
				p.events = append(p.events, Outcome{At: p.now()})
			}
		}
	}
	if every(p.ticks, p.stateRate, p.traffic.TickRate) {
		if p.details && len(p.payload) >= 8 {
			binary.LittleEndian.PutUint64(p.payload, uint64(len(p.stateOutcomes)))
			p.stateOutcomes = append(p.stateOutcomes, Outcome{At: p.now(), Copies: 1})
		}
		if datagram, _, err := p.session.AppendDatagram(p.buf, ackbits.TypeSnapshot, p.payload); err == nil {
			p.states++
			p.send(datagram)
		}
	}
	p.flush()
	p.ticks++
	if !p.quiet || p.session.InFlight() > 0 {
		p.atEnd = p.session.Stats()
	}
}

// eventsNow is how many events this tick sends.
func (p *peer) eventsNow() int {
	if p.quiet {
		return 0
	}
	n := p.traffic.Events(p.ticks)
	if p.once > 0 && p.now() >= p.traffic.OnceAt {
		n += p.once
		p.once = 0
	}
	return n
}

// Events is how many events each side sends at a tick, the first being 0.
func (t *Traffic) Events(tick int) int {
	if t.Burst == 0 {
		return (tick+1)*t.EventRate/t.TickRate - tick*t.EventRate/t.TickRate
	}
	if (tick+1)%max(1, int(t.BurstGap*time.Duration(t.TickRate)/time.Second)) == 0 {
		return t.Burst
	}
	return 0
}

// every reports whether something that happens rate times a second, out of ticks
// a second, happens at a tick.
func every(tick, rate, ticks int) bool { return (tick+1)*rate/ticks > tick*rate/ticks }
