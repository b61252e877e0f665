package main

import (
	"encoding/xml"
	"errors"
	"html"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ackbits/ackbits"
	"github.com/ackbits/ackbits/internal/scenario"
	"github.com/ackbits/ackbits/simnet"
)

const ms = time.Millisecond

func brokenLink(loss float64) simnet.Config { return simnet.Config{Delay: 50 * ms, Loss: loss} }

func short(d time.Duration) scenario.Traffic {
	t := scenario.W1
	t.Duration = d
	return t
}

// Each peer delivers each message once, on its own clock but in virtual time.
func TestPeersDeliverEachMessageOnce(t *testing.T) {
	for _, p := range peers {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			clean, _ := p.play(t, 1, link{cfg: brokenLink(0)}, short(5*time.Second))
			require.NoError(t, clean.Err)
			require.Equal(t, 2*5*20, clean.Sent)
			require.Len(t, clean.Latencies, clean.Sent)
			require.GreaterOrEqual(t, clean.Latencies[0], 50*ms)
			require.Less(t, clean.Quantile(0.9), 60*ms)
			require.Greater(t, clean.Bytes, 64.+28)

			bad, _ := p.play(t, 1, link{cfg: brokenLink(0.1)}, short(20*time.Second))
			require.NoError(t, bad.Err)
			require.Len(t, bad.Latencies, bad.Sent)
			require.Zero(t, bad.Twice)
			require.GreaterOrEqual(t, bad.Latencies[0], 50*ms)
			require.Greater(t, bad.Quantile(0.99), 100*ms, "a lost one waits for a round trip at least")
		})
	}
}

func TestQuantilesCountWhatNeverArrived(t *testing.T) {
	o := outcome{latencies: []time.Duration{1, 2, 3, 4, 5, 6, 7, 8}, sent: 10}
	require.Equal(t, time.Duration(6), o.quantile(0.5))
	require.Equal(t, time.Duration(8), o.quantile(0.79))
	require.Equal(t, never, o.quantile(0.8))
	require.Equal(t, never, o.quantile(1))
	require.Equal(t, never, (&outcome{}).quantile(0.5))
}

func TestOutcomesWeighGamesByTheirEvents(t *testing.T) {
	var o outcome
	o.add(scenario.Result{Sent: 10, Copies: 1, Bytes: 100, Latencies: make([]time.Duration, 10)})
	o.add(scenario.Result{Sent: 30, Copies: 2, Bytes: 200, Latencies: make([]time.Duration, 30)})
	require.Equal(t, 40, o.sent)
	require.InDelta(t, 1.75, o.copies, 1e-9)
	require.InDelta(t, 175, o.bytes, 1e-9)
	require.NoError(t, o.err)
	o.add(scenario.Result{Twice: 1})
	require.Error(t, o.err)
}

