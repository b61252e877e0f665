package transfer

import (
	"crypto/sha256"
	"io"
	"iter"
	"slices"
	"time"

	"github.com/ackbits/ackbits"
	"github.com/ackbits/ackbits/internal/timeline"
)

// Transfers: its configuration and its calls. Due and Deadline are in due.go, a single
// transfer is in outgoing.go or incoming.go.

// Config configures a Transfers. Type is required; New refuses invalid values with
// ackbits.ErrConfig.
type Config struct {
	// Type is the type of all datagrams of this package in the session: 16 to 255, and
	// the same at both ends.
	Type ackbits.Type
	// Clock is read by every call that depends on time. If nil, the system's. It must be
	// the session's: with another, chunks go at a wrong rate, and in virtual time, where
	// the system's hardly moves, soon no more.
	Clock ackbits.Clock
	// PollInterval is for a caller that calls Due on a tick: the length of that tick. The
	// chunks of a whole tick are then sent at once. 0: the caller wakes at Deadline.
	PollInterval time.Duration
	// MaxRate limits all outgoing files together, in bytes a second, headers included. 0:
	// what the link has to spare.
	MaxRate int
	// Accept decides on an incoming file and returns where to store it. nil refuses every
	// file. If it returns an error, the file is refused, and the sender gets the error's
	// text, cut to 255 bytes, as the reason: return words that are meant for the peer,
	// not an error of package os, which names a path. The Offer is only what the peer
	// says: check Size before you grant it, do not use Name as a path, and do not print
	// it unquoted. Accept is called from Receive, so it must not call the session.
	Accept func(Offer) (Sink, error)
	// Resume is called after Accept has accepted a file. If an earlier session has
	// transferred a part of that file, and the Sink holds it, return what Incoming.Have
	// returned then; else nil. If the bytes in the Sink are other ones, the transfer ends
	// with ErrDigest, and Have is empty from then on.
	Resume func(Offer) []byte
}

const (
	// maxActive is how many files are sent at once in each direction; further ones wait.
	maxActive = 16
	// idReach is how far back the receiver remembers which ids were offered (ids): an
	// offer that is this far behind the newest counts as one that came before. This
	// matters only for offers that are not answered yet. Once an offer is answered, the
	// receiver has the file and finds it by its id.
	idReach = 64
	// idLife is how many further ids may be used while a file is being sent: half of all
	// ids, since one that is further behind would look new.
	idLife = 1 << 15
	// maxIncoming limits what a peer can make this end remember: incoming files, and
	// ended ones whose end the peer or the application has not heard of yet. An offer
	// beyond it is not acknowledged, so the peer sends it again.
	maxIncoming = 64
	// deafAnswers is how many answers without a single outcome show that the caller
	// passes no outcomes on. The outcome of the offer comes before the first answer. If
	// outcomes did come earlier, deafTime must have passed, too: an application that
	// stood still reads many answers at once.
	deafAnswers = 8
	deafTime    = 5 * second
	// hashBuffer is how much is read from a file at once to be hashed.
	hashBuffer = 32 << 10
)

// Transfers is one end of all transfers of a session. Like the session, it is not safe for
// concurrent use.
type Transfers struct {
	session *ackbits.Session
	cfg     Config
	time    timeline.Timeline

	outgoing []*Outgoing
	incoming []*Incoming
	nextID   uint16
	ids      ackbits.AckTracker // of offers received
	turn     int                // index into outgoing: whose chunk was sent last

	flight flight
	rate   rate
	number int64 // of the latest datagram of ours; the session's sequence is its low 16 bits
	closed error // why the session refused a datagram before it ended
	answer answer

	outcomes bool  // Outcome was called
	answers  int   // how many answers came since the latest outcome
	deafAt   int64 // when the first of these answers came

	hashing  bool  // there is something to hash
	hashAt   int64 // when hashing may go on
	hashTurn int   // which of the files in flight is hashed first
	buf      []byte
	payload  []byte
}

// answer is the answer to an ask (P-14.2.4).
type answer struct {
	due     bool
	serial  uint16
	arrived uint32
}

