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

// Transfers: its configuration and its calls, but for Due and Deadline, which are in
// due.go. One transfer is in outgoing.go or incoming.go.

// Config says how Transfers works.
type Config struct {
	// Type is that of all datagrams of this package in the session, 16 to 255, the
	// same at both ends.
	Type ackbits.Type
	// Clock is what every call reads; nil is the system's. Use the session's.
	Clock ackbits.Clock
	// PollInterval is the tick of a caller that calls Due on a tick rather than at
	// Deadline: what may go in so long goes at once. 0: the caller follows Deadline.
	PollInterval time.Duration
	// MaxRate bounds what all outgoing files together take, in bytes a second with
	// all headers; 0: what the link has to spare.
	MaxRate int
	// Accept is asked where an incoming file goes. An error refuses it, and its text
	// is the reason that the sender gets, cut to 255 bytes: return words that are meant
	// for the peer, not an error of os, which names a path. nil refuses everything.
	// It is called from Receive, so it must not call the session. The Offer is the
	// peer's word: look at Size before granting it, and do not take Name for a path, nor
	// print it unquoted.
	Accept func(Offer) (Sink, error)
	// Resume returns what Incoming.Have said over an earlier session of the file
	// that is offered and was just accepted, whose Sink has those bytes; nil: of
	// none. Called after Accept. If the Sink has other bytes than that says, the
	// transfer ends with ErrDigest, and Have is empty from then on.
	Resume func(Offer) []byte
}

const (
	// maxActive is how many files are on their way at once in a direction; further
	// ones wait.
	maxActive = 16
	// idReach is the reach of the receiver's memory of offers (ids): one that is this far
	// behind the newest is taken for one that was heard. It matters for offers that were
	// not answered yet: who answered has the file and knows it by its id.
	idReach = 64
	// idLife is how many further ids may be given out while a file runs: half of all, since
	// what is further behind would look new.
	idLife = 1 << 15
	// maxIncoming bounds what a peer can have remembered: incoming files, and ended
	// ones that it or the application has not heard of yet. An offer beyond it is
	// not acknowledged and comes again.
	maxIncoming = 64
	// deafAnswers is how many answers without any outcome show that nobody hands
	// outcomes in. The offer's comes before the first answer. After outcomes that came,
	// it takes deafTime, too: an application that stood still reads many answers at once.
	deafAnswers = 8
	deafTime    = 5 * second
	// hashBuffer is how much is read from a file at once to be hashed.
	hashBuffer = 32 << 10
)

// Transfers is one end of all transfers of a session.
type Transfers struct {
	session *ackbits.Session
	cfg     Config
	time    timeline.Timeline

	outgoing []*Outgoing
	incoming []*Incoming
	nextID   uint16
	ids      ackbits.AckTracker // of offers received
	turn     int                // of outgoing, whose chunk is next

	flight flight
	rate   rate
	number int64 // of the latest datagram of ours; the session's sequence is its low 16 bits
	closed error // what the session said when it took no more datagrams, before its end
	answer answer

	outcomes bool  // one was handed in
	answers  int   // that came since the latest
	deafAt   int64 // when the first of them did

	hashing  bool  // there is something to hash
	hashAt   int64 // not before
	hashTurn int   // the file that is hashed first, of those on their way
	buf      []byte
	payload  []byte
}

// answer is what an ask calls for (P-14.2.4).
type answer struct {
	due     bool
	serial  uint16
	arrived uint32
}

// New returns the transfers of a session, which must have Config.Outcomes and take
// payloads of 521 bytes. A value of cfg that is out of its range is
// ackbits.ErrConfig.
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

// Send offers a file to the peer: a name of up to 255 bytes, which is copied, and
// size bytes of source, which must not change until the transfer has ended. They
// are read once to be hashed, in steps by Due, then as they are sent. An error of source
// ends the transfer and stays here, in Err; the peer only hears that it failed.
//
// Sixteen files are on their way at once; the others wait.
func (t *Transfers) Send(name []byte, source io.ReaderAt, size int64) (*Outgoing, error) {
	o, err := t.add(name, source, size)
	if err != nil {
		return nil, err
	}
	o.digest = newDigest()
	return o, nil
}

// SendDigest is Send with the SHA-256 of the source, for those who send one file to
// many.
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

// Receive handles the payload of a datagram of Config.Type. Call it in the
// session's Accept and return what it returns, so that what could not be stored is
// not acknowledged. It does not call the session and keeps no part of payload. With
// ErrMessage the payload is none of this package and nothing has changed.
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

// mayOffer reports whether the next id may be given out, so that the receiver can tell
// what is old from what is new (P-14.2.1).
func (t *Transfers) mayOffer() bool {
	return !slices.ContainsFunc(t.outgoing, func(o *Outgoing) bool {
		ahead := t.nextID - o.offer.ID
		return o.offered && (ahead >= idLife || ahead >= idReach && !o.accepted && o.err == nil)
	})
}

// running returns the incoming file of an id that its sender may still speak of.
func (t *Transfers) running(id uint16) *Incoming {
	for _, in := range t.incoming {
		if in.offer.ID == id && !in.over() {
			return in
		}
	}
	return nil
}

// heard reports whether an offer with this id came before, or would be too old.
func (t *Transfers) heard(id uint16) bool {
	a := t.ids.Classify(id)
	return a == ackbits.Duplicate || a == ackbits.Stale
}

// offered handles an offer. One that comes again is one (P-14.2.1).
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

// Outcome tells t what became of a datagram. Call it with every outcome of the
// session; others' are ignored. An outcome that is missing counts as a loss: its chunk
// is sent again, after two seconds at most, and the rate suffers. So fetch them before the
// session's queue of 1,024 drops some (Stats.OutcomesDropped): at 100 Mbit/s it is full
// after 80 ms.
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

// Stats tells of what this end sends.
type Stats struct {
	Chunks   uint64 // sent, repeats included
	Repeated uint64 // sent again, because they seemed to be lost
	Needless uint64 // seemed to be lost, and arrived after all
	Rate     int    // bytes a second, with all headers, at the moment
}

// Stats returns the counters.
func (t *Transfers) Stats() Stats {
	return Stats{uint64(t.flight.count), t.flight.repeats, t.flight.needless, int(t.rate.bytes)}
}

// Idle reports whether nothing is left to do: every file has ended, at both ends, as far
// as is known here. Until then the session is needed.
func (t *Transfers) Idle() bool {
	for x := range t.words() {
		if !x.over() {
			return false
		}
	}
	return !t.answer.due
}

// Incoming yields the files that are on their way from the peer, in the order of
// their offers, and once each that has ended.
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
