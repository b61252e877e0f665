package ackbits

import (
	"encoding/binary"
	"errors"
	"math"
	"slices"
	"time"
)

// The dumb model: what the library must do, said with sets, lists and scans, in
// the order of the rules and with no thought of speed. The walks compare a real
// session with it after every step. Its parts that deal with numbers that wrap
// take the sizes as a parameter, so that the small worlds can enumerate the very
// same rules with windows of a few numbers.

// modelSizes are the sizes of the protocol.
type modelSizes struct {
	seqs, ids     int64 // how many numbers there are before they wrap
	acks          int64 // bits in a header
	history       int64 // how many sequences before the newest a tracker remembers
	sendWindow    int64 // ids from the oldest undelivered one on that may be on the wire
	receiveWindow int64 // ids from the oldest missing one on that the receiver takes
}

func sizesOf(cfg Config) modelSizes {
	s := modelSizes{seqs: 1 << 16, ids: 1 << 16, acks: 32, history: 64, sendWindow: 256, receiveWindow: 4096}
	if cfg.Wide {
		s.acks = 64
	}
	if cfg.Ordered {
		s.receiveWindow = 256
	}
	return s
}

// wrapped is n modulo size, not negative.
func wrapped(n, size int64) int64 { return (n%size + size) % size }

// nums is a sorted set of numbers.
type nums []int64

func (s nums) has(n int64) bool {
	_, ok := slices.BinarySearch(s, n)
	return ok
}

func (s *nums) add(n int64) {
	if at, ok := slices.BinarySearch(*s, n); !ok {
		*s = slices.Insert(*s, at, n)
	}
}

// below removes the numbers before n and returns how many there were.
func (s *nums) below(n int64) int {
	at, _ := slices.BinarySearch(*s, n)
	*s = slices.Delete(*s, 0, at)
	return at
}

// modelTracker is the receiver's side of the acknowledgements. Numbers do not
// wrap in it; a sequence is read as the nearest number to the newest.
type modelTracker struct {
	newest   int64 // one before the first, if nothing was received
	received nums  // of the newest and those that are remembered before it
}

func (t *modelTracker) judge(z modelSizes, seq int64) (arrival Arrival, number int64) {
	ahead := wrapped(seq-t.newest, z.seqs)
	back := z.seqs - ahead
	switch {
	case ahead > 0 && ahead < z.seqs/2:
		return Newest, t.newest + ahead
	case len(t.received) == 0 || ahead == z.seqs/2:
		return Stale, 0
	case ahead == 0:
		return Duplicate, t.newest
	case back > z.history:
		return Stale, 0
	case t.received.has(t.newest - back):
		return Duplicate, t.newest - back
	}
	return Late, t.newest - back
}

func (t *modelTracker) take(z modelSizes, number int64) {
	t.received.add(number)
	t.newest = max(t.newest, number)
	t.received.below(t.newest - z.history)
}

// is reports whether a tracker of the library knows the same.
func (t *modelTracker) is(real *AckTracker) bool {
	if real.Ack() != uint16(t.newest) {
		return false
	}
	for back := range int64(historySize + 1) {
		if real.received(uint16(back)) != t.received.has(t.newest-back) {
			return false
		}
	}
	return true
}

// header returns what a header of ours says.
func (t *modelTracker) header(z modelSizes) (ack int64, bits uint64) {
	for n := range z.acks {
		if t.received.has(t.newest - 1 - n) {
			bits |= 1 << n
		}
	}
	return wrapped(t.newest, z.seqs), bits
}

// modelInbox is the receiver's window of ids.
type modelInbox struct {
	base int64 // the oldest missing
	have nums  // those received that are not before base
}

func (b *modelInbox) judge(z modelSizes, id int64) (v idState, number int64) {
	ahead := wrapped(id-b.base, z.ids)
	switch {
	case ahead < z.receiveWindow:
		if b.have.has(b.base + ahead) {
			return idKnown, b.base + ahead
		}
		return idNew, b.base + ahead
	case ahead > z.ids/2:
		return idKnown, b.base - (z.ids - ahead)
	}
	return idOutside, 0
}