func TestSpecifications(t *testing.T) {
	p, err := parsePolicy("adaptive+bundle+rate=2000+wide")
	require.NoError(t, err)
	require.True(t, p.cfg.Adaptive && p.cfg.Bundle && p.cfg.Wide)
	require.Equal(t, 2000, p.cfg.EventRate)
	p, err = parsePolicy("fixed+resend=50ms+ordered")
	require.NoError(t, err)
	require.Equal(t, 50*ms, p.cfg.ResendDelay)
	p, err = parsePolicy("kcp")
	require.NoError(t, err)
	require.Equal(t, "kcp", p.peer.name)

	l, err := parseLink("5%+rtt=20ms+jitter=3ms+dup=1%+reorder=2%+bursts")
	require.NoError(t, err)
	want := simnet.Config{Delay: 10 * ms, Jitter: 3 * ms, Loss: 0.05, Duplicate: 0.01, Reorder: 0.02, ReorderDelay: 30 * ms, Burst: bursts}
	require.Equal(t, want, l.cfg)

	l, err = parseLink("rate=96+queue=400ms+rtt=60ms+outage=300ms")
	require.NoError(t, err)
	require.Equal(t, 12_000, l.cfg.Rate) // bytes a second
	require.Equal(t, 4_800, l.cfg.Queue)
	require.Equal(t, simnet.UDPOverIPv4, l.cfg.Overhead)
	require.Equal(t, simnet.Window{From: 7500 * ms, To: 7800 * ms}, l.cfg.Blackouts[1])

	l, err = parseLink("police=300+10%+withhold=20s")
	require.NoError(t, err)
	require.Equal(t, scenario.Policer{Rate: 37_500, Burst: 4_687}, l.police)
	require.Equal(t, simnet.Window{From: 10 * time.Second, To: 30 * time.Second}, l.game(1, ackbits.Config{}, scenario.W1).Withhold)
	l, err = parseLink("rate=240+queue=200ms+squeeze=40%")
	require.NoError(t, err)
	changes := l.changes(time.Minute)
	require.Len(t, changes, 4)
	require.Equal(t, 40*time.Second, changes[2].At)
	require.Equal(t, 12_000, changes[2].Link.Rate)
	require.Equal(t, 2_400, changes[2].Link.Queue)
	require.Equal(t, scenario.Change{At: 50 * time.Second, Link: l.cfg}, changes[3])

	w, err := parseWorkload("burst=300+gap=1s+size=100+ontick")
	require.NoError(t, err)
	require.Equal(t, 300, w.traffic.Burst)
	require.Equal(t, time.Second, w.traffic.BurstGap)
	require.True(t, w.traffic.OnTicks)
	w, err = parseWorkload("w1+rate=50")
	require.NoError(t, err)
	require.Equal(t, 50, w.traffic.EventRate)

	for _, args := range [][]string{
		{"-policies", "slow"}, {"-policies", ""}, {"-policies", "fixed,fixed"}, {"-policies", "fixed+resend=x"}, {"-policies", "adaptive+rate=-1"},
		{"-links", "91%"}, {"-links", "NaN%"}, {"-links", "rtt=9s"}, {"-links", "5"}, {"-bad", "x"}, {"-links", "queue=1s"}, {"-links", "squeeze=40%"}, {"-links", "rate=100+queue=1s+squeeze=1%"}, {"-links", "police=7"}, {"-links", "withhold=1m"}, {"-links", "withhold=x"}, {"-bad", "police=300"}, {"-bad", "rate=100+queue=1s+squeeze=50%"}, {"-bad", "withhold=1s"}, {"-links", "rate=7"}, {"-links", "outage=5h"}, {"-workloads", "burst+gap=2m"},
		{"-workloads", "w2"}, {"-workloads", "w1+size=7"}, {"-seeds", "a"}, {"-duration", "0s"}, {"rest"},
	} {
		_, err := parseArgs(args, io.Discard, io.Discard)
		require.Error(t, err, args)
	}
}

// The story of a slow event: its copies are lost until one arrives, and some
// time after it the sender knows.
func TestTell(t *testing.T) {
	p, err := parsePolicy("fixed")
	require.NoError(t, err)
	l := lab{seeds: []uint64{1}, duration: 30 * time.Second}
	w1 := workload{"w1", scenario.W1}
	s, ok := l.tell(p, link{cfg: brokenLink(0.2)}, w1, 0.99)
	require.True(t, ok)
	require.Greater(t, s.latency, 150*ms-1)
	require.True(t, s.copies[0].lost)
	first := slices.IndexFunc(s.copies, func(f flight) bool { return !f.lost })
	require.Equal(t, s.latency, s.copies[first].arrived)
	require.Equal(t, 50*ms, s.copies[first].arrived-s.copies[first].sent)
	require.GreaterOrEqual(t, s.known, s.latency+50*ms)
	for i, f := range s.copies[1:] {
		require.GreaterOrEqual(t, f.sent-s.copies[i].sent, 100*ms)
		require.False(t, f.bundled)
	}
	_, ok = l.tell(p, link{cfg: brokenLink(0)}, workload{traffic: scenario.Traffic{TickRate: 60}}, 0.99)
	require.False(t, ok)
}

