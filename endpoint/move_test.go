package endpoint_test

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/ackbits/ackbits"
	"github.com/ackbits/ackbits/endpoint"
	"github.com/ackbits/ackbits/simnet"
	"github.com/stretchr/testify/require"
)

// roamer is a client on a lossy path whose address changes: what is in flight to
// an older address is lost.
type roamer struct {
	*world
	client   *endpoint.Client
	peer     *endpoint.Peer
	up, down *simnet.Link // each datagram is led by the number of the client's address
	where    byte
	now      time.Duration
}

func newRoamer(t *testing.T, seed uint64, network simnet.Config, session ackbits.Config) *roamer {
	w := newWorld(t, endpoint.ServerConfig{Session: session})
	cfg := knowing("ann")
	cfg.Session = session
	cfg.Timeout = time.Minute
	r := &roamer{world: w, up: simnet.NewLink(2*seed, network), down: simnet.NewLink(2*seed+1, network)}
	r.client = w.join(home, cfg)
	return r
}

func (r *roamer) address(n byte) netip.AddrPort {
	return netip.AddrPortFrom(netip.AddrFrom4([4]byte{203, 0, 113, n}), 4000+uint16(n))
}

// flush sends what is due at both ends.
func (r *roamer) flush() {
	for d := range r.client.Due(r.buf[:]) {
		r.up.Send(r.now, append([]byte{r.where}, d...))
	}
	for to, d := range r.server.Due(r.buf[:]) {
		r.down.Send(r.now, append([]byte{to.Addr().As4()[3]}, d...))
	}
	for e, ok := r.server.NextEvent(); ok; e, ok = r.server.NextEvent() {
		r.events = append(r.events, e)
		r.peer = e.Peer
	}
}

// step lets a millisecond pass.
func (r *roamer) step() {
	r.now += time.Millisecond
	r.clock.Advance(time.Millisecond)
	for d, ok := r.up.Receive(r.now); ok; d, ok = r.up.Receive(r.now) {
		r.deliver(packet{r.address(d[0]), r.at, d[1:]})
		r.flush()
	}
	for d, ok := r.down.Receive(r.now); ok; d, ok = r.down.Receive(r.now) {
		if d[0] == r.where {
			in, _ := r.client.Receive(d[1:])
			for _, e := range in.Events {
				r.heard[address(home)] = append(r.heard[address(home)], string(e.Data))
			}
			r.flush()
		}
	}
	r.flush()
}

func TestClientThatMovesTenTimesUnderLossLosesNoEvent(t *testing.T) {
	for seed := range uint64(12) {
		session := ackbits.Config{Adaptive: seed%2 == 1, Ordered: seed%3 == 1}
		network := simnet.Config{Delay: 29 * time.Millisecond, Jitter: 7 * time.Millisecond, Loss: 0.2, Duplicate: 0.05}
		r := newRoamer(t, seed, network, session)
		r.where = 1
		for r.peer == nil || r.client.Session() == nil {
			r.step()
		}
		var said, answered []string
		for i := range 11_000 { // 11 s
			if i%1000 == 777 && i > 1000 {
				r.where++
			}
			if i%50 == 3 && i < 10_500 {
				said = append(said, fmt.Sprint("up ", i))
				answered = append(answered, fmt.Sprint("down ", i))
				_, err := r.client.Session().Send([]byte(said[len(said)-1]))
				require.NoError(t, err)
				_, err = r.peer.Session().Send([]byte(answered[len(answered)-1]))
				require.NoError(t, err)
			}
			r.step()
		}
		for range 2000 {
			r.step()
		}
		require.Equal(t, byte(11), r.where)
		require.Equal(t, r.address(11), r.peer.Addr())
		require.Equal(t, uint64(10), r.server.Stats().Moves)
		sorted := func(s []string) []string { return slices.Sorted(slices.Values(s)) }
		require.Equal(t, sorted(said), sorted(r.got[r.peer]), "seed %d", seed)
		require.Equal(t, sorted(answered), sorted(r.heard[address(home)]), "seed %d", seed)
		moves := 0
		for _, e := range r.events {
			if e.Kind == endpoint.Moved {
				moves++
				require.Equal(t, r.address(byte(moves)), e.From)
			}
		}
		require.Equal(t, 10, moves)
	}
}