func (b *modelInbox) take(number int64) {
	b.have.add(number)
	for b.have.has(b.base) {
		b.base++
		b.have.below(b.base)
	}
}

// named returns the number of the datagram that an acknowledgement means, where
// last is the newest sent; not ok for one that is newer, or too far back.
func named(z modelSizes, last, ack int64) (number int64, ok bool) {
	age := wrapped(last-ack, z.seqs)
	return last - age, age < z.seqs/2
}

// modelOutcome is what became of a datagram.
type modelOutcome uint8

const (
	isUndecided modelOutcome = iota
	isAcknowledged
	isLost
)

// modelDatagram is one that was sent.
type modelDatagram struct {
	t       Type // of a bundle: the inner one
	at      int64
	events  []int64
	outcome modelOutcome
}

// modelEvent is one that was handed to Send.
type modelEvent struct {
	data            []byte
	first, last     int64
	sent, delivered bool
	copies          int

	due, backsOff    bool // its last copy is presumed lost
	overtaken, tries int
}

// solo reports whether an event goes in no bundle any more: it was resent, and is
// to be again. With Adaptive the model is told what goes in which datagram.
func (m *model) solo(i int) bool { return !m.cfg.Adaptive && m.events[i].copies >= 2 }

// model is one side of a session.
type model struct {
	cfg   Config // complete
	sizes modelSizes

	reading time.Time
	now     int64
	asOf    int64 // what was due at this time goes

	window modelTracker // sealed: what was opened

	tracker modelTracker
	types   map[int64]Type // of the datagrams accepted
	unacked nums           // of these, the ones no header of ours has acknowledged
	inSince int            // datagrams accepted since we sent one
	inbox   modelInbox
	waiting map[int64][]byte // ordered: by number

	firstSent int64
	sent      []modelDatagram // from firstSent on
	judged    int             // of sent, all before have their outcome
	top       int64           // the newest acknowledged
	accepted  bool            // an acknowledgement of ours came in
	remembers func(number int64) bool

	firstEvent int64
	events     []modelEvent // from firstEvent on
	base       int          // of events, the oldest undelivered
	oldestAt   int64        // when it became that
	budget     int64        // when all copies will have been paid
	owed       int64        // when the oldest event last went though they were not
	copies     int64        // bytes of copies, ever

	path        modelPath
	passedAt    int64 // when the newest datagram acknowledged by ack itself was sent
	sampled     bool
	srtt, rtvar int64
	outcomes    []Outcome
	stats       Stats

	sentAt, heardAt int64
	draining        bool
	leaveBy         int64
	closing         bool
	disconnects     int
	err             error
	asked           int // calls of Accept expected

	// Adaptive: the events that the datagram at hand carries, by place. Which
	// copies go when is not the model's to say.
	follow []int
}

// newModel returns the model of a session whose counters begin at the numbers
// given.
func newModel(cfg Config, reading time.Time, seq, peerSeq, event, peerEvent int64) *model {
	if err := cfg.complete(); err != nil {
		panic(err)
	}
	return &model{
		cfg: cfg, sizes: sizesOf(cfg), reading: reading,
		tracker: modelTracker{newest: peerSeq - 1}, types: map[int64]Type{},
		inbox: modelInbox{base: peerEvent}, waiting: map[int64][]byte{},
		window:    modelTracker{newest: peerSeq - 1},
		firstSent: seq, top: seq - 1, firstEvent: event, disconnects: 3,
	}
}

// read is the timeline: a step back, or of more than a day, is no time.
func (m *model) read(t time.Time) {
	if d := t.Sub(m.reading); d > 0 && d <= 24*time.Hour {
		m.now += int64(d)
	}
	m.reading = t
}

func (m *model) headerSize() int {
	if m.cfg.Wide {
		return 22
	}
	return 18
}

func (m *model) maxPayload() int {
	n := m.cfg.MaxDatagram - m.headerSize()
	if m.cfg.Seal != nil {
		n -= m.cfg.Seal.Overhead()
	}
	return n
}

func (m *model) undelivered() (n int) {
	for i := m.base; i < len(m.events); i++ {
		if !m.events[i].delivered {
			n++
		}
	}
	return n
}

