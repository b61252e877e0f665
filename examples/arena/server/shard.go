package server

import (
	"fmt"
	"sync/atomic"
	"time"

	"github.com/ackbits/ackbits"
	"github.com/ackbits/ackbits/endpoint"
	"github.com/ackbits/ackbits/examples/arena/game"
	"github.com/ackbits/ackbits/examples/arena/proto"
)

const (
	// When the server leaves, it waits for events in flight: so long at least for
	// those of players, of which we do not know, and so long at most for ours.
	drainMin = 300 * time.Millisecond
	drainMax = 2 * time.Second

	// kickPatience is how long a kicked player may take to acknowledge the reason.
	kickPatience = time.Second

	// ackAfter is how many datagrams of a peer may be received until their
	// acknowledgement goes out: a header names 33. A client at 60 inputs a second
	// sends three between two snapshots; after a pause they come all at once.
	ackAfter = 32

	// crowdedIdle is how many times sooner idle players go while few seats are left.
	crowdedIdle = 6

	// A tick so late means that the process did not run: datagrams wait in the
	// kernel that would keep sessions alive. Until the reader has been there,
	// or patience is over, no session is asked whether it has timed out. A shorter
	// pause would hold up ticks on a busy machine, a longer one would let sessions
	// end with a Timeout of 5 s.
	pause    = 500 * time.Millisecond
	patience = time.Second
)

// shard runs rooms and the sessions in them in one goroutine, so that nothing in
// them needs a lock. It reads the time once for each tick and each batch of
// datagrams; all its sessions share that reading.
type shard struct {
	server *Server
	clock  ackbits.ManualClock
	rooms  []*room
	mail   *mailbox
	spare  *batch // empty
	out    *outbox
	peers  int
	tick   uint64
	ticked time.Time     // when the latest tick was
	woke   time.Time     // from a pause, while what the kernel holds was not read; else zero
	ending bool          // nothing new is said any more
	loads  bool          // the map is on its way to somebody
	totals ackbits.Stats // of the sessions that have ended
	sum    atomic.Pointer[Sum]
}

func newShard(s *Server) *shard {
	sh := &shard{server: s, mail: newMailbox(), spare: new(batch), out: newOutbox(s.socket, &s.counters)}
	sh.clock.Set(s.clock.Now())
	sh.sum.Store(new(Sum))
	return sh
}

// run runs the shard until stop is closed and every player was informed.
func (sh *shard) run(stop <-chan struct{}) {
	ticker := time.NewTicker(time.Second / game.TickRate)
	defer ticker.Stop()
	pace := time.NewTicker(mapPace)
	defer pace.Stop()
	var deadline time.Time
	for paced := true; ; {
		if paced != sh.loads { // nobody wakes for maps while nobody loads one
			if paced = sh.loads; paced {
				pace.Reset(mapPace)
			} else {
				pace.Stop()
			}
		}
		select {
		case <-sh.mail.wake:
			sh.receive()
		case <-ticker.C:
			start := time.Now()
			if !sh.awake(start) {
				continue
			}
			sh.clock.Set(start)
			sh.step()
			sh.measure(time.Since(start))
			if sh.ending && sh.saidAll(start, deadline) {
				sh.close()
				return
			}
		case <-pace.C:
			if sh.woke.IsZero() {
				sh.clock.Set(time.Now())
				sh.feed()
			}
		case <-stop:
			stop = nil
			deadline = time.Now().Add(drainMax)
			sh.announce(deadline.Add(-drainMax))
		}
	}
}

// awake receives what waits, so that no session is found silent whose datagrams
// are here already, and reports whether that is all.
func (sh *shard) awake(now time.Time) bool {
	if slept := now.Sub(sh.ticked); !sh.ticked.IsZero() && slept > pause {
		sh.woke = now
		sh.forgive(slept)
	}
	sh.ticked = now
	if !sh.woke.IsZero() && (sh.server.emptiedSince(sh.woke) || now.Sub(sh.woke) > patience) {
		sh.woke = time.Time{}
	}
	sh.receive()
	return sh.woke.IsZero()
}

