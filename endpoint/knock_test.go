package endpoint_test

import (
	"encoding/binary"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/ackbits/ackbits/endpoint"
	"github.com/stretchr/testify/require"
)

// junkAccept is what somebody who sees nothing can send in the server's name.
func junkAccept() []byte { return append([]byte{0x0E, 3, 9}, make([]byte, 73)...) }

// attacked has a client knock over a path with a round trip of rtt, in steps of a
// millisecond, until it is admitted, has ended, or six seconds have passed. In each step the
// attacker is told of the Hello that it has seen last; what it returns arrives at once,
// before or after what else arrives in this step.
func (w *world) attacked(c *endpoint.Client, rtt time.Duration, attack func(ms int, hello []byte) [][]byte) {
	type arrival struct {
		at int
		packet
	}
	var path []arrival
	var seen []byte
	order := rand.New(seeded(7))
	for ms := 0; ms < 6000 && c.Session() == nil && c.Err() == nil; ms++ {
		w.flush()
		for _, p := range w.take() {
			if kindOf(p.data) == "Hello" {
				seen = p.data
			}
			path = append(path, arrival{ms + int(rtt.Milliseconds())/2, p})
		}
		var forged [][]byte
		if seen != nil {
			forged = attack(ms, seen)
		}
		before := order.IntN(len(forged) + 1)
		for _, d := range forged[:before] {
			c.Receive(d)
		}
		for len(path) > 0 && path[0].at <= ms {
			w.deliver(path[0].packet)
			path = path[1:]
		}
		for _, d := range forged[before:] {
			c.Receive(d)
		}
		w.clock.Advance(time.Millisecond)
	}
}

// forgedChallenge echoes the key of a Hello; its cookie is good for nothing.
func forgedChallenge(hello []byte, n int) []byte {
	d := append([]byte{0x0E, 2, 1}, hello[4:36]...)
	d = append(d, serverKey.PublicKey().Bytes()...)
	d = binary.LittleEndian.AppendUint64(d, uint64(n)+1)
	return append(d, make([]byte, 24)...)
}

// Junk in the server's name, from somebody who sees nothing, does not keep a client out.
func TestJunkAcceptsKeepNobodyOut(t *testing.T) {
	for _, perSecond := range []int{100, 1000, 4000} {
		for _, rtt := range []time.Duration{20, 60, 200} {
			w := newWorld(t, endpoint.ServerConfig{})
			c := w.join(home, knowing("ann"))
			w.attacked(c, rtt*time.Millisecond, func(ms int, _ []byte) (junk [][]byte) {
				for range (ms+1)*perSecond/1000 - ms*perSecond/1000 {
					junk = append(junk, junkAccept(), append([]byte{0x0E, 4}, make([]byte, 32)...))
				}
				return junk
			})
			require.NotNil(t, c.Session(), "%d a second, RTT %d ms: %v", perSecond, rtt, c.Err())
		}
	}
}

// Nor do Challenges that an eavesdropper forges.
// P-13.2.3.
func TestForgedCookiesKeepNobodyOut(t *testing.T) {
	for _, perSecond := range []int{12, 100, 1000} {
		for _, rtt := range []time.Duration{20, 60, 100, 200} {
			w := newWorld(t, endpoint.ServerConfig{})
			c := w.join(home, knowing("ann"))
			start := w.clock.Now()
			w.attacked(c, rtt*time.Millisecond, func(ms int, hello []byte) (forged [][]byte) {
				for i := range (ms+1)*perSecond/1000 - ms*perSecond/1000 {
					forged = append(forged, forgedChallenge(hello, 10*ms+i))
				}
				return forged
			})
			require.NotNil(t, c.Session(), "%d a second, RTT %d ms: %v", perSecond, rtt, c.Err())
			if perSecond <= 100 {
				require.LessOrEqual(t, w.clock.Now().Sub(start), 2*rtt*time.Millisecond+5*time.Millisecond, "two round trips, as ever")
			}
			said := len(w.logged("Hello"))
			require.LessOrEqual(t, said, 32+128*5+21, "what they have the client say is bounded")
		}
	}
}

// A cookie that did not work is no obstacle to one that came later: after a burst of as
// many as are kept, the true one is answered when it comes again.
// P-13.2.3.
func TestBurstOfForgedCookiesDelaysTheTrueOne(t *testing.T) {
	w := newWorld(t, endpoint.ServerConfig{})
	c := w.join(home, knowing("ann"))
	w.attacked(c, 40*time.Millisecond, func(ms int, hello []byte) (forged [][]byte) {
		if ms == 10 {
			for i := range 100 {
				forged = append(forged, forgedChallenge(hello, i))
			}
		}
		return forged
	})
	require.NotNil(t, c.Session())
	require.Less(t, w.clock.Now().Sub(time.Unix(1_700_000_000, 0)), 300*time.Millisecond)
}
