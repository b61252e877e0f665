package ackbits

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// A walk plays any order of calls on two sessions that send to each other
// through a hostile pipe, and asks the dumb model about every answer:
//
//   - every byte that leaves, every error, Incoming, outcome and counter is what
//     the model says (with Adaptive, where the model cannot know when a copy goes,
//     it checks that the copy is one that may go);
//   - I1: the acknowledgements in a header are the set of what was received;
//   - I2: sent = delivered + lost + undecided, and each outcome comes once;
//   - I3: an event is delivered once, with the bytes it was sent with, in order
//     if that was asked for; none is missing once the pipe has healed;
//   - I4: one reading of the clock a call, none by the getters, and AppendDue has
//     something to do at Deadline and nothing 1 ns before;
//   - I5: what Receive refuses changed nothing but a counter.
type walk struct {
	t     walkT
	ends  [2]*walkEnd
	steps int
}

// walkT is what a walk needs of a testing.T or a rapid.T.
type walkT interface {
	Helper()
	Logf(format string, args ...any)
	Fatalf(format string, args ...any)
}

// walkEnd is one session, its model, and the pipe that leads to it.
type walkEnd struct {
	s     *Session
	m     *model
	clock *countingClock
	asked int // calls of Accept

	flights []flight // on the way to this end
	past    []flight // the newest that ever were
	handed  map[int64]bool
	inOrder int64 // ordered: the next to be delivered
}

// flight is a datagram on its way.
type flight struct {
	datagram []byte
	seq      int64
	events   []int64
}

// countingClock counts its readings.
type countingClock struct {
	ManualClock
	readings int
}

func (c *countingClock) Now() time.Time {
	c.readings++
	return c.ManualClock.Now()
}

// walkConfig says how a walk's sessions are, and where their counters begin.
type walkConfig struct {
	cfg                Config // but for Token, Clock, Accept, Seal and Open
	accept, sealed     bool
	seqs, events, runs [2]int64
}

const walkToken = 0x0807060504030201

func newWalk(t walkT, wc walkConfig) *walk {
	w := &walk{t: t}
	start := time.Unix(1_700_000_000, 0)
	for i := range w.ends {
		e := &walkEnd{clock: &countingClock{}, handed: map[int64]bool{}, inOrder: wc.events[1-i]}
		e.clock.Set(start)
		cfg := wc.cfg
		cfg.Token, cfg.Clock = walkToken, e.clock
		if wc.accept {
			cfg.Accept = func(_ Header, payload []byte) error {
				e.asked++
				return acceptance(payload)
			}
		}
		if wc.sealed {
			cfg.Seal, cfg.Open = gcm(byte(i)), gcm(byte(1-i))
		}
		s, err := NewSession(cfg)
		if err != nil {
			t.Fatalf("NewSession: %v", err)
		}
		beginAt(s, wc.seqs[i], wc.seqs[1-i], wc.events[i], wc.events[1-i], wc.runs[i])
		e.s = s
		e.m = newModel(cfg, start, wc.seqs[i], wc.seqs[1-i], wc.events[i], wc.events[1-i])
		e.m.remembers = func(number int64) bool {
			known := s.channel.sender.log.remembered(number)
			// 4.2: it has to be while it has no outcome, or less than 256 newer ones; a
			// delivered one has nothing to tell any more.
			if i := int(number - e.m.firstSent); !known && (e.m.sent[i].outcome == isUndecided || e.m.sent[i].outcome == isLost && len(e.m.sent)-i <= 256) {
				t.Fatalf("datagram %d is forgotten", number)
			}
			return known
		}
		e.clock.readings = 0
		w.ends[i] = e
	}
	return w
}

// beginAt lets the counters of a new session begin at other numbers than 0, as
// those of a session that has run for long.
func beginAt(s *Session, seq, peerSeq, event, peerEvent, run int64) {
	c := &s.channel
	c.sender.log.first, c.sender.log.open, c.sender.log.count = seq, seq, seq
	c.sender.log.top = seq - 1
	c.receiver.tracker.next = uint16(peerSeq)
	if s.sealing != nil {
		s.sealing.newest, s.sealing.opened.next = peerSeq-1, uint16(peerSeq)
	}
	c.sender.outbox.base, c.sender.outbox.fresh, c.sender.outbox.end = event, event, event
	c.receiver.inbox.ids.base = uint16(peerEvent)
	c.sender.outbox.log.first, c.sender.outbox.log.end = run, run
	at := cursor{run: run}
	c.sender.outbox.log.retransmits, c.sender.outbox.log.near, c.sender.outbox.log.far = at, at, at
}

func (w *walk) fatalf(format string, args ...any) {
	w.t.Helper()
	w.t.Fatalf("step %d: %s", w.steps, fmt.Sprintf(format, args...))
}

// log writes a line of the script that a failure is read from.
func (w *walk) log(format string, args ...any) { w.t.Logf(format, args...) }

