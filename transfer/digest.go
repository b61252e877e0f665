package transfer

import (
	"crypto/sha256"
	"hash"
	"io"
)

// The SHA-256 of a file, computed in bounded steps. When a step is made is in due.go.

const (
	// hashStep is how many bytes one call of Due hashes, all files together, which takes
	// 0.3 to 1.5 ms; hashPause is the time between two such calls. A larger step would
	// hold up a game's tick. Together they limit hashing to 1 GB/s; a smaller step would
	// make files of gigabytes wait for it.
	hashStep  = 512 << 10
	hashPause = int64(5e5) // ns

	// hashBatch is how many bytes at least are read from a Sink at once, except at the
	// end of the file. Smaller would read each chunk on its own; larger leaves more to
	// hash at the end.
	hashBatch = 64 << 10
)

// digest hashes a file in order, in bounded steps.
type digest struct {
	hash hash.Hash
	at   int64 // bytes hashed so far
}

func newDigest() digest { return digest{hash: sha256.New()} }

// hashing is how much one call of Due may still hash, and the buffer that it reads into.
type hashing struct {
	left int64 // bytes
	buf  []byte
}

// step hashes the next bytes, up to the offset end and as many as h allows.
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

// readFull fills b from file. If the file ends too early, the error is
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
