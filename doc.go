// Package ackbits makes UDP usable for games: it tells a sender which datagrams
// arrived, delivers events exactly once, estimates the round-trip time (RFC 6298)
// and detects a lost peer by timeout. It opens no socket, starts no goroutine and
// reads its clock once per call, so a server, a client, a bot or a test can drive it.
//
// # The caller's part
//
// A [Session] is one peer's side of a connection. Its methods fall into three
// families:
//
//   - in: [Session.Receive] for every datagram that arrives, [Session.Send] for
//     every event;
//   - out: [Session.AppendDatagram] for the application's own datagrams,
//     [Session.Due] (an iterator over [Session.AppendDue]) for everything that the
//     library itself needs to send, [Session.NextOutcome] for what became of the
//     datagrams sent, [Session.Shutdown] or [Session.Close] to leave;
//   - getters, which read no clock and change nothing: [Session.Deadline],
//     [Session.Err], [Session.RTT], [Session.Stats], [Session.InFlight],
//     [Session.Room], [Session.MaxPayload], [Session.MaxEvent],
//     [Session.Undelivered].
//
// The loop that every caller runs, here once per tick:
//
//	for each datagram that has arrived in inBuf {
//		in, err := s.Receive(inBuf[:n]) // err: invalid or of another session; it was dropped
//		for _, event := range in.Events { … }
//		if in.Latest { … in.Payload, of in.Type … }
//		for datagram := range s.Due(outBuf) { conn.Write(datagram) }
//	}
//	s.Send(event) // only while s.Room() > 0: one event too many ends the session
//	datagram, seq, err := s.AppendDatagram(outBuf[:0], ackbits.TypeSnapshot, snapshot)
//	if err == nil { conn.Write(datagram) }
//	for datagram := range s.Due(outBuf) { conn.Write(datagram) }
//	if s.Err() != nil { … }
//
// Methods may be called in any order. Late calls only add latency; events are lost
// only if Timeout or StallTimeout ends the session. What is easy to get wrong:
//
//   - Use two buffers. Incoming.Events and Incoming.Payload are parts of the
//     buffer that was passed to Receive, so building an answer in the same buffer
//     would overwrite them. They are valid until the next Receive.
//   - Run Due after every Receive. A header acknowledges the newest datagram and
//     the 32 before it, or 64 in the wide form. If more arrive before you send, the
//     rest are never acknowledged, and the peer retransmits events that had arrived.
//     Due yields what was due when it began, so it ends even if writing is slow; a
//     loop of your own over AppendDue must see to that itself.
//   - For state of which only the newest counts, check [Incoming].Latest, not
//     Arrival: a snapshot that is Late because a heartbeat overtook it is still the
//     latest snapshot. Latest compares datagrams of one Type. So a Connect can set
//     it, too: check the type. And if two parts of a snapshot share a type, the part
//     that is overtaken is not Latest: give each part a type of its own.
//   - The order between events and state is not guaranteed: in the loop above the
//     state is sent first. If a spawn must not arrive after the state that needs it,
//     run Due before AppendDatagram, or set Bundle.
//   - Events are one queue, sent lowest id first. Send bulk data only while InFlight
//     is small, 100 say, or urgent events wait behind all of it.
//   - Take a fresh random token for each session. If a token is used again,
//     everything that the peer sends looks Stale.
//   - Both directions share the token, so a bare datagram that is reflected to its
//     sender looks like the peer's: seal, or let the socket layer check the address.
//     A token of 0 is a token like any other. A Stale or Duplicate datagram is valid
//     and its acknowledgements are read, but it does not renew the timeout: it may be
//     a reflection.
//   - A server that answers before it has a session must not send a datagram that the
//     client passes to its session: the client would count its sequence as received,
//     and then take the session's own datagram of that sequence, mostly the first, for
//     a duplicate. Answer with bytes that the client's handshake consumes.
//   - Timeouts are detected only in AppendDue and Due. After a pause, pass what has
//     arrived to Receive first: a datagram that waited in the socket keeps the
//     session alive. If the read deadline has expired, the net package returns before
//     it looks at the socket, so set a new deadline and read once more before you
//     conclude that nothing waits.
//   - Events sent just before Close are sent once, and the peer refuses those that
//     arrive after the Disconnect. Shutdown waits until the events of this side are
//     delivered. When both sides shut down, the first that is done leaves, and what
//     the other had not yet delivered is in its Undelivered.
//   - After a graceful close Err is ErrClosed on the side that called Close or
//     Shutdown, and ErrPeerLeft on the other. Any other error means that data may
//     have been lost.
//   - The smoothed RTT includes the time that datagrams wait for Receive, and the
//     peer's wait for its next datagram, up to its tick. A caller that stamps
//     arrivals sets a shared [ManualClock] before each Receive. For a ping display,
//     let the application's own payload echo a time stamp and how long it waited.
//
// A caller that wakes at Deadline leaves [Config].PollInterval at zero; one that
// polls on a tick sets it to the tick, so that heartbeats are not a tick late.
//
// [ReliableChannel] is the same protocol under a header of the caller's own.
//
// # Which delivery for what
//
//	                       order      head-of-line blocking       costs
//	AppendDatagram         none       none; may be lost           the datagram
//	Send                   none       none                        a retransmission of the lost event
//	Send, Config.Ordered   by id      until the lost event has    the same, and copies of up to 255
//	                                  arrived                     events at the receiver
//	OrderedLane            by id      until the lost event has    retransmission of all events after
//	                                  arrived                     the lost one; no memory at the receiver
//
// Use Send for events that stand on their own, with Ordered for events that do not.
// Use an [OrderedLane] where the receiver must stay as simple as a counter, or the
// packets have another layout. With Config.Outcomes an application learns which
// datagrams were lost and can send newer state instead. A map, a replay or a texture
// goes by package transfer.
//
// # Invariants
//
// The code and its tests cite these by number.
//
//	I1  One meaning per bit: bit n of AckBits stands for sequence Ack − 1 − n, and
//	    is set exactly when that datagram was received and accepted.
//	I2  One outcome per sequence: every datagram sent is delivered, lost or
//	    undecided, and an outcome does not change.
//	I3  Every event is delivered exactly once, or the session ends and says why.
//	I4  Time moves forward: each call reads the clock once, and a clock that is set
//	    back does not move time back.
//	I5  Hostile input is safe: bounded work and memory, and no panic. An error of
//	    Receive changes nothing but counters; a sealed datagram that was authentic is
//	    also remembered, so that it cannot be replayed.
//
// # Sealed sessions
//
// Anyone who sees one bare datagram can forge the next: a Disconnect, an
// acknowledgement that makes the sender drop events, a spawn. [Config].Seal and Open
// prevent that. They take what crypto/cipher.AEAD offers; the package itself imports
// no cryptography. The keys must be fresh for this session and different for the two
// directions. They come from a handshake of your own (ExampleConfig_seal derives them
// from a shared secret), or from package endpoint, which does all of it.
//
// A sealed session provides: payloads that are secret and authentic; headers that
// are authentic; each datagram accepted at most once; a datagram that is reflected
// to its sender is refused. It does not provide: secrecy of header, size or time of
// a datagram; protection from dropped and delayed datagrams; forward secrecy beyond
// that of the keys. It has not been audited independently. SECURITY.md says against
// whom which promise holds.
//
// A [ReliableChannel] handles no datagram bytes, so its user seals them
// (ExampleReliableChannel_sealed):
//
//	out:   Seal(header, nonce(number), payload, header)
//	       number: 0 for the first datagram, 1 more for each; Sequence is its low 16 bits
//	in:    number := newest + int64(int16(h.Sequence-uint16(newest)))
//	       newest: the highest number opened so far, −1 before any
//	       refuse a number below 0, and a sequence that an AckTracker of the
//	       datagrams opened so far calls Duplicate or Stale
//	       Open; if that succeeds, call Receive of that tracker and of the channel
//
// If you authenticate datagrams with a MAC instead, you need the same two things
// besides the key: sign the direction with the rest, or a reflected datagram is
// accepted; and keep that replay window, or a recorded one is accepted again.
//
// # The protocol
//
// docs/protocol.md of the module states the protocol in numbered requirements that
// the code and its tests cite (P-4.1.2); docs/requirements.md lists where. It is
// enough to write a second implementation, and testdata/vectors tests one. These
// decisions are easy to make otherwise:
//
//   - Event ids on the wire lie within a window of 256; not 256 events in number
//     (P-5.2.2). If the sender counts events instead, the receiver drops a late event
//     whose id is 256 or more behind, yet acknowledges its datagram: the event is
//     lost silently. For peers that count all the same, the receiver accepts ids up
//     to 4,095 above the oldest missing one (P-5.3.1).
//   - A datagram is accepted as a whole or not at all (P-2.3.1): one with an event id
//     outside the window, or that [Config].Accept refuses, is not acknowledged.
//   - Acknowledgements of sequences that were never sent are ignored; if ack itself
//     is newer than the last sequence sent, its bits are ignored, too (P-4.2.2).
//   - A session whose oldest event has been the oldest for 15 s ends although
//     datagrams arrive (P-8.2.1): a path that drops large datagrams must not look
//     alive for ever. So does one that has sent half of all sequences since the
//     newest acknowledged one.
//   - A heartbeat is sent early when 32 datagrams, 64 in the wide form, await
//     acknowledgement (P-6.3.3).
//   - On an [OrderedLane] an event is also due once an older one was retransmitted
//     (P-12.2.2), because the receiver discarded it. Otherwise one loss would delay
//     all later events for ever.
//
// # Not provided
//
// No keys and no handshake: without [Config].Seal and Open anyone who sees a datagram
// can forge one, and Connect and Accept are the application's. Package endpoint
// provides both, and proves addresses. No fragmentation: a datagram is at most 1200
// bytes. No congestion control of state: the application chooses how much it sends,
// and [Stats].QueueDelay shows when that is more than the link carries. With
// [Config].Adaptive, events use only what state leaves. No concurrency: a session may
// be used by one goroutine at a time; different sessions share nothing.
package ackbits
