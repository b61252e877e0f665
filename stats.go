package ackbits

import "time"

// The counters as the application sees them. Each half of the channel counts its own
// and copies them here (receiver.snapshot, sender.snapshot); the bytes sent are the
// Session's.

// Stats counts what a session or channel has done since its start. Undecided and the
// times at the end are not counts: they describe the moment.
type Stats struct {
	DatagramsSent     uint64
	DatagramsReceived uint64 // valid ones, whatever their Arrival, but not withheld ones
	BytesSent         uint64 // of the datagrams sent, without IP and UDP headers; always 0 of a ReliableChannel, which sees no datagrams
	BytesReceived     uint64 // likewise, of the datagrams in DatagramsReceived

	// The outcomes of the datagrams sent: DatagramsSent is always Delivered + Lost +
	// Undecided. A loss is counted when it is declared, see Config.LossDelay, so at
	// the start of a session Lost is too low.
	Delivered       uint64
	Lost            uint64 // presumed lost, including those acknowledged later
	LateAcks        uint64 // datagrams in Lost that were acknowledged later
	OutcomesDropped uint64 // outcomes that the full queue dropped, see NextOutcome
	Undecided       int    // datagrams sent that have no outcome yet; after the end only NextOutcome decides them

	// Of datagrams received.
	Duplicates uint64 // Arrival was Duplicate
	Stale      uint64 // Arrival was Stale
	Withheld   uint64 // Accept returned ErrWithhold; in no other counter
	Rejected   uint64 // Receive returned an error of input (ErrShort … ErrRejected)
	Forged     uint64 // of Rejected: ErrForged
	Replayed   uint64 // of Rejected: ErrReplayed
	// AcksOutrun counts datagrams of the peer that fell out of our ack window before
	// they were acknowledged: the peer will declare them lost. To keep it at 0, run
	// Due after every Receive.
	AcksOutrun uint64

	EventsSent      uint64 // first copies
	EventsResent    uint64 // all other copies: retransmissions and proactive copies
	EventsAhead     uint64 // of EventsResent: proactive copies, with Config.Adaptive only
	EventsDelivered uint64 // events that the peer acknowledged
	EventsReceived  uint64 // events of the peer, each counted once
	EventsDuplicate uint64 // further copies of them, in Newest and Late datagrams

	RTT    time.Duration // smoothed round-trip time, RFC 6298's SRTT; 0 before the first sample
	RTTVar time.Duration // its variation, RFC 6298's RTTVAR
	// MinRTT is the shortest round trip of the last 10 to 20 seconds; 0 before the first
	// sample. QueueDelay is by how much the shortest of the newest eight exceeds it:
	// the standing queue on the path. If it stays above some 30 ms, more is sent than
	// the link carries: send less state until it is gone.
	MinRTT, QueueDelay time.Duration
}

// Add adds the counters of another session to s, for a server's totals. Of the times it
// keeps the larger.
func (s *Stats) Add(o Stats) {
	s.DatagramsSent += o.DatagramsSent
	s.DatagramsReceived += o.DatagramsReceived
	s.BytesSent += o.BytesSent
	s.BytesReceived += o.BytesReceived
	s.Delivered += o.Delivered
	s.Lost += o.Lost
	s.LateAcks += o.LateAcks
	s.OutcomesDropped += o.OutcomesDropped
	s.Undecided += o.Undecided
	s.Duplicates += o.Duplicates
	s.Stale += o.Stale
	s.Withheld += o.Withheld
	s.Rejected += o.Rejected
	s.Forged += o.Forged
	s.Replayed += o.Replayed
	s.AcksOutrun += o.AcksOutrun
	s.EventsSent += o.EventsSent
	s.EventsResent += o.EventsResent
	s.EventsAhead += o.EventsAhead
	s.EventsDelivered += o.EventsDelivered
	s.EventsReceived += o.EventsReceived
	s.EventsDuplicate += o.EventsDuplicate
	s.RTT = max(s.RTT, o.RTT)
	s.RTTVar = max(s.RTTVar, o.RTTVar)
	s.MinRTT = max(s.MinRTT, o.MinRTT)
	s.QueueDelay = max(s.QueueDelay, o.QueueDelay)
}
