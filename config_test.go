package ackbits

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// What a Config may say, what the zero values mean, and what is refused by name.

// P-5.2.5, P-17.1.3.
func TestConfigNamesTheFieldAndValueItRefuses(t *testing.T) {
	const longest = time.Duration(math.MaxInt64)
	for _, c := range []struct {
		cfg   Config
		words []string // in the error; none: accepted
	}{
		{Config{}, nil},
		{Config{Heartbeat: 1, Timeout: 2, ResendDelay: 1, LossDelay: 1, StallTimeout: 1, PollInterval: 1, EventRate: 1, MaxEvent: 1}, nil},
		{Config{Heartbeat: longest - 1, Timeout: longest, ResendDelay: longest, LossDelay: longest, StallTimeout: longest, PollInterval: longest,
			Backlog: 65024, EventRate: math.MaxInt, MaxEvent: math.MaxInt}, nil},
		{Config{StallTimeout: -1}, nil},
		{Config{StallTimeout: math.MinInt64}, nil},
		{Config{Heartbeat: -1}, []string{"Heartbeat", "-1ns"}},
		{Config{Timeout: -2}, []string{"Timeout", "-2ns"}},
		{Config{ResendDelay: -3 * ms}, []string{"ResendDelay", "-3ms"}},
		{Config{LossDelay: -4}, []string{"LossDelay", "-4ns"}},
		{Config{PollInterval: math.MinInt64}, []string{"PollInterval", "-2562047h47m16.854775808s"}},
		{Config{Backlog: -5}, []string{"Backlog", "-5"}},
		{Config{Backlog: 65025}, []string{"Backlog", "65025", "65024"}},
		{Config{Backlog: math.MaxInt}, []string{"Backlog", fmt.Sprint(math.MaxInt)}},
		{Config{EventRate: -6}, []string{"EventRate", "-6"}},
		{Config{MaxEvent: -7}, []string{"MaxEvent", "-7"}},
		{Config{Heartbeat: time.Second, Timeout: time.Second}, []string{"Heartbeat", "1s", "Timeout"}},
		{Config{Heartbeat: 5 * time.Second}, []string{"Heartbeat", "5s", "Timeout"}},
		{Config{Timeout: 50 * ms}, []string{"Heartbeat", "50ms", "Timeout"}},
	} {
		inBothForms(t, func(t *testing.T, wide bool) {
			c.cfg.Wide = wide
			s, err := NewSession(c.cfg)
			r, err2 := NewReliableChannel(c.cfg)
			require.Equal(t, err, err2)
			if c.words == nil {
				require.NoError(t, err)
				require.NotNil(t, s)
				require.NotNil(t, r)
				return
			}
			require.ErrorIs(t, err, ErrConfig)
			require.Nil(t, s)
			require.Nil(t, r)
			for _, w := range c.words {
				require.ErrorContains(t, err, w)
			}
		})
	}
}

// P-1.1.3.
func TestHugeDurationsSaturate(t *testing.T) {
	const longest = time.Duration(math.MaxInt64)
	p := solo(t, Config{Heartbeat: longest - 1, Timeout: longest, ResendDelay: longest, LossDelay: longest, StallTimeout: longest, Outcomes: true})
	p.sleep(time.Hour)
	p.hear(TypeHeartbeat)
	p.emit(TypeInput)
	p.send("x")
	for range 30 {
		p.flush()
		p.sleep(24 * time.Hour)
	}
	p.hear(TypeHeartbeat)
	require.Len(t, p.flying, 2, "the first copy is all there ever was")
	p.wantAlive()
	p.wantNoOutcome()
}

func TestMaxEventIsCappedAtWhatFits(t *testing.T) {
	for _, c := range []struct{ set, narrow, wide int }{{0, 1177, 1173}, {1, 1, 1}, {1173, 1173, 1173}, {1177, 1177, 1173}, {5000, 1177, 1173}} {
		require.Equal(t, c.narrow, solo(t, Config{MaxEvent: c.set}).s.MaxEvent())
		require.Equal(t, c.wide, solo(t, Config{MaxEvent: c.set, Wide: true}).s.MaxEvent())
	}
}

func TestTheCallersConfigIsNotWrittenTo(t *testing.T) {
	cfg := Config{Token: 7}
	_, err := NewSession(cfg)
	require.NoError(t, err)
	require.Equal(t, Config{Token: 7}, cfg)
}

func TestCustomDelaysHold(t *testing.T) {
	p := solo(t, Config{Heartbeat: 20 * ms, Timeout: 300 * ms, ResendDelay: 7 * ms, StallTimeout: 40 * ms})
	p.send("x")
	p.wantEventsOut(0)
	p.wantDeadline(7 * ms)
	p.advance(7 * ms)
	p.wantEventsOut(0)
	p.sleepUntil(40*ms - 1)
	p.flush()
	p.wantAlive()
	p.sleep(1)
	p.wantNothing()
	p.wantErr(ErrStalled)
	p = solo(t, Config{Heartbeat: 4 * time.Second, ResendDelay: time.Minute, StallTimeout: 500 * ms})
	p.wantNothing() // not even looked at until the heartbeat, but for what comes up
	p.send("x")
	p.wantEventsOut(0)
	p.wantDeadline(500 * ms)
	p.sleep(500 * ms)
	p.wantNothing()
	p.wantErr(ErrStalled)
	p = solo(t, Config{Heartbeat: 4 * time.Second, ResendDelay: 7 * ms})
	p.wantNothing()
	p.send("x")
	p.wantEventsOut(0)
	require.False(t, p.s.channel.recheck)
	p.advance(7*ms - 1)
	p.wantNothing()
	p.advance(1)
	p.wantEventsOut(0)
	p = solo(t, Config{Heartbeat: 20 * ms, Timeout: 300 * ms})
	p.wantDeadline(20 * ms)
	p.sleepUntil(300*ms - 1)
	p.flush()
	p.wantAlive()
	p.wantDeadline(300 * ms)
	p.sleep(1)
	p.wantNothing()
	p.wantErr(ErrTimeout)
}
