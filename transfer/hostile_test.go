package transfer

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"io"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ackbits/ackbits"
)

// bench is a Transfers without a peer, whose datagrams the test reads and writes.
type bench struct {
	*Transfers
	session *ackbits.Session
	clock   *ackbits.ManualClock
	sinks   []*memory
}

func newBench(t testing.TB) *bench {
	b := &bench{clock: new(ackbits.ManualClock)}
	var err error
	b.session, err = ackbits.NewSession(ackbits.Config{Outcomes: true, Clock: b.clock})
	require.NoError(t, err)
	b.Transfers, err = New(b.session, Config{Type: testType, Clock: b.clock, Accept: func(Offer) (Sink, error) {
		b.sinks = append(b.sinks, new(memory))
		return b.sinks[len(b.sinks)-1], nil
	}})
	require.NoError(t, err)
	return b
}

// said returns the payloads that are due.
func (b *bench) said() (all [][]byte) {
	for datagram := range b.Due(make([]byte, ackbits.MaxDatagramSize)) {
		all = append(all, slices.Clone(datagram[ackbits.HeaderSize:]))
	}
	return all
}

func offerOf(id uint16, file []byte) Offer {
	return Offer{ID: id, Name: []byte("x"), Size: int64(len(file)), Digest: sha256.Sum256(file)}
}

func chunkOf(id, serial uint16, offset int64, data []byte) []byte {
	return append(appendChunk(nil, true, id, serial, offset), data...)
}

// P-14.1.1, P-14.1.2, P-14.2.3.
func TestHostileChunks(t *testing.T) {
	b := newBench(t)
	file := content(1, 5*unit+100)
	offer := offerOf(3, file)
	require.Equal(t, ErrMessage, b.Receive(chunkOf(3, 0, 0, file[:unit])), "nothing was offered")
	require.NoError(t, b.Receive(offer.append(nil)))
	require.NoError(t, b.Receive(offer.append(nil)), "again")
	require.Len(t, b.sinks, 1)
	other := bytes.Repeat([]byte{7}, 2*unit)
	for name, payload := range map[string][]byte{
		"another id":               chunkOf(4, 0, 0, file[:unit]),
		"no data":                  chunkOf(3, 0, 0, nil),
		"not a whole unit":         chunkOf(3, 0, 0, file[:unit-1]),
		"more than two units":      chunkOf(3, 0, 0, make([]byte, 2*unit+1)),
		"a unit and a half":        chunkOf(3, 0, 0, file[:unit+unit/2]),
		"past the end":             chunkOf(3, 0, 5, file[:unit]),
		"partly past the end":      chunkOf(3, 0, 4, other),
		"behind the end":           chunkOf(3, 0, 6, file[:100]),
		"far behind the end":       chunkOf(3, 0, 1<<32-1, file[:unit]),
		"an end that is too short": chunkOf(3, 0, 5, file[:99]),
	} {
		require.Equal(t, ErrMessage, b.Receive(payload), name)
	}
	require.Empty(t, b.sinks[0].data, "nothing was written")
	require.NoError(t, b.Receive(chunkOf(3, 0, 1, file[unit:3*unit])))
	require.NoError(t, b.Receive(chunkOf(3, 1, 0, other)), "overlaps: what is there stays")
	require.NoError(t, b.Receive(chunkOf(3, 2, 2, other)))
	require.Equal(t, file[unit:3*unit], b.sinks[0].data[unit:3*unit])
	require.Equal(t, 4, b.sinks[0].writes)
	require.NoError(t, b.Receive(chunkOf(3, 3, 4, file[4*unit:])))
	b.said()
	for in := range b.Incoming() {
		require.Equal(t, ErrDigest, in.Err(), "the bytes are not those of the offer")
		done, size := in.Progress()
		require.Equal(t, size, done)
	}
	writes := b.sinks[0].writes
	require.NoError(t, b.Receive(chunkOf(3, 4, 0, file[:unit])), "after the end: acknowledged, and no more")
	require.Equal(t, writes, b.sinks[0].writes)

	offer.ID = 4
	require.NoError(t, b.Receive(offer.append(nil)))
	for in := range b.Incoming() {
		in.Cancel()
		require.Equal(t, ErrCancelled, in.Err())
		in.Cancel()
	}
	require.NoError(t, b.Receive(chunkOf(4, 4, 0, file[:unit])))
	require.Empty(t, b.sinks[1].data, "nothing is stored after Cancel")
	require.Contains(t, b.said(), append(appendHead(nil, kindDecline, 4), ErrCancelled.Error()...))
}

