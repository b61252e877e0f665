package transfer

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"io"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ackbits/ackbits"
	"github.com/ackbits/ackbits/simnet"
)

// bad loses, doubles and reorders.
var bad = simnet.Config{Delay: 30 * ms, Jitter: 20 * ms, Loss: 0.1, Duplicate: 0.1, Reorder: 0.1, ReorderDelay: 50 * ms,
	Rate: 1_250_000, Overhead: simnet.UDPOverIPv4}

func sendFile(t testing.TB, p *peer, file []byte) *Outgoing {
	t.Helper()
	o, err := p.transfers.Send([]byte("file"), bytes.NewReader(file), int64(len(file)))
	require.NoError(t, err)
	return o
}

// P-14.1.2.
func TestEverySizeArrives(t *testing.T) {
	for i, size := range []int{0, 1, 511, 512, 513, 1023, 1024, 1025, 100_000, 300 << 10} {
		g := &game{seed: uint64(i), up: bad, down: bad}
		g.start(t)
		file := content(uint64(i), size)
		up, down := sendFile(t, g.a, file), sendFile(t, g.b, file)
		require.True(t, g.run(time.Minute, up, down), "size %d: %v %v", size, up.Err(), down.Err())
		for _, o := range []*Outgoing{up, down} {
			require.Equal(t, io.EOF, o.Err(), size)
			done, of := o.Progress()
			require.EqualValues(t, size, done)
			require.EqualValues(t, size, of)
		}
		for _, p := range []*peer{g.a, g.b} {
			require.True(t, bytes.Equal(file, p.sinks[0].data), size)
			require.Equal(t, (size+unit-1)/unit, p.sinks[0].writes, "each unit is written once")
			ends := 0
			for in := range p.transfers.Incoming() {
				require.Equal(t, io.EOF, in.Err())
				require.Equal(t, "file", string(in.Offer().Name))
				require.Equal(t, sha256.Sum256(file), in.Offer().Digest)
				ends++
			}
			require.Equal(t, 1, ends)
			for range p.transfers.Incoming() {
				t.Fatal("an end is shown once")
			}
		}
		// Once the last word was acknowledged, nothing is left.
		g.pair.Run(g.pair.Now() + 5*time.Second)
		for _, p := range []*peer{g.a, g.b} {
			p.flush()
			require.Empty(t, p.transfers.outgoing)
			require.Empty(t, p.transfers.incoming)
			_, ok := p.transfers.Deadline()
			require.False(t, ok)
		}
	}
}

// P-14.1.4.
func TestManyFilesAtOnce(t *testing.T) {
	g := &game{seed: 5, up: bad, down: bad}
	g.start(t)
	var all []*Outgoing
	for i := range 3 * maxActive {
		all = append(all, sendFile(t, g.b, content(uint64(i), 5000+i)))
	}
	require.True(t, g.run(time.Minute, all...))
	require.Len(t, g.a.sinks, len(all))
	for i, o := range all {
		require.Equal(t, io.EOF, o.Err())
		require.True(t, slices.ContainsFunc(g.a.sinks, func(m *memory) bool { return bytes.Equal(m.data, content(uint64(i), 5000+i)) }))
	}
}

// P-14.2.1.
func TestRefusal(t *testing.T) {
	asked := 0
	g := &game{seed: 1, up: bad, down: bad, accept: func(p *peer, o Offer) (Sink, error) {
		asked++
		return nil, errors.New("no room for " + string(o.Name))
	}}
	g.start(t)
	o := sendFile(t, g.b, content(1, 1000))
	require.True(t, g.run(time.Minute, o))
	require.ErrorIs(t, o.Err(), ErrRefused)
	require.ErrorContains(t, o.Err(), "no room for file")
	g.pair.Run(time.Minute)
	require.Equal(t, 1, asked)
	for range g.a.transfers.Incoming() {
		t.Fatal("refused")
	}
	require.Empty(t, g.a.transfers.incoming)

	for _, accept := range []func(Offer) (Sink, error){nil, func(Offer) (Sink, error) { return nil, nil }} {
		g = &game{seed: 1}
		g.start(t)
		g.a.transfers.cfg.Accept = accept
		o = sendFile(t, g.b, content(1, 1000))
		require.True(t, g.run(time.Minute, o))
		require.ErrorIs(t, o.Err(), ErrRefused)
	}
}

