package main

import (
	"fmt"
	"math"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/ackbits/ackbits/internal/scenario"
)

// lab is a set of games: each policy over each link with each workload, once for
// each seed.
type lab struct {
	policies  []policy
	links     []link
	workloads []workload
	seeds     []uint64
	duration  time.Duration
}

// outcome is what a policy reached over a link with a workload, all seeds
// together.
type outcome struct {
	latencies []time.Duration // of the events that arrived, sorted
	sent      int
	copies    float64 // for each event; 0 if unknown
	bytes     float64 // for each event
	states    states  // over a link with a rate
	err       error
}

// never is the latency of an event that did not arrive.
const never = time.Duration(math.MaxInt64)

// quantile returns the latency that a share q of the events sent does not
// exceed.
func (o *outcome) quantile(q float64) time.Duration {
	if i := min(int(q*float64(o.sent)), o.sent-1); i >= 0 && i < len(o.latencies) {
		return o.latencies[i]
	}
	return never
}

// add adds a game.
func (o *outcome) add(r scenario.Result) {
	if o.err == nil {
		o.err = r.Err
	}
	if o.err == nil && r.Twice > 0 {
		o.err = fmt.Errorf("%d events came twice", r.Twice)
	}
	before, all := float64(o.sent), float64(max(o.sent+r.Sent, 1))
	o.copies = (o.copies*before + r.Copies*float64(r.Sent)) / all
	o.bytes = (o.bytes*before + r.Bytes*float64(r.Sent)) / all
	o.latencies = append(o.latencies, r.Latencies...)
	o.sent += r.Sent
}

// results are indexed by workload, link and policy.
type results [][][]outcome

// run plays all games on all cores and calls done after each.
func (l *lab) run(t *testing.T, done func()) results {
	res := make(results, len(l.workloads))
	for w := range res {
		res[w] = make([][]outcome, len(l.links))
		for i := range res[w] {
			res[w][i] = make([]outcome, len(l.policies))
		}
	}
	l.each(func(w, i, p int) {
		o := &res[w][i][p]
		for _, seed := range l.seeds { // in this order, so that sums are the same each time
			r, states := l.play(t, l.policies[p], seed, l.links[i], l.workloads[w])
			o.add(r)
			o.states.add(states)
			done()
		}
		slices.Sort(o.latencies)
	})
	return res
}

// games is how often run calls done.
func (l *lab) games() int {
	return len(l.policies) * len(l.links) * len(l.workloads) * len(l.seeds)
}

// each calls do for each cell, on all cores.
func (l *lab) each(do func(workload, link, policy int)) {
	type cell struct{ w, i, p int }
	cells := make(chan cell)
	var workers sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			for c := range cells {
				do(c.w, c.i, c.p)
			}
		})
	}
	for w := range l.workloads {
		for p := range l.policies {
			for i := range l.links {
				cells <- cell{w, i, p}
			}
		}
	}
	close(cells)
	workers.Wait()
}

func (l *lab) play(t *testing.T, p policy, seed uint64, over link, with workload) (r scenario.Result, of states) {
	traffic := with.traffic
	traffic.Duration = l.duration
	if p.peer != nil {
		t.Run("game", func(t *testing.T) { r, of = p.peer.play(t, seed, over, traffic) })
		return r, of
	}
	g := over.game(seed, p.cfg, traffic)
	watch := newStateWatch()
	if over.shared() {
		g.Observe, g.Details = watch.observe, true
	}
	r = g.Play()
	watch.sent = len(r.States[0]) + len(r.States[1])
	return r, watch.states
}
