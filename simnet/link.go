// Package simnet is a seeded, lossy datagram network in virtual time, for tests
// and examples. It moves bytes and knows nothing of what is in them.
//
// A [Link] is one direction of a path. It is told the time, never asks for it,
// and every mishap is set in its [Config]:
//
//	l := simnet.NewLink(1, simnet.Config{Delay: 40 * time.Millisecond, Loss: 0.05})
//	l.Send(0, datagram)
//	at, ok := l.Next()           // 40ms, unless it was lost
//	datagram, ok := l.Receive(at)
//
// A [Pair] runs two endpoints over two links and moves a virtual clock from one
// instant to the next at which something happens, so that an hour of play takes
// as long as its datagrams take to handle:
//
//	p := simnet.NewPair(1, &clock, alice, bob, simnet.Config{Loss: 0.1}, simnet.Config{})
//	p.Every(60, time.Second, func() { ... }) // a game loop at 60 Hz
//	p.At(5*time.Second, func() { p.Link(simnet.AToB).SetConfig(p.Now(), worse) })
//	p.Run(time.Minute)
//
// Times are offsets from the start of the simulation. The same seed and the
// same calls give the same trace on every architecture: all that is random is
// decided by comparing integers. Nothing here is safe for concurrent use, and
// wrong arguments panic.
package simnet

import (
	"fmt"
	"math/bits"
	"math/rand/v2"
	"slices"
	"time"
)

// UDPOverIPv4 and UDPOverIPv6 are the header bytes of a datagram on the wire,
// for [Config].Overhead.
const (
	UDPOverIPv4 = 20 + 8
	UDPOverIPv6 = 40 + 8
)

// defaultQueue is small for a router and some 500 ms at 1 Mbit/s: a larger one
// hides overload behind delay, a smaller one drops what a short burst sends.
const defaultQueue = 64 << 10

// Config is the weather on a [Link]. The zero value is a perfect link: no
// delay, no loss, no limit. Probabilities are from 0 (never) to 1 (always).
type Config struct {
	// Delay is how long every datagram travels; Jitter is the most by which
	// it is late beyond that, uniformly from 0 to Jitter, bounds included.
	// Each datagram has its own jitter, so they may overtake one another.
	Delay, Jitter time.Duration

	// Loss is the probability that a datagram is lost, whatever became of the
	// one before it. Burst adds losses that come together.
	Loss  float64
	Burst Burst

	// Reorder is the probability that a datagram is held back by a further
	// ReorderDelay, so that those sent after it overtake it.
	Reorder      float64
	ReorderDelay time.Duration

	// Duplicate is the probability that a datagram which is not lost arrives
	// twice. The copy has its own jitter, reordering and damage.
	Duplicate float64

	// Corrupt is the probability that one bit of a datagram is flipped, and
	// Truncate that it is cut to a length from 0 to one byte less than it had.
	Corrupt, Truncate float64

	// Rate is how many bytes leave a second, Overhead included; zero means
	// without limit. Datagrams wait for their turn in a queue.
	Rate int

	// Queue is how many bytes may wait or be leaving, Overhead included, when
	// there is a Rate; a datagram that does not fit is dropped (tail drop).
	// One always fits into an empty queue. If zero, the default is 64 KiB. If
	// negative, nothing waits.
	Queue int

	// Overhead is how many bytes each datagram is longer on the wire; it
	// counts for Rate and Queue. See [UDPOverIPv4].
	Overhead int

	// Blackouts are times when everything that is sent is lost. What was
	// under way before still arrives.
	Blackouts []Window
}

// Burst is a Gilbert-Elliott channel: a link that is good and bad in turns,
// each for a random, exponentially distributed time. It starts good. When it
// changes depends on the seed alone, not on what is sent. The zero value is off.
type Burst struct {
	// MeanGood and MeanBad are how long a state lasts on average; both are at
	// least a millisecond, or both zero.
	MeanGood, MeanBad time.Duration

	// LossGood and LossBad are the probabilities of loss in each state.
	LossGood, LossBad float64
}

// A Window is the time from From, included, to To, excluded.
type Window struct{ From, To time.Duration }

// Stats counts what a [Link] has done. At any time
// Sent + Duplicated = Delivered + Lost + [Link.InFlight].
type Stats struct {
	Sent       int // calls of Send
	Delivered  int // datagrams handed over by Receive, copies included
	Lost       int // for whatever reason, the next three included
	Duplicated int // copies made

	LostInBurst    int // of Lost: in the bad state of Burst
	LostInBlackout int // of Lost: sent in a blackout
	LostInQueue    int // of Lost: no room in the queue

	Reordered int // of Delivered: after one that was sent later
	Corrupted int // put under way with a flipped bit, copies included
	Truncated int // put under way cut short, copies included

	BytesSent, BytesDelivered int64 // without Overhead
}

