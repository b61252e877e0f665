package server

import (
	"fmt"
	"math/bits"
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
	level *level
	seats [game.MaxPlayers]*peer

	// The latest snapshots, by number, as baselines for later ones. All players
	// of a room share them.
	number  uint32
	history [proto.MaxAge + 1]game.State

	event    []byte // scratch
	payload  []byte
	datagram [ackbits.MaxDatagramSize]byte
}

func newRoom(shard *shard, seed uint64, m *level) *room {
	return &room{shard: shard, level: m, world: game.New(seed, m.Map)}
}

// join seats a peer and tells everybody. The table has made sure that there is
// a seat: seats are emptied before it counts them as free. Who else is there the
// new one learns as one that is behind does, in catchUp.
func (r *room) join(p *peer, now time.Time) {
	for slot, other := range r.seats {
		if other != nil {
			p.stale |= 1 << slot
		}
	}
	for r.seats[p.slot] != nil {
		p.slot++
	}
	if p.name == "" {
		p.name = fmt.Sprintf("player %d", p.slot)
	}
	r.tell(p, proto.Event{Kind: proto.Welcome, At: now, Slot: uint8(p.slot)})
	r.seats[p.slot] = p
	if !p.wants {
		r.enter(p) // else when it has the map
	}
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

// kick ends the session of a player, and sends it the reason first.
func (r *room) kick(p *peer, now time.Time, reason string) {
	if p.kicked != "" || r.shard.ending {
		return
	}
	p.kicked = reason
	p.loading = loading{}
	r.shard.server.counters.Kicked.Add(1)
	r.tell(p, proto.Event{Kind: proto.Closing, At: now, Text: reason})
	p.session.Shutdown(kickPatience)
}

// receive processes what a datagram of a peer brought.
func (r *room) receive(p *peer, in ackbits.Incoming, now time.Time) {
	p.heardAt = now
	if in.Latest { // an older input than the one that counts changes nothing
		if held, err := proto.ParseInput(in.Payload); err == nil {
			r.hold(p, held, now)
		}
	}
	for _, raw := range in.Events {
		if p.kicked != "" {
			return
		}
		if p.diary != nil {
			p.diary.NoteGot(raw.ID, raw.Data)
		}
		if !p.events.take(now, peerEvents) {
			r.kick(p, now, "you sent too many events")
			return
		}
		if e, err := proto.ParseEvent(raw.Data); err == nil && e.Kind == proto.Say {
			r.say(p, e, now)
		}
	}
}

// hold sets the buttons of a peer.
func (r *room) hold(p *peer, held game.Buttons, now time.Time) {
	if held != p.held {
		p.held, p.activeAt = held, now
	}
	r.world.Hold(p.slot, held)
}

// say repeats a line of chat to the room, if the budgets of the player and of its
// place allow it.
func (r *room) say(p *peer, e proto.Event, now time.Time) {
	p.activeAt = now
	if r.shard.ending || e.Text == "" || !p.chat.take(now, peerChat) || !r.shard.server.budgets.take(p.place, now) {
		return
	}
	r.tellAll(proto.Event{Kind: proto.Said, At: e.At, Slot: uint8(p.slot), Text: e.Text})
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

// snapshot sends everybody who listens the state as a difference from what they
// have, with the events that are due.
func (r *room) snapshot(out *outbox, now time.Time) {
	r.number++
	state := &r.history[r.number%uint32(len(r.history))]
	*state = *r.world.State()
	var empty game.State
	for _, p := range r.seats {
		if p == nil || p.kicked != "" {
			continue
		}
		p.readOutcomes()
		r.catchUp(p, now)
		if now.Sub(p.heardAt) > silent {
			continue
		}
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
		out.send(datagram, p.route.Load())
	}
}

// catchUp tells a peer the latest of the slots of which it has missed something,
// as far as it keeps up.
func (r *room) catchUp(p *peer, now time.Time) {
	for p.stale != 0 && p.session.InFlight() < slow-1 {
		slot := bits.TrailingZeros64(p.stale)
		p.stale &^= 1 << slot
		other := r.seats[slot]
		if other == nil {
			r.tell(p, proto.Event{Kind: proto.Left, At: now, Slot: uint8(slot), Text: "some time ago"})
			continue
		}
		r.tell(p, proto.Event{Kind: proto.Joined, At: now, Slot: uint8(slot), Text: other.name})
		r.tell(p, proto.Event{Kind: proto.Scored, At: now, Slot: uint8(slot), Score: r.world.Score(slot)})
	}
}

// tell sends one peer an event, however slow it is.
func (r *room) tell(p *peer, e proto.Event) {
	r.event = proto.AppendEvent(r.event[:0], e)
	p.send(r.event)
}

// tellAll tells everybody an event, merged or dropped for who is slow.
func (r *room) tellAll(e proto.Event) {
	r.event = proto.AppendEvent(r.event[:0], e)
	for _, p := range r.seats {
		if p != nil && p.kicked == "" && !p.tell(e.Kind, e.Slot, r.event) {
			r.shard.server.counters.Merged.Add(1)
		}
	}
}
