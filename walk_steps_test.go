package ackbits

import (
	"bytes"
	"slices"
	"time"
)

// The steps that a walk (walk_test.go) chooses from, drawn or read from bytes.

// A walkOp is one kind of step. a and b mean what the step makes of them.
type walkOp struct {
	name string
	run  func(w *walk, i, a, b int)
}

var walkTypes = []Type{
	TypeSnapshot, TypeInput, TypeConnect, TypeAccept, 16, 255, TypeSnapshot, TypeSnapshot,
	0, TypeEvent, TypeHeartbeat, TypeDisconnect, TypeBundle, 15,
}

var walkOps = []walkOp{
	{"send", func(w *walk, i, a, b int) {
		size := a % 64
		if b >= 224 {
			size = a * 1180 / 255 // up to more than fits
		}
		w.log("%d sends an event of %d bytes", i, size)
		if w.ends[i].s.Room() > 0 || w.ends[i].m.ended() != nil {
			w.send(i, size)
		}
	}},
	{"send many", func(w *walk, i, a, b int) {
		n := min(a, max(0, w.ends[i].s.Room()-1))
		w.log("%d sends %d events of %d bytes", i, n, b%32)
		for range n {
			w.send(i, b%32)
		}
	}},
	{"overflow", func(w *walk, i, a, b int) {
		if a < 250 {
			return // rarely: it ends the session
		}
		w.log("%d sends until it has no room, and once more", i)
		for n := w.ends[i].s.Room(); n >= 0; n-- {
			w.send(i, 2)
		}
	}},
	{"datagram", func(w *walk, i, a, b int) {
		t := walkTypes[a%len(walkTypes)]
		payload := bytes.Repeat([]byte{byte(a), byte(b)}, b*2/2)
		if b >= 240 {
			payload = make([]byte, w.ends[i].s.MaxPayload()-b%8+1)
		}
		if len(payload) > 0 && a >= 0xE0 && a <= 0xE2 {
			payload[0] = byte(a) // to be refused or withheld
		}
		w.log("%d sends a datagram of type %v, %d bytes", i, t, len(payload))
		w.app(i, t, payload)
	}},
	{"due", func(w *walk, i, a, b int) {
		w.log("AppendDue of %d", i)
		w.due(i)
	}},
	{"flush", func(w *walk, i, a, b int) {
		w.log("Due of %d", i)
		for w.due(i) {
		}
	}},
	{"flush slowly", func(w *walk, i, a, b int) {
		w.log("Due of %d, each datagram takes %v to write", i, time.Duration(a)*100*time.Microsecond)
		w.slowly(i, time.Duration(a)*100*time.Microsecond)
	}},
	{"arrive", func(w *walk, i, a, b int) {
		w.log("the first flight arrives at %d", i)
		w.arrive(i, 0, false)
	}},
	{"overtake", func(w *walk, i, a, b int) {
		w.log("flight %d arrives at %d", a, i)
		w.arrive(i, a, false)
	}},
	{"duplicate", func(w *walk, i, a, b int) {
		w.log("flight %d arrives at %d, and will again", a, i)
		w.arrive(i, a, true)
	}},
	{"exchange", func(w *walk, i, a, b int) {
		w.log("all flights arrive, with Due after each")
		for _, i := range []int{i, 1 - i} {
			for n := len(w.ends[i].flights); n > 0; n-- {
				w.arrive(i, 0, false)
				for w.due(i) {
				}
			}
		}
	}},
	{"pile", func(w *walk, i, a, b int) {
		w.log("all flights arrive at %d without Due", i)
		for n := len(w.ends[i].flights); n > 0; n-- {
			w.arrive(i, a%n, false)
		}
	}},
	{"lose", func(w *walk, i, a, b int) {
		if e := w.ends[i]; len(e.flights) > 0 {
			k := a % len(e.flights)
			w.log("flight %d to %d is lost", k, i)
			e.flights = slices.Delete(e.flights, k, k+1)
		}
	}},
	{"blackout", func(w *walk, i, a, b int) {
		w.log("all flights to %d are lost", i)
		w.ends[i].flights = nil
	}},
	{"ghost", func(w *walk, i, a, b int) {
		if e := w.ends[i]; len(e.past) > 0 {
			k := (a + b*3) % len(e.past)
			w.log("the %d-th last datagram to %d arrives, now or again", k, i)
			f := e.past[len(e.past)-1-k]
			w.receive(i, f.datagram, &f)
		}
	}},
	{"damage", func(w *walk, i, a, b int) {
		if e := w.ends[i]; len(e.flights) > 0 {
			d := slices.Clone(e.flights[a%len(e.flights)].datagram)
			d[b%len(d)] ^= 1 << (a % 8)
			w.log("a flight to %d is damaged in byte %d", i, b%len(d))
			w.hostile(i, d)
		}
	}},
	{"cut", func(w *walk, i, a, b int) {
		if e := w.ends[i]; len(e.flights) > 0 {
			d := e.flights[a%len(e.flights)].datagram
			w.log("a flight to %d is cut", i)
			w.hostile(i, d[:b%len(d)])
		}
	}},
	{"forge", func(w *walk, i, a, b int) {
		// An event far outside the window; garbage; another session's.
		h := Header{Wide: w.ends[i].m.cfg.Wide, Sealed: w.ends[i].m.cfg.Open != nil, Type: TypeEvent, Token: walkToken, Sequence: uint16(b * 257), Ack: uint16(a * 257)}
		out := binaryEvent(h.AppendTo(nil), uint16(a*256))
		if b%3 == 0 {
			out = binaryEvent(out, uint16(b*256))
			out[len(out)-9-listOverhead+1]++
		}
		switch a % 5 {
		case 0:
			out[2]++
		case 1:
			out[0] ^= 1
		case 2:
			out = bytes.Repeat(out, 1+b/2)
		}
		w.log("bytes that nobody sent arrive at %d", i)
		w.hostile(i, out)
	}},
	{"wait", func(w *walk, i, a, b int) {
		d := time.Duration(a)*time.Millisecond + time.Duration(b*b)
		w.log("%v pass", d)
		w.wait(d)
	}},
	{"wait long", func(w *walk, i, a, b int) {
		d := time.Duration(a*a) * time.Millisecond / 50
		if b >= 248 {
			d *= 5 // more than the timeout
		}
		w.log("%v pass", d)
		w.wait(d)
	}},
	{"deadline", func(w *walk, i, a, b int) {
		w.log("the deadline of %d comes", i)
		w.deadline(i)
	}},
	{"step back", func(w *walk, i, a, b int) {
		d := time.Duration(a*b*b) * time.Millisecond
		w.log("the clock of %d is set back by %v", i, d)
		w.advance(i, -d)
	}},
	{"set forward", func(w *walk, i, a, b int) {
		w.log("the clock of %d is set forward", i)
		w.outcome(i) // lest a step back before it makes it count as a pause
		w.advance(i, 24*time.Hour+time.Duration(1+a*b))
	}},
	{"outcomes", func(w *walk, i, a, b int) {
		w.log("%d asks for %d outcomes", i, a%40)
		for range a % 40 {
			w.outcome(i)
		}
	}},
	{"close", func(w *walk, i, a, b int) {
		if a >= 250 { // rarely
			w.log("%d closes", i)
			w.close(i)
		}
	}},
	{"shutdown", func(w *walk, i, a, b int) {
		if a >= 246 { // rarely
			w.log("%d shuts down within %v", i, time.Duration(b)*ms)
			w.shutdown(i, time.Duration(b)*ms)
		}
	}},
	{"half the numbers", func(w *walk, i, a, b int) {
		if a >= 252 { // rarely: it ends a session, or nearly
			w.log("%d sends half of all sequences, less %d", i, b%4)
			for n := w.ends[i].m.left() - b%4; n > 0; n-- {
				w.app(i, TypeInput, nil)
				w.ends[1-i].flights = nil
			}
		}
	}},
	{"play", func(w *walk, i, a, b int) {
		w.log("%d ticks of play, what arrives is the pattern %08b", a%48, b)
		for tick := range a % 48 {
			w.wait(16 * time.Millisecond)
			for i, e := range w.ends {
				w.app(i, TypeInput, []byte{byte(tick)})
				if tick%4 == 0 && e.s.Room() > 0 {
					w.send(i, tick)
				}
				for w.due(i) {
				}
				if b>>((tick+4*i)%8)&1 == 0 {
					e.flights = nil
				}
				for n := len(e.flights); n > 0; n-- {
					w.arrive(i, 0, false)
					for w.due(i) {
					}
				}
			}
		}
	}},
	{"flood", func(w *walk, i, a, b int) {
		w.log("%d sends %d datagrams of which few arrive", i, a)
		for n := range a {
			w.app(i, Type(16+n%3), nil)
			if n%(1+b%64) != 0 {
				f := &w.ends[1-i].flights
				*f = (*f)[:len(*f)-min(1, len(*f))]
			}
		}
	}},
}

// walkPlay is the step that makes progress.
var walkPlay = walkOps[slices.IndexFunc(walkOps, func(op walkOp) bool { return op.name == "play" })]

// ailing reports whether a session is about to end for want of what arrives.
func (w *walk) ailing() bool {
	for _, e := range w.ends {
		m := e.m
		now := m.now + max(0, int64(e.clock.ManualClock.Now().Sub(m.reading)))
		if m.err == nil && (m.room() < 60 || now-m.heardAt > int64(time.Second) ||
			m.base < len(m.events) && m.events[m.base].sent && now-m.events[m.base].first > int64(2*time.Second)) {
			return true
		}
	}
	return false
}

// binaryEvent appends a list of one event.
func binaryEvent(b []byte, id uint16) []byte {
	return append(b, 1, byte(id), byte(id>>8), 3, 0, 'b', 'a', 'd')
}

// do takes one step.
func (w *walk) do(op walkOp, i, a, b int) {
	w.steps++
	op.run(w, i, a, b)
	w.check()
}