// reads lets a call read the clock once, for the model too.
func (w *walk) reads(e *walkEnd, what string, want int) {
	w.t.Helper()
	if e.clock.readings != want {
		w.fatalf("I4: %s read the clock %d times", what, e.clock.readings)
	}
	e.clock.readings = 0
	if want > 0 {
		e.m.read(e.clock.ManualClock.Now())
	}
}

func sameError(got, want error) bool {
	if want == ErrRejected {
		return errors.Is(got, ErrRejected) && errors.Is(got, errAcceptance)
	}
	return errors.Is(got, want) && (got == nil) == (want == nil)
}

func (w *walk) send(i, size int) {
	e := w.ends[i]
	number := e.m.firstEvent + int64(len(e.m.events))
	data := make([]byte, size)
	for k := range data {
		data[k] = byte(number>>(k%3*8)) + byte(k) + byte(i)
	}
	id, err := e.s.Send(data)
	w.reads(e, "Send", 1)
	wantID, wantErr := e.m.send(data)
	if id != wantID || !sameError(err, wantErr) {
		w.fatalf("Send(%d bytes) = %d, %v, want %d, %v", size, id, err, wantID, wantErr)
	}
	for k := range data {
		data[k] = 0xEE // the session has its own copy
	}
}

// launch puts a datagram of end i on its way.
func (w *walk) launch(i int, datagram []byte) {
	m := w.ends[i].m
	n := len(m.sent) - 1
	f := flight{slices.Clone(datagram), m.firstSent + int64(n), m.sent[n].events}
	to := w.ends[1-i]
	to.flights = append(to.flights, f)
	to.past = append(to.past, f)
	if len(to.past) > 700 {
		to.past = slices.Delete(to.past, 0, 100)
	}
}

var prefix = []byte("before")

// dst is what the datagrams are appended to; how much room is left in it varies.
func (w *walk) dst() []byte {
	return append(make([]byte, 0, len(prefix)+w.steps%40), prefix...)
}

func (w *walk) app(i int, t Type, payload []byte) {
	e := w.ends[i]
	out, seq, err := e.s.AppendDatagram(w.dst(), t, payload)
	w.reads(e, "AppendDatagram", 1)
	if !bytes.HasPrefix(out, prefix) {
		w.fatalf("AppendDatagram touched dst")
	}
	out = out[len(prefix):]
	if e.m.cfg.Adaptive {
		w.follow(i, out)
	}
	want, wantErr := e.m.datagram(t, payload)
	if !sameError(err, wantErr) || !bytes.Equal(out, want) {
		w.fatalf("AppendDatagram(%v, %d bytes) = %x, %v,\nwant %x, %v", t, len(payload), out, err, want, wantErr)
	}
	if err == nil {
		if seq != uint16(e.m.firstSent+int64(len(e.m.sent)-1)) {
			w.fatalf("AppendDatagram returned sequence %d", seq)
		}
		w.launch(i, out)
	} else if seq != 0 {
		w.fatalf("AppendDatagram returned sequence %d and %v", seq, err)
	}
}

func (w *walk) due(i int) bool {
	e := w.ends[i]
	out, ok := e.s.AppendDue(w.dst())
	w.reads(e, "AppendDue", 1)
	if !bytes.HasPrefix(out, prefix) {
		w.fatalf("AppendDue touched dst")
	}
	return w.went(i, out[len(prefix):], ok, e.m.now)
}

// slowly takes what is due, each datagram taking a while to write, and checks
// that this ends.
func (w *walk) slowly(i int, writing time.Duration) {
	e := w.ends[i]
	var buf [MaxDatagramSize]byte
	asOf, n := int64(-1), 0
	for datagram := range e.s.Due(buf[:]) {
		w.reads(e, "Due", 1)
		if n++; n > 400 {
			w.fatalf("Due does not end")
		}
		if asOf < 0 {
			asOf = e.m.now
		}
		w.went(i, datagram, true, asOf)
		w.wait(writing)
	}
	w.reads(e, "Due", 1)
	if asOf < 0 {
		asOf = e.m.now
	}
	w.went(i, nil, false, asOf)
}

// went checks a datagram that was due at asOf, if there was one, and puts it on
// its way.
func (w *walk) went(i int, out []byte, ok bool, asOf int64) bool {
	e := w.ends[i]
	if e.m.cfg.Adaptive {
		w.follow(i, out)
	}
	if e.m.cfg.Adaptive && !ok && e.s.Err() == ErrStalled && e.m.err == nil {
		e.m.judge()
		e.m.halfway() // a copy was due, if there is no other reason
	}
	want, wantOK := e.m.due(asOf)
	if ok != wantOK || !bytes.Equal(out, want) {
		w.fatalf("AppendDue of %d = %x, %t,\nwant %x, %t", i, out, ok, want, wantOK)
	}
	if !sameError(e.s.Err(), e.m.err) {
		w.fatalf("Err of %d = %v, want %v", i, e.s.Err(), e.m.err)
	}
	if ok {
		w.launch(i, out)
	}
	_, fresh := e.m.fresh()
	waits := e.s.channel.sender.window.crowded() // then new events may have to
	if fresh && !waits && e.m.cfg.Adaptive && !e.m.closing && e.m.err == nil && (!ok || out[1] != byte(TypeEvent)) {
		w.fatalf("AppendDue of %d left out a new event", i)
	}
	return ok
}