func (m *model) room() int {
	if m.err != nil || m.closing || m.draining {
		return 0
	}
	return 256 + m.cfg.Backlog - m.undelivered()
}

// ended returns why nothing can be sent.
func (m *model) ended() error {
	if m.err == nil && (m.closing || m.draining) {
		return ErrClosed
	}
	return m.err
}

func (m *model) send(data []byte) (id uint16, err error) {
	switch {
	case m.ended() != nil:
		return 0, m.ended()
	case len(data) > m.cfg.MaxEvent:
		return 0, ErrEventTooLarge
	case m.undelivered() == 256+m.cfg.Backlog:
		m.err = ErrUnacknowledged
		return 0, m.err
	}
	m.events = append(m.events, modelEvent{data: slices.Clone(data)})
	return uint16(m.firstEvent + int64(len(m.events)) - 1), nil
}

// fresh returns the next event to be sent for the first time, inside the send window.
func (m *model) fresh() (i int, ok bool) {
	for i = m.base; i < len(m.events) && i < m.base+int(m.sizes.sendWindow); i++ {
		if !m.events[i].sent {
			return i, true
		}
	}
	return 0, false
}

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

// judge takes for lost what is overdue.
func (m *model) judge() {
	for ; m.judged < len(m.sent); m.judged++ {
		d := &m.sent[m.judged]
		if d.outcome != isUndecided {
			continue
		}
		if m.now < d.at+m.srtt+int64(m.cfg.LossDelay) {
			return
		}
		m.lose(m.judged)
	}
}

func (m *model) lose(i int) {
	m.sent[i].outcome = isLost
	m.stats.Lost++
	m.report(i, Outcome{})
}

func (m *model) report(i int, o Outcome) {
	if !m.cfg.Outcomes {
		return
	}
	o.Sequence, o.Type = uint16(m.firstSent+int64(i)), m.sent[i].t
	m.outcomes = append(m.outcomes, o)
	if len(m.outcomes) > 1024 {
		m.outcomes = m.outcomes[1:]
		m.stats.OutcomesDropped++
	}
}

func (m *model) outcome() (o Outcome, ok bool) {
	m.judge()
	if len(m.outcomes) == 0 {
		return Outcome{}, false
	}
	o, m.outcomes = m.outcomes[0], m.outcomes[1:]
	return o, true
}

// confirm takes a datagram as delivered and reports whether that is news.
func (m *model) confirm(number int64) bool {
	i := int(number - m.firstSent)
	if i < 0 || !m.remembers(number) {
		return false
	}
	d := &m.sent[i]
	switch d.outcome {
	case isAcknowledged:
		return false
	case isLost:
		m.stats.LateAcks++
	case isUndecided:
		m.stats.Delivered++
		m.report(i, Outcome{Delivered: true, RTT: time.Duration(m.now - d.at)})
	}
	d.outcome = isAcknowledged
	for _, number := range d.events {
		if e := &m.events[number-m.firstEvent]; !e.delivered {
			e.delivered = true
			m.stats.EventsDelivered++
		}
	}
	for m.base < len(m.events) && m.events[m.base].delivered {
		m.base++
		m.oldestAt = m.now
	}
	return true
}

// acknowledged reads the acknowledgements of a datagram.
func (m *model) acknowledged(h Header) {
	number, ok := named(m.sizes, m.firstSent+int64(len(m.sent))-1, int64(h.Ack))
	if !ok || number < m.firstSent || !m.remembers(number) {
		return
	}
	if m.firstSent == 0 && !m.accepted && h.Ack == 65535 && h.AckBits == 0 {
		return
	}
	m.accepted = true
	m.top = max(m.top, number)
	for n := m.sizes.acks - 1; n >= 0; n-- {
		if h.AckBits>>n&1 != 0 {
			m.confirm(number - 1 - n)
		}
	}
	if m.confirm(number) {
		sample := max(0, m.now-m.sent[number-m.firstSent].at)
		m.passedAt = max(m.passedAt, m.now-sample)
		m.path = append(m.path, struct{ at, roundTrip int64 }{m.now, sample})
		if m.sampled {
			m.rtvar += (max(m.srtt-sample, sample-m.srtt) - m.rtvar) / 4
			m.srtt += (sample - m.srtt) / 8
		} else {
			m.sampled, m.srtt, m.rtvar = true, sample, sample/2
		}
	}
}

