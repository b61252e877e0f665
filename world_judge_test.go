package ackbits

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// The dumb model is held to the code: both judge every number in every kind of state alike.
// That is what lets the small worlds (world_test.go) speak for the code.

// TestModelJudgesLikeTheCode holds the worlds' rules to the library's: in states
// of every kind, the judgement of every number there is.
func TestModelJudgesLikeTheCode(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	states := 60
	if testing.Short() {
		states = 12
	}
	for n := range states {
		z := sizesOf(Config{Ordered: n%2 == 0})
		start := []int64{0, 0, 1, 65535, 65500, 32768, 40000}[n%7]
		tracker, model := AckTracker{next: uint16(start)}, modelTracker{newest: start - 1}
		for range r.IntN(80) {
			seq := uint16(model.newest) + uint16(r.IntN(75)-68)
			if n > 2 && r.IntN(30) == 0 {
				seq = uint16(r.Uint32())
			}
			arrival, number := model.judge(z, int64(seq))
			require.Equal(t, arrival, tracker.Receive(seq))
			if arrival == Newest || arrival == Late {
				model.take(z, number)
			}
		}
		window, inbox := idWindow{base: uint16(start), size: uint16(z.receiveWindow)}, modelInbox{base: start}
		for range r.IntN(400) {
			id := uint16(inbox.base) + uint16(r.IntN(40)*r.IntN(8))
			v, number := inbox.judge(z, int64(id))
			require.Equal(t, v, window.judge(id))
			if v == idNew {
				window.accept(id)
				inbox.take(number)
			}
		}
		log := sentLog{first: max(0, start-500), count: start + 1}
		for number := range 1 << 16 {
			got, want := tracker.Classify(uint16(number)), Arrival(0)
			if want, _ = model.judge(z, int64(number)); got != want {
				t.Fatalf("sequence %d after %d is %v, want %v", number, model.newest, got, want)
			}
			if got, want := window.judge(uint16(number)), idState(0); true {
				if want, _ = inbox.judge(z, int64(number)); got != want {
					t.Fatalf("id %d at %d is %v, want %v", number, inbox.base, got, want)
				}
			}
			got1, ok := log.lookup(uint16(number))
			want1, wantOK := named(z, start, int64(number))
			if got1 != want1 || ok != wantOK {
				t.Fatalf("ack %d after %d is %d, %t, want %d, %t", number, start, got1, ok, want1, wantOK)
			}
		}
	}
}

// TestPendingAcksAreASet: the datagrams that no header of ours has named, and those
// that leave the window so, against a set of numbers.
func TestPendingAcksAreASet(t *testing.T) {
	r := rand.New(rand.NewPCG(8, 9))
	for range 200 {
		width := uint16(32 << r.IntN(2))
		var (
			u              pendingAcks
			set, received  nums
			newest, before int64
		)
		for range 100 {
			var got uint64
			switch r.IntN(12) {
			case 0:
				u.clear()
				set, before = nil, 0
				continue
			case 1, 2, 3, 4:
				back := int64(1 + r.IntN(64))
				if received.has(newest - back) {
					continue
				}
				got = u.late(uint16(back), width)
				set.add(newest - back)
				received.add(newest - back)
			default:
				step := int64(1 + r.IntN(1+r.IntN(100)))
				got = u.newest(uint16(step), width)
				newest += step
				set.add(newest)
				received.add(newest)
			}
			before++
			if want := set.below(newest - int64(width)); got != uint64(want) || u.count != int(before) {
				t.Fatalf("%d of %d outrun, want %d of %d", got, u.count, want, before)
			}
		}
	}
}
