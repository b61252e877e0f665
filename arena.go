package ackbits

// minBytes is what an arena takes at first: a few events of the usual size.
const minBytes = 256

// arena is a ring of bytes from which events take theirs in order, each in one
// piece. Its live bytes lie from head to tail, or around the end of buf.
type arena struct {
	buf        []byte
	head, tail int
}

// alloc finds n bytes. A tail that went around never catches up with head, so
// that equal ends always mean an empty arena.
func (a *arena) alloc(n int) (start int, ok bool) {
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
	return start, true
}

// used returns how many bytes are taken, what was left at the end of buf
// included.
func (a *arena) used() int {
	if a.tail < a.head {
		return len(a.buf) - a.head + a.tail
	}
	return a.tail - a.head
}
