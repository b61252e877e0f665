package transfer

// A probe: a few chunks faster than the rate, and what their arrival shows of the
// link. When one begins and what follows from it is in rate.go.

const (
	// A probe is a row of chunks that are sent faster than the rate, to see how fast
	// they arrive: probeChunks of them, or as many as take probeTime; more where the
	// delays are noisy, so that the noise hides no more than a sixth of it. Longer
	// ones fill the queue, shorter ones measure the game's own datagrams. Their excess
	// is made up for after them: nothing is sent until the rate is kept on average.
	probeChunks = 5
	probeTime   = 8 * millisecond
	probeNoise  = 6
	// longestProbe bounds that: what goes beyond the rate is a queue.
	longestProbe = 32 * millisecond
	// longestRow, in bytes, bounds a probe of the start, whose gain is a guess: if it is
	// wrong, so much stands before a slow link, 65 ms at 2 Mbit/s. Less tells a link
	// that is fast from one that lets a burst through less often.
	longestRow = 16 << 10
	// probeTicks is how many ticks a probe takes at a sender that sends on ticks. Fewer
	// are too coarse to tell anything.
	probeTicks = 4

	// The gains of probes, in percent of the rate. More finds a fast link sooner, and
	// fills the queue of a slow one for longer. Where a pair at the end of a probe of the
	// start showed more, the next one takes that. On ticks a probe takes long, so its gain
	// is small once the link's limit was met.
	gain     = 150
	tickGain = 120

	// probeRounds is how many round trips lie between a probe that met the limit and
	// the next. Fewer disturb more, more find a link that got faster later.
	probeRounds = 3

	// probePatience is the least that is waited for answers to a probe: on a slow link
	// it takes its time to leave, and a second one would make that worse.
	probePatience = second / 2
)

type probeState uint8

const (
	probeNone     probeState = iota
	probeWanted              // begins with the next chunk
	probeSending             // chunks first to last are leaving
	probeWaiting             // for the answer to last
	probeAnswered            // the acknowledgements beside that answer are to be read
)

// probe is the latest probe.
type probe struct {
	state       probeState
	gain        int64
	first, last int64 // serials
	nextAt      int64 // when its next chunk goes
	settles     int64 // when an answer to last is late: what is known has to do
	expires     int64 // when none is expected any more
	begin, end  mark  // the first and last of it that were answered
	before      mark  // the one before end
	pair        int64 // bytes a second at which the last two arrived; 0: not known
}

// start begins a probe with the chunk serial.
func (p *probe) start(serial, now, gain, chunks int64) {
	*p = probe{state: probeSending, gain: gain, first: serial, last: serial + chunks - 1, nextAt: now}
}

// sent notes a chunk, and reports whether it asks for an answer. The last three do: in
// case that the last is lost, and for the pair that ends a probe of the start.
func (p *probe) sent(serial, now, patience int64, starting bool) (ask bool) {
	if serial >= p.last {
		p.state, p.settles, p.expires = probeWaiting, now+patience, now+max(2*patience, probePatience)
	}
	if starting && serial == p.last-1 {
		p.nextAt = now // the pair
	}
	return serial == p.first || serial >= p.last-2
}

// lateAt returns when the wait for an answer ends.
func (p *probe) lateAt() int64 {
	if p.end.serial > p.begin.serial {
		return p.settles
	}
	return p.expires
}

// expire ends the wait for an answer, and gives up a probe that ran out of chunks.
func (p *probe) expire(now, patience int64) {
	switch {
	case p.state == probeWaiting && now >= p.lateAt():
		p.state = probeAnswered
	case p.state == probeSending && now > p.nextAt+patience:
		p.state = probeWanted
	}
}

// answered notes an answer.
func (p *probe) answered(m mark) {
	if p.state < probeSending || m.serial < p.first {
		return
	}
	if m.serial <= p.last {
		if p.begin.sum == 0 {
			p.begin = m
		}
		if m.serial == p.last && p.end.serial == p.last-1 {
			p.pair = pair(p.before, p.end, m)
		}
		p.before, p.end = p.end, m
	}
	if p.state == probeWaiting && m.serial >= p.last {
		p.state = probeAnswered
	}
}

// pair returns how fast the chunk c followed b, which it was sent together with; 0 if
// that tells nothing, as the receiver did not see b follow a as it was sent: it looks at
// what arrived on ticks.
func pair(a, b, c mark) int64 {
	took, late := b.sentAt-a.sentAt, b.arrivedAt-a.arrivedAt
	if c.arrivedAt < b.arrivedAt || late*2 < took || late > took*2 {
		return 0
	}
	return (c.sum - b.sum) * second / max(c.arrivedAt-b.arrivedAt, microsecond)
}

// result returns the bytes a second at which the probe arrived, and whether that was
// as fast as it was sent. It is not ok if too little was answered. usual is the share
// of chunks, in thousandths, that the path loses without a probe; poll is our tick, to
// which times of sending are rounded, and probably the receiver's.
func (p *probe) result(f *flight, rate, usual, poll int64) (got int64, passed, ok bool) {
	if p.end.serial <= p.begin.serial {
		return 0, false, false
	}
	bytes := p.end.sum - p.begin.sum
	took := p.end.sentAt - p.begin.sentAt
	late := p.end.arrivedAt - p.begin.arrivedAt
	passed = late <= took*10/9+poll
	aimed := rate * p.gain / 100
	sent := bytes * second / max(1, took+poll)
	if lost, n := f.missing(p.begin.serial, p.end.serial); lost > max(1, n/8+n*usual/1000) {
		bytes, passed = bytes*(n-lost)/n, false // where no queue is, its place is among the losses
	}
	if passed && sent*2 > aimed {
		return aimed, true, true // times on ticks are too coarse to tell more
	}
	return min(bytes*second/max(1, late+poll), sent, aimed), passed, true
}