func TestCancelAtEitherEndAtAnyTime(t *testing.T) {
	for at := time.Duration(0); at < 2*time.Second; at += 37 * ms {
		for _, atSender := range []bool{true, false} {
			g := &game{seed: uint64(at), up: bad, down: bad}
			g.down.Rate = 200_000
			g.start(t)
			o := sendFile(t, g.b, content(1, 300<<10))
			g.pair.Run(at)
			var in *Incoming
			for x := range g.a.transfers.Incoming() {
				in = x
			}
			if atSender {
				o.Cancel()
				require.Equal(t, ErrCancelled, o.Err())
			} else if in != nil {
				in.Cancel()
				require.Equal(t, ErrCancelled, in.Err())
			} else {
				continue
			}
			g.pair.Run(at + 10*time.Second)
			require.ErrorIs(t, o.Err(), ErrCancelled)
			if in != nil {
				require.ErrorIs(t, in.Err(), ErrCancelled)
			}
			for range g.a.transfers.Incoming() {
			}
			g.a.flush()
			g.b.flush()
			require.Empty(t, g.b.transfers.outgoing)
			require.Empty(t, g.a.transfers.incoming, "%v %v %+v", at, atSender, g.a.transfers.incoming)
			require.Zero(t, g.b.transfers.flight.flying)
		}
	}
}

// broken is a Sink or a source that fails from an offset on.
type broken struct {
	memory
	from  int64
	reads bool
}

var errDisk = errors.New("the disk is full")

func (b *broken) WriteAt(p []byte, off int64) (int, error) {
	if !b.reads && off+int64(len(p)) > b.from {
		return 0, errDisk
	}
	return b.memory.WriteAt(p, off)
}

func (b *broken) ReadAt(p []byte, off int64) (int, error) {
	if b.reads && off+int64(len(p)) > b.from {
		return 0, errDisk
	}
	return b.memory.ReadAt(p, off)
}

// P-14.2.3.
func TestASinkThatFailsEndsTheTransfer(t *testing.T) {
	for _, reads := range []bool{false, true} {
		g := &game{seed: 1, up: bad, down: bad, accept: func(*peer, Offer) (Sink, error) {
			return &broken{from: 50_000, reads: reads}, nil
		}}
		g.start(t)
		o := sendFile(t, g.b, content(1, 200_000))
		require.True(t, g.run(time.Minute, o))
		require.ErrorIs(t, o.Err(), ErrCancelled)
		require.Equal(t, "transfer: cancelled: the sink failed", o.Err().Error())
		for in := range g.a.transfers.Incoming() {
			require.Equal(t, errDisk, in.Err())
		}
		require.NoError(t, g.a.session.Err(), "the session goes on")
	}
}

func TestASourceThatFailsEndsTheTransfer(t *testing.T) {
	file := content(1, 200_000)
	for name, source := range map[string]io.ReaderAt{
		"while it is hashed": &broken{memory: memory{data: file}, from: 50_000, reads: true},
		"too short":          bytes.NewReader(file[:100_000]),
	} {
		g := &game{seed: 1}
		g.start(t)
		o, err := g.b.transfers.Send(nil, source, int64(len(file)))
		require.NoError(t, err)
		require.True(t, g.run(time.Minute, o), name)
		if name == "too short" {
			require.Equal(t, io.ErrUnexpectedEOF, o.Err())
		} else {
			require.Equal(t, errDisk, o.Err())
		}
		require.Empty(t, g.a.sinks, "nothing was offered")
	}
	g := &game{seed: 1}
	g.start(t)
	o, err := g.b.transfers.SendDigest(nil, &broken{memory: memory{data: file}, from: 50_000, reads: true}, int64(len(file)), sha256.Sum256(file))
	require.NoError(t, err)
	require.True(t, g.run(time.Minute, o))
	require.Equal(t, errDisk, o.Err())
	g.pair.Run(g.pair.Now() + time.Second)
	for in := range g.a.transfers.Incoming() {
		require.ErrorIs(t, in.Err(), ErrCancelled)
		require.Equal(t, "transfer: cancelled: the source failed", in.Err().Error())
	}
}

