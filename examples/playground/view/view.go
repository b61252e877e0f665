// Package view turns what a sim.Run knows into what a page shows: flights as
// numbers, everything else as JSON. It is apart from the page's WebAssembly so
// that it is tested like any other code.
package view

import (
	"encoding/binary"
	"math"
	"strings"
	"time"

	"github.com/ackbits/ackbits"
	"github.com/ackbits/ackbits/examples/playground/sim"
)

// Board is what a page plays: one run, or two side by side.
type Board struct{ runs []*sim.Run }

// Start returns a board at time zero.
func Start(s sim.Settings) (*Board, error) {
	b := new(Board)
	all := []sim.Settings{s}
	if s.Compare {
		all = append(all, s.Second())
	}
	for _, s := range all {
		run, err := sim.New(s)
		if err != nil {
			return nil, err
		}
		b.runs = append(b.runs, run)
	}
	return b, nil
}

// Runs returns how many runs there are.
func (b *Board) Runs() int { return len(b.runs) }

// Run returns one of them.
func (b *Board) Run(i int) *sim.Run { return b.runs[i] }

// Now returns the virtual time.
func (b *Board) Now() time.Duration { return b.runs[0].Now() }

// Advance lets all runs go on until the given time.
func (b *Board) Advance(until time.Duration) {
	for _, run := range b.runs {
		run.Advance(until)
	}
}

// Step lets one run go on to its next datagram or tick, and the others to the same
// moment.
func (b *Board) Step(i int, tick bool) {
	if tick {
		b.runs[i].NextTick()
	} else {
		b.runs[i].NextDatagram()
	}
	for j, run := range b.runs {
		if j != i {
			run.Advance(b.runs[i].Now())
		}
	}
}

// Do lets something happen now, in all runs.
func (b *Board) Do(verb string, value int) error {
	for _, run := range b.runs {
		if err := run.Do(verb, value); err != nil {
			return err
		}
	}
	return nil
}

// Address returns what an address has to say for somebody else to see the same.
func (b *Board) Address() string {
	s := b.runs[0].Origin()
	s.Moment = b.Now().Truncate(time.Microsecond)
	return s.String()
}

// FlightSize is how many bytes a flight takes in what Flights writes: eight
// numbers of eight bytes.
const FlightSize = 8 * 8

// The numbers of a flight. Times are in milliseconds since the start.
const (
	flightID = iota
	flightSent
	flightArrives // of a lost one: when it would have
	flightArrivesAgain
	flightBits
	flightSequence
	flightBytes
	flightAcked
)

// Flights appends the flights of a run that are in flight at some time between
// from and to, the newest first, at most max of them.
func (b *Board) Flights(dst []byte, i int, from, to time.Duration, max int) []byte {
	r := b.runs[i]
	oldest, count := r.Oldest()
	for id := count - 1; id >= oldest && max > 0; id-- {
		f, _ := r.Flight(id)
		if f.SentAt > to {
			continue
		}
		if f.SentAt < from-r.LongestFlight() {
			break
		}
		if until(r, f) < from {
			continue
		}
		dst = appendFlight(dst, r, f)
		max--
	}
	return dst
}

// until returns the time at which a flight is over, or would have been.
func until(r *sim.Run, f *sim.Flight) time.Duration {
	if f.Copies == 0 {
		return f.SentAt + r.OneWay()
	}
	return f.Arrives[f.Copies-1]
}

func appendFlight(dst []byte, r *sim.Run, f *sim.Flight) []byte {
	var n [8]float64
	n[flightID] = float64(f.ID)
	n[flightSent] = ms(f.SentAt)
	n[flightArrives], n[flightArrivesAgain] = ms(f.Arrives[0]), -1
	switch f.Copies {
	case 0:
		n[flightArrives] = ms(f.SentAt + r.OneWay())
	case 2:
		n[flightArrivesAgain] = ms(f.Arrives[1])
	}
	bits := uint64(f.From) | uint64(f.Header.Type)<<1 | uint64(f.Inner)<<9 | uint64(f.Outcome)<<17 | uint64(f.Copies)<<21 |
		uint64(f.Got[0])<<23 | uint64(f.Got[1])<<26
	if f.Sealed() {
		bits |= 1 << 29
	}
	if len(f.Events) > 0 {
		bits |= 1 << 30
	}
	n[flightBits] = float64(bits)
	n[flightSequence] = float64(f.Header.Sequence)
	n[flightBytes] = float64(len(f.Bytes))
	n[flightAcked] = ms(f.AckedAt)
	for _, x := range n {
		dst = binary.LittleEndian.AppendUint64(dst, math.Float64bits(x))
	}
	return dst
}

