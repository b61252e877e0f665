package ackbits

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// An event that was lost again and again while others passed goes in a small datagram,
// and then alone.
func TestEventsThatAreLostAgainAndAgainGoInSmallDatagrams(t *testing.T) {
	const fill = smallDatagram - HeaderSize - listOverhead - 2*eventOverhead // what two events take
	for _, tc := range []struct {
		sizes    []int
		id       int64
		passedBy uint8
		want     [][]uint16
	}{
		{[]int{200, 200, 200, 200}, 0, smallAfter - 1, [][]uint16{{0, 1, 2, 3}}},
		{[]int{200, 200, 200, 200}, 0, smallAfter, [][]uint16{{0, 1}, {2, 3}}},
		{[]int{200, 200, 200, 200}, 0, aloneAfter - 1, [][]uint16{{0, 1}, {2, 3}}},
		{[]int{200, 200, 200, 200}, 0, aloneAfter, [][]uint16{{0}, {1, 2, 3}}},
		{[]int{200, 200, 200, 200}, 1, smallAfter, [][]uint16{{0, 1}, {2, 3}}},
		{[]int{200, 200, 200, 200}, 1, aloneAfter, [][]uint16{{0}, {1}, {2, 3}}},
		{[]int{200, fill - 200, 0}, 0, smallAfter, [][]uint16{{0, 1}, {2}}},
		{[]int{200, fill - 199, 0}, 0, smallAfter, [][]uint16{{0}, {1, 2}}},
		{[]int{200, fill - 199, 0}, 1, smallAfter, [][]uint16{{0}, {1, 2}}},
		{[]int{fill + 100, 0}, 0, smallAfter, [][]uint16{{0}, {1}}},
	} {
		p := solo(t, Config{})
		for _, size := range tc.sizes {
			p.send(long(size))
		}
		p.flush()
		p.s.channel.sender.outbox.get(tc.id).passedBy = tc.passedBy
		p.sleep(100 * ms)
		var got [][]uint16
		for _, k := range p.flush() {
			if k.Type == TypeEvent {
				got = append(got, k.ids())
			}
		}
		require.Equal(t, tc.want, got, "%+v", tc)
	}
}

// What a caller has in dst already is no part of a datagram: it changes neither what goes
// nor when.
func TestDatagramDoesNotDependOnWhatIsBeforeIt(t *testing.T) {
	trace := func(prefix int) (times []time.Duration, sizes []int) {
		p := solo(t, Config{Adaptive: true, Backlog: 100})
		k := p.emit(TypeInput)
		p.sleep(50 * ms)
		p.ack(k.Sequence, 0)
		p.sendN(60, 1000)
		for p.now() < 200*ms {
			dst := make([]byte, prefix)
			if out, ok := p.s.AppendDue(dst); ok {
				times, sizes = append(times, p.now()), append(sizes, len(out)-prefix)
				p.packet(out[prefix:])
			} else {
				p.sleepUntil(p.deadline())
			}
		}
		return times, sizes
	}
	times, sizes := trace(0)
	require.Greater(t, times[10], 50*ms, "what waits goes at a pace")
	for _, prefix := range []int{1, 5000} {
		again, also := trace(prefix)
		require.Equal(t, times, again)
		require.Equal(t, sizes, also)
	}
}
