package main

import (
	"time"

	"github.com/ackbits/ackbits"
)

// ordering is one end of a lane, whose calls are written down.
type ordering struct {
	*transcript
	l     *ackbits.OrderedLane
	clock *ackbits.ManualClock
	began time.Duration
}

func (w *world) lane(about string, cfg ackbits.LaneConfig) *ordering {
	for _, d := range []struct {
		value *time.Duration
		zero  time.Duration
	}{{&cfg.ResendDelay, 250 * ms}, {&cfg.WakeInterval, 100 * ms}, {&cfg.StallTimeout, 15 * time.Second}} {
		if *d.value == 0 {
			*d.value = d.zero
		}
	}
	for _, n := range []struct {
		value *int
		zero  int
	}{{&cfg.ResendBudget, 32}, {&cfg.HardLimit, 512}, {&cfg.SoftLimit, 256}} {
		if *n.value == 0 {
			*n.value = n.zero
		}
	}
	o := &ordering{transcript: w.transcript(), clock: new(ackbits.ManualClock), began: w.now}
	cfg.Clock = o.clock
	l, err := ackbits.NewOrderedLane(cfg)
	if err != nil {
		panic(err)
	}
	o.l = l
	o.end(begin("lane").text("about", about).num("resend", int64(cfg.ResendDelay)).num("wake", int64(cfg.WakeInterval)).
		num("budget", int64(cfg.ResendBudget)).num("soft", int64(cfg.SoftLimit)).num("hard", int64(cfg.HardLimit)).num("stall", int64(cfg.StallTimeout)))
	return o
}

func (o *ordering) step(do string) *line {
	o.clock.Set(time.Time{}.Add(o.w.now - o.began))
	return begin(do).num("at", int64(o.w.now-o.began))
}

func (o *ordering) state(l *line) {
	deadline := int64(-1)
	if at, ok := o.l.Deadline(); ok {
		deadline = max(int64(at.Sub(time.Time{})), int64(o.w.now-o.began))
	}
	o.end(l.num("in_flight", int64(o.l.InFlight())).num("ack", int64(o.l.Ack())).num("deadline", deadline).text("ended", name(o.l.Err())))
}

func (o *ordering) send(event []byte, p ackbits.Priority) {
	l := o.step("lane_send").bytes("event", event).flag("droppable", p == ackbits.Droppable)
	id, err := o.l.Send(event, p)
	o.state(l.text("error", name(err)).num("id", int64(id)))
}

func (o *ordering) next(most int) (ackbits.LaneEvent, bool) {
	l := o.step("lane_next").num("max", int64(most))
	e, ok := o.l.NextDue(most)
	o.state(l.flag("found", ok).num("id", int64(e.ID)).bytes("event", e.Data))
	return e, ok
}

func (o *ordering) flush() (events []ackbits.LaneEvent) {
	for {
		e, ok := o.next(1000)
		if !ok {
			return events
		}
		events = append(events, e)
	}
}

func (o *ordering) receive(id uint32) (deliver bool, ack uint32) {
	l := o.step("lane_receive").num("id", int64(id))
	deliver, ack = o.l.Receive(id)
	o.state(l.flag("deliver", deliver).num("answer", int64(ack)))
	return deliver, ack
}

func (o *ordering) ack(ack uint32) {
	l := o.step("lane_ack").num("ack_in", int64(ack))
	o.state(l.text("error", name(o.l.ReceiveAck(ack))))
}

// lane is the rules of chapter 12; those of its limits are laneLimits.
func lane(w *world) {
	a, b := w.lane("one loss: what follows is due with it", ackbits.LaneConfig{}), w.lane("the receiver", ackbits.LaneConfig{})
	b.receive(0)
	for i := range byte(4) {
		a.send([]byte{i}, ackbits.Critical)
		for _, e := range a.flush() {
			if e.ID != 2 {
				b.receive(e.ID)
			}
		}
		w.wait(20 * ms)
	}
	a.ack(5) // never sent
	a.ack(1)
	a.ack(1)
	a.ack(0)
	w.wait(190 * ms) // event 2 is 250 ms old
	for _, e := range a.flush() {
		b.receive(e.ID)
	}
	b.receive(2)
	a.ack(4)
	a.flush()

	size := w.lane("one that is too large holds up the rest", ackbits.LaneConfig{})
	size.send(filled(10, 1), ackbits.Critical)
	size.send(nil, ackbits.Droppable)
	size.next(9)
	size.next(10)
	size.next(0)
	size.next(0)

	acked := w.lane("the pass goes on when its first was acknowledged", ackbits.LaneConfig{ResendBudget: 2})
	for range 6 {
		acked.send(nil, ackbits.Critical)
	}
	acked.flush()
	w.wait(250 * ms)
	acked.flush() // 1 and 2, by the budget
	acked.ack(2)
	acked.send(nil, ackbits.Critical)
	acked.flush() // a first copy needs none
	w.wait(49 * ms)
	acked.flush()
	w.wait(ms)
	acked.flush() // a new slot
	w.wait(100 * ms)
	acked.flush()
	w.wait(300 * ms)
	acked.flush()
}

// laneLimits: how many events a lane holds, and for how long.
func laneLimits(w *world) {
	limits := w.lane("soft and hard limit", ackbits.LaneConfig{SoftLimit: 2, HardLimit: 4})
	for _, p := range []ackbits.Priority{ackbits.Droppable, ackbits.Critical, ackbits.Droppable, ackbits.Critical, ackbits.Droppable, ackbits.Critical, ackbits.Critical} {
		limits.send([]byte{1}, p)
	}
	limits.next(9)
	limits.receive(1)
	limits.ack(1)

	stall := w.lane("the stall", ackbits.LaneConfig{StallTimeout: 400 * ms})
	w.wait(500 * ms)
	stall.send(nil, ackbits.Critical)
	stall.send(nil, ackbits.Critical)
	stall.flush()
	w.wait(300 * ms)
	stall.flush()
	stall.ack(1)
	w.wait(399 * ms)
	stall.flush()
	w.wait(ms)
	stall.flush()
	stall.receive(1)
	stall.ack(2)
	stall.send(nil, ackbits.Critical)
}

// laneLoss is a stream over a link that loses a fifth, by a fixed pattern.
func laneLoss(w *world) {
	a, b := w.lane("a fifth is lost", ackbits.LaneConfig{ResendBudget: 12}), w.lane("its receiver", ackbits.LaneConfig{})
	draws := uint32(7)
	lost := func() bool {
		draws = draws*1664525 + 1013904223
		return draws>>24 < 51
	}
	for n := range 400 {
		if n < 80 && n%2 == 0 {
			a.send([]byte{byte(n)}, ackbits.Droppable)
		}
		for {
			e, ok := a.next(1000)
			if !ok {
				break
			}
			if lost() {
				continue
			}
			if _, ack := b.receive(e.ID); !lost() {
				a.ack(ack)
			}
		}
		if n > 80 && a.l.InFlight() == 0 {
			return
		}
		w.wait(16666667)
	}
	panic("the lane does not come to rest")
}
