package ackbits

import (
	"encoding/binary"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// OrderedLane over lossy paths for minutes, and what it costs: latency, allocations, work.

// Time.

// Acknowledgements come in right after the wakeup at which their events
// are sent again, first those of a burst and then one at a time.
func TestLaneRoundTripAboveTheResendTimeDoesNotChaseItself(t *testing.T) {
	a, b := newLaneTest(t, LaneConfig{}), newLaneTest(t, LaneConfig{})
	a.feed(10)
	sends, delivered := map[uint32]int{}, 0
	answers := map[time.Duration][]uint32{}
	for at := time.Duration(0); at <= 5*time.Second; at += 100 * laneUnit {
		a.at(at)
		if 0 < at && at <= time.Second {
			a.feed(1)
		}
		for _, id := range a.due() {
			sends[id]++
			deliver, ack := b.Receive(id)
			if deliver {
				delivered++
			}
			answers[at+300*laneUnit] = append(answers[at+300*laneUnit], ack)
			require.LessOrEqual(t, at, 1300*laneUnit, "silence after the last acknowledgement")
		}
		for _, ack := range answers[at] {
			a.ack(ack)
		}
	}
	require.Equal(t, 20, delivered)
	for id, n := range sends {
		require.LessOrEqual(t, n, 2, "event %d", id)
	}
	require.Equal(t, 2, sends[1], "the retransmission that is not needed")
	require.Zero(t, a.InFlight())
	a.wantNoDeadline()
}

func TestLaneResendBudgetDoesNotSwitchItselfOff(t *testing.T) {
	l := newLaneTest(t, LaneConfig{})
	l.feed(100)
	l.due()
	for _, wake := range []struct {
		at  time.Duration
		ids []uint32
	}{
		{300 * laneUnit, laneIDs(1, 32)}, {400 * laneUnit, laneIDs(33, 64)}, {500 * laneUnit, laneIDs(65, 96)},
		{600 * laneUnit, laneIDs(1, 32)}, {600 * laneUnit, nil}, {600 * laneUnit, nil}, {699 * laneUnit, nil}, {700 * laneUnit, laneIDs(33, 64)},
	} {
		l.at(wake.at)
		require.Equal(t, wake.ids, l.due(), "at %v", wake.at)
	}
}

// Recovery.

// laneTraffic sends an event each interval for the time of length over a path
// that takes delay each way and loses what lost says, woken by every arrival,
// send and slot of 100 ms, and returns how long each event took.
func laneTraffic(t *testing.T, interval, delay, length time.Duration, p Priority, lost func(isAck bool, id uint32) bool) []time.Duration {
	type packet struct {
		at    time.Duration
		isAck bool
		id    uint32
	}
	a, b := newLaneTest(t, LaneConfig{}), newLaneTest(t, LaneConfig{})
	var path []packet
	var took []time.Duration
	for now := time.Duration(0); now < length || a.InFlight() > 0; now += laneUnit {
		a.at(now)
		b.at(now)
		wake := now%(100*laneUnit) == 0
		for ; len(path) > 0 && path[0].at <= now; path = path[1:] {
			wake = true
			if path[0].isAck {
				a.ack(path[0].id)
				continue
			}
			deliver, ack := b.Receive(path[0].id)
			if deliver {
				took = append(took, now-time.Duration(len(took))*interval)
			}
			if !lost(true, ack) {
				path = append(path, packet{now + delay, true, ack})
			}
		}
		if now%interval == 0 && now < length {
			wake = true
			_, err := a.Send(binary.LittleEndian.AppendUint32(nil, a.last+1), p)
			require.NoError(t, err, "event %d at %v", a.last+1, now)
		}
		if !wake {
			continue
		}
		for _, id := range a.due() {
			if !lost(false, id) {
				path = append(path, packet{now + delay, false, id})
			}
		}
		require.NoError(t, a.Err())
	}
	require.Len(t, took, int(length/interval))
	return took
}

func TestLaneOneLossDoesNotDelayLaterEventsForEver(t *testing.T) {
	lost := 0
	took := laneTraffic(t, 50*laneUnit, 20*laneUnit, 10*time.Second, Critical, func(isAck bool, id uint32) bool {
		if !isAck && id == 40 {
			lost++
		}
		return !isAck && id == 40 && lost == 1
	})
	// Event 40 of time 1950 ms goes again at 2200 ms, and so does all after it;
	// two wake-ups later, at 2400 ms, the lane is as it was.
	for i, d := range took {
		at := time.Duration(i) * 50 * laneUnit
		if at < 1950*laneUnit || at >= 2150*laneUnit {
			require.Less(t, d, 100*laneUnit, "the event of %v", at)
		}
	}
	require.Equal(t, 270*laneUnit, took[39])
}

// Go-Back-N recovers from a loss of a retransmission by age alone, so the queue gets
// long now and then at this rate; it must not reach a limit.
func TestLane100EventsASecondAt2PercentLossForTenMinutesRefuseNothing(t *testing.T) {
	for seed := range uint64(3) {
		rng := rand.New(rand.NewPCG(seed, 9))
		took := laneTraffic(t, 10*laneUnit, 40*laneUnit, 10*time.Minute, Critical, func(bool, uint32) bool {
			return rng.IntN(100) < 2
		})
		slices.Sort(took)
		require.Less(t, took[len(took)/2], time.Second, "the median event")
	}
}

func TestLane50EventsASecondAt2PercentLossForTenMinutesRefuseNoDroppable(t *testing.T) {
	for seed := range uint64(3) {
		rng := rand.New(rand.NewPCG(seed, 9))
		laneTraffic(t, 20*laneUnit, 40*laneUnit, 10*time.Minute, Droppable, func(bool, uint32) bool {
			return rng.IntN(100) < 2
		})
	}
}

// Cost.

func TestLaneSteadyStateAllocatesNothing(t *testing.T) {
	a, b := newLaneTest(t, LaneConfig{}), newLaneTest(t, LaneConfig{})
	event := make([]byte, 700)
	rng := rand.New(rand.NewPCG(1, 1))
	round := 0
	cycle := func() {
		for range 40 {
			round++
			_, _ = a.Send(event[:rng.IntN(700)], Priority(round%2))
			for ev, ok := a.NextDue(700); ok; ev, ok = a.NextDue(700) {
				if rng.IntN(20) == 0 {
					continue // lost
				}
				if _, ack := b.Receive(ev.ID); rng.IntN(20) > 0 {
					_ = a.ReceiveAck(ack)
				}
				_ = a.ReceiveAck(math.MaxUint32)
			}
			a.Deadline()
			a.clock.Advance(25 * laneUnit)
		}
	}
	for range 1000 {
		cycle() // 1000 s
	}
	require.NoError(t, a.Err())
	require.Zero(t, testing.AllocsPerRun(500, cycle))
	require.NoError(t, a.Err())
	require.Greater(t, b.Ack(), uint32(20_000))
}

// NextDue and Deadline look at one record each, so they have no loop, and none
// of what they call has; the one exception is trim, whose copying is paid for
// by the memory that it frees.
func TestLaneNextDueDoesNotScanTheQueue(t *testing.T) {
	functions := map[string]*ast.FuncDecl{}
	for _, file := range []string{"lane.go", "lane_queue.go"} {
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		require.NoError(t, err)
		for _, d := range parsed.Decls {
			if f, ok := d.(*ast.FuncDecl); ok {
				functions[f.Name.Name] = f
			}
		}
	}
	seen := map[string]bool{"trim": true}
	var visit func(name string)
	visit = func(name string) {
		if functions[name] == nil || seen[name] {
			return
		}
		seen[name] = true
		ast.Inspect(functions[name], func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.ForStmt, *ast.RangeStmt:
				t.Errorf("%s has a loop", name)
			case *ast.CallExpr:
				switch f := n.Fun.(type) {
				case *ast.Ident:
					visit(f.Name)
				case *ast.SelectorExpr:
					visit(f.Sel.Name)
				}
			}
			return true
		})
	}
	visit("NextDue")
	visit("Deadline")
	for _, name := range []string{"retransmitAt", "agesAt", "stallAt", "slot", "data", "noteRetransmission", "read"} {
		require.True(t, seen[name], name)
	}
}

