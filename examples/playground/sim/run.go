package sim

import (
	"crypto/aes"
	"crypto/cipher"
	"encoding/binary"
	"math"
	"time"

	"github.com/ackbits/ackbits"
	"github.com/ackbits/ackbits/simnet"
)

// Run is one game of two peers. It starts at time zero and goes on as far as it
// is asked to; how it is cut into calls changes nothing.
type Run struct {
	trace
	tally

	origin   Values   // of the settings, at time zero
	settings Settings // the values as they stand now; Script as far as it is known
	played   int      // actions of the script that have happened

	keys   [2]noted // by sender, if sealed
	plain  []byte   // the payload that was sealed last
	clock  ackbits.ManualClock
	pair   *simnet.Pair
	peers  [2]peer
	probes [2]simnet.Link // by direction: what a datagram will meet, see sent

	outagesFrom time.Duration   // outages count from here
	cuts        []simnet.Window // by VerbCut
	outagesEnd  time.Duration   // when the last outage that the links know of begins
}

// token names the session. A game takes a random one.
const token = 0xA11CE0FBADC0FFEE

// New returns a run at time zero. Its settings are those of the first run of s.
func New(s Settings) (*Run, error) {
	r := &Run{origin: s.Values, settings: s}
	r.clock.Set(time.Unix(0, 0))
	if err := r.makeKeys(); err != nil {
		return nil, err
	}
	for side := Client; side <= Server; side++ {
		session, err := ackbits.NewSession(r.config(side))
		if err != nil {
			return nil, err
		}
		r.peers[side] = peer{Session: session, run: r, side: side, ended: never}
	}
	link := r.link(0)
	r.pair = simnet.NewPair(s.Seed, &r.clock, &r.peers[Client], &r.peers[Server], link, link)
	for d := range r.probes {
		// A link decides all about a datagram when it is sent. A copy of the link,
		// taken before the first, decides the same.
		r.probes[d] = *r.pair.Link(simnet.Direction(d))
	}
	r.pair.Observe(r.observe)
	for side := Client; side <= Server; side++ {
		r.startTicks(side)
	}
	r.sample()
	return r, nil
}

// noted is an AEAD that shows the run what it seals.
type noted struct {
	cipher.AEAD
	run *Run
}

func (n noted) Seal(dst, nonce, plaintext, additionalData []byte) []byte {
	n.run.plain = append(n.run.plain[:0], plaintext...)
	return n.AEAD.Seal(dst, nonce, plaintext, additionalData)
}

// makeKeys makes a key for each direction. A game takes random ones; these follow
// from the seed, so that the same bytes come again.
func (r *Run) makeKeys() error {
	for side := range r.keys {
		key := binary.LittleEndian.AppendUint64(nil, r.settings.Seed)
		key = binary.LittleEndian.AppendUint64(key, uint64(side))
		block, err := aes.NewCipher(key)
		if err != nil {
			return err
		}
		aead, err := cipher.NewGCM(block)
		if err != nil {
			return err
		}
		r.keys[side] = noted{aead, r}
	}
	return nil
}

// config is that of a side's session.
func (r *Run) config(side Side) ackbits.Config {
	v := &r.settings.Values
	cfg := ackbits.Config{
		Token:     token,
		Clock:     &r.clock,
		Adaptive:  v[Adaptive] != 0,
		Bundle:    v[Bundle] != 0,
		Ordered:   v[Ordered] != 0,
		Wide:      v[Wide] != 0,
		EventRate: v[EventRate],
		Backlog:   4096, // so that a burst of events waits rather than ends the session
	}
	if v[Sealed] != 0 {
		cfg.Seal, cfg.Open = r.keys[side], r.keys[side.Other()]
	}
	return cfg
}

// link is what the links are like now, with the outages that begin within a
// while.
func (r *Run) link(now time.Duration) simnet.Config {
	v := &r.settings.Values
	ms := func(f Field) time.Duration { return time.Duration(v[f]) * time.Millisecond }
	chance := func(f Field) float64 { return float64(v[f]) / (100 * percent) }
	cfg := simnet.Config{
		Delay:        ms(RTT) / 2,
		Jitter:       ms(Jitter),
		Loss:         chance(Loss),
		Reorder:      chance(Reorder),
		ReorderDelay: ms(ReorderBy),
		Duplicate:    chance(Duplicate),
		Rate:         v[Rate] * 1000 / 8,
		Queue:        v[Queue] << 10,
		Overhead:     simnet.UDPOverIPv4,
	}
	if v[BurstLength] > 0 {
		cfg.Burst = simnet.Burst{MeanGood: ms(BurstEvery), MeanBad: ms(BurstLength), LossBad: 0.75}
	}
	for _, w := range r.cuts {
		if w.To > now {
			cfg.Blackouts = append(cfg.Blackouts, w)
		}
	}
	r.outagesEnd = math.MaxInt64
	if every, length := ms(OutageEvery), ms(OutageLength); length > 0 {
		const ahead = 16 // outages; the link looks through them for each datagram
		first := (now-r.outagesFrom)/every + 1
		if first > 1 { // one that goes on
			first--
		}
		for i := first; i < first+ahead; i++ {
			from := r.outagesFrom + i*every
			cfg.Blackouts = append(cfg.Blackouts, simnet.Window{From: from, To: from + length})
		}
		r.outagesEnd = r.outagesFrom + (first+ahead-1)*every
	}
	return cfg
}

