// Package peers drives ackbits, and the libraries that a Go developer would
// pick instead of it, through the same work: 64-byte messages from one end to
// the other, in memory, each checked when it arrives.
//
// A library that is a state machine is driven as one, in virtual time: it is a
// Machine. One that brings its own goroutines and reads its own clock moves its
// datagrams through a Link. Both cross the same pipe: datagrams are copied, none
// is lost, and a delay is counted in ticks.
package peers

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"time"
)

// The work, the same for every subject.
const (
	MessageSize = 64
	Batch       = 10                    // messages a tick in Pair.Stream
	Delay       = 5                     // ticks each way in Pair.Stream, so about 100 messages are in flight
	Tick        = 10 * time.Millisecond // where time is virtual; KCP's shortest interval
)

// Subject is a library to measure.
type Subject struct {
	Name     string
	Module   string // the Go module whose version the build says
	Version  string // of what is no Go module
	Settings string // what was set, where it differs from the defaults
	Does     string // what it does beyond delivering messages, or does not

	// New connects a pair of ends.
	New func() (Pair, error)
	// Idle opens n connections, has each deliver a message and leaves them
	// alone. Close ends them.
	Idle func(n int) (io.Closer, error)
	// Usage counts the memory of a subject that is not on Go's heap: bytes in
	// use, and allocations ever made. It is nil for the others.
	Usage func() (bytes, mallocs uint64)
	// Server is what a connection takes at a server with n of them, in bytes,
	// for a subject whose server keeps them together. It is nil for the others.
	Server func(n int) (bytes float64, err error)
}

// Pair is two connected ends, A and B. An error of Single or Stream says that
// work was not done; the pair is of no use after it.
type Pair interface {
	// Single sends n messages from A to B, each when the one before it was
	// delivered and, where the library can be asked, acknowledged.
	Single(n int) error
	// Stream sends n messages, Batch a tick over a pipe that delays datagrams by
	// Delay ticks each way, and returns when all were delivered.
	Stream(n int) error
	Close() error
}

// Subjects lists the subjects, ackbits first. ENet is among them when the
// program was built with the tag enet.
func Subjects() []Subject {
	var list []Subject
	list = append(list, ackbitsSubjects()...)
	list = append(list, kcpSubjects()...)
	list = append(list, enetSubjects()...)
	list = append(list, quicSubjects()...)
	list = append(list, sctpSubjects()...)
	return list
}

var errNotDone = errors.New("peers: messages are missing")

// message writes message i into p: each word of it is i, mixed with a number of
// its place.
func message(p *[MessageSize]byte, i uint64) {
	for w, mix := range mixes {
		binary.LittleEndian.PutUint64(p[w*8:], i^mix)
	}
}

// changed returns the bits in which p is not message i.
func changed(p *[MessageSize]byte, i uint64) (bits uint64) {
	for w, mix := range mixes {
		bits |= binary.LittleEndian.Uint64(p[w*8:]) ^ i ^ mix
	}
	return bits
}

var mixes = func() (list [MessageSize / 8]uint64) {
	for w := range list {
		list[w] = uint64(w) * 0x9e3779b97f4a7c15
	}
	return list
}()

// tally checks that messages numbered from first on arrive intact and once, in
// any order.
type tally struct {
	first, n, got uint64
	seen          []uint64
	err           error
}

// expect starts a run of n messages that continue the numbers of the last.
func (t *tally) expect(n int) {
	t.first += t.n
	t.n, t.got = uint64(n), 0
	words := (n + 63) / 64
	if cap(t.seen) < words {
		t.seen = make([]uint64, words)
	}
	t.seen = t.seen[:words]
	clear(t.seen)
}

func (t *tally) add(p []byte) {
	if len(p) != MessageSize {
		t.fail("a message of %d bytes", len(p))
		return
	}
	i := binary.LittleEndian.Uint64(p)
	if changed((*[MessageSize]byte)(p), i) != 0 {
		t.fail("message %d was changed", i)
		return
	}
	k := i - t.first
	if k >= t.n {
		t.fail("message %d is outside %d…%d", i, t.first, t.first+t.n-1)
		return
	}
	if t.seen[k/64]&(1<<(k%64)) != 0 {
		t.fail("message %d came twice", i)
		return
	}
	t.seen[k/64] |= 1 << (k % 64)
	t.got++
}

func (t *tally) fail(format string, args ...any) {
	if t.err == nil {
		t.err = fmt.Errorf("peers: "+format, args...)
	}
}

func (t *tally) done() bool { return t.got == t.n }

// result says whether the run delivered all it was to.
func (t *tally) result() error {
	if t.err == nil && !t.done() {
		return fmt.Errorf("%w: %d of %d", errNotDone, t.n-t.got, t.n)
	}
	return t.err
}

// closers closes a number of connections.
type closers []io.Closer

func (c closers) Close() error {
	var errs []error
	for _, one := range c {
		errs = append(errs, one.Close())
	}
	return errors.Join(errs...)
}

// idlePairs is a Subject's Idle for subjects whose connections share nothing.
//
//lint:ignore U1000 ENet's is the only one, and is built on request
func idlePairs(n int, open func() (Pair, error)) (io.Closer, error) {
	list := make(closers, 0, n)
	for range n {
		p, err := open()
		if err == nil {
			list = append(list, p)
			err = p.Single(1)
		}
		if err != nil {
			return nil, errors.Join(err, list.Close())
		}
	}
	return list, nil
}