// A true move costs a round trip of one direction, and the next datagram.
// P-13.4.1.
func TestMoveTakesARoundTrip(t *testing.T) {
	r := newRoamer(t, 1, simnet.Config{Delay: 40 * time.Millisecond}, ackbits.Config{})
	r.where = 1
	for range 1000 {
		r.step()
	}
	r.where = 2
	from := r.now
	for r.peer.Addr() != r.address(2) {
		r.step()
		require.Less(t, r.now-from, 200*time.Millisecond)
	}
	require.LessOrEqual(t, r.now-from, 50*time.Millisecond+3*40*time.Millisecond, "a heartbeat, a Probe, its reply")
	require.Equal(t, uint64(1), r.server.Stats().Probes)
}

// Moves that were not fetched become one, from the address that is known.
func TestOneMoveWaitsToBeFetched(t *testing.T) {
	w, _, peer := joined(t, endpoint.ServerConfig{})
	w.rebind(home, "203.0.113.1:1")
	shift := func() {
		for range 30 {
			w.clock.Advance(10 * time.Millisecond)
			for _, a := range w.order {
				for d := range w.clients[a].Due(w.buf[:]) {
					w.server.Receive(a, append([]byte(nil), d...))
				}
				for to, d := range w.server.Due(w.buf[:]) {
					if to == a {
						w.clients[a].Receive(append([]byte(nil), d...))
					}
				}
			}
		}
	}
	shift()
	require.Equal(t, address("203.0.113.1:1"), peer.Addr())
	w.rebind("203.0.113.1:1", "203.0.113.2:2")
	shift()
	require.Equal(t, address("203.0.113.2:2"), peer.Addr())
	require.Equal(t, uint64(2), w.server.Stats().Moves)
	e, ok := w.server.NextEvent()
	require.True(t, ok)
	require.Equal(t, endpoint.Event{Kind: endpoint.Moved, Peer: peer, From: address(home)}, e)
	_, ok = w.server.NextEvent()
	require.False(t, ok)
}

// The client's address may change between its Hello and its Accept.
func TestClientMovesWhileItJoins(t *testing.T) {
	w := newWorld(t, endpoint.ServerConfig{})
	c := w.join(home, knowing("ann"))
	for c.Session() == nil {
		w.flush()
		for _, p := range w.take() {
			if p.from == w.at && kindOf(p.data) == "Accept" && len(w.logged("Accept")) == 1 {
				w.rebind(home, elsewhere)
				continue
			}
			w.deliver(p)
		}
		w.clock.Advance(10 * time.Millisecond)
	}
	w.run(time.Second)
	require.Len(t, w.events, 2, "one join, one move")
	require.Equal(t, address(elsewhere), w.events[0].Peer.Addr())
	require.NoError(t, c.Err())
}

// An IPv4 address is one whether the socket shows it as IPv6 or not.
func TestMappedAddressIsTheSame(t *testing.T) {
	w, c, peer := joined(t, endpoint.ServerConfig{})
	d, _, err := c.Session().AppendDatagram(nil, ackbits.TypeInput, nil)
	require.NoError(t, err)
	_, err = w.server.Receive(address("[::ffff:198.51.100.7]:4000"), d)
	require.NoError(t, err)
	w.run(time.Second)
	require.Equal(t, address(home), peer.Addr())
	require.Zero(t, w.server.Stats().Probes)
}

// Withheld and refused datagrams tell of a move as well: they opened.
// P-13.4.1.
func TestDatagramThatIsNotTakenInTellsOfAMove(t *testing.T) {
	for _, answer := range []error{ackbits.ErrWithhold, fmt.Errorf("no")} {
		w, c, peer := joined(t, endpoint.ServerConfig{Session: ackbits.Config{
			Accept: func(ackbits.Header, []byte) error { return answer },
		}})
		d, _, err := c.Session().AppendDatagram(nil, ackbits.TypeInput, nil)
		require.NoError(t, err)
		w.server.Receive(address(elsewhere), d)
		w.flush()
		require.Contains(t, kinds(w.take()), "Probe")
		require.Equal(t, address(home), peer.Addr())
	}
}
