package transfer

import "math"

// How fast chunks go: slow start, probes, cuts. The signals are in delay.go, probe.go
// and flight.go; what is sent is in due.go.

const (
	// wireOverhead is what a datagram has beside its payload: our header, UDP and
	// IPv4, and some bytes for a seal or a tunnel. It matters little: rates are
	// measured in the same bytes.
	wireOverhead = 50

	// firstRate, in bytes a second, is what the first probe starts from. More floods
	// links of 1 Mbit/s at once, less costs fast ones a round trip.
	firstRate = 150_000
	// leastRate keeps a transfer alive that is cut all the time; more would hurt a
	// modem, less would never find out that a link got better.
	leastRate = 4_000
	// mostRate is 10 Gbit/s. Without it a receiver that lies could drive the rate until
	// Due never ends.
	mostRate = 1_250_000_000

	// share is what a transfer takes of the rate that a probe showed, in percent: the
	// rest is for the game, whose datagrams fall between those of a probe or not. More
	// makes queues, less leaves the link idle.
	share = 93

	// The size of chunks changes at these rates, up and down. Larger chunks cost fewer
	// headers, and hold up the game's datagrams for longer: 1 KiB takes 4 ms at 2 Mbit/s.
	bigAbove, smallBelow = 400_000, 250_000

	// An answer is asked for with every askEvery-th chunk, so that an acknowledgement
	// that is lost does not hide more than the next one shows, and at least each
	// askTime. More often costs the other direction more, less often sees a queue
	// later.
	askEvery = 11
	askTime  = 10 * millisecond

	// unproven is what may be in flight beyond a few times what has arrived since the
	// start, when the rate is what short rows of chunks showed. More floods a link that
	// lets bursts through and nothing else, as providers' shapers do; less costs fast
	// links a round trip: 300 KiB is a map.
	unproven = 300 << 10

	// slack is by how much a caller may be late without losing rate; a sleep is.
	slack = 2 * millisecond

	// A loss that is not the path's usual one is a queue that is too short for delay to
	// show: by more than lossLimit thousandths, over a round of lossChunks at least. Fewer
	// chunks, or a lower limit, take chance for it; more let the losses last.
	lossLimit  = 125
	lossChunks = 64

	// longestPause is the most that is waited after a cut, and leastShare what the rate
	// may be divided by at most: what is measured may be wrong. Shorter, or less, lets a
	// queue stay for longer; more starves a transfer over one bad measurement.
	longestPause = second
	leastShare   = 4

	// unmoved is how many cuts in a row that do not shorten a queue show that there is
	// none, and the path became longer. Fewer would believe it of others' queues.
	unmoved = 5

	// restTime is after how long without a chunk the rate is found anew.
	restTime = 10 * second
)

// rate decides when chunks go, how large they are, and which ask for an answer. It
// takes what the link has to spare and gives way to whatever makes a queue: it goes up
// by probes, and down as soon as a queue stands.
type rate struct {
	bytes int64 // a second, on the wire
	limit int64 // Config.MaxRate
	poll  int64 // Config.PollInterval
	big   bool  // chunks are large

	nextAt   int64 // when the next chunk may go
	askedAt  int64
	unasked  int   // chunks since
	starting bool  // the link's limit was not met yet
	probes   int   // that have returned since the start
	probeAt  int64 // when the next probe is wanted
	rtt      int64

	probe      probe
	delays     delays
	standing   standing
	cutAt      int64 // what was sent before tells nothing of the rate
	cutQueue   int64 // at the latest cut, if the queue has stood since
	cuts       int   // in a row that did not shorten it
	round      struct{ at, got, gone, chunks int64 }
	got, began int64  // bytes that have arrived: so far, and until the start
	usual      lowest // thousandths of a round that were lost
}

func (r *rate) init(limit, poll int64) {
	r.limit, r.poll = limit, min(poll, longestPoll)
	r.restart()
}

// longestPoll is the longest interval between calls that is allowed for: a longer one
// would let everything go at once, whatever the rate.
const longestPoll = 60 * second

// restart forgets what is known of the link's rate.
func (r *rate) restart() {
	r.starting, r.probes = true, 0
	r.began = r.got
	r.probe = probe{state: probeWanted}
	r.set(firstRate)
}

// probeAgain gives up a first probe that nobody answers.
func (r *rate) probeAgain() {
	if r.probes == 0 && r.probe.end.sum == 0 {
		r.probe.state = probeWanted
	}
}

func (r *rate) set(bytes int64) {
	r.bytes = min(max(bytes, leastRate), mostRate)
	if r.limit > 0 {
		r.bytes = min(r.bytes, r.limit)
	}
	if r.bytes > bigAbove {
		r.big = true
	} else if r.bytes < smallBelow {
		r.big = false
	}
}

// in returns how many bytes may go in a time.
func (r *rate) in(d int64) int64 { return r.bytes * (d / 1000) / 1e6 }

// time returns how long a number of bytes takes.
func (r *rate) time(size int64) int64 { return size * second / r.bytes }

// units returns the size of the next chunk.
func (r *rate) units() int64 {
	if r.big {
		return largestChunk
	}
	return 1
}

// window returns how many bytes may be in flight: twice what the rate makes of a round
// trip, so that it is the limit where answers fail to come, and at the start, where the
// rate is what a short row of chunks showed.
func (r *rate) window(rtt int64) int64 {
	return max(min(2*r.in(rtt), unproven+2*(r.got-r.began)), 12*(unit+chunkHeader+wireOverhead))
}