// follow tells the model which copies an adaptive session has chosen to send,
// once it has checked that each of them may go.
func (w *walk) follow(i int, out []byte) {
	m := w.ends[i].m
	m.follow = []int{}
	if len(out) == 0 {
		return
	}
	n := m.headerSize()
	p, rest := parsed{Header: Header{Type: Type(out[1])}}, out[n:]
	if m.cfg.Seal != nil {
		peer := w.ends[1-i].m.cfg.Open
		plain, err := peer.Open(nil, modelNonce(peer, m.firstSent+int64(len(m.sent))), rest, out[:n])
		if err != nil {
			w.fatalf("a datagram of ours does not open")
		}
		rest = plain
	}
	if err := p.read(rest); err != nil {
		w.fatalf("a datagram of ours is refused: %v", err)
	}
	before, fresh := -1, 0
	for _, event := range p.list {
		k := m.base + int(wrapped(int64(event.ID)-m.firstEvent-int64(m.base), 1<<16))
		if k >= len(m.events) || k >= m.base+256 || m.events[k].delivered {
			w.fatalf("event %d is sent, which is delivered, outside the window or unknown", event.ID)
		}
		if k <= before {
			w.fatalf("event %d is not after the one before it", event.ID)
		}
		before = k
		if first, _ := m.fresh(); !m.events[k].sent && k != first+fresh {
			w.fatalf("event %d goes first, out of turn", event.ID)
		}
		if !m.events[k].sent {
			fresh++
		} else if m.closing {
			w.fatalf("event %d is sent again after Close", event.ID)
		}
		m.follow = append(m.follow, k)
	}
}

// receive passes bytes to Receive at end i and checks what is delivered against what
// was sent. Where the bytes come from a flight, its contents are known.
func (w *walk) receive(i int, datagram []byte, f *flight) {
	in, numbers := w.handIn(i, datagram)
	e, peer := w.ends[i], w.ends[1-i].m
	for k, event := range in.Events {
		// What the model says of events is one thing, what was sent another.
		number := numbers[k]
		if at := number - peer.firstEvent; at < 0 || at >= int64(len(peer.events)) ||
			!bytes.Equal(event.Data, peer.events[at].data) {
			w.fatalf("I3: event %d has other bytes than were sent", number)
		}
		if e.handed[number] {
			w.fatalf("I3: event %d was delivered twice", number)
		}
		e.handed[number] = true
		if e.m.cfg.Ordered {
			if number != e.inOrder {
				w.fatalf("event %d was delivered before %d", number, e.inOrder)
			}
			e.inOrder++
		} else if f != nil && !slices.Contains(f.events, number) {
			w.fatalf("I3: event %d was delivered from a datagram that has none", number)
		}
	}
}

// handIn passes bytes to Receive at end i and compares the answer with the model's. It
// returns the numbers of the events, too.
func (w *walk) handIn(i int, datagram []byte) (in Incoming, numbers []int64) {
	e := w.ends[i]
	own := slices.Clone(datagram)
	before := *e.s
	in, err := e.s.Receive(own)
	w.reads(e, "Receive", 1)
	want, numbers, wantErr := e.m.receive(datagram)
	if !sameError(err, wantErr) {
		w.fatalf("Receive = %v, want %v", err, wantErr)
	}
	if err != nil {
		if !reflect.ValueOf(in).IsZero() {
			w.fatalf("Receive returned %+v and %v", in, err)
		}
		w.unchanged(&before, e.s)
	}
	if !bytes.Equal(own, datagram) && e.m.cfg.Open == nil {
		w.fatalf("Receive changed the datagram")
	}
	if in.Header != want.Header || in.Arrival != want.Arrival || in.Latest != want.Latest ||
		(in.Payload == nil) != (want.Payload == nil) || !bytes.Equal(in.Payload, want.Payload) {
		w.fatalf("Receive = %+v,\nwant %+v", in, want)
	}
	if len(in.Events) != len(want.Events) {
		w.fatalf("Receive delivered %d events, want %d", len(in.Events), len(want.Events))
	}
	for k, event := range in.Events {
		if event.ID != want.Events[k].ID || !bytes.Equal(event.Data, want.Events[k].Data) {
			w.fatalf("Receive delivered %v, want %v", event, want.Events[k])
		}
	}
	if !sameError(e.s.Err(), e.m.err) {
		w.fatalf("Err = %v, want %v", e.s.Err(), e.m.err)
	}
	return in, numbers
}

// unchanged checks that only what an error may change has changed: counters,
// the time and what is kept to save work. The replay window is check's.
func (w *walk) unchanged(before, after *Session) {
	b, a := *before, *after
	for _, s := range []*Session{&b, &a} {
		s.time = timeline{}
		s.channel.receiver.stats.Rejected, s.channel.receiver.stats.Forged, s.channel.receiver.stats.Replayed = 0, 0, 0
		s.sealing = nil
		s.channel.receiver.inbox.parsed = nil
		s.channel.receiver.rejected = rejection{}
		s.channel.receiver.accept = nil
	}
	if !reflect.DeepEqual(b, a) {
		w.fatalf("I5: an error changed\n%+v to\n%+v", b, a)
	}
}

