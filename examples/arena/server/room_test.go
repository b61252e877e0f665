package server

import (
	"errors"
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/ackbits/ackbits"
	"github.com/ackbits/ackbits/examples/arena/game"
	"github.com/ackbits/ackbits/examples/arena/proto"
	"github.com/stretchr/testify/require"
	"golang.org/x/net/ipv4"
	"pgregory.net/rapid"
)

// ground is the map of these tests.
var ground = newLevel(1)

// stage is a room without sockets and the client's end of one of its players.
type stage struct {
	room   *room
	clock  ackbits.ManualClock
	player *peer
	client *ackbits.Session
	names  [game.MaxPlayers]string // as the client knows them
}

func newStage(t require.TestingT) *stage {
	s := &stage{}
	s.clock.Set(time.Unix(1_700_000_000, 0))
	s.room = newRoom(&shard{server: &Server{budgets: newBudgets(0)}}, 1, ground)
	s.player = s.join(t, "watcher")
	var err error
	s.client, err = ackbits.NewSession(ackbits.Config{Clock: &s.clock, Ordered: true})
	require.NoError(t, err)
	return s
}

func (s *stage) join(t require.TestingT, name string) *peer {
	p := &peer{name: name, room: s.room, config: sessionConfig}
	p.config.Timeout = time.Hour
	require.NoError(t, p.open(&s.clock, false))
	s.room.join(p, s.clock.Now())
	return p
}

// exchange lets 50 ms pass, in which the client gets and answers what is due, or
// nothing does.
func (s *stage) exchange(t require.TestingT, connected bool) {
	s.clock.Advance(50 * time.Millisecond)
	s.room.catchUp(s.player, s.clock.Now())
	for datagram := range s.player.session.Due(nil) {
		if !connected {
			continue
		}
		in, err := s.client.Receive(datagram)
		require.NoError(t, err)
		for _, raw := range in.Events {
			e, err := proto.ParseEvent(raw.Data)
			require.NoError(t, err)
			switch e.Kind {
			case proto.Joined:
				s.names[e.Slot] = e.Text
			case proto.Left:
				s.names[e.Slot] = ""
			}
		}
		for answer := range s.client.Due(nil) {
			_, err := s.player.session.Receive(answer)
			require.NoError(t, err)
		}
	}
	require.NoError(t, s.player.session.Err())
	require.LessOrEqual(t, s.player.session.InFlight(), slow+1)
}

// Whatever the others do, the session of a player who does not keep up lives, with
// few events in flight; and once it keeps up it knows who is where.
func TestSlowPlayer(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := newStage(t)
		var others []*peer
		n := 0
		t.Repeat(map[string]func(*rapid.T){
			"join": func(t *rapid.T) {
				if len(others) < 20 {
					n++
					others = append(others, s.join(t, fmt.Sprint("player ", n)))
				}
			},
			"leave": func(t *rapid.T) {
				if len(others) > 0 {
					i := rapid.IntRange(0, len(others)-1).Draw(t, "who")
					s.room.leave(others[i], s.clock.Now(), "so it goes")
					others = append(others[:i], others[i+1:]...)
				}
			},
			"churn": func(t *rapid.T) {
				for range 100 {
					n++
					p := s.join(t, fmt.Sprint("player ", n))
					s.room.tellAll(proto.Event{Kind: proto.Said, At: s.clock.Now(), Slot: uint8(p.slot), Text: "hi"})
					s.room.leave(p, s.clock.Now(), "bye")
				}
			},
			"connected":    func(t *rapid.T) { s.exchange(t, true) },
			"disconnected": func(t *rapid.T) { s.exchange(t, false) },
		})
		for range 100 {
			s.exchange(t, true)
		}
		for slot, p := range s.room.seats {
			want := ""
			if p != nil {
				want = p.name
			}
			require.Equal(t, want, s.names[slot], "slot %d", slot)
		}
		require.Zero(t, s.player.session.InFlight())
	})
}

// What others do costs a slow player its news, never what it is told itself.
func TestPlayerWithoutName(t *testing.T) {
	s := newStage(t)
	p := s.join(t, "")
	require.Equal(t, "player 1", p.name)
}

