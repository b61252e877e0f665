package main

import (
	"time"

	"github.com/ackbits/ackbits"
)

// times: heartbeats and the timeout.
func times(w *world) {
	p := w.enter("heartbeats at each deadline, and the timeout", config(ackbits.Config{Timeout: 300 * ms}))
	p.sleep()
	w.wait(20 * ms)
	p.append(input) // puts the next one off
	p.sleep()
	p.hear(input, none, 0)
	p.hear(input, 0, 0)
	w.wait(200 * ms)
	p.flush()
	p.receive(p.by(input, 0, none, 0))     // a duplicate does not renew it
	p.receive(p.by(input, 40000, none, 0)) // nor does a stale one
	p.receive(p.by(input, 2, none, 0)[:17])
	p.flush()
	w.wait(99 * ms)
	p.flush()
	p.sleep()
	p.flush()
	p.outcomes()

	r := w.enter("what arrived late revives, if it is handed in first", config(ackbits.Config{}))
	w.wait(6000 * ms)
	r.hear(beat, none, 0)
	r.flush()

	for _, poll := range []time.Duration{16666667, 40 * ms, 49 * ms, 200 * ms} {
		q := w.enter("on a tick, heartbeats go early", config(ackbits.Config{PollInterval: poll}))
		for range 8 {
			w.wait(poll)
			q.flush()
		}
	}
}

// clocks: readings that go back, and ticks.
func clocks(w *world) {
	set := w.enter("a clock that is set back counts as no time", config(ackbits.Config{}))
	w.wait(2000 * ms)
	set.append(input)
	w.wait(30 * ms)
	set.send([]byte("a"))
	set.flush() // the next heartbeat is due in 50 ms
	w.wait(-20 * ms)
	set.flush()
	set.sleep()
	w.wait(-1000 * ms)
	set.flush()
	set.sleep()
	w.wait(1000 * ms)

	odd := w.enter("half of an odd tick is rounded up", config(ackbits.Config{PollInterval: 49*ms + 1}))
	odd.sleep()
	odd.sleep()
}

// stalls: an event that makes no progress, while datagrams arrive.
func stalls(w *world) {
	s := w.enter("the oldest event stalls, though datagrams arrive", config(ackbits.Config{StallTimeout: 250 * ms, ResendDelay: 120 * ms}))
	s.send([]byte("a"))
	w.wait(5 * ms)
	s.flush()
	w.wait(5 * ms)
	s.send([]byte("b"))
	s.flush() // sequence 1
	for range 4 {
		w.wait(50 * ms)
		s.hear(beat, 1, 0) // acknowledges b alone
		s.flush()
	}
	s.hear(beat, 0, 0) // a at last
	s.send([]byte("c"))
	s.flush()
	for range 6 {
		w.wait(40 * ms)
		s.hear(beat, none, 0)
		s.flush()
	}
	s.sleep()
	s.flush()

	moved := w.enter("an event stalls from when it became the oldest on", config(ackbits.Config{StallTimeout: 300 * ms, ResendDelay: time.Second}))
	moved.send([]byte("a"))
	moved.flush()
	moved.send([]byte("b"))
	moved.flush()
	w.wait(200 * ms)
	moved.hear(beat, 0, 0)
	w.wait(299 * ms)
	moved.flush()
	w.wait(ms - 1)
	moved.flush()
	w.wait(1)
	moved.flush()

	never := w.enter("no stall", config(ackbits.Config{StallTimeout: -1}))
	never.send([]byte("a"))
	never.flush()
	for range 5 {
		w.wait(4000 * ms)
		never.hear(beat, none, 0)
	}
	never.flush()
}

// leaving is Close, Shutdown and the peer's.
func leaving(w *world) {
	p := w.enter("first copies go, retransmissions do not", config(ackbits.Config{}))
	p.send([]byte("old"))
	p.flush()
	w.wait(150 * ms)
	p.send([]byte("new"))
	p.close()
	p.close()
	p.shutdown(time.Second)
	p.due()
	p.due()
	p.hear(input, 1, 0, 5) // still accepted
	p.flush()
	p.hear(input, 1, 0, 6)
	p.outcomes()

	q := w.enter("the peer leaves", config(ackbits.Config{Outcomes: true}))
	q.append(input)
	q.hear(beat, none, 0)
	q.receive(q.by(bye, 3, 0, 0))
	q.receive(q.by(bye, 4, 0, 0))
	q.append(input)
	q.flush()
	q.outcomes()

	l := w.enter("a late disconnect is nothing special", config(ackbits.Config{}))
	l.receive(l.by(input, 3, none, 0))
	l.receive(l.by(bye, 2, none, 0))
	l.receive(l.by(bye, 2, none, 0))
	l.receive(l.by(bye, 40000, none, 0))
	l.flush()

	both := w.enter("the peer leaves while this one does", config(ackbits.Config{}))
	both.close()
	both.due()
	both.hear(bye, none, 0)
	both.due()
}

