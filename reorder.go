package ackbits

import (
	"github.com/ackbits/ackbits/internal/arena"
	"github.com/ackbits/ackbits/internal/ring"
	"github.com/ackbits/ackbits/internal/trim"
)

// The reorder buffer of Ordered; inbox.go says when an event goes in or comes out.

// reorder keeps copies of the events that are ahead of a gap. Their bytes lie in
// the order in which they came, and make room in that order. Those of an event that
// was released stay as they are until reclaim, which comes with the next list.
type reorder struct {
	waiting int // events that were not released
	live    int // their bytes
	bytes   arena.Arena
	places  [nearSpan]place // in bytes, by id
	// The ids in the order in which they came. Those before the window were
	// released, so the bytes in use begin at the first that is not.
	order      ring.Ring[uint16]
	first, end int64

	most trim.Peak // live bytes, and one more for each event
}

type place struct {
	start uint32
	size  uint16
}

func newReorder() *reorder {
	return &reorder{bytes: arena.New(arena.MinSize)} // even of an empty event the copy is not nil
}

// keep copies an event that is inside a window that begins at base, and not its
// first.
func (r *reorder) keep(e Event, base uint16) {
	start, ok := r.bytes.Put(e.Data)
	if !ok {
		// Half as much again as is needed; and twice what there was, up to what is
		// modest, lest room that a straggler holds be looked for again and again.
		need := r.live + len(e.Data)
		size := r.bytes.Size()
		r.move(max(size, ring.Ceil(need+need/2), min(2*size, trim.ModestBytes)), base)
		start, _ = r.bytes.Put(e.Data) // new bytes have it in one piece
	}
	r.places[e.ID%nearSpan] = place{uint32(start), uint16(len(e.Data))}
	if r.end-r.first == int64(len(r.order)) {
		r.order = r.order.Resized(max(2*len(r.order), minEvents), r.first, r.end)
	}
	*r.order.At(r.end) = e.ID
	r.end++
	r.waiting++
	r.live += len(e.Data)
	r.most.Note(r.live + r.waiting)
}

// release returns the copy of an event that waited.
func (r *reorder) release(id uint16) []byte {
	p := r.places[id%nearSpan]
	r.waiting--
	r.live -= int(p.size)
	return r.bytes.Piece(p.start, p.size)
}

// reclaim takes back the room of events that were released, which base is past.
func (r *reorder) reclaim(base uint16) {
	for r.first < r.end && newer(base, *r.order.At(r.first)) {
		r.first++
	}
	if r.first < r.end {
		r.bytes.FreeBefore(r.places[*r.order.At(r.first)%nearSpan].start)
	} else {
		r.bytes.FreeAll()
	}
}

// move copies what waits to new bytes, which must fit it: there it lies in a row. What
// was released stays where it is.
func (r *reorder) move(size int, base uint16) {
	moved := arena.New(size)
	kept := r.first
	for k := r.first; k < r.end; k++ {
		id := *r.order.At(k)
		if newer(base, id) {
			continue
		}
		p := &r.places[id%nearSpan]
		start, _ := moved.Put(r.bytes.Piece(p.start, p.size))
		p.start = uint32(start)
		*r.order.At(kept) = id
		kept++
	}
	r.end = kept
	r.bytes = moved
}

// trim gives back memory that was not needed lately, and reports whether none of it
// was.
func (r *reorder) trim(base uint16, busy bool) (idle bool) {
	need := r.most.Room(r.live+r.waiting, trim.ModestBytes, busy)
	if n := trim.Length(need, arena.MinSize); n < r.bytes.Size() {
		r.move(n, base)
	}
	return need == 0
}
