package peers

import (
	"fmt"
	"io"
	"time"
)

// End is one side of a connection that is a state machine: it opens no socket,
// starts no goroutine and hands its output to a Wire.
type End interface {
	Send(msg []byte) error
	Receive(datagram []byte) error
	// Tick sends what is due, once a tick.
	Tick() error
	// Unacked is how many of the messages sent are not acknowledged.
	Unacked() int
}

// Wire is where an End puts what comes out of it. Neither function keeps its
// argument.
type Wire struct {
	Datagram func([]byte)
	Message  func([]byte)
	Buf      []byte // scratch for one call, as one buffer serves all connections of a server
}

// Clock is the virtual time of a pair.
type Clock struct{ move []func(time.Duration) }

// Follow has f called with every step of the clock.
func (c *Clock) Follow(f func(time.Duration)) { c.move = append(c.move, f) }

// Advance moves the clock by d.
func (c *Clock) Advance(d time.Duration) {
	for _, f := range c.move {
		f(d)
	}
}

// Machine opens the two ends of a connection, with their clock at its start.
type Machine func(clock *Clock, a, b Wire) (End, End, error)

// queue is one direction of the pipe: first in, first out, each datagram with
// the tick from which on it may leave. It copies into slots that it reuses.
type queue struct {
	slots      []slot
	head, size int
}

type slot struct {
	data []byte
	due  int
}

func (q *queue) push(p []byte, due int) {
	if q.size == len(q.slots) {
		grown := make([]slot, max(16, 2*len(q.slots)))
		for i := range q.size {
			grown[i] = q.slots[(q.head+i)%len(q.slots)]
		}
		q.slots, q.head = grown, 0
	}
	s := &q.slots[(q.head+q.size)&(len(q.slots)-1)]
	s.data = append(s.data[:0], p...)
	s.due = due
	q.size++
}

// pop returns the oldest datagram if it is due at tick now. It is good until the
// slot comes round again, so until the next push at the earliest; the machines
// receive it before anything else is pushed in its direction.
func (q *queue) pop(now int) ([]byte, bool) {
	if q.size == 0 || q.slots[q.head].due > now {
		return nil, false
	}
	p := q.slots[q.head].data
	q.head = (q.head + 1) & (len(q.slots) - 1)
	q.size--
	return p, true
}

// machinePair drives a Machine.
type machinePair struct {
	clock  Clock
	a, b   End
	ab, ba queue
	now    int // ticks
	delay  int
	tally  tally
	sent   uint64
	msg    [MessageSize]byte
	peak   int // most messages unacknowledged at a time
}

// maxTicks is how long the driver waits for progress. Anything longer than the
// slowest resend would do.
const maxTicks = 2000

func (m Machine) open() (Pair, error) {
	p := &machinePair{}
	wa, wb := p.wires()
	var err error
	p.a, p.b, err = m(&p.clock, wa, wb)
	return p, err
}

func (p *machinePair) wires() (a, b Wire) {
	a = Wire{Datagram: func(d []byte) { p.ab.push(d, p.now+p.delay) }, Message: func([]byte) {}, Buf: make([]byte, 2048)}
	b = Wire{Datagram: func(d []byte) { p.ba.push(d, p.now+p.delay) }, Message: p.tally.add, Buf: a.Buf}
	return a, b
}

// idle opens n connections that share one driver, so that what remains of each
// is its own.
func (m Machine) idle(n int) (io.Closer, error) {
	p := &machinePair{}
	wa, wb := p.wires()
	ends := make([]End, 0, 2*n)
	for range n {
		p.clock = Clock{}
		var err error
		if p.a, p.b, err = m(&p.clock, wa, wb); err != nil {
			return nil, err
		}
		if err := p.Single(1); err != nil {
			return nil, err
		}
		ends = append(ends, p.a, p.b)
	}
	return held{ends}, nil
}

// held keeps the ends of idle connections from the garbage collector.
type held struct{ ends []End }

func (h held) Close() error { clear(h.ends); return nil }

func (p *machinePair) step() {
	p.now++
	p.clock.Advance(Tick)
}

func (p *machinePair) send() error {
	message(&p.msg, p.sent)
	p.sent++
	return p.a.Send(p.msg[:])
}

func move(q *queue, now int, to End) error {
	for {
		d, ok := q.pop(now)
		if !ok {
			return nil
		}
		if err := to.Receive(d); err != nil {
			return err
		}
	}
}

func (p *machinePair) Single(n int) error {
	p.delay = 0
	p.tally.expect(n)
	for i := range uint64(n) {
		p.step()
		if err := p.send(); err != nil {
			return err
		}
		for tries := 0; ; tries++ {
			if err := p.a.Tick(); err != nil {
				return err
			}
			if err := move(&p.ab, p.now, p.b); err != nil {
				return err
			}
			if err := p.b.Tick(); err != nil {
				return err
			}
			if err := move(&p.ba, p.now, p.a); err != nil {
				return err
			}
			if p.tally.got == i+1 && p.a.Unacked() == 0 {
				break
			}
			if tries == maxTicks || p.tally.err != nil {
				return fmt.Errorf("peers: stuck at message %d of %d, %d unacknowledged: %w", i, n, p.a.Unacked(), p.tally.result())
			}
			p.step()
		}
	}
	return p.tally.result()
}

func (p *machinePair) Stream(n int) error {
	p.delay = Delay
	p.tally.expect(n)
	last := 0 // tick of the last send
	for left := n; left > 0 || !p.tally.done() || p.a.Unacked() > 0; {
		p.step()
		if err := move(&p.ba, p.now, p.a); err != nil {
			return err
		}
		if err := move(&p.ab, p.now, p.b); err != nil {
			return err
		}
		if left > 0 {
			last = p.now
			for range min(Batch, left) {
				left--
				if err := p.send(); err != nil {
					return err
				}
			}
		}
		if err := p.a.Tick(); err != nil {
			return err
		}
		if err := p.b.Tick(); err != nil {
			return err
		}
		p.peak = max(p.peak, p.a.Unacked())
		if p.now-last > maxTicks || p.tally.err != nil {
			return fmt.Errorf("peers: stuck with %d unacknowledged: %w", p.a.Unacked(), p.tally.result())
		}
	}
	// What is still in flight is of no further use, but each end must see it.
	const all = int(^uint(0) >> 1)
	if err := move(&p.ab, all, p.b); err != nil {
		return err
	}
	if err := move(&p.ba, all, p.a); err != nil {
		return err
	}
	return p.tally.result()
}

func (p *machinePair) Close() error { return nil }