// parsed is a datagram, read without regard to what came before it.
type parsed struct {
	Header
	payload []byte
	list    []Event
	listed  bool
	opened  bool // sealed: it opened
	number  int64
}

// parse reads bytes in the order of the checks of 2.3 of docs/protocol.md.
func (m *model) parse(b []byte) (p parsed, err error) {
	least := m.headerSize()
	if m.cfg.Open != nil {
		least += m.cfg.Open.Overhead()
	}
	switch {
	case len(b) < 18:
		return p, ErrShort
	case len(b) > 1200:
		return p, ErrOversize
	case b[0] != m.format():
		return p, ErrFormat
	case len(b) < least:
		return p, ErrShort
	case b[1] == 0:
		return p, ErrType
	}
	p.Wide, p.Sealed = m.cfg.Wide, m.cfg.Open != nil
	p.Type = Type(b[1])
	p.Token = binary.LittleEndian.Uint64(b[2:])
	p.Sequence = binary.LittleEndian.Uint16(b[10:])
	p.Ack = binary.LittleEndian.Uint16(b[12:])
	p.AckBits = uint64(binary.LittleEndian.Uint32(b[14:]))
	if p.Wide {
		p.AckBits = binary.LittleEndian.Uint64(b[14:])
	}
	if p.Token != m.cfg.Token {
		return p, ErrToken
	}
	rest := b[m.headerSize():]
	if p.Sealed {
		arrival, number := m.window.judge(m.sizes, int64(p.Sequence))
		if arrival != Newest && arrival != Late || number < 0 {
			return p, ErrReplayed
		}
		if rest, err = m.cfg.Open.Open(nil, modelNonce(m.cfg.Open, number), rest, b[:m.headerSize()]); err != nil {
			return p, ErrForged
		}
		p.opened, p.number = true, number
	}
	err = p.read(rest)
	return p, err
}

// read reads the payload.
func (p *parsed) read(rest []byte) error {
	switch {
	case p.Type >= 9 && p.Type <= 15:
		return ErrType
	case p.Type == TypeHeartbeat, p.Type == TypeDisconnect:
		if len(rest) > 0 {
			return ErrPayload
		}
	case p.Type == TypeEvent:
		var left []byte
		if p.list, left, p.listed = parseModelList(rest); !p.listed || len(left) > 0 {
			return ErrPayload
		}
	case p.Type == TypeBundle:
		if len(rest) == 0 || rest[0] == 0 || rest[0] >= 5 && rest[0] <= 15 {
			return ErrPayload
		}
		p.Type = Type(rest[0])
		if p.list, p.payload, p.listed = parseModelList(rest[1:]); !p.listed {
			return ErrPayload
		}
		p.payload = append([]byte{}, p.payload...)
	default:
		p.payload = append([]byte{}, rest...)
	}
	return nil
}

func parseModelList(b []byte) (list []Event, rest []byte, ok bool) {
	if len(b) == 0 || b[0] == 0 {
		return nil, nil, false
	}
	n, b := int(b[0]), b[1:]
	for range n {
		if len(b) < 4 {
			return nil, nil, false
		}
		id, size := uint16(b[0])|uint16(b[1])<<8, int(b[2])|int(b[3])<<8
		if b = b[4:]; len(b) < size {
			return nil, nil, false
		}
		list = append(list, Event{id, b[:size]})
		b = b[size:]
	}
	return list, b, true
}

// check says with which error a datagram is refused; ErrWithhold stands for one
// that is withheld.
func (m *model) check(b []byte) (p parsed, arrival Arrival, number int64, err error) {
	if p, err = m.parse(b); err != nil {
		return
	}
	arrival, number = m.tracker.judge(m.sizes, int64(p.Sequence))
	if arrival != Newest && arrival != Late {
		return
	}
	trial := modelInbox{m.inbox.base, slices.Clone(m.inbox.have)}
	for _, e := range p.list {
		switch v, id := trial.judge(m.sizes, int64(e.ID)); v {
		case idOutside:
			err = ErrWindow
			return
		case idNew:
			trial.take(id)
		}
	}
	if m.cfg.Accept != nil && p.payload != nil {
		if refusal := acceptance(p.payload); errors.Is(refusal, ErrWithhold) {
			err = ErrWithhold
		} else if refusal != nil {
			err = ErrRejected
		}
	}
	return
}

