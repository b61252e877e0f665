package sim

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/ackbits/ackbits/simnet"
)

func newRun(t require.TestingT, fragment string) *Run {
	s, err := Parse(fragment)
	require.NoError(t, err)
	r, err := New(s)
	require.NoError(t, err)
	return r
}

// allOptions are sets of options worth a run of each preset.
var allOptions = []string{"", "&sealed=1", "&adaptive=0&bundle=0", "&ordered=1&wide=1&sealed=1", "&bundle=0&eventrate=2000"}

func TestPresetsDeliverEachEventOnce(t *testing.T) {
	for _, preset := range Presets {
		for _, options := range allOptions {
			t.Run(preset.Key+options, func(t *testing.T) {
				r := newRun(t, "link="+preset.Key+options+"&do=20:cevents-0,20:sevents-0")
				r.Advance(20 * time.Second)
				sent := r.sent
				require.Greater(t, sent[Client], 190)
				require.Greater(t, sent[Server], 190)
				r.Advance(30 * time.Second)
				require.Equal(t, sent, r.sent, "none are sent after the last tick before")
				require.Equal(t, sent, r.handed, "handed over once each: twice would panic")
				for side := Client; side <= Server; side++ {
					require.NoError(t, r.Session(side).Err())
				}
			})
		}
	}
}

// What the trace says by itself is what the library and the links count.
func TestTraceAgreesWithTheCounters(t *testing.T) {
	for _, preset := range Presets {
		t.Run(preset.Key, func(t *testing.T) {
			r := newRun(t, "link="+preset.Key+"&dup=3&reorder=4&jitter=20")
			r.Advance(15 * time.Second)
			oldest, count := r.Oldest()
			require.Zero(t, oldest, "all is remembered")
			require.Zero(t, r.forgotten, "all was foretold")
			var sent, lost, twice, acked, copies, received [2]int
			var verdicts [2][GotRefused + 1]int
			for id := range count {
				f, ok := r.Flight(id)
				require.True(t, ok)
				sent[f.From]++
				copies[f.From] += len(f.Events)
				if f.Copies == 0 {
					require.NotEqual(t, simnet.Delivered, f.Fate)
					lost[f.From]++
				}
				if f.Copies == 2 {
					twice[f.From]++
				}
				if f.AckedAt != never {
					acked[f.From]++
					require.GreaterOrEqual(t, f.AckedAt, f.Arrives[0])
				}
				for i := range f.Copies {
					if f.Arrives[i] <= r.Now() {
						require.NotEqual(t, UnderWay, f.Got[i])
						verdicts[f.From][f.Got[i]]++
						received[f.From]++
					} else {
						require.Equal(t, UnderWay, f.Got[i])
					}
				}
			}
			require.Positive(t, verdicts[Client][GotLate])
			for side := Client; side <= Server; side++ {
				link, stats := r.pair.Link(simnet.Direction(side)).Stats(), r.Session(side).Stats()
				require.EqualValues(t, stats.DatagramsSent, sent[side])
				require.EqualValues(t, stats.Delivered+stats.LateAcks, acked[side])
				require.EqualValues(t, stats.EventsSent+stats.EventsResent, copies[side])
				require.Equal(t, link.Lost, lost[side])
				require.EqualValues(t, r.Session(side.Other()).Stats().Duplicates, verdicts[side][GotDuplicate])
				require.EqualValues(t, r.Session(side.Other()).Stats().Stale, verdicts[side][GotStale])
				require.Equal(t, link.Duplicated, twice[side])
				require.EqualValues(t, r.Session(side.Other()).Stats().DatagramsReceived, received[side])
				delivered := 0
				for n := range r.EventCount(side) {
					e, ok := r.Event(side, n)
					require.True(t, ok)
					if e.AckedAt != never {
						delivered++
						require.GreaterOrEqual(t, e.AckedAt, e.FirstIn)
						require.GreaterOrEqual(t, e.HandedAt, e.FirstIn)
					}
				}
				require.EqualValues(t, stats.EventsDelivered, delivered)
				for event := range r.Session(side).Undelivered() {
					e, ok := r.Event(side, r.number(side, event.ID))
					require.True(t, ok)
					require.Equal(t, never, e.AckedAt)
				}
				ack, bits, ok := r.Acks(side)
				require.True(t, ok)
				require.NotZero(t, bits)
				newest := uint16(0)
				for id := range count {
					if f, _ := r.Flight(id); f.From == side {
						newest = f.Header.Ack
					}
				}
				require.Less(t, ack-newest, uint16(100), "as the last header said, or a little on")
			}
		})
	}
}

