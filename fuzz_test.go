package ackbits

import (
	"slices"
	"testing"
	"time"
)

// The targets that reach what needs a past: one feeds bytes to a live session,
// the other reads bytes as steps of a walk. Both ask the dumb model about every
// answer, so that a wrong one is found, not only a panic. The codecs' targets
// stand beside their tests; FuzzWalk beside the walks.

// quietly is a testing.T that does not log the script of a walk which is too
// long to read.
type quietly struct{ *testing.T }

func (quietly) Logf(string, ...any) {}

// fuzzConfig turns a byte into a form of Config and the numbers to begin at.
func fuzzConfig(b byte) walkConfig {
	wc := walkForms[int(b)%len(walkForms)].wc
	if b&1 != 0 {
		wc.seqs = [2]int64{65530, 65503}
		wc.events = [2]int64{65535, 1<<32 - 3}
		wc.runs = [2]int64{1<<32 - 2, 0}
	}
	return wc
}

// FuzzReceive hands bytes to a session that has sent and received before. The
// first byte chooses its form, then each datagram has two bytes in front: the
// high bits of the first say how much time passes and whether AppendDue is
// called, the rest is its length. One of length 0 is the peer's next true one.
func FuzzReceive(f *testing.F) {
	next := Header{Type: TypeEvent, Token: walkToken, Sequence: 12, Ack: 11, AckBits: 0xFF}.AppendTo(nil)
	for _, list := range [][]byte{
		{1, 3, 0, 1, 0, 'x'},
		{2, 3, 0, 0, 0, 3, 0, 0, 0},
		{1, 0xFF, 0x0F, 0, 0}, // the far end of the window
		{1, 0x03, 0x10, 0, 0}, // outside
		{2, 9, 0, 1, 0},       // cut short
	} {
		dg := append(slices.Clone(next), list...)
		f.Add(append([]byte{0, 0, byte(len(dg))}, dg...))
		f.Add(append([]byte{4, 0, byte(len(dg)), 0x80, 0}, dg...))
	}
	f.Add([]byte{0, 0, 0, 0, 0, 0x80, 0, 0xC0, 0, 0, 0})
	f.Add(append([]byte{0, 0, 18}, Header{Type: TypeDisconnect, Token: walkToken, Sequence: 12, Ack: 65535}.AppendTo(nil)...))
	f.Add(append([]byte{1, 0, 22}, Header{Wide: true, Type: TypeHeartbeat, Token: walkToken, Sequence: 6, Ack: 2, AckBits: 1 << 63}.AppendTo(nil)...))
	f.Add(append([]byte{4, 0, 26}, append(Header{Type: TypeBundle, Token: walkToken, Sequence: 12, Ack: 3}.AppendTo(nil),
		4, 1, 3, 0, 1, 0, 'y', 0xE0)...))
	f.Fuzz(func(t *testing.T, in []byte) {
		if len(in) == 0 || len(in) > 8000 {
			return
		}
		w := newWalk(quietly{t}, fuzzConfig(in[0]))
		w.past()
		in = in[1:]
		for len(in) >= 2 {
			how, size := in[0]>>6, int(in[0]&0x3F)<<8|int(in[1])
			in = in[2:]
			if how&1 != 0 {
				w.wait(30 * time.Millisecond)
			}
			w.steps++
			if size == 0 {
				w.arrive(0, 0, false)
			} else {
				size = min(size, len(in))
				w.handIn(0, in[:size])
				in = in[size:]
			}
			if how&2 != 0 {
				for w.due(0) {
				}
			}
			w.check()
		}
		w.wait(6 * time.Second)
		w.due(0)
		w.check()
	})
}