// P-14.2.1.
func TestHostileOffers(t *testing.T) {
	b := newBench(t)
	offer := offerOf(0, nil)
	for _, size := range []uint64{1 << 63, 1<<64 - 1, maxSize + 1} {
		payload := offer.append(nil)
		binary.LittleEndian.PutUint64(payload[3:], size)
		require.Equal(t, ErrMessage, b.Receive(payload))
	}
	long := offer.append(nil)
	long[3+8+sha256.Size] = 255
	long[offerSize-1] = 1
	require.Equal(t, ErrMessage, b.Receive(long), "something behind the name")
	require.Equal(t, ErrMessage, b.Receive(append(offer.append(nil), 0)))
	require.Empty(t, b.sinks)

	// The largest file: a chunk far behind the gap would take a bitmap of its size.
	offer.Size = maxSize
	require.NoError(t, b.Receive(offer.append(nil)))
	data := make([]byte, 2*unit)
	before := heap()
	require.Equal(t, errAhead, b.Receive(chunkOf(0, 0, 1<<32-4, data)))
	require.Equal(t, errAhead, b.Receive(chunkOf(0, 0, maxAhead-1, data)))
	require.Empty(t, b.sinks[0].data)
	b.incoming[0].sink = zeros{}
	for u := int64(1); u < maxAhead-2; u += 7 {
		require.NoError(t, b.Receive(chunkOf(0, 0, u, data)))
	}
	require.Less(t, heap()-before, int64(300<<10))
}

func heap() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// What the peer gives as a reason may be logged, or shown on a terminal.
func TestHostileReasons(t *testing.T) {
	long := strings.Repeat("\x00\xff", 127)
	for said, want := range map[string]string{
		"no room, só sorry":         "no room, só sorry",
		"\x1b[2J\a\n\u009b3J":       "?[2J???3J",
		"a\u202eb\u2028\xffc\uFFFD": "a?b??c?",
		long:                        strings.Repeat("?", len(long)),
	} {
		for k, kind := range map[kind]error{kindRefuse: ErrRefused, kindDecline: ErrCancelled} {
			b := newBench(t)
			o, err := b.Send(nil, bytes.NewReader(nil), 0)
			require.NoError(t, err)
			b.said()
			require.NoError(t, b.Receive(append(appendHead(nil, k, 0), said...)))
			require.ErrorIs(t, o.Err(), kind)
			require.Equal(t, kind.Error()+": "+want, o.Err().Error())
		}
		b, offer := newBench(t), offerOf(0, []byte("file"))
		require.NoError(t, b.Receive(offer.append(nil)))
		require.NoError(t, b.Receive(append(appendHead(nil, kindStop, 0), said...)))
		for in := range b.Incoming() {
			require.Equal(t, ErrCancelled.Error()+": "+want, in.Err().Error())
		}
	}
}

// As many offers as there are ids make no more transfers than may be remembered, and
// an application that never looks at those that ended does not lose later ones.
func TestOffersAreBounded(t *testing.T) {
	b := newBench(t)
	accepted := 0
	for id := range 1000 {
		offer := offerOf(uint16(id), []byte("file"))
		if b.Receive(offer.append(nil)) == nil {
			accepted++
		}
	}
	require.Equal(t, maxIncoming, accepted)
	require.LessOrEqual(t, len(b.said()), maxIncoming+1)

	g := &game{seed: 1}
	g.start(t)
	for range 3 * maxIncoming {
		o := sendFile(t, g.b, []byte("file"))
		require.True(t, g.run(10*time.Second, o))
		require.Equal(t, io.EOF, o.Err())
	}
	require.LessOrEqual(t, len(g.a.transfers.incoming), maxIncoming)
}

