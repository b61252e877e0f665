package simnet

import (
	"fmt"
	"math/bits"
	"math/rand/v2"
	"slices"
	"time"
)

// Link: one direction of a lossy path, and how it decides about each datagram. Who
// sends over it, and in which order, is in pair.go and net.go.

// UDPOverIPv4 and UDPOverIPv6 are how many bytes the IP and UDP headers add to
// each datagram, for [Config].Overhead.
const (
	UDPOverIPv4 = 20 + 8
	UDPOverIPv6 = 40 + 8
)

// defaultQueue is that of a small router: some 500 ms at 1 Mbit/s. Larger, an overloaded
// link shows as delay only; smaller, it drops short bursts.
const defaultQueue = 64 << 10

// Config sets the network conditions on a [Link]. The zero value is a perfect
// link: no delay, no loss, no limit. Probabilities are from 0 (never) to 1
// (always), durations from 0 to a year.
type Config struct {
	// Delay is how long every datagram takes, one way. Jitter adds a delay of
	// its own to each, uniformly distributed from 0 to Jitter, so that datagrams
	// can overtake one another. The delay of a round trip is that of two links.
	Delay, Jitter time.Duration

	// Loss is the probability that a datagram is lost, independent of all
	// others. Burst adds losses that come in groups.
	Loss  float64
	Burst Burst

	// Reorder is the probability that a datagram is delayed by ReorderDelay
	// more, so that datagrams sent after it arrive before it.
	Reorder      float64
	ReorderDelay time.Duration

	// Duplicate is the probability that a datagram which is not lost arrives
	// twice. Jitter, Reorder, Corrupt and Truncate apply to each copy on its own.
	Duplicate float64

	// Corrupt is the probability that one random bit of a datagram is flipped,
	// Truncate that it is cut to a random length from 0 to one byte less than
	// it had. A UDP checksum stops nearly all of this on a real network; test
	// with it if the receiver must survive hostile datagrams.
	Corrupt, Truncate float64

	// Rate is the bandwidth in bytes a second, Overhead included; 0 means
	// unlimited. Datagrams that arrive faster wait in a queue.
	Rate int

	// Queue is how many bytes the queue in front of Rate holds, Overhead and
	// the datagram being transmitted included. A datagram that does not fit is
	// dropped (tail drop); an empty queue takes one of any size. 0 means
	// 64 KiB, a negative value no queue at all. Without a Rate it has no effect.
	Queue int

	// Overhead is how many bytes are added to the length of each datagram when
	// Rate and Queue are applied: see [UDPOverIPv4].
	Overhead int

	// Blackouts are outages: everything sent within one of these windows is
	// lost. What was sent before still arrives. They need not be in order.
	Blackouts []Window
}

// Burst makes losses come in groups, as on a radio link (a Gilbert-Elliott
// channel): the link alternates between a good and a bad state, each lasting for a
// random, exponentially distributed time. It starts in the good state. When the
// state changes depends on the seed alone, not on what is sent. The zero value
// turns it off.
type Burst struct {
	// MeanGood and MeanBad are the average durations of the states, each from a
	// millisecond to a year; both are zero if Burst is off.
	MeanGood, MeanBad time.Duration

	// LossGood and LossBad are the probabilities of loss in each state.
	LossGood, LossBad float64
}

// A Window is the time from From, included, to To, excluded, both counted from
// the start of the simulation.
type Window struct{ From, To time.Duration }

// Stats counts what a [Link] has done with datagrams. At any time
// Sent + Duplicated = Delivered + Lost + [Link.InFlight].
type Stats struct {
	Sent       int // datagrams sent, before any loss
	Delivered  int // datagrams returned by Receive, duplicates included
	Lost       int // for any reason, the three below included
	Duplicated int // second copies made

	LostInBurst    int // of Lost: in the bad state of Burst
	LostInBlackout int // of Lost: sent in a window of Blackouts
	LostInQueue    int // of Lost: the queue was full

	Reordered int // of Delivered: after one that was sent later
	Corrupted int // datagrams with a flipped bit, duplicates included
	Truncated int // datagrams cut short, duplicates included

	BytesSent, BytesDelivered int64 // without Overhead
}

// What says what happened to a datagram, for an observer such as
// [Link.Observe].
type What uint8

