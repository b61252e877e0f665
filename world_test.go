package ackbits

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The small worlds: every order in which one side sends events and the other
// acknowledges them, with nothing left out. A world's windows hold two or three
// numbers, so that few datagrams fill, slide and wrap them.
//
// The windows of the library itself are constants, and an array's length is what
// makes its bitmaps fast and plain; a seam to shrink them would cost more clarity
// than it proves. So the worlds enumerate the rules as the dumb model has them
// (modelTracker, modelInbox, named), which take the sizes as a parameter, and the
// model is held to the code twice: TestModelJudgesLikeTheCode compares their
// judgement of every number in every kind of state, and the walks compare whole
// sessions with it.
//
// A state keeps only differences between numbers: what happens does not depend on
// where the counters stand. The states are finite, therefore, though nothing
// bounds how much is sent: the enumeration ends when no step leads to a new state,
// and has then seen runs of every length, with wraps as many as there can be.
// Assumed is what the protocol's times give: no datagram is overtaken by half of
// the sequences there are. A sealed world does not assume it of those that carry
// events: there they come later than a turn, and again, and may be withheld.

// world says how large a world is.
type world struct {
	sizes  modelSizes
	events int // undelivered at most
	list   int // events in a datagram at most
	there  int // datagrams in flight at most
	back   int // acknowledgements in flight at most
	sealed bool

	// What TestSmallWorldsNotice spoils.
	byCount, forgets bool
	endless          bool // sending goes on without acknowledgements
	noWindow, byHalf bool // sealed: replays are not looked for; a number is what the sequence says within a turn
	bitShift         int64
	patience         int8 // a flight that is older is lost; 0: half of the sequences
}

// worldState is a state of a world, comparable so that equal ones are met once.
// Sequences count from the next one that is sent, events from the oldest
// undelivered one of the sender.
type worldState struct {
	count           int8   // of events from the oldest undelivered one on
	sent, delivered uint16 // of these
	log             [4]worldDatagram

	top int8 // the newest that the sender knows to have arrived

	opened int8   // sealed: the newest opened
	was    uint16 // and which before it, as in took
	ever   uint16 // what really was opened; bit n: n + 1 before the next
	newest int8   // the receiver's tracker
	took   uint16 // bit n: newest − n was received
	base   int8   // the receiver's window
	have   uint16 // bit n: base + n was received
	handed uint32 // what really was given to the application; bit n: worldPast events before the oldest undelivered + n

	there [2]worldFlight
	back  [2]worldFlight
}

// worldDatagram is one that was sent; log[n] is n + 1 before the next.
type worldDatagram struct {
	exists, acked, arrived bool
	events                 uint16 // from the oldest undelivered on; older ones do not matter any more
}

// worldFlight is a datagram in flight, or an acknowledgement.
type worldFlight struct {
	exists bool
	number int8    // there: of the datagram; back: ack
	events [2]int8 // there; from the oldest undelivered one, minus, for none, noEvent
	bits   uint8   // back
}

const (
	noEvent   = -100
	worldPast = 16 // how far back it is known what was given to the application
	worldSeq  = 1000_000
	worldID   = 2000_000
)

// explore visits every state and returns how many there are, or what breaks.
func (w world) explore() (states int, err error) {
	defer func() {
		if p := recover(); p != nil {
			broken, ok := p.(worldBroken)
			if !ok {
				panic(p)
			}
			err = broken
		}
	}()
	var start worldState
	start.newest, start.top, start.opened = -1, -1, -1
	start.handed = 1<<worldPast - 1
	seen := map[worldState]struct{}{start: {}}
	queue := []worldState{start}
	for len(queue) > 0 {
		s := queue[len(queue)-1]
		queue = queue[:len(queue)-1]
		w.steps(s, func(next worldState) {
			next.tidy(w)
			if _, ok := seen[next]; !ok {
				seen[next] = struct{}{}
				queue = append(queue, next)
			}
		})
		w.heals(s)
	}
	return len(seen), nil
}