// counted is a file of zeros that counts what is read of it.
type counted struct {
	zeros
	read *int
	own  int
}

func (c *counted) ReadAt(p []byte, off int64) (int, error) {
	*c.read += len(p)
	c.own += len(p)
	return c.zeros.ReadAt(p, off)
}

// Due hashes so many bytes at most, however many files wait, and all of them get on.
func TestHashingIsBoundedForAllFilesTogether(t *testing.T) {
	const size, files = 4 << 20, maxActive
	b := newBench(t)
	read := 0
	var all []*counted
	source := func() *counted {
		all = append(all, &counted{zeros: zeros{size}, read: &read})
		return all[len(all)-1]
	}
	b.cfg.Accept = func(Offer) (Sink, error) { return source(), nil }
	b.cfg.Resume = func(o Offer) []byte { // the Sink has everything
		return appendRun((&have{}).appendHave(nil, &o), 0, run{0, o.units()})
	}
	for id := range files {
		_, err := b.Send(nil, source(), size)
		require.NoError(t, err)
		offer := Offer{ID: uint16(id), Size: size}
		require.NoError(t, b.Receive(offer.append(nil)))
	}
	calls := 0
	for total := 0; total < 2*files*size; calls++ {
		read = 0
		b.said()
		require.Positive(t, read, "call %d", calls)
		require.LessOrEqual(t, read, hashStep+probeChunks*unit, "and what goes behind the first offer")
		total += read
		if calls == 2*files-1 {
			for _, c := range all {
				require.Positive(t, c.own, "one of the files waits for the others")
			}
		}
		b.clock.Advance(time.Duration(hashPause))
	}
	require.LessOrEqual(t, calls, 2*files*size/hashStep+1)
}

// P-14.2.5.
func TestBytesThatChangeAreFound(t *testing.T) {
	g := &game{seed: 1, up: bad, down: bad}
	g.start(t)
	file := content(1, 100_000)
	o, err := g.b.transfers.SendDigest(nil, bytes.NewReader(file), int64(len(file)), sha256.Sum256(file[1:]))
	require.NoError(t, err)
	require.True(t, g.run(time.Minute, o))
	require.Equal(t, ErrDigest, o.Err())
	for in := range g.a.transfers.Incoming() {
		require.Equal(t, ErrDigest, in.Err())
	}
}

// zeros is a large file that is nowhere.
type zeros struct{ size int64 }

func (z zeros) ReadAt(p []byte, off int64) (int, error) {
	if off+int64(len(p)) > z.size {
		return 0, io.EOF
	}
	clear(p)
	return len(p), nil
}

func (zeros) WriteAt(p []byte, _ int64) (int, error) { return len(p), nil }

func TestTheEndOfTheSessionEndsTransfers(t *testing.T) {
	g := &game{seed: 1}
	g.up.Rate, g.down.Rate = 100_000, 100_000
	g.start(t)
	up, down := sendFile(t, g.a, content(1, 1<<20)), sendFile(t, g.b, content(2, 1<<20))
	g.pair.Run(2 * time.Second)
	require.NoError(t, up.Err())
	g.a.session.Close()
	g.pair.Run(3 * time.Second)
	require.Equal(t, ackbits.ErrClosed, up.Err())
	require.Equal(t, ackbits.ErrPeerLeft, down.Err())
	for _, p := range []*peer{g.a, g.b} {
		_, ok := p.transfers.Deadline()
		require.False(t, ok)
		_, err := p.transfers.Send(nil, bytes.NewReader(nil), 0)
		require.Equal(t, p.session.Err(), err)
		ends := 0
		for in := range p.transfers.Incoming() {
			require.Equal(t, p.session.Err(), in.Err())
			ends++
		}
		require.Equal(t, 1, ends)
	}
}