// What says what happened to a datagram, for an observer.
type What uint8

// The life of a datagram: Sent, then one of the losses, or Delivered. Each
// copy under way may be Corrupted and Truncated before.
const (
	Sent           What = iota // as it was sent
	Lost                       // by Loss or Burst.LossGood
	LostInBurst                // by Burst.LossBad
	LostInBlackout             // sent in a blackout
	LostInQueue                // no room in the queue
	Duplicated                 // a copy is under way as well
	Truncated                  // with the bytes that are left
	Corrupted                  // with the flipped bit
	Delivered                  // as it arrived
)

var whats = [...]string{"sent", "lost", "lost in burst", "lost in blackout", "lost in queue",
	"duplicated", "truncated", "corrupted", "delivered"}

func (w What) String() string {
	if int(w) < len(whats) {
		return whats[w]
	}
	return fmt.Sprintf("What(%d)", uint8(w))
}

// Link carries datagrams in one direction. See [NewLink].
type Link struct {
	cfg     Config
	odds    odds
	rng     rand.PCG // the fate of datagrams
	weather rand.PCG // the lengths of good and bad times, apart from it
	observe func(at time.Duration, what What, datagram []byte)
	stats   Stats

	last    time.Duration // of the latest Send or SetConfig
	bad     bool          // the state of the burst process
	turns   time.Duration // when that state ends
	queue   []leaving     // what has not left yet is queue[gone:]
	gone    int
	waiting int // bytes in queue[gone:]

	flights heap[flight]
	order   uint64   // of the next flight
	highest int      // the largest number delivered
	free    [][]byte // buffers for new flights
	out     []byte   // the buffer that Receive handed out last
}

// odds are the probabilities of a Config, as draws are compared with them.
type odds struct{ loss, good, bad, reorder, duplicate, corrupt, truncate chance }

// leaving is a datagram in the queue, or its last byte on the way out.
type leaving struct {
	at   time.Duration
	size int
}

// flight is a datagram under way.
type flight struct {
	at       time.Duration
	order    uint64 // breaks ties
	number   int    // Stats.Sent when it was sent
	datagram []byte // owned by the link
}

func (f flight) before(g flight) bool {
	return f.at < g.at || f.at == g.at && f.order < g.order
}

// NewLink returns a link with the given weather. Links that are to differ need
// seeds that differ; near ones will do.
func NewLink(seed uint64, cfg Config) *Link {
	seed = mix(seed)
	l := &Link{rng: *rand.NewPCG(seed, 1), weather: *rand.NewPCG(seed, 2)}
	l.SetConfig(0, cfg)
	return l
}

// SetConfig changes the weather for what is sent from now on. What is under
// way keeps its fate, and what is in the queue leaves at the old rate, ahead of
// all that follows. A new Burst starts in its good state; an equal one goes on.
// The slice in cfg is copied.
func (l *Link) SetConfig(now time.Duration, cfg Config) {
	cfg.check()
	l.advance(now)
	if l.cfg.Burst != cfg.Burst {
		l.bad, l.turns = true, now // turns good at once
	}
	l.cfg = cfg
	l.cfg.Blackouts = slices.Clone(cfg.Blackouts)
	l.odds = odds{
		loss:      chanceOf(cfg.Loss),
		good:      chanceOf(cfg.Burst.LossGood),
		bad:       chanceOf(cfg.Burst.LossBad),
		reorder:   chanceOf(cfg.Reorder),
		duplicate: chanceOf(cfg.Duplicate),
		corrupt:   chanceOf(cfg.Corrupt),
		truncate:  chanceOf(cfg.Truncate),
	}
}

// Observe sets a function that is told everything that happens, as it happens,
// for a transcript; nil for none. The datagram is valid during the call only
// and must not be changed.
func (l *Link) Observe(fn func(at time.Duration, what What, datagram []byte)) { l.observe = fn }

// Stats returns the counters.
func (l *Link) Stats() Stats { return l.stats }

// InFlight returns how many datagrams are under way.
func (l *Link) InFlight() int { return len(l.flights) }

// The random values of one datagram, and those of each of its two copies, which
// follow them.
const (
	drawLoss = iota
	drawBurst
	drawDuplicate
	drawsOfFate
)

const (
	drawJitter = iota
	drawReorder
	drawTruncate
	drawLength
	drawCorrupt
	drawBit
	drawsOfCopy
)

