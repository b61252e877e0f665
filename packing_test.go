package ackbits

import (
	"testing"

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
