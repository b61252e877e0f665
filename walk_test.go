package ackbits

import (
	"fmt"
	"math/rand/v2"
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

func (*catcher) Helper() {}

func (*catcher) Logf(string, ...any) {}

func (c *catcher) Fatalf(string, ...any) {
	c.failed = true
	panic(c)
}
