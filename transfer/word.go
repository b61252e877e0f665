package transfer

// What both ends of a transfer share, and the messages that are repeated until they
// are known to have arrived. Chunks are not here.

// transfer is what both ends of one have.
type transfer struct {
	t       *Transfers
	offer   Offer
	offered bool // the peer may know of it
	word    word
	done    int64 // bytes
	err     error
}

// word is a message of a transfer that is sent until it is acknowledged. There is
// at most one: a newer one implies the older.
type word struct {
	kind   kind   // 0: none
	body   []byte // behind the id; an offer's is in the offer
	number int64  // of the datagram that carried it last, if it was sent
	at     int64  // when it is to be sent next
	tries  int
}

// sent notes that the word left in a datagram. Each time it waits twice as long.
func (w *word) sent(number, now, patience int64) {
	w.number = number
	w.at = now + min(patience<<min(w.tries, 6), maxPatience)
	w.tries++
}

// outcome learns what became of a datagram.
func (w *word) outcome(number int64, delivered bool, now int64) {
	switch {
	case w.kind == 0 || w.tries == 0 || w.number != number:
	case delivered:
		*w = word{}
	default:
		w.at = min(w.at, now)
	}
}

// say has a message sent.
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

// end ends the transfer; nothing is said any more.
func (x *transfer) end(reason error) {
	x.err = reason
	x.word = word{}
}

// over reports whether the transfer has ended, and the peer knows all that is to be said.
func (x *transfer) over() bool { return x.err != nil && x.word.kind == 0 }

func (x *transfer) progress() (done, size int64) { return x.done, x.offer.Size }

func (x *transfer) reason() error {
	if x.err == nil {
		return x.t.ended()
	}
	return x.err
}
