package ackbits

import (
	"slices"
	"time"
)

// The dumb model: what the library must do, said with sets, lists and scans, in
// the order of the rules and with no thought of speed. The walks compare a real
// session with it after every step. Its parts that deal with numbers that wrap
// take the sizes as a parameter, so that the small worlds can enumerate the very
// same rules with windows of a few numbers.

// modelSizes are the sizes of the protocol.
type modelSizes struct {
	seqs, ids     int64 // how many numbers there are before they wrap
	acks          int64 // bits in a header
	history       int64 // how many sequences before the newest a tracker remembers
	sendWindow    int64 // ids from the oldest undelivered one on that may be on the wire
	receiveWindow int64 // ids from the oldest missing one on that the receiver takes
}

func sizesOf(cfg Config) modelSizes {
	s := modelSizes{seqs: 1 << 16, ids: 1 << 16, acks: 32, history: 64, sendWindow: 256, receiveWindow: 4096}
	if cfg.Wide {
		s.acks = 64
	}
	if cfg.Ordered {
		s.receiveWindow = 256
	}
	return s
}

// wrapped is n modulo size, not negative.
func wrapped(n, size int64) int64 { return (n%size + size) % size }

// nums is a sorted set of numbers.
type nums []int64

func (s nums) has(n int64) bool {
	_, ok := slices.BinarySearch(s, n)
	return ok
}

func (s *nums) add(n int64) {
	if at, ok := slices.BinarySearch(*s, n); !ok {
		*s = slices.Insert(*s, at, n)
	}
}

// below removes the numbers before n and returns how many there were.
func (s *nums) below(n int64) int {
	at, _ := slices.BinarySearch(*s, n)
	*s = slices.Delete(*s, 0, at)
	return at
}

// modelTracker is the receiver's side of the acknowledgements. Numbers do not
// wrap in it; a sequence is read as the nearest number to the newest.
type modelTracker struct {
	newest   int64 // one before the first, if nothing was received
	received nums  // of the newest and those that are remembered before it
}

func (t *modelTracker) judge(z modelSizes, seq int64) (arrival Arrival, number int64) {
	ahead := wrapped(seq-t.newest, z.seqs)
	back := z.seqs - ahead
	switch {
	case ahead > 0 && ahead < z.seqs/2:
		return Newest, t.newest + ahead
	case len(t.received) == 0 || ahead == z.seqs/2:
		return Stale, 0
	case ahead == 0:
		return Duplicate, t.newest
	case back > z.history:
		return Stale, 0
	case t.received.has(t.newest - back):
		return Duplicate, t.newest - back
	}
	return Late, t.newest - back
}

func (t *modelTracker) take(z modelSizes, number int64) {
	t.received.add(number)
	t.newest = max(t.newest, number)
	t.received.below(t.newest - z.history)
}

// is reports whether a tracker of the library knows the same.
func (t *modelTracker) is(real *AckTracker) bool {
	if real.Ack() != uint16(t.newest) {
		return false
	}
	for back := range int64(historySize + 1) {
		if real.received(uint16(back)) != t.received.has(t.newest-back) {
			return false
		}
	}
	return true
}

// header returns what a header of ours says.
func (t *modelTracker) header(z modelSizes) (ack int64, bits uint64) {
	for n := range z.acks {
		if t.received.has(t.newest - 1 - n) {
			bits |= 1 << n
		}
	}
	return wrapped(t.newest, z.seqs), bits
}

// modelInbox is the receiver's window of ids.
type modelInbox struct {
	base int64 // the oldest missing
	have nums  // those received that are not before base
}

func (b *modelInbox) judge(z modelSizes, id int64) (v idState, number int64) {
	ahead := wrapped(id-b.base, z.ids)
	switch {
	case ahead < z.receiveWindow:
		if b.have.has(b.base + ahead) {
			return idKnown, b.base + ahead
		}
		return idNew, b.base + ahead
	case ahead > z.ids/2:
		return idKnown, b.base - (z.ids - ahead)
	}
	return idOutside, 0
}

func (b *modelInbox) take(number int64) {
	b.have.add(number)
	for b.have.has(b.base) {
		b.base++
		b.have.below(b.base)
	}
}

// named returns the number of the datagram that an acknowledgement means, where
// last is the newest sent; not ok for one that is newer, or too far back.
func named(z modelSizes, last, ack int64) (number int64, ok bool) {
	age := wrapped(last-ack, z.seqs)
	return last - age, age < z.seqs/2
}

// modelOutcome is what became of a datagram.
type modelOutcome uint8

const (
	isUndecided modelOutcome = iota
	isAcknowledged
	isLost
)

// modelDatagram is one that was sent.
type modelDatagram struct {
	t       Type // of a bundle: the inner one
	at      int64
	events  []int64
	outcome modelOutcome
}

