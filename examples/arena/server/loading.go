package server

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"io"
	"time"

	"github.com/ackbits/ackbits"
	"github.com/ackbits/ackbits/examples/arena/game"
	"github.com/ackbits/ackbits/examples/arena/proto"
	"github.com/ackbits/ackbits/transfer"
)

// mapRate bounds what the map takes on the way to one player, in bytes a second with
// all headers: 128 KiB arrive in half a second. Transfers find out what a player's own
// line has to spare; this is for the server's line, on which many may load at once. Less
// makes players wait, more lets a crowd that joins take the line from who plays.
const mapRate = 384 << 10

// mapPace is how often a shard looks after the maps on their way. What goes at once has
// to be short: on a line of 2 Mbit/s the chunks of 4 ms hold up a snapshot for 4 ms,
// those of a tick for 17, and a queue that they make is found out about as late. Less
// wakes the shard more often.
const mapPace = 4 * time.Millisecond

// mapPatience is how long the map may make no progress: then the player is kicked. Less
// kicks who has a bad half minute, which ends most sessions anyway; more lets who
// acknowledges nothing have the server remember more chunks.
const mapPatience = 30 * time.Second

// level is the map of a server. All players are sent the same bytes, which are hashed
// once; nobody writes to them.
type level struct {
	*game.Map
	digest [sha256.Size]byte
}

func newLevel(seed uint64) *level {
	m := game.Generate(seed)
	return &level{m, sha256.Sum256(m.Bytes())}
}

// loading is the map on its way to a player, who watches until it is there. It belongs
// to the goroutine of the player's shard.
type loading struct {
	files *transfer.Transfers // nil once the player has the map, or wants none
	out   *transfer.Outgoing
	done  int64     // bytes that the player has
	since time.Time // when it got the latest of them
}

// begin offers the map to a player whose session has just begun.
func (l *loading) begin(s *ackbits.Session, clock ackbits.Clock, m *level) (err error) {
	l.files, err = transfer.New(s, transfer.Config{
		Type:         proto.TypeMap,
		Clock:        clock,
		PollInterval: mapPace,
		MaxRate:      mapRate,
	})
	if err == nil {
		l.since = clock.Now()
		l.out, err = l.files.SendDigest([]byte(proto.MapName), bytes.NewReader(m.Bytes()), game.MapSize, m.digest)
	}
	return err
}

// receive processes what a player says of the map. What comes once it has it is a
// repetition.
func (l *loading) receive(payload []byte) error {
	if l.files == nil {
		return nil
	}
	return l.files.Receive(payload)
}

// progressed reports whether the player has more of the map than before.
func (l *loading) progressed(now time.Time) bool {
	before := l.done
	if l.done, _ = l.out.Progress(); l.done == before {
		return false
	}
	l.since = now
	return true
}

// feed sends what may go now of the map to who loads it.
func (sh *shard) feed() {
	now := sh.clock.Now()
	sh.loads = false
	for _, r := range sh.rooms {
		for _, p := range r.seats {
			if p != nil && p.loading.files != nil && !sh.ending {
				r.feed(p, sh.out, now)
				sh.loads = true
			}
		}
	}
	sh.out.flush()
}

// feed sends a player what may go now of the map. As soon as the player has said
// that it has all of it, and that its digest is right, it plays.
func (r *room) feed(p *peer, out *outbox, now time.Time) {
	l := &p.loading
	p.readOutcomes()
	if now.Sub(p.heardAt) <= silent {
		for datagram := range l.files.Due(r.datagram[:0]) {
			out.send(append(out.buffer(), datagram...), p.route.Load())
		}
	}
	switch err := l.out.Err(); {
	case err == nil:
		if l.progressed(now) {
			p.activeAt = now // who loads is not idle
		} else if now.Sub(l.since) > mapPatience {
			r.kick(p, now, fmt.Sprintf("nothing of the map reached you for %v", mapPatience))
		}
	case err == io.EOF:
		if !p.plays {
			r.shard.server.counters.Maps.Add(1)
			r.enter(p)
		}
		if l.files.Idle() {
			*l = loading{} // a player takes no memory for it any more
		}
	case p.session.Err() == nil:
		r.kick(p, now, proto.Clip("you did not get the map: "+err.Error(), proto.MaxText))
	}
}

// enter lets a player into the world.
func (r *room) enter(p *peer) {
	p.plays = true
	r.world.Join(p.slot)
}
