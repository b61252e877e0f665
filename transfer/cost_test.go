package transfer

import (
	"crypto/sha256"
	"io"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ackbits/ackbits"
)

// huge sends a file of zeros that is nowhere in memory over a fast link, and returns the
// most heap that was in use beyond what the game takes by itself.
func huge(t *testing.T, size int64) (most int64) {
	sum := sha256.New()
	_, err := io.Copy(sum, io.NewSectionReader(zeros{size}, 0, size))
	require.NoError(t, err)
	g := &game{seed: 1, up: link(125*mbit, 1<<20, 0.001), down: link(125*mbit, 1<<20, 0.001), idle: true}
	sink := &sparse{size: size}
	g.accept = func(*peer, Offer) (Sink, error) { return sink, nil }
	g.start(t)
	before := heap()
	o, err := g.b.transfers.SendDigest(nil, zeros{size}, size, [32]byte(sum.Sum(nil)))
	require.NoError(t, err)
	for i := 0; o.Err() == nil; i++ {
		require.Less(t, i, 100_000)
		g.pair.Run(g.pair.Now() + 100*ms)
		if i%10 == 0 {
			most = max(most, heap()-before)
		}
	}
	require.Equal(t, io.EOF, o.Err())
	require.Equal(t, size, sink.stored)
	return most
}

// sparse is a Sink for zeros.
type sparse struct{ size, stored int64 }

func (s *sparse) ReadAt(p []byte, off int64) (int, error) { return zeros{s.size}.ReadAt(p, off) }

func (s *sparse) WriteAt(p []byte, off int64) (int, error) {
	s.stored += int64(len(p))
	return len(p), nil
}

// What both ends take beside the sessions, with what is on the simulated link: 64 MiB,
// or 4 GiB and a bit with ACKBITS_TRANSFER=all, over 1 Gbit/s with 60 ms, where 8 MB
// are in flight.
func TestMemoryDoesNotGrowWithTheFile(t *testing.T) {
	size := int64(64<<20 + 1)
	if os.Getenv("ACKBITS_TRANSFER") == "all" {
		size = 4<<30 + 1<<20 + 1
	}
	most := huge(t, size)
	t.Logf("%d KiB", most>>10)
	require.Less(t, most, int64(24<<20))
}

// stream is an endless file between two ends in memory. Each call of the function it
// returns moves one chunk.
func stream(t testing.TB) func() {
	clock := new(ackbits.ManualClock)
	const size = 1 << 40
	newEnd := func() (s *ackbits.Session, tr *Transfers) {
		s, err := ackbits.NewSession(ackbits.Config{Clock: clock, Outcomes: true, Accept: func(h ackbits.Header, payload []byte) error {
			return tr.Receive(payload)
		}})
		require.NoError(t, err)
		tr, err = New(s, Config{Type: testType, Clock: clock, Accept: func(Offer) (Sink, error) { return &sparse{size: size}, nil }})
		require.NoError(t, err)
		return s, tr
	}
	sa, a := newEnd()
	sb, b := newEnd()
	_, err := a.SendDigest(nil, zeros{size}, size, [32]byte{})
	require.NoError(t, err)
	out, back := make([]byte, ackbits.MaxDatagramSize), make([]byte, ackbits.MaxDatagramSize)
	step := func() {
		clock.Advance(20 * time.Microsecond)
		for datagram := range a.Due(out) {
			if _, err := sb.Receive(datagram); err != nil {
				panic(err)
			}
			for datagram := range b.Due(back) {
				_, _ = sa.Receive(datagram)
			}
			for datagram := range sb.Due(back) {
				_, _ = sa.Receive(datagram)
			}
		}
		for o, ok := sa.NextOutcome(); ok; o, ok = sa.NextOutcome() {
			a.Outcome(o)
		}
		for o, ok := sb.NextOutcome(); ok; o, ok = sb.NextOutcome() {
			b.Outcome(o)
		}
	}
	next := int64(5000) // warm-up
	chunk := func() {
		for next++; a.flight.count < next; {
			step()
		}
	}
	chunk()
	return chunk
}

// Transfers that are idle take little, whatever they have sent and received before.
func TestIdleTakesLittle(t *testing.T) {
	g := &game{seed: 1, up: link(100*mbit, 1<<20, 0.01), down: link(100*mbit, 1<<20, 0.01), idle: true}
	g.accept = func(_ *peer, o Offer) (Sink, error) { return &sparse{size: o.Size}, nil }
	g.start(t)
	for _, p := range []*peer{g.a, g.b} {
		o, err := p.transfers.Send(nil, zeros{20 << 20}, 20<<20)
		require.NoError(t, err)
		require.True(t, g.run(time.Minute, o))
		require.Equal(t, io.EOF, o.Err())
	}
	g.pair.Run(g.pair.Now() + time.Second)
	for _, p := range []*peer{g.a, g.b} {
		for range p.transfers.Incoming() {
		}
		p.flush()
		require.True(t, p.transfers.Idle())
		require.Zero(t, cap(p.transfers.flight.chunks))
		require.Nil(t, p.transfers.buf)
		require.Empty(t, p.transfers.incoming)
	}
}

func TestChunksAllocateNothing(t *testing.T) {
	require.Zero(t, testing.AllocsPerRun(2000, stream(t)))
}

// A chunk of 1 KiB sent, received, stored, hashed and acknowledged, answers included;
// the Sink takes nothing.
func BenchmarkChunk(b *testing.B) {
	chunk := stream(b)
	b.ReportAllocs()
	b.SetBytes(1024)
	for b.Loop() {
		chunk()
	}
}
