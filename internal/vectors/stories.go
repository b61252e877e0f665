package main

import (
	"bytes"
	"time"

	"github.com/ackbits/ackbits"
)

const (
	ms = time.Millisecond

	connect  = ackbits.TypeConnect
	input    = ackbits.TypeInput
	snapshot = ackbits.TypeSnapshot
	event    = ackbits.TypeEvent
	beat     = ackbits.TypeHeartbeat
	bye      = ackbits.TypeDisconnect
	wrapped  = ackbits.TypeBundle

	none = 65535 // the ack of a peer that has received nothing
)

func config(c ackbits.Config) options { return options{Config: c} }

// narrow is the examples of chapter 18, seen from both ends.
func narrow(w *world) { conversation(w, ackbits.Config{}, ackbits.Config{Bundle: true}) }

func wide(w *world) {
	conversation(w, ackbits.Config{Wide: true}, ackbits.Config{Wide: true, Bundle: true})
}

func conversation(w *world, ca, cb ackbits.Config) {
	a, b := w.enter("events, an answer, a heartbeat, a bundle, leaving", config(ca)), w.enter("the other end", config(cb))
	a.send([]byte{0xAA, 0xBB})
	a.send(nil)
	first := a.due()
	a.due()
	w.wait(20 * ms)
	b.receive(first)
	state := b.append(snapshot, 0xC0, 0xFF, 0xEE)
	b.due()
	w.wait(20 * ms)
	a.receive(state)
	a.due()
	heartbeat := a.sleep()
	w.wait(20 * ms)
	b.receive(heartbeat)
	b.send([]byte{0x01})
	both := b.append(snapshot, 0xC0, 0xFF, 0xEE)
	w.wait(20 * ms)
	a.receive(both)
	a.send([]byte("lost"))
	a.due() // lost
	a.append(input, 1)
	w.wait(20 * ms)
	b.flush()
	for range 2 { // a heartbeat on the way to the retransmission
		if again := a.sleep(); again != nil {
			w.wait(10 * ms)
			b.receive(again)
			b.receive(again) // a duplicate
			for _, answer := range b.flush() {
				a.receive(answer)
			}
		}
	}
	a.send([]byte("last words"))
	a.close()
	a.send([]byte("too late"))
	a.append(input)
	for _, datagram := range a.flush() {
		b.receive(datagram)
	}
	a.receive(state)
	b.send(nil)
	b.append(snapshot)
	b.flush()
}

// malformed is what must be dropped, and its error; after each the session is as
// it was.
func malformed(w *world) {
	for _, wide := range []bool{false, true} {
		p := w.enter("dropped, and what for", config(ackbits.Config{Wide: wide}))
		p.hear(input, none, 0, 7)
		for _, datagram := range badDatagrams(p, wide) {
			p.receive(datagram)
		}
		p.hear(input, none, 0, 8)
		p.due()
	}
}