// ms is a time in milliseconds; -1 if it has not come.
func ms(t time.Duration) float64 {
	if t < 0 {
		return -1
	}
	return float64(t) / float64(time.Millisecond)
}

// Describe tells of everything that can be set.
func Describe() []byte {
	type preset struct{ Key, Label, About string }
	var presets []preset
	for _, p := range sim.Presets {
		presets = append(presets, preset{p.Key, p.Label, p.About})
	}
	return encode(map[string]any{"fields": sim.Infos, "presets": presets, "verbs": sim.Verbs})
}

// Parsed is what an address says.
type Parsed struct {
	Error   string         // why it says nothing, and the rest is of the default
	Address string         // in its shortest form
	Seed    string         // a string: it may be more than a page's numbers hold
	Values  map[string]int // by key, times the field's scale
	Versus  map[string]int
	Compare bool
	Moment  float64
	Actions int
	Preset  string // the one that the link is, if any
}

// Parse reads an address.
func Parse(fragment string) []byte {
	s, err := sim.Parse(fragment)
	p := Parsed{Address: s.String(), Compare: s.Compare, Moment: ms(s.Moment), Actions: len(s.Script), Preset: presetOf(s.Values)}
	p.Seed = strings.TrimPrefix(strings.Split(p.Address, "&")[0], "seed=")
	p.Values, p.Versus = values(s.Values), values(s.Second().Values)
	if err != nil {
		p.Error = err.Error()
	}
	return encode(p)
}

func values(v sim.Values) map[string]int {
	m := make(map[string]int)
	for f, info := range sim.Infos {
		m[info.Key] = v[f]
	}
	return m
}

func presetOf(v sim.Values) string {
	for _, p := range sim.Presets {
		w := v
		w.UsePreset(p)
		if w == v {
			return p.Key
		}
	}
	return ""
}

// Peer is how a side stands.
type Peer struct {
	Name     string
	Error    string // why its session has ended
	Ended    float64
	InFlight int
	RTT      float64
	Ack      int // what its next header will say
	Cells    string
	Heard    bool // it received something
}

// Status is how a run stands.
type Status struct {
	Now     float64
	Peers   [2]Peer
	Figures []sim.Figure
	Events  []Event
	Sent    int
	Values  map[string]int
	Actions int
	Coming  int // of these, those that have not happened yet
}

// Event is an event for a list.
type Event struct {
	From             sim.Side
	Number, ID       int
	Size             int
	Sent             float64
	First, Delivered float64
	Acked            float64
	Copies           []Copy
}

// Copy is a copy of an event: when it left and when, if ever, it arrived.
type Copy struct {
	Flight        int
	Sent, Arrives float64
	Outcome       string
	Sequence      int
	Type          string
}

// listed is how many events, and copies of each, a status shows. A page has no
// room for more, and each costs time in every frame.
const (
	listedEvents = 16
	listedCopies = 12
)

// Status tells how a run stands.
func (b *Board) Status(i int) []byte {
	r := b.runs[i]
	s := Status{Now: ms(r.Now()), Figures: r.Figures(), Values: values(r.Settings().Values)}
	s.Actions, s.Coming = len(r.Settings().Script), r.Coming()
	_, s.Sent = r.Oldest()
	for side := range s.Peers {
		s.Peers[side] = peerOf(r, sim.Side(side))
	}
	s.Events = newestEvents(r)
	return encode(s)
}

func peerOf(r *sim.Run, side sim.Side) Peer {
	session := r.Session(side)
	p := Peer{Name: side.String(), InFlight: session.InFlight(), RTT: ms(session.RTT())}
	ended, reason := r.Ended(side)
	p.Ended = ms(ended)
	if reason != nil {
		p.Error = strings.TrimPrefix(reason.Error(), "ackbits: ")
	}
	ack, bits, heard := r.Acks(side)
	p.Ack, p.Heard = int(ack), heard
	n := 33
	if r.Settings().Values[sim.Wide] != 0 {
		n = 65
	}
	cells := make([]byte, n)
	for i := range cells {
		cells[i] = cell(r, side, ack, bits, i)
	}
	p.Cells = string(cells)
	return p
}