// Send puts a datagram on the link at now, which must not be earlier than in
// the call before. The bytes are copied, and all about them is decided here: in
// order, whether they are lost in a blackout, in the queue, in a burst or for no
// reason, then what becomes of the original and of its copy.
//
// Every datagram draws the same number of random values whatever the Config,
// so that changing one setting does not reshuffle the fate under all others.
func (l *Link) Send(now time.Duration, datagram []byte) {
	var draws [drawsOfFate + 2*drawsOfCopy]uint64
	for i := range draws {
		draws[i] = l.rng.Uint64()
	}
	l.advance(now)
	l.stats.Sent++
	l.stats.BytesSent += int64(len(datagram))
	l.tell(now, Sent, datagram)

	if l.blackout(now) {
		l.stats.LostInBlackout++
		l.lose(now, LostInBlackout, datagram)
		return
	}
	left, ok := l.enqueue(now, len(datagram)+l.cfg.Overhead)
	switch {
	case !ok:
		l.stats.LostInQueue++
		l.lose(now, LostInQueue, datagram)
	case l.bad && l.odds.bad.hit(draws[drawBurst]):
		l.stats.LostInBurst++
		l.lose(now, LostInBurst, datagram)
	case !l.bad && l.odds.good.hit(draws[drawBurst]), l.odds.loss.hit(draws[drawLoss]):
		l.lose(now, Lost, datagram)
	default:
		l.launch(now, left, datagram, draws[drawsOfFate:drawsOfFate+drawsOfCopy])
		if l.odds.duplicate.hit(draws[drawDuplicate]) {
			l.stats.Duplicated++
			l.tell(now, Duplicated, datagram)
			l.launch(now, left, datagram, draws[drawsOfFate+drawsOfCopy:])
		}
	}
}

// Next returns when the next datagram arrives; ok reports whether there is one.
func (l *Link) Next() (at time.Duration, ok bool) {
	if len(l.flights) == 0 {
		return 0, false
	}
	return l.flights[0].at, true
}

// Receive returns the next datagram that has arrived at now or before; ok
// reports whether there is one. They come in the order of arrival, and in the
// order in which they were put on the link if that is the same. The datagram
// may be changed, and is valid until the next Receive on this link.
func (l *Link) Receive(now time.Duration) (datagram []byte, ok bool) {
	if l.out != nil {
		l.free = append(l.free, l.out)
		l.out = nil
	}
	if at, ok := l.Next(); !ok || at > now {
		return nil, false
	}
	f := l.flights.pop()
	l.out = f.datagram
	l.stats.Delivered++
	l.stats.BytesDelivered += int64(len(f.datagram))
	if f.number < l.highest {
		l.stats.Reordered++
	}
	l.highest = max(l.highest, f.number)
	l.tell(now, Delivered, f.datagram)
	return f.datagram, true
}

// launch puts one copy under way that leaves the queue at left.
func (l *Link) launch(now, left time.Duration, datagram []byte, draws []uint64) {
	at := left + l.cfg.Delay + time.Duration(below(draws[drawJitter], uint64(l.cfg.Jitter)+1))
	if l.odds.reorder.hit(draws[drawReorder]) {
		at += l.cfg.ReorderDelay
	}
	b := append(l.buffer(), datagram...)
	if len(b) > 0 && l.odds.truncate.hit(draws[drawTruncate]) {
		b = b[:below(draws[drawLength], uint64(len(b)))]
		l.stats.Truncated++
		l.tell(now, Truncated, b)
	}
	if len(b) > 0 && l.odds.corrupt.hit(draws[drawCorrupt]) {
		bit := below(draws[drawBit], uint64(len(b))*8)
		b[bit/8] ^= 1 << (bit % 8)
		l.stats.Corrupted++
		l.tell(now, Corrupted, b)
	}
	l.flights.push(flight{at: at, order: l.order, number: l.stats.Sent, datagram: b})
	l.order++
}

// buffer returns an empty buffer, a used one if there is one. They start with
// room for an Ethernet frame, so that they soon stop growing.
func (l *Link) buffer() []byte {
	n := len(l.free)
	if n == 0 {
		return make([]byte, 0, 1500)
	}
	b := l.free[n-1]
	l.free = l.free[:n-1]
	return b[:0]
}

