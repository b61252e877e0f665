// Package arena keeps pieces of bytes of different lengths in one buffer, oldest
// first.
//
// The rule: pieces are taken in order, each in one piece, and given back in the
// same order. A piece that does not fit behind the newest one goes to the start of
// the buffer, if there is room before the oldest; what is left at the end is unused
// until the oldest has come past it. The buffer never grows by itself: the owner,
// who knows which pieces are alive, makes a larger or smaller arena and puts them
// there.
package arena

// MinSize is the size of the first buffer: a few events of the usual size.
const MinSize = 256

// Arena is a ring of bytes. The zero value has no room. Its live bytes lie from
// head to tail, or around the end of buf.
type Arena struct {
	buf        []byte
	head, tail int
}

// New returns an empty arena of so many bytes.
func New(size int) Arena { return Arena{buf: make([]byte, size)} }

// Size returns how many bytes the buffer has.
func (a *Arena) Size() int { return len(a.buf) }

// Put copies a piece. It is not ok, and nothing changed, if there is no room for it
// in one piece. A tail that went around never catches up with head, so that equal
// ends always mean an empty arena.
func (a *Arena) Put(piece []byte) (start int, ok bool) {
	n := len(piece)
	switch {
	case a.tail < a.head:
		if a.tail+n >= a.head {
			return 0, false
		}
	case a.tail+n <= len(a.buf):
	case n < a.head:
		a.tail = 0
	default:
		return 0, false
	}
	start = a.tail
	a.tail += n
	copy(a.buf[start:], piece)
	return start, true
}

// Piece returns the n bytes from start on. They are the arena's and stay as they
// are until they are given back and others take their place.
func (a *Arena) Piece(start uint32, n uint16) []byte {
	end := start + uint32(n)
	return a.buf[start:end:end]
}

// FreeBefore gives back all pieces older than the one at start.
func (a *Arena) FreeBefore(start uint32) { a.head = int(start) }

// FreeAll gives back all pieces.
func (a *Arena) FreeAll() { a.head, a.tail = 0, 0 }

// Used returns how many bytes are taken, what was left at the end of the buffer
// included.
func (a *Arena) Used() int {
	if a.tail < a.head {
		return len(a.buf) - a.head + a.tail
	}
	return a.tail - a.head
}