// cell says what a side knows of the n-th newest datagram: 1 received; x lost and
// o not here yet, which it cannot tell apart; - there is none.
func cell(r *sim.Run, side sim.Side, ack uint16, bits uint64, n int) byte {
	_, _, heard := r.Acks(side)
	f, ok := r.Find(side.Other(), ack-uint16(n))
	switch {
	case !heard || !ok:
		return '-'
	case n == 0 || bits>>(n-1)&1 != 0:
		return '1'
	case f.Copies == 0:
		return 'x'
	}
	return 'o'
}

// newestEvents returns the newest events of both sides, the newest first.
func newestEvents(r *sim.Run) (out []Event) {
	at := [2]int{r.EventCount(sim.Client) - 1, r.EventCount(sim.Server) - 1}
	for len(out) < listedEvents {
		client, some := r.Event(sim.Client, at[sim.Client])
		server, more := r.Event(sim.Server, at[sim.Server])
		switch {
		case some && (!more || client.SentAt >= server.SentAt):
			out = append(out, eventOf(r, client))
			at[sim.Client]--
		case more:
			out = append(out, eventOf(r, server))
			at[sim.Server]--
		default:
			return out
		}
	}
	return out
}

func eventOf(r *sim.Run, e *sim.Event) Event {
	out := Event{From: e.From, Number: e.Number, ID: int(uint16(e.Number)), Size: e.Size,
		Sent: ms(e.SentAt), First: ms(e.FirstIn), Delivered: ms(e.DeliveredAt), Acked: ms(e.AckedAt)}
	for _, id := range e.Copies[:min(len(e.Copies), listedCopies)] {
		if f, ok := r.Flight(id); ok {
			out.Copies = append(out.Copies, copyOf(r, f))
		}
	}
	return out
}

func copyOf(r *sim.Run, f *sim.Flight) Copy {
	c := Copy{Flight: f.ID, Sent: ms(f.SentAt), Arrives: -1, Outcome: outcome(r, f), Sequence: int(f.Header.Sequence), Type: typeOf(f)}
	if f.Copies > 0 {
		c.Arrives = ms(f.Arrives[0])
	}
	return c
}

// outcome says what became of a flight, as far as time has come.
func outcome(r *sim.Run, f *sim.Flight) string {
	switch {
	case f.Copies == 0:
		return f.Outcome.String()
	case f.Got[0] == sim.InFlight:
		return "in flight"
	}
	return f.Got[0].String()
}

func typeOf(f *sim.Flight) string {
	if f.Inner != 0 && !f.Sealed() {
		return f.Header.Type.String() + " of " + f.Inner.String()
	}
	return f.Header.Type.String()
}

// Samples returns a run's samples of after a time.
func (b *Board) Samples(i int, after time.Duration) []byte {
	var rows [][]float64
	for _, s := range b.runs[i].Samples() {
		if s.At <= after {
			continue
		}
		rows = append(rows, []float64{ms(s.At),
			float64(s.Datagrams[0]), float64(s.Datagrams[1]), float64(s.Lost[0]), float64(s.Lost[1]), float64(s.Bytes[0]), float64(s.Bytes[1]),
			float64(s.Events), float64(s.Delivered), float64(s.Copies), ms(s.P50), ms(s.P99), ms(s.RTT[0]), ms(s.RTT[1]),
			ms(s.MinRTT[0]), ms(s.MinRTT[1]), ms(s.Queue[0]), ms(s.Queue[1])})
	}
	return encode(rows)
}

// Latencies returns how many events took how long.
func (b *Board) Latencies(i int, width time.Duration, bins int) []byte {
	return encode(b.runs[i].Latencies(width, bins))
}

// Find returns the ID of the newest datagram of a side with a sequence, or -1.
func (b *Board) Find(i int, from sim.Side, seq uint16) int {
	if f, ok := b.runs[i].Find(from, seq); ok {
		return f.ID
	}
	return -1
}

// TypeNames returns the names of the types of datagrams, by number.
func TypeNames() []byte {
	names := make([]string, 0, 9)
	for t := ackbits.Type(0); t <= ackbits.TypeBundle; t++ {
		names = append(names, t.String())
	}
	return encode(names)
}
