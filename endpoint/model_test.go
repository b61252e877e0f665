package endpoint_test

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ackbits/ackbits"
	"github.com/ackbits/ackbits/endpoint"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

const (
	modelPeers      = 4
	modelPerAddress = 3
	modelTimeout    = 5 * time.Second
	modelMemory     = 20 * time.Second
)

// seat is what the model knows of a peer.
type seat struct {
	name    string
	addr    netip.AddrPort
	host    netip.Addr // where it joined
	client  *endpoint.Client
	peer    *endpoint.Peer
	heardAt time.Duration
	crashed bool
	err     error         // of its end
	endedAt time.Duration // if err is not nil

	movedFrom netip.AddrPort // if the server has not heard of it yet
}

// attempt is a client that was turned away.
type attempt struct {
	host netip.Addr
	at   time.Duration
}

// table is the dumb model of a Server: lists of all that ever was.
type table struct {
	*world
	start   time.Time
	joined  []*seat // all that ever joined
	fetched map[*seat]bool
	away    []attempt // for a reason of the server's own
	names   int
	want    []expected
}

// expected is an event that waits to be fetched.
type expected struct {
	at   time.Duration // what happens in one step may come in any order
	who  *seat
	text string
}

// expect expects an event of a peer.
func (m *table) expect(s *seat, text string) { m.want = append(m.want, expected{m.now(), s, text}) }

func (m *table) now() time.Duration { return m.clock.Now().Sub(m.start) }

// seats returns who has a seat: those whose Left was not fetched.
func (m *table) seats() (taken []*seat) {
	for _, s := range m.joined {
		if !m.fetched[s] {
			taken = append(taken, s)
		}
	}
	return taken
}

func (m *table) live() (live []*seat) {
	for _, s := range m.joined {
		if s.err == nil {
			live = append(live, s)
		}
	}
	return live
}

func (m *table) turnedAway(host netip.Addr) (n int) {
	for _, a := range m.away {
		if a.host == host && m.now() < a.at+modelMemory {
			n++
		}
	}
	return n
}

func (m *table) atHost(host netip.Addr) (n int) {
	for _, s := range m.joined {
		if s.host == host && (s.err == nil || m.now() < s.endedAt+modelMemory) {
			n++
		}
	}
	return n
}

func (m *table) remembered() (n int) {
	hosts := map[netip.Addr]bool{}
	for _, s := range m.joined {
		hosts[s.host] = true
	}
	for _, a := range m.away {
		hosts[a.host] = true
	}
	for h := range hosts {
		n += m.atHost(h) + m.turnedAway(h)
	}
	return n
}

// join has a client come, and compares what becomes of it.
func (m *table) join(t *rapid.T) {
	host := netip.AddrFrom4([4]byte{10, 0, 0, byte(rapid.IntRange(1, 3).Draw(t, "host"))})
	m.names++
	s := &seat{name: fmt.Sprint("player ", m.names), addr: netip.AddrPortFrom(host, uint16(1000+m.names)), host: host}
	s.client = m.shake(s.addr, knowing(s.name))
	switch {
	case m.turnedAway(host) >= modelPerAddress:
		require.NoError(t, s.client.Err())
		require.Nil(t, s.client.Session())
	case len(m.seats()) >= modelPeers || m.atHost(host) >= modelPerAddress:
		require.ErrorIs(t, s.client.Err(), endpoint.ErrRefused)
		m.away = append(m.away, attempt{host, m.now()})
	default:
		require.NotNil(t, s.client.Session())
		m.joined = append(m.joined, s)
		s.heardAt = m.now()
		m.expect(s, "Joined "+s.name)
		for p := range m.server.Peers() {
			s.peer = p // the last is the newest
		}
	}
	require.Equal(t, m.remembered(), m.server.Stats().Remembered)
	if s.peer == nil {
		m.forget(s)
	}
}

// forget takes a client out of the world.
func (m *table) forget(s *seat) {
	delete(m.clients, s.addr)
	m.order = slices.DeleteFunc(m.order, func(a netip.AddrPort) bool { return a == s.addr })
}

func (m *table) end(s *seat, err error) {
	s.err, s.endedAt = err, m.now()
	m.expect(s, fmt.Sprint("Left ", s.name, " ", err))
}

// one draws a peer that lives; nil if none does.
func (m *table) one(t *rapid.T) *seat {
	live := m.live()
	if len(live) == 0 {
		return nil
	}
	return live[rapid.IntRange(0, len(live)-1).Draw(t, "who")]
}

func (m *table) leave(t *rapid.T) {
	s := m.one(t)
	if s == nil || s.crashed {
		return
	}
	s.client.Session().Close()
	m.settle()
	m.end(s, ackbits.ErrPeerLeft)
	require.ErrorIs(t, s.client.Err(), ackbits.ErrClosed)
	m.forget(s)
}

func (m *table) kick(t *rapid.T) {
	s := m.one(t)
	if s == nil {
		return
	}
	s.peer.Session().Close()
	m.settle()
	m.end(s, ackbits.ErrClosed)
	if !s.crashed {
		require.ErrorIs(t, s.client.Err(), ackbits.ErrPeerLeft)
	}
	m.forget(s)
}

func (m *table) crash(t *rapid.T) {
	s := m.one(t)
	if s == nil {
		return
	}
	s.crashed = true
	m.forget(s)
}

