package main

import (
	"cmp"
	"slices"
	"time"

	"github.com/ackbits/ackbits"
	"github.com/ackbits/ackbits/internal/scenario"
	"github.com/ackbits/ackbits/simnet"
)

// flight is one copy of an event on its way.
type flight struct {
	sent, arrived time.Duration
	lost, bundled bool
}

// story is the life of one event, from its Send on.
type story struct {
	latency time.Duration
	copies  []flight
	known   time.Duration // when the acknowledgement came in; 0: it did not
}

// tell plays the games of a cell once more and returns the life of an event: the one
// whose latency is the quantile q of all.
func (l *lab) tell(p policy, over link, with workload, q float64) (s story, ok bool) {
	traffic := with.traffic
	traffic.Duration = l.duration
	var all []story
	for _, seed := range l.seeds {
		t := newTeller(traffic)
		g := over.game(seed, p.cfg, traffic)
		g.Observe = t.observe
		g.Play()
		all = append(all, append(t.events[0], t.events[1]...)...)
	}
	slices.SortStableFunc(all, func(a, b story) int { return cmp.Compare(a.latency, b.latency) })
	if len(all) == 0 {
		return story{}, false
	}
	return all[min(int(q*float64(len(all))), len(all)-1)], true
}

// teller notes the life of each event of a game, by the side that sends it.
type teller struct {
	sends  []time.Duration // of the events of a side, by number
	events [2][]story
	loads  [2]map[uint16]*load // by sequence
	list   []ackbits.Event
}

// load is which events a datagram carries.
type load struct {
	events []int
	copies []int // which of the copies of each
}

func newTeller(traffic scenario.Traffic) *teller {
	t := &teller{loads: [2]map[uint16]*load{{}, {}}}
	for tick := range int(traffic.Duration*time.Duration(traffic.TickRate)/time.Second) + 1 { // the tick at the end counts
		for range traffic.Events(tick) {
			t.sends = append(t.sends, time.Duration(tick)*time.Second/time.Duration(traffic.TickRate))
		}
	}
	return t
}

func (t *teller) observe(at time.Duration, d simnet.Direction, what simnet.What, datagram []byte) {
	h, _, err := ackbits.ParseHeader(datagram)
	if err != nil {
		return
	}
	switch what {
	case simnet.Sent:
		t.sent(at, d, h, datagram)
	case simnet.Delivered:
		t.acknowledged(at, 1-d, h)
		fallthrough
	default:
		t.ended(at, d, what, h)
	}
}

func (t *teller) sent(at time.Duration, d simnet.Direction, h ackbits.Header, datagram []byte) {
	c := new(load)
	t.loads[d][h.Sequence] = c
	t.list = scenario.Carried(t.list[:0], datagram)
	for _, e := range t.list {
		k := scenario.Number(e)
		for len(t.events[d]) <= k {
			t.events[d] = append(t.events[d], story{latency: never})
		}
		s := &t.events[d][k]
		c.events, c.copies = append(c.events, k), append(c.copies, len(s.copies))
		s.copies = append(s.copies, flight{sent: at - t.sends[k], bundled: h.Type == ackbits.TypeBundle})
	}
}

// ended notes that a datagram arrived or was lost.
func (t *teller) ended(at time.Duration, d simnet.Direction, what simnet.What, h ackbits.Header) {
	c := t.loads[d][h.Sequence]
	if c == nil {
		return
	}
	for i, k := range c.events {
		s := &t.events[d][k]
		f := &s.copies[c.copies[i]]
		switch {
		case what != simnet.Delivered:
			f.lost = f.arrived == 0
		case f.arrived == 0: // else it is the network's own copy
			f.arrived, f.lost = at-t.sends[k], false
			s.latency = min(s.latency, f.arrived)
		}
	}
}

// acknowledged notes that a side learns which of its datagrams arrived.
func (t *teller) acknowledged(at time.Duration, d simnet.Direction, h ackbits.Header) {
	for n := range 65 {
		c := t.loads[d][h.Ack-uint16(n)]
		if c == nil || n > 0 && h.AckBits>>(n-1)&1 == 0 {
			continue
		}
		for _, k := range c.events {
			if s := &t.events[d][k]; s.known == 0 {
				s.known = at - t.sends[k]
			}
		}
	}
}

// spell is a time at which the links are worse.
type spell struct{ from, to, end time.Duration }

var badSpell = spell{20 * time.Second, 60 * time.Second, 140 * time.Second}

// copiesOverTime plays games in which the links are clean, then bad, then clean
// again, and returns the copies of an event by the second in which it was sent
// first.
func copiesOverTime(p policy, seeds []uint64, bad link, traffic scenario.Traffic) []float64 {
	seconds := int(badSpell.end / time.Second)
	copies, events := make([]float64, seconds), make([]float64, seconds)
	clean := simnet.Config{Delay: bad.cfg.Delay}
	traffic.Duration = badSpell.end
	for _, seed := range seeds {
		type key struct {
			d      simnet.Direction
			number int
		}
		second := map[key]int{}
		var list []ackbits.Event
		g := scenario.Game{
			Seed: seed, Config: p.cfg, Link: clean, Traffic: traffic,
			Changes: []scenario.Change{{At: badSpell.from, Link: bad.cfg}, {At: badSpell.to, Link: clean}},
		}
		g.Observe = func(at time.Duration, d simnet.Direction, what simnet.What, datagram []byte) {
			if what != simnet.Sent {
				return
			}
			list = scenario.Carried(list[:0], datagram)
			for _, e := range list {
				k := key{d, scenario.Number(e)}
				s, again := second[k]
				if !again {
					s = min(int(at/time.Second), seconds-1)
					second[k] = s
					events[s]++
				}
				copies[s]++
			}
		}
		g.Play()
	}
	for s := range copies {
		copies[s] /= max(events[s], 1)
	}
	return copies
}
