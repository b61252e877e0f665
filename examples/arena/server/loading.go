package server

import (
	"bytes"
	"crypto/sha256"
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
	done  int64 // bytes that the player had when it was last looked at
}

// begin offers the map to a player whose session has just begun.
func (l *loading) begin(s *ackbits.Session, clock ackbits.Clock, m *level) (err error) {
	l.files, err = transfer.New(s, transfer.Config{
		Type:         proto.TypeMap,
		Clock:        clock,
		PollInterval: time.Second / game.TickRate,
		MaxRate:      mapRate,
	})
	if err == nil {
		l.out, err = l.files.SendDigest([]byte(proto.MapName), bytes.NewReader(m.Bytes()), int64(game.MapSize), m.digest)
	}
	return err
}

// receive takes in what a player says of the map. What comes once it has it is a
// repetition.
func (l *loading) receive(payload []byte) error {
	if l.files == nil {
		return nil
	}
	return l.files.Receive(payload)
}

// progressed reports whether the player has more of the map than when it was last
// asked.
func (l *loading) progressed() bool {
	before := l.done
	l.done, _ = l.out.Progress()
	return l.done > before
}

// feed sends the player what may go now of the map. As soon as the player has said
// that it has all of it, and that its digest is right, it plays.
func (r *room) feed(p *peer, out *outbox, now time.Time) {
	l := &p.loading
	if l.files == nil {
		return
	}
	p.readOutcomes()
	if now.Sub(p.heardAt) <= silent {
		for datagram := range l.files.Due(r.datagram[:0]) {
			out.send(append(out.buffer(), datagram...), p.route.Load())
		}
	}
	switch err := l.out.Err(); {
	case err == nil:
		if l.progressed() {
			p.activeAt = now // who loads is not idle
		}
	case err == io.EOF:
		if !p.plays {
			r.enter(p)
		}
		if l.files.Idle() {
			*l = loading{} // a player takes no memory for it any more
		}
	case p.session.Err() == nil:
		*l = loading{}
		r.kick(p, now, proto.Clip("you did not get the map: "+err.Error(), proto.MaxText))
	}
}

// enter lets a player into the world.
func (r *room) enter(p *peer) {
	p.plays = true
	r.world.Join(p.slot)
}
