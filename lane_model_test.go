package ackbits

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/stretchr/testify/require"
)

// laneEpoch is when every ManualClock of the lane tests starts.
var laneEpoch = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// laneModel is what the rules say, written down without a thought for cost: a
// list of events, a list of everything NextDue returned, and a counter.
type laneModel struct {
	cfg             LaneConfig // nothing zero
	err             error
	delivered       uint32
	first           uint32 // the lane's first id; above 1 in sweeps only
	events          []laneModelEvent
	acked           int // of events
	queueAt         int64
	retransmissions []laneModelRetransmission
}

type laneModelEvent struct {
	data     []byte
	queuedAt int64
	sends    int
	sentAt   int64
	order    int // of its last send, among all sends
}

type laneModelRetransmission struct {
	event int
	order int
	slot  int64
}

func newLaneModel(cfg LaneConfig) *laneModel {
	if err := cfg.validate(); err != nil {
		panic(err)
	}
	return &laneModel{cfg: cfg, first: 1}
}

func (m *laneModel) inFlight() int { return len(m.events) - m.acked }

func (m *laneModel) send(data []byte, p Priority, now int64) (uint32, error) {
	if m.err != nil {
		return 0, m.err
	}
	id := uint64(m.first) + uint64(len(m.events))
	if id > math.MaxUint32 {
		return 0, ErrLaneOverflow
	}
	n := m.inFlight()
	if p == Droppable {
		if n >= m.cfg.SoftLimit || n+1 >= m.cfg.HardLimit {
			return 0, ErrLaneFull
		}
	} else if n+1 >= m.cfg.HardLimit {
		m.err = ErrLaneOverflow
		return 0, m.err
	}
	if n == 0 {
		m.queueAt = now
	}
	m.events = append(m.events, laneModelEvent{data: bytes.Clone(data), queuedAt: now})
	return uint32(id), nil
}

// due returns the index of the event that NextDue would return at now, or -1.
func (m *laneModel) due(now int64) int {
	spent := 0
	for _, r := range slices.Backward(m.retransmissions) {
		if r.slot != now/int64(m.cfg.WakeInterval) {
			break
		}
		spent++
	}
	for i := m.acked; i < len(m.events); i++ {
		e := &m.events[i]
		if e.sends == 0 {
			return i
		}
		due := now-e.sentAt >= int64(m.cfg.ResendDelay)
		for _, r := range slices.Backward(m.retransmissions) {
			if r.order <= e.order {
				break
			}
			due = due || r.event < i
		}
		if due && spent < m.cfg.ResendBudget {
			return i
		}
	}
	return -1
}

func (m *laneModel) stalled(now int64) bool {
	return m.inFlight() > 0 && now-m.queueAt >= int64(m.cfg.StallTimeout)
}

func (m *laneModel) nextDue(most int, now int64) (id uint32, data []byte, ok bool) {
	if m.err == nil && m.stalled(now) {
		m.err = ErrStalled
	}
	if m.err != nil {
		return 0, nil, false
	}
	i := m.due(now)
	if i < 0 || len(m.events[i].data) > most {
		return 0, nil, false
	}
	e := &m.events[i]
	e.order = len(m.retransmissions)
	if e.sends > 0 {
		m.retransmissions = append(m.retransmissions, laneModelRetransmission{i, len(m.retransmissions) + 1, now / int64(m.cfg.WakeInterval)})
		e.order = len(m.retransmissions)
	}
	e.sends++
	e.sentAt = now
	return m.first + uint32(i), e.data, true
}

func (m *laneModel) receive(id uint32) (bool, uint32) {
	if m.err != nil || id == 0 || uint64(id) != uint64(m.delivered)+1 {
		return false, m.delivered
	}
	m.delivered++
	return true, m.delivered
}

func (m *laneModel) receiveAck(ack uint32, now int64) error {
	if m.err != nil {
		return m.err
	}
	if ack < m.first+uint32(m.acked) {
		return nil
	}
	i := int64(ack - m.first)
	if i >= int64(len(m.events)) || m.events[i].sends == 0 {
		return ErrAck
	}
	m.acked = int(i) + 1
	m.queueAt = now
	return nil
}

