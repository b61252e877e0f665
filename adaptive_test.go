package ackbits

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// A ring that gives back a loss must not take the slot behind it for one: every
// new event would go five times instead of twice.
func TestForgivenLossDoesNotSpoilTheEstimate(t *testing.T) {
	for _, losses := range []int64{1, 7, 8, 23, 24, 25, 30, 100} {
		var a adaptation
		for i := range losses {
			a.assessed = (i + 1) * 50
			a.lose(a.assessed)
		}
		a.assessed += 25
		before, _ := a.lossRate()
		a.forgive(a.assessed - 25)
		after, pairs := a.lossRate()
		require.LessOrEqual(t, after, before, "%d losses", losses)
		require.Zero(t, pairs)
		a.replan()
		require.LessOrEqual(t, a.plan.left, uint8(1), "2 %% of loss needs one copy more at most")
	}
}

// The dumb model of the loss ring is a list.
func TestLossesAreTheNewestOnes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var a adaptation
		var list []int64 // newest first
		a.assessed = rapid.Int64Range(0, 1<<33).Draw(t, "start")
		for range rapid.IntRange(1, 120).Draw(t, "steps") {
			a.assessed += rapid.Int64Range(1, 200).Draw(t, "step")
			if len(list) > 0 && rapid.IntRange(0, 4).Draw(t, "forgive") == 0 {
				i := rapid.IntRange(0, len(list)-1).Draw(t, "which")
				a.forgive(list[i])
				list = append(list[:i:i], list[i+1:]...)
			} else {
				a.lose(a.assessed)
				list = append([]int64{a.assessed}, list...)
				list = list[:min(len(list), sampledLosses)]
			}
			require.Equal(t, len(list), a.losses)
			recent := 0
			for i, number := range list {
				require.Equal(t, a.assessed-number, a.age(i))
				if a.assessed-number <= lossMemory {
					recent++
				}
			}
			rate, _ := a.lossRate()
			require.Equal(t, recent == 0, rate == 0)
			require.LessOrEqual(t, rate, int64(million))
		}
	})
}

// Most of what a peer may withhold must still reach it: events that rode in
// bundles which were never acknowledged go by themselves in the end.
func TestWithheldBundlesDoNotStarveEvents(t *testing.T) {
	for _, adaptive := range []bool{false, true} {
		var clock ManualClock
		clock.Set(time.Unix(1000, 0))
		server, err := NewSession(Config{Clock: &clock, Bundle: true, Adaptive: adaptive})
		require.NoError(t, err)
		client, err := NewSession(Config{Clock: &clock, Accept: func(h Header, _ []byte) error {
			return ErrWithhold
		}})
		require.NoError(t, err)
		_, err = server.Send([]byte("event"))
		require.NoError(t, err)
		buf := make([]byte, MaxDatagramSize)
		received := 0
		take := func(datagram []byte) {
			in, err := client.Receive(datagram)
			require.NoError(t, err)
			received += len(in.Events)
			for answer := range client.Due(make([]byte, MaxDatagramSize)) {
				_, err := server.Receive(answer)
				require.NoError(t, err)
			}
		}
		for range 20 {
			datagram, _, err := server.AppendDatagram(buf[:0], TypeSnapshot, []byte("snapshot"))
			require.NoError(t, err)
			take(datagram)
			for datagram := range server.Due(buf) {
				take(datagram)
			}
			clock.Advance(50 * time.Millisecond)
		}
		require.Equal(t, 1, received, "adaptive: %t", adaptive)
		require.Zero(t, server.InFlight())
	}
}

// A peer that acknowledges what it cannot have received yet makes everything look
// overtaken at once. It must not set the pace of resends.
func TestEvidenceHasAFloor(t *testing.T) {
	var clock ManualClock
	clock.Set(time.Unix(1000, 0))
	s, err := NewSession(Config{Clock: &clock, Adaptive: true})
	require.NoError(t, err)
	_, err = s.Send([]byte("event"))
	require.NoError(t, err)
	buf := make([]byte, MaxDatagramSize)
	var newest, from uint16
	const steps = 1000
	for range steps {
		for range s.Due(buf) {
		}
		_, newest, err = s.AppendDatagram(buf[:0], TypeInput, nil)
		require.NoError(t, err)
		_, err = s.Receive(Header{Type: TypeHeartbeat, Sequence: from, Ack: newest}.AppendTo(nil))
		require.NoError(t, err)
		from++
		clock.Advance(time.Millisecond)
	}
	// Each resend has the copies of the plan as company, nearGap apart.
	require.LessOrEqual(t, s.Stats().EventsResent, uint64(steps*int64(time.Millisecond)/nearGap))
}

// The log of copies is searched by sequences, which come round: a run of the
// datagram 65,536 earlier is not this datagram's.
func TestRunOfADatagramBeforeTheWrapIsNotJoined(t *testing.T) {
	var clock ManualClock
	clock.Set(time.Unix(1000, 0))
	s, err := NewSession(Config{
		Clock: &clock, ResendDelay: time.Hour, Timeout: 2 * time.Hour, Heartbeat: time.Hour, StallTimeout: -1,
	})
	require.NoError(t, err)
	buf := make([]byte, MaxDatagramSize)
	send := func() {
		_, err := s.Send(nil)
		require.NoError(t, err)
		_, ok := s.AppendDue(buf[:0])
		require.True(t, ok)
	}
	from := uint16(0)
	ack := func(seq uint16) {
		_, err := s.Receive(Header{Type: TypeHeartbeat, Sequence: from, Ack: seq}.AppendTo(nil))
		require.NoError(t, err)
		from++
	}
	send() // in sequence 0, never acknowledged
	for range 1<<16 - 1 {
		_, seq, err := s.AppendDatagram(buf[:0], TypeInput, nil)
		require.NoError(t, err)
		ack(seq)
	}
	send() // in sequence 0 again
	ack(0)
	require.Equal(t, 1, s.InFlight())
	require.EqualValues(t, 1, s.Stats().EventsDelivered)
}

// After the end the fates of what was sent are still told; then nothing is kept.
func TestEndedSessionKeepsNothingOnceAllIsDecided(t *testing.T) {
	var clock ManualClock
	clock.Set(time.Unix(1000, 0))
	s, err := NewSession(Config{Clock: &clock, Outcomes: true})
	require.NoError(t, err)
	for range 40_000 {
		_, _, err := s.AppendDatagram(nil, TypeInput, nil)
		require.NoError(t, err)
	}
	clock.Advance(5 * time.Second)
	_, ok := s.AppendDue(nil)
	require.False(t, ok)
	require.ErrorIs(t, s.Err(), ErrTimeout)
	clock.Advance(2 * time.Second)
	for ok := true; ok; {
		_, ok = s.NextOutcome()
	}
	require.Zero(t, s.Stats().Undecided)
	require.Zero(t, cap(s.channel.sent.stamps)+cap(s.channel.sent.types))
}