// allowedAt returns when the next chunk may go. Nothing follows the first probe until
// its answer is there.
func (r *rate) allowedAt() int64 {
	switch {
	case r.probe.state == probeSending:
		return r.probe.nextAt
	case r.probe.state == probeWaiting && r.probes == 0:
		return r.probe.lateAt()
	}
	return r.nextAt
}

// soonerAt returns when the next chunk may be allowed sooner than allowedAt says: when the
// wait for a probe's answer ends.
func (r *rate) soonerAt() int64 {
	if r.probe.state == probeWaiting {
		return r.probe.lateAt()
	}
	return math.MaxInt64
}

// leave notes that a chunk of size bytes on the wire goes now, and reports whether it
// asks for an answer.
func (r *rate) leave(serial, size, now, patience int64) (ask bool) {
	if now-r.askedAt > restTime {
		r.restart()
	}
	p := &r.probe
	if p.state == probeNone && now >= r.probeAt {
		p.state = probeWanted
	}
	if p.state == probeWanted && r.bytes != r.limit {
		g := r.gain()
		p.start(serial, now, g, r.chunksOfProbe(g, size))
	}
	late := now - slack - r.poll // what was allowed before that is lost
	r.nextAt = max(r.nextAt, late) + r.time(size)
	r.unasked++
	ask = r.unasked >= askEvery || now-r.askedAt >= askTime
	if p.state == probeSending {
		p.nextAt = max(p.nextAt, late) + r.time(size)*100/p.gain
		ask = p.sent(serial, now, patience, r.starting) || ask
	}
	if ask {
		r.askedAt, r.unasked = now, 0
	}
	return ask
}

// gain returns how much faster than the rate the next probe is, in percent.
func (r *rate) gain() int64 {
	switch {
	case r.starting && r.poll == 0 && r.probe.pair > 0:
		return max(r.probe.pair*100/r.bytes, gain)
	case !r.starting && r.poll > 0:
		return tickGain
	}
	return gain
}

// chunksOfProbe returns how many chunks of size bytes a probe with this gain has.
func (r *rate) chunksOfProbe(gain, size int64) int64 {
	bytes := r.in(probeTicks*r.poll) * gain / 100
	if r.poll == 0 {
		bytes = r.in(min(probeTime+probeNoise*r.delays.noise, longestProbe)) * gain / 100
		if r.starting {
			bytes = min(bytes, longestRow)
		}
	}
	least := int64(probeChunks)
	if r.probes == 0 {
		least-- // the offer went before it
	}
	return max(bytes/size, least)
}

// answered learns when a chunk arrived, by the receiver's clock; flying is how many bytes
// are in flight.
func (r *rate) answered(c *chunk, serial int64, clock uint32, flying, rtt, now int64) {
	r.rtt = rtt
	m, queue := r.delays.add(c, serial, clock, now)
	r.probe.answered(m)
	if c.sentAt < r.cutAt {
		return
	}
	limit := queueLimit + r.time(int64(c.size)) + r.delays.noise
	least, got, ok := r.standing.add(m, queue, limit, r.poll)
	switch {
	case !ok:
	case least <= limit:
		r.cuts, r.cutQueue = 0, 0
	default:
		if r.cuts++; least < r.cutQueue*3/4 {
			r.cuts = 0
		}
		if r.cutQueue = least; r.cuts >= unmoved {
			r.delays.forget()
			r.cuts = 0
			return
		}
		// A queue that is all ours is gone after its own time; twice that is for those
		// who share it. Where the link has become slower, all that is in flight will
		// stand in the queue, too.
		pause := max(2*least, flying*second/max(got, r.bytes/leastShare)-rtt)
		r.cut(min(r.bytes, got)*share/100, pause, now)
	}
}

// cut lowers the rate, after a pause.
func (r *rate) cut(bytes, pause, now int64) {
	r.set(max(bytes, r.bytes/leastShare))
	r.nextAt = max(r.nextAt, now) + min(pause, longestPause)
	r.cutAt = r.nextAt
	r.starting = false
	r.probeAt = now + probeRounds*r.rtt
}

// judge applies what a probe showed, once all acknowledgements have been read.
func (r *rate) judge(f *flight, now, patience int64) {
	r.probe.expire(now, patience)
	if r.probe.state != probeAnswered {
		return
	}
	got, passed, ok := r.probe.result(f, r.bytes, r.usual.get(), r.poll)
	r.probe.state = probeNone
	if !ok || passed {
		r.probe.state = probeWanted // the limit is further up
	}
	if !ok {
		return
	}
	if got = got * share / 100; passed {
		got = max(got, r.bytes)
	} else if !r.starting { // half way, as a probe may be wrong
		got = (r.bytes + got) / 2
	}
	r.set(got)
	r.probes++
	if r.starting && passed { // nothing of it waits
		r.nextAt = min(r.nextAt, now)
	}
	r.starting = r.starting && passed
	r.probeAt = now + probeRounds*r.rtt
}

// count learns how many bytes have arrived and were lost so far, and how many chunks
// were sent.
func (r *rate) count(got, gone, chunks, now int64) {
	r.got = got
	o := &r.round
	if now-o.at < r.rtt || chunks-o.chunks < lossChunks {
		return
	}
	arrived, lost := got-o.got, gone-o.gone
	o.at, o.got, o.gone, o.chunks = now, got, gone, chunks
	if arrived+lost == 0 {
		return
	}
	of := lost * 1000 / (arrived + lost)
	if of > r.usual.add(of, now)+lossLimit {
		r.cut(r.bytes/1000*(1000-of)*share/100, 0, now)
	}
}