// What the report draws as the event at the p99 is the p99 of its table.
func TestTheEventAtTheP99IsThatOfTheTable(t *testing.T) {
	l := lab{seeds: []uint64{1, 2}, duration: 30 * time.Second}
	for _, names := range [][3]string{
		{"adaptive+bundle", "10%", "w1"}, {"fixed", "bursts", "w1"}, {"adaptive", "5%+dup=5%+jitter=10ms", "burst=50"}, {"fixed+bundle", "30%", "busy"},
	} {
		p, err := parsePolicy(names[0])
		require.NoError(t, err)
		over, err := parseLink(names[1])
		require.NoError(t, err)
		with, err := parseWorkload(names[2])
		require.NoError(t, err)
		l.policies, l.links, l.workloads = []policy{p}, []link{over}, []workload{with}
		cell := l.run(t, func() {})[0][0][0]
		for _, q := range []float64{0.5, 0.99, 0.999} {
			s, ok := l.tell(p, over, with, q)
			require.True(t, ok)
			require.Equal(t, cell.quantile(q), s.latency, "%v %v", names, q)
		}
	}
}

// Over a link with a rate the state shares it, with each policy, and is measured alike.
func TestStateOnANarrowLink(t *testing.T) {
	l := lab{seeds: []uint64{1}, duration: 10 * time.Second}
	for _, name := range []string{"fixed", "adaptive+bundle", "kcp", "quic"} {
		p, err := parsePolicy(name)
		require.NoError(t, err)
		l.policies = append(l.policies, p)
	}
	for _, name := range []string{"rate=10000+queue=100ms", "rate=100+queue=200ms", "10%"} {
		over, err := parseLink(name)
		require.NoError(t, err)
		l.links = append(l.links, over)
	}
	l.workloads = []workload{{"w1", scenario.W1}}
	cells := l.run(t, func() {})[0]
	for k := range l.policies {
		wide, narrow, none := &cells[0][k].states, &cells[1][k].states, &cells[2][k].states
		require.InDelta(t, 800, wide.sent, 30, l.policies[k].name)
		require.Less(t, wide.lost(), 0.02)
		require.Less(t, p99(wide.ages), 60*ms)
		require.GreaterOrEqual(t, p99(narrow.ages), 60*ms, "8 to 10 ms a datagram")
		require.Zero(t, none.sent)
	}
}

// What a policer drops is lost, with each policy, and what arrives is as young as ever;
// a squeeze makes it late.
func TestStateUnderAPolicerAndInASqueeze(t *testing.T) {
	l := lab{seeds: []uint64{1}, duration: 25 * time.Second}
	for _, name := range []string{"fixed", "adaptive+bundle", "kcp", "quic"} {
		p, err := parsePolicy(name)
		require.NoError(t, err)
		l.policies = append(l.policies, p)
	}
	for _, name := range []string{"police=60", "rate=240+queue=200ms+squeeze=30%"} {
		over, err := parseLink(name)
		require.NoError(t, err)
		l.links = append(l.links, over)
	}
	l.workloads = []workload{{"w1", scenario.W1}}
	cells := l.run(t, func() {})[0]
	for k, p := range l.policies {
		police, squeeze := &cells[0][k].states, &cells[1][k].states
		require.GreaterOrEqual(t, police.sent, 1990, p.name)
		require.Greater(t, police.lost(), 0.02, p.name)
		require.Less(t, p99(police.ages), 51*ms, p.name)
		require.GreaterOrEqual(t, squeeze.sent, 1990, p.name)
		require.Greater(t, p99(squeeze.ages), 100*ms, p.name)
		require.Less(t, squeeze.ages[len(squeeze.ages)/2], 70*ms, "for most of the time it is not squeezed: %s", p.name)
	}
	notes := strings.Join(l.notes(cells), "\n")
	require.Contains(t, notes, "a policer has no queue")
	require.Contains(t, notes, "30 % of its rate")
}

// State that is withheld takes its bundled events with it, once.
func TestWithheldStateDelaysWhatRidesInIt(t *testing.T) {
	over, err := parseLink("withhold=5s")
	require.NoError(t, err)
	l := lab{seeds: []uint64{1}, duration: 20 * time.Second, links: []link{over}, workloads: []workload{{"w1", scenario.W1}}}
	for _, name := range []string{"fixed", "fixed+bundle"} {
		p, err := parsePolicy(name)
		require.NoError(t, err)
		l.policies = append(l.policies, p)
	}
	cells := l.run(t, func() {})[0][0]
	require.Equal(t, 50*ms, cells[0].quantile(0.99))
	require.Equal(t, 50*ms, cells[1].quantile(0.5))
	require.GreaterOrEqual(t, cells[1].quantile(0.99), 150*ms)
	require.Len(t, cells[1].latencies, cells[1].sent)
}

