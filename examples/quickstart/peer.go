package main

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/ackbits/ackbits"
)

// A peer is one side of the connection: what a game client or a game server
// would be. It knows neither sockets nor the time. Bytes come in through
// Receive, and go out through the send function that tick and Due are given; so
// the same code runs over UDP and in virtual time, see relay.go.
type peer struct {
	name    string
	session *ackbits.Session
	out     []byte // every datagram is built here, never where one is received

	rate      int          // ticks a second
	stateType ackbits.Type // of the datagrams that carry its state
	ticks     uint32

	script  script
	next    int    // the next line to send
	event   []byte // the event that carries it is built here
	pace    int    // ticks over which the lines are spread
	tally   tally  // of what the other side sends
	theirs  state  // the latest state of the other side
	current int    // states that were news when they came
	older   int    // states that came too late to be

	status atomic.Pointer[status] // for the progress line, which another goroutine draws
}

// status is what the progress line tells about a peer.
type status struct {
	ticks    uint32
	received int
	inFlight int
	ackbits.Stats
}

func newPeer(name string, rate int, stateType ackbits.Type, cfg ackbits.Config, s script, spread time.Duration) (*peer, error) {
	session, err := ackbits.NewSession(cfg)
	if err != nil {
		return nil, err
	}
	p := &peer{
		name:      name,
		session:   session,
		out:       make([]byte, 0, ackbits.MaxDatagramSize),
		rate:      rate,
		stateType: stateType,
		script:    s,
		pace:      max(1, int(spread*time.Duration(rate)/time.Second)),
		tally:     tally{seen: make([]bool, s.count)},
	}
	p.publish()
	return p, nil
}

// Receive takes in a datagram. Call Due after each: that is what sends
// acknowledgements in time when many datagrams arrive at once.
func (p *peer) Receive(datagram []byte) {
	in, err := p.session.Receive(datagram)
	if err != nil {
		return // damaged, or not for this session, or the session is over: dropped
	}
	// Events are for what must not be lost. Each comes exactly once, in whatever
	// order. Its bytes are still those of the datagram: use them now or copy them.
	for _, event := range in.Events {
		p.tally.add(event.Data)
	}
	// State is for what the next datagram replaces anyway. Latest says whether
	// this one is news; an older one that was overtaken is not.
	if s, ok := parseState(in.Payload); ok && in.Latest {
		p.theirs = s
		p.current++
	} else if ok {
		p.older++
	}
}

// tick is one turn of the game loop.
func (p *peer) tick(send func(datagram []byte)) {
	if p.over() {
		return
	}
	p.ticks++

	// Hand over the lines whose turn has come. Send has a limit: with 256 events
	// undelivered, the next would end the session. Room keeps us below it.
	for p.next < p.script.due(p.ticks, p.pace) && p.session.Room() > 0 {
		p.event = appendLine(p.event[:0], p.next, p.script.line(p.next))
		if _, err := p.session.Send(p.event); err != nil {
			panic(err) // there was room, and readScript has checked the size
		}
		p.next++
	}

	// A state datagram each tick: sent once, and if it is lost, then it is lost.
	state := state{tick: p.ticks, drained: p.drained()}
	if datagram, _, err := p.session.AppendDatagram(p.out[:0], p.stateType, state.append(nil)); err == nil {
		send(datagram)
	}

	// Events that were sent just before Close would go out only once. So leave
	// when all of ours have been acknowledged and the other side says the same.
	if p.drained() && p.theirs.drained {
		p.leave()
	}
	p.Due(send)
	p.publish()
}

// Due sends whatever the session has to say now: events, for the first time or
// again, a heartbeat after 50 ms of silence, the last words after Close.
func (p *peer) Due(send func(datagram []byte)) {
	for datagram := range p.session.Due(p.out) {
		send(datagram)
	}
}

// Deadline returns when Due next has something to do, if nothing arrives.
func (p *peer) Deadline() (t time.Time, ok bool) { return p.session.Deadline() }