// forgive leaves a pause of ours out of the time that players were idle, or waited for
// the map.
func (sh *shard) forgive(pause time.Duration) {
	for _, r := range sh.rooms {
		for _, p := range r.seats {
			if p != nil {
				p.activeAt = p.activeAt.Add(pause)
				p.loading.since = p.loading.since.Add(pause)
			}
		}
	}
}

// receive gives datagrams to their sessions, in the order of arrival. Their
// acknowledgements go out with the next snapshot, unless so many arrive that they
// would overrun the ack window.
func (sh *shard) receive() {
	b := sh.mail.take(sh.spare)
	sh.clock.Set(sh.server.clock.Now())
	now := sh.clock.Now()
	bytes := b.bytes
	for i := range b.items {
		it := &b.items[i]
		datagram := bytes[:it.size:it.size]
		bytes = bytes[it.size:]
		switch p := it.peer; {
		case it.kind == join:
			sh.join(p, now)
		case p.session.Err() != nil: // it ended with a datagram before this one
		case it.kind == probeReply:
			sh.move(p, it, datagram)
		default:
			sh.take(p, it, datagram, now)
		}
	}
	sh.out.flush()
	b.reset()
	sh.spare = b
}

// take gives a datagram to its session, and has the address that it came from
// probed if that is another than the peer's.
func (sh *shard) take(p *peer, it *item, datagram []byte, now time.Time) {
	h, _, _ := ackbits.ParseHeader(datagram) // the reader has parsed it
	in, err := p.session.Receive(datagram)
	if endpoint.Opened(err) {
		if !p.confirmed {
			p.confirmed = true
			sh.server.door.confirm(p.token)
		}
		p.path.Opened(it.from, h.Sequence)
		if probe, to, ok := p.path.AppendDue(sh.out.buffer()); ok {
			p.probing = it.at
			sh.out.send(probe, newRoute(to, it.at))
		}
	}
	if err != nil {
		sh.server.counters.Malformed.Add(1)
		return
	}
	p.room.receive(p, in, now)
	if p.unanswered++; p.unanswered == ackAfter {
		sh.flush(p)
	}
}

// move processes the reply to a probe: from here on the peer's datagrams go where
// it has shown to be.
func (sh *shard) move(p *peer, it *item, datagram []byte) {
	if !p.path.Answer(it.from, datagram) {
		sh.server.counters.Malformed.Add(1)
		return
	}
	p.route.Store(newRoute(p.path.Addr(), p.probing))
	sh.server.counters.Moves.Add(1)
	sh.server.log.Debug("moved", "name", p.name, "addr", p.path.Addr())
}

func (sh *shard) join(p *peer, now time.Time) {
	if err := p.open(&sh.clock, sh.server.cfg.Ledger != nil); err != nil {
		panic(err) // the configuration is ours
	}
	sh.peers++
	sh.loads = sh.loads || p.wants
	p.room.join(p, now)
	sh.server.log.Debug("joined", "name", p.name, "addr", p.path.Addr(), "slot", p.slot)
}

// step is one tick. The game moves on in each; datagrams go out in every third,
// snapshots first, because events that find no snapshot to ride in would need
// datagrams of their own: half as many again, to save 17 ms on average.
func (sh *shard) step() {
	sh.tick++
	now := sh.clock.Now()
	sends := sh.tick%ticksPerSnapshot == 0
	for _, r := range sh.rooms {
		if !sh.ending {
			r.step(now)
			if sends {
				r.snapshot(sh.out, now)
			}
		}
		if sends {
			sh.flushRoom(r, now)
		}
	}
	sh.out.flush()
	if sh.tick%game.TickRate == 0 {
		sh.kickIdle(now)
		sh.publish()
	}
}

