package transfer

import "math"

// What delays tell: the shortest way, the queue above it, and whether one stands. What
// the rate does about it is in rate.go.

const (
	second      = int64(1e9)
	millisecond = int64(1e6)
	microsecond = int64(1e3)

	// baseTime is for how long the shortest delay counts at least, and half of how
	// long it does at most. Longer would take a path that became longer for a queue
	// for so long (unmoved says how that is found out sooner), shorter would get used
	// to a queue of others, or of our own.
	baseTime = 10 * second

	// queueLimit is how much queue may stand, beside what one chunk takes to leave.
	// More holds up the game, less takes its own bursts for a queue.
	queueLimit = 8 * millisecond
	// longestQueue: what looks longer is a clock that was set, or a receiver that slept.
	longestQueue = 4 * second
	// standTime is how long a queue must stand, from one answer to a later one. Less cuts
	// for each burst of the game's, more lets the queue grow for longer when others come.
	standTime = 10 * millisecond
	// clearQueue above the limit, one answer is enough: that does not go away within
	// standTime. Less takes a chunk that was overtaken for a queue, more finds out later
	// that the link became slower.
	clearQueue = 15 * millisecond
)

// lowest is the least of the values of the last one to two baseTimes.
type lowest struct {
	current, before int64
	since           int64
	some            bool
}

// add adds a value and returns the least.
func (l *lowest) add(v, now int64) int64 {
	if !l.some {
		*l = lowest{current: v, before: v, since: now, some: true}
	}
	if now-l.since >= baseTime {
		l.before, l.current, l.since = l.current, v, now
	}
	l.current = min(l.current, v)
	return l.get()
}

func (l *lowest) get() int64 { return min(l.current, l.before) }

// mark is a chunk that was answered.
type mark struct {
	serial    int64
	sum       int64 // bytes on the wire up to this chunk
	sentAt    int64
	arrivedAt int64 // by the receiver's clock, from any start
}

// rateTo returns the bytes a second at which what was sent from a to b arrived.
func (a mark) rateTo(b mark) int64 {
	if b.arrivedAt <= a.arrivedAt {
		return math.MaxInt64
	}
	return (b.sum - a.sum) * second / (b.arrivedAt - a.arrivedAt)
}

// delays turns answers into the time that chunks spent in a queue: what their way
// took longer than the fastest of late. The way there alone counts, by the clocks of
// both ends, which need not agree: only changes are looked at. A chunk is compared
// with chunks of its size, because a larger one takes longer to leave.
type delays struct {
	clock   uint32 // the receiver's, in microseconds, at the latest answer
	arrived int64  // the same in nanoseconds, and without its wrap
	some    bool
	base    [largestChunk + 1]lowest
	last    int64 // the latest queue
	noise   int64 // by how much one differs from the next
}

// add adds an answer, and returns it as a mark, with its queue.
func (d *delays) add(c *chunk, serial int64, clock uint32, now int64) (m mark, queue int64) {
	if d.some {
		d.arrived += int64(int32(clock-d.clock)) * 1000
	}
	d.clock, d.some = clock, true
	delay := d.arrived - c.sentAt
	queue = delay - d.base[c.units].add(delay, now)
	if queue > longestQueue {
		d.forget()
		queue = delay - d.base[c.units].add(delay, now)
	}
	d.noise += (max(queue-d.last, d.last-queue) - d.noise) / 8
	d.last = queue
	return mark{serial, c.sum, c.sentAt, d.arrived}, queue
}

// forget takes the delays to come for those of another path.
func (d *delays) forget() { d.base = [largestChunk + 1]lowest{} }

// standing looks for a queue that stands: the least of some answers in a row.
type standing struct {
	some  bool
	least int64
	begin mark
}

// add adds an answer. When they tell enough, done is true, and the next look begins with
// this answer; the queue that stood is least, and got is how fast chunks arrived meanwhile.
// More than limit is too much. Both ends may be on ticks of poll.
func (s *standing) add(m mark, queue, limit, poll int64) (least, got int64, done bool) {
	if !s.some {
		*s = standing{true, queue, m}
		return 0, 0, false
	}
	s.least = min(s.least, queue)
	switch {
	case queue >= limit+clearQueue+2*poll:
		least = queue
	case m.arrivedAt-s.begin.arrivedAt >= standTime+2*poll:
		least = s.least
	default:
		return 0, 0, false
	}
	got = s.begin.rateTo(m)
	*s = standing{true, queue, m}
	return least, got, true
}
