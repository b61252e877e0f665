package main

import (
	"bytes"
	"encoding/binary"
	"time"

	"github.com/ackbits/ackbits"
)

// The keys of AES-128-GCM, one for each direction.
var (
	keyA = []byte{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}
	keyB = []byte{0xF0, 0xE1, 0xD2, 0xC3, 0xB4, 0xA5, 0x96, 0x87, 0x78, 0x69, 0x5A, 0x4B, 0x3C, 0x2D, 0x1E, 0x0F}
)

func sealedBy(c ackbits.Config, ours, theirs []byte) options {
	return options{Config: c, seal: ours, open: theirs, accept: true}
}

// sealed is a conversation both ways with loss and reordering.
func sealed(w *world) {
	for _, wide := range []bool{false, true} {
		a := w.enter("sealed: a conversation", sealedBy(ackbits.Config{Wide: wide, Bundle: true}, keyA, keyB))
		b := w.enter("the other end", sealedBy(ackbits.Config{Wide: wide}, keyB, keyA))
		a.append(input, 0xCA, 0xFE)
		first := a.append(input, 0xCA, 0xFE) // number 1: the example of chapter 18
		a.append(connect)
		a.send([]byte("secret"))
		both := a.append(input, 1, 2, 3)
		a.append(input, filled(1200, 1)...)
		a.send(filled(1177, 1))
		full := a.append(input, filled(a.s.MaxPayload(), 1)...)
		w.wait(10 * ms)
		b.receive(both)
		b.receive(first)
		b.receive(full)
		b.receive(both) // a replay
		b.receive(a.by(input, 9, none, 0, 1))
		answer := b.append(snapshot)
		b.send([]byte("late"))
		late := b.due()
		b.append(snapshot, 1)
		b.close()
		w.wait(10 * ms)
		a.receive(answer)
		a.receive(answer)
		for _, datagram := range b.flush() {
			a.receive(datagram)
		}
		a.receive(late)
		a.append(input)
	}
}

// sealedHostile is every bit flipped, every replay, every cut: nothing may change.
func sealedHostile(w *world) {
	a := w.enter("a sender", sealedBy(ackbits.Config{}, keyA, keyB))
	b := w.enter("forged, replayed, cut and reflected", sealedBy(ackbits.Config{}, keyB, keyA))
	good := a.append(input, 1)
	second := a.append(input, withhold)
	third := a.append(input, refuse)
	for i := range len(good) * 8 {
		forged := bytes.Clone(good)
		forged[i/8] ^= 1 << (i % 8)
		b.receive(forged)
	}
	for n := range len(good) {
		b.receive(good[:n])
	}
	b.receive(append(bytes.Clone(good), 0))
	zero := bytes.Clone(good)
	zero[1] = 0
	b.receive(zero)
	b.receive(a.by(input, 0, none, 0, 1)) // bare
	b.receive(b.append(input, 1))         // its own, reflected
	b.receive(third)                      // opened and refused: it cannot come again
	b.receive(third)
	b.receive(second) // opened and withheld: likewise
	b.receive(second)
	b.receive(good)
	b.receive(good)
	far := a.burst(70, input)
	b.receive(far)
	b.receive(good)   // too old to tell
	b.receive(second) // likewise
	b.append(input)
	b.receive(sealBy(keyA, 0x0C, input, 65500, []byte{1})) // its number would be below 0
	b.receive(sealBy(keyA, 0x0C, 9, 100, []byte{1}))
	w.wait(5000 * ms)
	b.receive(far) // renews nothing
	b.flush()

	bad := w.enter("what is sealed by the right key and malformed", sealedBy(ackbits.Config{}, keyB, keyA))
	for i, m := range []struct {
		t       ackbits.Type
		payload []byte
	}{{9, nil}, {15, nil}, {event, nil}, {event, []byte{0}}, {beat, []byte{1}}, {event, ids(4096)}, {wrapped, []byte{5, 1, 0, 0, 0, 0}}} {
		datagram := sealBy(keyA, 0x0C, m.t, int64(i), m.payload)
		bad.receive(datagram)
		bad.receive(datagram) // it opened, so it is a replay
	}
	bad.receive(sealBy(keyA, 0x0C, event, 7, ids(0)))
	bad.append(input)
}

// sealBy seals a datagram by hand.
func sealBy(key []byte, format byte, t ackbits.Type, number int64, payload []byte) []byte {
	h := ackbits.Header{Wide: format&1 != 0, Type: t, Token: token, Sequence: uint16(number), Ack: none}
	header := h.AppendTo(nil)
	header[0] = format
	nonce := make([]byte, 12)
	binary.BigEndian.PutUint64(nonce[4:], uint64(number))
	return gcm(key).Seal(header, nonce, payload, bytes.Clone(header))
}

// sealedWrap is numbers beyond the sequence's 16 bits.
func sealedWrap(w *world) {
	cfg := ackbits.Config{Timeout: time.Hour}
	a := w.enter("numbers beyond 65535", sealedBy(cfg, keyA, keyB))
	b := w.enter("the other end", sealedBy(cfg, keyB, keyA))
	first := a.append(input, 1)
	b.receive(first)
	a.receive(b.append(snapshot))
	for _, n := range []int{30000, 30000, 5540} {
		datagram := a.burst(n, input, 2)
		b.receive(datagram)
		a.receive(b.append(snapshot))
	}
	b.receive(first) // 65536 numbers ago: a stale sequence
	late := a.append(input, 3)
	newer := a.append(input, 4)
	b.receive(newer)
	b.receive(late)
	b.receive(sealBy(keyA, 0x0C, input, 6, nil))     // the number of a turn before
	b.receive(sealBy(keyA, 0x0C, input, 65544, nil)) // the right one
	a.receive(b.append(snapshot, 5))
}