// deadline tries every moment at which something could become due.
func (m *laneModel) deadline(now int64) (at int64, ok bool) {
	if m.err != nil || m.inFlight() == 0 {
		return 0, false
	}
	width := int64(m.cfg.WakeInterval)
	moments := []int64{now, (now/width + 1) * width, m.queueAt + int64(m.cfg.StallTimeout)}
	for _, e := range m.events[m.acked:] {
		comesOfAge := e.sentAt + int64(m.cfg.ResendDelay)
		moments = append(moments, comesOfAge, (comesOfAge/width+1)*width)
	}
	slices.Sort(moments)
	for _, at := range moments {
		if at >= now && (m.stalled(at) || m.due(at) >= 0) {
			return at, true
		}
	}
	panic("an event that never becomes due")
}

// lanePair drives two lanes that send to each other over packets that may be
// lost, doubled and reordered, and their models beside them. Every verb checks
// the answer against the model, and check the rest.
type lanePair struct {
	t     require.TestingT
	clock *ManualClock
	now   int64
	ends  [2]*laneEnd
}

type laneEnd struct {
	lane    *OrderedLane
	model   *laneModel
	packets []lanePacket // on the way to this end
	held    []lanePacket // events of this end as NextDue returned them, with a copy
	applied int          // events of the other end delivered
}

type lanePacket struct {
	isAck bool
	id    uint32
	data  []byte
	copy  []byte
}

func newLanePair(t require.TestingT, cfg LaneConfig, first uint32) *lanePair {
	p := &lanePair{t: t, clock: &ManualClock{}}
	p.clock.Set(laneEpoch)
	cfg.Clock = p.clock
	for i := range p.ends {
		lane, err := NewOrderedLane(cfg)
		require.NoError(t, err)
		laneStartAt(lane, first)
		model := newLaneModel(cfg)
		model.first, model.delivered = first, first-1
		p.ends[i] = &laneEnd{lane: lane, model: model}
	}
	return p
}

// laneStartAt makes a fresh lane one that has sent and received all before id.
func laneStartAt(l *OrderedLane, id uint32) {
	l.acked, l.sent, l.last, l.cursor, l.passEnd, l.delivered = id-1, id-1, id-1, id-1, id-1, id-1
}

func (p *lanePair) advance(d time.Duration) {
	p.clock.Advance(d)
	p.now += int64(d)
}

func (p *lanePair) send(i int, data []byte, prio Priority) {
	e := p.ends[i]
	id, err := e.lane.Send(data, prio)
	wantID, wantErr := e.model.send(data, prio, p.now)
	require.Equal(p.t, wantErr, err)
	require.Equal(p.t, wantID, id)
	for k := range data {
		data[k] = 0xEE // Send must have copied
	}
}

// next calls NextDue and puts what it returned on the way.
func (p *lanePair) next(i, most int) bool {
	e := p.ends[i]
	ev, ok := e.lane.NextDue(most)
	id, data, wantOK := e.model.nextDue(most, p.now)
	require.Equal(p.t, wantOK, ok)
	require.Equal(p.t, id, ev.ID)
	require.True(p.t, bytes.Equal(data, ev.Data), "data of %d", id)
	if ok {
		packet := lanePacket{id: id, data: ev.Data, copy: bytes.Clone(ev.Data)}
		e.held = append(e.held, packet)
		packet.data = packet.copy
		p.ends[1-i].packets = append(p.ends[1-i].packets, packet)
	}
	return ok
}

// arrive gives packet k, if there is one, to end i; a copy stays on the way if
// keep is set.
func (p *lanePair) arrive(i, k int, keep bool) {
	e := p.ends[i]
	if len(e.packets) == 0 {
		return
	}
	k %= len(e.packets)
	packet := e.packets[k]
	if !keep {
		e.packets = slices.Delete(e.packets, k, k+1)
	}
	if packet.isAck {
		p.ack(i, packet.id)
		return
	}
	if p.receive(i, packet.id) {
		sent := p.ends[1-i].model.events[e.applied]
		require.True(p.t, bytes.Equal(sent.data, packet.data), "event %d", packet.id)
		e.applied++
	}
	p.ends[1-i].packets = append(p.ends[1-i].packets, lanePacket{isAck: true, id: e.lane.Ack()})
}