// What happens to a datagram: it is Sent, then it is lost in one of four ways, or
// it is Delivered. In between it may be Duplicated, and each copy Truncated and
// Corrupted. The order is that of the calls.
const (
	Sent           What = iota // with the bytes that were sent
	Lost                       // by Loss or Burst.LossGood
	LostInBurst                // by Burst.LossBad
	LostInBlackout             // sent in a window of Blackouts
	LostInQueue                // the queue was full
	Duplicated                 // a second copy was made
	Truncated                  // with the bytes that are left
	Corrupted                  // with the flipped bit
	Delivered                  // with the bytes that arrived
	Unreachable                // in a Net: nobody has the address; it is lost
)

var whats = [...]string{"sent", "lost", "lost in burst", "lost in blackout", "lost in queue",
	"duplicated", "truncated", "corrupted", "delivered", "unreachable"}

// String returns the name in words, "lost in queue" for example.
func (w What) String() string {
	if int(w) < len(whats) {
		return whats[w]
	}
	return fmt.Sprintf("What(%d)", uint8(w))
}

// Link carries datagrams in one direction. It reads no clock: the caller passes the time.
// Make one with [NewLink]. It is not safe for concurrent use.
type Link struct {
	cfg     Config
	odds    odds
	rng     rand.PCG // what becomes of datagrams
	states  rand.PCG // how long the states of Burst last, apart from it
	observe func(at time.Duration, h hop, what What, datagram []byte)
	stats   Stats

	last    time.Duration // of the latest Send or SetConfig
	bad     bool          // the state of Burst
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

// odds are the probabilities of a Config, in the form that random draws are compared with.
type odds struct{ loss, good, bad, reorder, duplicate, corrupt, truncate chance }

// leaving is a datagram in the queue, or its last byte on the way out.
type leaving struct {
	at   time.Duration
	size int
}

// flight is a datagram in flight.
type flight struct {
	at       time.Duration
	order    uint64 // breaks ties
	number   int    // Stats.Sent when it was sent
	hop      hop
	datagram []byte // owned by the link
}

// hop says where a datagram of a network comes from and goes to. A link only passes it on.
type hop struct{ from, to addressID }

func (f flight) before(g flight) bool {
	return f.at < g.at || f.at == g.at && f.order < g.order
}

// NewLink returns a link with the given network conditions at time 0. Its random
// numbers depend on seed alone: two links with the same seed lose the same
// datagrams, two with different seeds (1 and 2, say) are independent.
//
// It panics if cfg has a value out of range, as does [Link.SetConfig].
func NewLink(seed uint64, cfg Config) *Link {
	seed = mix(seed)
	l := &Link{rng: *rand.NewPCG(seed, 1), states: *rand.NewPCG(seed, 2)}
	l.SetConfig(0, cfg)
	return l
}

// SetConfig changes the network conditions for what is sent from now on. Nothing
// changes for datagrams that were sent before; those in the queue leave at the
// old rate, and before all that follow. A new Burst starts in its good state, an
// equal one goes on. cfg.Blackouts is copied. It panics if now is earlier than in
// the call before.
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

// Observe sets a function that is called for everything that happens on the link,
// as it happens, to log or count it; nil for none. The datagram is valid during
// the call only and must not be changed.
func (l *Link) Observe(fn func(at time.Duration, what What, datagram []byte)) {
	l.observe = nil
	if fn != nil {
		l.observe = func(at time.Duration, _ hop, what What, datagram []byte) { fn(at, what, datagram) }
	}
}

// Stats returns the counters.
func (l *Link) Stats() Stats { return l.stats }

// InFlight returns how many datagrams are in flight: sent, and neither lost nor
// delivered. Those in the queue count.
func (l *Link) InFlight() int { return len(l.flights) }

// The random values of one datagram, and those of each of its two copies, which
// follow them.
const (
	drawLoss = iota
	drawBurst
	drawDuplicate
	drawsOfDatagram
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

// Send sends a datagram at time now, which must not be earlier than in the call
// before, else it panics. The bytes are copied. What becomes of the datagram is
// decided here, in this order: lost in an outage, in a full queue, in a burst or by
// chance; then the damage and the delay of it and of its duplicate.
//
// Every datagram uses the same number of random values, whatever the Config. So if you change
// one setting, such as Loss, what the other settings do to the datagrams stays the same.
func (l *Link) Send(now time.Duration, datagram []byte) { l.send(now, datagram, hop{}) }

func (l *Link) send(now time.Duration, datagram []byte, h hop) {
	var draws [drawsOfDatagram + 2*drawsOfCopy]uint64
	for i := range draws {
		draws[i] = l.rng.Uint64()
	}
	l.advance(now)
	l.stats.Sent++
	l.stats.BytesSent += int64(len(datagram))
	l.tell(now, h, Sent, datagram)

	if l.blackout(now) {
		l.stats.LostInBlackout++
		l.lose(now, h, LostInBlackout, datagram)
		return
	}
	left, ok := l.enqueue(now, len(datagram)+l.cfg.Overhead)
	switch {
	case !ok:
		l.stats.LostInQueue++
		l.lose(now, h, LostInQueue, datagram)
	case l.bad && l.odds.bad.hit(draws[drawBurst]):
		l.stats.LostInBurst++
		l.lose(now, h, LostInBurst, datagram)
	case !l.bad && l.odds.good.hit(draws[drawBurst]), l.odds.loss.hit(draws[drawLoss]):
		l.lose(now, h, Lost, datagram)
	default:
		l.launch(now, left, datagram, h, draws[drawsOfDatagram:drawsOfDatagram+drawsOfCopy])
		if l.odds.duplicate.hit(draws[drawDuplicate]) {
			l.stats.Duplicated++
			l.tell(now, h, Duplicated, datagram)
			l.launch(now, left, datagram, h, draws[drawsOfDatagram+drawsOfCopy:])
		}
	}
}

// Next returns when the next datagram arrives; ok is false if none is
// in flight.
func (l *Link) Next() (at time.Duration, ok bool) {
	if len(l.flights) == 0 {
		return 0, false
	}
	return l.flights[0].at, true
}

// Receive returns the next datagram that has arrived at time now or before; ok is
// false if there is none. Call it until then. Datagrams come in the order of their
// arrival; those that arrive at the same time in the order in which they were
// sent. The caller may change the datagram; it is valid until the next Receive on
// this link.
func (l *Link) Receive(now time.Duration) (datagram []byte, ok bool) {
	_, datagram, ok = l.receive(now)
	return datagram, ok
}

func (l *Link) receive(now time.Duration) (h hop, datagram []byte, ok bool) {
	if l.out != nil {
		l.free = append(l.free, l.out)
		l.out = nil
	}
	if at, ok := l.Next(); !ok || at > now {
		return hop{}, nil, false
	}
	f := l.flights.pop()
	l.out = f.datagram
	l.stats.Delivered++
	l.stats.BytesDelivered += int64(len(f.datagram))
	if f.number < l.highest {
		l.stats.Reordered++
	}
	l.highest = max(l.highest, f.number)
	l.tell(now, f.hop, Delivered, f.datagram)
	return f.hop, f.datagram, true
}

// launch puts one copy in flight that leaves the queue at left.
func (l *Link) launch(now, left time.Duration, datagram []byte, h hop, draws []uint64) {
	at := left + l.cfg.Delay + time.Duration(below(draws[drawJitter], uint64(l.cfg.Jitter)+1))
	if l.odds.reorder.hit(draws[drawReorder]) {
		at += l.cfg.ReorderDelay
	}
	b := append(l.buffer(), datagram...)
	if len(b) > 0 && l.odds.truncate.hit(draws[drawTruncate]) {
		b = b[:below(draws[drawLength], uint64(len(b)))]
		l.stats.Truncated++
		l.tell(now, h, Truncated, b)
	}
	if len(b) > 0 && l.odds.corrupt.hit(draws[drawCorrupt]) {
		bit := below(draws[drawBit], uint64(len(b))*8)
		b[bit/8] ^= 1 << (bit % 8)
		l.stats.Corrupted++
		l.tell(now, h, Corrupted, b)
	}
	l.flights.push(flight{at: at, order: l.order, number: l.stats.Sent, hop: h, datagram: b})
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

// advance moves the time, and the state of Burst with it.
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
		l.turns += exponential(l.states.Uint64(), mean)
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

func (l *Link) lose(now time.Duration, h hop, what What, datagram []byte) {
	l.stats.Lost++
	l.tell(now, h, what, datagram)
}

func (l *Link) tell(now time.Duration, h hop, what What, datagram []byte) {
	if l.observe != nil {
		l.observe(now, h, what, datagram)
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
	// The states of Burst are stepped through one by one, however long nothing is sent.
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
