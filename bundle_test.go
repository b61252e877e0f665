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