// worldBroken is what a law says that was broken.
type worldBroken string

func (b worldBroken) Error() string { return string(b) }

func brokenIf(broken bool, s *worldState, law string) {
	if broken {
		panic(worldBroken(fmt.Sprintf("%s in\n%+v", law, *s)))
	}
}

// steps calls yield with every state that one step leads to.
func (w world) steps(s worldState, yield func(worldState)) {
	if int(s.count) < w.capacity(&s) {
		next := s // Send
		next.count++
		yield(next)
	}
	if w.maySend(&s) {
		w.emissions(&s, func(events [2]int8) {
			next := s
			if w.emit(&next, events) {
				yield(next)
			}
		})
	}
	for k := range w.there {
		if s.there[k].exists {
			for _, withheld := range []bool{false, true} {
				if withheld && !w.sealed {
					continue
				}
				next := s
				w.arriveThere(&next, k, withheld)
				yield(next) // and comes again
				next.there[k] = worldFlight{}
				yield(next)
			}
			lost := s
			lost.there[k] = worldFlight{}
			yield(lost)
		}
	}
	for k := range w.back {
		if s.back[k].exists {
			next := s
			w.arriveBack(&next, next.back[k])
			yield(next)
			next.back[k] = worldFlight{}
			yield(next)
			lost := s
			lost.back[k] = worldFlight{}
			yield(lost)
		}
	}
	next := s
	if w.answer(&next) {
		yield(next)
	}
}

// maySend reports whether another datagram may be sent: not half of the sequences
// after the newest one that was acknowledged, where the session ends.
func (w world) maySend(s *worldState) bool {
	most := w.sizes.seqs / 2
	if w.endless {
		most = 2 * w.sizes.seqs
	}
	return int64(-s.top) < most
}

// capacity is how many events there may be from the oldest undelivered one on.
func (w world) capacity(s *worldState) int {
	n := w.events
	for k := range int(s.count) {
		n += int(s.delivered >> k & 1)
	}
	return min(n, 7)
}

// emissions calls yield with every list that a datagram may carry now: none, one
// that is due again at any time, the next new one, or two of them.
func (w world) emissions(s *worldState, yield func([2]int8)) {
	yield([2]int8{noEvent, noEvent})
	var may []int8
	for k := range s.count {
		fresh := s.sent>>k&1 == 0
		if s.delivered>>k&1 != 0 || fresh && !w.byCount && int64(k) >= w.sizes.sendWindow {
			continue
		}
		may = append(may, k)
		if fresh {
			break
		}
	}
	for i, a := range may {
		yield([2]int8{a, noEvent})
		for _, b := range may[i+1:] {
			if w.list > 1 {
				yield([2]int8{a, b})
			}
		}
	}
}

// emit sends a datagram. The sender's numbers move on by one.
func (w world) emit(s *worldState, events [2]int8) bool {
	k := 0
	for k < w.there && s.there[k].exists {
		k++
	}
	if k == w.there {
		return false
	}
	s.newest--
	s.top--
	if w.sealed {
		s.opened--
		s.ever <<= 1
	}
	for i := range s.there {
		s.there[i].number--
	}
	for i := range s.back {
		s.back[i].number--
	}
	copy(s.log[1:], s.log[:])
	s.log[0] = worldDatagram{exists: true}
	for _, e := range events {
		if e != noEvent {
			s.sent |= 1 << e
			s.log[0].events |= 1 << e
		}
	}
	s.there[k] = worldFlight{exists: true, number: -1, events: events}
	return true
}

