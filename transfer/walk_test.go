package transfer

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"io"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/ackbits/ackbits"
)

// walker is one end of a walk: calls in any order, over a pipe that does anything.
type walker struct {
	session   *ackbits.Session
	transfers *Transfers
	sinks     map[uint16]*memory // by id
	in        map[uint16]*Incoming
	out       []*Outgoing
	files     [][]byte
	pipe      [][]byte // towards this end
	other     *walker
}

type walk struct {
	t      *rapid.T
	clock  *ackbits.ManualClock
	ends   [2]*walker
	forged bool
	// cancelled: somebody called Cancel.
	cancelled bool
}

func newWalk(t *rapid.T) *walk {
	w := &walk{t: t, clock: new(ackbits.ManualClock)}
	cfg := ackbits.Config{
		Clock: w.clock, Outcomes: true, Timeout: time.Hour, StallTimeout: -1,
		Wide: rapid.Bool().Draw(t, "wide"), Adaptive: rapid.Bool().Draw(t, "adaptive"), Bundle: rapid.Bool().Draw(t, "bundle"),
		LossDelay: time.Duration(rapid.IntRange(1, 1000).Draw(t, "loss delay")) * ms,
	}
	for i := range w.ends {
		e := &walker{sinks: map[uint16]*memory{}, in: map[uint16]*Incoming{}}
		cfg.Accept = func(h ackbits.Header, payload []byte) error {
			if h.Type == testType {
				return e.transfers.Receive(payload)
			}
			return nil
		}
		var err error
		e.session, err = ackbits.NewSession(cfg)
		require.NoError(t, err)
		e.transfers, err = New(e.session, Config{Type: testType, Clock: w.clock, Accept: func(o Offer) (Sink, error) {
			if o.ID%5 == 4 || o.Size > mib {
				return nil, errors.New("every fifth is refused, and what only a forger offers")
			}
			require.NotContains(t, e.sinks, o.ID, "asked twice")
			e.sinks[o.ID] = new(memory)
			return e.sinks[o.ID], nil
		}})
		require.NoError(t, err)
		w.ends[i] = e
	}
	w.ends[0].other, w.ends[1].other = w.ends[1], w.ends[0]
	return w
}

func (e *walker) flush() {
	for o, ok := e.session.NextOutcome(); ok; o, ok = e.session.NextOutcome() {
		e.transfers.Outcome(o)
	}
	buf := make([]byte, ackbits.MaxDatagramSize)
	for datagram := range e.session.Due(buf) {
		e.other.pipe = append(e.other.pipe, slices.Clone(datagram))
	}
	for datagram := range e.transfers.Due(buf) {
		e.other.pipe = append(e.other.pipe, slices.Clone(datagram))
	}
	for in := range e.transfers.Incoming() {
		e.in[in.Offer().ID] = in
	}
	// What was due has gone: the deadline lies ahead.
	if at, ok := e.transfers.Deadline(); ok {
		now := e.transfers.cfg.Clock.Now()
		for i := 0; ok && !at.After(now); i++ {
			if i == 100 {
				panic("due, and nothing comes of it")
			}
			for datagram := range e.transfers.Due(buf) {
				e.other.pipe = append(e.other.pipe, slices.Clone(datagram))
			}
			at, ok = e.transfers.Deadline()
		}
	}
}

func (e *walker) take(i int, keep bool) {
	datagram := e.pipe[i]
	if keep {
		datagram = slices.Clone(datagram)
	} else {
		e.pipe = slices.Delete(e.pipe, i, i+1)
	}
	_, _ = e.session.Receive(datagram)
}

