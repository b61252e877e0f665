package server

import (
	"net/netip"
	"testing"
	"time"

	"github.com/ackbits/ackbits"
	"github.com/ackbits/ackbits/examples/arena/proto"
	"github.com/stretchr/testify/require"
)

// A bucket lets a burst through at once, then one more each period.
func TestBucket(t *testing.T) {
	var b bucket
	now := time.Unix(1_700_000_000, 0)
	allowed := func(d time.Duration) (n int) {
		now = now.Add(d)
		for b.take(now, peerChat) {
			n++
		}
		return n
	}
	require.Equal(t, peerChat.burst, allowed(0))
	require.Equal(t, 0, allowed(peerChat.period-1))
	require.Equal(t, 1, allowed(1))
	require.Equal(t, 2, allowed(2*peerChat.period))
	require.Equal(t, peerChat.burst, allowed(time.Hour))
}

// The chat budget of a place outlives the players there, and places are few.
func TestBudgets(t *testing.T) {
	b := newBudgets(120)
	now := time.Unix(1_700_000_000, 0)
	here, there := place(netip.MustParseAddr("192.0.2.1")), place(netip.MustParseAddr("192.0.2.2"))
	for range placeBurst {
		require.True(t, b.take(here, now))
	}
	require.False(t, b.take(here, now))
	require.True(t, b.take(there, now))
	for i := range uint32(2 * maxPlaces) {
		b.take(place(netip.AddrFrom4([4]byte{10, byte(i >> 16), byte(i >> 8), byte(i)})), now)
	}
	require.LessOrEqual(t, len(b.places), maxPlaces)
	require.False(t, b.take(here, now), "a flood does not refill a budget")
	now = now.Add(time.Minute)
	require.True(t, b.take(place(netip.MustParseAddr("192.0.2.3")), now))
	require.Len(t, b.places, 1, "who has been silent is forgotten")
}

func TestPlaces(t *testing.T) {
	for addr, want := range map[string][2]string{
		"192.0.2.7":            {"192.0.2.7/32", "192.0.2.0/24"},
		"::ffff:192.0.2.7":     {"192.0.2.7/32", "192.0.2.0/24"},
		"2001:db8:1:2:3:4:5:6": {"2001:db8:1:2::/64", "2001:db8:1::/48"},
		"fe80::1%eth0":         {"fe80::/64", "fe80::/48"},
	} {
		a := netip.MustParseAddr(addr)
		require.Equal(t, want, [2]string{place(a).String(), network(a).String()})
	}
}

// The baseline is the newest snapshot that has arrived, as long as the client
// still has it.
func TestBaseline(t *testing.T) {
	var clock ackbits.ManualClock
	clock.Set(time.Unix(1_700_000_000, 0))
	p := &peer{token: 1, config: sessionConfig}
	p.config.Token = 1
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