func (m *table) move(t *rapid.T) {
	s := m.one(t)
	if s == nil || s.crashed {
		return
	}
	older := s.addr
	to := netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, 1, byte(rapid.IntRange(1, 5).Draw(t, "to"))}), older.Port())
	if to == older {
		return
	}
	m.rebind(older.String(), to.String())
	s.addr = to
	s.movedFrom = older
	m.pass(300 * time.Millisecond)
}

// noteMove expects the Moved of a peer that the server has now heard from its new
// address: until then somebody else may have timed out.
func (m *table) noteMove(s *seat) {
	waits := slices.ContainsFunc(m.want, func(e expected) bool { return e.who == s && strings.HasPrefix(e.text, "Moved ") })
	if s.movedFrom.IsValid() && !waits { // at most one waits
		m.expect(s, fmt.Sprint("Moved ", s.name, " ", s.movedFrom))
	}
	s.movedFrom = netip.AddrPort{}
}

// pass lets time pass, and finds who has timed out.
func (m *table) pass(d time.Duration) {
	for range d / (10 * time.Millisecond) {
		m.clock.Advance(10 * time.Millisecond)
		m.settle()
		for _, s := range m.seats() {
			if s.err == nil && m.now() >= s.heardAt+modelTimeout {
				m.end(s, ackbits.ErrTimeout)
				m.forget(s)
			}
		}
	}
}

// flood sends what strangers may send, and what was sent before.
func (m *table) flood(t *rapid.T) {
	flood(m.world, rapid.IntRange(0, 1000).Draw(t, "first"), 50)
	for range 20 {
		if len(m.log) == 0 {
			break
		}
		p := m.log[rapid.IntRange(max(0, len(m.log)-100), len(m.log)-1).Draw(t, "again")]
		if rapid.Bool().Draw(t, "elsewhere") {
			p.from = address(elsewhere)
		}
		p.to = m.at
		m.deliver(p)
		made := slices.Clone(p.data)
		if len(made) > 18 {
			binary.LittleEndian.PutUint16(made[10:], uint16(rapid.Uint16().Draw(t, "number")))
			m.deliver(packet{p.from, m.at, made})
		}
	}
	for range m.server.Due(m.buf[:]) { // to nobody
	}
}

// check compares the table with the model.
func (m *table) check(t *rapid.T) {
	var got, want []string
	for p := range m.server.Peers() {
		got = append(got, fmt.Sprint(string(p.Hello()), p.Addr(), p.Session().Err()))
	}
	for _, s := range m.seats() {
		want = append(want, fmt.Sprint(s.name, s.addr, s.err))
	}
	require.Equal(t, want, got)
	require.Equal(t, len(want), m.server.Stats().Peers)
	for _, s := range m.live() {
		if !s.crashed {
			require.NoError(t, s.client.Err())
		}
	}
}

// fetch fetches some of the events, or all, and compares them.
func (m *table) fetch(t *rapid.T) {
	n := rapid.IntRange(1, 12).Draw(t, "events")
	for range n {
		e, ok := m.server.NextEvent()
		require.Equal(t, len(m.want) > 0, ok)
		if !ok {
			return
		}
		text := e.Kind.String() + " " + string(e.Peer.Hello())
		switch e.Kind {
		case endpoint.Moved:
			text += fmt.Sprint(" ", e.From)
		case endpoint.Left:
			text += fmt.Sprint(" ", e.Err)
		}
		next := slices.IndexFunc(m.want, func(w expected) bool { return w.who.peer == e.Peer })
		require.GreaterOrEqual(t, next, 0, "%s, which nothing waits for: %v", text, m.want[0])
		require.Equal(t, m.want[next].text, text)
		require.Equal(t, m.want[0].at, m.want[next].at, "%s before its turn, which is that of %v", text, m.want[0])
		m.want = slices.Delete(m.want, next, next+1)
		if e.Kind == endpoint.Left {
			for _, s := range m.joined {
				if s.peer == e.Peer {
					m.fetched[s] = true
				}
			}
		}
	}
}

// Joins, leaves, crashes, kicks, moves, floods and replays in any order give what
// a list of all that ever was gives.
func TestTableAgainstADumbModel(t *testing.T) { rapid.Check(t, anyOrder) }

// FuzzTable is the same, steered by what it covers.
func FuzzTable(f *testing.F) { f.Fuzz(rapid.MakeFuzz(anyOrder)) }

func anyOrder(t *rapid.T) {
	m := &table{
		world:   newWorld(t, endpoint.ServerConfig{MaxPeers: modelPeers, MaxPerAddress: modelPerAddress}),
		fetched: map[*seat]bool{},
	}
	m.start, m.hold = m.clock.Now(), true
	m.onHeard = func(p *endpoint.Peer) {
		for _, s := range m.joined {
			if s.peer == p {
				s.heardAt = m.now()
				m.noteMove(s)
			}
		}
	}
	t.Repeat(map[string]func(*rapid.T){
		"join":   m.join,
		"join2":  m.join,
		"leave":  m.leave,
		"kick":   m.kick,
		"crash":  m.crash,
		"move":   m.move,
		"flood":  m.flood,
		"fetch":  m.fetch,
		"second": func(*rapid.T) { m.pass(time.Second) },
		"long":   func(*rapid.T) { m.pass(21 * time.Second) },
		"while": func(t *rapid.T) {
			m.pass(time.Duration(rapid.IntRange(1, 700).Draw(t, "steps")) * 10 * time.Millisecond)
		},
		"": m.check,
	})
}
