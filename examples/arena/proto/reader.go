package proto

import "encoding/binary"

// reader reads values off a payload. Once it has failed it returns zeros, so
// that only the end needs a check.
type reader struct {
	rest   []byte
	failed bool
}

func (r *reader) take(n int) []byte {
	if len(r.rest) < n {
		r.failed = true
	}
	if r.failed {
		return make([]byte, 8)[:n] // no value is longer, and it stays on the stack
	}
	b := r.rest[:n]
	r.rest = r.rest[n:]
	return b
}

func (r *reader) u8() uint8   { return r.take(1)[0] }
func (r *reader) u16() uint16 { return binary.LittleEndian.Uint16(r.take(2)) }
func (r *reader) u64() uint64 { return binary.LittleEndian.Uint64(r.take(8)) }

// text reads a length and so many bytes of text that Clip would not change.
func (r *reader) text(limit int) string {
	n := int(r.u8())
	if n > limit || n > len(r.rest) {
		r.failed = true
	}
	if r.failed {
		return ""
	}
	s := string(r.rest[:n])
	r.rest = r.rest[n:]
	if Clip(s, limit) != s {
		r.failed = true
		return ""
	}
	return s
}
