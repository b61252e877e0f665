package sim

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/ackbits/ackbits"
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
				require.Equal(t, sent, r.delivered, "delivered once each: twice would panic")
				for side := Client; side <= Server; side++ {
					require.NoError(t, r.Session(side).Err())
				}
			})
		}
	}
}

// seen is what a trace tells by itself, by sender.
type seen struct {
	sent, lost, twice, acked, copies, received [2]int
	arrivals                                   [2][GotRefused + 1]int
}

func look(t *testing.T, r *Run) (s seen) {
	oldest, count := r.Oldest()
	require.Zero(t, oldest, "all is remembered")
	require.Zero(t, r.forgotten, "all was foretold")
	for id := range count {
		f, ok := r.Flight(id)
		require.True(t, ok)
		s.sent[f.From]++
		s.copies[f.From] += len(f.Events)
		switch f.Copies {
		case 0:
			require.NotEqual(t, simnet.Delivered, f.Outcome)
			s.lost[f.From]++
		case 2:
			s.twice[f.From]++
		}
		if f.AckedAt != never {
			s.acked[f.From]++
			require.GreaterOrEqual(t, f.AckedAt, f.Arrives[0])
		}
		for i := range f.Copies {
			require.Equal(t, f.Arrives[i] > r.Now(), f.Got[i] == InFlight)
			if f.Got[i] != InFlight {
				s.arrivals[f.From][f.Got[i]]++
				s.received[f.From]++
			}
		}
	}
	return s
}

// What the trace says by itself is what the library and the links count.
func TestTraceAgreesWithTheCounters(t *testing.T) {
	for _, preset := range Presets {
		t.Run(preset.Key, func(t *testing.T) {
			r := newRun(t, "link="+preset.Key+"&dup=3&reorder=4&jitter=20")
			r.Advance(15 * time.Second)
			s := look(t, r)
			require.Equal(t, s.sent, r.datagrams)
			require.Equal(t, s.lost, r.lost)
			require.Positive(t, s.arrivals[Client][GotLate])
			for side := Client; side <= Server; side++ {
				link, stats, peer := r.pair.Link(simnet.Direction(side)).Stats(), r.Session(side).Stats(), r.Session(side.Other()).Stats()
				require.Equal(t, link.Lost, s.lost[side])
				require.Equal(t, link.LostInQueue, r.queueLost[side])
				require.EqualValues(t, link.BytesSent, r.bytes[side])
				require.Equal(t, link.Duplicated, s.twice[side])
				require.EqualValues(t, stats.DatagramsSent, s.sent[side])
				require.EqualValues(t, stats.Delivered+stats.LateAcks, s.acked[side])
				require.EqualValues(t, stats.EventsSent+stats.EventsResent, s.copies[side])
				require.EqualValues(t, stats.EventsDelivered, acknowledged(t, r, side))
				require.EqualValues(t, peer.Duplicates, s.arrivals[side][GotDuplicate])
				require.EqualValues(t, peer.Stale, s.arrivals[side][GotStale])
				require.EqualValues(t, peer.DatagramsReceived, s.received[side])
			}
		})
	}
}

// acknowledged counts the events of a side that it knows to be delivered, and
// checks that the others are those that its session calls undelivered.
func acknowledged(t *testing.T, r *Run, side Side) (n int) {
	for number := range r.EventCount(side) {
		e, ok := r.Event(side, number)
		require.True(t, ok)
		if e.AckedAt != never {
			n++
			require.GreaterOrEqual(t, e.AckedAt, e.FirstIn)
			require.GreaterOrEqual(t, e.DeliveredAt, e.FirstIn)
		}
	}
	for event := range r.Session(side).Undelivered() {
		e, ok := r.Event(side, r.number(side, event.ID))
		require.True(t, ok)
		require.Equal(t, never, e.AckedAt)
	}
	return n
}

// What a side is said to acknowledge is what its next header does.
func TestAcksAreThoseOfTheNextHeader(t *testing.T) {
	for _, options := range []string{"", "&wide=1&sealed=1"} {
		r := newRun(t, "loss=20&jitter=30&dup=5&reorder=5"+options)
		compared := 0
		for range 3000 {
			_, before := r.Oldest()
			arrived := r.received()
			r.NextDatagram()
			if _, after := r.Oldest(); after != before+1 || r.received() != arrived {
				continue // more than one thing happened at once
			}
			f, _ := r.Flight(before)
			ack, bits, ok := r.Acks(f.From)
			require.Equal(t, ok, f.Header.Ack != 65535 || f.Header.AckBits != 0)
			require.Equal(t, f.Header.Ack, ack)
			require.Equal(t, f.Header.AckBits, bits)
			compared++
		}
		require.Greater(t, compared, 500)
	}
}