// A session that is to leave takes no more datagrams, though it goes on for a while.
func TestShutdownEndsTransfers(t *testing.T) {
	for _, shutdown := range []bool{true, false} {
		g := &game{seed: 1}
		g.up.Delay, g.down.Delay = 30*ms, 30*ms
		g.up.Rate, g.down.Rate = 100_000, 100_000
		g.start(t)
		up, down := sendFile(t, g.a, content(1, 1<<20)), sendFile(t, g.b, content(2, 1<<20))
		g.pair.Run(2 * time.Second)
		g.pair.At(g.pair.Now(), func() {
			_, err := g.b.session.Send([]byte("an event, which Shutdown waits for"))
			require.NoError(t, err)
			if shutdown {
				g.b.session.Shutdown(3 * time.Second)
			} else {
				g.b.session.Close()
			}
		})
		if g.pair.Run(g.pair.Now() + 40*ms); shutdown {
			require.NoError(t, g.b.session.Err(), "it waits for the event")
		}
		require.Equal(t, ackbits.ErrClosed, down.Err())
		done, _ := down.Progress()
		g.pair.Run(10 * time.Second)
		again, _ := down.Progress()
		require.LessOrEqual(t, again-done, int64(50_000), "but for what was in flight")
		require.Equal(t, ackbits.ErrClosed, down.Err())
		require.Equal(t, ackbits.ErrPeerLeft, up.Err())
		_, ok := g.b.transfers.Deadline()
		require.False(t, ok)
	}
}

// A session ends at any point; what Have said then spares the rest.
// P-14.1.3.
func TestResume(t *testing.T) {
	file := content(9, 400_000)
	for at := 100 * ms; at < 2200*ms; at += 173 * ms {
		link := bad
		link.Rate = 250_000
		first := &game{seed: uint64(at), up: link, down: link}
		first.start(t)
		sendFile(t, first.b, file)
		first.pair.Run(at)
		var have []byte
		var had int64
		for in := range first.a.transfers.Incoming() {
			have = in.Have()
			had, _ = in.Progress()
		}
		sink := new(memory)
		if len(first.a.sinks) > 0 {
			sink = first.a.sinks[0]
		}
		sink.writes = 0
		second := &game{
			seed: uint64(at) + 1, up: link, down: link,
			accept: func(*peer, Offer) (Sink, error) { return sink, nil },
			resume: func(*peer, Offer) []byte { return have },
		}
		second.start(t)
		o := sendFile(t, second.b, file)
		require.True(t, second.run(time.Minute, o))
		require.Equal(t, io.EOF, o.Err())
		require.Equal(t, file, sink.data)
		units := int64(len(file)+unit-1)/unit - had/unit
		require.LessOrEqual(t, int64(sink.writes), units+1)
		require.GreaterOrEqual(t, int64(sink.writes), units-1)
		done, size := o.Progress()
		require.Equal(t, size, done)
	}
}

// After an attempt with wrong bytes, or over a Sink that lost them, the next one starts
// anew: what Have says does not repeat the failure.
func TestWhatFailedIsNotResumed(t *testing.T) {
	file := content(9, 50_000)
	wrong := slices.Clone(file)
	wrong[100] ^= 1
	for name, broken := range map[string][]byte{"other bytes": wrong, "shorter": file[:20_000]} {
		var all have
		offer := offerOf(0, file)
		for u := range offer.units() {
			all.add(u)
		}
		sink, kept := &memory{data: slices.Clone(broken)}, all.appendHave(nil, &offer)
		for try := range 2 {
			g := &game{
				seed: 1, up: bad, down: bad,
				accept: func(*peer, Offer) (Sink, error) { return sink, nil },
				resume: func(*peer, Offer) []byte { return kept },
			}
			g.start(t)
			o := sendFile(t, g.b, file)
			require.True(t, g.run(time.Minute, o), name)
			for in := range g.a.transfers.Incoming() {
				kept = in.Have()
			}
			if try == 0 {
				require.NotEqual(t, io.EOF, o.Err(), name)
				require.Empty(t, kept, name)
			} else {
				require.Equal(t, io.EOF, o.Err(), name)
				require.Equal(t, file, sink.data, name)
			}
		}
	}
}

