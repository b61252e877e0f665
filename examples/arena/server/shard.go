package server

import (
	"sync/atomic"
	"time"

	"github.com/ackbits/ackbits"
	"github.com/ackbits/ackbits/examples/arena/game"
	"github.com/ackbits/ackbits/examples/arena/proto"
	"github.com/ackbits/ackbits/examples/arena/tally"
)

// When the server leaves, events on the way to and from players get this long.
const (
	farewellMin = 300 * time.Millisecond // for theirs, of which we do not know
	farewellMax = 2 * time.Second        // for ours
)

// batch carries what one reading of the socket brought for a shard.
type batch struct {
	items []item
	bytes []byte
}

// item is a datagram, or a peer that joins.
type item struct {
	peer *peer
	size int // of the datagram, in bytes
	join bool
}

func (b *batch) add(p *peer, datagram []byte) {
	b.items = append(b.items, item{peer: p, size: len(datagram)})
	b.bytes = append(b.bytes, datagram...)
}

func (b *batch) reset() { b.items, b.bytes = b.items[:0], b.bytes[:0] }

// shard runs rooms and the sessions in them in one goroutine, so that nothing in
// them needs a lock. It reads the time once for each tick and each batch of
// datagrams; all its sessions share that reading.
type shard struct {
	server *Server
	clock  ackbits.ManualClock
	rooms  []*room
	inbox  chan *batch
	spare  chan *batch // empty ones, back to the reader
	out    *outbox
	peers  int
	tick   uint64
	ending bool          // nothing new is said any more
	totals ackbits.Stats // of the sessions that have ended
	sum    atomic.Pointer[Sum]
}

func newShard(s *Server) *shard {
	sh := &shard{server: s, inbox: make(chan *batch, 64), spare: make(chan *batch, 64),
		out: newOutbox(s.socket, &s.counters)}
	sh.clock.Set(time.Now())
	sh.sum.Store(new(Sum))
	return sh
}

// run is the life of the shard, until stop is closed and everybody was told.
func (sh *shard) run(stop <-chan struct{}) {
	ticker := time.NewTicker(time.Second / game.TickRate)
	defer ticker.Stop()
	var deadline time.Time
	for {
		select {
		case b := <-sh.inbox:
			sh.receive(b)
		case <-ticker.C:
			sh.catchUp()
			start := time.Now()
			sh.clock.Set(start)
			sh.step()
			sh.measure(time.Since(start))
			if sh.ending && sh.saidAll(start, deadline) {
				sh.close()
				return
			}
		case <-stop:
			stop = nil
			deadline = time.Now().Add(farewellMax)
			sh.announce(deadline.Add(-farewellMax))
		}
	}
}

// catchUp takes in what is waiting: after a pause of ours, a tick before that
// would find sessions silent whose datagrams are here already.
func (sh *shard) catchUp() {
	for range len(sh.inbox) {
		sh.receive(<-sh.inbox)
	}
}

// receive hands datagrams to their sessions, in the order of arrival. What they
// owe for it goes out with the next snapshot: by then a client at sixty inputs a
// second has sent three or four more, far from the 32 that would outrun the
// acknowledgements.
func (sh *shard) receive(b *batch) {
	sh.clock.Set(time.Now())
	now := sh.clock.Now()
	bytes := b.bytes
	for _, it := range b.items {
		datagram := bytes[:it.size:it.size]
		bytes = bytes[it.size:]
		p := it.peer
		switch {
		case it.join:
			sh.join(p, now)
		case p.session.Err() != nil: // it ended with a datagram before this one
		default:
			in, err := p.session.Receive(datagram)
			if err != nil {
				sh.server.counters.Malformed.Add(1)
				continue
			}
			p.room.receive(p, in, now)
		}
	}
	b.reset()
	select {
	case sh.spare <- b:
	default:
	}
}

func (sh *shard) join(p *peer, now time.Time) {
	if err := p.open(&sh.clock, sh.server.cfg.Ledger != nil); err != nil {
		panic(err) // the configuration is ours
	}
	sh.peers++
	p.room.join(p, now)
	sh.server.log.Debug("joined", "name", p.name, "addr", p.addr, "slot", p.slot)
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
				r.snapshot(sh.out)
			}
		}
		if sends {
			sh.flushRoom(r, now)
		}
	}
	sh.out.flush()
	if sh.tick%game.TickRate == 0 {
		sh.publish()
	}
}

// flushRoom sends what the sessions of a room owe and removes those that ended.
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

// flush sends what a session owes.
func (sh *shard) flush(p *peer) {
	for {
		datagram, ok := p.session.AppendDue(sh.out.buffer())
		if !ok {
			return
		}
		sh.out.send(datagram, p.to)
	}
}

// end removes a peer whose session has ended and tells the others.
func (sh *shard) end(p *peer, now time.Time) {
	p.room.leave(p, now, p.session.Err().Error())
	sh.settle(p)
}

// settle closes the books on a peer whose session has ended.
func (sh *shard) settle(p *peer) {
	s, reason := sh.server, p.session.Err()
	s.table.remove(p)
	sh.peers--
	tally.Add(&sh.totals, p.session.Stats())
	s.counters.Ended.Add(1)
	s.log.Debug("left", "name", p.name, "addr", p.addr, "reason", reason)
	if p.diary == nil {
		return
	}
	p.diary.Reason, p.diary.InFlight = reason.Error(), p.session.InFlight()
	if err := s.cfg.Ledger.Add(p.diary); err != nil {
		s.log.Error("ledger not written", "err", err)
	}
}

// announce tells everybody that the server is going away.
func (sh *shard) announce(now time.Time) {
	sh.ending = true
	for _, r := range sh.rooms {
		r.tellAll(proto.Event{Kind: proto.Closing, At: now, Text: "the server is shutting down"})
	}
}

// saidAll reports whether all events have arrived, or their time is up.
func (sh *shard) saidAll(now, deadline time.Time) bool {
	if now.After(deadline) {
		return true
	}
	if now.Before(deadline.Add(farewellMin - farewellMax)) {
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

// close says goodbye to everybody: three Disconnects each.
func (sh *shard) close() {
	for _, r := range sh.rooms {
		for slot, p := range r.seats {
			if p == nil {
				continue
			}
			p.session.Close()
			sh.flush(p)
			r.seats[slot] = nil
			sh.settle(p)
		}
	}
	sh.out.flush()
	sh.publish()
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
