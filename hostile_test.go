package ackbits

import (
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// An enemy is a peer that holds the keys, or needs none, and means ill: what it
// costs a session at most, in memory and in time (I5). The datagrams are bare, so
// that the time is this library's; sealed ones cost what the AEAD costs besides.
type enemy struct {
	clock *ManualClock
	s     *Session
	seq   uint16 // of its next datagram
	id    uint16 // of its next event
	buf   [MaxDatagramSize]byte
	due   [MaxDatagramSize]byte

	spent    time.Duration // in Receive
	received int
}

// hand hands its next datagram in.
func (h *enemy) hand(t Type, ack uint16, ackBits uint64, payload []byte) {
	head := Header{Wide: true, Type: t, Sequence: h.seq, Ack: ack, AckBits: ackBits}
	h.seq++
	datagram := append(head.AppendTo(h.buf[:0]), payload...)
	began := time.Now()
	h.s.Receive(datagram)
	h.spent += time.Since(began)
	h.received++
}

// flush has the session say what is due, which nobody hears.
func (h *enemy) flush() {
	for range h.s.Due(h.due[:]) {
	}
}

// hostileList makes the payload of n events of a size each, with ids from first on, step
// apart.
func hostileList(n int, first, step uint16, size int) []byte {
	payload := []byte{byte(n)}
	for i := range n {
		payload = appendEvent(payload, first+uint16(i)*step, make([]byte, size))
	}
	return payload
}

// attacks is what such a peer may do, and the memory that a session may take by it.
var attacks = []struct {
	name  string
	cfg   Config
	limit int // bytes of heap in all
	run   func(h *enemy)
}{
	{"says nothing but heartbeats", Config{}, 4 << 10, func(h *enemy) {
		for range 2000 {
			h.hand(TypeHeartbeat, nothingYet, 0, nil)
			h.flush()
		}
	}},
	{"events behind one that never comes", Config{}, 16 << 10, func(h *enemy) {
		for round := range 2000 {
			h.hand(TypeEvent, nothingYet, 0, hostileList(255, 1+uint16(round%16)*255, 1, 0))
			h.flush()
		}
	}},
	{"lists of 255 events at the edge of the window", Config{}, 16 << 10, func(h *enemy) {
		for range 2000 {
			list := hostileList(255, h.id, 1, 0)
			h.id += 254
			list[len(list)-4], list[len(list)-3] = byte(h.id+4000), byte((h.id+4000)>>8) // so each is looked at alone
			h.hand(TypeEvent, nothingYet, 0, list)
			h.flush()
		}
	}},
	{"Ordered: the largest events behind a gap", Config{Ordered: true}, 768 << 10, func(h *enemy) {
		for round := range 2000 {
			h.hand(TypeEvent, nothingYet, 0, hostileList(1, 1+uint16(round%255), 1, MaxWideEventSize))
			h.flush()
		}
	}},
	{"Ordered: gaps that close with 255 events at once", Config{Ordered: true}, 64 << 10, func(h *enemy) {
		for range 1000 {
			h.hand(TypeEvent, nothingYet, 0, hostileList(255, h.id+1, 1, 0))
			h.hand(TypeEvent, nothingYet, 0, hostileList(1, h.id, 1, 0))
			h.id += 256
			h.flush()
		}
	}},
	{"acknowledges 65 datagrams of 3 events each at a time", Config{Wide: true, Backlog: 1000}, 192 << 10, func(h *enemy) {
		sent := uint16(65535)
		for range 60 {
			for range 65 {
				for range 3 {
					h.s.Send(h.due[:1])
				}
				if out, ok := h.s.AppendDue(h.due[:0]); ok {
					head, _, _ := ParseHeader(out)
					sent = head.Sequence
				}
			}
			h.hand(TypeHeartbeat, sent, ^uint64(0), nil)
			h.flush()
		}
	}},
	{"acknowledges nothing, or all but the oldest event", Config{Backlog: 256}, 1 << 20, func(h *enemy) {
		for range 512 {
			h.s.Send(h.due[:600])
		}
		for h.s.Err() == nil {
			sent := uint16(h.s.Stats().DatagramsSent)
			h.flush()
			last := uint16(h.s.Stats().DatagramsSent) - 1
			if sent != 0 && last-sent < 60 && last != sent {
				h.hand(TypeHeartbeat, last, 1<<(last-sent)-1, nil)
			} else {
				h.hand(TypeHeartbeat, nothingYet, 0, nil)
			}
			h.clock.Advance(20 * ms)
		}
	}},
	{"acknowledges nothing, outcomes open for an hour, outcomes never fetched", Config{LossDelay: time.Hour, StallTimeout: -1, Outcomes: true}, 640 << 10, func(h *enemy) {
		for h.s.Err() == nil {
			h.s.AppendDatagram(h.due[:0], TypeSnapshot, nil)
			h.hand(TypeHeartbeat, nothingYet, 0, nil)
		}
	}},
}

// TestHostilePeerIsBounded measures what each attack costs a session: its memory
// against a limit, its time for the table in SECURITY.md, which -v prints.
func TestHostilePeerIsBounded(t *testing.T) {
	heap := func() int {
		var m runtime.MemStats
		runtime.GC()
		runtime.GC()
		runtime.ReadMemStats(&m)
		return int(m.HeapAlloc)
	}
	for _, attack := range attacks {
		t.Run(attack.name, func(t *testing.T) {
			const n = 8
			var all [n]enemy
			for i := range all {
				all[i].clock = &ManualClock{}
			}
			before := heap()
			for i := range all {
				cfg := attack.cfg
				cfg.Wide, cfg.Clock = true, all[i].clock
				var err error
				all[i].s, err = NewSession(cfg)
				require.NoError(t, err)
				attack.run(&all[i])
			}
			took := (heap() - before) / n
			require.LessOrEqual(t, took, attack.limit)
			spent, received := time.Duration(0), 0
			for i := range all {
				spent += all[i].spent
				received += all[i].received
			}
			t.Logf("%d KiB; %d datagrams, %v each", (took+1023)>>10, received/n, spent/time.Duration(received))
			runtime.KeepAlive(&all)
		})
	}
}