// open opens a datagram of a sealed world and reports whether it does: its number
// is not on the wire, and without that nothing opens it.
func (w world) open(s *worldState, f worldFlight) bool {
	window := trackerOf(s.opened, s.was)
	arrival, number := window.judge(w.sizes, wrapped(worldSeq+int64(f.number), w.sizes.seqs))
	if w.noWindow && arrival != Newest {
		number = worldSeq + int64(f.number)
	} else if arrival != Newest && arrival != Late {
		return false
	}
	if number != worldSeq+int64(f.number) && !w.byHalf {
		return false
	}
	bit := uint16(1) << (-f.number - 1)
	brokenIf(s.ever&bit != 0, s, "P-11.3.3: a datagram opens twice")
	s.ever |= bit
	if arrival == Newest || arrival == Late {
		window.take(w.sizes, number)
		s.opened, s.was = int8(window.newest-worldSeq), bitsOf(window)
	}
	return true
}

// arriveThere gives a datagram to the receiver.
func (w world) arriveThere(s *worldState, k int, withheld bool) {
	f := s.there[k]
	if w.sealed && (!w.open(s, f) || withheld) {
		return
	}
	tracker := trackerOf(s.newest, s.took)
	arrival, number := tracker.judge(w.sizes, wrapped(worldSeq+int64(f.number), w.sizes.seqs))
	if arrival != Newest && arrival != Late {
		return
	}
	brokenIf(number != worldSeq+int64(f.number), s, "I1: a sequence is taken for another one")
	inbox := modelInbox{base: worldID + int64(s.base)}
	for n := range int64(16) {
		if s.have>>n&1 != 0 {
			inbox.have.add(inbox.base + n)
		}
	}
	for _, e := range f.events {
		if e == noEvent {
			continue
		}
		id := wrapped(worldID+int64(e), w.sizes.ids)
		v, number := inbox.judge(w.sizes, id)
		if w.forgets && v == idOutside {
			v = idKnown // the letter of the text: ignore what is far
		}
		brokenIf(v == idOutside, s, "an honest sender's event is outside the window")
		if v != idNew {
			continue
		}
		brokenIf(number != worldID+int64(e), s, "I3: an id is taken for another one")
		at := worldPast + int(e)
		brokenIf(at < 0 || s.handed>>at&1 != 0, s, "I3: an event is given to the application twice")
		s.handed |= 1 << at
		inbox.take(number)
	}
	tracker.take(w.sizes, number)
	s.newest, s.took = int8(tracker.newest-worldSeq), bitsOf(tracker)
	s.base, s.have = int8(inbox.base-worldID), 0
	for _, n := range inbox.have {
		s.have |= 1 << (n - inbox.base)
	}
	if at := -int(f.number) - 1; at < len(s.log) {
		s.log[at].arrived = true
	}
}

func trackerOf(newest int8, took uint16) modelTracker {
	t := modelTracker{newest: worldSeq + int64(newest)}
	for n := range int64(16) {
		if took>>n&1 != 0 {
			t.received.add(t.newest - n)
		}
	}
	return t
}

func bitsOf(t modelTracker) (took uint16) {
	for _, n := range t.received {
		took |= 1 << (t.newest - n)
	}
	return took
}

// answer sends a header back.
func (w world) answer(s *worldState) bool {
	k := 0
	for k < w.back && s.back[k].exists {
		k++
	}
	if k == w.back {
		return false
	}
	tracker := trackerOf(s.newest, s.took)
	_, bits := tracker.header(w.sizes)
	s.back[k] = worldFlight{exists: true, number: s.newest, bits: uint8(bits)}
	return true
}

// arriveBack gives a header to the sender.
func (w world) arriveBack(s *worldState, f worldFlight) {
	ack := wrapped(worldSeq+int64(f.number), w.sizes.seqs)
	number, ok := named(w.sizes, worldSeq-1, ack)
	if !ok {
		return
	}
	s.top = max(s.top, int8(number-worldSeq))
	w.confirm(s, number)
	for n := range w.sizes.acks {
		if f.bits>>n&1 != 0 {
			w.confirm(s, number-1-n+w.bitShift)
		}
	}
	for s.count > 0 && s.delivered&1 != 0 {
		s.count--
		s.sent, s.delivered = s.sent>>1, s.delivered>>1
		for k := range s.log {
			s.log[k].events >>= 1
		}
		s.base--
		brokenIf(s.handed&1 == 0, s, "I3: an event was never given to the application")
		s.handed >>= 1
		for k := range s.there {
			for i := range s.there[k].events {
				if s.there[k].events[i] != noEvent {
					s.there[k].events[i]--
				}
			}
		}
	}
}

