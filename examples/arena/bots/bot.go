package bots

import (
	"math/rand/v2"
	"time"

	"github.com/ackbits/ackbits"
	"github.com/ackbits/ackbits/examples/arena/client"
	"github.com/ackbits/ackbits/examples/arena/game"
	"github.com/ackbits/ackbits/examples/arena/ledger"
	"github.com/ackbits/ackbits/examples/arena/link"
	"github.com/ackbits/ackbits/examples/arena/proto"
)

const (
	tick      = time.Second / game.TickRate
	chatEvery = 5 * time.Second // on average
	drain     = 2 * time.Second // for our own events, before we leave
	linger    = 50 * time.Millisecond
)

var phrases = [...]string{"nice shot", "where are you all?", "behind the wall!", "not again", "who is winning?", "over here"}

// bot is one player of a swarm. It belongs to the goroutine of its worker.
type bot struct {
	name   string
	worker *worker
	conn   *link.Conn
	client *client.Client
	level  *client.Level   // nil: it plays without the map
	mapped bool            // the map of the present session is there
	diary  *ledger.Session // of the present session; nil before it begins
	rng    *rand.Rand

	opened      time.Time // when the present session began
	nextTick    time.Time
	frozenUntil time.Time
	leaveBy     time.Time // zero while it plays
	endsAt      time.Time // when its last datagrams have left the link
	left, done  bool

	held     game.Buttons
	thinkAt  time.Time
	sessions int           // begun so far
	ends     []End         // of all its sessions so far
	sofar    ackbits.Stats // of the sessions before the present one
}

// End is how a session of a bot ended.
type End struct {
	At  time.Time
	Err error
}

// join begins a new attempt to play.
func (b *bot) join() {
	b.client = client.New(client.Config{
		Name:      b.name,
		Level:     b.level,
		ServerKey: b.worker.swarm.cfg.ServerKey,
		AEAD:      b.worker.swarm.cfg.AEAD,
		Clock:     &b.worker.clock,
		Send:      func(datagram []byte) { b.conn.Send(b.worker.clock.Now(), datagram) },
		Opened: func(token uint64) {
			b.sessions++
			b.opened = b.worker.clock.Now()
			b.mapped = b.level == nil || b.level.Map() != nil
			b.diary = &ledger.Session{Token: token, Ordered: true}
		},
		Sent: func(event []byte) { b.diary.NoteSent(event) },
		Got:  b.got,
	})
}

// got notes an event. What the server stamped tells how long it took, unless it
// did so before we knew that we were let in.
func (b *bot) got(id uint16, event []byte, e proto.Event) {
	b.diary.NoteGot(id, event)
	if e.Kind != proto.Said && e.At.After(b.opened) {
		b.worker.events.Add(b.worker.clock.Now().Sub(e.At))
	}
}

// poll does all that is to be done now: receive what has arrived, play, send.
func (b *bot) poll(now time.Time) {
	if b.done || now.Before(b.frozenUntil) {
		return
	}
	for {
		datagram, ok := b.conn.Receive(now, b.worker.buf[:0])
		if !ok {
			break
		}
		b.worker.datagramsIn++
		b.client.Receive(datagram)
	}
	if !now.Before(b.nextTick) {
		b.nextTick = b.nextTick.Add(tick)
		if now.Sub(b.nextTick) > 10*tick {
			b.nextTick = now // it has slept: do not catch up
		}
		b.play(now)
	}
	if b.client.Playing() && !b.mapped && b.level.Map() != nil {
		b.mapped = true
		b.worker.maps.Add(now.Sub(b.opened))
	}
	b.conn.Flush(now)
	if err := b.client.Over(); err != nil {
		b.over(now, err)
	}
}

// play is one tick.
func (b *bot) play(now time.Time) {
	if b.leaveBy.IsZero() {
		b.think(now)
		if b.client.Playing() && b.client.View().Closing == "" && b.rng.Float64() < float64(tick)/float64(chatEvery) {
			b.client.Say(phrases[b.rng.IntN(len(phrases))])
		}
	} else if !b.left && (b.client.Network().InFlight == 0 || now.After(b.leaveBy)) {
		b.left = true
		b.client.Leave()
		return
	}
	b.client.Tick(b.held)
}

// think decides which buttons to hold: towards somebody and fire, or anywhere.
func (b *bot) think(now time.Time) {
	if now.Before(b.thinkAt) {
		return
	}
	b.thinkAt = now.Add(time.Duration(100+b.rng.IntN(400)) * time.Millisecond)
	b.held = game.Toward(uint8(b.rng.IntN(8)))
	view := b.client.View()
	slot, ok := view.Me()
	if !ok {
		return
	}
	if b.rng.IntN(3) > 0 {
		if facing, ok := aim(view.State, slot); ok {
			b.held = game.Toward(facing)
		}
	}
	if b.rng.IntN(2) == 0 {
		b.held |= game.Fire
	}
}

// aim returns the direction of the nearest other player who is alive.
func aim(state *game.State, slot int) (facing uint8, ok bool) {
	me := &state[slot]
	nearest := 1 << 30
	for other := range state {
		p := &state[other]
		if other == slot || !p.Alive {
			continue
		}
		dx, dy := int(p.X)-int(me.X), int(p.Y)-int(me.Y)
		if d := dx*dx + dy*dy; d < nearest {
			nearest = d
			facing, ok = toward(dx, dy).Direction()
		}
	}
	return facing, ok
}

// toward returns the buttons whose direction is nearest to a difference.
func toward(dx, dy int) (held game.Buttons) {
	if 2*max(dx, -dx) > max(dy, -dy) {
		if dx > 0 {
			held |= game.Right
		} else {
			held |= game.Left
		}
	}
	if 2*max(dy, -dy) > max(dx, -dx) {
		if dy > 0 {
			held |= game.Down
		} else {
			held |= game.Up
		}
	}
	return held
}

// over records the end of a session and begins another one, unless there is no
// point in it.
func (b *bot) over(now time.Time, err error) {
	if b.endsAt.IsZero() {
		b.note(now, err)
		if b.leaveBy.IsZero() && client.Lost(err) {
			b.join()
			return
		}
		b.endsAt = now.Add(b.worker.swarm.cfg.Conditions.RTT + b.worker.swarm.cfg.Conditions.Jitter + linger)
	}
	if !now.Before(b.endsAt) {
		b.done = true
		b.conn.Close()
	}
}

func (b *bot) note(now time.Time, err error) {
	b.ends = append(b.ends, End{now, err})
	network := b.client.Network()
	b.sofar.Add(network.Stats)
	if b.diary == nil {
		return
	}
	b.diary.Reason, b.diary.InFlight = err.Error(), network.InFlight
	if book := b.worker.swarm.cfg.Ledger; book != nil {
		if err := book.Add(b.diary); err != nil {
			b.worker.fail(err)
		}
	}
	b.diary = nil
}
