package main

import (
	"bytes"
	"fmt"
	"time"

	"github.com/ackbits/ackbits"
	"github.com/ackbits/ackbits/simnet"
)

// badLink is a link that loses, reorders and duplicates.
var badLink = simnet.Config{Delay: 25 * ms, Jitter: 15 * ms, Loss: 0.12, Duplicate: 0.05}

func loss(w *world) { storm(w, 1, config(ackbits.Config{Outcomes: true}), config(ackbits.Config{})) }

func lossWideOrdered(w *world) {
	c := ackbits.Config{Wide: true, Ordered: true, PollInterval: 16666667}
	storm(w, 2, config(c), config(c))
}

func lossBundle(w *world) {
	storm(w, 3, config(ackbits.Config{Bundle: true}), config(ackbits.Config{Bundle: true, Ordered: true, Outcomes: true}))
}

func lossSealed(w *world) {
	storm(w, 4, sealedBy(ackbits.Config{Outcomes: true}, keyA, keyB), sealedBy(ackbits.Config{}, keyB, keyA))
}

// storm lets two ends play for two seconds over a bad link, state at 60 and 20 Hz
// and some events both ways, and then come to rest and leave.
func storm(w *world, seed uint64, oa, ob options) {
	const tick = 16666667
	a, b := w.enter("a storm", oa), w.enter("the other end of it", ob)
	out, back := simnet.NewLink(seed, badLink), simnet.NewLink(seed+100, badLink)
	send := func(link *simnet.Link, datagrams ...[]byte) {
		for _, d := range datagrams {
			if d != nil {
				link.Send(w.now, d)
			}
		}
	}
	for n := range 120 {
		w.now = time.Duration(n) * tick
		arrive(a, back, func(d [][]byte) { send(out, d...) })
		arrive(b, out, func(d [][]byte) { send(back, d...) })
		if n%4 == 0 {
			a.send(fmt.Appendf(nil, "a%d", n))
		}
		if n%7 == 0 {
			b.send(bytes.Repeat([]byte{byte(n)}, n/4))
		}
		send(out, a.append(input, byte(n)))
		send(out, a.flush()...)
		if n%3 == 0 {
			send(back, b.append(snapshot, byte(n), byte(n)))
		}
		send(back, b.flush()...)
	}
	for n := 120; a.s.InFlight() > 0 || b.s.InFlight() > 0 || out.InFlight() > 0 || back.InFlight() > 0; n++ {
		w.now = time.Duration(n) * tick
		if n == 400 {
			panic("the storm does not come to rest")
		}
		arrive(a, back, func(d [][]byte) { send(out, d...) })
		arrive(b, out, func(d [][]byte) { send(back, d...) })
		if a.s.InFlight() > 0 || b.s.InFlight() > 0 {
			send(out, a.flush()...)
			send(back, b.flush()...)
		}
	}
	w.wait(1200 * ms)
	for _, p := range []*peer{a, b} {
		for id, n := range p.copies {
			if n > mostCopies {
				panic(fmt.Sprintf("event %d went %d times: another seed", id, n))
			}
		}
	}
	if oa.Outcomes {
		a.outcomes()
	}
	if ob.Outcomes {
		b.outcomes()
	}
	a.close()
	for _, d := range a.flush() {
		b.receive(d)
	}
}

// arrive receives what has reached an end.
func arrive(p *peer, link *simnet.Link, send func([][]byte)) {
	for {
		datagram, ok := link.Receive(p.w.now)
		if !ok {
			return
		}
		p.receive(datagram)
		send(p.flush())
	}
}