// arrive passes the k-th flight to end i, and keeps it on its way if it is to
// are retransmitted.
func (w *walk) arrive(i, k int, again bool) {
	e := w.ends[i]
	if len(e.flights) == 0 {
		return
	}
	k %= len(e.flights)
	f := e.flights[k]
	if !again {
		e.flights = slices.Delete(e.flights, k, k+1)
	}
	w.receive(i, f.datagram, &f)
}

// hostile passes bytes to Receive that the pipe has made up or damaged, unless the model
// says that they would pass: no checksum of ours tells a forged datagram from a
// true one.
func (w *walk) hostile(i int, datagram []byte) {
	m := w.ends[i].m
	if _, _, _, err := m.check(datagram); err == nil || err == ErrWithhold {
		return
	}
	w.receive(i, datagram, nil)
}

func (w *walk) advance(i int, d time.Duration) { w.ends[i].clock.Advance(d) }

func (w *walk) wait(d time.Duration) {
	w.advance(0, d)
	w.advance(1, d)
}

// deadline goes to the moment before an end's deadline, and then to it.
func (w *walk) deadline(i int) {
	e := w.ends[i]
	for w.due(i) {
	}
	at, ok := e.s.Deadline()
	if !ok {
		if e.s.Err() == nil {
			w.fatalf("a living session has no deadline")
		}
		return
	}
	wait := at.Sub(e.clock.ManualClock.Now())
	if wait <= 0 {
		w.fatalf("I4: nothing is due and the deadline was %v ago", -wait)
	}
	w.wait(wait - 1)
	if w.due(i) || e.s.Err() != nil {
		w.fatalf("I4: AppendDue has something to do before its deadline (%v)", e.s.Err())
	}
	w.wait(1)
	if !w.due(i) && e.s.Err() == nil {
		w.fatalf("I4: AppendDue has nothing to do at its deadline")
	}
}

func (w *walk) outcome(i int) {
	e := w.ends[i]
	o, ok := e.s.NextOutcome()
	w.reads(e, "NextOutcome", 1)
	want, wantOK := e.m.outcome()
	if o != want || ok != wantOK {
		w.fatalf("NextOutcome = %+v, %t, want %+v, %t", o, ok, want, wantOK)
	}
}

func (w *walk) shutdown(i int, patience time.Duration) {
	e := w.ends[i]
	e.s.Shutdown(patience)
	w.reads(e, "Shutdown", 1)
	e.m.shutdown(patience)
}

func (w *walk) close(i int) {
	e := w.ends[i]
	e.s.Close()
	w.reads(e, "Close", 1)
	e.m.close()
}

// check compares everything that can be asked with the model.
func (w *walk) check() {
	for i, e := range w.ends {
		m := e.m
		if m.cfg.Adaptive { // not the model's to say
			m.stats.EventsAhead = min(e.s.Stats().EventsAhead, m.stats.EventsResent)
		}
		if got, want := e.s.Stats(), m.snapshot(); got != want {
			w.fatalf("Stats of %d =\n%+v, want\n%+v", i, got, want)
		}
		if s := e.s.Stats(); s.DatagramsSent != s.Delivered+s.Lost+uint64(s.Undecided) {
			w.fatalf("I2: %+v", s)
		}
		if e.s.InFlight() != m.undelivered() || e.s.Room() != m.room() {
			w.fatalf("InFlight, Room of %d = %d, %d, want %d, %d", i, e.s.InFlight(), e.s.Room(), m.undelivered(), m.room())
		}
		if !sameError(e.s.Err(), m.err) {
			w.fatalf("Err of %d = %v, want %v", i, e.s.Err(), m.err)
		}
		w.undelivered(i)
		if z := e.s.sealing; z != nil && (z.newest != m.window.newest || !m.window.is(&z.opened)) {
			w.fatalf("the replay window of %d is %d, %+v, want %+v", i, z.newest, z.opened, m.window)
		}
		if e.s.RTT() != time.Duration(m.srtt) {
			w.fatalf("RTT of %d = %v, want %v", i, e.s.RTT(), time.Duration(m.srtt))
		}
		if e.asked != m.asked {
			w.fatalf("Accept of %d was asked %d times, want %d", i, e.asked, m.asked)
		}
		if rate := int64(m.cfg.EventRate); rate > 0 {
			most := rate + rate*(m.now/1000)/1_000_000 + 1 + int64(4+m.cfg.MaxEvent)*(2+m.now/int64(time.Second))
			if m.copies > most {
				w.fatalf("%d bytes of copies of %d in %v", m.copies, i, time.Duration(m.now))
			}
		}
		got, ok := e.s.Deadline()
		want, wantOK := m.deadline()
		if ok != wantOK {
			w.fatalf("Deadline of %d = %v, %t", i, got, ok)
		}
		if ok && !m.cfg.Adaptive {
			if at := max(m.now, m.now+int64(got.Sub(m.reading))); at != want {
				w.fatalf("Deadline of %d = %v, want %v", i, time.Duration(at), time.Duration(want))
			}
		}
		w.bounded(i, e.s)
		w.counted(i, &e.s.channel.sender)
		w.reads(e, "a getter", 0)
	}
}

