package ackbits

import "errors"

// The receiving half of a channel: it checks the peer's datagrams, records which ones
// arrived and which of them are still to be acknowledged, and delivers payloads and
// events. What their headers acknowledge is read by the sending half (acknowledge.go).

// How many datagrams one header acknowledges: ack itself and its bits.
const (
	narrowAcks = 1 + 32
	wideAcks   = 1 + 64
)

// receiver is the receiving half. The fields that every datagram touches come first; see
// channel.
type receiver struct {
	tracker AckTracker  // which datagrams of the peer were received
	pending pendingAcks // which of them no header of ours has acknowledged yet
	ackBits uint16      // how many bits AckBits has in this session
	accept  func(Header, []byte) error
	stats   receiverStats
	types   [historySize]Type // of the newest datagrams received, by sequence

	inbox    inbox     // the peer's events
	rejected rejection // what Receive returned for the last datagram that Accept refused
}

// receiverStats are the counters of this half, which Stats documents.
type receiverStats struct {
	DatagramsReceived, BytesReceived                  uint64
	Duplicates, Stale, Withheld, Rejected, AcksOutrun uint64
	Forged, Replayed                                  uint64
	EventsReceived, EventsDuplicate                   uint64
}

// init sets the receiver up. cfg must be complete.
func (r *receiver) init(cfg *Config) {
	r.ackBits = narrowAcks - 1
	if cfg.Wide {
		r.ackBits = wideAcks - 1
	}
	r.accept = cfg.Accept
	r.inbox.init(cfg.Ordered)
}

// receive accepts or refuses the datagram whose header is in in, and fills in the rest
// of in. First it checks the datagram, then it changes what the datagram changes: on
// any error but ErrWithhold only a counter has changed. ErrWithhold says that the
// datagram is valid but neither delivered nor acknowledged. Only a Newest or Late
// datagram delivers anything (P-2.3.4). size is that of the whole datagram, for the
// counters.
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
	if isNew && events != nil && !r.inbox.ids.admits(events) { // nothing has changed up to here (P-2.3.1)
		r.stats.Rejected++
		return ErrWindow
	}
	if isNew && payload != nil && r.accept != nil {
		if err := r.ask(&in.Header, payload); err != nil {
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

// parse checks and parses the payload of one of the library's own types. It returns the
// events, nil if there are none, and the application's payload, nil unless it is a
// Bundle. Every receiver understands a Bundle (P-10.1.1), and its inner type takes the
// place of h.Type (P-10.1.3). Heartbeats and Disconnects must be empty (P-2.2.3);
// reserved types are refused (P-2.2.1).
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

// ask asks the application whether it accepts the payload of a Newest or Late datagram
// (P-2.3.5). It is not asked about events (P-5.3.5).
func (r *receiver) ask(h *Header, payload []byte) error {
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

// deliver returns which events the application gets now that a Newest or Late datagram
// has brought these (P-5.3.4).
func (r *receiver) deliver(events []Event) (out []Event) {
	out, fresh := r.inbox.accept(events)
	r.inbox.deliveredAt = r.stats.DatagramsReceived
	r.stats.EventsReceived += uint64(fresh)
	r.stats.EventsDuplicate += uint64(len(events) - fresh)
	return out
}

// latest reports whether no datagram of type t that is newer than seq was received; seq
// is at most historySize before the ack (P-2.3.7).
func (r *receiver) latest(seq uint16, t Type) bool {
	for back := range r.tracker.Ack() - seq {
		if r.tracker.received(back) && r.types[(r.tracker.Ack()-back)%historySize] == t {
			return false
		}
	}
	return true
}

// noteType remembers the type of a datagram received. One that is exactly historySize
// before the ack would take the ack's place in types; its own type is never asked for,
// so it is left out.
func (r *receiver) noteType(seq uint16, t Type) {
	if r.tracker.Ack()-seq < historySize {
		r.types[seq%historySize] = t
	}
}

// acknowledge fills in the acknowledgements of a header that is sent now (P-4.1.5).
func (r *receiver) acknowledge(h *Header) {
	h.Ack = r.tracker.Ack()
	if h.Wide {
		h.AckBits = r.tracker.WideAckBits()
	} else {
		h.AckBits = uint64(r.tracker.AckBits())
	}
	r.pending.clear()
}

// refuse counts a datagram that was refused before it came here.
func (r *receiver) refuse(reason error) {
	r.stats.Rejected++
	switch reason {
	case ErrReplayed:
		r.stats.Replayed++
	case ErrForged:
		r.stats.Forged++
	}
}

// forged returns how many forged datagrams were refused.
func (r *receiver) forged() uint64 { return r.stats.Forged }

// ackDue reports whether so many datagrams were accepted since we last sent one that
// the next could push one of them out of the ack window (P-6.3.3).
func (r *receiver) ackDue() bool { return r.pending.count >= int(r.ackBits) }

// trim frees memory that was not needed lately; see internal/trim for busy.
func (r *receiver) trim(busy bool) { r.inbox.trim(busy, r.stats.DatagramsReceived) }

// end frees the memory that events took.
func (r *receiver) end() { r.inbox = inbox{} }

// snapshot copies the counters of this half to the Stats.
func (r *receiver) snapshot(to *Stats) {
	n := &r.stats
	to.DatagramsReceived, to.BytesReceived = n.DatagramsReceived, n.BytesReceived
	to.Duplicates, to.Stale = n.Duplicates, n.Stale
	to.Withheld, to.Rejected, to.AcksOutrun = n.Withheld, n.Rejected, n.AcksOutrun
	to.Forged, to.Replayed = n.Forged, n.Replayed
	to.EventsReceived, to.EventsDuplicate = n.EventsReceived, n.EventsDuplicate
}