func badDatagrams(p *peer, wide bool) (bad [][]byte) {
	good := p.by(beat, 1, none, 0)
	for n := range len(good) {
		bad = append(bad, good[:n])
	}
	large := p.by(input, 1, none, 0, filled(1200, 0)...)[:1201]
	other := bytes.Clone(large) // oversize comes before format
	other[0] = 0xFF
	bad = append(bad, large, other)
	for _, format := range []byte{0x00, 0x04, 0x09, 0x0A, 0x0B, 0x0C, 0x0D, 0x0E, 0x0F, 0x10, 0x80, 0xFF} {
		if format == good[0] {
			continue
		}
		other := bytes.Clone(good)
		other[0] = format
		bad = append(bad, other, other[:18])
	}
	for t := range 17 {
		if t := ackbits.Type(t); !application(t) && t != beat && t != bye || t == 0 {
			bad = append(bad, p.by(t, 1, none, 0))
		}
	}
	for i := 2; i < 10; i++ { // the token
		other := bytes.Clone(good)
		other[i] ^= 0x80
		bad = append(bad, other)
	}
	foreign := p.by(0, 1, none, 0)
	foreign[2]++
	bad = append(bad, foreign) // type 0 is judged first
	foreign = p.by(9, 1, none, 0)
	foreign[2]++
	bad = append(bad, foreign) // and type 9 last
	bad = append(bad, p.by(beat, 1, none, 0, 0), p.by(bye, 1, none, 0, 0))
	lists := [][]byte{
		{}, {0}, {0, 0}, {0, 0, 0, 0, 0}, {1}, {1, 0}, {1, 0, 0}, {1, 0, 0, 0}, {1, 0, 0, 1, 0}, {1, 0, 0, 2, 0, 9},
		{1, 0, 0, 0, 0, 0}, {1, 0, 0, 0xFF, 0xFF}, {2, 0, 0, 0, 0}, {2, 0, 0, 0, 0, 1, 0, 1, 0}, {255, 0, 0, 0, 0},
		append(row(0, 255), 0), row(0, 255)[:1020],
	}
	for _, payload := range lists {
		bad = append(bad, p.by(event, 1, none, 0, payload...))
		if len(payload) == 0 || payload[0] != 1 || len(payload) != 6 && payload[0] != 255 { // more after a list is the payload
			bad = append(bad, p.by(wrapped, 1, none, 0, append([]byte{byte(input)}, payload...)...))
		}
	}
	bad = append(bad, p.by(wrapped, 1, none, 0))
	for _, inner := range []byte{0, 5, 6, 7, 8, 9, 15} {
		bad = append(bad, p.by(wrapped, 1, none, 0, append([]byte{inner}, row(0, 1)...)...))
	}
	// Also of one that would be Duplicate or Stale the payload is judged.
	bad = append(bad, p.by(beat, 0, none, 0, 0), p.by(event, 40000, none, 0, 0), p.by(15, 40000, none, 0))
	// Ids out of the window, alone and behind a good one.
	return append(bad, p.by(event, 1, none, 0, ids(4096)...), p.by(event, 1, none, 0, ids(32768)...), p.by(event, 1, none, 0, ids(0, 4097)...))
}

// accepting is an application that refuses and withholds.
func accepting(w *world) {
	p := w.enter("EE is refused, DD withheld", options{Config: ackbits.Config{Outcomes: true}, accept: true})
	p.append(input, 1)
	w.wait(10 * ms)
	p.hear(snapshot, none, 0, 1)
	p.receive(p.by(snapshot, 1, 0, 0, refuse, 1)) // its acknowledgement is not read
	p.outcomes()
	p.receive(p.by(snapshot, 1, 0, 0, withhold, 1)) // but this one's is
	p.outcomes()
	p.receive(p.by(snapshot, 1, 0, 0, withhold, 1)) // and asked about again
	p.receive(p.by(snapshot, 1, 0, 0, 2))
	p.receive(p.by(snapshot, 1, 0, 0, refuse)) // a duplicate is not asked about
	p.receive(p.by(snapshot, 40000, 0, 0, withhold))
	p.receive(p.by(wrapped, 2, 0, 0, append(append([]byte{byte(snapshot)}, ids(0)...), withhold)...))
	p.receive(p.by(wrapped, 2, 0, 0, append(append([]byte{byte(snapshot)}, ids(0)...), refuse)...))
	p.receive(p.by(wrapped, 2, 0, 0, append(append([]byte{byte(snapshot)}, ids(9999)...), withhold)...)) // the window comes first
	p.receive(p.by(wrapped, 2, 0, 0, append(append([]byte{200}, ids(0)...), 3)...))
	p.receive(p.by(event, 3, 0, 0, ids(refuse)...)) // events are not asked about
	w.wait(4990 * ms)
	p.receive(p.by(snapshot, 4, 0, 0, withhold)) // renews the timeout, and is not counted
	p.due()
	w.wait(5000*ms - 1)
	p.flush()
	w.wait(1)
	p.due()
}

