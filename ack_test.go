package ackbits

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// edgeStarts are the values at which 16-bit arithmetic and windows of 32 and 64
// bits go wrong. Whatever is relative is tested from each of them.
var edgeStarts = []uint16{0, 1, 31, 32, 33, 63, 64, 65, 32767, 32768, 32769, 65503, 65534, 65535}

func fromEveryEdge(t *testing.T, test func(t *testing.T, start uint16)) {
	for _, start := range edgeStarts {
		t.Run(fmt.Sprintf("from %d", start), func(t *testing.T) { test(t, start) })
	}
}

// trackerAt returns a tracker whose newest is ack, with a history.
func trackerAt(ack uint16, history uint64) *AckTracker {
	return &AckTracker{history: history, next: ack + 1, started: true}
}

func receiveAll(tr *AckTracker, seqs ...uint16) *AckTracker {
	for _, seq := range seqs {
		tr.Receive(seq)
	}
	return tr
}

func requireAcks(t rapid.TB, tr *AckTracker, ack uint16, bits uint64) {
	t.Helper()
	require.Equal(t, ack, tr.Ack(), "ack")
	require.Equal(t, fmt.Sprintf("%#b", bits), fmt.Sprintf("%#b", tr.WideAckBits()), "wide bits")
	require.Equal(t, fmt.Sprintf("%#b", uint32(bits)), fmt.Sprintf("%#b", tr.AckBits()), "narrow bits")
}

// The example of 4.1 of docs/protocol.md: bit n stands for ack − 1 − n.
func TestBitsCountFromTheSequenceBeforeAck(t *testing.T) {
	requireAcks(t, receiveAll(new(AckTracker), 0, 1, 4, 3), 4, 0b1101)

	fromEveryEdge(t, func(t *testing.T, start uint16) {
		tr := receiveAll(trackerAt(start, 0), start+1, start+4, start+3)
		requireAcks(t, tr, start+4, 0b1101)
	})
}

// P-4.1.3.
func TestJumpOfExactlyTheWindowWidthClearsIt(t *testing.T) {
	fromEveryEdge(t, func(t *testing.T, start uint16) {
		tr := receiveAll(trackerAt(start, 0), start+1, start+2, start+3, start+4, start+5)
		requireAcks(t, tr, start+5, 0b11111)

		require.Equal(t, Newest, tr.Receive(start+37))
		require.Equal(t, uint32(0x80000000), tr.AckBits(), "only start+5, at distance 32")
		require.Equal(t, Late, tr.Receive(start+32))
		require.Equal(t, uint32(0x80000010), tr.AckBits())

		tr = receiveAll(trackerAt(start, 0), start+1, start+2, start+3, start+4, start+5)
		require.Equal(t, Newest, tr.Receive(start+69))
		requireAcks(t, tr, start+69, 1<<63) // only start+5, at distance 64
		require.Equal(t, Late, tr.Receive(start+64))
		requireAcks(t, tr, start+69, 1<<63|1<<4)
	})
}

// P-4.1.3.
func TestJumpMovesTheHistoryByItsLength(t *testing.T) {
	const full = 1<<64 - 1
	for _, tc := range []struct {
		step uint16
		want uint64
	}{
		{1, full},
		{2, full<<2&full | 1<<1},
		{31, full<<31&full | 1<<30},
		{32, full<<32&full | 1<<31},
		{33, full<<33&full | 1<<32},
		{63, 0b11 << 62},
		{64, 1 << 63},
		{65, 0},
		{256, 0},
		{32767, 0},
	} {
		t.Run(fmt.Sprintf("by %d", tc.step), func(t *testing.T) {
			fromEveryEdge(t, func(t *testing.T, start uint16) {
				tr := trackerAt(start, full)
				require.Equal(t, Newest, tr.Receive(start+tc.step))
				requireAcks(t, tr, start+tc.step, tc.want)
			})
		})
	}
}

// P-4.1.4.
func TestLateSetsTheBitOfItsDistance(t *testing.T) {
	for _, tc := range []struct {
		back   uint16
		want   Arrival
		narrow uint32
		wide   uint64
	}{
		{1, Late, 1, 1},
		{32, Late, 1 << 31, 1 << 31},
		{33, Late, 0, 1 << 32}, // known, but further back than the narrow header shows
		{63, Late, 0, 1 << 62},
		{64, Late, 0, 1 << 63},
		{65, Stale, 0, 0},
		{32767, Stale, 0, 0},
		{32768, Stale, 0, 0},
	} {
		t.Run(fmt.Sprintf("by %d", tc.back), func(t *testing.T) {
			fromEveryEdge(t, func(t *testing.T, start uint16) {
				tr := trackerAt(start, 0)
				require.Equal(t, tc.want, tr.Receive(start-tc.back))
				require.Equal(t, start, tr.Ack())
				require.Equal(t, tc.narrow, tr.AckBits())
				require.Equal(t, tc.wide, tr.WideAckBits())
				if tc.want == Late {
					require.Equal(t, Duplicate, tr.Receive(start-tc.back))
				}
			})
		})
	}
}

// P-4.1.4.
func TestSameSequenceTwiceIsADuplicate(t *testing.T) {
	tr := new(AckTracker)
	for _, step := range []struct {
		seq  uint16
		want Arrival
		ack  uint16
		bits uint64
	}{
		{0, Newest, 0, 0}, {0, Duplicate, 0, 0}, {1, Newest, 1, 1}, {1, Duplicate, 1, 1}, {0, Duplicate, 1, 1},
	} {
		require.Equal(t, step.want, tr.Receive(step.seq))
		requireAcks(t, tr, step.ack, step.bits)
	}
}

