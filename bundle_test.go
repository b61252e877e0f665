package ackbits

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// An Input with the two events of 18.1 of docs/protocol.md before its payload.
var goldenBundle = append(append([]byte{3}, goldenList...), 0x11, 0x22)

// P-10.1.3.
func TestBundleIsTypeThenListThenPayload(t *testing.T) {
	before := Event{ID: 7}
	inner, events, rest, err := parseBundle([]Event{before}, goldenBundle)
	require.NoError(t, err)
	require.Equal(t, TypeInput, inner)
	require.Equal(t, append([]Event{before}, goldenEvents...), events)
	require.Equal(t, []byte{0x11, 0x22}, rest)
}

// The payload of an empty application datagram is empty, not nil.
// P-10.1.2.
func TestBundleMayEndWithItsList(t *testing.T) {
	inner, events, rest, err := parseBundle(nil, goldenBundle[:12])
	require.NoError(t, err)
	require.Equal(t, TypeInput, inner)
	require.Equal(t, goldenEvents, events)
	require.NotNil(t, rest)
	require.Empty(t, rest)
}

// P-10.1.2.
func TestOnlyTypesOfTheApplicationAreBundled(t *testing.T) {
	for kind := range 256 {
		payload := append([]byte{byte(kind)}, goldenBundle[1:]...)
		if Type(kind).application() {
			inner, _, _, err := parseBundle(nil, payload)
			require.NoError(t, err)
			require.Equal(t, Type(kind), inner)
		} else {
			requireBundleRefused(t, payload)
		}
	}
}

// P-10.1.2.
func TestBundleWithABadListIsRefused(t *testing.T) {
	for n := range 12 {
		requireBundleRefused(t, goldenBundle[:n])
	}
	requireBundleRefused(t, []byte{3, 0})
	requireBundleRefused(t, []byte{3, 0, 1, 2, 3, 4})
	requireBundleRefused(t, []byte{3, 1, 0, 0, 2, 0, 0xAA})
	requireBundleRefused(t, []byte{3, 255, 0, 0, 0, 0})

	longest := append(slices.Clone(goldenBundle), make([]byte, maxListSize-len(goldenBundle))...)
	_, _, _, err := parseBundle(nil, longest)
	require.NoError(t, err)
	requireBundleRefused(t, append(longest, 0)) // than any datagram's
}

// An event that was retransmitted twice goes by itself, also where an older one that was
// not rides along. It takes proactive copies, which are no retransmissions, for the
// older one to have had fewer.
// P-10.1.5.
func TestBundleLeavesOutWhatWasRetransmittedTwice(t *testing.T) {
	p := solo(t, Config{Bundle: true, Adaptive: true, Heartbeat: time.Second})
	adaptive(p.s).current = copyPlan{left: 8, far: 0b11111111}
	p.send("proactive copies")
	p.wantEventsOut(0)
	adaptive(p.s).current = copyPlan{}
	p.send("retransmissions")
	p.wantEventsOut(1)
	p.sleep(75 * ms)
	p.wantEventsOut(0)
	p.sleep(25 * ms)
	p.wantEventsOut(1)
	p.sleep(50 * ms)
	p.wantEventsOut(0)
	p.sleep(75 * ms) // both are due
	out, _, err := p.s.AppendDatagram(nil, TypeInput, nil)
	require.NoError(t, err)
	_, events, _, err := parseBundle(nil, p.packet(out).payload)
	require.NoError(t, err)
	require.Equal(t, []Event{{0, []byte("proactive copies")}}, events)
	p.wantEventsOut(1)
}

func TestBundlesCostNoAllocation(t *testing.T) {
	dst := make([]Event, 0, 255)
	require.Zero(t, testing.AllocsPerRun(10, func() {
		for n := range len(goldenBundle) + 1 {
			_, _, _, _ = parseBundle(dst, goldenBundle[:n])
		}
	}))
}

func requireBundleRefused(t *testing.T, payload []byte) {
	t.Helper()
	before := []Event{{ID: 7}}
	inner, events, rest, err := parseBundle(before, payload)
	require.Equal(t, ErrPayload, err)
	require.Zero(t, inner)
	require.Equal(t, before, events)
	require.Nil(t, rest)
}

// silenced is a session that sent events of such sizes, in one flush, after which
// nothing was acknowledged for 200 ms.
func silenced(t *testing.T, cfg Config, sizes ...int) *actor {
	cfg.Adaptive, cfg.Bundle = true, true
	p := solo(t, cfg)
	for range 3 {
		k := p.emit(TypeInput)
		p.sleep(30 * ms)
		p.ack(k.Sequence, 0)
	}
	for _, size := range sizes {
		p.send(long(size))
	}
	p.flush()
	p.sleep(200 * ms)
	return p
}

