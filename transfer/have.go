package transfer

import (
	"crypto/sha256"
	"encoding/binary"
	"iter"
	"math"
	"math/bits"
)

// The set of units that a receiver has stored, in memory and in the form that resumes a
// transfer. How they are stored is in incoming.go.

// maxAhead is how many units a chunk may lie beyond the first missing one:
// 512 MiB, for which a bitmap takes 128 KiB. A sender of this package stays
// within what is in flight, some megabytes. More would let a sender claim more
// memory; less could hold up a path with a long round trip.
const maxAhead = 1 << 20

// have is the set of units that were stored: all before base, and those whose bit is set.
// It takes a bit for each unit from the first missing one to the newest.
//
// Invariant: base is a multiple of 64, and the first word is not full.
type have struct {
	base  int64
	words []uint64
	count int64 // units in the set
}

// next returns the first unit that is missing.
func (h *have) next() int64 {
	if len(h.words) == 0 {
		return h.base
	}
	return h.base + int64(bits.TrailingZeros64(^h.words[0]))
}

func (h *have) has(u int64) bool {
	if u < h.base {
		return true
	}
	w := (u - h.base) / 64
	return w < int64(len(h.words)) && h.words[w]>>(u%64)&1 != 0
}

// add puts a unit into the set; it must not be there.
func (h *have) add(u int64) {
	w := int((u - h.base) / 64)
	for len(h.words) <= w {
		h.words = append(h.words, 0)
	}
	h.words[w] |= 1 << (u % 64)
	h.count++
	full := 0
	for full < len(h.words) && h.words[full] == ^uint64(0) {
		full++
	}
	if full > 0 {
		h.words = append(h.words[:0], h.words[full:]...)
		h.base += int64(full) * 64
	}
}

// runs yields the set as runs of units, lowest first.
func (h *have) runs() iter.Seq[run] {
	return func(yield func(run) bool) {
		r := run{0, h.next()}
		for u := r.to; u < h.base+64*int64(len(h.words)); u++ {
			switch {
			case !h.has(u):
				continue
			case u == r.to:
				r.to++
				continue
			case r.to > r.from && !yield(r):
				return
			}
			r = run{u, u + 1}
		}
		if r.to > r.from {
			yield(r)
		}
	}
}

// The form of Have: a version, the digest, the size, then runs.
const (
	haveVersion = 1
	haveHeader  = 1 + sha256.Size + 8
)

// appendHave appends the form in which an application keeps the set for a later session.
func (h *have) appendHave(dst []byte, o *Offer) []byte {
	dst = append(dst, haveVersion)
	dst = append(dst, o.Digest[:]...)
	dst = binary.LittleEndian.AppendUint64(dst, uint64(o.Size))
	return h.appendRuns(dst, math.MaxInt)
}

// appendRuns appends as many runs as fit while dst has at most limit bytes.
func (h *have) appendRuns(dst []byte, limit int) []byte {
	var end int64
	for r := range h.runs() {
		longer := appendRun(dst, end, r)
		if len(longer) > limit {
			break
		}
		dst, end = longer, r.to
	}
	return dst
}

// load reads what appendHave wrote. If it is of another file it is ignored; what lies too
// far ahead is left out, and so is sent again.
func (h *have) load(saved []byte, o *Offer) {
	if len(saved) < haveHeader || string(saved[:haveHeader]) != string((&have{}).appendHave(nil, o)) {
		return
	}
	runs, err := parseRuns(saved[haveHeader:], o.units())
	if err != nil {
		return
	}
	for i, r := range runs {
		if i == 0 && r.from == 0 {
			h.base, h.count = r.to&^63, r.to&^63
			r.from = h.base
		}
		for u := r.from; u < min(r.to, h.next()+maxAhead); u++ {
			h.add(u)
		}
	}
}