// BenchmarkLaneQueued512 is a NextDue that retransmits one of n queued events, with
// no budget in its way; the figures must not differ but by the cache.
func BenchmarkLaneQueued512(b *testing.B) {
	for _, n := range []int{16, 512, 8192} {
		b.Run(fmt.Sprintf("queued=%d", n), func(b *testing.B) {
			l := newLaneTest(b, LaneConfig{HardLimit: n + 1, ResendBudget: math.MaxInt, StallTimeout: math.MaxInt64})
			l.feed(n)
			require.Len(b, l.due(), n)
			b.ReportAllocs()
			for b.Loop() {
				if _, ok := l.NextDue(4); !ok {
					l.clock.Advance(250 * laneUnit)
				}
			}
		})
	}
}

// BenchmarkLaneIdle512 is a NextDue with 512 queued and none due.
func BenchmarkLaneIdle512(b *testing.B) {
	l := newLaneTest(b, LaneConfig{HardLimit: 513})
	l.feed(512)
	l.due()
	b.ReportAllocs()
	for b.Loop() {
		if _, ok := l.NextDue(4); ok {
			b.Fatal("nothing is due")
		}
	}
}

// BenchmarkLaneEvent is an event's whole way: Send, NextDue, Receive, ReceiveAck.
func BenchmarkLaneEvent(b *testing.B) {
	a, c := newLaneTest(b, LaneConfig{}), newLaneTest(b, LaneConfig{})
	event := make([]byte, 64)
	b.ReportAllocs()
	for b.Loop() {
		_, _ = a.Send(event, Critical)
		ev, _ := a.NextDue(64)
		_, ack := c.Receive(ev.ID)
		if a.ReceiveAck(ack) != nil {
			b.Fatal("not acknowledged")
		}
	}
}
