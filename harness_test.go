package ackbits

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// A story is a test told in verbs: sessions on one ManualClock, and what they
// say to each other or to hand-made datagrams. Every verb logs itself, so that
// the log of a failing test reads from top to bottom, and checks what must hold
// after each step. At the end nothing may be left over: no event that nobody
// asked for, no outcome, no datagram without one.
type story struct {
	tb     storyTB
	clock  *ManualClock
	began  time.Time
	actors []*actor
}

type storyTB interface {
	require.TestingT
	Helper()
	Logf(format string, args ...any)
	Fatalf(format string, args ...any)
	Cleanup(func())
	Failed() bool
}

// terse spares the many steps of a rapid test what marking helpers costs.
type terse struct{ *rapid.T }

func (terse) Helper() {}

// An actor is a session in a story.
type actor struct {
	*story
	name     string
	s        *Session
	cfg      Config
	events   []string  // delivered, but not asked for yet
	outcomes []Outcome // likewise
	flying   []*packet // sent, neither delivered nor dropped
	foreign  uint16    // the sequence of the next hand-made datagram to it
	tracked  bool      // whether each datagram sent needs an outcome in the test
	claimed  uint16    // the next id that Send must give
	start    uint16    // the sequence of its first datagram
}

// A packet is a datagram that an actor sent.
type packet struct {
	Header
	bytes   []byte
	payload []byte
	from    *actor
}

const ms = time.Millisecond

// inBothForms runs a test over narrow and wide headers.
func inBothForms(t *testing.T, test func(t *testing.T, wide bool)) {
	t.Run("narrow", func(t *testing.T) { test(t, false) })
	t.Run("wide", func(t *testing.T) { test(t, true) })
}

func newStory(tb storyTB) *story {
	if rt, ok := tb.(*rapid.T); ok {
		tb = terse{rt}
	}
	began := time.Unix(1_000_000, 0)
	y := &story{tb: tb, clock: &ManualClock{}, began: began}
	y.clock.Set(began)
	return y
}

// solo begins a story of one session, whose peer is hand-made.
func solo(tb storyTB, cfg Config) *actor {
	tb.Helper()
	return newStory(tb).enter("A", cfg)
}

// duo begins a story of two sessions.
func duo(tb storyTB, cfg Config) (a, b *actor) {
	tb.Helper()
	y := newStory(tb)
	a, b = y.enter("A", cfg), y.enter("B", cfg)
	a.tracked, b.tracked = true, true
	return a, b
}

func (y *story) enter(name string, cfg Config) *actor {
	y.tb.Helper()
	if cfg.Clock == nil {
		cfg.Clock = y.clock
	}
	s, err := NewSession(cfg)
	require.NoError(y.tb, err)
	p := &actor{story: y, name: name, s: s, cfg: cfg}
	y.actors = append(y.actors, p)
	y.tb.Cleanup(func() {
		if !y.tb.Failed() {
			p.leavesNothing()
		}
	})
	return p
}

func (p *actor) leavesNothing() {
	p.check()
	require.Empty(p.tb, p.events, "%s: events that nobody asked for", p.name)
	p.fetchOutcomes()
	require.Empty(p.tb, p.outcomes, "%s: outcomes that nobody asked for", p.name)
	if p.tracked {
		require.Empty(p.tb, p.flying, "%s: datagrams neither delivered nor dropped", p.name)
	}
}

func (y *story) now() time.Duration { return y.clock.Now().Sub(y.began) }

func (p *actor) say(format string, args ...any) {
	p.tb.Helper()
	p.tb.Logf("%10v %s "+format, append([]any{p.now(), p.name}, args...)...)
}

// check is what holds after every step.
func (p *actor) check() {
	p.tb.Helper()
	st := p.s.Stats()
	_, due := p.s.Deadline()
	alive := p.s.Err() == nil
	for what, holds := range [...]bool{
		st.DatagramsSent == st.Delivered+st.Lost+uint64(st.Undecided),
		st.Undecided >= 0,
		st.LateAcks <= st.Lost,
		st.RTT == p.s.RTT(),
		due == alive,
		alive || p.s.Room() == 0,
	} {
		if !holds {
			p.tb.Fatalf("%v %s: %s: %+v", p.now(), p.name, [...]string{
				"sent = delivered + lost + undecided",
				"undecided is a count",
				"late acknowledgements are of lost datagrams",
				"both tell the same RTT",
				"there is a deadline exactly while it lives",
				"an ended session has no room",
			}[what], st)
		}
	}
}