// actions are what a walk is made of.
func (w *walk) actions() map[string]func(*rapid.T) {
	end := func(t *rapid.T) *walker { return w.ends[rapid.IntRange(0, 1).Draw(t, "end")] }
	// some does something to a datagram in flight, if there is one.
	some := func(do func(e *walker, i int)) func(*rapid.T) {
		return func(t *rapid.T) {
			if e := end(t); len(e.pipe) > 0 {
				do(e, rapid.IntRange(0, min(len(e.pipe), 40)-1).Draw(t, "datagram"))
			}
		}
	}
	return map[string]func(*rapid.T){
		"send": func(t *rapid.T) {
			e := end(t)
			file := content(uint64(len(e.out)), rapid.IntRange(0, 20_000).Draw(t, "size"))
			if len(e.out) < 20 {
				o, err := e.transfers.Send([]byte("x"), bytes.NewReader(file), int64(len(file)))
				require.NoError(t, err)
				e.out, e.files = append(e.out, o), append(e.files, file)
			}
		},
		"advance": func(t *rapid.T) {
			w.clock.Advance(time.Duration(rapid.IntRange(0, 200_000).Draw(t, "µs")) * time.Microsecond)
		},
		"flush":   func(t *rapid.T) { end(t).flush() },
		"deliver": some(func(e *walker, i int) { e.take(i, false) }),
		"double":  some(func(e *walker, i int) { e.take(i, true) }),
		"lose":    some(func(e *walker, i int) { e.pipe = slices.Delete(e.pipe, i, i+1) }),
		"all": func(t *rapid.T) {
			for e := end(t); len(e.pipe) > 0; {
				e.take(0, false)
			}
		},
		"cancel": func(t *rapid.T) {
			e := end(t)
			if n := len(e.out); n > 0 && rapid.Bool().Draw(t, "outgoing") {
				e.out[rapid.IntRange(0, n-1).Draw(t, "which")].Cancel()
				w.cancelled = true
				return
			}
			for _, in := range e.in {
				if in.Offer().ID%3 == 0 {
					in.Cancel()
					w.cancelled = true
				}
			}
		},
		"forge": func(t *rapid.T) {
			e := end(t)
			payload := forged(t)
			datagram, _, err := e.session.AppendDatagram(nil, testType, payload)
			require.NoError(t, err)
			e.other.pipe = append(e.other.pipe, datagram)
			w.forged = true
		},
		"": func(t *rapid.T) { w.check(t) },
	}
}

// forged draws a payload that no end of this package would send: noise, or a message of
// ids that run, ended or never were, with chunks that overlap what is there, are of no
// size that there is, or lie past the end, and sizes up to 2⁶⁴.
func forged(t *rapid.T) []byte {
	id := uint16(rapid.IntRange(0, 21).Draw(t, "id"))
	switch rapid.SampledFrom([]string{"noise", "chunk", "offer", "answer", "word"}).Draw(t, "forged") {
	case "chunk":
		offset := rapid.OneOf(rapid.Int64Range(0, 45), rapid.Int64Range(1<<32-3, 1<<32-1), rapid.Int64Range(maxAhead-3, maxAhead+3)).Draw(t, "offset")
		size := rapid.OneOf(rapid.SampledFrom([]int{0, 1, unit - 1, unit, unit + 1, 2 * unit, 2*unit + 1}), rapid.IntRange(0, 2*unit)).Draw(t, "size")
		return append(appendChunk(nil, rapid.Bool().Draw(t, "ask"), id, 0, offset), make([]byte, size)...)
	case "offer":
		offer := Offer{ID: id, Size: rapid.Int64Range(0, maxSize).Draw(t, "offered")}
		payload := offer.append(nil)
		if rapid.Bool().Draw(t, "too large") {
			binary.LittleEndian.PutUint64(payload[3:], rapid.Uint64Range(maxSize+1, math.MaxUint64).Draw(t, "size of it"))
		}
		return payload
	case "answer":
		return appendAnswer(nil, uint16(rapid.IntRange(0, 100).Draw(t, "serial")), rapid.Uint32().Draw(t, "arrived"))
	case "word":
		k := rapid.SampledFrom([]kind{kindAccept, kindRefuse, kindDone, kindStop, kindDecline}).Draw(t, "kind")
		return append(appendHead(nil, k, id), rapid.SliceOfN(rapid.Byte(), 0, 4).Draw(t, "body")...)
	}
	return rapid.SliceOfN(rapid.Byte(), 0, 20).Draw(t, "payload")
}