func TestWhatIsNotOfThisFileIsNotResumed(t *testing.T) {
	offer := Offer{Size: 100 * unit, Digest: [32]byte{1}}
	var h have
	for u := range int64(40) {
		h.add(u)
	}
	h.add(50)
	good := h.appendHave(nil, &offer)
	var same have
	same.load(good, &offer)
	require.Equal(t, h, same)
	for n := range good {
		var other have
		other.load(good[:n], &offer)
		if n <= haveHeader {
			require.Zero(t, other)
		}
		flipped := slices.Clone(good)
		flipped[n] ^= 0x80
		other = have{}
		other.load(flipped, &offer)
		require.LessOrEqual(t, other.count, offer.units())
	}
	for _, other := range []Offer{{Size: 100*unit + 1, Digest: offer.Digest}, {Size: offer.Size}} {
		var h have
		h.load(good, &other)
		require.Zero(t, h)
	}
}

// Who forgets the outcomes is told.
func TestOutcomesThatNobodyHandsIn(t *testing.T) {
	g := &game{seed: 1, deaf: true}
	g.start(t)
	o := sendFile(t, g.b, content(1, 100_000))
	require.True(t, g.run(10*time.Second, o))
	require.Equal(t, ErrOutcomes, o.Err())
	g.pair.Run(g.pair.Now() + time.Second)
	for in := range g.a.transfers.Incoming() {
		require.ErrorIs(t, in.Err(), ErrCancelled)
	}
}

// Outcomes that the session's queue dropped cost repeats, and no more. If they stop for
// good, that is said.
func TestOutcomesThatAreMissing(t *testing.T) {
	for _, lossless := range []bool{true, false} {
		link := simnet.Config{Delay: 20 * ms, Rate: 250_000, Overhead: simnet.UDPOverIPv4}
		if !lossless {
			link.Loss = 0.02
		}
		for _, dropped := range []float64{0.05, 0.5, 1} {
			g := &game{seed: 3, up: link, down: link}
			g.start(t)
			rng := rand.New(rand.NewPCG(3, 4))
			g.b.drop = func() bool { return g.pair.Now() > 300*ms && rng.Float64() < dropped }
			o := sendFile(t, g.b, content(1, 300<<10))
			require.True(t, g.run(2*time.Minute, o), "%v dropped", dropped)
			if dropped < 1 {
				require.Equal(t, io.EOF, o.Err())
				require.Positive(t, g.b.transfers.Stats().Repeated)
			} else {
				require.Equal(t, ErrOutcomes, o.Err())
			}
		}
	}
}

// Many answers before their outcomes are an application that stood still; after some
// seconds it is one that has lost them.
func TestAnswersBeforeTheirOutcomes(t *testing.T) {
	b := newBench(t)
	o, err := b.Send(nil, bytes.NewReader(make([]byte, 100*unit)), 100*unit)
	require.NoError(t, err)
	b.said()
	require.NoError(t, b.Receive(appendHead(nil, kindAccept, 0)))
	b.Outcome(ackbits.Outcome{Type: testType, Delivered: true})
	b.clock.Advance(time.Minute)
	answer := func() {
		for _, p := range b.said() {
			if m, err := parse(p); err == nil && m.kind == kindAsk {
				require.NoError(t, b.Receive(appendAnswer(nil, m.serial, 0)))
			}
		}
	}
	for range 400 {
		answer()
		b.clock.Advance(10 * ms)
	}
	require.GreaterOrEqual(t, b.answers, deafAnswers)
	require.NoError(t, o.Err())
	b.clock.Advance(2 * time.Second)
	b.said()
	require.Equal(t, ErrOutcomes, o.Err())
}

// What Have says is kept by applications: its form does not change.
func TestTheFormOfHave(t *testing.T) {
	offer := Offer{Size: 1000, Digest: [32]byte{0: 1, 31: 2}}
	var h have
	h.add(1)
	want := append(make([]byte, 33), 0xe8, 3, 0, 0, 0, 0, 0, 0, 1, 1)
	want[0], want[1], want[32] = 1, 1, 2
	require.Equal(t, want, h.appendHave(nil, &offer))
}