// past gives two sessions a past in which some of everything happened.
func (w *walk) past() {
	for n := range 8 {
		for i, e := range w.ends {
			w.app(i, Type(16+n%3), []byte{byte(n)})
			if n < 4 {
				w.send(i, n)
			}
			for w.due(i) {
			}
			if n == 2 {
				e.flights = nil
			}
			for len(e.flights) > 1 {
				w.arrive(i, 1, n == 5 && len(e.flights) == 2)
				if n == 5 && len(e.flights) == 2 {
					break
				}
			}
		}
		w.wait(16 * time.Millisecond)
	}
	w.check()
}

// FuzzScript reads bytes as steps of a walk: after one byte for the form and one
// unused, three for each step.
func FuzzScript(f *testing.F) {
	op := func(name string) byte {
		return byte(slices.IndexFunc(walkOps, func(op walkOp) bool { return op.name == name }))
	}
	steps := func(form byte, steps ...[3]byte) []byte {
		b := []byte{form, 0}
		for _, s := range steps {
			b = append(b, s[:]...)
		}
		return b
	}
	const other = 0x80
	for form := range byte(len(walkForms)) {
		f.Add(steps(form, // an event is lost, comes again and is acknowledged
			[3]byte{op("send"), 9, 0}, [3]byte{op("flush")}, [3]byte{op("blackout") | other},
			[3]byte{op("wait"), 100, 0}, [3]byte{op("flush")}, [3]byte{op("exchange")}))
		f.Add(steps(form, // the window waits for one old event
			[3]byte{op("send"), 1, 0}, [3]byte{op("flush")}, [3]byte{op("blackout") | other},
			[3]byte{op("send many"), 254, 1}, [3]byte{op("flush")}, [3]byte{op("exchange")},
			[3]byte{op("send many"), 20, 1}, [3]byte{op("wait"), 110, 0}, [3]byte{op("exchange")}))
		f.Add(steps(form, // a flood that outruns the acknowledgements, then ghosts of it
			[3]byte{op("flood"), 90, 3}, [3]byte{op("pile") | other, 3, 0}, [3]byte{op("ghost") | other, 70, 0},
			[3]byte{op("outcomes"), 39, 0}, [3]byte{op("wait long"), 255, 0}, [3]byte{op("outcomes"), 39, 0}))
		f.Add(steps(form, // hostile bytes, clocks that are set, leaving
			[3]byte{op("play"), 20, 0x55}, [3]byte{op("forge"), 3, 7}, [3]byte{op("step back"), 200, 200},
			[3]byte{op("deadline")}, [3]byte{op("send"), 5, 0}, [3]byte{op("close"), 255, 0}, [3]byte{op("flush")},
			[3]byte{op("overtake") | other, 2, 0}, [3]byte{op("exchange")}))
		f.Add(steps(form, // replays, a slow writer, leaving once all is delivered
			[3]byte{op("send many"), 40, 31}, [3]byte{op("flush slowly"), 50, 0}, [3]byte{op("duplicate") | other, 1, 0},
			[3]byte{op("duplicate") | other, 1, 0}, [3]byte{op("ghost") | other, 3, 0}, [3]byte{op("shutdown"), 255, 200},
			[3]byte{op("damage") | other, 0, 20}, [3]byte{op("wait"), 100, 0}, [3]byte{op("exchange")}, [3]byte{op("flush")}))
	}
	f.Add(steps(0, // an outage of half the numbers, less one, and of half
		[3]byte{op("half the numbers"), 255, 1}, [3]byte{op("datagram"), 0, 3}, [3]byte{op("exchange")},
		[3]byte{op("half the numbers"), 255, 0}, [3]byte{op("datagram"), 0, 3}, [3]byte{op("flush")}))
	f.Fuzz(func(t *testing.T, script []byte) {
		if len(script) < 2 || len(script) > 3*300 {
			return // the model is slow, and shorter ones say more
		}
		w := newWalk(quietly{t}, fuzzConfig(script[0]))
		for s := script[2:]; len(s) >= 3; s = s[3:] {
			w.do(walkOps[int(s[0]&0x7F)%len(walkOps)], int(s[0]>>7), int(s[1]), int(s[2]))
		}
		w.settle()
	})
}