// advance lets time pass, after making sure that nobody has anything to say.
func (y *story) advance(d time.Duration) {
	y.tb.Helper()
	for _, p := range y.actors {
		p.wantNothing()
	}
	y.sleep(d)
}

// sleep lets time pass for callers who do not look.
func (y *story) sleep(d time.Duration) {
	y.tb.Helper()
	y.clock.Advance(d)
	y.tb.Logf("%10v -- %v later", y.now(), d)
}

func (y *story) sleepUntil(at time.Duration) { y.tb.Helper(); y.sleep(at - y.now()) }

// --- out

func (p *actor) send(events ...string) {
	p.tb.Helper()
	for _, e := range events {
		id, err := p.s.Send([]byte(e))
		p.say("send %.20q: id %d, %v", e, id, err)
		require.NoError(p.tb, err)
		require.Equal(p.tb, p.claimed, id)
		p.claimed++
		p.check()
	}
}

// sendN sends n events of a size each.
func (p *actor) sendN(n, size int) {
	p.tb.Helper()
	for range n {
		_, err := p.s.Send(make([]byte, size))
		require.NoError(p.tb, err)
	}
	p.claimed += uint16(n)
	p.say("send %d events", n)
	p.check()
}

func (p *actor) sendFails(reason error) {
	p.tb.Helper()
	id, err := p.s.Send([]byte("x"))
	p.say("send fails: %v", err)
	require.ErrorIs(p.tb, err, reason)
	require.Zero(p.tb, id)
	p.check()
}

func (p *actor) packet(datagram []byte) *packet {
	p.tb.Helper()
	require.LessOrEqual(p.tb, len(datagram), MaxDatagramSize)
	h, payload, err := ParseHeader(slices.Clone(datagram))
	require.NoError(p.tb, err)
	require.Equal(p.tb, p.cfg.Wide, h.Wide)
	require.Equal(p.tb, p.cfg.Token, h.Token)
	k := &packet{Header: h, bytes: slices.Clone(datagram), payload: payload, from: p}
	p.flying = append(p.flying, k)
	p.say("-> %s", k)
	p.check()
	return k
}

func (k *packet) String() string {
	s := fmt.Sprintf("%s seq %d ack %d/%#b", k.Type, k.Sequence, k.Ack, k.AckBits)
	if k.Type == TypeEvent && !k.Sealed {
		s += fmt.Sprintf(" ids %v", k.ids())
	}
	return s
}

// ids returns the ids of the events in an Event datagram.
func (k *packet) ids() (ids []uint16) {
	events, err := ParseEvents(nil, k.payload)
	require.NoError(k.from.tb, err)
	for _, e := range events {
		ids = append(ids, e.ID)
	}
	return ids
}

// emit sends a datagram of the application's.
func (p *actor) emit(t Type, payload ...byte) *packet {
	p.tb.Helper()
	out, seq, err := p.s.AppendDatagram(nil, t, payload)
	require.NoError(p.tb, err)
	k := p.packet(out)
	require.Equal(p.tb, t, k.Type)
	require.Equal(p.tb, seq, k.Sequence)
	require.Equal(p.tb, len(payload), len(k.payload))
	return k
}

// emitFails tries to send a datagram of the application's.
func (p *actor) emitFails(reason error) {
	p.tb.Helper()
	out, seq, err := p.s.AppendDatagram([]byte("kept"), TypeInput, nil)
	p.say("emit fails: %v", err)
	require.ErrorIs(p.tb, err, reason)
	require.Equal(p.tb, "kept", string(out))
	require.Zero(p.tb, seq)
	p.check()
}

// wantDatagram takes the next datagram that is due, which must be of a type.
func (p *actor) wantDatagram(t Type) *packet {
	p.tb.Helper()
	out, ok := p.s.AppendDue([]byte("kept"))
	require.True(p.tb, ok, "%v %s: wanted %s, nothing is due", p.now(), p.name, t)
	require.Equal(p.tb, "kept", string(out[:4]))
	k := p.packet(out[4:])
	require.Equal(p.tb, t, k.Type)
	return k
}

// wantEventsOut takes an Event datagram that is due and carries these ids.
func (p *actor) wantEventsOut(ids ...uint16) *packet {
	p.tb.Helper()
	k := p.wantDatagram(TypeEvent)
	require.Equal(p.tb, ids, k.ids())
	return k
}

func (p *actor) wantNothing() {
	p.tb.Helper()
	before := p.s.Stats().DatagramsSent
	out, ok := p.s.AppendDue([]byte("kept"))
	if ok {
		p.packet(out[4:])
	}
	require.False(p.tb, ok, "%v %s: wanted nothing due", p.now(), p.name)
	require.Equal(p.tb, "kept", string(out))
	require.Equal(p.tb, before, p.s.Stats().DatagramsSent)
	p.check()
}

