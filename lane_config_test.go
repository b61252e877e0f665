package ackbits

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// LaneConfig: the defaults, what is refused by name, and the clock that it names.

func TestLaneClockSetBackOrFarForwardCountsAsNoTime(t *testing.T) {
	l := newLaneTest(t, LaneConfig{})
	l.feed(1)
	l.due()
	l.at(-time.Hour)
	require.Empty(t, l.due())
	at, _ := l.Deadline()
	require.Equal(t, 250*laneUnit, at.Sub(l.clock.Now()), "counted from the last reading")
	l.at(-time.Hour + 250*laneUnit - 1)
	require.Empty(t, l.due())
	l.at(1000 * time.Hour)
	require.Empty(t, l.due())
	l.clock.Advance(1)
	require.Len(t, l.due(), 1)
}

type laneCountingClock struct{ readings int }

func (c *laneCountingClock) Now() time.Time {
	c.readings++
	return laneEpoch
}

func TestLaneReadsTheClockOnceACallAndGettersNever(t *testing.T) {
	clock := &laneCountingClock{}
	l, err := NewOrderedLane(LaneConfig{Clock: clock, SoftLimit: 1, HardLimit: 2})
	require.NoError(t, err)
	for range 3 { // fresh, with an event on the wire, ended
		for _, call := range []struct {
			name string
			call func()
			want int
		}{
			{"Receive", func() { l.Receive(1) }, 1},
			{"ReceiveAck", func() { _ = l.ReceiveAck(9) }, 1},
			{"Send", func() { _, _ = l.Send(nil, Critical) }, 1},
			{"NextDue", func() { l.NextDue(1) }, 1},
			{"Ack", func() { l.Ack() }, 0},
			{"InFlight", func() { l.InFlight() }, 0},
			{"Deadline", func() { l.Deadline() }, 0},
			{"Err", func() { _ = l.Err() }, 0},
		} {
			clock.readings = 0
			call.call()
			require.Equal(t, call.want, clock.readings, call.name)
		}
	}
	require.ErrorIs(t, l.Err(), ErrLaneOverflow)
}

// Configuration.

func TestLaneConfigZeroIsTheProtocol(t *testing.T) {
	l := newLaneTest(t, LaneConfig{})
	l.cfg.Clock = nil
	require.Equal(t, LaneConfig{
		ResendDelay: 250 * laneUnit, WakeInterval: 100 * laneUnit, ResendBudget: 32,
		SoftLimit: 256, HardLimit: 512, StallTimeout: 15 * time.Second,
	}, l.cfg)
	require.Equal(t, Critical, Priority(0))
	lane, err := NewOrderedLane(LaneConfig{})
	require.NoError(t, err, "on the system's clock")
	_, err = lane.Send(nil, Critical)
	require.NoError(t, err)
	_, ok := lane.NextDue(0)
	require.True(t, ok)
}

func TestLaneConfigErrorsNameTheFieldAndTheValue(t *testing.T) {
	for want, cfg := range map[string]LaneConfig{
		"LaneConfig.ResendDelay -1ns is negative":         {ResendDelay: -1},
		"LaneConfig.WakeInterval -1s is negative":         {WakeInterval: -time.Second},
		"LaneConfig.StallTimeout -1ns is negative":        {StallTimeout: -1},
		"LaneConfig.ResendBudget -1 is negative":          {ResendBudget: -1},
		"LaneConfig.SoftLimit -2 is negative":             {SoftLimit: -2},
		"LaneConfig.HardLimit -3 is negative":             {HardLimit: -3},
		"LaneConfig.HardLimit 1 leaves room for no event": {HardLimit: 1},
		"LaneConfig.SoftLimit 9 is above HardLimit 8":     {SoftLimit: 9, HardLimit: 8},
		"LaneConfig.SoftLimit 513 is above HardLimit 512": {SoftLimit: 513},
	} {
		lane, err := NewOrderedLane(cfg)
		require.Nil(t, lane)
		require.ErrorIs(t, err, ErrConfig)
		require.EqualError(t, err, "ackbits: invalid configuration: "+want)
	}
	for _, cfg := range []LaneConfig{
		{HardLimit: 2}, {HardLimit: 100}, {SoftLimit: 512}, {SoftLimit: 1}, {HardLimit: math.MaxInt},
		{ResendDelay: 1, WakeInterval: 1, StallTimeout: 1, ResendBudget: 1},
	} {
		_, err := NewOrderedLane(cfg)
		require.NoError(t, err, "%+v", cfg)
	}
}

func TestLaneHugeDurationsSaturate(t *testing.T) {
	l := newLaneTest(t, LaneConfig{
		ResendDelay: math.MaxInt64, WakeInterval: math.MaxInt64, StallTimeout: math.MaxInt64, ResendBudget: 1,
	})
	l.at(time.Hour)
	l.feed(2)
	require.Len(t, l.due(), 2)
	at, ok := l.Deadline()
	require.True(t, ok)
	require.Greater(t, at.Sub(laneEpoch), 100*365*24*time.Hour)
	l.at(24 * time.Hour)
	require.Empty(t, l.due())
	require.NoError(t, l.Err())

	l = newLaneTest(t, LaneConfig{WakeInterval: math.MaxInt64/2 + 1, ResendBudget: 1, StallTimeout: math.MaxInt64})
	l.feed(2)
	l.due()
	l.at(time.Hour)
	require.Equal(t, laneIDs(1, 1), l.due())
	l.at(2 * time.Hour)
	require.Empty(t, l.due(), "one retransmission in 146 years")
}
