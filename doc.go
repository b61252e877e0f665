// Package ackbits makes UDP usable for games: it tells a sender which datagrams
// arrived, delivers events exactly once, smooths the round trip time and notices
// when the peer is gone. It opens no socket, starts no goroutine and reads one
// clock, once a call, so a server, a client, a bot or a test can drive it.
//
// # The caller's part
//
// A [Session] is one peer's side of a connection. Its methods fall into three
// families:
//
//   - in: [Session.Receive] for every datagram that arrives, [Session.Send] for
//     every event;
//   - out: [Session.AppendDatagram] for the application's own datagrams,
//     [Session.Due] (or [Session.AppendDue], of which it is the loop) for
//     everything else that must leave, [Session.NextOutcome] for what became of
//     the datagrams sent, [Session.Shutdown] or [Session.Close] to leave;
//   - getters, which read no clock and change nothing: [Session.Deadline],
//     [Session.Err], [Session.RTT], [Session.Stats], [Session.InFlight],
//     [Session.Room], [Session.MaxPayload], [Session.MaxEvent],
//     [Session.Undelivered].
//
// The loop of every caller, here on a tick:
//
//	for each datagram that has arrived in inBuf {
//		in, err := s.Receive(inBuf[:n]) // err: invalid or foreign, and dropped
//		for _, event := range in.Events { … }
//		if in.Latest { … in.Payload, of in.Type … }
//		for datagram := range s.Due(outBuf) { conn.Write(datagram) }
//	}
//	s.Send(event) // while s.Room() > 0: one too many ends the session
//	datagram, seq, err := s.AppendDatagram(outBuf[:0], ackbits.TypeSnapshot, snapshot)
//	if err == nil { conn.Write(datagram) }
//	for datagram := range s.Due(outBuf) { conn.Write(datagram) }
//	if s.Err() != nil { … }
//
// No order of calls is illegal, and calling late costs time, never an event, short
// of Timeout and StallTimeout. What is easy to get wrong:
//
//   - Use two buffers. Incoming.Events and Incoming.Payload are parts of the
//     buffer that was received into, so answering from the same one would
//     overwrite them. They are valid until the next Receive.
//   - Flush Due after every Receive. A header names 33 datagrams, 65 in the wide
//     form; a burst handed in without an answer in between outruns it, and the
//     peer sends events again that had arrived. Due yields what was due when it
//     began and ends, however slow writing is; a loop of one's own over AppendDue
//     must see to that itself.
//   - For state of which only the newest counts check [Incoming].Latest, not
//     Arrival: a snapshot that is late behind a heartbeat is still the latest
//     snapshot. It is latest of its Type: a Connect is, too, and of two parts of
//     a snapshot that share a type the one that is overtaken is not. Give each
//     part a type.
//   - Nothing is promised of the order between events and state: in the loop above
//     the state goes first. Where a spawn must not come after the state that needs
//     it, flush before AppendDatagram, or set Bundle.
//   - Events are one stream, lowest id first. Send bulk only while InFlight is
//     small, 100 say, or what is urgent waits behind all of it.
//   - Take a fresh random token for each session. With an old one, everything
//     the peer sends looks stale.
//   - Both directions share the token, so a bare datagram that is reflected to its
//     sender looks like the peer's: seal, or let the socket layer check the address.
//     A token of 0 is a token like any other. A Stale or Duplicate datagram is valid,
//     its acknowledgements are read, and it renews nothing: what does not move
//     forward is an echo.
//   - A server that answers before it has a session must not do so with a datagram
//     that the client hands to its session: whatever its sequence is, it takes the
//     place of the session's datagram of that number, mostly the first. Answer with
//     bytes that the client's handshake consumes.
//   - Only AppendDue finds timeouts. After a pause, hand in what has arrived
//     first: a datagram that waited in the socket keeps the session alive.
//     An expired read deadline makes the net package return before it looks at
//     the socket, so read once more before you believe that nothing waits.
//   - Events sent just before Close go out once, and where they arrive behind the
//     Disconnect they are refused. Shutdown waits for them, those of this side: when
//     both shut down, the first that has delivered all leaves, and what the other
//     still had is in its Undelivered.
//   - Err after a good end is ErrClosed, where Close or Shutdown was called, and
//     ErrPeerLeft on the other side. Everything else is a loss.
//   - The smoothed round trip includes the time a datagram waits to be handed in,
//     and the peer's wait for its next datagram, up to its tick. A caller that stamps
//     arrivals sets a shared [ManualClock] before each Receive. For a ping display,
//     let the application's own payload echo a time stamp and the wait.
//
// A caller that follows Deadline leaves [Config].PollInterval at zero; one that
// polls on a tick sets it, so that heartbeats are not a tick late.
//
// [ReliableChannel] is the same machine under a header of the caller's own.
//
// # Which delivery for what
//
//	                       order            after a loss, the others      costs
//	AppendDatagram         none, may lose   do not notice                 the datagram
//	Send                   none             do not wait                   a resend of the lost one
//	Send, Config.Ordered   by id            wait for it, then come at     copies of up to 255 events
//	                                        once                          at the receiver
//	OrderedLane            by id            wait, and are sent again      resends of all that followed,
//	                                                                      no memory at the receiver
//
// Take Send for events that stand on their own, with Ordered where they do not,
// and an [OrderedLane] where the receiver must stay as simple as a counter or the
// packets are of another layout. With Config.Outcomes an application resends
// state its own way. A map, a replay, a texture goes by package transfer.
//
// # Invariants
//
// The code and its tests cite these by number.
//
//	I1  One meaning per bit: bit n of AckBits stands for sequence Ack − 1 − n, and
//	    is set exactly when that datagram was received and taken in.
//	I2  One fate per sequence: every datagram sent is delivered, lost or
//	    undecided, and a fate does not change.
//	I3  Exactly once per event, or the session says that it ended.
//	I4  Time moves forward, by one reading of the clock per call, whatever the
//	    order of calls.
//	I5  Bytes cannot hurt: bounded work and memory, no panic, and an error changed
//	    nothing but counters, and of a sealed datagram that opened, that it cannot
//	    come again.
//
// # Sealed sessions
//
// Whoever sees one bare datagram can forge the next: a Disconnect, an
// acknowledgement that drops events, a spawn. [Config].Seal and Open end that. The
// package imports no cryptography; both are what crypto/cipher.AEAD offers, from
// keys that are fresh for this session and different for the two directions, of a
// handshake of your own (ExampleConfig_seal derives them from a shared secret) or of
// the package endpoint, which does all of it.
//
// It gives: payloads that are secret and authentic, headers that are authentic, each
// datagram taken in at most once, nothing that comes back to its sender. It does not
// give: a hidden header, size or time of a datagram; protection from dropping and
// delaying; forward secrecy beyond what the keys have. Nobody outside has audited it.
// SECURITY.md says against whom which promise holds.
//
// A [ReliableChannel] has no bytes, so its user seals (ExampleReliableChannel_sealed):
//
//	out:   Seal(header, nonce(number), payload, header)
//	       number: 0 for the first datagram, 1 more for each; Sequence is its low 16 bits
//	in:    number := newest + int64(int16(h.Sequence-uint16(newest))), newest the highest opened, −1 before any
//	       refuse what is below 0, or Duplicate or Stale to an AckTracker of what was opened
//	       Open, and only then Receive of that tracker, and of the channel
//
// Who signs datagrams with a MAC instead needs the same two things besides the key:
// the direction in what is signed, or a datagram that is reflected is good, and that
// replay window, or a recorded one is good for ever.
//
// # The protocol
//
// docs/protocol.md of the module is the protocol, in numbered requirements that the
// code and its tests cite (P-4.1.2); docs/requirements.md lists who cites which. It
// is enough for a second implementation, and testdata/vectors to test one. What it
// decides that is easy to decide otherwise:
//
//   - Event ids on the wire span at most 256, rather than 256 being undelivered
//     (P-5.2.2). With a count, the receiver ignores a late event 256 or more ids
//     back, and acknowledges its datagram: the event is lost without a word. The
//     receiver in turn takes ids up to 4,096 ahead of the oldest missing one, for
//     peers that count instead (P-5.3.1).
//   - A datagram is taken in whole or not at all (P-2.3.1): one with an event id out
//     of the window, or that [Config].Accept refuses, is not acknowledged.
//   - Acknowledgements of what was never sent say nothing, and an ack newer than
//     the last sequence voids its bits too (P-4.2.2).
//   - A session whose oldest event waits for 15 s as the oldest ends though
//     datagrams arrive (P-8.2.1): a path that swallows large datagrams must not look
//     alive for ever. So does one that has sent half of all sequences since the
//     newest acknowledged.
//   - A heartbeat goes early when a burst of 32 datagrams, 64 in the wide form,
//     awaits acknowledgement (P-6.3.3).
//   - On an [OrderedLane] an event is also due once an older one was resent
//     (P-12.2.2): the receiver discarded it. Without that one loss delays all later
//     events for ever.
//
// # Not provided
//
// No keys: without [Config].Seal and Open anyone who sees a datagram can forge
// one. No handshake: Connect and Accept are the application's. Package endpoint
// has both, and proves addresses. No fragmentation: a datagram is at most 1200
// bytes. No congestion control: the application chooses its rates,
// [Config].EventRate bounds what copies add. No concurrency: a session belongs
// to one goroutine at a time, different sessions share nothing.
package ackbits