// acceptance is what the walks' Accept says, by the first byte of the payload.
func acceptance(payload []byte) error {
	if len(payload) == 0 {
		return nil
	}
	switch payload[0] {
	case 0xE0:
		return ErrWithhold
	case 0xE1:
		return errors.Join(errAcceptance, ErrWithhold)
	case 0xE2:
		return errAcceptance
	}
	return nil
}

var errAcceptance = errors.New("not to the taste of the walk")

// receive is Receive; it returns the numbers of the events delivered, too.
func (m *model) receive(b []byte) (in Incoming, numbers []int64, err error) {
	if m.err != nil {
		return in, nil, m.err
	}
	p, arrival, number, err := m.check(b)
	if p.opened {
		m.window.take(m.sizes, p.number)
	}
	if m.cfg.Accept != nil && p.payload != nil && (arrival == Newest || arrival == Late) && err != ErrWindow {
		m.asked++
	}
	if err != nil && err != ErrWithhold {
		m.stats.Rejected++
		switch err {
		case ErrForged:
			m.stats.Forged++
		case ErrReplayed:
			m.stats.Replayed++
		}
		return in, nil, err
	}
	if arrival == Newest || arrival == Late {
		m.heardAt = m.now
	}
	m.acknowledged(p.Header)
	defer func() {
		if m.err == nil && m.draining && m.undelivered() == 0 {
			m.closing = true
		}
	}()
	in.Header, in.Arrival = p.Header, arrival
	if err == ErrWithhold {
		m.stats.Withheld++
		return in, nil, nil
	}
	m.stats.DatagramsReceived++
	m.stats.BytesReceived += uint64(len(b))
	switch arrival {
	case Duplicate:
		m.stats.Duplicates++
		return in, nil, nil
	case Stale:
		m.stats.Stale++
		return in, nil, nil
	}
	m.tracker.take(m.sizes, number)
	m.inSince++
	m.unacked.add(number)
	m.stats.AcksOutrun += uint64(m.unacked.below(m.tracker.newest - m.sizes.acks))
	in.Payload = p.payload
	in.Latest = p.payload != nil
	for k, t := range m.types {
		if k > number && t == p.Type {
			in.Latest = false
		}
		if k < m.tracker.newest-m.sizes.history {
			delete(m.types, k)
		}
	}
	m.types[number] = p.Type
	in.Events, numbers = m.deliver(p.list)
	if p.Type == TypeDisconnect && arrival == Newest {
		m.err = ErrPeerLeft
	}
	return in, numbers, nil
}

// deliver receives a list and returns what is delivered.
func (m *model) deliver(list []Event) (events []Event, numbers []int64) {
	for _, e := range list {
		v, number := m.inbox.judge(m.sizes, int64(e.ID))
		if v != idNew {
			m.stats.EventsDuplicate++
			continue
		}
		m.stats.EventsReceived++
		next := m.inbox.base
		m.inbox.take(number)
		if !m.cfg.Ordered {
			events, numbers = append(events, e), append(numbers, number)
			continue
		}
		m.waiting[number] = slices.Clone(e.Data)
		for ; next < m.inbox.base; next++ {
			events = append(events, Event{uint16(next), m.waiting[next]})
			numbers = append(numbers, next)
			delete(m.waiting, next)
		}
	}
	return events, numbers
}

// snapshot is Stats.
func (m *model) snapshot() Stats {
	s := m.stats
	for _, d := range m.sent {
		if d.outcome == isUndecided {
			s.Undecided++
		}
	}
	s.RTT, s.RTTVar = time.Duration(m.srtt), time.Duration(m.rtvar)
	seen := m.path.look(0)
	s.MinRTT, s.QueueDelay = time.Duration(seen.floor), time.Duration(seen.queue)
	return s
}
