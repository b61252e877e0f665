package ackbits

import (
	"encoding/binary"
	"math"
	"time"
)

// The dumb model (model_test.go): what is due when, what a datagram carries, and leaving.

// solo reports whether an event goes in no bundle any more: it was resent, and is
// to be again. With Adaptive the model is told what goes in which datagram.
func (m *model) solo(i int) bool { return !m.cfg.Adaptive && m.events[i].copies >= 2 }

// modelPath is all round trips, with the times at which they were learned.
type modelPath []struct{ at, roundTrip int64 }

// stands reports whether a queue stood at the last of them: the least of the newest
// eight is that far above the least of this interval of ten seconds and the one before,
// or was lately. It must be more than a heartbeat, for which the peer may wait.
func (p modelPath) stands(heartbeat time.Duration) bool {
	return p.look(max(35*ms, min(heartbeat.Truncate(ms), math.MaxUint16*ms))).stands
}

// pathSeen is what the round trips show.
type pathSeen struct {
	floor, queue int64
	jitter       int64 // in 1,024 ns
	deep, stands bool
}

// look works out what they show, all anew; above is from what delay on a queue stands.
func (p modelPath) look(above time.Duration) (seen pathSeen) {
	var this, before, turnsAt, stoodAt int64
	for n, s := range p {
		micros := min(s.roundTrip/1000, math.MaxUint32)
		if n > 0 {
			differs := max(s.roundTrip-p[n-1].roundTrip, p[n-1].roundTrip-s.roundTrip) / 1024
			seen.jitter += int64(math.Floor(float64(min(differs, math.MaxUint32)-seen.jitter) / 32))
		}
		switch {
		case n == 0:
			this, before, turnsAt = micros, micros, s.at+int64(10*time.Second)
		case s.at >= turnsAt:
			this, before, turnsAt = micros, this, s.at+int64(10*time.Second)
		default:
			this = min(this, micros)
		}
		seen.floor = min(this, before) * 1000
		seen.queue = p[:n+1].queue(8, seen.floor)
		if seen.queue > int64(35*ms)/4 {
			stoodAt = s.at
		}
		seen.deep = seen.queue > max(int64(above), 3*seen.jitter*1024)
		seen.stands = seen.deep || seen.stands && s.at-stoodAt <= int64(2*time.Second)
	}
	return seen
}

// queue returns by how much the least of the newest n round trips is above the floor.
func (p modelPath) queue(n int, floor int64) int64 {
	if len(p) < n {
		return 0
	}
	least := int64(math.MaxInt64)
	for _, s := range p[len(p)-n:] {
		least = min(least, s.roundTrip/100_000, math.MaxUint16)
	}
	return max(0, least*100_000-floor)
}

// patience is how long an acknowledgement may take.
func (m *model) patience() int64 {
	return max(m.srtt+max(4*m.rtvar, int64(m.cfg.Heartbeat)), int64(20*ms))
}

// delay is how long an event waits for the next copy.
func (m *model) delay() int64 {
	if !m.path.stands(m.cfg.Heartbeat) {
		return int64(m.cfg.ResendDelay)
	}
	return max(int64(m.cfg.ResendDelay), m.patience())
}

// againAt is when an event has backed off.
func (m *model) againAt(e *modelEvent) int64 {
	if e.tries <= 4 || !m.path.stands(m.cfg.Heartbeat) || m.oldestAt >= e.last {
		return e.last
	}
	wait := m.patience()
	for range e.tries - 4 {
		wait = min(2*wait, int64(time.Second))
	}
	return e.last + wait
}

// collect takes the copies for lost whose time has come.
func (m *model) collect() {
	delay := m.delay()
	for i := m.base; i < len(m.events); i++ {
		e := &m.events[i]
		if e.backsOff && m.asOf >= m.againAt(e) {
			e.due, e.backsOff = true, false
		}
		if !e.sent || e.delivered || e.due || e.backsOff || m.asOf-e.last < delay {
			continue
		}
		if m.passedAt > e.first {
			e.overtaken++
		}
		if m.oldestAt >= e.last {
			e.tries = 0
		}
		e.tries++
		e.backsOff = m.asOf < m.againAt(e)
		e.due = !e.backsOff
	}
}

// resend returns the oldest event of which a copy is due.
func (m *model) resend() (i int, ok bool) {
	for i = m.base; i < len(m.events); i++ {
		if e := &m.events[i]; e.due && !e.delivered {
			return i, true
		}
	}
	return 0, false
}

func (m *model) cost(size int) int64 {
	rate := int64(m.cfg.EventRate)
	return (int64(4+size)*int64(time.Second) + rate - 1) / rate
}

// affordable is when a copy may be sent: when one of the largest event so far
// could be, a second's worth of debt being allowed.
func (m *model) affordable() int64 {
	if m.cfg.EventRate == 0 {
		return math.MinInt64
	}
	largest := int64(0)
	for _, e := range m.events {
		largest = max(largest, m.cost(len(e.data)))
	}
	return m.budget + min(0, largest-int64(time.Second))
}