// modelEvent is one that was handed to Send.
type modelEvent struct {
	data            []byte
	first, last     int64
	sent, delivered bool
	copies          int

	due, backsOff    bool // its last copy is presumed lost
	overtaken, tries int
}

// model is one side of a session.
type model struct {
	cfg   Config // complete
	sizes modelSizes

	reading time.Time
	now     int64
	asOf    int64 // what was due at this time goes

	window modelTracker // sealed: what was opened

	tracker modelTracker
	types   map[int64]Type // of the datagrams accepted
	unacked nums           // of these, the ones no header of ours has acknowledged
	inSince int            // datagrams accepted since we sent one
	inbox   modelInbox
	waiting map[int64][]byte // ordered: by number

	firstSent int64
	sent      []modelDatagram // from firstSent on
	judged    int             // of sent, all before have their outcome
	top       int64           // the newest acknowledged
	accepted  bool            // an acknowledgement of ours came in
	remembers func(number int64) bool

	firstEvent int64
	events     []modelEvent // from firstEvent on
	base       int          // of events, the oldest undelivered
	oldestAt   int64        // when it became that
	budget     int64        // when all copies will have been paid
	owed       int64        // when the oldest event last went though they were not
	copies     int64        // bytes of copies, ever

	path        modelPath
	passedAt    int64 // when the newest datagram acknowledged by ack itself was sent
	sampled     bool
	srtt, rtvar int64
	outcomes    []Outcome
	stats       Stats

	sentAt, heardAt int64
	draining        bool
	leaveBy         int64
	closing         bool
	disconnects     int
	err             error
	asked           int // calls of Accept expected

	// Adaptive: the events that the datagram at hand carries, by place. Which
	// copies go when is not the model's to say.
	follow []int
}

// newModel returns the model of a session whose counters begin at the numbers
// given.
func newModel(cfg Config, reading time.Time, seq, peerSeq, event, peerEvent int64) *model {
	if err := cfg.complete(); err != nil {
		panic(err)
	}
	return &model{
		cfg: cfg, sizes: sizesOf(cfg), reading: reading,
		tracker: modelTracker{newest: peerSeq - 1}, types: map[int64]Type{},
		inbox: modelInbox{base: peerEvent}, waiting: map[int64][]byte{},
		window:    modelTracker{newest: peerSeq - 1},
		firstSent: seq, top: seq - 1, firstEvent: event, disconnects: 3,
	}
}

// read is the timeline: a step back, or of more than a day, is no time.
func (m *model) read(t time.Time) {
	if d := t.Sub(m.reading); d > 0 && d <= 24*time.Hour {
		m.now += int64(d)
	}
	m.reading = t
}

func (m *model) headerSize() int {
	if m.cfg.Wide {
		return 22
	}
	return 18
}

func (m *model) maxPayload() int {
	n := m.cfg.MaxDatagram - m.headerSize()
	if m.cfg.Seal != nil {
		n -= m.cfg.Seal.Overhead()
	}
	return n
}

func (m *model) undelivered() (n int) {
	for i := m.base; i < len(m.events); i++ {
		if !m.events[i].delivered {
			n++
		}
	}
	return n
}

func (m *model) room() int {
	if m.err != nil || m.closing || m.draining {
		return 0
	}
	return 256 + m.cfg.Backlog - m.undelivered()
}

// ended returns why nothing can be sent.
func (m *model) ended() error {
	if m.err == nil && (m.closing || m.draining) {
		return ErrClosed
	}
	return m.err
}

func (m *model) send(data []byte) (id uint16, err error) {
	switch {
	case m.ended() != nil:
		return 0, m.ended()
	case len(data) > m.cfg.MaxEvent:
		return 0, ErrEventTooLarge
	case m.undelivered() == 256+m.cfg.Backlog:
		m.err = ErrUnacknowledged
		return 0, m.err
	}
	m.events = append(m.events, modelEvent{data: slices.Clone(data)})
	return uint16(m.firstEvent + int64(len(m.events)) - 1), nil
}

// fresh returns the next event to be sent for the first time, inside the send window.
func (m *model) fresh() (i int, ok bool) {
	for i = m.base; i < len(m.events) && i < m.base+int(m.sizes.sendWindow); i++ {
		if !m.events[i].sent {
			return i, true
		}
	}
	return 0, false
}

// snapshot is Stats.
func (m *model) snapshot() Stats {
	s := m.stats
	for _, d := range m.sent {
		if d.outcome == isUndecided {
			s.Undecided++
		}
	}
	s.RTT, s.RTTVar = time.Duration(m.srtt), time.Duration(m.rtvar)
	seen := m.path.look(0)
	s.MinRTT, s.QueueDelay = time.Duration(seen.floor), time.Duration(seen.queue)
	return s
}
