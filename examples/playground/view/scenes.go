package view

import (
	"fmt"
	"time"

	"github.com/ackbits/ackbits"
	"github.com/ackbits/ackbits/examples/playground/sim"
)

// Scene is a guided situation: settings, a stretch of time to watch slowly, and
// what to look at when it is over. Where in the run it is to be seen is looked up
// rather than written down, so that it stays true when the library changes.
type Scene struct {
	Key, Title, Text string
	Address          string  // all but the seed
	Speed            float64 // virtual time passes so many times as fast
	find             func(*Board) (shot, bool)
}

// shot is what a scene shows.
type shot struct {
	from, to time.Duration
	flight   int // to be selected at the end, or -1
	event    int // of the client's, or -1
}

// Shot tells a page of it.
type Shot struct {
	Error    string
	Address  string
	From, To float64
	Flight   int
	Event    int
}

// Scenes are the guided situations, in the order in which they teach.
var Scenes = []Scene{
	{"gap", "An ack bit fills a gap",
		"A datagram is held back, and a newer one overtakes it: the server's window shows a hole. When it comes after all, its bit is set, and the server's next datagram tells the client so.",
		"reorder=6&by=45&cevents=0&sevents=0", 0.1, findGap},
	{"again", "A lost event comes again",
		"The datagram with this event is lost, and the server acknowledges later ones but not this one. That is evidence enough: the client retransmits the event at once, instead of waiting for a fixed delay.",
		"sevents=0&cevents=20&do=1.5:cut-60", 0.2, findAgain},
	{"burst", "When 33 acknowledgements are too few",
		"At 250 inputs a second the 33 acknowledgements of a header reach back 132 ms, and here a burst swallows the server's datagrams for longer, so that what arrived at its beginning is never acknowledged and the client presumes it lost. The second run has Wide on, whose 65 acknowledgements reach back over the gap.",
		"client=250&cevents=20&burst=150&every=1500&vs=adaptive,bundle,wide", 0.1, findUnacknowledged},
	{"proactive", "Proactive copies",
		"This link has lost a tenth of everything for a while, so Adaptive sends a second copy of each event a tick after the first. Here the first is lost, and the copy arrives before anybody could have known of the loss.",
		"loss=10&sevents=0&cevents=10", 0.1, findProactive},
	{"leave", "A Disconnect",
		"The client leaves: three Disconnects in a row, because none of them is ever acknowledged. The first that arrives ends the session at the server at once, instead of after five seconds of silence.",
		"loss=20&do=2:leave-0", 0.1, findLeave},
	{"seal", "What sealing hides",
		"Every payload is encrypted, and a changed bit anywhere is noticed. The header stays in the clear: who listens sees types, sizes, times and acknowledgements, but not a byte of what is said.",
		"sealed=1&loss=3", 0.2, findSealed},
}

// DescribeScenes tells of all scenes.
func DescribeScenes() []byte { return encode(Scenes) }

// How far a scene is looked for: over so many seeds, so long in each. The first
// seed shows nearly all of them within seconds.
const (
	seeds    = 12
	patience = 20 * time.Second
)

// Shoot looks for a scene's stretch of time.
func Shoot(key string) []byte {
	for _, scene := range Scenes {
		if scene.Key == key {
			return encode(scene.shoot())
		}
	}
	return encode(Shot{Error: fmt.Sprintf("there is no situation %q", key)})
}

func (s Scene) shoot() Shot {
	for seed := range seeds {
		settings, err := sim.Parse(fmt.Sprintf("seed=%d&%s", seed+1, s.Address))
		if err != nil {
			return Shot{Error: err.Error()}
		}
		b, err := Start(settings)
		if err != nil {
			return Shot{Error: err.Error()}
		}
		for b.Now() < patience {
			b.Advance(b.Now() + time.Second)
			if shot, ok := s.find(b); ok {
				return Shot{"", settings.String(), ms(max(0, shot.from)), ms(shot.to), shot.flight, shot.event}
			}
		}
	}
	return Shot{Error: fmt.Sprintf("%q does not happen with these settings", s.Title)}
}

const beat = time.Millisecond

// findFlight returns the first flight that is over and as asked for.
func findFlight(r *sim.Run, as func(*sim.Flight) bool) (*sim.Flight, bool) {
	oldest, count := r.Oldest()
	for id := oldest; id < count; id++ {
		if f, _ := r.Flight(id); as(f) {
			return f, true
		}
	}
	return nil, false
}

