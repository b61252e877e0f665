package server

import (
	"net/netip"
	"sync/atomic"
	"time"

	"github.com/ackbits/ackbits"
	"github.com/ackbits/ackbits/endpoint"
	"github.com/ackbits/ackbits/examples/arena/game"
	"github.com/ackbits/ackbits/examples/arena/ledger"
	"github.com/ackbits/ackbits/examples/arena/proto"
)

const (
	// slow is how many events may be in flight to a player before what the others
	// do is merged or dropped for it. A busy room sends some 50 a second, so it is
	// a second's worth. Smaller, a long round trip looks slow; from 256 on, the
	// sender's window, others could end its session.
	slow = 64

	// eventRate bounds the copies of events to one player, in bytes a second. At
	// 5 % loss they take some 500. Smaller, a lossy link delivers late; larger, a
	// peer that acknowledges nothing draws more.
	eventRate = 4000

	// silent is how long after its last datagram a player gets snapshots. Shorter,
	// a hiccup of its network costs snapshots that would have arrived; longer, the
	// server sends the more to who does not listen.
	silent = 500 * time.Millisecond
)

// sessionConfig is that of every session; the gate adds token and keys, the shard
// its clock. Events in flight are few, see slow, so it needs no backlog.
var sessionConfig = ackbits.Config{
	PollInterval: ticksPerSnapshot * time.Second / game.TickRate,
	Adaptive:     true, // retransmit by evidence,
	Bundle:       true, // and in the snapshots: both ends are this library
	EventRate:    eventRate,
	Outcomes:     true,
	Accept:       acceptInput,
}

// acceptInput decides on a datagram of a player who plays.
func acceptInput(h ackbits.Header, payload []byte) error {
	if h.Type != ackbits.TypeInput {
		return proto.ErrMalformed
	}
	_, err := proto.ParseInput(payload)
	return err
}

// peer is a player. The first block is set when it is admitted and never changed,
// but for route, which its shard changes. The second belongs to the reader, the
// rest to the goroutine of its shard.
type peer struct {
	token   uint64
	name    string
	wants   bool // the map
	room    *room
	place   netip.Prefix // of its chat budget
	network netip.Prefix // of its seat
	config  ackbits.Config
	route   atomic.Pointer[route]

	own, strays, replies bucket // datagrams from its address, from others, replies to probes

	session    *ackbits.Session
	path       endpoint.Path
	probing    netip.Addr // our address that the candidate of path was heard at
	confirmed  bool       // a datagram of the session opened
	unanswered int        // datagrams received since the latest flush
	slot       int
	diary      *ledger.Session // nil without a ledger
	chat       bucket
	events     bucket
	kicked     string // why it was kicked
	plays      bool   // is in the world; until then it watches
	loading    loading

	held     game.Buttons
	activeAt time.Time // when it last pressed something else, or chatted
	heardAt  time.Time
	stale    uint64 // slots of which it does not know the latest; see tell

	// What it has of our snapshots: sent remembers which number went out in
	// which datagram, and baseline is the newest that is known to have arrived.
	sent     [proto.MaxAge + 1]sentSnapshot
	baseline uint32
	hasBase  bool
}

type sentSnapshot struct {
	number   uint32
	sequence uint16
	known    bool
}

// newPeer returns a peer that was admitted. Its session begins in its shard.
func newPeer(a *endpoint.Admission, h proto.Hello, room *room, to *route) *peer {
	p := &peer{token: a.Config.Token, name: h.Name, wants: h.Map, room: room, config: a.Config, path: a.Path,
		place: place(a.Addr.Addr()), network: network(a.Addr.Addr())}
	p.route.Store(to)
	return p
}

// admits reports whether one more datagram may go to the session. The reader
// asks.
func (p *peer) admits(kind itemKind, from netip.AddrPort, now time.Time) bool {
	switch {
	case kind == probeReply:
		return p.replies.take(now, probeReplies)
	case from == p.route.Load().to:
		return p.own.take(now, peerDatagrams)
	}
	return p.strays.take(now, strayDatagrams)
}

// open begins the session.
func (p *peer) open(clock ackbits.Clock, keepDiary bool) (err error) {
	p.config.Clock = clock
	if p.wants {
		p.config.Accept = p.accept
	}
	p.session, err = ackbits.NewSession(p.config)
	if err == nil && p.wants {
		err = p.loading.begin(p.session, clock, p.room.level)
	}
	p.activeAt, p.heardAt = clock.Now(), clock.Now()
	if keepDiary {
		p.diary = &ledger.Session{Token: p.token}
	}
	return err
}

// accept decides on a datagram of a player who wants the map.
func (p *peer) accept(h ackbits.Header, payload []byte) error {
	if h.Type == proto.TypeMap {
		return p.loading.receive(payload)
	}
	return acceptInput(h, payload)
}

// send sends an event. An error has ended the session, which the next tick will
// find.
func (p *peer) send(event []byte) {
	if _, err := p.session.Send(event); err == nil && p.diary != nil {
		p.diary.NoteSent(event)
	}
}

// tell sends an event of the room to a player, unless it is slow: then what others
// do must not fill its session until it ends. Of who is in a slot with which
// score only the latest matters, so that is merged: the slot is marked as stale, and its
// latest is sent once the player has caught up. Other events are dropped. It reports whether
// the event was sent.
func (p *peer) tell(kind proto.Kind, slot uint8, event []byte) bool {
	var roster uint64
	switch kind {
	case proto.Joined, proto.Left, proto.Scored:
		roster = 1 << slot
	}
	if p.stale&roster == 0 && p.session.InFlight() < slow {
		p.send(event)
		return true
	}
	p.stale |= roster
	return false
}

// noteSnapshot remembers in which datagram a snapshot went out.
func (p *peer) noteSnapshot(number uint32, sequence uint16) {
	p.sent[number%uint32(len(p.sent))] = sentSnapshot{number, sequence, true}
}

// readOutcomes moves the baseline to the newest snapshot that arrived, and tells the
// map's transfer what became of its chunks.
func (p *peer) readOutcomes() {
	for {
		o, ok := p.session.NextOutcome()
		if !ok {
			return
		}
		if p.loading.files != nil {
			p.loading.files.Outcome(o)
		}
		if !o.Delivered || o.Type != ackbits.TypeSnapshot {
			continue
		}
		for _, s := range p.sent {
			if s.known && s.sequence == o.Sequence && (!p.hasBase || s.number > p.baseline) {
				p.baseline, p.hasBase = s.number, true
			}
		}
	}
}

// age returns how old the baseline for a snapshot is, 0 if it must be whole.
func (p *peer) age(number uint32) uint8 {
	if age := number - p.baseline; p.hasBase && age <= proto.MaxAge {
		return uint8(age)
	}
	return 0
}
