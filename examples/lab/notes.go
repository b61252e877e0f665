package main

import (
	"fmt"
	"math"
	"time"
)

// notes are a word on each curve that surprises, as far as this run has it: one of a
// kind and policy.
func (l *lab) notes(cells [][]outcome) (notes []string) {
	said := map[string]bool{}
	say := func(kind, format string, args ...any) {
		if !said[kind] {
			notes = append(notes, fmt.Sprintf(format, args...))
		}
		said[kind] = true
	}
	for i := range l.links {
		over := &l.links[i]
		for k := range l.policies {
			p, o := &l.policies[k], &cells[i][k]
			if o.err != nil {
				say("ended"+p.name, "%s over %s did not last: %v.", p.title(), over.name, o.err)
				continue
			}
			if o.sent > 0 {
				noteCell(say, p, over, o)
			}
		}
		switch {
		case over.police.Rate > 0:
			say("police", "%s: a policer has no queue. What exceeds its rate is dropped, not late, so states that arrive are as young as ever, and only losses tell that too much is sent.", over.name)
		case over.squeeze > 0:
			say("squeeze", "%s: for %v of each %v the link has %.0f %% of its rate. What is sent then beyond it waits, and most of the p99 is of those seconds and of catching up after them.", over.name, squeezeFor, squeezeEvery, 100*over.squeeze)
		case over.cfg.Rate > 0:
			say("rate", "%s: the link itself is the limit. What goes beyond the round trip is time in its queue, and a copy takes the place of what it is to help.", over.name)
		case len(over.cfg.Blackouts) > 0:
			say("outage", "%s: what is sent in an outage waits for its end at least. How soon after it a policy tries again shows in the p99.9.", over.name)
		case over.withhold > 0:
			say("withhold", "%s: both ends refuse to acknowledge state for %v, as one does that lacks a baseline, and what rides in it is refused, too. With Bundle the first two copies of an event may ride there; only a later one has a datagram of its own. Without Bundle nothing changes.", over.name, over.withhold)
		case over.cfg.Loss == 0.01:
			say("edge", "%s: at a loss of exactly 1 %% the p99 stands on a knife edge. It is the time of the first copy or of the second, by the luck of one event.", over.name)
		}
	}
	return notes
}

func noteCell(say func(kind, format string, args ...any), p *policy, over *link, o *outcome) {
	half, slow, rtt := o.quantile(0.5), o.quantile(0.99), 2*over.cfg.Delay
	free := !over.shared()
	ordered := p.cfg.Ordered || p.peer != nil && p.peer.ordered
	if ordered && free && half != never && half >= rtt {
		say("line"+p.name, "%s over %s: even the median is %s ms. It keeps order, so what follows a lost one waits for it (head-of-line blocking).", p.title(), over.name, number(half))
	}
	if p.peer != nil {
		return
	}
	if !p.cfg.Adaptive && over.clean() && o.copies > 1.9 {
		say("twice"+p.name, "%s over %s: %.1f copies of each event, though nothing is lost. Its timer is no longer than the round trip, so it fires before the acknowledgement can be there; so its line of bytes is high, and flat.", p.title(), over.name, o.copies)
	}
	if lost := o.states.lost(); p.cfg.Adaptive && over.police.Rate > 0 && o.states.sent > 0 && lost > over.cfg.Loss+0.02 {
		say("policed"+p.name, "%s over %s: %.0f %% of the states are lost, where %.0f %% are by chance. Its proactive copies take some of what the policer lets through.", p.title(), over.name, 100*lost, 100*over.cfg.Loss)
	}
	if p.cfg.Adaptive && free && len(over.cfg.Blackouts) == 0 && o.copies > 2.5 {
		say("copies"+p.name, "%s over %s: %.1f copies of each event, more than its losses ask for. Those are proactive copies: they keep the p99 at %s ms, and they are where the bytes come from. EventRate bounds them.", p.title(), over.name, o.copies, number(slow))
	}
	if p.cfg.Adaptive && over.cfg.Burst.MeanBad > 0 && slow > rtt {
		say("burst"+p.name, "%s over %s: proactive copies a tick apart are lost together in a burst of %v, so the p99, %s ms, is that of a later one.", p.title(), over.name, over.cfg.Burst.MeanBad, number(slow))
	}
}

// clean reports whether a link delivers everything.
func (l *link) clean() bool {
	c := &l.cfg
	return c.Loss == 0 && c.Burst.LossBad == 0 && !l.shared() && len(c.Blackouts) == 0
}

// copyNotes say how long each policy takes to be as it was before the bad spell.
func copyNotes(policies []policy, copies [][]float64, over link) (notes []string) {
	const alike = 0.1
	for k, list := range copies {
		if len(list) == 0 {
			continue
		}
		p := &policies[k]
		before, to := list[int(badSpell.from.Seconds())-2], int(badSpell.to.Seconds())
		back := len(list)
		for back > to && math.Abs(list[back-1]-before) <= alike {
			back--
		}
		switch exact := p.cfg.ResendDelay; {
		case back == len(list) && !p.cfg.Adaptive:
			note := p.title() + " does not come back to what it was."
			if exact == 0 {
				exact = 100 * time.Millisecond
			}
			if 2*over.cfg.Delay == exact {
				note += " Its timer is exactly the round trip here, so which is first, the timer or the acknowledgement, depends on the phase that the last losses left; at 90 ms the curve returns."
			}
			notes = append(notes, note)
		case back-to > 5 && p.cfg.Adaptive:
			notes = append(notes, fmt.Sprintf("%s is back at %.1f copies %d s after the link is clean again: it remembers losses for a while, since they come in spells.", p.title(), before, back-to))
		}
	}
	return notes
}
