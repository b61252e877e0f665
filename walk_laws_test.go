package ackbits

import (
	"bytes"
	"time"
)

// What must hold after every step of a walk (walk_test.go): the counters, I1 to I3, and that
// nothing grows without bound.

// check compares everything that can be asked with the model.
func (w *walk) check() {
	for i, e := range w.ends {
		m := e.m
		if m.cfg.Adaptive { // not the model's to say
			m.stats.EventsAhead = min(e.s.Stats().EventsAhead, m.stats.EventsResent)
		}
		if got, want := e.s.Stats(), m.snapshot(); got != want {
			w.fatalf("Stats of %d =\n%+v, want\n%+v", i, got, want)
		}
		if s := e.s.Stats(); s.DatagramsSent != s.Delivered+s.Lost+uint64(s.Undecided) {
			w.fatalf("I2: %+v", s)
		}
		if e.s.InFlight() != m.undelivered() || e.s.Room() != m.room() {
			w.fatalf("InFlight, Room of %d = %d, %d, want %d, %d", i, e.s.InFlight(), e.s.Room(), m.undelivered(), m.room())
		}
		if !sameError(e.s.Err(), m.err) {
			w.fatalf("Err of %d = %v, want %v", i, e.s.Err(), m.err)
		}
		w.undelivered(i)
		if z := e.s.sealing; z != nil && (z.newest != m.window.newest || !m.window.is(&z.opened)) {
			w.fatalf("the replay window of %d is %d, %+v, want %+v", i, z.newest, z.opened, m.window)
		}
		if e.s.RTT() != time.Duration(m.srtt) {
			w.fatalf("RTT of %d = %v, want %v", i, e.s.RTT(), time.Duration(m.srtt))
		}
		if e.asked != m.asked {
			w.fatalf("Accept of %d was asked %d times, want %d", i, e.asked, m.asked)
		}
		if rate := int64(m.cfg.EventRate); rate > 0 {
			most := rate + rate*(m.now/1000)/1_000_000 + 1 + int64(4+m.cfg.MaxEvent)*(2+m.now/int64(time.Second))
			if m.copies > most {
				w.fatalf("%d bytes of copies of %d in %v", m.copies, i, time.Duration(m.now))
			}
		}
		got, ok := e.s.Deadline()
		want, wantOK := m.deadline()
		if ok != wantOK {
			w.fatalf("Deadline of %d = %v, %t", i, got, ok)
		}
		if ok && !m.cfg.Adaptive {
			if at := max(m.now, m.now+int64(got.Sub(m.reading))); at != want {
				w.fatalf("Deadline of %d = %v, want %v", i, time.Duration(at), time.Duration(want))
			}
		}
		w.bounded(i, e.s)
		if e.s.Err() == nil {
			w.counted(i, &e.s.channel.sender)
		}
		w.reads(e, "a getter", 0)
	}
}

// undelivered compares what is still to be delivered.
func (w *walk) undelivered(i int) {
	m := w.ends[i].m
	k := m.base
	for event := range w.ends[i].s.Undelivered() {
		for k < len(m.events) && m.events[k].delivered && !m.cfg.Ordered {
			k++
		}
		if k == len(m.events) || event.ID != uint16(m.firstEvent+int64(k)) || !bytes.Equal(event.Data, m.events[k].data) {
			w.fatalf("Undelivered of %d yields event %d, %x, %+v", i, event.ID, event.Data, m.events[k])
		}
		k++
	}
	for ; k < len(m.events); k++ {
		if !m.events[k].delivered {
			w.fatalf("Undelivered of %d leaves out event %d", i, k)
		}
	}
}

// bounded checks that memory is bounded by the limits, whatever came (I5).
func (w *walk) bounded(i int, s *Session) {
	c := &s.channel
	if len(c.sender.log.stamps) > maxRememberedSent || len(c.sender.outcomes.ring) > maxOutcomes ||
		len(c.sender.outbox.events) > 2*(c.sender.maxUndelivered+eventWindow) || waitingIn(&c.receiver.inbox) > eventWindow-1 || c.receiver.inbox.reorder != nil && len(c.receiver.inbox.reorder.order) > 2*eventWindow {
		w.fatalf("I5: memory of %d is not bounded", i)
	}
}

// counted checks what the sending half counts of its events by looking at each.
func (w *walk) counted(i int, s *sender) {
	o := &s.outbox
	held := 0
	var load, inFlight int64
	for number := o.base; number < o.end; number++ {
		e := o.get(number)
		if e.delivered() {
			continue
		}
		load += int64(e.cost())
		if e.inFlight() {
			inFlight += int64(e.cost())
		}
		if e.state&isHeld != 0 {
			held++
		}
	}
	if o.held != held || s.window != nil && (s.window.load != load || s.window.inFlight != inFlight) {
		w.fatalf("%d counts %d events held, %+v; want %d, %d bytes of events, %d in flight", i, o.held, s.window, held, load, inFlight)
	}
}
