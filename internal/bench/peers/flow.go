package peers

import (
	"errors"
	"sync/atomic"
	"time"
)

// flow drives two ends that have goroutines of their own over a Link.
type flow struct {
	link  *Link
	write func(msg []byte) error // a message out of A
	read  func(buf []byte) error // the next message into B
	end   func() error
	tally tally
	sent  uint64
	msg   [MessageSize]byte
	buf   [MessageSize]byte
}

func (f *flow) send() error {
	message(&f.msg, f.sent)
	f.sent++
	return f.write(f.msg[:])
}

func (f *flow) receive() error {
	err := f.read(f.buf[:])
	if err == nil {
		f.tally.add(f.buf[:])
	}
	return err
}

func (f *flow) Single(n int) error {
	f.link.SetDelay(0)
	f.tally.expect(n)
	for range n {
		if err := f.send(); err != nil {
			return err
		}
		if err := f.receive(); err != nil {
			return err
		}
	}
	return f.tally.result()
}

// patience is how long a tick waits for the ends to do what they are about to.
// Congestion control or a late goroutine can hold them up; then time goes on
// without them. It ends few ticks, or none.
const patience = 5 * time.Millisecond

// reader is B's side of a stream, as seen by A's.
type reader struct {
	got, want atomic.Int64
	enough    chan struct{} // a message once want have arrived
	result    chan error    // one, at the end
}

// readAll begins to read n messages into B.
func (f *flow) readAll(n int) *reader {
	b := &reader{enough: make(chan struct{}, 1), result: make(chan error, 1)}
	go func() {
		for range n {
			if err := f.receive(); err != nil {
				b.result <- err
				return
			}
			if b.got.Add(1) == b.want.Load() {
				select {
				case b.enough <- struct{}{}:
				default:
				}
			}
		}
		b.result <- nil
	}()
	return b
}

func (f *flow) Stream(n int) error {
	f.link.SetDelay(Delay)
	f.tally.expect(n)

	b := f.readAll(n)
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	wait := func(c <-chan struct{}) {
		timer.Reset(patience)
		select {
		case <-c:
		case <-timer.C:
		}
	}
	stop := f.watch(&b.got)
	defer stop()
	sent := 0
	for b.got.Load() < int64(n) {
		if sent < n {
			watch := f.link.Watch()
			for range min(Batch, n-sent) {
				if err := f.send(); err != nil {
					return errors.Join(err, f.Close())
				}
				sent++
			}
			wait(watch)
		}
		f.link.Advance()
		// What was sent Delay ticks ago arrives now; one tick more for what
		// missed its own. Past the last send, all that is missing is awaited.
		due := int64(sent - Batch*(Delay+1))
		if sent == n {
			due = min(int64(n), b.got.Load()+Batch)
		}
		b.want.Store(due)
		for b.got.Load() < due {
			wait(b.enough)
			if b.got.Load() < due {
				f.link.Advance()
			}
			select {
			case err := <-b.result:
				if err != nil {
					return err
				}
				return f.tally.result() // all came while we waited
			default:
			}
		}
		select {
		case <-b.enough:
		default:
		}
	}
	if err := <-b.result; err != nil {
		return err
	}
	return f.tally.result()
}

// watch keeps time going while a write blocks, for room in a congestion window
// or the right to another stream: the peer's answer may be in flight. It closes
// the pair when nothing arrives any more. The function it returns ends it.
func (f *flow) watch(got *atomic.Int64) (stop func()) {
	const every, limit = 20 * time.Millisecond, 10 * time.Second
	done := make(chan struct{})
	go func() {
		ticker := time.NewTicker(every)
		defer ticker.Stop()
		last, since := got.Load(), time.Duration(0)
		for {
			select {
			case <-done:
				return
			case <-ticker.C:
			}
			if now := got.Load(); now != last {
				last, since = now, 0
				continue
			}
			f.link.Advance()
			if since += every; since > limit {
				f.Close()
				return
			}
		}
	}()
	return func() { close(done) }
}

func (f *flow) Close() error { return f.end() }
