package ackbits

import "time"

// Stats counts what a session or channel has done. Everything is a count since
// its start but Undecided and the times at the end, which tell of the moment.
type Stats struct {
	DatagramsSent     uint64
	DatagramsReceived uint64 // valid ones, whatever their Arrival; withheld ones apart
	BytesSent         uint64 // of datagrams, without IP and UDP; a ReliableChannel knows no sizes and leaves it 0
	BytesReceived     uint64 // likewise, of those in DatagramsReceived

	// The fates of the datagrams sent. DatagramsSent is always Delivered + Lost
	// + Undecided.
	Delivered       uint64
	Lost            uint64 // presumed lost, even if acknowledged later
	LateAcks        uint64 // acknowledgements of datagrams counted in Lost
	OutcomesDropped uint64 // outcomes pushed out of the queue, see NextOutcome
	Undecided       int    // datagrams sent whose fate is still open; after the end only NextOutcome judges

	// Of datagrams received.
	Duplicates uint64 // Arrival was Duplicate
	Stale      uint64 // Arrival was Stale
	Withheld   uint64 // Accept returned ErrWithhold; counted nowhere else
	Rejected   uint64 // Receive returned an error of input
	Forged     uint64 // of Rejected: ErrForged
	Replayed   uint64 // of Rejected: ErrReplayed
	// AcksOutrun counts datagrams of the peer that left our acknowledgement
	// window before any datagram of ours could name them: the peer will take
	// them for lost. Flush after every Receive to keep it at 0.
	AcksOutrun uint64

	EventsSent      uint64 // first copies
	EventsResent    uint64 // all other copies
	EventsAhead     uint64 // of EventsResent: sent ahead of a loss, with Config.Adaptive only
	EventsDelivered uint64 // events sent that the peer acknowledged
	EventsReceived  uint64 // new ones taken in
	EventsDuplicate uint64 // copies of known ones, in Newest and Late datagrams

	RTT    time.Duration // smoothed round trip time; 0 before the first sample
	RTTVar time.Duration // its variation, RFC 6298's RTTVAR
	// MinRTT is the least round trip of the last 10 to 20 seconds; 0 before the
	// first sample. QueueDelay is by how much the least of the newest eight lies
	// above it: the queue that stands on the way. Where it stays above some 30 ms,
	// more is sent than the link carries; send less state, and more again when it
	// is gone.
	MinRTT, QueueDelay time.Duration
}

// Add adds up the counters of several sessions, for a server's totals. Of the
// round trip times it keeps the larger.
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