func TestCounterWrapsWithAGap(t *testing.T) {
	tr := receiveAll(trackerAt(65534, 0), 65535, 1, 2)
	requireAcks(t, tr, 2, 0b1101)
}

// Of two sequences 32768 apart neither is newer.
// P-3.1.2, P-4.1.2.
func TestExactlyHalfTheRangeIsNeitherNewerNorOlder(t *testing.T) {
	fromEveryEdge(t, func(t *testing.T, start uint16) {
		for _, tc := range []struct {
			step uint16
			want Arrival
		}{{32767, Newest}, {32768, Stale}, {32769, Stale}} {
			tr := trackerAt(start, 0b101)
			require.Equal(t, tc.want, tr.Receive(start+tc.step), "step %d", tc.step)
			if tc.want == Newest {
				requireAcks(t, tr, start+tc.step, 0)
			} else {
				requireAcks(t, tr, start, 0b101)
			}
		}
	})
}

// P-3.1.2.
func TestNewerIsOneTo32767Ahead(t *testing.T) {
	for _, b := range edgeStarts {
		for ahead := range 1 << 16 {
			if want := ahead >= 1 && ahead <= 32767; newer(b+uint16(ahead), b) != want {
				t.Fatalf("newer(%d, %d) is %v", b+uint16(ahead), b, !want)
			}
		}
	}
}

// No value of ack stands for a datagram that did not come.
// P-4.1.1.
func TestBeforeAnythingWasReceivedAckIs65535(t *testing.T) {
	requireAcks(t, new(AckTracker), 65535, 0)
	for seq := range 1 << 16 {
		want := Stale
		if seq <= 32766 {
			want = Newest
		}
		tr := new(AckTracker)
		if got := tr.Receive(uint16(seq)); got != want {
			t.Fatalf("%d first is %v", seq, got)
		}
		if want == Stale && *tr != (AckTracker{}) {
			t.Fatalf("%d first changes the tracker to %v", seq, *tr)
		}
	}
}

func TestSequenceZeroCounts(t *testing.T) {
	tr := new(AckTracker)
	require.Equal(t, Newest, tr.Receive(0))
	requireAcks(t, tr, 0, 0) // the initial 65535 was never received
	require.Equal(t, Newest, tr.Receive(1))
	requireAcks(t, tr, 1, 1)
}

// P-4.1.1.
func TestFirstOfASessionMayBeLost(t *testing.T) {
	requireAcks(t, receiveAll(new(AckTracker), 5), 5, 0)
	requireAcks(t, receiveAll(new(AckTracker), 5, 0), 5, 0b10000)
}

func TestSequence65535CountsOnceItCame(t *testing.T) {
	tr := trackerAt(65534, 0)
	require.Equal(t, Newest, tr.Receive(65535))
	requireAcks(t, tr, 65535, 1)
	require.Equal(t, Duplicate, tr.Receive(65535))
	require.Equal(t, Newest, tr.Receive(0))
	requireAcks(t, tr, 0, 0b11)
	require.Equal(t, Duplicate, tr.Receive(65535))
}

func TestArrivalNames(t *testing.T) {
	for arrival, want := range map[Arrival]string{
		0: "None", Newest: "Newest", Late: "Late", Duplicate: "Duplicate", Stale: "Stale", 5: "Arrival(5)", 255: "Arrival(255)",
	} {
		require.Equal(t, want, arrival.String())
	}
}

// The dumb model: the set of the sequences received, unwrapped.
// P-4.1.2.
func TestTrackerIsASetOfReceivedSequences(t *testing.T) {
	nearby := rapid.OneOf(
		rapid.Int64Range(-70, 40),
		rapid.Int64Range(60, 70),
		rapid.Int64Range(32760, 32775),
	)
	rapid.Check(t, func(t *rapid.T) {
		tr, newest, received := new(AckTracker), int64(-1), map[int64]bool{}
		if start := rapid.SampledFrom(edgeStarts).Draw(t, "start"); rapid.Bool().Draw(t, "started") {
			tr, newest = trackerAt(start, 0), int64(start)
			received[newest] = true
		}
		for _, delta := range rapid.SliceOfN(nearby, 1, 60).Draw(t, "deltas") {
			n := newest + delta
			want := Stale
			switch {
			case delta >= 1 && delta <= 32767:
				want = Newest
				newest = n
			case received[n] && delta >= -64:
				want = Duplicate
			case delta < 0 && delta >= -64 && len(received) > 0:
				want = Late
			}
			if want == Newest || want == Late {
				received[n] = true
			}

			before := *tr
			require.Equal(t, want, tr.Classify(uint16(n)))
			require.Equal(t, before, *tr, "Classify changes nothing")
			require.Equal(t, want, tr.Receive(uint16(n)))

			var bits uint64
			for bit := range int64(64) {
				if received[newest-1-bit] {
					bits |= 1 << bit
				}
			}
			requireAcks(t, tr, uint16(newest), bits)
			for back := range int64(65) {
				require.Equal(t, received[newest-back], tr.received(uint16(back)), "%d back", back)
			}
		}
	})
}
