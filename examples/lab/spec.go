package main

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/ackbits/ackbits"
	"github.com/ackbits/ackbits/internal/scenario"
	"github.com/ackbits/ackbits/simnet"
)

// A specification is a list, parted by commas, of names that may have parts,
// joined with a plus: "5%+jitter=10ms". Each part is a word, or a key and value.

type policy struct {
	name string
	cfg  ackbits.Config
	peer *peer // nil: ackbits
}

type link struct {
	name     string
	cfg      simnet.Config
	police   scenario.Policer
	squeeze  float64       // what is left of the rate in a squeeze; 0: there are none
	withhold time.Duration // for which both ends withhold state, once
}

// Squeezes and withheld state begin after ten seconds; squeezes come each half minute.
const (
	squeezeFrom, squeezeFor = 10 * time.Second, 10 * time.Second
	squeezeEvery            = 30 * time.Second
	withholdFrom            = 10 * time.Second
)

// shared reports whether the game's state and events share what the link lets through,
// so that the one may be to the other's harm.
func (l *link) shared() bool { return l.cfg.Rate > 0 || l.police.Rate > 0 }

// changes is how the link changes within a time.
func (l *link) changes(until time.Duration) (changes []scenario.Change) {
	if l.squeeze == 0 {
		return nil
	}
	narrow := l.cfg
	narrow.Rate = int(float64(l.cfg.Rate) * l.squeeze)
	narrow.Queue = int(float64(l.cfg.Queue) * l.squeeze) // so that it is as long in time
	for at := squeezeFrom; at < until; at += squeezeEvery {
		changes = append(changes, scenario.Change{At: at, Link: narrow}, scenario.Change{At: at + squeezeFor, Link: l.cfg})
	}
	return changes
}

// game is one of ackbits over the link.
func (l *link) game(seed uint64, cfg ackbits.Config, traffic scenario.Traffic) scenario.Game {
	g := scenario.Game{Seed: seed, Config: cfg, Link: l.cfg, Police: l.police, Traffic: traffic, Changes: l.changes(traffic.Duration)}
	if l.withhold > 0 {
		g.Withhold = simnet.Window{From: withholdFrom, To: withholdFrom + l.withhold}
	}
	return g
}

type workload struct {
	name    string
	traffic scenario.Traffic
}

const (
	policyHelp = `which rules compete: parts of fixed, adaptive, bundle, wide, ordered, rate=BYTES, resend=TIME; or kcp, quic, quic-streams, sctp`
	linkHelp   = `over which links: parts of clean, 5%, bursts, rtt=TIME, jitter=TIME, reorder=5%, dup=5%, rate=KBITS (kbit/s), queue=TIME (what the rate sends in it), police=KBITS (what exceeds it is dropped), squeeze=40% (that much of the rate is left for 10 s of each 30), outage=TIME (every 5 s), withhold=TIME (both ends withhold state, once)`
	workHelp   = `with which traffic: w1, busy or burst, and parts of rate=EVENTS, size=BYTES, burst=EVENTS, gap=TIME, ontick`
)

// parse reads a list of specifications.
func parse[T any](list string, one func(name string) (T, error)) (all []T, err error) {
	seen := map[string]bool{}
	for name := range strings.SplitSeq(list, ",") {
		name = strings.TrimSpace(name)
		if seen[name] {
			return nil, fmt.Errorf("%q stands there twice", name)
		}
		seen[name] = true
		x, err := one(name)
		if err != nil {
			return nil, fmt.Errorf("%q: %w", name, err)
		}
		all = append(all, x)
	}
	return all, nil
}

// parts calls set for each part of a specification.
func parts(name string, set func(key, value string) error) error {
	for part := range strings.SplitSeq(name, "+") {
		key, value, _ := strings.Cut(part, "=")
		if err := set(key, value); err != nil {
			return err
		}
	}
	return nil
}

func unknown(key string) error { return fmt.Errorf("%q is not known, see -h", key) }

func parsePolicy(name string) (policy, error) {
	p := policy{name: name}
	for i := range peers {
		if peers[i].name == name {
			p.peer = &peers[i]
			return p, nil
		}
	}
	p.cfg.Backlog = 4096 // so that a burst waits instead of ending the session
	err := parts(name, func(key, value string) (err error) {
		switch key {
		case "fixed":
		case "adaptive":
			p.cfg.Adaptive = true
		case "bundle":
			p.cfg.Bundle = true
		case "wide":
			p.cfg.Wide = true
		case "ordered":
			p.cfg.Ordered = true
		case "rate":
			p.cfg.EventRate, err = strconv.Atoi(value)
		case "resend":
			p.cfg.ResendDelay, err = time.ParseDuration(value)
		default:
			err = unknown(key)
		}
		return err
	})
	if err == nil {
		_, err = ackbits.NewSession(p.cfg)
	}
	return p, err
}