// undelivered compares what is still to be delivered.
func (w *walk) undelivered(i int) {
	m := w.ends[i].m
	k := m.base
	for event := range w.ends[i].s.Undelivered() {
		for k < len(m.events) && m.events[k].delivered && !m.cfg.Ordered {
			k++
		}
		if k == len(m.events) || event.ID != uint16(m.firstEvent+int64(k)) || !bytes.Equal(event.Data, m.events[k].data) {
			w.fatalf("Undelivered of %d yields event %d, %x, %+v", i, event.ID, event.Data, m.events[k])
		}
		k++
	}
	for ; k < len(m.events); k++ {
		if !m.events[k].delivered {
			w.fatalf("Undelivered of %d leaves out event %d", i, k)
		}
	}
}

// bounded checks that memory is bounded by the limits, whatever came (I5).
func (w *walk) bounded(i int, s *Session) {
	c := &s.channel
	if len(c.sender.log.stamps) > maxRememberedSent || len(c.sender.outcomes.ring) > maxOutcomes ||
		len(c.sender.outbox.events) > 2*(c.sender.maxUndelivered+eventWindow) || waitingIn(&c.receiver.inbox) > eventWindow-1 || c.receiver.inbox.reorder != nil && len(c.receiver.inbox.reorder.order) > 2*eventWindow {
		w.fatalf("I5: memory of %d is not bounded", i)
	}
}

// counted checks what the sending half counts of its events by looking at each.
func (w *walk) counted(i int, s *sender) {
	o := &s.outbox
	held := 0
	var load, inFlight int64
	for number := o.base; number < o.end; number++ {
		e := o.get(number)
		if e.delivered() {
			continue
		}
		load += int64(e.cost())
		if e.inFlight() {
			inFlight += int64(e.cost())
		}
		if e.state&isHeld != 0 {
			held++
		}
	}
	if o.held != held || s.window != nil && (s.window.load != load || s.window.inFlight != inFlight) {
		w.fatalf("%d counts %d events held, %+v; want %d, %d bytes of events, %d in flight", i, o.held, s.window, held, load, inFlight)
	}
}

// settle heals the pipe and plays on until everything has arrived, unless a
// session has ended.
func (w *walk) settle() {
	w.log("the pipe heals")
	for round := 0; ; round++ {
		for i, e := range w.ends {
			for w.due(i) {
			}
			for len(e.flights) > 0 {
				w.arrive(i, 0, false)
				for w.due(i) {
				}
			}
		}
		w.check()
		a, b := w.ends[0], w.ends[1]
		if a.m.ended() != nil || b.m.ended() != nil {
			return
		}
		if a.s.InFlight() == 0 && b.s.InFlight() == 0 {
			break
		}
		if round > 20_000 {
			w.fatalf("%d and %d events are still in flight", a.s.InFlight(), b.s.InFlight())
		}
		w.wait(10 * time.Millisecond)
	}
	for i, e := range w.ends {
		peer := w.ends[1-i].m
		if len(e.handed) != len(peer.events) {
			w.fatalf("I3: %d of %d events were delivered at %d", len(e.handed), len(peer.events), i)
		}
	}
}

// A walkOp is one kind of step. a and b mean what the step makes of them.
type walkOp struct {
	name string
	run  func(w *walk, i, a, b int)
}

var walkTypes = []Type{
	TypeSnapshot, TypeInput, TypeConnect, TypeAccept, 16, 255, TypeSnapshot, TypeSnapshot,
	0, TypeEvent, TypeHeartbeat, TypeDisconnect, TypeBundle, 15,
}

