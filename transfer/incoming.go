package transfer

import "io"

// A file that comes in: storing chunks, checking the digest, and what the application
// may ask. What goes back to the sender is in word.go.

// Sink is where an incoming file goes; an *os.File is one. What was written is
// read again to be checked. WriteAt is called with whole units of 512 bytes, two at most,
// but at the end of the file, in any order, each offset once. It must not keep the bytes.
// The errors of a Sink stay here, in Err; the peer only hears that it failed.
type Sink interface {
	io.ReaderAt
	io.WriterAt
}

// Incoming is a file on its way from the peer.
type Incoming struct {
	transfer
	sink   Sink
	have   have
	digest digest
	seen   bool // Transfers.Incoming has shown its end
}

// store accepts a chunk. It writes what is new of it; of two chunks that differ
// the first counts (P-14.2.3).
func (in *Incoming) store(m *message) error {
	if in.err != nil {
		return nil // the sender will hear of it
	}
	end := m.unit*unit + int64(len(m.data))
	if end > in.offer.Size || len(m.data)%unit != 0 && end != in.offer.Size {
		return ErrMessage
	}
	if m.unit+largestChunk > in.have.next()+maxAhead {
		return errAhead
	}
	for u, last := m.unit, (end-1)/unit; u <= last; u++ {
		if in.have.has(u) {
			continue
		}
		r := run{u, u + 1}
		for r.to <= last && !in.have.has(r.to) {
			r.to++
		}
		from := (u - m.unit) * unit
		n := in.offer.bytes(r)
		if err := writeFull(in.sink, m.data[from:from+n], u*unit); err != nil {
			in.finish(kindDecline, err, []byte(sinkFailed))
			return err
		}
		for ; u < r.to; u++ {
			in.have.add(u)
		}
		in.done += n
	}
	return nil
}

func writeFull(sink Sink, b []byte, at int64) error {
	n, err := sink.WriteAt(b, at)
	if err == nil && n < len(b) {
		err = io.ErrShortWrite
	}
	return err
}

// hash hashes on, and reports whether there is more to do at once. The file is done
// when its digest is right (P-14.2.5).
func (in *Incoming) hash(h *hashing) (more bool) {
	if in.err != nil {
		return false
	}
	end := min(in.have.next()*unit, in.offer.Size)
	if end < in.offer.Size && end-in.digest.at < hashBatch {
		return false
	}
	if err := in.digest.step(in.sink, end, h); err != nil {
		in.finish(kindDecline, err, []byte(sinkFailed))
		in.have = have{} // it may not be there
		return false
	}
	if in.digest.at < in.offer.Size {
		return end-in.digest.at >= hashBatch || end == in.offer.Size
	}
	if in.digest.sum() == in.offer.Digest {
		in.finish(kindDone, io.EOF, []byte{resultGood})
	} else {
		in.finish(kindDone, ErrDigest, []byte{resultDiffer})
		in.have = have{} // nobody knows which of it is wrong
	}
	return false
}

// end ends the transfer.
func (in *Incoming) end(reason error) {
	in.transfer.end(reason)
	in.digest = digest{}
}

// finish ends the transfer from this side.
func (in *Incoming) finish(k kind, reason error, body []byte) {
	in.end(reason)
	in.say(k, body)
}

// receive handles what the sender says.
func (in *Incoming) receive(m *message) error {
	switch m.kind {
	case kindChunk, kindAsk:
		return in.store(m)
	case kindStop:
		if in.err == nil {
			in.end(withReason(ErrCancelled, m.data))
		}
	}
	return nil
}

// Offer returns what the sender said of the file.
func (in *Incoming) Offer() Offer { return in.offer }

// Progress returns how many bytes are stored, of how many.
func (in *Incoming) Progress() (done, size int64) { return in.progress() }

// Err returns nil while the transfer runs, and io.EOF when all of it is stored
// and its digest is right. Else it is the reason for the end: ErrDigest;
// ErrCancelled, with the sender's reason if it was the sender; the Sink's error;
// or the session's.
func (in *Incoming) Err() error { return in.reason() }

// Cancel ends the transfer at both sides; one that has ended stays as it is.
func (in *Incoming) Cancel() {
	if in.err == nil {
		in.finish(kindDecline, ErrCancelled, []byte(ErrCancelled.Error()))
	}
}

// Have returns what is stored, in some bytes that grow with the number of gaps,
// not with the file. Kept beside the Sink, and handed in by Config.Resume when the
// same file is offered again over a new session, they spare what was stored
// already. They tell nothing of other files: with another digest or size, the
// transfer starts anew. What they say must be in the Sink: see that it is on the
// disk before they are.
//
// They are empty if nothing is stored, and after an end by ErrDigest or by a Sink that
// could not be read again: which bytes are wrong is not known, so the next attempt
// transfers all of them. Replace what was kept then, too.
func (in *Incoming) Have() []byte {
	if in.have.count == 0 {
		return nil
	}
	return in.have.appendHave(nil, &in.offer)
}
