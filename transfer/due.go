package transfer

import (
	"iter"
	"math"
	"slices"
	"time"
)

// What is sent: Due, which chunk or message is next, and Deadline. How fast chunks are
// sent is in rate.go; which of them were lost is in flight.go.

// Due yields every datagram that may be sent now: answers, offers and other messages, and
// chunks. Each is built in buf, from its start, and valid until the next;
// ackbits.MaxDatagramSize bytes suffice for all. Call it after every Receive of the
// session and at Deadline, or on a tick. If the loop breaks, the rest stays due.
func (t *Transfers) Due(buf []byte) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		until := t.time.Read()
		if t.ended() != nil {
			return
		}
		if t.answers >= deafAnswers && (!t.outcomes || until-t.deafAt >= deafTime) {
			for _, o := range t.outgoing {
				o.fail(ErrOutcomes, ErrOutcomes.Error())
			}
		}
		t.hash(until)
		f := &t.flight
		f.detect(until)
		t.rate.count(f.got, f.gone, f.count, until)
		t.rate.judge(f, until, t.patience())
		t.tidy()
		for {
			datagram, ok := t.appendDue(buf[:0], until)
			if !ok || !yield(datagram) {
				return
			}
		}
	}
}

// appendDue appends the next datagram that was due at until.
func (t *Transfers) appendDue(dst []byte, until int64) ([]byte, bool) {
	now := t.time.Read()
	p := t.payload[:0]
	if t.answer.due {
		t.answer.due = false
		out, _, ok := t.datagram(dst, appendAnswer(p, t.answer.serial, t.answer.arrived))
		return out, ok
	}
	for x := range t.words() {
		if x.word.kind != 0 && x.word.at <= until {
			out, number, ok := t.datagram(dst, x.appendWord(p))
			x.word.sent(number, now, t.patience())
			return out, ok
		}
	}
	if at, ok := t.chunkAt(); !ok || at > until {
		return dst, false
	}
	return t.appendChunk(dst, now)
}

// appendChunk appends the next chunk of the file whose turn it is (P-14.2.6).
func (t *Transfers) appendChunk(dst []byte, now int64) ([]byte, bool) {
	for range t.outgoing {
		t.turn = (t.turn + 1) % len(t.outgoing)
		o := t.outgoing[t.turn]
		if !o.ready() {
			continue
		}
		r, repeat := o.take(min(t.rate.units(), int64(t.session.MaxPayload()-chunkHeader)/unit))
		n := o.offer.bytes(r)
		size := chunkHeader + n + wireOverhead
		serial := t.flight.count
		ask := t.rate.leave(serial, size, now, t.patience()) || !t.more()
		p := appendChunk(t.payload[:0], ask, o.offer.ID, uint16(serial), r.from)
		p = p[:len(p)+int(n)]
		if err := readFull(o.source, p[chunkHeader:], r.from*unit); err != nil {
			o.fail(err, sourceFailed)
			return t.appendDue(dst, now)
		}
		out, number, ok := t.datagram(dst, p)
		if ok {
			if repeat {
				t.flight.repeats++
			}
			t.flight.add(chunk{file: o, number: number, sentAt: now, unit: r.from, units: uint8(r.to - r.from), ask: ask, size: uint16(size)})
		}
		return out, ok
	}
	return dst, false
}

// more reports whether a file has a chunk to send.
func (t *Transfers) more() bool {
	return slices.ContainsFunc(t.outgoing, (*Outgoing).ready)
}

// datagram appends a datagram with a payload and returns its number.
func (t *Transfers) datagram(dst, payload []byte) (out []byte, number int64, ok bool) {
	out, seq, err := t.session.AppendDatagram(dst, t.cfg.Type, payload)
	if err != nil {
		t.closed = err
		return dst, 0, false
	}
	t.number += int64(seq - uint16(t.number))
	return out, t.number, true
}

// ended returns the reason for which nothing can be sent any more.
func (t *Transfers) ended() error {
	if err := t.session.Err(); err != nil {
		return err
	}
	return t.closed
}

// chunkAt returns when the next chunk may go.
func (t *Transfers) chunkAt() (at int64, ok bool) {
	if t.rate.probe.state != probeSending && t.flight.flying >= t.rate.window(t.patience()) || t.flight.full() || !t.more() {
		return 0, false
	}
	return t.rate.allowedAt(), true
}

// patience is how long an acknowledgement or an answer may take. Until a chunk was
// answered it follows the session's own RTT.
func (t *Transfers) patience() int64 {
	if rtt := int64(t.session.RTT()); rtt > 0 && !t.flight.rtt.Sampled() {
		return rtt + minPatience
	}
	return t.flight.patience()
}

// words yields every transfer: each may have a message to send.
func (t *Transfers) words() iter.Seq[*transfer] {
	return func(yield func(*transfer) bool) {
		for _, in := range t.incoming {
			if !yield(&in.transfer) {
				return
			}
		}
		for _, o := range t.outgoing {
			if !yield(&o.transfer) {
				return
			}
		}
	}
}

// hash hashes some bytes of the files that have something to hash. Each call begins with
// another file, so that all make progress. Files whose digest is known are offered, in
// the order of the calls of Send.
func (t *Transfers) hash(now int64) {
	if now < t.hashAt {
		return
	}
	if t.buf == nil && len(t.outgoing)+len(t.incoming) > 0 {
		t.buf = make([]byte, hashBuffer)
	}
	more := false
	h := hashing{hashStep, t.buf}
	out := min(len(t.outgoing), maxActive)
	n := out + len(t.incoming)
	t.hashTurn = (t.hashTurn + 1) % max(n, 1)
	for i := range n {
		if i = (t.hashTurn + i) % n; i < out {
			more = t.outgoing[i].hash(&h) || more
		} else {
			more = t.incoming[i-out].hash(&h) || more
		}
	}
	for _, o := range t.outgoing[:out] {
		o.begin()
	}
	t.hashing, t.hashAt = more, now
	if more {
		t.hashAt += hashPause
	}
}

// tidy forgets the files that have ended and of which the peer knows all that it must,
// and frees their memory.
func (t *Transfers) tidy() {
	n := len(t.outgoing)
	t.outgoing = slices.DeleteFunc(t.outgoing, func(o *Outgoing) bool { return o.over() })
	t.incoming = slices.DeleteFunc(t.incoming, func(in *Incoming) bool { return in.over() && in.seen })
	t.hashing = t.hashing || len(t.outgoing) < n // another one's turn
	if len(t.outgoing) == 0 {
		t.flight.rest()
	}
	if len(t.outgoing) == 0 && len(t.incoming) == 0 {
		t.buf = nil
	}
}

// Deadline returns when Due next has something to do, as far as the last call knew; any
// call may change it. ok is false while there is nothing to do, and after the session's
// end.
func (t *Transfers) Deadline() (when time.Time, ok bool) {
	if t.ended() != nil {
		return time.Time{}, false
	}
	at := int64(math.MaxInt64)
	if t.answer.due {
		at = t.time.Now
	}
	for x := range t.words() {
		if x.word.kind != 0 {
			at = min(at, x.word.at)
		}
	}
	if chunk, ok := t.chunkAt(); ok {
		at = min(at, chunk, t.rate.soonerAt())
	}
	if lost, ok := t.flight.lostAt(); ok {
		at = min(at, lost)
	}
	if t.hashing {
		at = min(at, t.hashAt)
	}
	if at == math.MaxInt64 {
		return time.Time{}, false
	}
	return t.time.Time(at), true
}