// next is the event that goes next.
func (m *model) next() (i int, ok bool) {
	if m.cfg.Adaptive {
		if len(m.follow) > 0 {
			return m.follow[0], true
		}
		return 0, false
	}
	if !m.closing {
		m.collect()
	}
	if i, ok := m.resend(); ok && !m.closing &&
		(m.asOf >= m.affordable() || i == m.base && m.asOf-max(m.events[i].last, m.owed) >= int64(time.Second)) {
		return i, true
	}
	return m.fresh()
}

// carry notes that the datagram sent last carries an event.
func (m *model) carry(i int) {
	e := &m.events[i]
	m.follow = m.follow[min(1, len(m.follow)):]
	if e.sent {
		m.stats.EventsResent++
		m.copies += int64(4 + len(e.data))
		if m.cfg.EventRate != 0 {
			if m.asOf < m.affordable() {
				m.owed = m.now
			}
			m.budget = max(m.budget, m.now) + m.cost(len(e.data))
		}
	} else {
		m.stats.EventsSent++
		e.sent, e.first = true, m.now
	}
	e.last, e.due = m.now, false
	e.copies++
	d := &m.sent[len(m.sent)-1]
	d.events = append(d.events, m.firstEvent+int64(i))
}

// list writes the events that are due, as many as fit into limit bytes.
func (m *model) list(limit int, bundled bool) []byte {
	payload := []byte{0}
	for payload[0] < 255 {
		i, ok := m.next()
		if ok && !m.cfg.Adaptive {
			limit = m.narrowed(limit, len(payload), &m.events[i])
		}
		if !ok || len(payload)+4+len(m.events[i].data) > min(limit, 1182) || bundled && m.solo(i) {
			break
		}
		m.carry(i)
		payload = appendModelEvent(payload, m.firstEvent+int64(i), m.events[i].data)
		payload[0]++
	}
	return payload
}

// narrowed is the limit of a list with so many bytes in it once an event is added: of
// one that others overtook three times, 576 bytes for the datagram, unless it is
// larger by itself; of one that they overtook six times, nothing else is in it.
func (m *model) narrowed(limit, used int, e *modelEvent) int {
	if e.overtaken < 3 {
		return limit
	}
	alone := 1 + 4 + len(e.data)
	if e.overtaken >= 6 {
		return min(limit, alone)
	}
	small := 576 - (m.cfg.MaxDatagram - m.maxPayload())
	if used == 1 {
		small = max(small, alone)
	}
	return min(limit, small)
}

func appendModelEvent(b []byte, number int64, data []byte) []byte {
	b = append(b, byte(number), byte(number>>8), byte(len(data)), byte(len(data)>>8))
	return append(b, data...)
}

// number numbers a datagram and returns its header.
func (m *model) number(wire, inner Type) []byte {
	m.judge()
	if m.judged < len(m.sent) && len(m.sent)-m.judged == int(m.sizes.seqs/2) { // no acknowledgement can name it any more
		m.lose(m.judged)
		m.judged++
	}
	ack, bits := m.tracker.header(m.sizes)
	seq := m.firstSent + int64(len(m.sent))
	h := []byte{m.format(), byte(wire)}
	h = binary.LittleEndian.AppendUint64(h, m.cfg.Token)
	h = binary.LittleEndian.AppendUint16(h, uint16(seq))
	h = binary.LittleEndian.AppendUint16(h, uint16(ack))
	h = binary.LittleEndian.AppendUint64(h, bits)[:m.headerSize()]
	m.sent = append(m.sent, modelDatagram{t: inner, at: m.now})
	m.unacked, m.inSince = nil, 0
	m.sentAt = m.now
	m.stats.DatagramsSent++
	return h
}

func (m *model) format() byte {
	format := byte(0x0A)
	if m.cfg.Wide {
		format++
	}
	if m.cfg.Seal != nil {
		format += 2
	}
	return format
}

// left returns how many datagrams may be numbered if none is acknowledged.
func (m *model) left() int {
	if m.ended() != nil {
		return 0
	}
	return int(m.sizes.seqs/2 - 1 - (m.firstSent + int64(len(m.sent)) - 1 - m.top))
}

// halfway ends a session that may number no further datagram.
func (m *model) halfway() bool {
	if m.firstSent+int64(len(m.sent))-m.top < m.sizes.seqs/2 {
		return false
	}
	m.err = ErrStalled
	if m.closing {
		m.err = ErrClosed
	}
	return true
}

// finish seals the datagram that was numbered last.
func (m *model) finish(out []byte) []byte {
	if m.cfg.Seal != nil {
		n := m.headerSize()
		number := m.firstSent + int64(len(m.sent)) - 1
		out = append(out[:n:n], m.cfg.Seal.Seal(nil, modelNonce(m.cfg.Seal, number), out[n:], out[:n])...)
	}
	m.stats.BytesSent += uint64(len(out))
	return out
}

