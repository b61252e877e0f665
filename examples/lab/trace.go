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

// story is the life of one event of the client's, from its Send on.
type story struct {
	latency time.Duration
	copies  []flight
	known   time.Duration // when the acknowledgement came in
}

// tell plays a game and returns the life of an event: the one whose latency is
// the quantile q of all.
func tell(p policy, seed uint64, over link, traffic scenario.Traffic, q float64) story {
	type event struct {
		story
		began time.Duration
	}
	var events []event
	type carrier struct {
		events []int
		copies []int // which of the copies of each
	}
	carriers := map[uint16]*carrier{}
	var list []ackbits.Event
	g := scenario.Game{Seed: seed, Config: p.cfg, Link: over.cfg, Traffic: traffic}
	g.Observe = func(at time.Duration, d simnet.Direction, what simnet.What, datagram []byte) {
		h, _, err := ackbits.ParseHeader(datagram)
		if err != nil {
			return
		}
		if d == simnet.BToA { // the acknowledgements
			for n := range 65 {
				c := carriers[h.Ack-uint16(n)]
				if what != simnet.Delivered || c == nil || n > 0 && h.AckBits>>(n-1)&1 == 0 {
					continue
				}
				for _, k := range c.events {
					if events[k].known == 0 {
						events[k].known = at - events[k].began
					}
				}
			}
			return
		}
		switch what {
		case simnet.Sent:
			c := new(carrier)
			carriers[h.Sequence] = c
			list = scenario.Carried(list[:0], datagram)
			for _, e := range list {
				k := scenario.Number(e)
				for len(events) <= k {
					events = append(events, event{began: at, story: story{latency: never}})
				}
				c.events, c.copies = append(c.events, k), append(c.copies, len(events[k].copies))
				events[k].copies = append(events[k].copies, flight{sent: at - events[k].began, bundled: h.Type == ackbits.TypeBundle})
			}
		default:
			c := carriers[h.Sequence]
			for i, k := range c.events {
				f := &events[k].copies[c.copies[i]]
				switch what {
				case simnet.Lost, simnet.LostInBurst:
					f.lost = true
				case simnet.Delivered:
					if f.arrived == 0 { // else it is the network's own copy
						f.arrived = at - events[k].began
						events[k].latency = min(events[k].latency, f.arrived)
					}
				}
			}
		}
	}
	g.Play()
	slices.SortStableFunc(events, func(a, b event) int { return cmp.Compare(a.latency, b.latency) })
	if len(events) == 0 {
		return story{}
	}
	return events[min(int(q*float64(len(events))), len(events)-1)].story
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
			Weather: []scenario.Change{{At: badSpell.from, Link: bad.cfg}, {At: badSpell.to, Link: clean}},
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