func (w world) confirm(s *worldState, number int64) {
	at := worldSeq - 1 - number
	if at < 0 || at >= int64(len(s.log)) || !s.log[at].exists || s.log[at].acked {
		return
	}
	d := &s.log[at]
	brokenIf(!d.arrived, s, "I1: a datagram is acknowledged that did not arrive")
	d.acked = true
	s.delivered |= d.events
	for k := range s.count {
		brokenIf(d.events>>k&1 != 0 && s.handed>>(worldPast+int(k))&1 == 0, s, "I3: an event counts as delivered that was not given to the application")
	}
}

// tidy forgets what cannot matter any more, so that states that act alike are
// equal: datagrams that nothing can name, flights that are too old, and in which
// place a flight is.
func (s *worldState) tidy(w world) {
	half := int8(w.sizes.seqs / 2)
	patience := half
	if w.sealed {
		patience = int8(w.sizes.seqs) + 2
	}
	if w.patience > 0 {
		patience = w.patience
	}
	for k := range s.log {
		d := &s.log[k]
		if int8(k) >= half {
			*d = worldDatagram{}
		}
		if d.acked {
			d.events = 0
		}
	}
	for k := range s.there {
		if f := &s.there[k]; f.exists && s.newest-f.number >= patience {
			*f = worldFlight{}
		}
		if f := &s.back[k]; f.exists && -f.number > half {
			*f = worldFlight{}
		}
		if !s.there[k].exists {
			s.there[k] = worldFlight{}
		}
		if !s.back[k].exists {
			s.back[k] = worldFlight{}
		}
	}
	var under uint16 // way
	for _, f := range s.there {
		if f.exists {
			under |= 1 << (-f.number - 1)
		}
	}
	s.ever &= under
	sortFlights(&s.there)
	sortFlights(&s.back)
}

func sortFlights(f *[2]worldFlight) {
	less := func(a, b worldFlight) bool {
		if a.exists != b.exists {
			return a.exists
		}
		if a.number != b.number {
			return a.number < b.number
		}
		if a.bits != b.bits {
			return a.bits < b.bits
		}
		return a.events[0] < b.events[0] || a.events[0] == b.events[0] && a.events[1] < b.events[1]
	}
	for i := range f {
		for k := i; k > 0 && less(f[k], f[k-1]); k-- {
			f[k], f[k-1] = f[k-1], f[k]
		}
	}
}

// heals checks that from a state in which nothing is lost any more everything
// that was sent arrives and is known to have.
func (w world) heals(s worldState) {
	s.there, s.back = [2]worldFlight{}, [2]worldFlight{}
	origin := s
	for range 40 {
		if s.count == 0 {
			return
		}
		events := [2]int8{noEvent, noEvent}
		w.emissions(&s, func(e [2]int8) { // the last resort: all but what is new, then all
			if e[0] != noEvent && events[0] == noEvent {
				events = e
			}
		})
		if w.maySend(&s) && w.emit(&s, events) {
			w.arriveThere(&s, 0, false)
			s.there[0] = worldFlight{}
		}
		if w.answer(&s) {
			w.arriveBack(&s, s.back[0])
			s.back[0] = worldFlight{}
		}
		s.tidy(w)
	}
	brokenIf(w.maySend(&s), &origin, "I3: an event is never delivered, and nobody is told")
}

// worldRuns says when a world is enumerated.
type worldRuns int