// setLink makes both links, and what foretells them, as the settings are now.
func (r *Run) setLink() {
	cfg := r.link(r.Now())
	for d := range r.probes {
		r.pair.Link(simnet.Direction(d)).SetConfig(r.Now(), cfg)
		r.probes[d].SetConfig(r.Now(), cfg)
	}
}

// Now returns the virtual time since the start.
func (r *Run) Now() time.Duration { return r.pair.Now() }

// Settings returns the settings, with the values as they stand now and all
// actions so far.
func (r *Run) Settings() Settings { return r.settings }

// Origin returns settings that play this run from its start.
func (r *Run) Origin() Settings {
	s := r.settings
	s.Values = r.origin
	return s
}

// Coming returns how many actions of the script are still to happen.
func (r *Run) Coming() int { return len(r.settings.Script) - r.played }

// OneWay is how long a datagram travels where nothing holds it up.
func (r *Run) OneWay() time.Duration {
	return time.Duration(r.settings.Values[RTT]) * time.Millisecond / 2
}

// LongestFlight is the longest that a datagram has been in flight, or will be, or
// would have been.
func (r *Run) LongestFlight() time.Duration { return max(r.longestFlight, r.OneWay()) }

// Session returns a side's session, for what it tells of itself.
func (r *Run) Session(side Side) *ackbits.Session { return r.peers[side].Session }

// Ended returns when a side's session was seen to have ended, and why.
func (r *Run) Ended(side Side) (at time.Duration, reason error) {
	return r.peers[side].ended, r.peers[side].Err()
}

// Acks returns what a side's next header will say of the other's datagrams; not
// ok before it received any.
func (r *Run) Acks(side Side) (ack uint16, bits uint64, ok bool) {
	p := &r.peers[side]
	if r.settings.Values[Wide] != 0 {
		return p.received.Ack(), p.received.WideAckBits(), p.hasReceived
	}
	return p.received.Ack(), uint64(p.received.AckBits()), p.hasReceived
}

// Advance runs until the given time.
func (r *Run) Advance(until time.Duration) { r.advance(func() bool { return false }, until) }

// NextDatagram runs until a datagram is sent or arrives, but no further than a
// second.
func (r *Run) NextDatagram() {
	before := r.happened
	r.advance(func() bool { return r.happened != before }, r.Now()+time.Second)
}

// NextTick runs until a peer's next tick, but no further than a second.
func (r *Run) NextTick() {
	before := r.ticked
	r.advance(func() bool { return r.ticked != before }, r.Now()+time.Second)
}

// advance runs until done or the given time, and on its way plays the script,
// looks ahead for outages and takes samples.
func (r *Run) advance(done func() bool, until time.Duration) {
	for {
		to := min(until, r.sampleAt, r.outagesEnd)
		if r.played < len(r.settings.Script) {
			to = min(to, r.settings.Script[r.played].At)
		}
		if r.pair.RunUntil(done, to) {
			return
		}
		if r.Now() >= r.outagesEnd {
			r.setLink()
		}
		if r.Now() >= r.sampleAt {
			r.sample()
		}
		if r.played < len(r.settings.Script) && r.settings.Script[r.played].At <= r.Now() {
			r.played++
			r.act(r.settings.Script[r.played-1])
			continue // with what that made due at this instant
		}
		if r.Now() >= until {
			return
		}
	}
}

// Do makes something happen now, and notes it in the script, in which nothing
// may be left to come. It runs on to the next whole microsecond first.
func (r *Run) Do(verb string, value int) error {
	a := Action{At: (r.Now() + time.Microsecond - 1).Truncate(time.Microsecond), Verb: verb, Value: value}
	if err := a.check(); err != nil {
		return err
	}
	if r.played < len(r.settings.Script) {
		r.settings.Script = r.settings.Script[:r.played:r.played]
	}
	if len(r.settings.Script) == maxScript {
		return errScript
	}
	r.settings.Script = append(r.settings.Script, a)
	r.Advance(a.At)
	return nil
}