func (p *lanePair) lose(i, k int) {
	if e := p.ends[i]; len(e.packets) > 0 {
		k %= len(e.packets)
		e.packets = slices.Delete(e.packets, k, k+1)
	}
}

func (p *lanePair) receive(i int, id uint32) bool {
	e := p.ends[i]
	deliver, ack := e.lane.Receive(id)
	wantDeliver, wantAck := e.model.receive(id)
	require.Equal(p.t, wantDeliver, deliver)
	require.Equal(p.t, wantAck, ack)
	return deliver
}

func (p *lanePair) ack(i int, ack uint32) {
	e := p.ends[i]
	require.Equal(p.t, e.model.receiveAck(ack, p.now), e.lane.ReceiveAck(ack))
}

// check compares all that the getters tell, and that what NextDue returned is
// still what it was.
func (p *lanePair) check() {
	for _, e := range p.ends {
		require.Equal(p.t, e.model.err, e.lane.Err())
		require.Equal(p.t, e.model.delivered, e.lane.Ack())
		require.Equal(p.t, e.model.inFlight(), e.lane.InFlight())
		at, ok := e.lane.Deadline()
		wantAt, wantOK := e.model.deadline(p.now)
		require.Equal(p.t, wantOK, ok)
		if got := at.Sub(laneEpoch); ok && wantAt == p.now {
			require.LessOrEqual(p.t, got, time.Duration(p.now))
		} else if ok {
			require.Equal(p.t, time.Duration(wantAt), got)
		} else {
			require.Zero(p.t, at)
		}
		e.held = slices.DeleteFunc(e.held, func(h lanePacket) bool {
			return h.id < e.model.first+uint32(e.model.acked)
		})
		for _, h := range e.held {
			require.True(p.t, bytes.Equal(h.copy, h.data), "event %d changed before it was acknowledged", h.id)
		}
		require.NoError(p.t, e.lane.queue.sound())
		if e.lane.Err() != nil {
			require.Zero(p.t, e.lane.queue, "memory after the end")
		}
	}
}

// settle lets everything through until both ends are idle, and checks that
// every event was delivered once and in order, unless a lane has ended.
func (p *lanePair) settle() {
	for range 10_000 {
		wait := time.Duration(math.MaxInt64)
		for i, e := range p.ends {
			for p.next(i, math.MaxInt) {
			}
			if e.lane.Err() != nil {
				p.check()
				return
			}
		}
		for len(p.ends[0].packets)+len(p.ends[1].packets) > 0 {
			p.arrive(0, 0, false)
			p.arrive(1, 0, false)
		}
		for _, e := range p.ends {
			if at, ok := e.lane.Deadline(); ok {
				wait = min(wait, max(0, at.Sub(p.clock.Now())))
			}
		}
		if wait == math.MaxInt64 {
			break
		}
		p.advance(wait)
	}
	p.check()
	for i, e := range p.ends {
		require.Zero(p.t, e.lane.InFlight())
		require.Equal(p.t, len(p.ends[1-i].model.events), e.applied)
	}
}

// sound checks the queue's own books.
func (q *laneQueue) sound() error {
	live := 0
	for i := range q.n {
		s := q.slot(i)
		live += s.size
		if i > 0 {
			if before := q.slot(i - 1); s.pos < before.pos+uint64(before.size) {
				return fmt.Errorf("event %d begins at %d, inside the one before it", i, s.pos)
			}
		}
	}
	if live != q.live || q.n > len(q.slots) || live > len(q.buf) {
		return fmt.Errorf("%d of %d slots, %d or %d of %d bytes", q.n, len(q.slots), live, q.live, len(q.buf))
	}
	if q.n > 0 && q.tail-q.slots[q.head].pos > uint64(len(q.buf)) {
		return fmt.Errorf("from %d to %d in %d bytes", q.slots[q.head].pos, q.tail, len(q.buf))
	}
	return nil
}
