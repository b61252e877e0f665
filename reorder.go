package ackbits

import "math/bits"

// reorder keeps copies of the events that are ahead of a gap, by id, and buffers
// for them. What it has handed out is lent until reclaim.
type reorder struct {
	waiting [nearSpan][]byte
	lent    [][]byte
	spare   [bufferClasses][][]byte // by capacity: minBuffer, twice that, and so on
	spares  int
}

const (
	// minBuffer is the least that a copy takes, so that events of about one size
	// soon find a buffer that fits.
	minBuffer     = 64
	bufferClasses = 6 // up to 2,048 bytes, which the largest event fits into
)

// bufferClass returns the class of the smallest buffers that n bytes fit into.
func bufferClass(n int) int {
	return bits.Len(uint(max(n, minBuffer)-1)) - bits.Len(minBuffer-1)
}

// keep copies an event.
func (r *reorder) keep(e Event) {
	r.waiting[e.ID%nearSpan] = append(r.buffer(len(e.Data)), e.Data...)
}

// release hands out the copy of an event that waited.
func (r *reorder) release(id uint16) []byte {
	data := &r.waiting[id%nearSpan]
	r.lent = append(r.lent, *data)
	*data = nil
	return r.lent[len(r.lent)-1]
}

// reclaim takes back what was lent. It keeps no more buffers than can be in use,
// whatever sizes came.
func (r *reorder) reclaim() {
	for _, buf := range r.lent {
		class := bufferClass(cap(buf))
		r.spare[class] = append(r.spare[class], buf[:0])
	}
	r.spares += len(r.lent)
	clear(r.lent)
	r.lent = r.lent[:0]
	r.shrink(nearSpan)
}

// buffer returns the smallest spare buffer that n bytes fit into, so that a rare
// large event does not make one after the other grow, or else a new one.
func (r *reorder) buffer(n int) []byte {
	least := bufferClass(n)
	for class := least; class < bufferClasses; class++ {
		if last := len(r.spare[class]) - 1; last >= 0 {
			buf := r.spare[class][last]
			r.spare[class] = r.spare[class][:last]
			r.spares--
			return buf
		}
	}
	return make([]byte, 0, minBuffer<<least)
}

// shrink keeps at most n spare buffers: the larger ones, which fit what smaller ones do.
func (r *reorder) shrink(n int) {
	for class := 0; r.spares > n; class++ {
		bufs := r.spare[class]
		left := max(0, len(bufs)-(r.spares-n))
		r.spares -= len(bufs) - left
		clear(bufs[left:])
		r.spare[class] = bufs[:left]
	}
}