// enqueue returns when a datagram of size bytes has left, if there is room.
func (l *Link) enqueue(now time.Duration, size int) (left time.Duration, ok bool) {
	for l.gone < len(l.queue) && l.queue[l.gone].at <= now {
		l.waiting -= l.queue[l.gone].size
		l.gone++
	}
	if l.gone > len(l.queue)/2 { // keeps the slice short, at one move for each entry
		l.queue = l.queue[:copy(l.queue, l.queue[l.gone:])]
		l.gone = 0
	}
	left = now
	if n := len(l.queue); n > l.gone {
		left = l.queue[n-1].at
	}
	if l.cfg.Rate == 0 {
		return left, true
	}
	limit := l.cfg.Queue
	if limit == 0 {
		limit = defaultQueue
	}
	if l.gone < len(l.queue) && l.waiting+size > limit {
		return 0, false
	}
	rate := int64(l.cfg.Rate)
	left += time.Duration((int64(size)*int64(time.Second) + rate - 1) / rate) // rounded up
	l.queue = append(l.queue, leaving{left, size})
	l.waiting += size
	return left, true
}

// advance moves the time, and the burst process with it.
func (l *Link) advance(now time.Duration) {
	if now < l.last {
		panic(fmt.Sprintf("simnet: time goes back from %v to %v", l.last, now))
	}
	l.last = now
	if l.cfg.Burst == (Burst{}) {
		l.bad = false
		return
	}
	for l.turns <= now {
		l.bad = !l.bad
		mean := l.cfg.Burst.MeanGood
		if l.bad {
			mean = l.cfg.Burst.MeanBad
		}
		l.turns += exponential(l.weather.Uint64(), mean)
	}
}

func (l *Link) blackout(now time.Duration) bool {
	for _, w := range l.cfg.Blackouts {
		if w.From <= now && now < w.To {
			return true
		}
	}
	return false
}

func (l *Link) lose(now time.Duration, what What, datagram []byte) {
	l.stats.Lost++
	l.tell(now, what, datagram)
}

func (l *Link) tell(now time.Duration, what What, datagram []byte) {
	if l.observe != nil {
		l.observe(now, what, datagram)
	}
}

// check panics if a value makes no sense.
func (c *Config) check() {
	for _, p := range [...]float64{c.Loss, c.Burst.LossGood, c.Burst.LossBad, c.Reorder, c.Duplicate, c.Corrupt, c.Truncate} {
		if !(p >= 0 && p <= 1) { // NaN too
			panic(fmt.Sprintf("simnet: %v is not a probability", p))
		}
	}
	// The bound keeps sums far from overflow.
	for _, d := range [...]time.Duration{c.Delay, c.Jitter, c.ReorderDelay, c.Burst.MeanGood, c.Burst.MeanBad} {
		if d < 0 || d > 365*24*time.Hour {
			panic(fmt.Sprintf("simnet: %v is not a duration from 0 to a year", d))
		}
	}
	// The burst process is followed turn by turn, however long nothing is sent.
	if b := c.Burst; b != (Burst{}) && min(b.MeanGood, b.MeanBad) < time.Millisecond {
		panic(fmt.Sprintf("simnet: Burst means of %v and %v, less than a millisecond", b.MeanGood, b.MeanBad))
	}
	if c.Rate < 0 || c.Overhead < 0 {
		panic(fmt.Sprintf("simnet: negative Rate %d or Overhead %d", c.Rate, c.Overhead))
	}
}

// chance is a probability in units of 1/2^53.
type chance uint64

// chanceOf is exact: multiplying by a power of two does not round, and there
// is no sum for a compiler to fuse it with.
func chanceOf(p float64) chance { return chance(p * (1 << 53)) }

func (c chance) hit(draw uint64) bool { return chance(draw>>11) < c }

// below returns a value from 0 to n-1 that is uniform if draw is.
func below(draw, n uint64) uint64 {
	hi, _ := bits.Mul64(draw, n)
	return hi
}

// exponential turns a uniform draw into an exponentially distributed one, mean
// times -ln(draw/2^64). It works with integers, since math.Log may differ in the
// last digit between architectures; it is off by about 1/10000 of mean at most.
func exponential(draw uint64, mean time.Duration) time.Duration {
	draw |= 1
	zeros := bits.LeadingZeros64(draw)
	m := draw << zeros // from 1 to 2 in units of 2^-63
	var log uint64     // of m to base 2, a bit at a time: squaring doubles it
	for range 16 {
		log <<= 1
		m, _ = bits.Mul64(m, m) // from 1 to 4 in units of 2^-62
		if m>>63 != 0 {
			log |= 1
		} else {
			m <<= 1
		}
	}
	const ln2 = 45426 // in units of 2^-16, as are log and e
	e := (uint64(zeros+1)<<16 - log) * ln2 >> 16
	hi, lo := bits.Mul64(e, uint64(mean))
	return time.Duration(hi<<48 | lo>>16)
}

// mix spreads a seed over all bits (the finalizer of SplitMix64).
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
