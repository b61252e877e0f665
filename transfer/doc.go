// Package transfer sends large things (a map at join, a replay, a texture) over a session
// that carries a game, without the game noticing. A transfer uses what the link has to
// spare and gives way to everything else, first of all to the game's own datagrams. The
// receiver checks the SHA-256 of what it has stored.
//
//	t, err := transfer.New(session, transfer.Config{Type: 200, Accept: open})
//	out, err := t.Send([]byte("dust2"), file, size)
//
// Like the session, a [Transfers] opens no socket, starts no goroutine and reads a clock
// that can be injected. Each session has one, for all files in both directions, so that
// they share one rate.
//
// # The caller's part
//
// The session needs Config.Outcomes, and a Config.Accept that passes the datagrams of
// [Config].Type to [Transfers.Receive] and returns what that returns:
//
//	var t *transfer.Transfers
//	cfg.Outcomes = true
//	cfg.Accept = func(h ackbits.Header, payload []byte) error {
//		if h.Type == 200 {
//			return t.Receive(payload)
//		}
//		return nil // the game's own
//	}
//
// Where your loop flushes the session, which is after every Receive and at its Deadline,
// do two more things:
//
//	for o, ok := session.NextOutcome(); ok; o, ok = session.NextOutcome() {
//		t.Outcome(o) // those of the game's datagrams are ignored
//	}
//	for datagram := range session.Due(buf) { conn.Write(datagram) }
//	for datagram := range t.Due(buf) { conn.Write(datagram) }
//
// [Transfers.Deadline] says when Due next has something to do, as the session's Deadline
// does. If you wake at that time, and call Receive when a datagram arrives, states and
// events are delayed by a few milliseconds more than without a transfer. If you do both
// on a tick instead, set [Config].PollInterval: a tick's worth of chunks is then sent at
// once, the game's datagrams wait for it, and a queue is noticed a tick later.
//
// [Outgoing] and [Incoming] tell how far a file has got and how it ended. At the sender
// Err returns io.EOF once the receiver has said that it has stored the whole file and
// that the digest is right. Keep the source, and the session, until then: Close and
// Shutdown of the session end its transfers. Before you close a session, wait until
// [Transfers.Idle] reports that neither end has anything left to say. If a session was
// lost, a transfer can go on over the next one: the receiver passes what [Incoming.Have]
// returned to [Config].Resume, and what it has stored is not sent again.
//
// # Which delivery for what
//
// An event is for what is small and must arrive soon: a spawn, a line of chat. Send
// accepts 256 of them at a time, of up to 1177 bytes each, and retransmits them as fast
// as it can. That is right for events and wrong for a map: 300 KiB sent as events through
// 2 Mbit/s hold up the game's states for 150 ms. Ordered and [ackbits.OrderedLane] only
// add an order. A transfer is for what is larger than some ten kilobytes and may take as
// long as it takes. Send many small things as events, or join them into one file: a file
// costs a round trip before its first byte, except the first one of a session.
//
// # How it finds its rate
//
// Some chunks ask the receiver for an answer, which says when they arrived by the
// receiver's clock. Changes of the one-way delay are therefore known to the microsecond,
// although the two clocks need not agree.
//
// To see how fast the link is, the sender now and then sends a probe: a few chunks in a
// row, faster than the rate. How fast they arrive is how fast the link carries them. The
// first probe follows right behind the offer. While the transfer starts there is one in
// each round trip; later one in every third, at one and a half times the rate. At the
// start the last two chunks of a probe leave together, and the time between their
// arrivals says how fast the next probe may be. What it shows may be a burst, which the
// shaper of a provider lets through before it slows down. So at the start no more than
// 300 KiB and twice what has arrived is in flight.
//
// As soon as a queue of more than some 8 ms stands, the rate is lowered, and nothing is
// sent until that queue is gone. A link whose queue is too short for that shows its limit
// by losing chunks. Losses that do not depend on the rate do not slow a transfer down.
//
// # Hostile peers
//
// A hostile sender can make the receiver store what Accept granted, and remember 64
// transfers, with at most 128 KiB each for what lies behind gaps. A hostile receiver can
// make a transfer to it slow, or faster than the link allows; [Config].MaxRate bounds
// that. The peer hears nothing of errors at this end but the text of an error that Accept
// returned. What the peer says is made printable before it gets into an error. Nothing
// here is secret or authentic by itself: that is the session's part, see
// [ackbits.Config].Seal. The digest proves that the bytes are those of the offer, not who
// made the offer.
package transfer
