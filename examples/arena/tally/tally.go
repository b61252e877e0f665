// Package tally adds up the counters of many sessions.
package tally

import "github.com/ackbits/ackbits"

// Add adds the counts of b to a. Undecided, RTT and RTTVar tell of a moment of
// one session and are left alone.
func Add(a *ackbits.Stats, b ackbits.Stats) {
	a.DatagramsSent += b.DatagramsSent
	a.DatagramsReceived += b.DatagramsReceived
	a.BytesSent += b.BytesSent
	a.BytesReceived += b.BytesReceived
	a.Delivered += b.Delivered
	a.Lost += b.Lost
	a.LateAcks += b.LateAcks
	a.OutcomesDropped += b.OutcomesDropped
	a.Duplicates += b.Duplicates
	a.Stale += b.Stale
	a.Withheld += b.Withheld
	a.Rejected += b.Rejected
	a.AcksOutrun += b.AcksOutrun
	a.EventsSent += b.EventsSent
	a.EventsResent += b.EventsResent
	a.EventsDelivered += b.EventsDelivered
	a.EventsReceived += b.EventsReceived
	a.EventsDuplicate += b.EventsDuplicate
}
