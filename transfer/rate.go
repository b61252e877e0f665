package transfer

const (
	second      = int64(1e9)
	millisecond = int64(1e6)

	// wireOverhead is what a datagram has beside its payload: our header, UDP and
	// IPv4, and some bytes of a seal or a tunnel.
	wireOverhead = 50

	firstRate = 150_000 // bytes a second
	leastRate = 4_000

	probeChunks = 5
	probeTime   = 8 * millisecond
	queueLimit  = 8 * millisecond

	askEvery = 11
	askTime  = 10 * millisecond

	baseTime = 10 * second

	// smallBelow, bigAbove: the rates between which the size of chunks changes.
	smallBelow = 250_000
	bigAbove   = 400_000
)

// lowest is the least of the values of the last one to two baseTimes.
type lowest struct {
	now, before int64
	since       int64
	some        bool
}

func (l *lowest) add(v, now int64) int64 {
	if !l.some {
		*l = lowest{now: v, before: v, since: now, some: true}
	}
	if now-l.since >= baseTime {
		l.before, l.now, l.since = l.now, v, now
	}
	l.now = min(l.now, v)
	return min(l.now, l.before)
}

type probeState uint8

const (
	probeNone probeState = iota
	probeWanted
	probeSending
	probeWaiting
	probeAnswered
)

// mark is a chunk that was answered.
type mark struct{ serial, sum, sentAt, arrivedAt int64 }

// got returns the rate at which the bytes from a to b arrived; 0: unknown.
func between(a, b mark) (got int64) {
	if b.arrivedAt <= a.arrivedAt {
		return 0
	}
	return (b.sum - a.sum) * second / (b.arrivedAt - a.arrivedAt)
}

type probe struct {
	state       probeState
	gain        int64 // in halves
	first, last int64 // serials
	nextAt      int64
	expires     int64
	begin, end  mark
}

// rate decides when chunks go.
type rate struct {
	bytes  int64
	limit  int64
	poll   int64
	nextAt int64
	big    bool

	lastAsk  int64
	sinceAsk int

	clock   uint32 // the peer's, at the latest answer
	arrival int64  // the same without its wrap
	clocked bool
	base    [largestChunk + 1]lowest
	last    int64 // the queue at the latest answer
	noise   int64 // by how much two in a row differ

	starting bool
	step     int
	probe    probe
	probeAt  int64 // not before
	stand    standing
	cutAt    int64 // chunks sent before say nothing of the queue
	rtt      int64
	stuck    int // cuts in a row that did not shorten the queue
	cutQueue int64

	round struct{ at, got, gone, chunks int64 }
	loss  lowest
	debug func(format string, args ...any)
}

// standing is the least queue of some answers in a row.
type standing struct {
	n     int
	queue int64
	begin mark
}

func (r *rate) init(limit int64, poll int64) {
	r.limit, r.poll = limit, poll
	r.starting = true
	r.probe.state = probeWanted
	r.set(firstRate)
}

func (r *rate) set(bytes int64) {
	if r.limit > 0 {
		bytes = min(bytes, r.limit)
	}
	r.bytes = max(bytes, leastRate)
	if r.bytes > bigAbove {
		r.big = true
	} else if r.bytes < smallBelow {
		r.big = false
	}
}

// time returns how long a number of bytes takes.
func (r *rate) time(size int64) int64 { return size * second / r.bytes }

// units returns the size of the next chunk.
func (r *rate) units() int64 {
	if r.big {
		return largestChunk
	}
	return 1
}

func (r *rate) gain() int64 {
	switch {
	case !r.starting, r.step == 0:
		return 3
	case r.poll > 0:
		return 4
	}
	return 6
}

// share is what of a probe's rate is used, in percent.
func (r *rate) share() int64 {
	if r.big {
		return 95
	}
	return 92
}

// allowedAt returns when the next chunk may go.
func (r *rate) allowedAt() int64 {
	switch r.probe.state {
	case probeSending:
		return r.probe.nextAt
	case probeWaiting:
		if r.starting && r.step == 0 {
			return r.probe.expires
		}
	}
	return r.nextAt
}

func (r *rate) window(rtt int64) int64 {
	return max(2*r.bytes/1000*(rtt/millisecond), 12*unit)
}

// leave notes that chunk serial of size bytes on the wire goes now, and reports whether it asks for an
// answer.
func (r *rate) leave(serial, size, now, patience int64) (ask bool) {
	p := &r.probe
	if p.state == probeWaiting && now >= p.expires {
		p.state = probeWanted
	}
	if p.state == probeNone && now >= r.probeAt {
		p.state = probeWanted
	}
	r.sinceAsk++
	ask = r.sinceAsk >= askEvery || now-r.lastAsk >= askTime
	slack := r.poll + 2*millisecond
	if p.state == probeWanted {
		p.state = probeSending
		p.gain = r.gain()
		long := max(min(probeTime+6*r.noise, 32*millisecond/(p.gain-2)), 4*r.poll)
		n := max(probeChunks, r.bytes*p.gain/2*long/second/size)
		p.first, p.last = serial, serial+n
		p.begin, p.end = mark{}, mark{}
		p.nextAt = now
		ask = true
	}
	r.nextAt = max(r.nextAt, now-slack) + r.time(size)
	if p.state == probeSending {
		p.nextAt = max(p.nextAt, now-slack) + r.time(size)*2/p.gain
		ask = ask || serial == p.last-2 // in case that the last is lost
		if serial >= p.last {
			p.state = probeWaiting
			p.expires = now + 2*patience
			ask = true
		}
	}
	if ask {
		r.lastAsk, r.sinceAsk = now, 0
	}
	return ask
}