// Ids wrap: a file that runs meanwhile stays the one of its id, however many others
// pass.
// P-14.2.1.
func TestIdsThatWrapLeaveWhatRunsAlone(t *testing.T) {
	b := newBench(t)
	file := content(1, 2*unit)
	offer := offerOf(0, file)
	require.NoError(t, b.Receive(offer.append(nil)))
	for id := range 1<<16 - 1 {
		require.NoError(t, b.Receive(appendHead(nil, kindStop, uint16(id+1)))) // and its offer never came
		if id%5000 == 0 || id > 1<<16-70 {
			require.NoError(t, b.Receive(chunkOf(0, 0, 0, file[:unit])), id)
			require.NoError(t, b.Receive(offer.append(nil)), id)
			require.Len(t, b.sinks, 1, "a second one of its id, after %d others", id)
		}
	}
	require.NoError(t, b.Receive(chunkOf(0, 1, 1, file[unit:])))
	b.said()
	require.Equal(t, io.EOF, b.incoming[0].Err())
	require.Equal(t, file, b.sinks[0].data)
	// Its sender has not heard of that yet. Once it has, the id is another's.
	require.NoError(t, b.Receive(offer.append(nil)))
	require.Len(t, b.sinks, 1)
	b.incoming[0].word = word{}
	require.NoError(t, b.Receive(offer.append(nil)))
	require.Len(t, b.sinks, 2)
	require.NoError(t, b.Receive(appendHead(nil, kindStop, 0)))
	require.Equal(t, io.EOF, b.incoming[0].Err())
	require.ErrorIs(t, b.incoming[1].Err(), ErrCancelled)
}

// An offer without an answer keeps later ones within reach of the receiver's memory of
// offers, and a file that runs within half of all ids. They wait, and go on when it was
// answered, or has ended.
// P-14.2.1.
func TestIdsStayInReachOfWhatRuns(t *testing.T) {
	for _, how := range []kind{kindAccept, kindDecline, kindDone} {
		b := newBench(t)
		b.nextID = 1<<16 - 10
		first := b.nextID
		offer := func() *Outgoing {
			o, err := b.SendDigest(nil, bytes.NewReader(nil), 0, [32]byte{})
			require.NoError(t, err)
			b.clock.Advance(ms)
			b.said()
			return o
		}
		hear := func(id uint16, k kind) {
			payload := appendHead(nil, k, id)
			if k == kindDone {
				payload = append(payload, resultGood)
			}
			require.NoError(t, b.Receive(payload))
			b.clock.Advance(ms)
			b.said()
		}
		slow, reach := offer(), uint16(idReach)
		if how == kindDone { // of a file that runs: as if very many others had passed
			hear(first, kindAccept)
			reach = idLife
			b.nextID = first + reach - 2
		}
		for ; b.nextID != first+reach; hear(b.nextID-1, kindDone) {
			require.True(t, offer().offered)
		}
		late, later := offer(), offer()
		require.False(t, late.offered)
		require.NoError(t, late.Err(), "it waits")
		hear(first, how)
		require.Equal(t, how != kindAccept, slow.Err() != nil)
		if !late.offered {
			at, ok := b.Deadline()
			require.True(t, ok && !at.After(b.clock.Now()), "nothing waits for nothing")
			b.said()
		}
		require.True(t, late.offered && later.offered)
		require.Equal(t, first+reach, late.Offer().ID)
	}
}

// A file that runs for long does not make the small ones wait that come after it.
// P-14.2.1.
func TestManySmallFilesPassALargeOne(t *testing.T) {
	g := &game{seed: 1, up: link(2*mbit, 32*kib, 0.01), down: link(2*mbit, 32*kib, 0.01), idle: true}
	g.start(t)
	large := sendFile(t, g.b, content(1, 2*mib))
	for i := range 3 * idReach {
		o := sendFile(t, g.b, content(uint64(i), 100))
		require.True(t, g.run(time.Second, o), i)
		require.Equal(t, io.EOF, o.Err())
		require.LessOrEqual(t, len(g.a.transfers.incoming), maxIncoming)
	}
	require.True(t, g.run(time.Minute, large))
	require.Equal(t, io.EOF, large.Err())
}

// The oldest offer that a sender may still repeat is accepted.
// P-14.2.1.
func TestTheReceiverRemembersAsFarAsIdsReach(t *testing.T) {
	b := newBench(t)
	for _, id := range []uint16{7 + idReach - 1, 7} {
		offer := offerOf(id, nil)
		require.NoError(t, b.Receive(offer.append(nil)))
	}
	require.Len(t, b.sinks, 2)
}

