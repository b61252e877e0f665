// Package arena holds byte slices of different lengths, called pieces, in one buffer.
// When an arena grows or shrinks is its owner's decision; internal/trim has the rule.
//
// Each piece lies in the buffer without a break, and pieces are freed in the order in
// which they were put in. A piece that does not fit behind the newest one goes to the
// start of the buffer, if there is room before the oldest; the bytes left at the end
// stay unused until the oldest piece has passed them. The buffer never grows by itself:
// the owner, who knows which pieces are in use, makes a new arena and copies them.
package arena

// MinSize is the size of the first buffer in bytes: a few events of the usual size.
// Smaller, and it would grow at once; larger, and sessions with few events hold memory
// for nothing.
const MinSize = 256

// Arena is a ring of bytes. The bytes in use lie from head to tail; if tail is below
// head, they go on at the start of buf. The zero value has no room.
type Arena struct {
	buf        []byte
	head, tail int
}

// New returns an empty arena of size bytes.
func New(size int) Arena { return Arena{buf: make([]byte, size)} }

// Size returns the size of the buffer in bytes.
func (a *Arena) Size() int { return len(a.buf) }

// Put copies a piece into the arena and returns where it begins. If there is no room for
// it, ok is false and nothing has changed. A tail below head never reaches head, so that
// equal ends always mean an empty arena.
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

// Piece returns the n bytes at start. They belong to the arena, and stay unchanged until
// they are freed and overwritten by another piece.
func (a *Arena) Piece(start uint32, n uint16) []byte {
	end := start + uint32(n)
	return a.buf[start:end:end]
}

// FreeBefore frees all pieces older than the one at start.
func (a *Arena) FreeBefore(start uint32) { a.head = int(start) }

// FreeAll frees all pieces.
func (a *Arena) FreeAll() { a.head, a.tail = 0, 0 }

// Used returns how many bytes are in use, unused ones at the end of the buffer included.
func (a *Arena) Used() int {
	if a.tail < a.head {
		return len(a.buf) - a.head + a.tail
	}
	return a.tail - a.head
}
