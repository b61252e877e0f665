package ackbits

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The lowest bit of a plan says how the next copy goes, unless none is left.
func TestPlanEndsWithItsLastCopy(t *testing.T) {
	for _, tc := range []struct {
		plan          copyPlan
		near, distant bool
	}{
		{copyPlan{}, false, false},
		{copyPlan{left: 0, far: 0b1}, false, false},
		{copyPlan{left: 1, far: 0b0}, true, false},
		{copyPlan{left: 1, far: 0b1}, false, true},
		{copyPlan{left: 2, far: 0b10}, true, false},
		{copyPlan{left: 2, far: 0b01}, false, true},
	} {
		require.Equal(t, tc.near, tc.plan.near(), "%+v", tc.plan)
		require.Equal(t, tc.distant, tc.plan.distant(), "%+v", tc.plan)
	}
}

// Each copy takes its own bit off the plan.
func TestPlanIsSpentCopyByCopy(t *testing.T) {
	plan := copyPlan{left: 2, far: 0b10}
	plan.spend()
	require.Equal(t, copyPlan{left: 1, far: 0b1}, plan)
	plan.spend()
	require.Zero(t, plan)
	plan.spend()
	require.Zero(t, plan)
}

// queued is a channel of the fixed rule on a path of 50 ms with a queue of 100.
type queued struct {
	*ReliableChannel
	t     *testing.T
	clock *ManualClock
	heard uint16 // the next sequence of the peer
}

func newQueued(t *testing.T) *queued {
	c, clock := newChannel(t, Config{})
	q := &queued{c, t, clock, 0}
	q.roundTrip(50 * ms)
	for range 60 {
		q.roundTrip(150 * ms)
	}
	return q
}

func (q *queued) ack(ack uint16, ackBits uint64) {
	q.Receive(Header{Type: TypeInput, Sequence: q.heard, Ack: ack, AckBits: ackBits}, nil)
	q.heard++
}

func (q *queued) roundTrip(d time.Duration) (seq uint16) {
	h, _ := q.NextHeader(TypeInput)
	q.clock.Advance(d)
	q.ack(h.Sequence, 0)
	return h.Sequence
}

// carry sends an event of one byte that is due and returns its id and the sequence.
func (q *queued) carry() (id, seq uint16) {
	q.t.Helper()
	h, _ := q.NextHeader(TypeEvent)
	list, err := ParseEvents(nil, q.AppendDueEvents(nil, h.Sequence, 1+4+1))
	require.NoError(q.t, err)
	require.Len(q.t, list, 1)
	return list[0].ID, h.Sequence
}

// next waits until an event is due, which Deadline must tell to the nanosecond, and
// sends it.
func (q *queued) next() (id uint16) {
	q.t.Helper()
	due, ok := q.Deadline()
	require.True(q.t, ok)
	if due.After(q.clock.Now()) {
		q.clock.Set(due.Add(-1))
		require.False(q.t, q.EventsDue(100))
		q.clock.Set(due)
	}
	require.True(q.t, q.EventsDue(100))
	id, _ = q.carry()
	return id
}

// patience is how long an event waits for an acknowledgement.
func (q *queued) patience() time.Duration {
	return time.Duration(q.sender.path.patience(int64(50 * ms)))
}

// Beyond patientTries an event waits twice as long for each copy, up to a second, however
// many there were.
func TestEventBacksOffWhileAQueueStands(t *testing.T) {
	q := newQueued(t)
	q.Send([]byte("0"))
	q.carry()
	p := q.patience()
	waits := []time.Duration{p, p, p, p, 2 * p, 4 * p}
	for n := range math.MaxUint8 + 5 {
		want := time.Second
		if n < len(waits) {
			want = waits[n]
		}
		before := q.clock.Now()
		q.next()
		require.Equal(t, want, q.clock.Now().Sub(before), n)
	}
}

// Of several events that back off, each comes due in its own time.
func TestEachEventBacksOffForItself(t *testing.T) {
	q := newQueued(t)
	p := q.patience()
	last, gaps := map[uint16]time.Time{}, map[uint16][]time.Duration{}
	for n := range 30 {
		if n == 0 || n == 5 || n == 8 {
			q.Send([]byte("x"))
			id, _ := q.carry()
			last[id] = q.clock.Now()
		}
		id := q.next()
		gaps[id] = append(gaps[id], q.clock.Now().Sub(last[id]))
		last[id] = q.clock.Now()
	}
	want := []time.Duration{p, p, p, p, 2 * p, 4 * p, time.Second, time.Second}
	for id := range uint16(3) {
		require.Equal(t, want, gaps[id][:min(len(gaps[id]), len(want))], id)
		require.GreaterOrEqual(t, len(gaps[id]), 7)
	}
}

// A try counts only since an older event was delivered, be it at the moment of the last
// copy.
func TestTriesBeginAnewOnceAnOlderEventIsDelivered(t *testing.T) {
	for _, later := range []time.Duration{0, 10 * ms} {
		q := newQueued(t)
		q.Send([]byte("0"))
		q.Send([]byte("1"))
		_, first := q.carry()
		q.carry()
		newer := q.roundTrip(150 * ms)
		p := q.patience()
		for range patientTries {
			q.next()
			q.carry()
		}
		last := q.clock.Now()
		q.clock.Advance(later)
		q.ack(newer, 1<<(newer-1-first))
		require.Equal(t, 1, q.InFlight())
		for n := range patientTries {
			q.next()
			require.Equal(t, p, q.clock.Now().Sub(last), n)
			last = q.clock.Now()
		}
	}
}

// Events that back off while a queue stands need not any more once an older one is
// delivered, though by a bit, which is no sample of the round trip.
func TestEventBacksOffNoMoreOnceAnOlderOneIsDelivered(t *testing.T) {
	q := newQueued(t)
	q.Send([]byte("0"))
	q.Send([]byte("1"))
	_, first := q.carry()
	q.carry()
	newer := q.roundTrip(150 * ms)
	for range patientTries {
		q.next()
		q.carry()
	}
	q.clock.Advance(200 * ms)
	require.False(t, q.EventsDue(100))
	due, _ := q.Deadline()
	require.Greater(t, due.Sub(q.clock.Now()), 100*ms, "both back off")
	q.ack(newer, 1<<(newer-1-first))
	require.Equal(t, 1, q.InFlight())
	require.True(t, q.EventsDue(100))
	_, again := q.carry()
	q.ack(again, 0)
	_, ok := q.Deadline()
	require.False(t, ok, "nothing is left")
}

// An acknowledgement that shows a queue to be gone makes events due at once that have
// waited as long as they do without one.
func TestEventIsDueOnceTheQueueIsGone(t *testing.T) {
	p := solo(t, Config{ResendDelay: 20 * ms, Heartbeat: 200 * ms})
	roundTrips := func(n int, each time.Duration) {
		for range n {
			k := p.emit(TypeInput)
			p.sleep(each)
			p.ack(k.Sequence, 0)
		}
	}
	roundTrips(1, 50*ms)
	roundTrips(newestSamples, 300*ms)
	require.True(t, p.s.channel.sender.path.stands)
	roundTrips(int(standsFor/int64(50*ms)), 50*ms)
	p.send("0")
	first := p.wantEventsOut(0)
	p.send("1")
	p.wantEventsOut(1)
	p.sleep(50 * ms)
	require.True(t, p.s.channel.sender.path.stands)
	p.wantNothing()
	p.ack(first.Sequence, 0)
	require.False(t, p.s.channel.sender.path.stands)
	p.wantEventsOut(1)
}
