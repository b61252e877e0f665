package simnet

import (
	"fmt"
	"hash/fnv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// manual is a Clock.
type manual struct{ t time.Time }

func (c *manual) Now() time.Time  { return c.t }
func (c *manual) Set(t time.Time) { c.t = t }

// toy is an endpoint that logs its calls, answers what it receives if told to,
// and sends what is in its outbox when deadline comes.
type toy struct {
	name     string
	clock    *manual
	log      *[]string
	deadline time.Time // zero for none
	outbox   []string
	answer   string
	stubborn bool // never clears its deadline
}

func (e *toy) say(format string, args ...any) {
	since := e.clock.t.Sub(epoch)
	*e.log = append(*e.log, fmt.Sprintf("%v %s ", since, e.name)+fmt.Sprintf(format, args...))
}

func (e *toy) Receive(datagram []byte) {
	e.say("got %s", datagram)
	if e.answer != "" {
		e.outbox, e.deadline = append(e.outbox, e.answer), e.clock.t
	}
}

func (e *toy) Due(send func([]byte)) {
	if e.deadline.IsZero() || e.clock.t.Before(e.deadline) {
		e.say("idle")
		return
	}
	if !e.stubborn {
		e.deadline = time.Time{}
	}
	for _, m := range e.outbox {
		e.say("sends %s", m)
		send([]byte(m))
	}
	e.outbox = nil
}

func (e *toy) Deadline() (time.Time, bool) { return e.deadline, !e.deadline.IsZero() }

var epoch = time.Unix(1000, 0)

func newToys(ab, ba Config) (p *Pair, a, b *toy, log *[]string) {
	clock := &manual{epoch}
	log = new([]string)
	a, b = &toy{name: "a", clock: clock, log: log}, &toy{name: "b", clock: clock, log: log}
	return NewPair(1, clock, a, b, ab, ba), a, b, log
}

func TestPairJumpsToArrivalsDeadlinesAndFunctions(t *testing.T) {
	p, a, b, log := newToys(Config{Delay: 30 * ms}, Config{Delay: 40 * ms})
	a.outbox, a.deadline = []string{"ping"}, epoch.Add(10*ms)
	b.answer = "pong"
	p.At(50*ms, func() { *log = append(*log, "50ms function") })
	p.Run(time.Minute)
	require.Equal(t, []string{
		"10ms a sends ping",
		"40ms b got ping",
		"40ms b sends pong",
		"50ms function",
		"50ms a idle",
		"50ms b idle",
		"80ms a got pong",
		"80ms a idle",
	}, *log)
	require.Equal(t, time.Minute, p.Now())
	require.Equal(t, epoch.Add(time.Minute), p.clock.Now())
}

func TestOrderAtOneInstant(t *testing.T) {
	p, a, b, log := newToys(Config{Delay: 10 * ms}, Config{Delay: 10 * ms})
	p.Send(BToA, []byte("1"))
	p.Send(AToB, []byte("2"))
	p.Send(BToA, []byte("3"))
	a.outbox, a.deadline = []string{"A"}, epoch.Add(10*ms)
	b.answer = "B"
	note := func(s string) func() { return func() { *log = append(*log, s) } }
	p.At(10*ms, func() {
		note("first")()
		p.At(5*ms, note("late, in the next round"))
	})
	p.Every(1, 10*ms, note("tick"))
	p.At(10*ms, note("last"))
	p.Run(0)
	*log = nil
	p.Run(10 * ms)
	require.Equal(t, []string{
		"10ms a got 1",
		"10ms a sends A",
		"10ms a got 3",
		"10ms a idle",
		"10ms b got 2",
		"10ms b sends B",
		"first",
		"tick",
		"last",
		"10ms a idle",
		"10ms b idle",
		"late, in the next round",
		"10ms a idle",
		"10ms b idle",
	}, *log)
}

func TestDueIsNotCalledWithoutReason(t *testing.T) {
	p, a, _, log := newToys(Config{}, Config{})
	a.outbox, a.deadline = []string{"x"}, epoch.Add(ms)
	p.Run(time.Second)
	require.Equal(t, []string{"1ms a sends x", "1ms b got x", "1ms b idle"}, *log)
}

// reach is an endpoint that calls another.
type reach struct {
	*toy
	onReceive, onDue func()
}

func (r reach) Receive(datagram []byte) {
	r.toy.Receive(datagram)
	r.onReceive()
}

func (r reach) Due(send func([]byte)) {
	r.toy.Due(send)
	r.onDue()
}

func TestOneEndMayCallTheOther(t *testing.T) {
	for when, want := range map[time.Duration][]string{
		0:  {"0s b got x", "0s b sends answer", "0s a sends called", "0s a got answer", "0s a idle", "0s b got called"},
		ms: {"0s b got x", "0s b sends answer", "0s a got answer", "0s a idle", "1ms a sends called", "1ms b got called"},
	} {
		_, a, b, log := newToys(Config{}, Config{})
		b.answer = "answer"
		call := func() { a.outbox, a.deadline = []string{"called"}, epoch.Add(when) }
		p := NewPair(1, a.clock, a, reach{b, call, func() {}}, Config{}, Config{})
		p.Send(AToB, []byte("x"))
		p.RunUntil(func() bool { return len(*log) >= len(want) }, time.Second)
		require.Equal(t, want, (*log)[:len(want)])
	}

	_, a, b, log := newToys(Config{}, Config{})
	call := func() { a.outbox, a.deadline = []string{"called"}, epoch.Add(2*ms) }
	b.deadline = epoch.Add(ms)
	p := NewPair(1, a.clock, a, reach{b, func() {}, call}, Config{}, Config{})
	p.RunUntil(func() bool { return len(*log) > 0 }, time.Second)
	require.Equal(t, "2ms a sends called", (*log)[0])
}

func TestPassedDeadlineMeansNow(t *testing.T) {
	p, a, _, log := newToys(Config{}, Config{})
	p.Run(time.Second)
	a.outbox, a.deadline = []string{"x"}, epoch.Add(ms)
	p.Run(ms) // has passed as well, so nothing happens
	require.Empty(t, *log)
	p.Run(time.Second)
	require.Equal(t, "1s a sends x", (*log)[0])
}

func TestTicksAreExact(t *testing.T) {
	p, _, _, _ := newToys(Config{}, Config{})
	p.Run(7) // ticks count from here
	i := 0
	stop := p.Every(60, time.Second, func() {
		require.Equal(t, 7+time.Duration(i)*time.Second/60, p.Now())
		require.Equal(t, epoch.Add(p.Now()), p.clock.Now())
		i++
	})
	p.Run(7 + 100*time.Second)
	require.Equal(t, 6001, i) // the first and the last instant included
	stop()
	p.Run(200 * time.Second)
	require.Equal(t, 6001, i)
}

func TestTicksDoNotOverflow(t *testing.T) {
	tick := ticker{n: 60, per: time.Second, i: 60*3600*24*365*100 + 1} // a century
	require.Equal(t, 100*365*24*time.Hour+time.Second/60, tick.at())
}

func TestEveryStopsItself(t *testing.T) {
	p, _, _, _ := newToys(Config{}, Config{})
	n := 0
	var stop func()
	stop = p.Every(1, ms, func() {
		if n++; n == 3 {
			stop()
		}
	})
	p.Run(time.Second)
	require.Equal(t, 3, n)
	require.Panics(t, func() { p.Every(0, ms, func() {}) })
	require.Panics(t, func() { p.Every(2, 1, func() {}) })
}

func TestRunUntil(t *testing.T) {
	p, _, _, _ := newToys(Config{}, Config{})
	n := 0
	p.Every(1, ms, func() { n++ })
	require.True(t, p.RunUntil(func() bool { return n == 5 }, time.Second))
	require.Equal(t, 4*ms, p.Now())
	require.True(t, p.RunUntil(func() bool { return true }, time.Second))
	require.Equal(t, 4*ms, p.Now())
	require.False(t, p.RunUntil(func() bool { return n == 50 }, 10*ms))
	require.Equal(t, 10*ms, p.Now())
	require.Equal(t, 11, n)
	p.Run(5 * ms) // nothing to do, and no way back
	require.Equal(t, 10*ms, p.Now())
}

func TestNeverIdlePanics(t *testing.T) {
	p, a, _, _ := newToys(Config{}, Config{})
	a.deadline, a.stubborn = epoch.Add(ms), true
	require.PanicsWithValue(t, "simnet: never idle: 10000 rounds at 1ms without time moving;"+
		" a: deadline 1ms; function scheduled now: false",
		func() { p.Run(time.Second) })

	p, a, b, _ := newToys(Config{}, Config{}) // no delay: they answer for ever
	a.answer, b.answer = "x", "y"
	p.Send(AToB, []byte("z"))
	require.PanicsWithValue(t, "simnet: never idle: 10000 rounds at 0s without time moving;"+
		" a: a datagram arrives; function scheduled now: false",
		func() { p.Run(time.Second) })

	p, _, _, _ = newToys(Config{}, Config{})
	var again func()
	again = func() { p.At(p.Now(), again) }
	again()
	require.PanicsWithValue(t, "simnet: never idle: 10000 rounds at 0s without time moving;"+
		" function scheduled now: true",
		func() { p.Run(time.Second) })
}

func TestPairIsTheSameInOneRunOrMany(t *testing.T) {
	play := func(step time.Duration) []string {
		p, a, b, log := newToys(storm, storm)
		a.answer, b.answer = "from a", "from b"
		p.Every(30, time.Second, func() { p.Send(AToB, []byte("tick")) })
		for p.Now() < 5*time.Second {
			p.Run(p.Now() + step)
		}
		return *log
	}
	require.Equal(t, play(5*time.Second), play(ms))
}

func TestDirectionsAreIndependent(t *testing.T) {
	play := func(seed uint64, answers bool) (forth, back []string) {
		clock := &manual{epoch}
		a, b := &toy{clock: clock, log: new([]string)}, &toy{clock: clock, log: new([]string)}
		p := NewPair(seed, clock, a, b, storm, storm)
		p.Observe(func(at time.Duration, d Direction, what What, datagram []byte) {
			line := fmt.Sprint(at, what, datagram)
			if d == AToB {
				forth = append(forth, line)
			} else {
				back = append(back, line)
			}
		})
		p.Every(50, time.Second, func() {
			p.Send(AToB, []byte("same bytes"))
			if answers {
				p.Send(BToA, []byte("same bytes"))
			}
		})
		p.Run(10 * time.Second)
		return forth, back
	}
	alone, none := play(1, false)
	forth, back := play(1, true)
	require.Empty(t, none)
	require.Equal(t, alone, forth)
	require.NotEqual(t, forth, back, "the same conditions, but other draws")
	next, _ := play(2, false)
	require.NotEqual(t, forth, next)
	require.NotEqual(t, back, next, "neighbouring seeds share no link")
}

func TestPairObserver(t *testing.T) {
	p, _, _, _ := newToys(Config{Delay: ms}, Config{Loss: 1})
	var got []string
	p.Observe(func(at time.Duration, d Direction, what What, datagram []byte) {
		got = append(got, fmt.Sprintf("%v %v %v %s", at, d, what, datagram))
	})
	p.Send(AToB, []byte("x"))
	p.Send(BToA, []byte("y"))
	p.Run(time.Second)
	p.Observe(nil)
	p.Send(AToB, []byte("z"))
	require.Equal(t, []string{"0s a->b sent x", "0s b->a sent y", "0s b->a lost y", "1ms a->b delivered x"}, got)
	require.Equal(t, 2, p.Link(AToB).Stats().Sent)
	require.Equal(t, 1, p.Link(BToA).Stats().Lost)
	require.Equal(t, "Direction(9)", Direction(9).String())
}

func TestConditionsChangeInMidRun(t *testing.T) {
	p, _, _, _ := newToys(Config{}, Config{})
	p.Every(100, time.Second, func() { p.Send(AToB, []byte("x")) })
	p.At(time.Second, func() { p.Link(AToB).SetConfig(p.Now(), Config{Loss: 1}) })
	p.At(2*time.Second, func() { p.Link(AToB).SetConfig(p.Now(), Config{}) })
	p.Run(3 * time.Second)
	s := p.Link(AToB).Stats()
	require.Equal(t, 301, s.Sent)
	// A tick goes before a function scheduled later, at one instant.
	require.Equal(t, 100, s.Lost)
}

// quiet is an endpoint that costs nothing.
type quiet struct{ datagram [100]byte }

func (q *quiet) Receive([]byte)              {}
func (q *quiet) Due(send func([]byte))       { send(q.datagram[:]) }
func (q *quiet) Deadline() (time.Time, bool) { return time.Time{}, false }

func TestPairAllocatesNothingInSteadyState(t *testing.T) {
	cfg := Config{Delay: 5 * ms, Loss: 0.6, Jitter: ms}
	p := NewPair(1, &manual{epoch}, new(quiet), new(quiet), cfg, cfg)
	p.Every(60, time.Second, func() {})
	p.Run(20 * time.Second)
	require.Zero(t, testing.AllocsPerRun(50, func() { p.Run(p.Now() + time.Second) }))
}

// As TestTraceIsTheSameEverywhere, of a Pair: the order of what happens at one
// instant is part of it.
func TestPairTraceIsTheSameEverywhere(t *testing.T) {
	p, a, b, log := newToys(storm, storm)
	a.answer = "from a"
	hash := fnv.New64a()
	p.Observe(func(at time.Duration, d Direction, what What, datagram []byte) {
		fmt.Fprintf(hash, "%d %v %v %x\n", at, d, what, datagram)
	})
	p.Every(30, time.Second, func() { p.Send(BToA, []byte("tick of b")) })
	p.Every(20, time.Second, func() { b.outbox, b.deadline = []string{"one", "two"}, b.clock.t.Add(3*ms) })
	p.Run(10 * time.Second)
	for _, line := range *log {
		fmt.Fprintln(hash, line)
	}
	require.Equal(t, 3578, len(*log))
	require.Equal(t, uint64(0x596b0738ad8b24e6), hash.Sum64())
}