// The reader never waits for a shard: a full box drops datagrams, not joins.
func TestMailbox(t *testing.T) {
	m := newMailbox()
	for range maxWaiting {
		require.True(t, m.put(item{}, []byte("datagram")))
	}
	require.False(t, m.put(item{}, []byte("one too many")))
	require.True(t, m.put(item{kind: join}, nil))
	m.ring()
	m.ring()
	<-m.wake
	b := m.take(new(batch))
	require.Len(t, b.items, maxWaiting+1)
	require.Len(t, b.bytes, maxWaiting*len("datagram"))
	require.True(t, m.put(item{}, nil), "there is room again")
	b.reset()
	require.Empty(t, b.items)
}

// Sent is what the kernel took. What it refuses is counted as that, and does not
// hold up the rest.
func TestSentCountsWhatWasSent(t *testing.T) {
	var c Counters
	calls := 0
	o := &outbox{counters: &c, messages: newMessages(maxRead), write: func(m []ipv4.Message) (int, error) {
		calls++
		switch calls {
		case 1:
			return 2, nil // of five
		case 2:
			return 0, errors.New("refused")
		case 3:
			return -1, errors.New("refused")
		}
		return len(m), nil
	}}
	to := newRoute(netip.MustParseAddrPort("192.0.2.1:1"), netip.Addr{})
	for range 5 {
		o.send(append(o.buffer(), "12345"...), to)
	}
	o.flush()
	require.EqualValues(t, 3, c.DatagramsOut.Load())
	require.EqualValues(t, 15, c.BytesOut.Load())
	require.EqualValues(t, 2, c.Unsent.Load())
}

// After a pause of the process no session is asked whether it has timed out until
// the reader has emptied the socket, or a second has passed.
func TestPause(t *testing.T) {
	s := &Server{began: time.Unix(1_700_000_000, 0), clock: system{}}
	sh := &shard{server: s, mail: newMailbox(), spare: new(batch), out: &outbox{}}
	at := func(d time.Duration) time.Time { return s.began.Add(d) }
	require.True(t, sh.awake(at(0)))
	require.True(t, sh.awake(at(pause)))
	require.False(t, sh.awake(at(10*time.Second)), "woke from a pause")
	s.emptied.Store(int64(9 * time.Second))
	require.False(t, sh.awake(at(10*time.Second+16*time.Millisecond)), "that was before")
	s.emptied.Store(int64(10*time.Second + 20*time.Millisecond))
	require.True(t, sh.awake(at(10*time.Second+33*time.Millisecond)))

	idle := &peer{activeAt: at(10 * time.Second)}
	sh.rooms = []*room{newRoom(sh, 1, ground)}
	sh.rooms[0].seats[3] = idle
	require.False(t, sh.awake(at(20*time.Second)))
	require.WithinDuration(t, at(20*time.Second), idle.activeAt, 50*time.Millisecond, "nobody was idle while we slept")
	for d := 20 * time.Second; d < 21*time.Second; d += 50 * time.Millisecond {
		require.False(t, sh.awake(at(d)))
	}
	require.True(t, sh.awake(at(21*time.Second+50*time.Millisecond)), "nothing comes at all")
}

// A peer's rate is its own: what others send with its token from elsewhere does not
// use it up.
func TestRates(t *testing.T) {
	own, other := netip.MustParseAddrPort("192.0.2.1:1"), netip.MustParseAddrPort("192.0.2.2:1")
	var p peer
	p.route.Store(newRoute(own, netip.Addr{}))
	now := time.Unix(1_700_000_000, 0)
	strays := 0
	for range 10_000 {
		if p.admits(sessionDatagram, other, now) {
			strays++
		}
	}
	require.Equal(t, strayDatagrams.burst, strays)
	require.True(t, p.admits(probeReply, other, now), "a reply gets through")
	for range 5 * game.TickRate { // of five seconds, all at once
		require.True(t, p.admits(sessionDatagram, own, now))
	}
	for range 10 * game.TickRate {
		now = now.Add(time.Second / game.TickRate)
		require.True(t, p.admits(sessionDatagram, own, now))
	}
}
