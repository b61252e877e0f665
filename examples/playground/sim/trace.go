package sim

import (
	"time"

	"github.com/ackbits/ackbits"
	"github.com/ackbits/ackbits/simnet"
)

// Side is one of the two peers.
type Side uint8

// The client sends inputs, the server snapshots.
const (
	Client Side = iota
	Server
)

func (s Side) String() string { return [...]string{"client", "server"}[s] }

// Other returns the peer of s.
func (s Side) Other() Side { return 1 - s }

// never is the time of what has not happened.
const never = time.Duration(-1)

// Arrival is what the receiver made of one copy of a datagram.
type Arrival uint8

// The arrivals: those of ackbits' Arrival, or refused with an error.
const (
	InFlight     = Arrival(0)
	GotNewest    = Arrival(ackbits.Newest)
	GotLate      = Arrival(ackbits.Late)
	GotDuplicate = Arrival(ackbits.Duplicate)
	GotStale     = Arrival(ackbits.Stale)
	GotRefused   = GotStale + 1
)

func (a Arrival) String() string {
	return [...]string{"in flight", "newest", "late", "duplicate", "stale", "refused"}[a]
}

// Flight is a datagram, from the moment it was sent.
type Flight struct {
	ID    int // counts the datagrams of both sides, from 0
	From  Side
	Bytes []byte // as sent
	Plain []byte // the payload before it was sealed; the payload of Bytes if it was not

	Header ackbits.Header
	Inner  ackbits.Type // of what the application sent, if it was bundled; else 0

	SentAt  time.Duration
	Outcome simnet.What      // Delivered, or how it was lost: decided when it is sent
	Copies  int              // how many copies arrive, 0 to 2
	Arrives [2]time.Duration // when they do
	Got     [2]Arrival       // and what became of them, once they have
	arrived int

	AckedAt time.Duration // when the sender received the first acknowledgement; never
	Events  []int         // the numbers of the events it carries
}

// Sealed reports whether its payload is encrypted.
func (f *Flight) Sealed() bool { return f.Header.Sealed }

// Event is one event, from the moment it was handed to Send.
type Event struct {
	Number int // counts those of its sender, from 0; its id is the low 16 bits
	From   Side
	Size   int

	SentAt      time.Duration
	Copies      []int         // the flights that carry it
	FirstIn     time.Duration // when the first copy arrived; never
	DeliveredAt time.Duration // when it was delivered, once; never
	AckedAt     time.Duration // when its sender learnt of it; never
}

// How much is remembered: some minutes at 60 and 20 Hz, more than any screen
// shows. More would only cost memory, fewer would take the past away from
// somebody who has stopped to look at it.
const (
	maxFlights = 1 << 14
	maxEvents  = 1 << 13
)

// trace remembers the newest flights and events.
type trace struct {
	flights []Flight          // a ring, by ID
	count   int               // of all flights so far
	bySeq   [2][1 << 16]int32 // the newest flight with a sequence, and 1; 0: none

	events [2][]Event // rings, by Number
	sent   [2]int     // events so far
}

// add returns a new flight to be filled in, with the buffers of the one that it
// takes the place of.
func (t *trace) add(from Side) *Flight {
	if t.count < maxFlights {
		t.flights = append(t.flights, Flight{})
	}
	f := &t.flights[t.count%maxFlights]
	*f = Flight{ID: t.count, From: from, AckedAt: never, Bytes: f.Bytes[:0], Plain: f.Plain[:0], Events: f.Events[:0]}
	t.count++
	return f
}

// Flight returns a datagram that is still remembered.
func (t *trace) Flight(id int) (*Flight, bool) {
	if id < 0 || id >= t.count || id < t.count-maxFlights {
		return nil, false
	}
	return &t.flights[id%maxFlights], true
}

// Oldest returns the ID of the oldest flight that is remembered, and the number
// of all there were.
func (t *trace) Oldest() (oldest, count int) { return max(0, t.count-maxFlights), t.count }

// named returns the flight of a side that an acknowledgement of seq means: the
// newest with that sequence.
func (t *trace) named(from Side, seq uint16) (*Flight, bool) {
	return t.Flight(int(t.bySeq[from][seq]) - 1)
}

// Find returns the newest flight of a side with a sequence.
func (t *trace) Find(from Side, seq uint16) (*Flight, bool) { return t.named(from, seq) }

// FindBefore returns the flight of a side that a header sent at a time means by a
// sequence: the newest with it that was sent before.
func (t *trace) FindBefore(from Side, seq uint16, at time.Duration) (*Flight, bool) {
	f, ok := t.named(from, seq)
	return f, ok && f.SentAt <= at
}

// addEvent notes that a side has sent an event.
func (t *trace) addEvent(from Side, size int, now time.Duration) {
	n := t.sent[from]
	if n < maxEvents {
		t.events[from] = append(t.events[from], Event{})
	}
	e := &t.events[from][n%maxEvents]
	*e = Event{Number: n, From: from, Size: size, SentAt: now, Copies: e.Copies[:0], FirstIn: never, DeliveredAt: never, AckedAt: never}
	t.sent[from]++
}

// Event returns an event that is still remembered.
func (t *trace) Event(from Side, number int) (*Event, bool) {
	if number < 0 || number >= t.sent[from] || number < t.sent[from]-maxEvents {
		return nil, false
	}
	return &t.events[from][number%maxEvents], true
}

// EventCount returns how many events a side has sent.
func (t *trace) EventCount(from Side) int { return t.sent[from] }

// number returns which event of a side an id means: the one nearest to the
// newest.
func (t *trace) number(from Side, id uint16) int {
	newest := t.sent[from] - 1
	return newest + int(int16(id-uint16(newest)))
}

// acknowledge notes what a header that to received says of to's datagrams, and
// of the events in them.
func (t *trace) acknowledge(to Side, h ackbits.Header, now time.Duration) {
	note := func(seq uint16) {
		f, ok := t.named(to, seq)
		if !ok || f.AckedAt != never {
			return
		}
		f.AckedAt = now
		for _, n := range f.Events {
			if e, ok := t.Event(to, n); ok && e.AckedAt == never {
				e.AckedAt = now
			}
		}
	}
	note(h.Ack)
	for n, bits := uint16(0), h.AckBits; bits != 0; n, bits = n+1, bits>>1 {
		if bits&1 != 0 {
			note(h.Ack - 1 - n)
		}
	}
}