// latest is what state must go by of which only the newest counts.
func latest(w *world) {
	p := w.enter("latest of its type, not newest of all", config(ackbits.Config{}))
	for _, d := range []struct {
		t   ackbits.Type
		seq uint16
	}{
		{snapshot, 0}, {beat, 2}, {snapshot, 1}, {input, 5}, {snapshot, 4}, {snapshot, 3}, {input, 6}, {snapshot, 6},
		{200, 70}, {200, 69}, {snapshot, 8}, {snapshot, 7}, {input, 9}, {beat, 10}, {201, 11}, {snapshot, 5},
	} {
		p.receive(p.by(d.t, d.seq, none, 0))
	}
	p.receive(p.by(wrapped, 71, none, 0, append([]byte{200}, ids(0)...)...)) // counts as its inner type
	p.receive(p.by(200, 68, none, 0))
	p.receive(p.by(200, 72, none, 0))
}

// tracker is every kind of arrival, at the start, around the wrap and at each edge.
func tracker(w *world) {
	for _, wide := range []bool{false, true} {
		c := config(ackbits.Config{Wide: wide})
		p := w.enter("loss, reordering, duplicates, wraps", c)
		for _, seq := range []uint16{
			65534, 32768, 32767, 65535, // stale: nothing was received
			0, 1, 4, 3, 3, 4, 2, 32772, 32771 /* newest by 32767 */, 4, 32770, 32707, 32706, 32771, 3,
			60000, 65535, 65535, 0 /* the wrap */, 65534, 65470, 65471, 2, 1, 34, 66, 130, 195, 131, 132,
		} {
			p.receive(p.by(input, seq, none, 0, byte(seq)))
			if seq%3 == 0 {
				p.append(snapshot)
			}
		}
		last := w.enter("the first is the last that is newest at the start", c)
		last.receive(last.by(beat, 32766, none, 0))
		last.receive(last.by(beat, 65535, none, 0))
		last.receive(last.by(beat, 65534, none, 0)) // 32768 away
		last.append(input)
		burst := w.enter("a burst is acknowledged before it outruns the header", c)
		n := uint16(33)
		if wide {
			n = 65
		}
		for seq := range n {
			t := input
			if seq%2 == 0 {
				t = beat
			}
			burst.receive(burst.by(t, seq^1, none, 0)) // in pairs, the later one first
			burst.receive(burst.by(t, seq^1, none, 0)) // a duplicate does not count
			burst.due()
		}
	}
}

// acks is how the peer's acknowledgements are read.
func acks(w *world) {
	for _, wide := range []bool{false, true} {
		p := w.enter("acknowledgements, read", config(ackbits.Config{Wide: wide, Outcomes: true}))
		p.hear(beat, none, 0)
		p.hear(beat, 0, 0)    // of what was never sent
		p.hear(beat, none, 1) // likewise
		p.hear(beat, 40000, ^uint64(0))
		for range 5 {
			p.append(input)
			w.wait(7 * ms)
		}
		p.hear(beat, none, 0)       // 4 is the last that was sent: this names −1
		p.hear(beat, 5, ^uint64(0)) // never sent: the bits are void, too
		p.hear(beat, 1, 0)          // a sample
		p.hear(beat, 1, 0)          // none
		p.hear(beat, 3, 0b10)       // 3 and again 1
		p.hear(beat, 2, ^uint64(0)) // older, with news: 2 and 0; a sample
		p.outcomes()
		p.receive(p.by(beat, 3, 4, 0)) // a duplicate's count as well
		p.outcomes()
		for range 80 {
			p.append(input)
			w.wait(3 * ms)
		}
		p.receive(p.by(beat, 40000, 84, 1<<31|1<<32|1<<63|1)) // a stale one's, too; the narrow form has 32 bits
		p.outcomes()
		p.hear(beat, 40, 0xF0F0F0F0F0F0F0F0)
		p.outcomes()
		w.wait(2000 * ms)
		p.flush()
		p.outcomes()                 // lost by now
		p.hear(beat, 84, ^uint64(0)) // late: no outcome
		p.hear(beat, 50, 0)          // late, and by ack: a sample of 2 s
		p.outcomes()
		smooth := w.enter("the round trip, smoothed", config(ackbits.Config{Wide: wide}))
		for i, rtt := range []time.Duration{100 * ms, 120 * ms, 80 * ms, 300 * ms, 0, 1, 17*ms + 3, 43 * ms} {
			smooth.append(input)
			w.wait(rtt)
			smooth.hear(beat, uint16(i), 0)
		}
	}
}