// shutdown: leaving with patience.
func shutdown(w *world) {
	s := w.enter("shutdown waits for what is in flight", config(ackbits.Config{}))
	s.send([]byte("a"))
	s.shutdown(time.Second)
	s.send([]byte("b"))
	s.append(input)
	s.flush()
	s.sleep() // a heartbeat
	s.sleep() // the event again
	s.hear(beat, 2, 0)
	s.flush()

	idle := w.enter("shutdown with nothing in flight", config(ackbits.Config{}))
	idle.shutdown(time.Second)
	idle.flush()

	patience := w.enter("patience passes, and a second call shortens it", config(ackbits.Config{}))
	patience.send([]byte("a"))
	patience.flush()
	patience.shutdown(400 * ms)
	patience.shutdown(time.Second)
	patience.sleep()
	patience.shutdown(30 * ms)
	patience.sleep()
	patience.flush()

	longer := w.enter("a second call does not lengthen it", config(ackbits.Config{}))
	longer.send([]byte("a"))
	longer.flush()
	longer.shutdown(40 * ms)
	longer.shutdown(time.Second)
	longer.sleep()

	tie := w.enter("where patience and timeout meet, patience wins", config(ackbits.Config{Timeout: 200 * ms}))
	tie.send([]byte("a"))
	tie.flush()
	tie.shutdown(200 * ms)
	w.wait(200 * ms)
	tie.flush()

	now := w.enter("shutdown without patience is close", config(ackbits.Config{}))
	now.send([]byte("a"))
	now.shutdown(0)
	now.flush()

	gone := w.enter("a timeout while closing", config(ackbits.Config{Timeout: 200 * ms}))
	gone.send([]byte("a"))
	gone.flush()
	gone.shutdown(time.Second)
	w.wait(200 * ms)
	gone.flush()
}

// outcomes: what becomes of each datagram.
func outcomes(w *world) {
	p := w.enter("delivered, lost, acknowledged late", config(ackbits.Config{Outcomes: true, LossDelay: 200 * ms}))
	for range 6 {
		p.append(input)
		w.wait(10 * ms)
	}
	p.hear(beat, 1, 0) // srtt 50 ms
	p.outcomes()
	w.wait(189 * ms) // 249 ms after 0
	p.outcomes()
	w.wait(ms)
	p.outcomes() // 0 is lost
	p.hear(beat, 4, 0b1)
	p.outcomes() // 3 and 4 by one receive, the older first
	p.hear(beat, 4, 0b1001)
	p.outcomes() // 0 came late
	w.wait(300 * ms)
	p.hear(beat, 5, 0) // an acknowledgement that waited is no loss
	p.outcomes()       // but 2 is one
	p.send([]byte("carried"))
	p.flush()
	w.wait(90 * ms)
	p.flush() // a heartbeat
	w.wait(1000 * ms)
	p.flush()
	p.hear(beat, 6, 0) // late, and still delivers the event
	p.outcomes()

	kept := w.enter("lost with an event: remembered for 6 s, however much is sent", config(ackbits.Config{ResendDelay: time.Hour, StallTimeout: -1}))
	kept.send([]byte("late"))
	kept.flush()
	kept.burst(400, input)
	w.wait(3000 * ms)
	kept.burst(400, input)
	kept.hear(beat, none, 0)
	w.wait(3000*ms - 1)
	kept.append(input)
	kept.hear(beat, 0, 0)

	many := w.enter("the queue holds 1024", config(ackbits.Config{Outcomes: true, LossDelay: 100 * ms}))
	many.burst(1030, input)
	w.wait(100 * ms)
	many.outcomes()

	ended := w.enter("after the end, too", config(ackbits.Config{Outcomes: true}))
	ended.append(input)
	ended.hear(bye, none, 0)
	ended.outcomes()
	w.wait(1000 * ms)
	ended.outcomes()
}

// half is the end of what acknowledgements can tell apart.
func half(w *world) {
	p := w.enter("no acknowledgement at all", config(ackbits.Config{Outcomes: true, StallTimeout: -1}))
	p.burst(32766, input)
	p.append(input) // number 32766 is the last
	p.append(input)
	p.append(input)

	q := w.enter("none any more", config(ackbits.Config{StallTimeout: -1, Timeout: time.Hour}))
	q.burst(1000, input)
	q.hear(beat, 999, 0)
	q.burst(32766, input)
	q.append(input) // number 33766, 32767 after 999
	w.wait(50 * ms)
	q.due()

	r := w.enter("none while leaving", config(ackbits.Config{}))
	r.burst(32766, input)
	r.close()
	r.due()
	r.due()
	r.due()
}

// wrapSequences is a sender whose sequences wrap.
func wrapSequences(w *world) {
	for _, wide := range []bool{false, true} {
		p := w.enter("sequences wrap at the sender", config(ackbits.Config{Wide: wide, Outcomes: false}))
		for _, n := range []int{30000, 30000, 5535} {
			p.burst(n-1, input)
			datagram := p.append(input)
			w.wait(20 * ms)
			h, _, _ := ackbits.ParseHeader(datagram)
			p.hear(beat, h.Sequence, 0)
		}
		p.send([]byte("carried by 65535"))
		p.flush()
		p.append(input) // 0 again
		p.append(input)
		w.wait(20 * ms)
		p.hear(beat, 1, 0b1)   // 1 and 0
		p.hear(beat, 1, 0b111) // 65535, and 65534 again
		p.hear(beat, 65535, 0) // old
		p.hear(beat, 2, 0b11)  // never sent
		p.hear(beat, 32769, 0) // 32768 away
		p.hear(beat, 32770, 0) // a turn ago
		p.append(input)
		p.flush()
	}
}

// wrapIDs is a stream of events whose ids wrap, at both ends.
func wrapIDs(w *world) {
	p := w.enter("ids wrap at the sender", config(ackbits.Config{}))
	q := w.enter("ids wrap at the receiver", config(ackbits.Config{}))
	for range 257 { // 255 each: up to 65534
		p.sends(255, nil)
		datagram := p.due()
		w.wait(ms)
		q.receive(datagram)
		p.receive(q.append(input))
	}
	p.send([]byte("65535"))
	p.send([]byte("0"))
	lost := p.due()
	p.send([]byte("1"))
	second := p.due()
	q.receive(second)
	p.receive(q.append(input))
	p.flush()
	w.wait(100 * ms)
	again := p.due()
	q.receive(again)
	q.receive(lost) // a ghost
	q.receive(second)
	p.receive(q.append(input))
	p.flush()
}
