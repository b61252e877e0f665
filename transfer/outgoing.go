package transfer

import "io"

// An outgoing file: which of its units are sent next, which were delivered, and the calls
// of the application. How fast it is sent is in rate.go.

// Outgoing is a file that is sent to the peer.
type Outgoing struct {
	transfer
	source io.ReaderAt
	hashed bool // the digest is known
	digest digest

	accepted bool
	skip     []run // units that the receiver had already
	next     int64 // the first unit that was never sent and is not in skip
	again    []run // units to be sent again
}

// hash hashes the next bytes of the source, and reports whether there are more.
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

// ready reports whether a chunk waits to be sent. The very first probe follows right
// behind the offer, which saves a round trip; if the file is refused, its few units were
// sent in vain. An offer that had to be retransmitted must be answered first.
func (o *Outgoing) ready() bool {
	first := o.word.kind == kindOffer && o.word.tries == 1 && o.t.rate.probes == 0
	return (o.accepted || first) && o.err == nil && (len(o.again) > 0 || o.next < o.offer.units())
}

// take returns up to most units to be sent now, and whether they were sent before. ready
// must hold.
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

// leap moves next past the units that the receiver already had.
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

// lost queues the units of a lost chunk to be sent again.
func (o *Outgoing) lost(c *chunk) {
	if o.err == nil {
		o.again = append(o.again, c.run())
	}
}

// arrivedLate notes that a chunk was acknowledged after it was presumed lost. Those of
// its units that still wait to be sent again need not be. The others count when the
// retransmission is acknowledged.
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

// receive handles a message of the receiver.
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

// end ends the transfer. Its chunks that are in flight are forgotten as they arrive.
func (o *Outgoing) end(reason error) {
	if reason == io.EOF {
		o.done = o.offer.Size
	}
	o.transfer.end(reason)
	o.skip, o.again, o.source, o.digest = nil, nil, nil, digest{}
}

// fail ends the transfer from this side and tells the peer why. If it has ended already,
// nothing changes.
func (o *Outgoing) fail(reason error, told string) {
	if o.err != nil {
		return
	}
	o.end(reason)
	if o.offered {
		o.say(kindStop, []byte(told))
	}
}

// Progress returns how many bytes the receiver has acknowledged, and how many the file
// has. A receiver that has all of them still has to check them: see Err.
func (o *Outgoing) Progress() (done, size int64) { return o.progress() }

// Err returns nil while the transfer runs, and io.EOF once the receiver has stored the
// whole file and found its digest right. Otherwise it returns why the transfer ended:
// ErrDigest if the receiver found another digest; ErrRefused or ErrCancelled with the
// peer's reason; ErrCancelled after Cancel; the error of the source, which is
// io.ErrUnexpectedEOF if the source is shorter than size; ErrOutcomes; or the session's
// error. It reads no clock.
func (o *Outgoing) Err() error { return o.reason() }

// Offer returns what the receiver is told of the file. Digest is zero until the source
// was read to its end, and ID until the file was offered. Its Name must not be changed.
func (o *Outgoing) Offer() Offer { return o.offer }

// Cancel ends the transfer at both ends with ErrCancelled. If it has ended already,
// nothing changes.
func (o *Outgoing) Cancel() { o.fail(ErrCancelled, ErrCancelled.Error()) }