// How a run is cut into calls changes nothing, and what was done on the way
// happens again from the script.
func TestCallsDoNotMatter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		preset := rapid.SampledFrom(Presets).Draw(t, "preset")
		r := newRun(t, fmt.Sprintf("seed=%d&link=%s&dup=2&jitter=10", rapid.Uint64Range(0, 99).Draw(t, "seed"), preset.Key))
		for range rapid.IntRange(1, 12).Draw(t, "calls") {
			switch rapid.IntRange(0, 6).Draw(t, "call") {
			case 0:
				r.NextDatagram()
			case 1:
				r.NextTick()
			case 2:
				require.NoError(t, r.Do(VerbBurst, rapid.IntRange(1, 300).Draw(t, "events")))
			case 3:
				require.NoError(t, r.Do(VerbCut, rapid.IntRange(1, 900).Draw(t, "ms")))
			case 4:
				f := rapid.SampledFrom([]Field{Loss, RTT, Jitter, ClientTicks, ServerTicks, ClientEvents, OutageLength, OutageEvery, Rate, BurstLength}).Draw(t, "field")
				require.NoError(t, r.Do(Infos[f].Key, rapid.IntRange(Infos[f].Min, min(Infos[f].Max, 1000)).Draw(t, "value")))
			default:
				r.Advance(r.Now() + time.Duration(rapid.IntRange(0, 700_000_000).Draw(t, "ns")))
			}
		}
		again, err := Parse(r.Origin().String())
		require.NoError(t, err)
		replay, err := New(again)
		require.NoError(t, err)
		replay.Advance(r.Now())
		r.Advance(r.Now()) // a step may have stopped in the middle of an instant
		require.Equal(t, r.Figures(), replay.Figures())
		require.Equal(t, r.Samples(), replay.Samples())
	})
}

func TestSeedsDiffer(t *testing.T) {
	a, b := newRun(t, "seed=1&loss=5"), newRun(t, "seed=2&loss=5")
	a.Advance(5 * time.Second)
	b.Advance(5 * time.Second)
	require.NotEqual(t, a.digest, b.digest)
}

func TestStepsStopAtTheNextThing(t *testing.T) {
	r := newRun(t, "seed=3")
	for range 200 {
		_, before := r.Oldest()
		arrived, at := r.received(), r.Now()
		r.NextDatagram()
		_, after := r.Oldest()
		require.True(t, after > before || r.received() > arrived, "something happened at %v", r.Now())
		require.Less(t, r.Now()-at, 20*time.Millisecond, "and nothing was passed over")
	}
	r = newRun(t, "seed=3&client=50&server=50")
	r.Advance(0)
	for i := range 10 {
		require.Equal(t, time.Duration(i)*20*time.Millisecond, r.Now())
		r.NextTick()
	}
}

func (r *Run) received() (n uint64) {
	for side := Client; side <= Server; side++ {
		n += r.Session(side).Stats().DatagramsReceived
	}
	return n
}

func TestLeaving(t *testing.T) {
	r := newRun(t, "do=1:leave-0")
	r.Advance(3 * time.Second)
	at, reason := r.Ended(Client)
	require.Equal(t, time.Second, at)
	require.ErrorContains(t, reason, "closed")
	at, reason = r.Ended(Server)
	require.Equal(t, 1030*time.Millisecond, at)
	require.ErrorContains(t, reason, "left")
}

// Datagrams may wait in a queue for longer than they are remembered.
func TestQueueLongerThanMemory(t *testing.T) {
	r := newRun(t, "rate=1&queue=1024&client=250&server=250&cevents=0&sevents=0")
	r.Advance(2 * time.Minute)
	require.Positive(t, r.forgotten)
}

// The extremes of every setting can be played.
func TestExtremes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := Default()
		for f, info := range Infos {
			s.Values[f] = rapid.SampledFrom([]int{info.Min, info.Default, info.Default, info.Max}).Draw(t, info.Key)
		}
		r, err := New(s)
		require.NoError(t, err)
		r.Advance(1500 * time.Millisecond)
		require.NoError(t, r.Do(VerbBurst, 2000))
		r.Advance(2500 * time.Millisecond)
		require.Zero(t, r.forgotten)
	})
}

func TestSettingsInAnAddress(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := Default()
		s.Seed = rapid.Uint64().Draw(t, "seed")
		for f, info := range Infos {
			s.Values[f] = rapid.IntRange(info.Min, info.Max).Draw(t, info.Key)
		}
		s.Versus = s.Values
		if s.Compare = rapid.Bool().Draw(t, "compare"); s.Compare {
			for f, info := range Infos {
				if info.Group == GroupOptions {
					s.Versus[f] = rapid.IntRange(info.Min, info.Max).Draw(t, "vs "+info.Key)
				}
			}
		}
		for at := range rapid.IntRange(0, 3).Draw(t, "actions") {
			s.Script = append(s.Script,
				Action{time.Duration(at)*time.Second + time.Duration(rapid.IntRange(0, 999_999).Draw(t, "µs"))*time.Microsecond, VerbBurst, 7},
				Action{time.Duration(at+1) * time.Second, "loss", rapid.IntRange(0, Infos[Loss].Max).Draw(t, "loss")})
		}
		s.Moment = time.Duration(rapid.IntRange(0, 9_999_999).Draw(t, "moment")) * time.Microsecond
		again, err := Parse(s.String())
		require.NoError(t, err)
		require.Equal(t, s, again)
	})
}