func TestCopiesOverTime(t *testing.T) {
	p, err := parsePolicy("adaptive+bundle")
	require.NoError(t, err)
	copies := copiesOverTime(p, []uint64{1, 2}, link{cfg: brokenLink(0.3)}, scenario.W1)
	require.Equal(t, 1., copies[int(badSpell.from/time.Second)-2])
	require.Greater(t, copies[int(badSpell.to/time.Second)-2], 4.)
	require.Equal(t, 1., copies[len(copies)-2])
}

func TestBrief(t *testing.T) {
	for d, want := range map[time.Duration]string{5 * time.Minute: "5m", time.Hour: "1h", 90 * time.Second: "1m30s", 10 * time.Second: "10s", time.Hour + 5*time.Second: "1h0m5s"} {
		require.Equal(t, want, brief(d))
	}
}

func TestRun(t *testing.T) {
	dir := t.TempDir()
	report, chart := filepath.Join(dir, "r.html"), filepath.Join(dir, "c.svg")
	var out, errOut strings.Builder
	args := []string{"-policies", "adaptive+bundle,fixed,kcp", "-links", "clean,20%", "-workloads", "w1,burst", "-seeds", "3", "-duration", "10s", "-out", report, "-chart", chart}
	require.Zero(t, run(t, args, &out, &errOut), errOut.String())
	for _, want := range []string{"w1: ", "burst: ", "adaptive+bundle", "kcp", "50 / 50 / 50"} {
		require.Contains(t, out.String(), want)
	}

	page, err := os.ReadFile(report)
	require.NoError(t, err)
	require.NotContains(t, string(page), "NaN")
	for _, outside := range []string{"src=", "href=", "url(", "<script"} { // one file and no other
		require.NotContains(t, string(page), outside)
	}
	require.Equal(t, 2*(2+2)+1+2, strings.Count(string(page), `<svg role="img"`))
	require.Equal(t, 2*(2+2)+1+2, strings.Count(string(page), "<desc>"))
	require.Contains(t, string(page), "prefers-color-scheme: dark")
	for _, name := range []string{"ackbits adaptive+bundle", "ackbits fixed", "kcp"} { // one name, everywhere
		text := html.UnescapeString(string(page))
		require.Equal(t, 1, strings.Count(text, "</svg>"+name+"</li>"), name)
		require.Equal(t, 2, strings.Count(text, "</svg>"+name+"</th>"), name)
		require.Equal(t, 1, strings.Count(text, "<dt>"+name+"</dt>"), name)
	}

	picture, err := os.ReadFile(chart)
	require.NoError(t, err)
	require.Less(t, len(picture), 100_000)
	for d := xml.NewDecoder(strings.NewReader(string(picture))); ; {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			break
		} else {
			require.NoError(t, err)
		}
	}

	require.Equal(t, 2, run(t, []string{"-links", "x"}, &out, &errOut))
	require.Equal(t, 1, run(t, []string{"-policies", "fixed", "-links", "clean", "-seeds", "1", "-duration", "1s", "-out", dir}, &out, &errOut))
	require.Zero(t, run(t, []string{"-h"}, &out, &errOut))
}

// A chart of what never arrived is empty, not broken.
func TestChartsOfNothing(t *testing.T) {
	l := &lab{policies: []policy{{name: "p"}}, links: []link{{name: "l"}}}
	cells := [][]outcome{{{sent: 10}}}
	picture, err := l.chart(cells)
	require.NoError(t, err)
	require.Contains(t, string(picture), "<svg")
	p, err := tailChart(l, 0, cells[0], time.Second)
	require.NoError(t, err)
	_, err = svg(100, nil, p)
	require.NoError(t, err)
	require.Equal(t, "–", number(never))
	require.Equal(t, "20", steps(40, 3)[1].Label)
	require.Equal(t, "500", steps(2100, 5)[1].Label)
}