// New returns the transfers of a session. The session must have Config.Outcomes and a
// MaxPayload of at least 521 bytes. If a value of cfg is out of its range, or the
// session's payloads are too small, the error is ackbits.ErrConfig and names it.
func New(s *ackbits.Session, cfg Config) (*Transfers, error) {
	switch {
	case cfg.Type < 16:
		return nil, configError("Type below 16")
	case cfg.PollInterval < 0:
		return nil, configError("PollInterval is negative")
	case cfg.MaxRate < 0:
		return nil, configError("MaxRate is negative")
	case s.MaxPayload() < chunkHeader+unit:
		return nil, configError("the session's datagrams are too small for 512 bytes of a file")
	}
	t := &Transfers{session: s, cfg: cfg, number: -1, payload: make([]byte, 0, ackbits.MaxDatagramSize)}
	t.time.Start(cfg.Clock)
	t.rate.init(int64(cfg.MaxRate), int64(cfg.PollInterval))
	return t, nil
}

// Send offers a file to the peer. name has up to 255 bytes and is copied. The file is the
// first size bytes of source, at most 2 TiB; if either is too long, the error is
// ErrLimit. Once the session has ended, the error is the session's. source must not
// change until the transfer has ended. It is read within Due only: once in steps, to be
// hashed, and then each part as it is sent. If it fails, the transfer ends, Err returns
// its error, and the peer only hears that the source failed.
//
// Up to 16 files are sent at the same time; the others wait.
func (t *Transfers) Send(name []byte, source io.ReaderAt, size int64) (*Outgoing, error) {
	o, err := t.add(name, source, size)
	if err != nil {
		return nil, err
	}
	o.digest = newDigest()
	return o, nil
}

// SendDigest is Send for a source whose SHA-256 is known, so that it need not be read to
// be hashed. It is for those who send one file to many peers.
func (t *Transfers) SendDigest(name []byte, source io.ReaderAt, size int64, digest [sha256.Size]byte) (*Outgoing, error) {
	o, err := t.add(name, source, size)
	if err != nil {
		return nil, err
	}
	o.offer.Digest, o.hashed = digest, true
	return o, nil
}

func (t *Transfers) add(name []byte, source io.ReaderAt, size int64) (*Outgoing, error) {
	if err := t.ended(); err != nil {
		return nil, err
	}
	if len(name) > maxText {
		return nil, limitError("name", int64(len(name)), maxText)
	}
	if size < 0 || size > maxSize {
		return nil, limitError("size", size, maxSize)
	}
	o := &Outgoing{source: source}
	o.transfer = transfer{t: t, offer: Offer{Name: slices.Clone(name), Size: size}}
	t.outgoing = append(t.outgoing, o)
	t.hashing, t.hashAt = true, 0
	return o, nil
}

// Receive handles the payload of a datagram of Config.Type. Call it in the session's
// Accept and return what it returns, so that a chunk which could not be stored is not
// acknowledged. If payload is malformed, or contradicts what was offered, the error is
// ErrMessage and nothing has changed. Receive does not call the session and keeps no part
// of payload.
func (t *Transfers) Receive(payload []byte) error {
	m, err := parse(payload)
	if err != nil {
		return err
	}
	now := t.time.Read()
	switch m.kind {
	case kindOffer:
		return t.offered(&m.offer)
	case kindAnswer:
		if c, serial := t.flight.bySerial(m.serial); c != nil && c.ask && !c.told {
			c.told = true
			if t.answers++; t.answers == 1 {
				t.deafAt = now
			}
			t.rate.answered(c, serial, m.arrived, t.flight.flying, t.flight.rtt.Smoothed(), now)
		}
		return nil
	case kindAccept, kindRefuse, kindDone, kindDecline:
		for _, o := range t.outgoing {
			if o.offered && o.offer.ID == m.id {
				return o.receive(&m)
			}
		}
		return nil
	}
	if in := t.running(m.id); in != nil {
		err = in.receive(&m)
	} else if m.kind == kindStop {
		t.ids.Receive(m.id) // an offer that comes later is void
	} else if !t.heard(m.id) {
		return ErrMessage // never offered
	}
	if err == nil && m.kind == kindAsk {
		t.answer = answer{true, m.serial, uint32(now / 1000)}
	}
	return err
}

