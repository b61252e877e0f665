package transfer

// What both ends of a transfer share, and the messages that are retransmitted until they
// are acknowledged. Chunks are not among them.

// transfer is the part that an Outgoing and an Incoming share.
type transfer struct {
	t       *Transfers
	offer   Offer
	offered bool // the peer may know of it
	word    word
	done    int64 // bytes
	err     error
}

// word is the message of a transfer that is retransmitted until it is acknowledged. There
// is at most one: a newer one implies the older.
type word struct {
	kind   kind   // 0: none
	body   []byte // what follows the id; of an offer it is built from the Offer
	number int64  // of the datagram that carried it last, if it was sent
	at     int64  // when it is to be sent next
	tries  int
}

// sent notes that a datagram carries the word. The wait doubles with each.
func (w *word) sent(number, now, patience int64) {
	w.number = number
	w.at = now + min(patience<<min(w.tries, 6), maxPatience)
	w.tries++
}

// outcome notes the outcome of a datagram.
func (w *word) outcome(number int64, delivered bool, now int64) {
	switch {
	case w.kind == 0 || w.tries == 0 || w.number != number:
	case delivered:
		*w = word{}
	default:
		w.at = min(w.at, now)
	}
}

// say queues a message; it replaces the one before.
func (x *transfer) say(k kind, body []byte) {
	x.word = word{kind: k, body: body, at: x.t.time.Now}
}

// appendWord appends the message.
func (x *transfer) appendWord(dst []byte) []byte {
	if x.word.kind == kindOffer {
		return x.offer.append(dst)
	}
	return append(appendHead(dst, x.word.kind, x.offer.ID), x.word.body...)
}

// end ends the transfer and drops its message.
func (x *transfer) end(reason error) {
	x.err = reason
	x.word = word{}
}

// over reports whether the transfer has ended and the peer has acknowledged its last
// message.
func (x *transfer) over() bool { return x.err != nil && x.word.kind == 0 }

func (x *transfer) progress() (done, size int64) { return x.done, x.offer.Size }

func (x *transfer) reason() error {
	if x.err == nil {
		return x.t.ended()
	}
	return x.err
}