func TestLatenciesAreTheEvents(t *testing.T) {
	r := newRun(t, "link=bursts&cevents=40")
	r.Advance(20 * time.Second)
	var all []time.Duration
	for side := Client; side <= Server; side++ {
		for n := range r.EventCount(side) {
			if e, _ := r.Event(side, n); e.DeliveredAt != never {
				all = append(all, e.DeliveredAt-e.SentAt)
			}
		}
	}
	slices.Sort(all)
	require.Greater(t, len(all), 900)
	require.Equal(t, len(all), r.delivered[0]+r.delivered[1])
	for _, of1000 := range []int{1, 500, 990, 999, 1000} {
		require.Equal(t, all[(len(all)*of1000+999)/1000-1].Truncate(histogramStep), r.latencies.quantile(of1000), "%d", of1000)
	}
	require.Equal(t, all[len(all)-1], r.longest())
	bins := r.Latencies(10*time.Millisecond, 20)
	sum := 0
	for _, n := range bins {
		sum += n
	}
	require.Equal(t, len(all), sum)
	require.Zero(t, bins[0]+bins[1]+bins[2], "none is faster than 30 ms")
	samples := r.Samples()
	require.Equal(t, r.datagrams, samples[len(samples)-1].Datagrams)
	require.Len(t, samples, 41)
}

// When a link turns narrow, the samples tell the queue from the round trip without it.
func TestSamplesTellTheQueueFromTheRoundTrip(t *testing.T) {
	r := newRun(t, "rtt=60&rate=90&queue=11&do=8:rate-40")
	r.Advance(14 * time.Second)
	for _, s := range r.Samples()[4:] {
		require.InDelta(t, 90, milliseconds(s.MinRTT[Client]), 10, "60 and two datagrams' time")
		require.Equal(t, s.At > 8500*time.Millisecond, s.Queue[Client] > 20*time.Millisecond, s.At)
		require.InDelta(t, milliseconds(s.RTT[Client]), milliseconds(s.MinRTT[Client]+s.Queue[Client]), 30)
	}
}

func milliseconds(d time.Duration) float64 { return d.Seconds() * 1000 }

// Outages come when they are said to, long after the first ones and after a change.
func TestOutages(t *testing.T) {
	r := newRun(t, "outage=300&outages=1000&do=40.25:outages-2000,40.25:outage-500&cevents=0&sevents=0")
	r.Advance(50 * time.Second)
	out := func(at time.Duration) bool {
		if at <= 40250*time.Millisecond { // the ticks come before the change
			return at >= time.Second && at%time.Second < 300*time.Millisecond
		}
		since := at - 40250*time.Millisecond
		return since >= 2*time.Second && since%(2*time.Second) < 500*time.Millisecond
	}
	_, count := r.Oldest()
	lost := 0
	for id := range count {
		f, ok := r.Flight(id)
		require.True(t, ok)
		require.Equal(t, out(f.SentAt), f.Copies == 0, "%v", f.SentAt)
		lost += 1 - f.Copies
	}
	require.Greater(t, lost, 500)
}

func TestCut(t *testing.T) {
	r := newRun(t, "do=1:cut-100")
	r.Advance(2 * time.Second)
	_, count := r.Oldest()
	for id := range count {
		f, _ := r.Flight(id)
		require.Equal(t, f.SentAt >= time.Second && f.SentAt < 1100*time.Millisecond && !(f.SentAt == time.Second && f.Copies == 1), f.Copies == 0, "%v", f.SentAt)
	}
}

// A rate that changes on the way holds from then on.
func TestRatesOnTheWay(t *testing.T) {
	r := newRun(t, "client=60&cevents=10&do=2:client-125,2:cevents-50,5:shout-30")
	count := func(t ackbits.Type) (n int) {
		_, all := r.Oldest()
		for id := range all {
			if f, _ := r.Flight(id); f.From == Client && (f.Header.Type == t || f.Inner == t) {
				n++
			}
		}
		return n
	}
	r.Advance(2*time.Second - time.Millisecond)
	inputs, events := count(ackbits.TypeInput), r.sent[Client]
	require.Equal(t, 120, inputs)
	require.InDelta(t, 20, events, 1)
	r.Advance(4 * time.Second)
	require.Equal(t, inputs+1+250, count(ackbits.TypeInput), "one more at the old rate, and none for the change")
	require.InDelta(t, events+100, r.sent[Client], 2)
	r.Advance(5*time.Second - time.Millisecond)
	events = r.sent[Client]
	r.Advance(5*time.Second + time.Millisecond)
	require.InDelta(t, events+30, r.sent[Client], 1)
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
