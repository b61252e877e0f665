package simnet_test

import (
	"fmt"
	"time"

	"github.com/ackbits/ackbits/simnet"
)

// clock is a simnet.Clock, as ackbits.ManualClock is.
type clock struct{ t time.Time }

func (c *clock) Now() time.Time  { return c.t }
func (c *clock) Set(t time.Time) { c.t = t }

// sender repeats a line every 100 ms until it is answered.
type sender struct {
	clock simnet.Clock
	next  time.Time
	tries int
	done  bool
}

func (s *sender) Receive([]byte) { s.done = true }

func (s *sender) Due(send func([]byte)) {
	if s.done || s.clock.Now().Before(s.next) {
		return
	}
	s.tries++
	s.next = s.clock.Now().Add(100 * time.Millisecond)
	send(fmt.Appendf(nil, "try %d", s.tries))
}

func (s *sender) Deadline() (time.Time, bool) { return s.next, !s.done }

// answerer answers each line with an echo.
type answerer struct{ pending []byte }

func (a *answerer) Receive(datagram []byte) { a.pending = append(a.pending[:0], datagram...) }

func (a *answerer) Due(send func([]byte)) {
	if len(a.pending) > 0 {
		send(a.pending)
		a.pending = a.pending[:0]
	}
}

func (a *answerer) Deadline() (time.Time, bool) { return time.Time{}, false }

func Example() {
	now := &clock{time.Unix(0, 0)}
	s := &sender{clock: now, next: now.Now()}
	cut := simnet.Config{
		Delay:     30 * time.Millisecond,
		Blackouts: []simnet.Window{{From: 0, To: 150 * time.Millisecond}},
	}
	p := simnet.NewPair(1, now, s, new(answerer), cut, simnet.Config{Delay: 50 * time.Millisecond})
	p.Observe(func(at time.Duration, d simnet.Direction, what simnet.What, datagram []byte) {
		fmt.Println(at, d, what, string(datagram))
	})
	fmt.Println(p.RunUntil(func() bool { return s.done }, time.Minute), p.Now())
	// Output:
	// 0s a->b sent try 1
	// 0s a->b lost in blackout try 1
	// 100ms a->b sent try 2
	// 100ms a->b lost in blackout try 2
	// 200ms a->b sent try 3
	// 230ms a->b delivered try 3
	// 230ms b->a sent try 3
	// 280ms b->a delivered try 3
	// true 280ms
}