var walkOps = []walkOp{
	{"send", func(w *walk, i, a, b int) {
		size := a % 64
		if b >= 224 {
			size = a * 1180 / 255 // up to more than fits
		}
		w.log("%d sends an event of %d bytes", i, size)
		if w.ends[i].s.Room() > 0 || w.ends[i].m.ended() != nil {
			w.send(i, size)
		}
	}},
	{"send many", func(w *walk, i, a, b int) {
		n := min(a, max(0, w.ends[i].s.Room()-1))
		w.log("%d sends %d events of %d bytes", i, n, b%32)
		for range n {
			w.send(i, b%32)
		}
	}},
	{"overflow", func(w *walk, i, a, b int) {
		if a < 250 {
			return // rarely: it ends the session
		}
		w.log("%d sends until it has no room, and once more", i)
		for n := w.ends[i].s.Room(); n >= 0; n-- {
			w.send(i, 2)
		}
	}},
	{"datagram", func(w *walk, i, a, b int) {
		t := walkTypes[a%len(walkTypes)]
		payload := bytes.Repeat([]byte{byte(a), byte(b)}, b*2/2)
		if b >= 240 {
			payload = make([]byte, w.ends[i].s.MaxPayload()-b%8+1)
		}
		if len(payload) > 0 && a >= 0xE0 && a <= 0xE2 {
			payload[0] = byte(a) // to be refused or withheld
		}
		w.log("%d sends a datagram of type %v, %d bytes", i, t, len(payload))
		w.app(i, t, payload)
	}},
	{"due", func(w *walk, i, a, b int) {
		w.log("AppendDue of %d", i)
		w.due(i)
	}},
	{"flush", func(w *walk, i, a, b int) {
		w.log("Due of %d", i)
		for w.due(i) {
		}
	}},
	{"flush slowly", func(w *walk, i, a, b int) {
		w.log("Due of %d, each datagram takes %v to write", i, time.Duration(a)*100*time.Microsecond)
		w.slowly(i, time.Duration(a)*100*time.Microsecond)
	}},
	{"arrive", func(w *walk, i, a, b int) {
		w.log("the first flight arrives at %d", i)
		w.arrive(i, 0, false)
	}},
	{"overtake", func(w *walk, i, a, b int) {
		w.log("flight %d arrives at %d", a, i)
		w.arrive(i, a, false)
	}},
	{"duplicate", func(w *walk, i, a, b int) {
		w.log("flight %d arrives at %d, and will again", a, i)
		w.arrive(i, a, true)
	}},
	{"exchange", func(w *walk, i, a, b int) {
		w.log("all flights arrive, with Due after each")
		for _, i := range []int{i, 1 - i} {
			for n := len(w.ends[i].flights); n > 0; n-- {
				w.arrive(i, 0, false)
				for w.due(i) {
				}
			}
		}
	}},
	{"pile", func(w *walk, i, a, b int) {
		w.log("all flights arrive at %d without Due", i)
		for n := len(w.ends[i].flights); n > 0; n-- {
			w.arrive(i, a%n, false)
		}
	}},
	{"lose", func(w *walk, i, a, b int) {
		if e := w.ends[i]; len(e.flights) > 0 {
			k := a % len(e.flights)
			w.log("flight %d to %d is lost", k, i)
			e.flights = slices.Delete(e.flights, k, k+1)
		}
	}},
	{"blackout", func(w *walk, i, a, b int) {
		w.log("all flights to %d are lost", i)
		w.ends[i].flights = nil
	}},
	{"ghost", func(w *walk, i, a, b int) {
		if e := w.ends[i]; len(e.past) > 0 {
			k := (a + b*3) % len(e.past)
			w.log("the %d-th last datagram to %d arrives, now or again", k, i)
			f := e.past[len(e.past)-1-k]
			w.receive(i, f.datagram, &f)
		}
	}},
	{"damage", func(w *walk, i, a, b int) {
		if e := w.ends[i]; len(e.flights) > 0 {
			d := slices.Clone(e.flights[a%len(e.flights)].datagram)
			d[b%len(d)] ^= 1 << (a % 8)
			w.log("a flight to %d is damaged in byte %d", i, b%len(d))
			w.hostile(i, d)
		}
	}},
	{"cut", func(w *walk, i, a, b int) {
		if e := w.ends[i]; len(e.flights) > 0 {
			d := e.flights[a%len(e.flights)].datagram
			w.log("a flight to %d is cut", i)
			w.hostile(i, d[:b%len(d)])
		}
	}},
	{"forge", func(w *walk, i, a, b int) {
		// An event far outside the window; garbage; another session's.
		h := Header{Wide: w.ends[i].m.cfg.Wide, Sealed: w.ends[i].m.cfg.Open != nil, Type: TypeEvent, Token: walkToken, Sequence: uint16(b * 257), Ack: uint16(a * 257)}
		out := binaryEvent(h.AppendTo(nil), uint16(a*256))
		if b%3 == 0 {
			out = binaryEvent(out, uint16(b*256))
			out[len(out)-9-listOverhead+1]++
		}
		switch a % 5 {
		case 0:
			out[2]++
		case 1:
			out[0] ^= 1
		case 2:
			out = bytes.Repeat(out, 1+b/2)
		}
		w.log("bytes that nobody sent arrive at %d", i)
		w.hostile(i, out)
	}},
	{"wait", func(w *walk, i, a, b int) {
		d := time.Duration(a)*time.Millisecond + time.Duration(b*b)
		w.log("%v pass", d)
		w.wait(d)
	}},
	{"wait long", func(w *walk, i, a, b int) {
		d := time.Duration(a*a) * time.Millisecond / 50
		if b >= 248 {
			d *= 5 // more than the timeout
		}
		w.log("%v pass", d)
		w.wait(d)
	}},
	{"deadline", func(w *walk, i, a, b int) {
		w.log("the deadline of %d comes", i)
		w.deadline(i)
	}},
	{"step back", func(w *walk, i, a, b int) {
		d := time.Duration(a*b*b) * time.Millisecond
		w.log("the clock of %d is set back by %v", i, d)
		w.advance(i, -d)
	}},
	{"set forward", func(w *walk, i, a, b int) {
		w.log("the clock of %d is set forward", i)
		w.outcome(i) // lest a step back before it makes it count as a pause
		w.advance(i, 24*time.Hour+time.Duration(1+a*b))
	}},
	{"outcomes", func(w *walk, i, a, b int) {
		w.log("%d asks for %d outcomes", i, a%40)
		for range a % 40 {
			w.outcome(i)
		}
	}},
	{"close", func(w *walk, i, a, b int) {
		if a >= 250 { // rarely
			w.log("%d closes", i)
			w.close(i)
		}
	}},
	{"shutdown", func(w *walk, i, a, b int) {
		if a >= 246 { // rarely
			w.log("%d shuts down within %v", i, time.Duration(b)*ms)
			w.shutdown(i, time.Duration(b)*ms)
		}
	}},
	{"half the numbers", func(w *walk, i, a, b int) {
		if a >= 252 { // rarely: it ends a session, or nearly
			w.log("%d sends half of all sequences, less %d", i, b%4)
			for n := w.ends[i].m.left() - b%4; n > 0; n-- {
				w.app(i, TypeInput, nil)
				w.ends[1-i].flights = nil
			}
		}
	}},
	{"play", func(w *walk, i, a, b int) {
		w.log("%d ticks of play, what arrives is the pattern %08b", a%48, b)
		for tick := range a % 48 {
			w.wait(16 * time.Millisecond)
			for i, e := range w.ends {
				w.app(i, TypeInput, []byte{byte(tick)})
				if tick%4 == 0 && e.s.Room() > 0 {
					w.send(i, tick)
				}
				for w.due(i) {
				}
				if b>>((tick+4*i)%8)&1 == 0 {
					e.flights = nil
				}
				for n := len(e.flights); n > 0; n-- {
					w.arrive(i, 0, false)
					for w.due(i) {
					}
				}
			}
		}
	}},
	{"flood", func(w *walk, i, a, b int) {
		w.log("%d sends %d datagrams of which few arrive", i, a)
		for n := range a {
			w.app(i, Type(16+n%3), nil)
			if n%(1+b%64) != 0 {
				f := &w.ends[1-i].flights
				*f = (*f)[:len(*f)-min(1, len(*f))]
			}
		}
	}},
}

