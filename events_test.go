package ackbits

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// The example of 18.1 of docs/protocol.md.
var (
	goldenList   = []byte{2, 0, 0, 2, 0, 0xAA, 0xBB, 1, 0, 0, 0}
	goldenEvents = []Event{{0, []byte{0xAA, 0xBB}}, {1, []byte{}}}
)

// P-5.1.4.
func TestEventsHaveTheBytesOfTheExample(t *testing.T) {
	b, err := AppendEvents(nil, goldenEvents...)
	require.NoError(t, err)
	require.Equal(t, goldenList, b)

	events, err := ParseEvents(nil, goldenList)
	require.NoError(t, err)
	require.Equal(t, goldenEvents, events)
}

// P-2.1.1.
func TestIDAndLengthAreLittleEndian(t *testing.T) {
	list := append([]byte{1, 0x02, 0x01, 0x2C, 0x01}, make([]byte, 300)...)
	events, err := ParseEvents(nil, list)
	require.NoError(t, err)
	require.Equal(t, []Event{{0x0102, make([]byte, 300)}}, events)

	b, err := AppendEvents(nil, events...)
	require.NoError(t, err)
	require.Equal(t, list, b)
}

// Every prefix of a good datagram with two events.
func TestDatagramCutAnywhereYieldsNoEvent(t *testing.T) {
	for _, wide := range []bool{false, true} {
		datagram := append(Header{Wide: wide, Type: TypeEvent}.AppendTo(nil), goldenList...)
		for n := range datagram {
			_, payload, err := ParseHeader(datagram[:n])
			if err == nil {
				requireListRefused(t, payload)
			}
		}
	}
}

// P-5.1.1.
func TestMalformedListsAreRefusedWhole(t *testing.T) {
	tooLong := append([]byte{1, 0, 0, 0x9A, 0x04}, make([]byte, 1178)...)
	for name, list := range map[string][]byte{
		"nil":                            nil,
		"empty":                          {},
		"count 0":                        {0},
		"count 0 and an event":           {0, 0, 0, 0, 0},
		"count without events":           {1},
		"count one too high":             append([]byte{3}, goldenList[1:]...),
		"count one too low":              append([]byte{1}, goldenList[1:]...),
		"count 255 of one":               {255, 0, 0, 0, 0},
		"event past the end by 1":        {1, 0, 0, 2, 0, 0xAA},
		"second event past the end by 1": {2, 0, 0, 0, 0, 1, 0, 1, 0},
		"largest length":                 {1, 0, 0, 0xFF, 0xFF, 0xAA},
		"half an id":                     {1, 0},
		"half a length":                  {1, 0, 0, 0},
		"one byte left over":             append(goldenList[:11:11], 0),
		"an event left over":             append(goldenList[:11:11], 2, 0, 0, 0),
		"longer than any datagram's":     tooLong,
	} {
		t.Run(name, func(t *testing.T) { requireListRefused(t, list) })
	}
}

// P-5.1.2.
func TestListLimits(t *testing.T) {
	event := func(size int) Event { return Event{Data: make([]byte, size)} }
	for name, tc := range map[string]struct {
		events []Event
		want   error
	}{
		"no event":                     {nil, ErrPayload},
		"255 events":                   {make([]Event, 255), nil},
		"256 events":                   {make([]Event, 256), ErrPayload},
		"largest event":                {[]Event{event(1177)}, nil},
		"event too large":              {[]Event{event(1178)}, ErrEventTooLarge},
		"second event too large":       {[]Event{event(0), event(1178)}, ErrEventTooLarge},
		"1182 bytes in all":            {[]Event{event(1000), event(173)}, nil},
		"1183 bytes in all":            {[]Event{event(1000), event(174)}, ErrDatagramTooLarge},
		"an event's limit comes first": {[]Event{event(1177), event(1177), event(1178)}, ErrEventTooLarge},
	} {
		t.Run(name, func(t *testing.T) {
			b, err := AppendEvents([]byte("before"), tc.events...)
			require.ErrorIs(t, err, tc.want)
			if tc.want != nil {
				require.Equal(t, "before", string(b))
				return
			}
			list, found := bytes.CutPrefix(b, []byte("before"))
			require.True(t, found)
			events, err := ParseEvents(nil, list)
			require.NoError(t, err)
			require.Len(t, events, len(tc.events))
		})
	}
}

func TestTooLargeErrorsTellTheSizes(t *testing.T) {
	_, err := AppendEvents(nil, Event{Data: make([]byte, 1178)})
	require.EqualError(t, err, "ackbits: event too large: 1178 bytes, the limit is 1177")
	_, err = AppendEvents(nil, Event{Data: make([]byte, 600)}, Event{Data: make([]byte, 600)})
	require.EqualError(t, err, "ackbits: datagram too large: 1209 bytes, the limit is 1182")
}

func TestParseEventsAppends(t *testing.T) {
	before := Event{ID: 7, Data: []byte("before")}
	events, err := ParseEvents([]Event{before}, goldenList)
	require.NoError(t, err)
	require.Equal(t, append([]Event{before}, goldenEvents...), events)
}

func TestEventDataIsThePayloadsAndCannotGrowIntoTheNext(t *testing.T) {
	list := bytes.Clone(goldenList)
	events, err := ParseEvents(nil, list)
	require.NoError(t, err)
	require.Same(t, &list[5], &events[0].Data[0])
	for i := range events {
		_ = append(events[i].Data, 0xEE)
	}
	require.Equal(t, goldenList, list)
}

func TestEventsSurviveTheWire(t *testing.T) {
	event := rapid.Custom(func(t *rapid.T) Event {
		return Event{rapid.Uint16().Draw(t, "id"), rapid.SliceOfN(rapid.Byte(), 0, 50).Draw(t, "data")}
	})
	rapid.Check(t, func(t *rapid.T) {
		want := rapid.SliceOfN(event, 1, 20).Draw(t, "events")
		list, err := AppendEvents(nil, want...)
		require.NoError(t, err)
		got, err := ParseEvents(nil, list)
		require.NoError(t, err)
		require.Equal(t, want, got)
	})
}

func TestListsCostNoAllocation(t *testing.T) {
	dst, buf := make([]Event, 0, 255), make([]byte, 0, MaxDatagramSize)
	full, err := AppendEvents(nil, make([]Event, 255)...)
	require.NoError(t, err)
	lists := [][]byte{nil, {0}, {1}, goldenList, goldenList[:10], full, full[:len(full)-1], make([]byte, 1183)}
	require.Zero(t, testing.AllocsPerRun(10, func() {
		for _, list := range lists {
			if events, err := ParseEvents(dst, list); err == nil {
				buf, _ = AppendEvents(buf[:0], events...)
			}
		}
	}))
}

// P-5.1.4.
func FuzzParseEvents(f *testing.F) {
	f.Add(goldenList)
	for n := range goldenList {
		f.Add(goldenList[:n])
	}
	f.Add(append([]byte{1, 0xFF, 0xFF, 0x99, 0x04}, make([]byte, 1177)...))
	f.Fuzz(func(t *testing.T, list []byte) {
		events, err := ParseEvents(nil, list)
		if err != nil {
			require.Equal(t, ErrPayload, err)
			require.Nil(t, events)
			return
		}
		// One legal encoding per value.
		again, err := AppendEvents(nil, events...)
		require.NoError(t, err)
		require.Equal(t, list, again)
	})
}

func requireListRefused(t *testing.T, list []byte) {
	t.Helper()
	before := []Event{{ID: 7}}
	events, err := ParseEvents(before, list)
	require.Equal(t, ErrPayload, err)
	require.Equal(t, before, events)
}
