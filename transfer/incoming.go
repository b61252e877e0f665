package transfer

import "io"

// An incoming file: storing chunks, checking the digest, and the calls of the
// application. What goes back to the sender is in word.go.

// Sink stores an incoming file; an *os.File is one. What was written is read again, to be
// checked. WriteAt is called in any order, once for each offset, with 512 or 1024 bytes,
// or what is left at the end of the file; it must not keep the bytes. If a Sink fails,
// the transfer ends, Err returns the Sink's error, and the peer only hears that the sink
// failed.
type Sink interface {
	io.ReaderAt
	io.WriterAt
}

// Incoming is a file that the peer sends.
type Incoming struct {
	transfer
	sink   Sink
	have   have
	digest digest
	seen   bool // Transfers.Incoming has shown its end
}

// store accepts a chunk and writes what is new of it. If two chunks have different bytes
// for one unit, the first counts (P-14.2.3).
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

// hash hashes the next bytes, and reports whether more can be hashed at once. Once all
// are hashed, the digest decides how the transfer ends (P-14.2.5).
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

// receive handles a message of the sender.
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

// Offer returns the offer of the file, as Accept got it. Its Name must not be changed.
func (in *Incoming) Offer() Offer { return in.offer }

// Progress returns how many bytes are stored, and how many the file has.
func (in *Incoming) Progress() (done, size int64) { return in.progress() }

// Err returns nil while the transfer runs, and io.EOF once the whole file is stored and
// its digest is right. Otherwise it returns why the transfer ended: ErrDigest;
// ErrCancelled, with the sender's reason if the sender ended it; the Sink's error; or the
// session's. It reads no clock.
func (in *Incoming) Err() error { return in.reason() }

// Cancel ends the transfer at both ends with ErrCancelled. If it has ended already,
// nothing changes.
func (in *Incoming) Cancel() {
	if in.err == nil {
		in.finish(kindDecline, ErrCancelled, []byte(ErrCancelled.Error()))
	}
}

// Have returns which parts of the file are stored, in a form for Config.Resume: keep it
// beside the Sink, and if the same file is offered again over a new session, what is
// stored is not sent again. Its length grows with the number of gaps, not with the file.
// It is bound to digest and size: for another file it is ignored. What it lists must
// really be in the Sink: sync the file to the disk before you write what Have returned.
//
// Have returns nil if nothing is stored, and after an end by ErrDigest or by a Sink that
// could not be read: which bytes are wrong is not known, so the next attempt transfers
// all of them. Then overwrite what you kept before, too.
func (in *Incoming) Have() []byte {
	if in.have.count == 0 {
		return nil
	}
	return in.have.appendHave(nil, &in.offer)
}
