package scenario

import (
	"bytes"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ackbits/ackbits"
	"github.com/ackbits/ackbits/simnet"
)

const ms = time.Millisecond

// short is W1 for so long.
func short(d time.Duration) Traffic {
	t := W1
	t.Duration = d
	return t
}

func TestEveryEventIsDeliveredOnce(t *testing.T) {
	bad := simnet.Config{Delay: 40 * ms, Jitter: 30 * ms, Loss: 0.2, Duplicate: 0.1, Reorder: 0.1, ReorderDelay: 60 * ms}
	for name, cfg := range map[string]ackbits.Config{
		"fixed":    {},
		"adaptive": {Adaptive: true, Bundle: true},
		"ordered":  {Ordered: true, Wide: true},
	} {
		for _, onTicks := range []bool{false, true} {
			traffic := short(20 * time.Second)
			traffic.OnTicks = onTicks
			r := Run(1, cfg, bad, traffic)
			require.NoError(t, r.Err, name)
			require.Equal(t, 2*20*20, r.Sent, name)
			require.Len(t, r.Latencies, r.Sent, name)
			require.Zero(t, r.Twice, name)
			require.GreaterOrEqual(t, r.Quantile(0), 40*ms, name)
		}
	}
}

func TestSameSeedSameResult(t *testing.T) {
	link := simnet.Config{Delay: 40 * ms, Jitter: 5 * ms, Loss: 0.1}
	cfg := ackbits.Config{Adaptive: true, Bundle: true}
	first := Run(7, cfg, link, short(10*time.Second))
	require.Equal(t, first, Run(7, cfg, link, short(10*time.Second)))
	require.NotEqual(t, first, Run(8, cfg, link, short(10*time.Second)))
}

// On a clean link of 10 ms an event leaves on its tick as a datagram of its own
// and is acknowledged before the fixed rule repeats it, so all can be counted by
// hand.
func TestCostsOnACleanLink(t *testing.T) {
	const events, states = 2 * 10 * 20, 10 * (60 + 20)
	r := Run(1, ackbits.Config{}, simnet.Config{Delay: 10 * ms}, short(10*time.Second))
	require.Equal(t, events, r.Sent)
	require.InDelta(t, 1, r.Copies, 0.001)
	require.Equal(t, 10*ms, r.Quantile(0))
	require.Equal(t, 10*ms, r.Quantile(1))
	// Each event is a datagram: headers of 28 and 18, a count, an id, a length.
	// Each state has our 18. The server's are 50 ms apart, so that a heartbeat
	// goes between two of them, a tick before it is late.
	require.InDelta(t, 28+18+1+4+64+(states*18+10*20*(28+18))/float64(events), r.Bytes, 1)
}

func TestOnTicksHandsInAtTheNextTick(t *testing.T) {
	traffic := short(5 * time.Second)
	traffic.OnTicks = true
	r := Run(1, ackbits.Config{}, simnet.Config{Delay: 10 * ms}, traffic)
	require.Equal(t, (time.Second / 60).Truncate(ms), r.Quantile(0).Truncate(ms))
	require.Equal(t, (time.Second / 60).Truncate(ms), r.Quantile(1).Truncate(ms))
}

func TestTrafficSpreadsItsEvents(t *testing.T) {
	for _, rate := range []int{0, 1, 7, 20, 60, 200} {
		traffic := Traffic{TickRate: 60, EventRate: rate}
		sum, most := 0, 0
		for tick := range 60 * 7 {
			sum += traffic.Events(tick)
			most = max(most, traffic.Events(tick))
		}
		require.Equal(t, 7*rate, sum)
		require.LessOrEqual(t, most, rate/60+1)
	}
	bursts := Traffic{TickRate: 60, EventRate: 20, Burst: 200, BurstGap: 2 * time.Second}
	for tick := range 500 {
		want := 0
		if tick%120 == 119 {
			want = 200
		}
		require.Equal(t, want, bursts.Events(tick))
	}
}