// flush takes all datagrams that are due.
func (p *actor) flush() (out []*packet) {
	p.tb.Helper()
	var buf [MaxDatagramSize]byte
	for datagram := range p.s.Due(buf[:]) {
		require.Same(p.tb, &buf[0], &datagram[0])
		out = append(out, p.packet(datagram))
		require.Less(p.tb, len(out), 1000, "%v %s: datagrams without end", p.now(), p.name)
	}
	p.check()
	return out
}

// --- in

// deliver hands packets to an actor.
func (p *actor) deliver(packets ...*packet) (in Incoming) {
	p.tb.Helper()
	for _, k := range packets {
		k.drop()
		in = p.take(k.bytes)
	}
	return in
}

// drop is for packets that never arrive.
func drop(packets ...*packet) {
	for _, k := range packets {
		k.drop()
	}
}

func (k *packet) drop() {
	if i := slices.Index(k.from.flying, k); i >= 0 {
		k.from.flying = slices.Delete(k.from.flying, i, i+1)
	}
}

// take passes a datagram to Receive that must be accepted.
func (p *actor) take(datagram []byte) Incoming {
	p.tb.Helper()
	datagram = slices.Clone(datagram)
	in, err := p.s.Receive(datagram)
	require.NoError(p.tb, err)
	p.say("<- %s seq %d: %s, %d events", in.Type, in.Sequence, in.Arrival, len(in.Events))
	for _, e := range in.Events {
		p.events = append(p.events, string(e.Data))
	}
	p.check()
	return in
}

// refuse hands a datagram over that must be dropped: counters aside, nothing
// may have changed.
func (p *actor) refuse(reason error, datagram []byte) error {
	p.tb.Helper()
	before, deadline, inFlight := p.s.Stats(), p.deadline(), p.s.InFlight()
	tracker, pending, ids, heardAt := p.s.channel.receiver.tracker, p.s.channel.receiver.pending, p.s.channel.receiver.inbox.ids, p.s.live.heardAt
	in, err := p.s.Receive(datagram)
	p.say("<- refused: %v", err)
	require.ErrorIs(p.tb, err, reason)
	require.Zero(p.tb, in)
	require.Equal(p.tb, deadline, p.deadline())
	require.Equal(p.tb, inFlight, p.s.InFlight())
	require.Equal(p.tb, tracker, p.s.channel.receiver.tracker)
	require.Equal(p.tb, pending, p.s.channel.receiver.pending)
	require.Equal(p.tb, heardAt, p.s.live.heardAt)
	require.Equal(p.tb, ids, p.s.channel.receiver.inbox.ids)
	if p.s.Err() == nil {
		before.Rejected++
	}
	require.Equal(p.tb, before, p.s.Stats(), "nothing but a counter")
	p.check()
	return err
}

// datagram makes one by hand.
func (p *actor) datagram(t Type, seq, ack uint16, ackBits uint64, payload ...byte) []byte {
	h := Header{Wide: p.cfg.Wide, Type: t, Token: p.cfg.Token, Sequence: seq, Ack: ack, AckBits: ackBits}
	p.foreign = seq + 1
	return append(h.AppendTo(nil), payload...)
}

// hear receives a hand-made datagram with the peer's next sequence, which
// acknowledges nothing new.
func (p *actor) hear(t Type, payload ...byte) Incoming {
	p.tb.Helper()
	return p.take(p.datagram(t, p.foreign, p.neverSent(), 0, payload...))
}

// neverSent is an ack that says nothing.
func (p *actor) neverSent() uint16 { return p.start + uint16(p.s.Stats().DatagramsSent) + 1000 }

// ack receives a hand-made heartbeat that acknowledges.
func (p *actor) ack(ack uint16, ackBits uint64) Incoming {
	p.tb.Helper()
	return p.take(p.datagram(TypeHeartbeat, p.foreign, ack, ackBits))
}

// nothingYet is the ack of a peer that has received nothing.
const nothingYet = 65535

// eventList is the payload of an Event datagram: ids and their bytes.
func eventList(events ...Event) []byte {
	payload, err := AppendEvents(nil, events...)
	if err != nil {
		panic(err)
	}
	return payload
}

// --- what is seen

func (p *actor) wantEvents(events ...string) {
	p.tb.Helper()
	require.Equal(p.tb, events, p.events)
	p.events = nil
}

