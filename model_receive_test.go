package ackbits

import (
	"encoding/binary"
	"errors"
	"slices"
	"time"
)

// The dumb model (model_test.go): what a datagram of the peer changes, and outcomes.

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
	in.Latest = m.latest(number, p.Type) && p.payload != nil
	in.Events, numbers = m.deliver(p.list)
	if p.Type == TypeDisconnect && arrival == Newest {
		m.err = ErrPeerLeft
	}
	return in, numbers, nil
}

// latest notes the type of a datagram, and reports whether no newer one had it.
func (m *model) latest(number int64, of Type) bool {
	latest := true
	for k, t := range m.types {
		if k > number && t == of {
			latest = false
		}
		if k < m.tracker.newest-m.sizes.history {
			delete(m.types, k)
		}
	}
	m.types[number] = of
	return latest
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