const (
	inShort   worldRuns = iota
	byDefault           // takes seconds
	whenAsked           // takes half a minute: with ACKBITS_WORLDS=all
)

// worlds are small, but of each window there is more than one number inside,
// and numbers wrap after as few datagrams as the rules allow.
var worlds = []struct {
	name string
	runs worldRuns
	w    world
}{
	{"overtaking", inShort, world{sizes: modelSizes{seqs: 8, ids: 10, acks: 1, history: 2, sendWindow: 1, receiveWindow: 2}, events: 1, list: 1, there: 2, back: 1}},
	{"a window of two", byDefault, world{sizes: modelSizes{seqs: 8, ids: 14, acks: 1, history: 2, sendWindow: 2, receiveWindow: 3}, events: 2, list: 1, there: 2, back: 1}},
	{"lists of two", byDefault, world{sizes: modelSizes{seqs: 8, ids: 22, acks: 2, history: 2, sendWindow: 3, receiveWindow: 4}, events: 3, list: 2, there: 1, back: 1}},
	{"sealed", whenAsked, world{sealed: true, sizes: modelSizes{seqs: 8, ids: 10, acks: 1, history: 2, sendWindow: 1, receiveWindow: 2}, events: 1, list: 1, there: 2, back: 1}},
	{"sealed, fewer sequences", byDefault, world{sealed: true, sizes: modelSizes{seqs: 6, ids: 10, acks: 1, history: 1, sendWindow: 1, receiveWindow: 2}, events: 1, list: 1, there: 2, back: 1}},
	{"late acknowledgements", byDefault, world{sizes: modelSizes{seqs: 8, ids: 14, acks: 2, history: 2, sendWindow: 2, receiveWindow: 2}, events: 2, list: 1, there: 1, back: 2}},
}

func TestSmallWorlds(t *testing.T) {
	all := os.Getenv("ACKBITS_WORLDS") == "all"
	for _, c := range worlds {
		if !all && (c.runs == whenAsked || c.runs == byDefault && testing.Short()) {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			states, err := c.w.explore()
			require.NoError(t, err)
			t.Logf("%d states, all of them sound", states)
		})
	}
}

// TestSmallWorldsNotice makes sure that a world finds what is wrong with rules
// that are nearly right.
func TestSmallWorldsNotice(t *testing.T) {
	small, sealed := worlds[1].w, worlds[3].w
	for _, c := range []struct {
		name  string
		spoil func(w *world)
		want  string
	}{
		// By the letter, the cap is on the count of undelivered events, and the
		// receiver ignores what is far from the most recent.
		{"the cap is on the count", func(w *world) { w.byCount = true }, "outside the window"},
		{"the cap is on the count, and what is far is ignored", func(w *world) { w.byCount, w.forgets = true, true }, "not given to the application"},
		{"bit n stands for ack − n", func(w *world) { w.sizes.acks, w.bitShift = 2, 1 }, "I1"},
		{"too few ids for the window", func(w *world) { w.sizes.ids = 4 }, "I3"},
		{"a datagram comes after more than half of the sequences", func(w *world) { w.patience = 8 }, "I1"},
		{"sending goes on without an acknowledgement", func(w *world) { w.endless = true }, "I1"},
		{"a sealed one goes on, too", func(w *world) { *w = sealed; w.endless = true }, "I1"},
		{"replays are not looked for", func(w *world) { *w = sealed; w.noWindow = true }, "P-11.3.3: a datagram opens twice"},
		{"the nonce is the sequence", func(w *world) { *w = sealed; w.byHalf = true }, "P-11.3.3: a datagram opens twice"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := small
			c.spoil(&w)
			states, err := w.explore()
			require.Error(t, err, "%d states", states)
			require.Contains(t, err.Error(), c.want)
			t.Log(strings.SplitN(err.Error(), "\n", 2)[0])
		})
	}
}
