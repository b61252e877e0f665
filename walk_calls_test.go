package ackbits

import (
	"bytes"
	"errors"
	"reflect"
	"slices"
	"time"
)

// The calls that a walk (walk_test.go) makes on both sessions, each compared with the model:
// sending, receiving, time, outcomes and leaving.

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