type textError string

func (e textError) Error() string { return string(e) }

const errScript = textError("more has been changed than an address can hold: start again")

// act lets an action happen.
func (r *Run) act(a Action) {
	switch a.Verb {
	case VerbBurst:
		for range a.Value {
			r.peers[Client].sendEvent()
		}
		return
	case VerbCut:
		now := r.Now()
		r.cuts = append(r.cuts, simnet.Window{From: now, To: now + time.Duration(a.Value)*time.Millisecond})
		r.setLink()
		return
	case VerbLeave:
		r.peers[a.Value].leave()
		return
	}
	f, _ := byKey(a.Verb)
	r.settings.Values[f] = a.Value
	switch {
	case f == OutageEvery || f == OutageLength:
		r.outagesFrom = r.Now()
		r.setLink()
	case Infos[f].Group == GroupLink:
		r.setLink()
	case f == ClientTicks:
		r.startTicks(Client)
	case f == ServerTicks:
		r.startTicks(Server)
	case f == ClientEvents:
		r.peers[Client].countEventsFrom(r.Now())
	case f == ServerEvents:
		r.peers[Server].countEventsFrom(r.Now())
	}
}

// observe notes what happens on the links.
func (r *Run) observe(at time.Duration, d simnet.Direction, what simnet.What, datagram []byte) {
	r.hash(at, d, what, datagram)
	switch what {
	case simnet.Sent:
		r.happened++
		r.launch(at, d, datagram)
	case simnet.Delivered:
		r.happened++
		r.arrive(at, d, datagram)
	}
}

// launch notes a datagram that is sent, and what will become of it.
func (r *Run) launch(at time.Duration, d simnet.Direction, datagram []byte) {
	from := Side(d)
	f := r.add(from)
	f.SentAt = at
	f.Bytes = append(f.Bytes, datagram...)
	h, payload, err := ackbits.ParseHeader(datagram)
	if err != nil {
		panic("sim: a session sent what is no datagram: " + err.Error())
	}
	f.Header = h
	if h.Sealed {
		payload = r.plain // it is sent as soon as it was sealed
	}
	f.Plain = append(f.Plain, payload...)
	var parts []Part
	parts, f.Inner = DecodePayload(h.Type, f.Plain)
	for _, id := range eventIDs(nil, parts) {
		n := r.number(from, uint16(id))
		f.Events = append(f.Events, n)
		if e, ok := r.Event(from, n); ok {
			e.Copies = append(e.Copies, f.ID)
			r.copies++
		}
	}
	r.bySeq[from][h.Sequence] = int32(f.ID) + 1
	r.foretell(f, d, datagram)
	r.noteSent(f)
}

// foretell sends the datagram over a copy of the link and looks what happens.
func (r *Run) foretell(f *Flight, d simnet.Direction, datagram []byte) {
	probe := &r.probes[d]
	f.Outcome = simnet.Delivered
	probe.Observe(func(_ time.Duration, what simnet.What, _ []byte) {
		switch what {
		case simnet.Lost, simnet.LostInBurst, simnet.LostInBlackout, simnet.LostInQueue:
			f.Outcome = what
		}
	})
	probe.Send(f.SentAt, datagram)
	for {
		at, ok := probe.Next()
		if !ok {
			return
		}
		probe.Receive(at)
		f.Arrives[f.Copies] = at
		f.Copies++
	}
}

// arrive notes a datagram, or a copy of one, that the receiver is about to get.
func (r *Run) arrive(at time.Duration, d simnet.Direction, datagram []byte) {
	h, _, _ := ackbits.ParseHeader(datagram)
	f, ok := r.named(Side(d), h.Sequence)
	if !ok || f.arrived == f.Copies || f.Arrives[f.arrived] != at {
		r.forgotten++ // it waited in the queue for longer than flights are remembered
		f = &Flight{From: Side(d), Copies: 1}
	}
	r.arriving, r.arrivingCopy = f, f.arrived
	f.arrived++
	r.noteArrival(f)
	for _, n := range f.Events {
		if e, ok := r.Event(f.From, n); ok && e.FirstIn == never {
			e.FirstIn = at
		}
	}
}

// deliver notes that an event of a side was delivered at the other.
func (r *Run) deliver(from Side, id uint16) {
	e, ok := r.Event(from, r.number(from, id))
	if !ok {
		return
	}
	if e.DeliveredAt != never {
		panic("sim: an event was delivered twice")
	}
	e.DeliveredAt = r.Now()
	r.noteLatency(from, r.Now()-e.SentAt)
}