// However often a sender asks, there is one answer to a flush, smaller than the ask.
// P-14.2.4.
func TestAnswersAreFewAndSmall(t *testing.T) {
	b := newBench(t)
	file := content(1, 100*unit)
	offer := offerOf(0, file)
	require.NoError(t, b.Receive(offer.append(nil)))
	for _, p := range b.said() {
		require.LessOrEqual(t, len(p), offerSize)
	}
	for i := range 1000 {
		require.NoError(t, b.Receive(chunkOf(0, uint16(i), 5, file[5*unit:6*unit])))
	}
	answers := b.said()
	require.Len(t, answers, 1)
	require.Less(t, len(answers[0]), chunkHeader)
	require.Empty(t, b.said())
}

// A receiver that lies can harm its own transfer, but not make Due go on for ever, nor
// take memory beyond what is in flight. An eager one has everything at once, a random
// one says anything.
func TestALyingReceiver(t *testing.T) {
	for _, eager := range []bool{true, false} {
		rng := rand.New(rand.NewPCG(1, 2))
		clock := new(ackbits.ManualClock)
		liar, err := ackbits.NewSession(ackbits.Config{Clock: clock})
		require.NoError(t, err)
		session, err := ackbits.NewSession(ackbits.Config{Outcomes: true, Clock: clock})
		require.NoError(t, err)
		tr, err := New(session, Config{Type: testType, Clock: clock})
		require.NoError(t, err)
		o, err := tr.SendDigest(nil, zeros{1 << 40}, 1<<40, [32]byte{})
		require.NoError(t, err)
		buf := make([]byte, ackbits.MaxDatagramSize)
		tell := func(payload []byte) {
			datagram, _, err := liar.AppendDatagram(buf[:0], testType, payload)
			require.NoError(t, err)
			in, err := session.Receive(datagram)
			require.NoError(t, err)
			_ = tr.Receive(in.Payload)
			for o, ok := session.NextOutcome(); ok; o, ok = session.NextOutcome() {
				tr.Outcome(o)
			}
		}
		for range tr.Due(buf) {
		}
		tell(appendHead(nil, kindAccept, 0))
		most := 0
		for i := range 3000 {
			clock.Advance(time.Duration(rng.IntN(2_000_000)))
			n := 0
			for datagram := range tr.Due(buf) {
				if eager || rng.IntN(4) > 0 {
					_, _ = liar.Receive(datagram)
				}
				if n++; eager && n%20 == 0 {
					tell(appendAnswer(nil, uint16(tr.flight.count-1), 0))
				}
			}
			most = max(most, n)
			switch {
			case eager || rng.IntN(3) == 0:
				tell(appendAnswer(nil, uint16(tr.flight.count-1), 0))
			case rng.IntN(2) == 0:
				tell(appendAnswer(nil, uint16(tr.flight.count-int64(rng.IntN(20))), rng.Uint32()))
			default:
				tell([]byte{[]byte{0, 1, 2, 4, 5, 6, 8, 10}[rng.IntN(8)], 0, 0, 5, 6, 7, 8}[:3+rng.IntN(5)])
			}
			require.LessOrEqual(t, len(tr.flight.chunks), maxFlight, i)
		}
		require.NoError(t, o.Err())
		require.Less(t, most, 4*maxFlight, "what one call of Due sends")
		if eager {
			require.Greater(t, most, 500, "the rate is at its limit")
		}
	}
}

// An end that slept for an hour is no queue.
func TestAnEndThatSlept(t *testing.T) {
	for _, receiver := range []bool{true, false} {
		g := &game{seed: 1}
		g.up.Delay, g.down.Delay, g.down.Rate = 30*ms, 30*ms, 250_000
		g.start(t)
		o := sendFile(t, g.b, content(1, 1<<20))
		g.pair.Run(2 * time.Second)
		if receiver {
			g.a.transfers.time.Now += int64(time.Hour)
		} else {
			g.b.transfers.time.Now += int64(time.Hour)
		}
		require.True(t, g.run(20*time.Second, o))
		require.Equal(t, io.EOF, o.Err())
	}
}

// encode writes a message as parse read it.
func encode(m *message) []byte {
	switch m.kind {
	case kindOffer:
		return m.offer.append(nil)
	case kindChunk, kindAsk:
		return append(appendChunk(nil, m.kind == kindAsk, m.id, m.serial, m.unit), m.data...)
	case kindAnswer:
		return appendAnswer(nil, m.serial, m.arrived)
	case kindDone:
		return append(appendHead(nil, kindDone, m.id), m.result)
	}
	return append(appendHead(nil, m.kind, m.id), m.data...)
}