// walkPlay is the step that makes progress.
var walkPlay = walkOps[slices.IndexFunc(walkOps, func(op walkOp) bool { return op.name == "play" })]

// ailing reports whether a session is about to end for want of what arrives.
func (w *walk) ailing() bool {
	for _, e := range w.ends {
		m := e.m
		now := m.now + max(0, int64(e.clock.ManualClock.Now().Sub(m.reading)))
		if m.err == nil && (m.room() < 60 || now-m.heardAt > int64(time.Second) ||
			m.base < len(m.events) && m.events[m.base].sent && now-m.events[m.base].first > int64(2*time.Second)) {
			return true
		}
	}
	return false
}

// binaryEvent appends a list of one event.
func binaryEvent(b []byte, id uint16) []byte {
	return append(b, 1, byte(id), byte(id>>8), 3, 0, 'b', 'a', 'd')
}

// do takes one step.
func (w *walk) do(op walkOp, i, a, b int) {
	w.steps++
	op.run(w, i, a, b)
	w.check()
}

// walkForms are the forms of Config that the walks go through.
var walkForms = []struct {
	name string
	wc   walkConfig
}{
	{"narrow", walkConfig{}},
	{"wide", walkConfig{cfg: Config{Wide: true, PollInterval: 16 * time.Millisecond}, accept: true}},
	{"outcomes", walkConfig{cfg: Config{Outcomes: true, LossDelay: 200 * time.Millisecond}, accept: true}},
	{"ordered", walkConfig{cfg: Config{Ordered: true, Backlog: 300, MaxEvent: 600}}},
	{"bundle", walkConfig{cfg: Config{Bundle: true, Outcomes: true, StallTimeout: -1, Timeout: time.Minute}, accept: true}},
	{"bundle wide", walkConfig{cfg: Config{Bundle: true, Wide: true, Ordered: true, PollInterval: 90 * time.Millisecond}}},
	{"rate", walkConfig{cfg: Config{EventRate: 700, Bundle: true, StallTimeout: 4 * time.Second}}},
	{"adaptive", walkConfig{cfg: Config{Adaptive: true, Timeout: time.Minute}}},
	{"adaptive bundle", walkConfig{cfg: Config{Adaptive: true, Bundle: true, EventRate: 3000, Backlog: 100, Outcomes: true}, accept: true}},
	{"sealed", walkConfig{cfg: Config{Outcomes: true, MaxDatagram: 300}, accept: true, sealed: true}},
	{"sealed bundle wide", walkConfig{cfg: Config{Bundle: true, Wide: true, Ordered: true, Timeout: time.Minute}, accept: true, sealed: true}},
	{"sealed adaptive", walkConfig{cfg: Config{Adaptive: true, Bundle: true, EventRate: 5000}, accept: true, sealed: true}},
	{"adaptive ordered wide", walkConfig{cfg: Config{Adaptive: true, Wide: true, Ordered: true, Bundle: true}}},
}