// answered takes in when a chunk arrived, by the peer's clock.
func (r *rate) answered(c *chunk, serial int64, clock uint32, rtt, now int64) {
	if r.clocked {
		r.arrival += int64(int32(clock-r.clock)) * 1000
	}
	r.clock, r.clocked, r.rtt = clock, true, rtt
	m := mark{serial, c.sum, c.sentAt, r.arrival}

	delay := r.arrival - c.sentAt
	queue := delay - r.base[c.units].add(delay, now)
	p := &r.probe
	probing := p.state >= probeSending && serial >= p.first && serial <= p.last
	if !probing {
		r.noise += (max(queue-r.last, r.last-queue) - r.noise) / 8
	}
	r.last = queue
	if probing {
		if p.begin.sum == 0 {
			p.begin = m
		}
		p.end = m
	}
	if p.state == probeWaiting && serial >= p.last {
		p.state = probeAnswered
	}
	if c.sentAt >= r.cutAt {
		r.watch(m, queue, int64(c.size), now)
	}
}

// judge takes in what a probe showed.
func (r *rate) judge(f *flight, now int64) {
	p := &r.probe
	if p.state != probeAnswered {
		return
	}
	p.state = probeNone
	r.probeAt = now + 3*r.rtt
	if p.end.serial <= p.begin.serial {
		p.state = probeWanted
		return
	}
	span := p.end.sum - p.begin.sum
	if lost, n := f.missing(p.begin.serial, p.end.serial); lost > max(1, n/8+n*r.lossBase()/1000) {
		span = span * (n - lost) / n
	}
	sent := (p.end.sum - p.begin.sum) * second / max(1, p.end.sentAt-p.begin.sentAt+r.poll)
	got := span * second / max(1, p.end.arrivedAt-p.begin.arrivedAt+r.poll)
	aimed := r.bytes * p.gain / 2
	got = min(got, sent, aimed)
	if r.debug != nil {
		r.debug("probe gain %d sent %d got %d rate %d starting %v noise %d\n", p.gain, sent, got, r.bytes, r.starting, r.noise/1000)
	}
	// passed: it arrived in the time that it took to send it.
	took := p.end.sentAt - p.begin.sentAt
	passed := p.end.arrivedAt-p.begin.arrivedAt <= took*10/9+r.poll && span == p.end.sum-p.begin.sum
	if passed && sent*2 > aimed {
		got = aimed
	}
	switch {
	case passed:
		r.set(max(r.bytes, got*r.share()/100))
	case r.starting:
		r.set(got * r.share() / 100)
	default:
		r.set((r.bytes + got*r.share()/100) / 2)
	}
	r.starting = r.starting && passed
	if passed {
		p.state = probeWanted
	}
	r.step++
}

// watch looks for a queue that stands.
func (r *rate) watch(m mark, queue, size, now int64) {
	s := &r.stand
	if s.n == 0 {
		s.begin, s.queue = m, queue
	}
	s.n++
	s.queue = min(s.queue, queue)
	if s.n < 2 || m.sentAt-s.begin.sentAt < 10*millisecond+2*r.poll {
		return
	}
	if s.queue > queueLimit+r.time(size) {
		got := r.bytes
		if g := between(s.begin, m); g > 0 {
			got = min(got, g)
		}
		if r.stuck++; s.queue < r.cutQueue*3/4 {
			r.stuck = 0
		}
		r.cutQueue = s.queue
		if r.stuck >= 5 {
			r.base, r.stuck = [largestChunk + 1]lowest{}, 0
		} else {
			r.cut(got*92/100, 2*s.queue, now)
		}
		if r.debug != nil {
			r.debug("cut queue %d got %d rate %d", s.queue/1000, got, r.bytes)
		}
	} else {
		r.stuck, r.cutQueue = 0, 0
	}
	*s = standing{}
}

func (r *rate) cut(bytes, pause, now int64) {
	r.set(bytes)
	r.nextAt = max(r.nextAt, now) + pause
	r.cutAt = r.nextAt
	r.starting = false
	if r.probe.state == probeWanted {
		r.probe.state = probeNone
	}
	r.probeAt = now + 3*r.rtt
}

func (r *rate) lossBase() int64 { return min(r.loss.now, r.loss.before) }

// lose takes in how many bytes were found to have arrived and to be lost, ever.
func (r *rate) lose(got, gone, chunks, now int64) {
	o := &r.round
	if now-o.at < r.rtt || chunks-o.chunks < 16 {
		return
	}
	got, gone = got-o.got, gone-o.gone
	o.at, o.got, o.gone, o.chunks = now, o.got+got, o.gone+gone, chunks
	if got+gone == 0 {
		return
	}
	share := gone * 1000 / (got + gone)
	if share > r.loss.add(share, now)+125 {
		r.cut(max(r.bytes/2, r.bytes*(1000-share)/1000*92/100), 0, now)
		if r.debug != nil {
			r.debug("loss %d base %d rate %d", share, r.lossBase(), r.bytes)
		}
	}
}
