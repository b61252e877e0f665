package server

import (
	"testing"
	"time"

	"github.com/ackbits/ackbits"
	"github.com/ackbits/ackbits/examples/arena/proto"
	"github.com/stretchr/testify/require"
)

// A player may say five lines at once, then one every half second.
func TestChatBudget(t *testing.T) {
	var p peer
	now := time.Unix(1_700_000_000, 0)
	allowed := func(d time.Duration) (n int) {
		now = now.Add(d)
		for p.mayChat(now) {
			n++
		}
		return n
	}
	require.Equal(t, chatBurst, allowed(0))
	require.Equal(t, 0, allowed(chatPeriod-1))
	require.Equal(t, 1, allowed(1))
	require.Equal(t, 2, allowed(2*chatPeriod))
	require.Equal(t, chatBurst, allowed(time.Hour))
}

// The baseline is the newest snapshot that has arrived, as long as the client
// still has it.
func TestBaseline(t *testing.T) {
	var clock ackbits.ManualClock
	clock.Set(time.Unix(1_700_000_000, 0))
	p := &peer{token: 1}
	require.NoError(t, p.open(&clock, false))
	client, err := ackbits.NewSession(ackbits.Config{Token: 1, Clock: &clock})
	require.NoError(t, err)

	// Snapshots 1 to 4; the client gets 3 first, then 2, and answers each.
	var sent [5][]byte
	for number := uint32(1); number <= 4; number++ {
		require.Zero(t, p.age(number))
		out, seq, err := p.session.AppendDatagram(nil, ackbits.TypeSnapshot, nil)
		require.NoError(t, err)
		p.noteSnapshot(number, seq)
		sent[number] = out
	}
	for _, number := range []int{3, 2} {
		clock.Advance(60 * time.Millisecond)
		_, err := client.Receive(sent[number])
		require.NoError(t, err)
		for answer := range client.Due(nil) {
			_, err := p.session.Receive(answer)
			require.NoError(t, err)
		}
		p.readOutcomes()
		require.EqualValues(t, 2, p.age(5), "3 is the baseline of 5")
	}
	require.EqualValues(t, proto.MaxAge, p.age(3+proto.MaxAge))
	require.Zero(t, p.age(4+proto.MaxAge), "too old: a whole one")
}