func findGap(b *Board) (shot, bool) {
	r := b.runs[0]
	late, ok := findFlight(r, func(f *sim.Flight) bool {
		return f.From == sim.Client && f.Got[0] == sim.GotLate && f.SentAt > 300*beat
	})
	if !ok {
		return shot{}, false
	}
	answer, ok := findFlight(r, func(f *sim.Flight) bool {
		return f.From == sim.Server && f.SentAt >= late.Arrives[0] && f.Got[0] != sim.InFlight
	})
	if !ok {
		return shot{}, false
	}
	return shot{late.SentAt - 20*beat, answer.Arrives[0] + 2*beat, answer.ID, -1}, true
}

// findEvent returns the first event of the client that was delivered and is as
// asked for, given the flights of its copies.
func findEvent(r *sim.Run, after time.Duration, as func(e *sim.Event, copies []*sim.Flight) bool) (*sim.Event, bool) {
	for n := range r.EventCount(sim.Client) {
		e, ok := r.Event(sim.Client, n)
		if !ok || e.SentAt < after || e.AckedAt < 0 {
			continue
		}
		var copies []*sim.Flight
		for _, id := range e.Copies {
			if f, ok := r.Flight(id); ok {
				copies = append(copies, f)
			}
		}
		if as(e, copies) {
			return e, true
		}
	}
	return nil, false
}

func findAgain(b *Board) (shot, bool) {
	r := b.runs[0]
	e, ok := findEvent(r, 300*beat, func(e *sim.Event, copies []*sim.Flight) bool {
		return len(copies) > 1 && copies[0].Copies == 0 && copies[1].SentAt-e.SentAt > 50*beat
	})
	if !ok {
		return shot{}, false
	}
	return shot{e.SentAt - 20*beat, e.AckedAt + 5*beat, -1, e.Number}, true
}

// unacknowledgedIn returns the first of the client's datagrams sent in a stretch of time
// that arrived and was never acknowledged.
func unacknowledgedIn(r *sim.Run, from, to time.Duration) (*sim.Flight, bool) {
	return findFlight(r, func(f *sim.Flight) bool {
		return f.From == sim.Client && f.Copies > 0 && f.AckedAt < 0 && from <= f.SentAt && f.SentAt < to
	})
}

func findUnacknowledged(b *Board) (shot, bool) {
	settled := b.Now() - time.Second // the arrivals on what was sent before are in
	for from := 300 * beat; ; {
		f, ok := unacknowledgedIn(b.runs[0], from, settled)
		if !ok {
			return shot{}, false
		}
		if _, too := unacknowledgedIn(b.runs[1], f.SentAt-200*beat, f.SentAt+400*beat); !too {
			return shot{f.SentAt - 20*beat, f.SentAt + 330*beat, f.ID, -1}, true
		}
		from = f.SentAt + 400*beat
	}
}

func findProactive(b *Board) (shot, bool) {
	r := b.runs[0]
	e, ok := findEvent(r, 5*time.Second, func(e *sim.Event, copies []*sim.Flight) bool {
		return len(copies) >= 2 && copies[0].Copies == 0 && copies[1].Copies > 0 && copies[1].SentAt-e.SentAt < 40*beat
	})
	if !ok {
		return shot{}, false
	}
	return shot{e.SentAt - 20*beat, e.AckedAt + 2*beat, -1, e.Number}, true
}

func findLeave(b *Board) (shot, bool) {
	r := b.runs[0]
	f, ok := findFlight(r, func(f *sim.Flight) bool {
		return f.From == sim.Client && f.Header.Type == ackbits.TypeDisconnect && f.Got[0] == sim.GotNewest
	})
	if !ok {
		return shot{}, false
	}
	return shot{1900 * beat, 2120 * beat, f.ID, -1}, true
}

func findSealed(b *Board) (shot, bool) {
	r := b.runs[0]
	f, ok := findFlight(r, func(f *sim.Flight) bool {
		return f.From == sim.Client && f.SentAt > 400*beat && len(f.Events) > 0 && f.Got[0] != sim.InFlight
	})
	if !ok {
		return shot{}, false
	}
	return shot{f.SentAt - 30*beat, f.Arrives[0] + 10*beat, f.ID, -1}, true
}
