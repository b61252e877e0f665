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
//     the datagrams sent, [Session.Close] to leave;
//   - getters, which read no clock and change nothing: [Session.Deadline],
//     [Session.Err], [Session.RTT], [Session.Stats], [Session.InFlight],
//     [Session.Room], [Session.MaxPayload], [Session.MaxEvent].
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
//     peer sends events again that had arrived.
//   - For state of which only the newest counts check [Incoming].Latest, not
//     Arrival: a snapshot that is late behind a heartbeat is still the latest
//     snapshot. It is latest of its Type: a Connect is, too.
//   - Take a fresh random token for each session. With an old one, everything
//     the peer sends looks stale.
//   - Both directions share the token, so a datagram that is reflected to its
//     sender looks like the peer's: let the socket layer check the address. A
//     token of 0 is a token like any other. A Stale or Duplicate datagram is valid
//     and renews the timeout.
//   - Only AppendDue finds timeouts. After a pause, hand in what has arrived
//     first: a datagram that waited in the socket keeps the session alive.
//     An expired read deadline makes the net package return before it looks at
//     the socket, so read once more before you believe that nothing waits.
//   - Events sent just before Close go out once, and where they arrive behind the
//     Disconnect they are refused. To be sure of them, wait until InFlight is 0.
//     That tells of your own events; the peer says in its own data when it has
//     none left.
//   - Err after a good end is ErrClosed, where Close was called, and ErrPeerLeft
//     on the other side. Everything else is a loss.
//   - The smoothed round trip includes the time a datagram waits to be handed in.
//     A caller that stamps arrivals sets a shared [ManualClock] before each
//     Receive.
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
// state its own way.
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
//	    nothing but counters.
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
//   - An event that waits for 15 s ends the session though datagrams arrive
//     (P-8.2.1): a path that swallows large datagrams must not look alive for ever.
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
