package ackbits

import "errors"

// The receiving half of a channel: it checks the peer's datagrams, keeps which ones
// arrived and which of them we still have to acknowledge, and delivers payloads and
// events. What their headers acknowledge is the sending half's (acknowledge.go).

// Datagrams named by one header: ack itself and its bits.
const (
	narrowAcks = 1 + 32
	wideAcks   = 1 + 64
)

// receiver is that half. What every datagram touches comes first; see channel.
type receiver struct {
	tracker AckTracker  // the peer's datagrams
	pending pendingAcks // what no header of ours has acknowledged yet
	ackBits uint16      // the acknowledgements of a header beside ack itself
	accept  func(Header, []byte) error
	stats   receiverStats
	types   [historySize]Type // of the newest datagrams, by sequence

	inbox    inbox // the peer's events
	rejected rejection
}

// receiverStats are the counters of this half; see Stats.
type receiverStats struct {
	DatagramsReceived, BytesReceived                  uint64
	Duplicates, Stale, Withheld, Rejected, AcksOutrun uint64
	Forged, Replayed                                  uint64
	EventsReceived, EventsDuplicate                   uint64
}

// init takes a Config that was completed.
func (r *receiver) init(cfg *Config) {
	r.ackBits = narrowAcks - 1
	if cfg.Wide {
		r.ackBits = wideAcks - 1
	}
	r.accept = cfg.Accept
	r.inbox.init(cfg.Ordered)
}

// receive takes the datagram whose header is in in, and fills in the rest: what it
// is, whether it may be delivered, then what it changes. ErrWithhold says that it is
// sound but neither delivered nor acknowledged; with any other error it changed
// nothing but a counter. Only what is new is delivered (P-2.3.4).
func (r *receiver) receive(in *Incoming, payload []byte, size int) (err error) {
	var events []Event
	if !in.Type.application() {
		if events, payload, err = r.parse(&in.Header, payload); err != nil {
			r.stats.Rejected++
			return err
		}
	} else if payload == nil {
		payload = []byte{}
	}
	in.Arrival = r.tracker.Classify(in.Sequence)
	isNew := in.Arrival == Newest || in.Arrival == Late
	if isNew && (events != nil || r.accept != nil) { // so far nothing has changed (P-2.3.1)
		if err := r.admit(&in.Header, events, payload); err != nil {
			return err
		}
	}
	r.stats.DatagramsReceived++
	r.stats.BytesReceived += uint64(size)
	switch ack := r.tracker.Ack(); in.Arrival {
	case Newest:
		r.stats.AcksOutrun += r.pending.newest(in.Sequence-ack, r.ackBits)
		r.tracker.advance(in.Sequence)
		in.Latest = payload != nil
	case Late:
		r.stats.AcksOutrun += r.pending.late(ack-in.Sequence, r.ackBits)
		r.tracker.Receive(in.Sequence)
		in.Latest = payload != nil && r.latest(in.Sequence, in.Type)
	case Duplicate:
		r.stats.Duplicates++
	case Stale:
		r.stats.Stale++
	}
	if isNew {
		r.noteType(in.Sequence, in.Type)
		in.Payload = payload
		if events != nil {
			in.Events = r.deliver(events)
		}
	}
	return nil
}

// parse checks the framing of the library's own payloads and takes them apart: the
// events, nil if there are none, and the application's payload. Of a bundle, which
// every receiver understands (P-10.1.1), it puts the inner type into the header
// (P-10.1.3). Heartbeats and Disconnects are empty (P-2.2.3), reserved types refused
// (P-2.2.1).
func (r *receiver) parse(h *Header, payload []byte) (events []Event, rest []byte, err error) {
	switch h.Type {
	case TypeEvent:
		events, err = ParseEvents(r.inbox.parsed[:0], payload)
	case TypeHeartbeat, TypeDisconnect:
		if len(payload) != 0 {
			err = ErrPayload
		}
	case TypeBundle:
		h.Type, events, rest, err = parseBundle(r.inbox.parsed[:0], payload)
	default:
		err = ErrType
	}
	if err != nil {
		return nil, nil, err
	}
	if events != nil {
		r.inbox.parsed = events
	}
	return events, rest, nil
}

// admit says whether a new datagram may be delivered: its events must be in the
// window, and the application must accept its payload (P-2.3.5).
func (r *receiver) admit(h *Header, events []Event, payload []byte) error {
	if events != nil && !r.inbox.ids.admits(events) {
		r.stats.Rejected++
		return ErrWindow
	}
	if r.accept == nil || payload == nil { // events are not judged by what they hold (P-5.3.5)
		return nil
	}
	switch refusal := r.accept(*h, payload); {
	case refusal == nil:
		return nil
	case errors.Is(refusal, ErrWithhold):
		r.stats.Withheld++
		return ErrWithhold
	default:
		r.stats.Rejected++
		r.rejected.cause = refusal
		return &r.rejected
	}
}

// deliver returns those of a new datagram's events that the application gets now
// (P-5.3.4).
func (r *receiver) deliver(events []Event) (out []Event) {
	out, fresh := r.inbox.accept(events)
	r.inbox.deliveredAt = r.stats.DatagramsReceived
	r.stats.EventsReceived += uint64(fresh)
	r.stats.EventsDuplicate += uint64(len(events) - fresh)
	return out
}

// latest reports whether no datagram of a type was received that is newer than
// seq, which is at most historySize steps before the newest (P-2.3.7).
func (r *receiver) latest(seq uint16, t Type) bool {
	for back := range r.tracker.Ack() - seq {
		if r.tracker.received(back) && r.types[(r.tracker.Ack()-back)%historySize] == t {
			return false
		}
	}
	return true
}

// noteType remembers the type of a datagram received. The one at the far end of
// the history would take the place of the newest; nobody will ask for it.
func (r *receiver) noteType(seq uint16, t Type) {
	if r.tracker.Ack()-seq < historySize {
		r.types[seq%historySize] = t
	}
}

// acknowledge fills in the acknowledgements of a header that leaves now (P-4.1.5).
func (r *receiver) acknowledge(h *Header) {
	h.Ack = r.tracker.Ack()
	if h.Wide {
		h.AckBits = r.tracker.WideAckBits()
	} else {
		h.AckBits = uint64(r.tracker.AckBits())
	}
	r.pending.clear()
}

// ackDue reports whether so many datagrams came in since one was sent that the
// acknowledgements of further ones could be outrun (P-6.3.3).
func (r *receiver) ackDue() bool { return r.pending.count >= int(r.ackBits) }

// trim gives back memory that was not needed lately.
func (r *receiver) trim(busy bool) { r.inbox.trim(busy, r.stats.DatagramsReceived) }

// end frees what events took.
func (r *receiver) end() { r.inbox = inbox{} }

// snapshot fills in the counters of this half.
func (r *receiver) snapshot(to *Stats) {
	n := &r.stats
	to.DatagramsReceived, to.BytesReceived = n.DatagramsReceived, n.BytesReceived
	to.Duplicates, to.Stale = n.Duplicates, n.Stale
	to.Withheld, to.Rejected, to.AcksOutrun = n.Withheld, n.Rejected, n.AcksOutrun
	to.Forged, to.Replayed = n.Forged, n.Replayed
	to.EventsReceived, to.EventsDuplicate = n.EventsReceived, n.EventsDuplicate
}