// leave begins to leave: Due still sends three Disconnects, then it is over.
func (p *peer) leave() { p.session.Close() }

// over reports whether the session has ended, for whatever reason.
func (p *peer) over() bool { return p.session.Err() != nil }

// drained reports whether every line was sent and is known to have arrived.
func (p *peer) drained() bool { return p.next == p.script.count && p.session.InFlight() == 0 }

// verdict returns what went wrong with the lines from one peer to the other, nil
// if nothing did. It is for the end.
func verdict(from, to *peer) error {
	err := to.tally.check(from.script.digest)
	if !from.drained() && (err == nil || errors.Is(err, errMissing)) {
		// That lines are missing is no wonder then.
		return fmt.Errorf("%s: its session ended (%w): of its %d lines, %d are not known to have arrived and %d were never sent", from.name,
			from.session.Err(), from.script.count, from.session.InFlight(), from.script.count-from.next)
	}
	if err != nil {
		return fmt.Errorf("from %s to %s: %w", from.name, to.name, err)
	}
	return nil
}

func (p *peer) publish() {
	p.status.Store(&status{p.ticks, p.tally.lines, p.session.InFlight(), p.session.Stats()})
}

// state is what a peer sends each tick. A game would have inputs here, or the
// positions of everything that moves.
type state struct {
	tick    uint32
	drained bool // all events of the sender have been acknowledged
}

func (s state) append(dst []byte) []byte {
	dst = binary.LittleEndian.AppendUint32(dst, s.tick)
	if s.drained {
		return append(dst, 1)
	}
	return append(dst, 0)
}

func parseState(payload []byte) (s state, ok bool) {
	if len(payload) != 5 {
		return state{}, false
	}
	return state{binary.LittleEndian.Uint32(payload), payload[4] == 1}, true
}

// An event is the number of a line, counted from 0, and its text.
const numberSize = 4

func appendLine(dst []byte, number int, text []byte) []byte {
	return append(binary.LittleEndian.AppendUint32(dst, uint32(number)), text...)
}

// tally checks what a peer receives without keeping it.
type tally struct {
	seen    []bool // which lines came, by number
	lines   int    // that came
	twice   int    // events that brought a line once more
	unknown int    // events that no line can have been
	digest  digest // of the lines that came
}

func (t *tally) add(event []byte) {
	if len(event) < numberSize || int64(binary.LittleEndian.Uint32(event)) >= int64(len(t.seen)) {
		t.unknown++
		return
	}
	number := binary.LittleEndian.Uint32(event)
	if t.seen[number] {
		t.twice++
		return
	}
	t.seen[number] = true
	t.lines++
	t.digest.add(event)
}

// check reports whether every line came once and unchanged; want is the digest
// of what was sent.
func (t *tally) check(want digest) error {
	missing := len(t.seen) - t.lines
	switch {
	case t.twice > 0:
		return fmt.Errorf("%d events brought a line that had arrived before", t.twice)
	case t.unknown > 0:
		return fmt.Errorf("%d events arrived that nobody sent", t.unknown)
	case missing > 0:
		return fmt.Errorf("%w: %d of %d, the first of them line %d", errMissing, missing, len(t.seen), slices.Index(t.seen, false)+1)
	case t.digest != want:
		return fmt.Errorf("lines arrived changed: their hash is %v, that of those sent is %v", t.digest, want)
	}
	return nil
}

var errMissing = errors.New("lines did not arrive")

// digest is the sum of the SHA-256 hashes of events, cut to 64 bits: a hash of
// all of them that does not depend on the order in which they come. Each event
// holds its number, so lines that swap texts change it.
type digest uint64

func (d *digest) add(event []byte) {
	hash := sha256.Sum256(event)
	*d += digest(binary.LittleEndian.Uint64(hash[:]))
}

func (d digest) String() string { return fmt.Sprintf("%016x", uint64(d)) }