// carried sends a datagram of the application's and returns the ids of the events in it.
func (p *actor) carried(payload int) (ids []uint16) {
	p.tb.Helper()
	out, _, err := p.s.AppendDatagram(nil, TypeInput, make([]byte, payload))
	require.NoError(p.tb, err)
	k := p.packet(out)
	if k.Type != TypeBundle {
		return nil
	}
	list, _, ok := parseModelList(k.payload[1:])
	require.True(p.tb, ok)
	for _, e := range list {
		ids = append(ids, e.ID)
	}
	return ids
}

// While nothing is acknowledged, every bundle carries the oldest events, due or not.
func TestOldestEventsRideWhileNothingIsAcknowledged(t *testing.T) {
	p := silenced(t, Config{}, 10, 10)
	for range 3 {
		require.Equal(t, []uint16{0, 1}, p.carried(0))
	}
	require.EqualValues(t, 6, p.s.Stats().EventsResent)
	p.wantEventsOut(0, 1) // riding puts nothing off
	p.send("new", long(700))
	require.Equal(t, []uint16{0, 1, 2, 3}, p.carried(0))
	require.Equal(t, []uint16{0, 1, 2}, p.carried(0), "the last is too large to ride")
	p.ack(3, 0) // an event's first datagram, after the silence
	require.Empty(t, p.carried(0))

	p = silenced(t, Config{}, 10)
	p.emit(TypeConnect)
	p = silenced(t, Config{})
	require.Empty(t, p.carried(0))
	p.send("first")
	require.Equal(t, []uint16{0}, p.carried(0))
	require.Empty(t, p.carried(0), "it could not be acknowledged yet")
}

// What rides takes 600 bytes of a datagram at most, and no more than there is room for.
func TestEventsThatRideTakeAtMost600Bytes(t *testing.T) {
	for _, tc := range []struct {
		sizes   []int
		payload int
		want    []uint16
	}{
		{[]int{maxRiders - 5}, 0, []uint16{0}},
		{[]int{maxRiders - 4}, 0, nil},
		{[]int{300, maxRiders - 309}, 0, []uint16{0, 1}},
		{[]int{300, maxRiders - 308}, 0, []uint16{0}},
		{[]int{300, maxRiders - 308, 1}, 0, []uint16{0}},
		{[]int{100}, MaxDatagramSize - HeaderSize - bundleOverhead - 105, []uint16{0}},
		{[]int{100}, MaxDatagramSize - HeaderSize - bundleOverhead - 104, nil},
		{[]int{100, 100}, MaxDatagramSize - HeaderSize - bundleOverhead - 209, []uint16{0, 1}},
		{[]int{100, 100}, MaxDatagramSize - HeaderSize - bundleOverhead - 208, []uint16{0}},
	} {
		p := silenced(t, Config{}, tc.sizes...)
		require.Equal(t, tc.want, p.carried(tc.payload), "%v", tc)
	}
}

// A datagram delivers what rode in it, and no more.
func TestAckOfADatagramDeliversWhatRodeInIt(t *testing.T) {
	p := silenced(t, Config{}, 10, 10, 700)
	require.Equal(t, []uint16{0, 1}, p.carried(0))
	p.ack(p.flying[len(p.flying)-1].Sequence, 0)
	p.wantInFlight(1)
	p = silenced(t, Config{}, 10, 700)
	require.Equal(t, []uint16{0}, p.carried(0))
	p.ack(p.flying[len(p.flying)-1].Sequence, 0)
	p.wantInFlight(1)
}

// Those that ride spend the budget, and do not without it.
func TestEventsThatRideSpendTheBudget(t *testing.T) {
	p := silenced(t, Config{EventRate: 30}, 10, 10) // 14 bytes each
	require.Equal(t, []uint16{0, 1}, p.carried(0))
	again := time.Duration(p.s.channel.sender.budget.allowedAt())
	p.sleepUntil(again - 1)
	require.Empty(t, p.carried(0))
	p.sleepUntil(again)
	require.Equal(t, []uint16{0}, p.carried(0))
	require.Empty(t, p.carried(0))
	p.send("new")
	require.Equal(t, []uint16{2}, p.carried(0), "first copies are free")
}

// New events that follow those which ride keep to the pace, as they do otherwise.
func TestNewEventsThatFollowRidersKeepToThePace(t *testing.T) {
	p := silenced(t, Config{}, 500)
	p.sendN(30, 600)
	for range 8 { // what rides is paid for, too
		require.Equal(t, []uint16{0}, p.carried(MaxDatagramSize-HeaderSize-bundleOverhead-505))
	}
	require.Equal(t, []uint16{0}, p.carried(0))
	p.sleep(10 * ms)
	require.Equal(t, []uint16{0, 1}, p.carried(0))
}