// An accept has room for some runs only: what it does not name is sent, and not stored
// again.
func TestMoreGapsThanAnAcceptCanName(t *testing.T) {
	file := content(3, 1000*unit)
	offer := offerOf(0, file)
	var h have
	sink := &memory{data: slices.Clone(file)}
	for u := int64(0); u < 1000; u += 2 {
		h.add(u)
		clear(sink.data[(u+1)*unit : (u+2)*unit])
	}
	g := &game{
		seed: 1, up: bad, down: bad,
		accept: func(*peer, Offer) (Sink, error) { return sink, nil },
		resume: func(*peer, Offer) []byte { return h.appendHave(nil, &offer) },
	}
	g.start(t)
	o := sendFile(t, g.b, file)
	require.True(t, g.run(time.Minute, o))
	require.Equal(t, io.EOF, o.Err())
	require.Equal(t, file, sink.data)
	require.Equal(t, 500, sink.writes)
}

func TestMisuse(t *testing.T) {
	s, err := ackbits.NewSession(ackbits.Config{Outcomes: true})
	require.NoError(t, err)
	for name, cfg := range map[string]Config{
		"a type of the library's": {Type: 5}, "a negative rate": {Type: 16, MaxRate: -1}, "a negative interval": {Type: 16, PollInterval: -1},
	} {
		_, err := New(s, cfg)
		require.ErrorIs(t, err, ackbits.ErrConfig, name)
	}
	tr, err := New(s, Config{Type: 16})
	require.NoError(t, err)
	_, err = tr.Send(make([]byte, 256), bytes.NewReader(nil), 0)
	require.ErrorIs(t, err, ErrLimit)
	for _, size := range []int64{-1, maxSize + 1, math.MaxInt64} {
		_, err = tr.Send(nil, bytes.NewReader(nil), size)
		require.ErrorIs(t, err, ErrLimit)
	}
}

// What goes right behind the offer makes a small file arrive with it.
// P-14.2.6.
func TestASmallFileTakesOneWay(t *testing.T) {
	g := &game{seed: 1, up: link(10*mbit, 128*kib, 0), down: link(10*mbit, 128*kib, 0)}
	g.start(t)
	g.pair.Run(2 * time.Second)
	file := content(1, (probeChunks-1)*unit)
	start := g.pair.Now()
	o := sendFile(t, g.b, file)
	require.True(t, g.run(time.Second, o))
	require.Equal(t, io.EOF, o.Err())
	require.Equal(t, file, g.a.sinks[0].data)
	require.Less(t, g.pair.Now()-start, 100*ms, "from the tick that follows, and back")
	require.Zero(t, g.b.transfers.Stats().Repeated)
}

// What went behind an offer that was lost is sent again with it, without a long wait.
func TestAnOfferThatIsLost(t *testing.T) {
	g := &game{seed: 1, up: link(10*mbit, 128*kib, 0), down: link(10*mbit, 128*kib, 0)}
	g.start(t)
	g.pair.Run(2 * time.Second)
	lost, send := 0, g.b.send
	g.b.send = func(datagram []byte) {
		if lost == 0 && len(datagram) == ackbits.HeaderSize+offerSize {
			lost++
			return
		}
		send(datagram)
	}
	start := g.pair.Now()
	o := sendFile(t, g.b, content(1, 20*kib))
	require.True(t, g.run(5*time.Second, o))
	require.Equal(t, io.EOF, o.Err())
	require.Equal(t, 1, lost)
	require.Equal(t, content(1, 20*kib), g.a.sinks[0].data)
	require.Less(t, g.pair.Now()-start, 450*ms)
}

// The receiver may have what went behind the offer already: it counts once.
func TestWhatWentBehindTheOfferCountsOnce(t *testing.T) {
	for from := range int64(6) {
		for to := from + 1; to <= 10; to++ {
			b := newBench(t)
			o, err := b.SendDigest(nil, zeros{10 * unit}, 10*unit, [32]byte{})
			require.NoError(t, err)
			for range 20 {
				b.said()
				b.clock.Advance(ms)
			}
			sent := o.next
			require.EqualValues(t, probeChunks-1, sent)
			require.NoError(t, b.Receive(appendRun(appendHead(nil, kindAccept, 0), 0, run{from, to})))
			for k := range sent {
				o.arrived(b.flight.chunks.At(k))
			}
			for o.ready() {
				r, _ := o.take(1)
				o.arrived(&chunk{unit: r.from, units: 1})
			}
			done, size := o.Progress()
			require.Equal(t, size, done, "%d to %d", from, to)
		}
	}
}