// walkStarts are where counters begin: at 0, and so that they wrap on the way.
// The number of a run is kept in 32 bits, as is an event's beside it.
var (
	walkSeqs   = []int64{0, 0, 1, 65503, 65535, 32767, 65504 + 65536}
	walkEvents = []int64{0, 0, 65535, 65300, 32768, 1<<32 - 3, 1<<32 - 100}
	walkRuns   = []int64{0, 0, 1<<32 - 2, 1<<32 - 50, 1<<31 - 1}
)

// walkProperty draws a walk from rapid.
func walkProperty(wc walkConfig) func(t *rapid.T) {
	return func(t *rapid.T) {
		wc := wc
		for i := range 2 {
			wc.seqs[i] = rapid.SampledFrom(walkSeqs).Draw(t, "seq")
			wc.events[i] = rapid.SampledFrom(walkEvents).Draw(t, "event")
			wc.runs[i] = rapid.SampledFrom(walkRuns).Draw(t, "run")
		}
		w := newWalk(t, wc)
		actions := map[string]func(*rapid.T){}
		for _, op := range walkOps {
			actions[op.name] = func(t *rapid.T) {
				w.t = t
				i := rapid.IntRange(0, 1).Draw(t, "end")
				w.do(op, i, rapid.IntRange(0, 255).Draw(t, "a"), rapid.IntRange(0, 255).Draw(t, "b"))
			}
		}
		t.Repeat(actions)
		w.t = t
		w.settle()
	}
}

// TestWalk lets rapid look for a walk that breaks a promise, and shrink it.
func TestWalk(t *testing.T) {
	for _, form := range walkForms {
		t.Run(form.name, func(t *testing.T) {
			t.Parallel()
			rapid.Check(t, walkProperty(form.wc))
		})
	}
}

// TestLongWalk walks further than rapid does, where sessions have a past: ids
// that wrap, windows that have slid, memory that was freed.
func TestLongWalk(t *testing.T) {
	walks, steps := 6, 400
	if testing.Short() {
		walks = 1
	}
	for _, form := range walkForms {
		t.Run(form.name, func(t *testing.T) {
			t.Parallel()
			settled, ends := 0, map[string]int{}
			for seed := range walks {
				r := rand.New(rand.NewPCG(uint64(seed), 7))
				wc := form.wc
				for i := range 2 {
					wc.seqs[i] = walkSeqs[r.IntN(len(walkSeqs))]
					wc.events[i] = walkEvents[r.IntN(len(walkEvents))]
					wc.runs[i] = walkRuns[r.IntN(len(walkRuns))]
				}
				w := newWalk(quietly{t}, wc)
				for range steps {
					op := walkOps[r.IntN(len(walkOps))]
					w.do(op, r.IntN(2), r.IntN(250), r.IntN(248))
					if w.ailing() { // or no walk would live for long
						w.do(walkPlay, 0, 40, 0xFF)
					}
				}
				w.settle()
				if a, b := w.ends[0].s.Err(), w.ends[1].s.Err(); a == nil && b == nil {
					settled++
				} else {
					ends[fmt.Sprint(a)]++
				}
			}
			t.Logf("%d of %d walks of %d steps ended with both sessions alive; the others: %v", settled, walks, steps, ends)
		})
	}
}

// FuzzWalk is TestWalk's property as a fuzz target, in the form that has most in
// it.
func FuzzWalk(f *testing.F) {
	wc := walkConfig{cfg: Config{Bundle: true, Outcomes: true, Ordered: true, Backlog: 50}, accept: true}
	f.Fuzz(rapid.MakeFuzz(walkProperty(wc)))
}

// TestWalkNoticesALie makes sure that the comparison is one: a session that
// is changed behind the model's back is found out.
func TestWalkNoticesALie(t *testing.T) {
	for name, lie := range map[string]func(s *Session){
		"acknowledgement": func(s *Session) { s.channel.receiver.tracker.Receive(7) },
		"counter":         func(s *Session) { s.channel.receiver.stats.Stale++ },
		"time":            func(s *Session) { s.live.sentAt++ },
		"event":           func(s *Session) { s.channel.sender.outbox.add([]byte("x")) },
	} {
		t.Run(name, func(t *testing.T) {
			c := &catcher{}
			func() {
				defer func() {
					if p := recover(); p != nil && p != c {
						panic(p)
					}
				}()
				w := newWalk(c, walkConfig{})
				lie(w.ends[0].s)
				w.check()
				w.app(0, TypeInput, nil)
			}()
			require.True(t, c.failed)
		})
	}
}

type catcher struct{ failed bool }

func (*catcher) Helper()             {}
func (*catcher) Logf(string, ...any) {}
func (c *catcher) Fatalf(string, ...any) {
	c.failed = true
	panic(c)
}
