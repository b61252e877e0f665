package endpoint

import (
	"net/netip"
	"slices"
)

// The answers that wait for Due. What they say is decided in server.go and gate.go.

// answers is a queue of answers that wait for Due, at most limit of them, in a ring that
// grows to what was needed. It keeps its buffers: up to limit of them, each as long as
// the longest answer that was in it.
type answers struct {
	limit int
	ring  []answer
	head  int // the oldest
	n     int
}

type answer struct {
	to       netip.AddrPort
	datagram []byte
}

// push queues a copy of a datagram. It returns false if there is no room.
func (q *answers) push(to netip.AddrPort, datagram []byte) bool {
	if q.n == q.limit {
		return false
	}
	if q.n == len(q.ring) {
		q.ring = slices.Concat(q.ring[q.head:], q.ring[:q.head], make([]answer, min(q.n+8, q.limit-q.n)))
		q.head = 0
	}
	a := &q.ring[(q.head+q.n)%len(q.ring)]
	a.to, a.datagram = to, append(a.datagram[:0], datagram...)
	q.n++
	return true
}

// pop copies the oldest answer to buf.
func (q *answers) pop(buf []byte) (to netip.AddrPort, datagram []byte, ok bool) {
	if q.n == 0 {
		return netip.AddrPort{}, nil, false
	}
	a := &q.ring[q.head]
	q.head = (q.head + 1) % len(q.ring)
	q.n--
	return a.to, append(buf[:0], a.datagram...), true
}