// eventsOut is the sender of events.
func eventsOut(w *world) {
	p := w.enter("ids, retransmission, what goes together", config(ackbits.Config{}))
	p.send([]byte("zero"))
	p.flush()
	w.wait(30 * ms)
	p.send([]byte("one"))
	p.send([]byte("two"))
	p.flush()
	p.sleep() // a heartbeat at 80 ms, then event 0 at 100
	p.sleep()
	p.send([]byte("three"))
	p.sleep() // with 1 and 2 due, and 3 new
	w.wait(10 * ms)
	p.hear(beat, 1, 0) // delivers 1 and 2
	w.wait(200 * ms)
	p.flush() // 0 and 3, by one datagram
	p.hear(beat, 3, 0)
	p.flush()
}

// eventSizes: what is too large, and what goes into one datagram.
func eventSizes(w *world) {
	size := w.enter("sizes: the largest event, one too large, an empty one, a full list, a full datagram", config(ackbits.Config{Backlog: 100}))
	size.send(filled(1177, 1))
	size.send(filled(1178, 1))
	size.send(nil)
	size.flush()
	size.hear(beat, 1, 1)
	size.sends(300, nil)
	size.flush() // 255, and the one more that the send window allows
	size.hear(beat, 2, 0)
	size.flush()
	size.hear(beat, 4, ^uint64(0))
	size.send(filled(600, 2))
	size.send(filled(600, 3)) // does not fit, and holds up the next
	size.send(filled(5, 4))
	size.flush()
}

// sendWindow: how far an event may be from the oldest, and the limits of other forms.
func sendWindow(w *world) {
	window := w.enter("the send window: a straggler holds up 256", config(ackbits.Config{Backlog: 2}))
	window.sends(1, []byte{0})
	window.flush()
	window.sends(257, nil)
	window.flush() // ids 1 to 255, in one datagram
	window.hear(beat, 1, 0)
	window.flush()
	window.hear(beat, 0, 0)
	window.flush() // 256 and 257 now
	window.sends(255, nil)
	window.sends(1, []byte{3})
	window.flush()
	window.send([]byte{4}) // more than 258 undelivered: the end
	window.send([]byte{5})
	window.flush()
	window.receive(window.by(beat, 9, none, 0))

	big := w.enter("the wide form's largest event", config(ackbits.Config{Wide: true}))
	big.send(filled(1174, 1))
	big.send(filled(1173, 1))
	big.flush()

	small := w.enter("datagrams of 128 bytes at most", config(ackbits.Config{MaxDatagram: 128}))
	small.send(filled(106, 1))
	small.send(filled(105, 1))
	small.send(filled(60, 2))
	small.send(filled(41, 3))
	small.send(filled(1, 4))
	small.flush()
	small.append(input, filled(111, 5)...)
	small.append(input, filled(110, 5)...)
	small.receive(small.by(input, 0, none, 0, filled(1182, 6)...))
}

// window is the receiver of events.
func window(w *world) {
	p := w.enter("each event once, whatever the order", config(ackbits.Config{}))
	p.hear(event, none, 0, ids(0, 1)...)
	p.hear(event, none, 0, ids(1, 2)...)
	p.hear(event, none, 0, ids(5, 3, 5, 4)...)
	p.hear(event, none, 0, ids(6+4095)...)             // the last in the window
	p.receive(p.by(event, 5, none, 0, ids(6+4096)...)) // the first out of it
	p.hear(event, none, 0, ids(6, 6+4096)...)          // in, once 6 is
	p.hear(event, none, 0, ids(0, 5, 65535, 40000)...) // old
	p.receive(p.by(event, 7, none, 0, ids(7+32768)...))
	p.hear(event, none, 0, ids(7+32769)...)       // old by 32767
	p.receive(p.by(event, 0, none, 0, ids(8)...)) // a duplicate: nothing
	p.receive(p.by(event, 30000, none, 0, ids(8)...))
	p.receive(p.by(event, 29999, none, 0, ids(8, 9)...))   // late: delivered
	p.receive(p.by(event, 29000, none, 0, ids(10, 11)...)) // stale: not
	p.receive(p.by(event, 30001, none, 0, row(7, 255)...)) // the gap closes

	lists := w.enter("a list moves the window for what follows in it", config(ackbits.Config{Ordered: true}))
	lists.receive(lists.by(event, 0, none, 0, ids(0, 256)...))
	lists.receive(lists.by(event, 1, none, 0, ids(2, 258)...)) // 1 is missing
	lists.receive(lists.by(event, 1, none, 0, ids(258, 1)...))
	lists.receive(lists.by(event, 1, none, 0, ids(1, 258)...))

	far := w.enter("and past what was received before", config(ackbits.Config{}))
	far.hear(event, none, 0, ids(1, 300)...)
	far.receive(far.by(event, 1, none, 0, ids(0, 4098)...))
	far.receive(far.by(event, 1, none, 0, ids(0, 4097)...))
}

