// Package transfer sends something large over a session that carries a game,
// without the game noticing: a map at join, a replay, a texture. It takes what the
// link has to spare and gives way to everything else, to the game's own datagrams
// first. What arrives is checked against the SHA-256 of what was sent.
//
//	t, err := transfer.New(session, transfer.Config{Type: 200, Accept: open})
//	out, err := t.Send([]byte("dust2"), file, size)
//
// Like the session, a [Transfers] opens no socket, starts no goroutine and reads a
// clock that can be injected. There is one for each session, for all files both ways,
// so that they share one rate.
//
// # The caller's part
//
// The session needs Config.Outcomes, and an Accept that hands the datagrams of
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
// Wherever the loop of the session flushes it, after every Receive and when it is
// time, two more things are done:
//
//	for o, ok := session.NextOutcome(); ok; o, ok = session.NextOutcome() {
//		t.Outcome(o) // those of the game's datagrams are ignored
//	}
//	for datagram := range session.Due(buf) { conn.Write(datagram) }
//	for datagram := range t.Due(buf) { conn.Write(datagram) }
//
// [Transfers.Deadline] says when Due has something to do next, as the session's does.
// Follow it, and hand in datagrams when they arrive: then states and events come a few
// milliseconds later than without a transfer. A caller that does both on a tick sets
// Config.PollInterval; it sends a tick's worth at once, which the game's datagrams wait
// for, and finds out about a queue a tick late.
//
// [Outgoing] and [Incoming] tell how far a file is and how it ended. Err of the sender
// is io.EOF once the receiver has said that all is stored and has the right digest: only
// then may the source go. Keep the session until then, Close and Shutdown end
// transfers, too; [Transfers.Idle] tells when nothing more has to be said. After a session that was lost, the receiver hands what
// [Incoming.Have] said to [Config].Resume, and what it has is not sent again.
//
// # Which delivery for what
//
// An event is for what must arrive soon and is small: a spawn, a line of chat. Send
// takes 256 of them at a time, of 1177 bytes each, and repeats them as fast as it can,
// which is what they are for and what a map must not do: 300 KiB as events through
// 2 Mbit/s hold up the game's states for 150 ms. Ordered and OrderedLane are the same
// with an order. A transfer is for what is larger than some ten kilobytes, and may take
// as long as it takes. Many small things are better events, or one file: of each but the
// first, a round trip passes before its first byte.
//
// # How it finds its rate
//
// Chunks ask for an answer now and then, which says when they arrived by the receiver's
// clock, so changes of the delay on the way there are known to the microsecond. Short
// rows of chunks that are sent faster than the rate, at the start once a round trip, the
// first right behind the offer, later every third round trip at one and a half times, show
// how fast the link lets them through. At the start the last two of a row leave together:
// how far apart they arrive says how fast the next may go. That may be a burst, which a
// provider's shaper lets through and nothing more, so no more is in flight then than 300 KiB
// and twice what has arrived. As soon as a queue of more than some 8 ms stands,
// the rate goes down and what made the queue is waited for. A link whose queue is too
// short for that shows its limit by losing chunks; losses that are there at every rate
// do not slow a transfer down.
//
// # Hostile peers
//
// A sender can make the receiver store what Accept granted, and otherwise remember 64
// transfers, with at most 128 KiB each of what lies behind gaps. A receiver can make
// its own transfer slow, or fast beyond what the link has to spare; Config.MaxRate
// bounds that. Of errors here the peer hears the text of Accept's alone; what it says
// itself is made printable. Nothing here is secret or authentic by itself: that is the session's,
// see ackbits.Config.Seal. The digest says that the bytes are those of the offer, not
// who made the offer.
package transfer