// FuzzParse: whatever can be read has one encoding.
// P-14.1.1.
func FuzzParse(f *testing.F) {
	offer := offerOf(7, []byte("a file"))
	f.Add(offer.append(nil))
	f.Add(chunkOf(1, 2, 3, make([]byte, unit)))
	f.Add(appendAnswer(nil, 5, 6))
	f.Add(append(appendHead(nil, kindAccept, 1), 0, 5, 3, 4))
	f.Add(append(appendHead(nil, kindDone, 1), 1))
	f.Add(append(appendHead(nil, kindRefuse, 1), "no"...))
	f.Fuzz(func(t *testing.T, payload []byte) {
		m, err := parse(payload)
		if err != nil {
			require.Equal(t, ErrMessage, err)
			require.Zero(t, m)
			return
		}
		require.Equal(t, payload, encode(&m))
	})
}

// FuzzRuns: a list of runs has one encoding, and lies in the file.
// P-14.1.3.
func FuzzRuns(f *testing.F) {
	f.Add([]byte{0, 5, 3, 4, 1, 200, 1}, int64(1000))
	f.Fuzz(func(t *testing.T, list []byte, units int64) {
		units = max(0, min(units, 1<<32))
		runs, err := parseRuns(list, units)
		if err != nil {
			require.Equal(t, ErrMessage, err)
			return
		}
		var again []byte
		var end int64
		for _, r := range runs {
			require.True(t, r.from >= end && r.to > r.from && r.to <= units)
			again, end = appendRun(again, end, r), r.to
		}
		require.True(t, bytes.Equal(list, again))
	})
}

// FuzzReceive hands arbitrary payloads to an end that sends a file and receives one.
// Each is preceded by its length.
func FuzzReceive(f *testing.F) {
	file := content(3, 4*unit+9)
	script := func(payloads ...[]byte) (s []byte) {
		for _, p := range payloads {
			s = append(binary.LittleEndian.AppendUint16(s, uint16(len(p))), p...)
		}
		return s
	}
	offer := offerOf(0, file)
	f.Add(script(offer.append(nil), chunkOf(0, 0, 0, file[:2*unit]), chunkOf(0, 1, 2, file[2*unit:4*unit]), chunkOf(0, 2, 4, file[4*unit:])))
	f.Add(script(append(appendHead(nil, kindAccept, 0), 1, 2), appendAnswer(nil, 0, 9), append(appendHead(nil, kindDone, 0), 0)))
	f.Add(script(appendHead(nil, kindStop, 0), appendHead(nil, kindDecline, 0)))
	f.Fuzz(func(t *testing.T, s []byte) {
		b := newBench(t)
		o, err := b.Send([]byte("out"), bytes.NewReader(file), int64(len(file)))
		require.NoError(t, err)
		b.said()
		for len(s) > 2 {
			n := min(int(binary.LittleEndian.Uint16(s)), len(s)-2)
			err := b.Receive(s[2 : 2+n])
			if err != nil && err != ErrMessage && err != errAhead && err != errBusy {
				t.Fatal(err)
			}
			s = s[2+n:]
			b.clock.Advance(10 * time.Millisecond)
			require.LessOrEqual(t, len(b.said()), 100)
			done, size := o.Progress()
			require.True(t, done >= 0 && done <= size)
			for in := range b.Incoming() {
				done, size := in.Progress()
				require.True(t, done >= 0 && done <= size)
				if in.Err() == io.EOF {
					sum := sha256.Sum256(b.sinks[slices.IndexFunc(b.sinks, func(m *memory) bool { return Sink(m) == in.sink })].data)
					require.Equal(t, in.Offer().Digest, sum)
				}
			}
		}
		require.LessOrEqual(t, len(b.incoming), maxIncoming)
	})
}

// A peer that answers no offer gets what goes behind the first one, and offers.
func TestAPeerThatDoesNotAnswer(t *testing.T) {
	b := newBench(t)
	_, err := b.SendDigest(nil, zeros{mib}, mib, [32]byte{})
	require.NoError(t, err)
	chunks, offers := 0, 0
	for range 5000 {
		for _, p := range b.said() {
			switch m, err := parse(p); {
			case err == nil && m.kind == kindOffer:
				offers++
			default:
				chunks++
			}
		}
		b.clock.Advance(ms)
	}
	require.Equal(t, probeChunks-1, chunks)
	require.InDelta(t, 6, offers, 3)
}
