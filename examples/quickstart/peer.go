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

// A peer is one side of the connection, as a game client or a game server is. It
// uses no socket and does not read the time: datagrams come in through Receive, and
// go out through the send function that is passed to tick and Due. So the same code
// runs over UDP and in virtual time, see relay.go.
type peer struct {
	name    string
	session *ackbits.Session
	out     []byte // datagrams are built here, never in the buffer that one is received into

	rate      int          // ticks a second
	stateType ackbits.Type // of the datagrams that carry its state
	ticks     uint32

	script  script
	next    int    // the next line to send
	event   []byte // events are built here
	pace    int    // ticks over which the lines are spread
	tally   tally  // of the lines that were delivered
	theirs  state  // the latest state of the other side
	current int    // states that were the latest when they arrived
	older   int    // states that arrived after a later one

	status atomic.Pointer[status] // for the progress line, which another goroutine prints
}

// status is what the progress line shows of a peer.
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

// Receive processes a datagram. Call Due after each, so that acknowledgements leave
// in time when many datagrams arrive at once.
func (p *peer) Receive(datagram []byte) {
	in, err := p.session.Receive(datagram)
	if err != nil {
		return // damaged, of another session, or the session has ended: dropped
	}
	// Events are for what must not be lost. Each is delivered exactly once, in any
	// order. Data is a part of datagram: use it now or copy it.
	for _, event := range in.Events {
		p.tally.add(event.Data)
	}
	// State is for what the next datagram replaces anyway. Latest is false if a later
	// state has arrived before this one.
	if s, ok := parseState(in.Payload); ok && in.Latest {
		p.theirs = s
		p.current++
	} else if ok {
		p.older++
	}
}

// tick runs the game loop once.
func (p *peer) tick(send func(datagram []byte)) {
	if p.over() {
		return
	}
	p.ticks++

	// Send the lines that are due. When 256 events are undelivered, one more would
	// end the session: Room says how many more there may be.
	for p.next < p.script.due(p.ticks, p.pace) && p.session.Room() > 0 {
		p.event = appendLine(p.event[:0], p.next, p.script.line(p.next))
		if _, err := p.session.Send(p.event); err != nil {
			panic(err) // cannot happen: there was room, and readScript checked the size
		}
		p.next++
	}

	// Send the state: one datagram a tick, never retransmitted.
	state := state{tick: p.ticks, drained: p.drained()}
	if datagram, _, err := p.session.AppendDatagram(p.out[:0], p.stateType, state.append(nil)); err == nil {
		send(datagram)
	}

	// Events sent just before Close would not be retransmitted. So close when all of
	// ours are acknowledged and the other side says that its are, too.
	if p.drained() && p.theirs.drained {
		p.leave()
	}
	p.Due(send)
	p.publish()
}

// Due sends the datagrams that are due: new events and retransmissions, a heartbeat
// when nothing was sent for 50 ms, and Disconnects after Close.
func (p *peer) Due(send func(datagram []byte)) {
	for datagram := range p.session.Due(p.out) {
		send(datagram)
	}
}

// Deadline returns when Due next has something to send if nothing arrives.
func (p *peer) Deadline() (t time.Time, ok bool) { return p.session.Deadline() }

// leave ends the session. Due still sends three Disconnects.
func (p *peer) leave() { p.session.Close() }

// over reports whether the session has ended, for any reason.
func (p *peer) over() bool { return p.session.Err() != nil }

// drained reports whether every line was sent and acknowledged.
func (p *peer) drained() bool { return p.next == p.script.count && p.session.InFlight() == 0 }

// problem returns what is wrong with the lines from one peer to the other, nil if
// nothing did. Call it when the sessions have ended.
func problem(from, to *peer) error {
	err := to.tally.check(from.script.digest)
	if !from.drained() && (err == nil || errors.Is(err, errMissing)) {
		// The session ended too early, which explains why lines are missing.
		return fmt.Errorf("%s: the session ended (%w) when, of %d lines, %d were sent but not acknowledged and %d were not sent", from.name,
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

// state is what a peer sends on each tick. In a game it would be the player's input,
// or the positions of everything that moves.
type state struct {
	tick    uint32
	drained bool // every event of the sender is acknowledged
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

// tally checks the events that a peer receives, without keeping their text.
type tally struct {
	seen    []bool // which lines were delivered, by number
	lines   int    // how many were delivered
	twice   int    // events with a line that had been delivered before
	unknown int    // events that are no line
	digest  digest // of the lines delivered
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

// check returns nil if every line was delivered once and unchanged. want is the
// digest of the lines that were sent.
func (t *tally) check(want digest) error {
	missing := len(t.seen) - t.lines
	switch {
	case t.twice > 0:
		return fmt.Errorf("%d events were lines that had been delivered before", t.twice)
	case t.unknown > 0:
		return fmt.Errorf("%d events were delivered that nobody sent", t.unknown)
	case missing > 0:
		return fmt.Errorf("%w: %d of %d, the first of them line %d", errMissing, missing, len(t.seen), slices.Index(t.seen, false)+1)
	case t.digest != want:
		return fmt.Errorf("lines were changed: the hash of those delivered is %v, of those sent %v", t.digest, want)
	}
	return nil
}

var errMissing = errors.New("lines were not delivered")

// digest is a hash of many events that does not depend on their order: the sum of
// their SHA-256 hashes, each cut to 64 bits. An event holds the number of its line,
// so two lines that swap their texts change the digest.
type digest uint64

func (d *digest) add(event []byte) {
	hash := sha256.Sum256(event)
	*d += digest(binary.LittleEndian.Uint64(hash[:]))
}

func (d digest) String() string { return fmt.Sprintf("%016x", uint64(d)) }