// check is what holds after every step.
func (w *walk) check(t *rapid.T) {
	for _, e := range w.ends {
		require.NoError(t, e.session.Err())
		for i, o := range e.out {
			done, size := o.Progress()
			require.True(t, done >= 0 && done <= size, "%d of %d", done, size)
			require.EqualValues(t, len(e.files[i]), size)
			if o.Err() == io.EOF && !w.forged {
				id := o.Offer().ID
				require.True(t, bytes.Equal(e.files[i], e.other.sinks[id].data))
			}
		}
		for id, in := range e.in {
			if in.Err() == io.EOF {
				require.Equal(t, in.Offer().Digest, sha256.Sum256(e.sinks[id].data))
			}
		}
		f := &e.transfers.flight
		require.True(t, f.first <= f.open && f.open <= f.count)
		var bytes int64
		for k := f.first; k < f.count; k++ {
			if c := f.chunks.At(k); c.state == flying {
				require.GreaterOrEqual(t, k, f.open)
				bytes += int64(c.size)
			}
		}
		require.Equal(t, bytes, f.flying)
	}
}

// heal delivers everything until nothing is left to do.
func (w *walk) heal(t *rapid.T) {
	for range 20_000 {
		idle := true
		for _, e := range w.ends {
			for len(e.pipe) > 0 {
				e.take(0, false)
			}
			e.flush()
			_, due := e.transfers.Deadline()
			idle = idle && !due
		}
		if idle {
			break
		}
		w.clock.Advance(5 * time.Millisecond)
	}
	for _, e := range w.ends {
		e.flush()
		require.True(t, w.forged || len(e.transfers.outgoing) == 0, "%+v", e.transfers.outgoing)
		for i, o := range e.out {
			switch {
			case w.forged:
			case o.Offer().ID%5 == 4 && !w.cancelled:
				require.ErrorIs(t, o.Err(), ErrRefused)
			case !w.cancelled:
				require.Equal(t, io.EOF, o.Err(), i)
				require.Equal(t, io.EOF, e.other.in[o.Offer().ID].Err())
			default:
				require.Error(t, o.Err())
			}
		}
	}
	w.check(t)
}

func walkAnyOrder(t *rapid.T) {
	w := newWalk(t)
	t.Repeat(w.actions())
	w.heal(t)
}

// Any order of calls over a pipe that does anything: what ends well has the bytes that
// were sent, and once the pipe heals everything ends.
// P-14.2.2.
func TestWalk(t *testing.T) { rapid.Check(t, walkAnyOrder) }

func FuzzWalk(f *testing.F) { f.Fuzz(rapid.MakeFuzz(walkAnyOrder)) }

// A set of units is what a slice of bools is.
func TestHaveIsASet(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		units := rapid.IntRange(1, 700).Draw(t, "units")
		offer := Offer{Size: int64(units) * unit}
		var h have
		model := make([]bool, units)
		for range rapid.IntRange(0, 300).Draw(t, "adds") {
			from := rapid.IntRange(0, units-1).Draw(t, "from")
			for u := from; u < min(units, from+rapid.IntRange(1, 80).Draw(t, "n")); u++ {
				if !model[u] {
					model[u] = true
					h.add(int64(u))
				}
			}
		}
		first := slices.Index(model, false)
		if first < 0 {
			first = units
		}
		require.EqualValues(t, first, h.next())
		count := 0
		for u := range units {
			require.Equal(t, model[u], h.has(int64(u)))
			if model[u] {
				count++
			}
		}
		require.EqualValues(t, count, h.count)
		fromRuns := make([]bool, units)
		for r := range h.runs() {
			for u := r.from; u < r.to; u++ {
				fromRuns[u] = true
			}
		}
		require.Equal(t, model, fromRuns)
		var loaded have
		loaded.load(h.appendHave(nil, &offer), &offer)
		require.Equal(t, h.next(), loaded.next())
		require.Equal(t, h.count, loaded.count)
		for u := range units {
			require.Equal(t, model[u], loaded.has(int64(u)))
		}
	})
}