// mayOffer reports whether the next id may be used. If not, the receiver could not tell a
// new offer from an old one (P-14.2.1).
func (t *Transfers) mayOffer() bool {
	return !slices.ContainsFunc(t.outgoing, func(o *Outgoing) bool {
		ahead := t.nextID - o.offer.ID
		return o.offered && (ahead >= idLife || ahead >= idReach && !o.accepted && o.err == nil)
	})
}

// running returns the incoming file of an id, if its sender may still send messages about
// it.
func (t *Transfers) running(id uint16) *Incoming {
	for _, in := range t.incoming {
		if in.offer.ID == id && !in.over() {
			return in
		}
	}
	return nil
}

// heard reports whether an offer with this id came before, or is too old to tell.
func (t *Transfers) heard(id uint16) bool {
	a := t.ids.Classify(id)
	return a == ackbits.Duplicate || a == ackbits.Stale
}

// offered handles an offer. A copy of an offer that came before changes nothing
// (P-14.2.1).
func (t *Transfers) offered(offer *Offer) error {
	if t.running(offer.ID) != nil || t.heard(offer.ID) {
		return nil
	}
	if len(t.incoming) >= maxIncoming {
		t.incoming = slices.DeleteFunc(t.incoming, func(in *Incoming) bool { return in.over() })
	}
	if len(t.incoming) >= maxIncoming {
		return errBusy
	}
	t.ids.Receive(offer.ID)
	in := &Incoming{transfer: transfer{t: t, offer: *offer}}
	in.offer.Name = slices.Clone(offer.Name)
	t.incoming = append(t.incoming, in)
	err := ErrRefused
	if t.cfg.Accept != nil {
		in.sink, err = t.cfg.Accept(in.offer)
		if err == nil && in.sink == nil {
			err = ErrRefused
		}
	}
	if err != nil {
		in.seen = true
		in.finish(kindRefuse, err, text(err))
		return nil
	}
	if t.cfg.Resume != nil {
		in.have.load(t.cfg.Resume(in.offer), &in.offer)
		for r := range in.have.runs() {
			in.done += in.offer.bytes(r)
		}
	}
	in.digest = newDigest()
	in.say(kindAccept, in.have.appendRuns(nil, offerSize-3))
	t.hashing = true
	return nil
}

// Outcome tells t what became of a datagram. Pass it every outcome of the session; those
// of other datagrams are ignored. If the outcome of a chunk is missing, the chunk counts
// as lost: it is sent again after two seconds at most, and the rate suffers. So fetch
// outcomes before the session's queue of 1,024 drops some (Stats.OutcomesDropped): at 100
// Mbit/s it is full after 80 ms.
func (t *Transfers) Outcome(o ackbits.Outcome) {
	if o.Type != t.cfg.Type || t.number < 0 {
		return
	}
	t.outcomes, t.answers = true, 0
	now := t.time.Read()
	number := t.number - int64(uint16(t.number)-o.Sequence)
	if c := t.flight.byNumber(number); c != nil {
		t.flight.outcome(c, o, now)
		return
	}
	for _, x := range t.outgoing {
		x.word.outcome(number, o.Delivered, now)
	}
	for _, x := range t.incoming {
		x.word.outcome(number, o.Delivered, now)
	}
}

// Stats counts the chunks that this end has sent since its start.
type Stats struct {
	Chunks   uint64 // all chunks sent, retransmissions included
	Repeated uint64 // of Chunks: retransmissions of chunks presumed lost
	Needless uint64 // chunks presumed lost that were acknowledged later
	Rate     int    // the current rate in bytes a second, headers included
}

// Stats returns the counters.
func (t *Transfers) Stats() Stats {
	return Stats{uint64(t.flight.count), t.flight.repeats, t.flight.needless, int(t.rate.bytes)}
}

// Idle reports whether nothing is left to do: as far as this end knows, every file has
// ended at both ends. Keep the session until then.
func (t *Transfers) Idle() bool {
	for x := range t.words() {
		if !x.over() {
			return false
		}
	}
	return !t.answer.due
}

// Incoming yields the files that the peer is sending, in the order of their offers. A
// file that has ended is yielded one last time.
func (t *Transfers) Incoming() iter.Seq[*Incoming] {
	return func(yield func(*Incoming) bool) {
		for _, in := range slices.Clone(t.incoming) {
			if in.seen {
				continue
			}
			in.seen = in.Err() != nil
			if !yield(in) {
				return
			}
		}
	}
}
