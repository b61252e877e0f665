package view

import (
	"encoding/binary"
	"encoding/json"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ackbits/ackbits/examples/playground/sim"
)

func start(t *testing.T, fragment string) *Board {
	s, err := sim.Parse(fragment)
	require.NoError(t, err)
	b, err := Start(s)
	require.NoError(t, err)
	return b
}

func decode[T any](t *testing.T, text []byte) (v T) {
	require.NoError(t, json.Unmarshal(text, &v), string(text))
	return v
}

func TestEachSceneHappens(t *testing.T) {
	for _, scene := range Scenes {
		t.Run(scene.Key, func(t *testing.T) {
			shot := decode[Shot](t, Shoot(scene.Key))
			require.Empty(t, shot.Error)
			require.Less(t, shot.From, shot.To)
			require.Less(t, (shot.To-shot.From)/scene.Speed, 10_000.0, "milliseconds to watch")
			require.Equal(t, 2, strings.Count(scene.Text, ". ")+1, "two sentences")
			b := start(t, shot.Address)
			b.Advance(time.Duration(shot.To * float64(time.Millisecond)))
			if shot.Flight >= 0 {
				require.NotEqual(t, "null", string(b.Flight(0, shot.Flight)))
			} else {
				require.NotEqual(t, "null", string(b.Event(0, sim.Client, shot.Event)))
			}
		})
	}
}

func TestFlights(t *testing.T) {
	b := start(t, "loss=10&dup=10&jitter=20")
	b.Advance(2 * time.Second)
	from, to := 1500*time.Millisecond, 1600*time.Millisecond
	bytes := b.Flights(nil, 0, from, to, 1000)
	want := map[float64]bool{}
	r := b.Run(0)
	_, count := r.Oldest()
	for id := range count {
		if f, _ := r.Flight(id); f.SentAt <= to && until(r, f) >= from {
			want[float64(id)] = true
		}
	}
	require.Greater(t, len(want), 10)
	require.Len(t, bytes, len(want)*FlightSize)
	for i := 0; i < len(bytes); i += FlightSize {
		id := math.Float64frombits(binary.LittleEndian.Uint64(bytes[i:]))
		require.True(t, want[id], "%v", id)
	}
	require.Len(t, b.Flights(nil, 0, from, to, 3), 3*FlightSize)
}

func TestBothRunsKeepTime(t *testing.T) {
	b := start(t, "loss=10&vs=none")
	require.Equal(t, 2, b.Runs())
	b.Step(0, false)
	b.Step(1, true)
	b.Step(0, true)
	require.NoError(t, b.Do(sim.VerbBurst, 20))
	b.Advance(3 * time.Second)
	require.Equal(t, b.Run(0).Now(), b.Run(1).Now())
	require.NotEqual(t, b.Status(0), b.Status(1))
	require.Contains(t, b.Address(), "shout-20")
	require.Contains(t, b.Address(), "vs=none")
}

func TestDetails(t *testing.T) {
	b := start(t, "loss=15&cevents=50")
	b.Advance(3 * time.Second)
	status := decode[Status](t, b.Status(0))
	require.Len(t, status.Events, listedEvents)
	for _, peer := range status.Peers {
		require.Len(t, peer.Cells, 33)
		require.Contains(t, peer.Cells, "1")
		require.Contains(t, peer.Cells, "x")
	}
	for id := range 150 {
		d := decode[FlightDetail](t, b.Flight(0, id))
		require.Len(t, d.Hex, 2*d.Size)
		require.LessOrEqual(t, len(d.Acknowledged), 33)
		for _, id := range d.Acknowledged {
			acknowledged := decode[FlightDetail](t, b.Flight(0, id))
			require.Equal(t, d.From.Other(), acknowledged.From)
			require.LessOrEqual(t, acknowledged.Arrives[0], d.Sent, "received before it was acknowledged")
		}
	}
	require.Equal(t, "null", string(b.Flight(0, 1_000_000)))
	e := decode[EventDetail](t, b.Event(0, sim.Client, 3))
	require.NotEmpty(t, e.Life)
	require.Contains(t, e.Life[0].Text, "Send")
	require.Equal(t, "null", string(b.Event(0, sim.Client, 1_000_000)))
}

// The cells are what really arrived.
func TestCells(t *testing.T) {
	for _, options := range []string{"", "&wide=1"} {
		b := start(t, "loss=20&jitter=30&reorder=10&client=120"+options)
		r := b.Run(0)
		seen := map[byte]int{}
		for range 200 {
			b.Advance(b.Now() + 17*time.Millisecond)
			for side, peer := range decode[Status](t, b.Status(0)).Peers {
				for i := range peer.Cells {
					seen[peer.Cells[i]]++
					f, ok := r.Find(sim.Side(1-side), uint16(peer.Ack-i))
					if !ok || !peer.Heard {
						require.Equal(t, byte('-'), peer.Cells[i])
						continue
					}
					want := map[bool]byte{true: '1', false: 'o'}[f.Got[0] != sim.InFlight]
					if f.Copies == 0 {
						want = 'x'
					}
					require.Equal(t, string(want), string(peer.Cells[i]))
				}
			}
		}
		for _, is := range "1xo-" {
			require.Positive(t, seen[byte(is)], string(is))
		}
	}
}

// A list that is empty is a list to the page, not null.
func TestNothingIsNull(t *testing.T) {
	b := start(t, "cevents=0&sevents=0&input=0")
	b.Advance(0)
	require.NotContains(t, string(b.Status(0)), "null")
	require.NotContains(t, string(b.Flight(0, 0)), "null")
	require.NotContains(t, string(b.Samples(0, time.Hour)), "null")
	require.NotContains(t, string(Parse("")), "null")
	b = start(t, "")
	b.Advance(time.Second)
	require.NotContains(t, string(b.Event(0, sim.Client, 0)), "null")
}

func TestParseFallsBack(t *testing.T) {
	p := decode[Parsed](t, Parse("loss=500"))
	require.Contains(t, p.Error, "loss")
	require.Equal(t, "seed=1", p.Address)
	p = decode[Parsed](t, Parse("seed=18446744073709551615&link=cafe"))
	require.Empty(t, p.Error)
	require.Equal(t, "18446744073709551615", p.Seed)
	require.Equal(t, "cafe", p.Preset)
}
