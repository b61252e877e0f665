package transfer

import (
	"crypto/sha256"
	"hash"
	"io"
)

// SHA-256 of files in bounded steps. When a step is made is in due.go.

const (
	// hashStep is how many bytes one call of Due hashes, of all files together: 0.3 to
	// 1.5 ms. More would hold up a game's tick, less would make a file of gigabytes that
	// is on a disk wait: with hashPause it bounds the rate at 1 GB/s.
	hashStep  = 512 << 10
	hashPause = int64(5e5) // ns

	// hashBatch is the least that is read from a Sink at once, but for the end.
	// Less would read each chunk on its own, more would leave more to do at the end.
	hashBatch = 64 << 10
)

// digest hashes a file in order, in bounded steps.
type digest struct {
	hash hash.Hash
	at   int64 // bytes hashed so far
}

func newDigest() digest { return digest{hash: sha256.New()} }

// hashing is what one call of Due may still hash, and where it reads to.
type hashing struct {
	left int64 // bytes
	buf  []byte
}

// step hashes on, up to the offset end, as far as h allows.
func (d *digest) step(file io.ReaderAt, end int64, h *hashing) error {
	end = min(end, d.at+h.left)
	h.left -= max(0, end-d.at)
	for d.at < end {
		b := h.buf[:min(int64(len(h.buf)), end-d.at)]
		if err := readFull(file, b, d.at); err != nil {
			return err
		}
		d.hash.Write(b)
		d.at += int64(len(b))
	}
	return nil
}

func (d *digest) sum() (sum [sha256.Size]byte) {
	d.hash.Sum(sum[:0])
	return sum
}

// readFull fills b from file. Of a file that ends before, the error is
// io.ErrUnexpectedEOF.
func readFull(file io.ReaderAt, b []byte, at int64) error {
	n, err := file.ReadAt(b, at)
	if n == len(b) {
		return nil
	}
	if err == nil || err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}
