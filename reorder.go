package ackbits

import (
	"github.com/ackbits/ackbits/internal/arena"
	"github.com/ackbits/ackbits/internal/ring"
	"github.com/ackbits/ackbits/internal/trim"
)

// The reorder buffer of Ordered. inbox.go decides which event waits and when it is
// delivered.

// reorder keeps copies of the events that wait for a missing one. Their bytes lie in an
// arena in the order of arrival, and are freed in that order. The bytes of a released
// event stay valid until reclaim, which is called with the next list.
type reorder struct {
	waiting int // how many events wait
	live    int // how many bytes they have
	bytes   arena.Arena
	places  [eventWindow]place // in bytes, by id
	// The ids in the order of arrival. Those before the window were released, so the
	// bytes in use begin at the first id that is not before it.
	order      ring.Ring[uint16]
	first, end int64

	most trim.Peak // live + waiting
}

// place says where the bytes of an event lie in the arena.
type place struct {
	start uint32
	size  uint16
}

// newReorder returns an empty buffer with room for a few events.
func newReorder() *reorder {
	return &reorder{bytes: arena.New(arena.MinSize)} // even of an empty event the copy is not nil
}

// keep copies an event. Its id must be inside the window that begins at base, and not
// base itself.
func (r *reorder) keep(e Event, base uint16) {
	start, ok := r.bytes.Put(e.Data)
	if !ok {
		// Half as much again as is needed. While that is little, at least double the
		// size: one event that waits long keeps freed bytes from being used again,
		// and small steps would then mean one move after another.
		need := r.live + len(e.Data)
		size := r.bytes.Size()
		r.move(max(size, ring.Ceil(need+need/2), min(2*size, trim.ModestBytes)), base)
		start, _ = r.bytes.Put(e.Data) // which fits, as the new arena has all free bytes in one piece
	}
	r.places[e.ID%eventWindow] = place{uint32(start), uint16(len(e.Data))}
	if r.end-r.first == int64(len(r.order)) {
		r.order = r.order.Resized(max(2*len(r.order), minEvents), r.first, r.end)
	}
	*r.order.At(r.end) = e.ID
	r.end++
	r.waiting++
	r.live += len(e.Data)
	r.most.Note(r.live + r.waiting)
}

// release returns the bytes of an event that need not wait any longer. They are valid
// until reclaim.
func (r *reorder) release(id uint16) []byte {
	p := r.places[id%eventWindow]
	r.waiting--
	r.live -= int(p.size)
	return r.bytes.Piece(p.start, p.size)
}

// reclaim frees the bytes of the released events: those before base.
func (r *reorder) reclaim(base uint16) {
	for r.first < r.end && newer(base, *r.order.At(r.first)) {
		r.first++
	}
	if r.first < r.end {
		r.bytes.FreeBefore(r.places[*r.order.At(r.first)%eventWindow].start)
	} else {
		r.bytes.FreeAll()
	}
}

// move copies the events that wait to a new arena of size bytes, which must suffice.
// Events that were released keep their bytes in the old one.
func (r *reorder) move(size int, base uint16) {
	moved := arena.New(size)
	kept := r.first
	for k := r.first; k < r.end; k++ {
		id := *r.order.At(k)
		if newer(base, id) {
			continue
		}
		p := &r.places[id%eventWindow]
		start, _ := moved.Put(r.bytes.Piece(p.start, p.size))
		p.start = uint32(start)
		*r.order.At(kept) = id
		kept++
	}
	r.end = kept
	r.bytes = moved
}

// trim frees memory that was not needed lately, and reports whether none was needed.
func (r *reorder) trim(base uint16, busy bool) (idle bool) {
	need := r.most.Room(r.live+r.waiting, trim.ModestBytes, busy)
	if n := trim.Length(need, arena.MinSize); n < r.bytes.Size() {
		r.move(n, base)
	}
	return need == 0
}