func (p *actor) wantNoEvents() {
	p.tb.Helper()
	require.Empty(p.tb, p.events)
}

// wantCount asks for n events, whatever is in them.
func (p *actor) wantCount(n int) {
	p.tb.Helper()
	require.Len(p.tb, p.events, n)
	p.events = nil
}

func (p *actor) fetchOutcomes() {
	for o, ok := p.s.NextOutcome(); ok; o, ok = p.s.NextOutcome() {
		p.say("outcome %+v", o)
		p.outcomes = append(p.outcomes, o)
		p.check()
	}
}

func (p *actor) wantOutcome(want Outcome) {
	p.tb.Helper()
	if len(p.outcomes) == 0 {
		p.fetchOutcomes()
	}
	require.NotEmpty(p.tb, p.outcomes, "wanted %+v", want)
	require.Equal(p.tb, want, p.outcomes[0])
	p.outcomes = p.outcomes[1:]
}

func (p *actor) wantNoOutcome() {
	p.tb.Helper()
	p.fetchOutcomes()
	require.Empty(p.tb, p.outcomes)
}

func (p *actor) wantErr(reason error) {
	p.tb.Helper()
	require.Equal(p.tb, reason, p.s.Err())
}

func (p *actor) wantAlive() { p.tb.Helper(); require.NoError(p.tb, p.s.Err()) }

func (p *actor) wantInFlight(n int) { p.tb.Helper(); require.Equal(p.tb, n, p.s.InFlight()) }

// deadline returns the Deadline since the story began; −1 without one.
func (p *actor) deadline() time.Duration {
	at, ok := p.s.Deadline()
	if !ok {
		return -1
	}
	return at.Sub(p.began)
}

func (p *actor) wantDeadline(at time.Duration) {
	p.tb.Helper()
	require.Equal(p.tb, at, p.deadline())
}

// wantAcks looks at the acknowledgements that the next datagram would carry.
func (p *actor) wantAcks(ack uint16, ackBits uint64) {
	p.tb.Helper()
	k := p.emit(TypeInput)
	k.drop()
	require.Equal(p.tb, ack, k.Ack)
	require.Equal(p.tb, ackBits, k.AckBits, "bits %#b, want %#b", k.AckBits, ackBits)
}

// --- the middle of a session

// edges are the numbers at which 16 bits and the windows turn over.
var edges = []uint16{0, 1, 31, 32, 33, 63, 64, 65, 255, 256, 257, 32767, 32768, 32769, 65503, 65534, 65535}

// startAt makes a fresh actor's datagrams begin at seq and its events at id, as
// if all before them had been sent, received and acknowledged long ago.
func (p *actor) startAt(seq, id uint16) {
	c := &p.s.channel
	c.sender.log.first, c.sender.log.open, c.sender.log.count, c.sender.log.top = int64(seq), int64(seq), int64(seq), int64(seq)-1
	c.sender.outbox.base, c.sender.outbox.fresh, c.sender.outbox.end = int64(id), int64(id), int64(id)
	p.claimed, p.start = id, seq
}

// expectFrom makes a fresh actor expect a peer that startAt(seq, id).
func (p *actor) expectFrom(seq, id uint16) {
	c := &p.s.channel
	if seq != 0 {
		c.receiver.tracker = AckTracker{next: seq, started: true, history: 1<<(seq-1) - 1}
	}
	if z := p.s.sealing; z != nil {
		z.newest, z.opened = int64(seq)-1, c.receiver.tracker
	}
	c.receiver.inbox.ids.base = id
	p.foreign = seq
}

// --- longer runs

// endpoint runs a session in a simnet.Pair.
type endpoint struct {
	*Session
	events func(Incoming)
	out    [MaxDatagramSize]byte
	in     [MaxDatagramSize]byte
	errs   int
}

func (e *endpoint) Receive(datagram []byte) {
	in, err := e.Session.Receive(e.in[:copy(e.in[:], datagram)])
	if err != nil {
		e.errs++
	} else if e.events != nil {
		e.events(in)
	}
}

func (e *endpoint) Due(send func([]byte)) {
	for datagram := range e.Session.Due(e.out[:]) {
		send(datagram)
	}
}

// numbered returns the texts of events numbered first … first+n−1.
func numbered(first, n int) (events []string) {
	for i := range n {
		events = append(events, fmt.Sprintf("event %d", first+i))
	}
	return events
}

func long(n int) string { return strings.Repeat("x", n) }

// adaptive returns the rule of a session with Config.Adaptive.
func adaptive(s *Session) *adaptiveRule { return s.channel.sender.rule.(*adaptiveRule) }