// flushRoom sends what is due in the sessions of a room and removes those that ended.
func (sh *shard) flushRoom(r *room, now time.Time) {
	for _, p := range r.seats {
		if p == nil {
			continue
		}
		sh.flush(p)
		if p.session.Err() != nil {
			sh.end(p, now)
		}
	}
}

// kickIdle kicks players who have pressed nothing for too long, sooner while few
// seats are left.
func (sh *shard) kickIdle(now time.Time) {
	long := sh.server.cfg.Idle
	if long == 0 {
		return
	}
	for _, r := range sh.rooms {
		for _, p := range r.seats {
			if p == nil || now.Sub(p.activeAt) < long/crowdedIdle {
				continue
			}
			if idle := now.Sub(p.activeAt); idle >= long || sh.server.table.crowded(p.network) {
				r.kick(p, now, fmt.Sprintf("you did nothing for %v", idle.Round(time.Second)))
			}
		}
	}
}

// flush sends what is due in a session.
func (sh *shard) flush(p *peer) {
	p.unanswered = 0
	for {
		datagram, ok := p.session.AppendDue(sh.out.buffer())
		if !ok {
			return
		}
		sh.out.send(datagram, p.route.Load())
	}
}

// end removes a peer whose session has ended and tells the others.
func (sh *shard) end(p *peer, now time.Time) {
	reason := p.session.Err().Error()
	if p.kicked != "" {
		reason = "kicked"
	}
	p.room.leave(p, now, reason)
	sh.settle(p)
}

// settle frees the seat of a peer whose session has ended, and writes its ledger.
func (sh *shard) settle(p *peer) {
	s, reason := sh.server, p.session.Err()
	s.door.end(p.token)
	s.table.remove(p)
	sh.peers--
	sh.totals.Add(p.session.Stats())
	s.counters.Ended.Add(1)
	s.log.Debug("left", "name", p.name, "addr", p.path.Addr(), "reason", reason)
	if p.diary == nil {
		return
	}
	p.diary.Reason, p.diary.InFlight = reason.Error(), p.session.InFlight()
	if err := s.cfg.Ledger.Add(p.diary); err != nil {
		s.fail(err)
	}
}

// announce tells everybody that the server is going away.
func (sh *shard) announce(now time.Time) {
	sh.ending = true
	for _, r := range sh.rooms {
		for _, p := range r.seats {
			if p != nil && p.kicked == "" {
				r.tell(p, proto.Event{Kind: proto.Closing, At: now, Text: errLeaving.Error()})
			}
		}
	}
}

// saidAll reports whether all events have arrived, or their time is up.
func (sh *shard) saidAll(now, deadline time.Time) bool {
	if now.After(deadline) {
		return true
	}
	if now.Before(deadline.Add(drainMin - drainMax)) {
		return false
	}
	for _, r := range sh.rooms {
		for _, p := range r.seats {
			if p != nil && p.session.InFlight() > 0 {
				return false
			}
		}
	}
	return true
}

// close ends all sessions: three Disconnects each. They leave before the sessions are
// forgotten, or the reader's Reset could overtake them.
func (sh *shard) close() {
	sh.everybody(func(p *peer) {
		p.session.Close()
		sh.flush(p)
	})
	sh.out.flush()
	sh.everybody(func(p *peer) {
		p.room.seats[p.slot] = nil
		sh.settle(p)
	})
	sh.publish()
}

// everybody calls a function for each player of the shard.
func (sh *shard) everybody(do func(p *peer)) {
	for _, r := range sh.rooms {
		for _, p := range r.seats {
			if p != nil {
				do(p)
			}
		}
	}
}

// measure counts a tick.
func (sh *shard) measure(took time.Duration) {
	c := &sh.server.counters
	c.Ticks.Add(1)
	c.TickNanos.Add(uint64(took))
	if took > time.Second/game.TickRate {
		c.LateTicks.Add(1)
	}
}