// bursts lose three of four for 80 ms, 1.2 s apart on average: 5 % in all.
var bursts = simnet.Burst{MeanGood: 1120 * time.Millisecond, MeanBad: 80 * time.Millisecond, LossBad: 0.75}

func parseLink(name string) (link, error) {
	l := link{name: name, cfg: simnet.Config{Delay: 50 * time.Millisecond}}
	queue := time.Duration(0)
	err := parts(name, func(key, value string) (err error) {
		switch key {
		case "clean":
		case "bursts":
			l.cfg.Burst = bursts
		case "rtt":
			l.cfg.Delay, err = duration(value)
			l.cfg.Delay /= 2
		case "jitter":
			l.cfg.Jitter, err = duration(value)
		case "reorder":
			l.cfg.Reorder, err = percent(value)
			l.cfg.ReorderDelay = 30 * time.Millisecond
		case "dup":
			l.cfg.Duplicate, err = percent(value)
		case "rate":
			var kilobits int
			kilobits, err = between(value, 8, 1_000_000)
			l.cfg.Rate, l.cfg.Overhead = kilobits*125, simnet.UDPOverIPv4
		case "queue":
			queue, err = duration(value)
		case "police":
			var kilobits int
			kilobits, err = between(value, 8, 1_000_000)
			l.police = scenario.Policer{Rate: kilobits * 125, Burst: max(kilobits*125/8, 3000)}
		case "squeeze":
			if l.squeeze, err = percent(value); err == nil && l.squeeze < 0.05 {
				err = fmt.Errorf("%q is less than 5%%", value)
			}
		case "withhold":
			if l.withhold, err = time.ParseDuration(value); err == nil && (l.withhold <= 0 || l.withhold > 30*time.Second) {
				err = fmt.Errorf("%v is not from 0 to 30s", l.withhold)
			}
		case "outage":
			l.cfg.Blackouts, err = outages(value)
		default:
			if l.cfg.Loss, err = percent(key); err != nil {
				err = unknown(key)
			}
		}
		return err
	})
	if err == nil && queue > 0 {
		if l.cfg.Rate == 0 {
			err = errors.New("a queue needs a rate")
		}
		l.cfg.Queue = int(float64(l.cfg.Rate) * queue.Seconds())
	}
	if err == nil && l.squeeze > 0 && queue == 0 {
		err = errors.New("a squeeze needs a rate and a queue")
	}
	return l, err
}

// outages are one in every five seconds, for as long as a game can last.
func outages(value string) (all []simnet.Window, err error) {
	const every = 5 * time.Second
	long, err := duration(value)
	if err == nil && long > 0 {
		for from := every / 2; from < 2*time.Hour; from += every {
			all = append(all, simnet.Window{From: from, To: from + long})
		}
	}
	return all, err
}

func percent(s string) (float64, error) {
	digits, ok := strings.CutSuffix(s, "%")
	x, err := strconv.ParseFloat(digits, 64)
	if !ok || err != nil || !(x >= 0 && x <= 90) {
		return 0, fmt.Errorf("%q is not from 0%% to 90%%", s)
	}
	return x / 100, nil
}

func duration(s string) (time.Duration, error) {
	d, err := time.ParseDuration(s)
	if err == nil && (d < 0 || d > 4*time.Second) {
		err = fmt.Errorf("%v is not from 0 to 4s", d)
	}
	return d, err
}

func parseWorkload(name string) (workload, error) {
	w := workload{name, scenario.W1}
	err := parts(name, func(key, value string) (err error) {
		t := &w.traffic
		switch key {
		case "w1":
		case "busy":
			t.EventRate = 200
		case "burst":
			if value == "" {
				value = "200"
			}
			t.BurstGap = max(t.BurstGap, 2*time.Second)
			t.Burst, err = between(value, 1, 2000)
		case "gap":
			t.BurstGap, err = time.ParseDuration(value)
			if err == nil && (t.BurstGap < 0 || t.BurstGap > time.Minute) {
				err = fmt.Errorf("%v is not from 0 to 1m", t.BurstGap)
			}
		case "rate":
			t.EventRate, err = between(value, 1, 1000)
		case "size":
			t.EventSize, err = between(value, 8, ackbits.MaxEventSize)
		case "ontick":
			t.OnTicks = true
		default:
			err = unknown(key)
		}
		return err
	})
	return w, err
}

func between(s string, low, high int) (int, error) {
	n, err := strconv.Atoi(s)
	if err == nil && (n < low || n > high) {
		err = fmt.Errorf("%d is not from %d to %d", n, low, high)
	}
	return n, err
}
