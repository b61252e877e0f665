package server

import (
	"net"
	"net/netip"
	"time"

	"github.com/ackbits/ackbits"
	"github.com/ackbits/ackbits/examples/arena/game"
	"github.com/ackbits/ackbits/examples/arena/ledger"
	"github.com/ackbits/ackbits/examples/arena/proto"
)

// Chat is repeated to a whole room, so each player has a budget.
const (
	chatBurst  = 5
	chatPeriod = 500 * time.Millisecond // until one more line is allowed
)

// backlog is how many events may wait beyond the 256 on the wire: those of a
// busy room in the five seconds until a silent player is gone.
const backlog = 1024

// peer is a player. The first block is set when it is admitted and never
// changed; the rest belongs to the goroutine of its shard.
type peer struct {
	addr  netip.AddrPort
	to    *net.UDPAddr // the same, for the socket
	nonce uint64       // of its Connect: one that comes again gets the same answer
	token uint64
	name  string
	room  *room

	session *ackbits.Session
	slot    int
	diary   *ledger.Session // nil without a ledger
	chat    time.Time       // when the chat budget is full again

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

// open begins the session.
func (p *peer) open(clock ackbits.Clock, keepDiary bool) error {
	var err error
	p.session, err = ackbits.NewSession(ackbits.Config{
		Token:        p.token,
		Clock:        clock,
		PollInterval: ticksPerSnapshot * time.Second / game.TickRate,
		Adaptive:     true, // resend by evidence,
		Bundle:       true, // and in the snapshots: both ends are this library
		Backlog:      backlog,
		Outcomes:     true,
		Accept: func(h ackbits.Header, payload []byte) error {
			if h.Type != ackbits.TypeInput {
				return proto.ErrMalformed
			}
			_, err := proto.ParseInput(payload)
			return err
		},
	})
	if keepDiary {
		p.diary = &ledger.Session{Token: p.token}
	}
	return err
}

// tell sends an event. An error has ended the session, which the next tick will
// find.
func (p *peer) tell(event []byte) {
	if _, err := p.session.Send(event); err == nil && p.diary != nil {
		p.diary.NoteSent(event)
	}
}

// mayChat takes a line off the chat budget, if there is one.
func (p *peer) mayChat(now time.Time) bool {
	if p.chat.Before(now) {
		p.chat = now
	}
	full := p.chat.Add(chatPeriod)
	if full.Sub(now) > chatBurst*chatPeriod {
		return false
	}
	p.chat = full
	return true
}

// noteSnapshot remembers in which datagram a snapshot went out.
func (p *peer) noteSnapshot(number uint32, sequence uint16) {
	p.sent[number%uint32(len(p.sent))] = sentSnapshot{number, sequence, true}
}

// readOutcomes moves the baseline to the newest snapshot that arrived.
func (p *peer) readOutcomes() {
	for {
		o, ok := p.session.NextOutcome()
		if !ok {
			return
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