// ordered delivers events by id.
func ordered(w *world) {
	p := w.enter("in the order of ids", config(ackbits.Config{Ordered: true}))
	p.hear(event, none, 0, ids(1)...)
	p.hear(event, none, 0, ids(3, 2)...)
	p.hear(event, none, 0, ids(1, 3)...)
	p.hear(event, none, 0, ids(0, 5)...)
	p.hear(event, none, 0, ids(4)...)
	p.hear(event, none, 0, row(7, 255)...)
	p.receive(p.by(event, 6, none, 0, row(6+256, 1)...))
	p.receive(p.by(event, 6, none, 0, row(6, 1)...))
	p.receive(p.by(wrapped, 7, none, 0, append(append([]byte{byte(input)}, ids(263, 262)...), 1)...))
}

// bundle is application datagrams that carry events.
func bundle(w *world) {
	p := w.enter("events that ride along", config(ackbits.Config{Bundle: true, Outcomes: true}))
	p.append(input, 1) // nothing to carry
	p.send([]byte("a"))
	p.append(connect, 2)            // never a bundle
	p.append(ackbits.TypeAccept, 2) // likewise
	p.append(input, 3)              // carries it
	p.append(input, 4)              // not due again
	p.send([]byte("b"))
	p.send(filled(1000, 7))
	p.send([]byte("c"))
	p.append(200, filled(1000, 8)...) // b fits, the next does not
	p.append(200, filled(1175, 8)...) // not even an empty one would
	p.append(200)                     // the rest
	p.send(nil)
	p.append(200, filled(1177, 8)...) // no room: 1 + 1 + 4 + 0 bytes are needed
	p.append(200, filled(1176, 8)...)
	w.wait(100 * ms)
	p.append(input, 5) // second copies
	w.wait(100 * ms)
	p.append(input, 6) // third copies go in datagrams of their own
	p.send([]byte("new"))
	p.append(input, 7) // and hold up what follows them
	p.flush()
	p.hear(beat, 3, 0)
	p.hear(beat, 13, ^uint64(0))
	p.outcomes()
	p.send([]byte("over"))
	p.close()
	p.flush()

	q := w.enter("bundles are understood without being sent", config(ackbits.Config{}))
	q.receive(q.by(wrapped, 0, none, 0, append(append([]byte{byte(input)}, ids(0)...), 0xAB, 0xCD)...))
	q.receive(q.by(wrapped, 2, none, 0, append([]byte{255}, ids(0, 1)...)...))
	q.receive(q.by(wrapped, 1, none, 0, append([]byte{byte(connect)}, ids(2)...)...))
	q.receive(q.by(wrapped, 1, none, 0, append([]byte{byte(connect)}, ids(3)...)...)) // a duplicate: nothing
	q.receive(q.by(wrapped, 3, none, 0, append([]byte{16}, ids(9999)...)...))
	q.receive(q.by(wrapped, 4, none, 0, append(append([]byte{byte(input)}, ids(3)...), filled(1175, 9)...)...)) // 1200 bytes
	q.send([]byte("own datagram"))
	q.append(input)
	q.flush()
}