func modelNonce(a AEAD, number int64) []byte {
	return binary.BigEndian.AppendUint64(make([]byte, a.NonceSize()-8), uint64(number))
}

func (m *model) datagram(t Type, payload []byte) (out []byte, err error) {
	switch {
	case m.ended() != nil:
		return nil, m.ended()
	case !(t >= 1 && t <= 4 || t >= 16):
		return nil, ErrReservedType
	case len(payload) > m.maxPayload():
		return nil, ErrDatagramTooLarge
	case m.halfway():
		return nil, m.err
	}
	m.asOf = m.now
	limit := min(m.maxPayload()-len(payload)-1, 1182)
	carries := m.cfg.Bundle && t > 2 // else nobody looks which events are due
	if carries {
		i, ok := m.next()
		carries = ok && 1+4+len(m.events[i].data) <= limit && !m.solo(i)
	}
	if carries {
		out = append(m.number(8, t), byte(t))
		out = append(out, m.list(limit, true)...)
	} else {
		out = m.number(t, t)
	}
	return m.finish(append(out, payload...)), nil
}

func (m *model) heartbeatDue() bool {
	silence, poll := m.asOf-m.sentAt, int64(m.cfg.PollInterval)
	return silence >= int64(m.cfg.Heartbeat) ||
		poll > 0 && silence+poll > int64(m.cfg.Heartbeat) && 2*silence >= poll ||
		m.inSince >= int(m.sizes.acks)
}

// expire ends a session whose time has come.
func (m *model) expire() {
	switch {
	case m.asOf >= m.heardAt+int64(m.cfg.Timeout):
		m.err = ErrTimeout
	case m.cfg.StallTimeout > 0 && m.base < len(m.events) && m.events[m.base].sent &&
		m.asOf >= m.waitsSince()+int64(m.cfg.StallTimeout):
		m.err = ErrStalled
	}
}

// waitsSince is since when the oldest undelivered event has been that, and sent.
func (m *model) waitsSince() int64 { return max(m.events[m.base].first, m.oldestAt) }

// due is AppendDue, of what was due at asOf.
func (m *model) due(asOf int64) (out []byte, ok bool) {
	if m.err != nil {
		return nil, false
	}
	m.asOf = asOf
	m.judge()
	if m.draining && asOf >= m.leaveBy {
		m.closing = true
	}
	if !m.closing {
		if m.expire(); m.err != nil {
			return nil, false
		}
	}
	if _, ok := m.next(); ok && (!m.closing || m.disconnects == 3) {
		if m.halfway() {
			return nil, false
		}
		out = m.number(TypeEvent, TypeEvent)
		return m.finish(append(out, m.list(m.maxPayload(), false)...)), true
	}
	if m.closing {
		if m.disconnects == 0 {
			m.err = ErrClosed
			return nil, false
		}
		if m.halfway() {
			return nil, false
		}
		m.disconnects--
		return m.finish(m.number(TypeDisconnect, TypeDisconnect)), true
	}
	if m.heartbeatDue() && !m.halfway() {
		return m.finish(m.number(TypeHeartbeat, TypeHeartbeat)), true
	}
	return nil, false
}

// deadline is when due will have something to do, at the earliest now.
func (m *model) deadline() (at int64, ok bool) {
	if m.err != nil {
		return 0, false
	}
	if m.closing {
		return m.now, true
	}
	heartbeat, poll := int64(m.cfg.Heartbeat), int64(m.cfg.PollInterval)
	at = min(m.heardAt+int64(m.cfg.Timeout), m.sentAt+heartbeat, m.sentAt+max(heartbeat-poll+1, (poll+1)/2))
	if m.draining {
		at = min(at, m.leaveBy)
	}
	for i := m.base; i < len(m.events); i++ {
		if e := &m.events[i]; e.sent && !e.delivered {
			held := m.affordable()
			if i == m.base {
				if m.cfg.StallTimeout > 0 {
					at = min(at, m.waitsSince()+int64(m.cfg.StallTimeout))
				}
				held = min(held, max(e.last, m.owed)+int64(time.Second))
			}
			then := *e // when its last copy is presumed lost
			if m.oldestAt >= e.last {
				then.tries = 0
			}
			then.tries++
			again := max(e.last+m.delay(), m.againAt(&then))
			if e.due {
				again = m.now
			} else if e.backsOff {
				again = m.againAt(e)
			}
			at = min(at, max(again, held))
		}
	}
	if _, ok := m.fresh(); ok || m.inSince >= int(m.sizes.acks) {
		at = m.now
	}
	return max(at, m.now), true
}

func (m *model) close() {
	if m.err == nil && !m.closing {
		m.closing = true
	}
}

func (m *model) shutdown(patience time.Duration) {
	if m.err != nil || m.closing {
		return
	}
	by := m.now + int64(patience)
	if m.draining {
		by = min(by, m.leaveBy)
	}
	m.draining, m.leaveBy = true, by
	m.closing = patience <= 0 || m.undelivered() == 0
}