func TestMalformedAddresses(t *testing.T) {
	for fragment, word := range map[string]string{
		"loss":                  `"loss" has no value`,
		"loss=91":               "loss: 91 is not from 0 to 90",
		"loss=1.234":            "is not a number",
		"loss=-1":               "is not a number",
		"rtt=sixty":             "is not a number",
		"color=red":             `there is no setting "color"`,
		"link=moon":             `there is no preset "moon"`,
		"seed=-1":               "is not a whole number",
		"vs=loss":               `there is no option "loss"`,
		"vs=adaptive-2":         "adaptive: 2 is not from 0 to 1",
		"do=1":                  "is not of the form",
		"do=1:fly-1":            `nothing called "fly"`,
		"do=1:wide-1":           "cannot change on the way",
		"do=2:loss-1,1:loss-2":  "comes after something later",
		"do=1:shout-100000":     "is not from 1 to 2000",
		"t=1e9":                 "is not a time",
		"t=4000":                "is not a time",
		"rtt=99999999999999999": "is not a number",
		"&":                     "has no value",
	} {
		s, err := Parse(fragment)
		require.ErrorContains(t, err, word, fragment)
		require.Equal(t, Default(), s, "and the defaults stand")
	}
}

// Any fragment gives settings that can be played, or an error.
func FuzzParse(f *testing.F) {
	for _, fragment := range []string{"", "seed=7&loss=2.5&vs=adaptive,eventrate-500&do=1.5:loss-20,3:shout-50&t=4.25", "link=cafe&rate=90"} {
		f.Add(fragment)
	}
	f.Fuzz(func(t *testing.T, fragment string) {
		s, err := Parse(fragment)
		if err != nil {
			return
		}
		again, err := Parse(s.String())
		require.NoError(t, err)
		require.Equal(t, s, again)
		_, err = New(s)
		require.NoError(t, err)
	})
}

func TestDecodingCoversEveryByte(t *testing.T) {
	for _, options := range allOptions {
		r := newRun(t, "loss=10&cevents=100"+options)
		r.Advance(3 * time.Second)
		_, count := r.Oldest()
		events := 0
		for id := range count {
			f, _ := r.Flight(id)
			header, _, payload, err := DecodeHeader(f.Bytes)
			require.NoError(t, err)
			at := 0
			for _, p := range header {
				require.Equal(t, at, p.From)
				at = p.To
			}
			require.Equal(t, payload, at)
			sealed := r.Settings().Values[Sealed] != 0
			require.Equal(t, sealed, f.Sealed())
			if sealed {
				require.Len(t, f.Bytes, payload+len(f.Plain)+16)
				require.False(t, len(f.Plain) > 3 && bytes.Contains(f.Bytes, f.Plain), "the payload is not to be read on the way")
			} else {
				require.Equal(t, f.Plain, f.Bytes[payload:])
			}
			at = 0
			parts, inner := DecodePayload(f.Header.Type, f.Plain)
			require.Equal(t, f.Inner, inner)
			for _, p := range parts {
				require.Equal(t, at, p.From)
				at = p.To
			}
			require.Equal(t, len(f.Plain), at)
			events += len(f.Events)
		}
		require.Positive(t, events)
	}
}

// Bytes cannot hurt the decoder either.
func TestDecodingOfNonsense(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 10_000 {
		b := make([]byte, rng.IntN(60))
		for i := range b {
			b[i] = byte(rng.UintN(16))
		}
		_, _, _, _ = DecodeHeader(b)
		parts, _ := DecodePayload(5, b)
		for _, p := range parts {
			require.LessOrEqual(t, p.To, len(b))
		}
		DecodePayload(8, b)
	}
}

func TestHistogram(t *testing.T) {
	var h histogram
	require.Equal(t, never, h.quantile(500))
	for i := range 1000 {
		h.add(time.Duration(i+1) * time.Millisecond)
	}
	require.Equal(t, 500*time.Millisecond, h.quantile(500))
	require.Equal(t, 990*time.Millisecond, h.quantile(990))
	require.Equal(t, 1000*time.Millisecond, h.quantile(1000))
	h.add(time.Hour)
	require.Equal(t, time.Hour, h.max)
	require.Len(t, h.counts, maxHistogram+1)
}
