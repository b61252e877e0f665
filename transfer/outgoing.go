package transfer

import "io"

// A file that goes out: which of its units are next, which are delivered, and what the
// application may ask. How fast it goes is rate.go's.

// Outgoing is a file on its way to the peer.
type Outgoing struct {
	transfer
	source io.ReaderAt
	hashed bool // the digest is known
	digest digest

	accepted bool
	skip     []run // what the receiver said that it has
	next     int64 // the first unit that was never sent, those of skip apart
	again    []run // to be sent again
}

// hash hashes on, and reports whether there is more to do.
func (o *Outgoing) hash(h *hashing) (more bool) {
	if o.hashed || o.err != nil {
		return false
	}
	if err := o.digest.step(o.source, o.offer.Size, h); err != nil {
		o.fail(err, sourceFailed)
		return false
	}
	if o.digest.at < o.offer.Size {
		return true
	}
	o.offer.Digest, o.hashed, o.digest = o.digest.sum(), true, digest{}
	return false
}

// begin offers the file, once its digest is known and an id is free.
func (o *Outgoing) begin() {
	if o.offered || !o.hashed || o.err != nil || !o.t.mayOffer() {
		return
	}
	o.offer.ID, o.offered = o.t.nextID, true
	o.t.nextID++
	o.say(kindOffer, nil)
}

// ready reports whether a chunk waits to be sent. The first probe of all goes right
// behind the offer, which saves a round trip; what it sends is a few units, for nothing if
// the file is refused. What is offered again has to be answered first.
func (o *Outgoing) ready() bool {
	first := o.word.kind == kindOffer && o.word.tries == 1 && o.t.rate.probes == 0
	return (o.accepted || first) && o.err == nil && (len(o.again) > 0 || o.next < o.offer.units())
}

// take returns up to most units that are to be sent now, and whether they were before;
// ready must hold.
func (o *Outgoing) take(most int64) (r run, repeat bool) {
	if len(o.again) > 0 {
		r = o.again[0]
		r.to = min(r.to, r.from+most)
		if o.again[0].from = r.to; r.to == o.again[0].to {
			o.again = append(o.again[:0], o.again[1:]...)
		}
		return r, true
	}
	r = run{o.next, min(o.next+most, o.offer.units())}
	if len(o.skip) > 0 {
		r.to = min(r.to, o.skip[0].from)
	}
	o.next = r.to
	o.leap()
	return r, false
}

// leap moves next past what the receiver has.
func (o *Outgoing) leap() {
	for len(o.skip) > 0 && o.next == o.skip[0].from {
		o.next = o.skip[0].to
		o.done += o.offer.bytes(o.skip[0])
		o.skip = o.skip[1:]
	}
}

func (c *chunk) run() run { return run{c.unit, c.unit + int64(c.units)} }

// arrived notes that a chunk was acknowledged.
func (o *Outgoing) arrived(c *chunk) {
	if o.err == nil {
		o.done += o.offer.bytes(c.run())
	}
}

// lost has a chunk sent again.
func (o *Outgoing) lost(c *chunk) {
	if o.err == nil {
		o.again = append(o.again, c.run())
	}
}

// arrivedLate notes that a chunk was acknowledged after it was taken for lost: what
// of it was not sent again yet need not be. The rest counts when its repeat does.
func (o *Outgoing) arrivedLate(c *chunk) {
	kept := o.again[:0]
	for _, r := range o.again {
		if r.from >= c.unit && r.to <= c.run().to {
			o.done += o.offer.bytes(r)
		} else {
			kept = append(kept, r)
		}
	}
	o.again = kept
}

// receive handles what the receiver says.
func (o *Outgoing) receive(m *message) error {
	if o.err != nil {
		return nil
	}
	switch m.kind {
	case kindAccept:
		runs, err := parseRuns(m.data, o.offer.units())
		if err != nil {
			return err
		}
		if !o.accepted {
			if o.word.tries > 1 { // what went behind the offer was refused like that
				o.t.rate.probeAgain()
			}
			o.accepted, o.word = true, word{}
			for _, r := range runs {
				if r.from = max(r.from, o.next); r.from < r.to { // what was sent counts by itself
					o.skip = append(o.skip, r)
				}
			}
			o.leap()
		}
	case kindRefuse:
		o.end(withReason(ErrRefused, m.data))
	case kindDecline:
		o.end(withReason(ErrCancelled, m.data))
	case kindDone:
		if m.result == resultDiffer {
			o.end(ErrDigest)
		} else {
			o.end(io.EOF)
		}
	}
	return nil
}

// end ends the transfer. What is in flight of it is forgotten as it arrives.
func (o *Outgoing) end(reason error) {
	if reason == io.EOF {
		o.done = o.offer.Size
	}
	o.transfer.end(reason)
	o.skip, o.again, o.source, o.digest = nil, nil, nil, digest{}
}

// fail ends the transfer from this side, and tells the peer why; one that has ended
// stays as it is.
func (o *Outgoing) fail(reason error, told string) {
	if o.err != nil {
		return
	}
	o.end(reason)
	if o.offered {
		o.say(kindStop, []byte(told))
	}
}

// Progress returns how many bytes the receiver has acknowledged, of how many. A
// receiver that has all of them still has to check them: Err tells when.
func (o *Outgoing) Progress() (done, size int64) { return o.progress() }

// Err returns nil while the transfer runs, and io.EOF when the receiver has
// stored all of it and found its digest right. Else it is the reason for the end:
// ErrDigest, if the receiver's bytes have another digest; ErrRefused or ErrCancelled
// with the peer's reason; ErrCancelled after Cancel; the error of the source,
// io.ErrUnexpectedEOF if it is shorter than it was said to be; ErrOutcomes; or the
// session's.
func (o *Outgoing) Err() error { return o.reason() }

// Offer returns what the receiver is told of the file. The digest is zero until
// the source was read to its end.
func (o *Outgoing) Offer() Offer { return o.offer }

// Cancel ends the transfer at both sides; one that has ended stays as it is.
func (o *Outgoing) Cancel() { o.fail(ErrCancelled, ErrCancelled.Error()) }