func TestQuantile(t *testing.T) {
	require.Zero(t, (&Result{}).Quantile(0.5))
	r := Result{Latencies: []time.Duration{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}}
	for q, want := range map[float64]time.Duration{0: 1, 0.5: 6, 0.89: 9, 0.9: 10, 0.999: 10, 1: 10} {
		require.Equal(t, want, r.Quantile(q), q)
	}
}

func TestAnEndedSessionIsReported(t *testing.T) {
	dead := simnet.Config{Loss: 1}
	r := Run(1, ackbits.Config{}, dead, short(20*time.Second))
	require.ErrorIs(t, r.Err, ackbits.ErrTimeout)
	require.Empty(t, r.Latencies)
	require.Positive(t, r.Sent)
}

// The observer sees every copy that the sessions count.
func TestObserverSeesEveryCopy(t *testing.T) {
	for _, cfg := range []ackbits.Config{{}, {Adaptive: true, Bundle: true}, {Adaptive: true, Bundle: true, Wide: true}} {
		copies, first := 0, map[[2]int]bool{}
		var events []ackbits.Event
		g := Game{
			Seed: 3, Config: cfg, Traffic: short(20 * time.Second),
			Link: simnet.Config{Delay: 50 * ms, Loss: 0.1},
			Observe: func(_ time.Duration, d simnet.Direction, what simnet.What, datagram []byte) {
				if what != simnet.Sent {
					return
				}
				events = Carried(events[:0], datagram)
				for _, e := range events {
					copies++
					first[[2]int{int(d), Number(e)}] = true
				}
			},
		}
		r := g.Play()
		require.Len(t, first, r.Sent)
		require.InDelta(t, r.Copies, float64(copies)/float64(r.Sent), 0.01)
		require.Equal(t, Run(3, cfg, g.Link, g.Traffic), r, "watching changes nothing")
	}
}

func TestAChangeIsOfBothLinks(t *testing.T) {
	lost := map[simnet.Direction]int{}
	var from, to time.Duration
	g := Game{
		Seed: 1, Traffic: short(9 * time.Second),
		Link:    simnet.Config{Delay: 20 * ms},
		Changes: []Change{{3 * time.Second, simnet.Config{Delay: 20 * ms, Loss: 0.5}}, {6 * time.Second, simnet.Config{Delay: 20 * ms}}},
		Observe: func(at time.Duration, d simnet.Direction, what simnet.What, _ []byte) {
			if what != simnet.Lost {
				return
			}
			if from == 0 {
				from = at
			}
			to = at
			lost[d]++
		},
	}
	require.NoError(t, func() error { r := g.Play(); return r.Err }())
	require.Positive(t, lost[simnet.AToB])
	require.Positive(t, lost[simnet.BToA])
	require.GreaterOrEqual(t, from, 3*time.Second)
	require.Less(t, to, 6*time.Second)
}

func TestCarried(t *testing.T) {
	list, err := ackbits.AppendEvents(nil, ackbits.Event{ID: 5, Data: []byte("one")}, ackbits.Event{ID: 9})
	require.NoError(t, err)
	of := func(kind ackbits.Type, payload ...[]byte) []byte {
		return append(ackbits.Header{Type: kind}.AppendTo(nil), bytes.Join(payload, nil)...)
	}
	inner := []byte{byte(ackbits.TypeSnapshot)}
	for name, datagram := range map[string][]byte{
		"an event datagram":      of(ackbits.TypeEvent, list),
		"a bundle":               of(ackbits.TypeBundle, inner, list, []byte("state")),
		"a bundle without state": of(ackbits.TypeBundle, inner, list),
	} {
		got := Carried(nil, datagram)
		require.Len(t, got, 2, name)
		require.Equal(t, uint16(5), got[0].ID, name)
		require.Equal(t, "one", string(got[0].Data), name)
		require.Equal(t, uint16(9), got[1].ID, name)
		require.Empty(t, got[1].Data, name)
	}
	before := []ackbits.Event{{ID: 1}}
	require.Equal(t, before, Carried(before, of(ackbits.TypeSnapshot, list)))
	for n := range len(of(ackbits.TypeBundle, inner, list)) { // none of the cut ones panics
		require.Equal(t, before, Carried(before, of(ackbits.TypeBundle, inner, list)[:n]))
	}
}
