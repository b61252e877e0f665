package server

import (
	"time"

	"github.com/ackbits/ackbits"
	"github.com/ackbits/ackbits/examples/arena/game"
	"github.com/ackbits/ackbits/examples/arena/proto"
)

// ticksPerSnapshot makes 20 snapshots a second of 60 ticks.
const ticksPerSnapshot = game.TickRate / 20

// room is one world and those who play in it. All but taken belongs to the
// goroutine of its shard.
type room struct {
	shard *shard
	taken int // peers admitted; under the table's lock

	world *game.World
	seats [game.MaxPlayers]*peer

	// The latest snapshots, by number, as baselines for later ones. All players
	// of a room share them.
	number  uint32
	history [proto.MaxAge + 1]game.State

	event   []byte // scratch
	payload []byte
}

func newRoom(shard *shard, seed uint64) *room {
	return &room{shard: shard, world: game.New(seed)}
}

// join seats a peer and tells everybody. The table has made sure that there is
// a seat: seats are emptied before it counts them as free.
func (r *room) join(p *peer, now time.Time) {
	for r.seats[p.slot] != nil {
		p.slot++
	}
	r.tell(p, proto.Event{Kind: proto.Welcome, At: now, Slot: uint8(p.slot)})
	for slot, other := range r.seats {
		if other != nil {
			r.tell(p, proto.Event{Kind: proto.Joined, At: now, Slot: uint8(slot), Text: other.name})
			r.tell(p, proto.Event{Kind: proto.Scored, At: now, Slot: uint8(slot), Score: r.world.Score(slot)})
		}
	}
	r.seats[p.slot] = p
	r.world.Join(p.slot)
	r.tellAll(proto.Event{Kind: proto.Joined, At: now, Slot: uint8(p.slot), Text: p.name})
}

// leave empties the seat of a peer and tells the others, unless the server is
// about to leave itself.
func (r *room) leave(p *peer, now time.Time, reason string) {
	r.seats[p.slot] = nil
	r.world.Leave(p.slot)
	if r.shard.ending {
		return
	}
	r.tellAll(proto.Event{Kind: proto.Left, At: now, Slot: uint8(p.slot), Text: proto.Clip(reason, proto.MaxText)})
}

// receive takes in what a datagram of a peer brought.
func (r *room) receive(p *peer, in ackbits.Incoming, now time.Time) {
	if in.Latest { // an older input than the one that counts changes nothing
		if held, err := proto.ParseInput(in.Payload); err == nil {
			r.world.Hold(p.slot, held)
		}
	}
	for _, raw := range in.Events {
		if p.diary != nil {
			p.diary.NoteGot(raw.ID, raw.Data)
		}
		e, err := proto.ParseEvent(raw.Data)
		if err == nil && e.Kind == proto.Say && !r.shard.ending && p.mayChat(now) {
			r.tellAll(proto.Event{Kind: proto.Said, At: e.At, Slot: uint8(p.slot), Text: e.Text})
		}
	}
}

// step moves the world and tells everybody what happened.
func (r *room) step(now time.Time) {
	for _, h := range r.world.Step() {
		e := proto.Event{At: now, Slot: h.Slot, By: h.By, Score: h.Score}
		switch h.What {
		case game.Spawned:
			e.Kind = proto.Spawned
		case game.Died:
			e.Kind = proto.Died
		case game.Scored:
			e.Kind = proto.Scored
		}
		r.tellAll(e)
	}
}

// snapshot sends everybody the state as a difference from what they have.
func (r *room) snapshot(out *outbox) {
	r.number++
	state := &r.history[r.number%uint32(len(r.history))]
	*state = *r.world.State()
	var empty game.State
	for _, p := range r.seats {
		if p == nil {
			continue
		}
		p.readOutcomes()
		base, age := &empty, p.age(r.number)
		if age > 0 {
			base = &r.history[p.baseline%uint32(len(r.history))]
		}
		r.payload = proto.AppendSnapshot(r.payload[:0], r.number, age, base, state)
		datagram, sequence, err := p.session.AppendDatagram(out.buffer(), ackbits.TypeSnapshot, r.payload)
		if err != nil {
			continue // it has ended
		}
		p.noteSnapshot(r.number, sequence)
		out.send(datagram, p.to)
	}
}

func (r *room) tell(p *peer, e proto.Event) {
	r.event = proto.AppendEvent(r.event[:0], e)
	p.tell(r.event)
}

func (r *room) tellAll(e proto.Event) {
	r.event = proto.AppendEvent(r.event[:0], e)
	for _, p := range r.seats {
		if p != nil {
			p.tell(r.event)
		}
	}
}
