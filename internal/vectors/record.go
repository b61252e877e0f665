package main

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/ackbits/ackbits"
)

// A world holds the ends of one file. They share the time.
type world struct {
	now  time.Duration
	ends []*transcript
}

// text returns the file: what each end did, one end after the other.
func (w *world) text() []byte {
	var lines []string
	for _, t := range w.ends {
		lines = append(lines, t.lines...)
	}
	return []byte("[\n" + strings.Join(lines, ",\n") + "\n]\n")
}

// wait lets time pass.
func (w *world) wait(d time.Duration) { w.now += d }

// transcript is the story of one end, an object for each step.
type transcript struct {
	w     *world
	lines []string
}

func (w *world) transcript() *transcript {
	t := &transcript{w: w}
	w.ends = append(w.ends, t)
	return t
}

// line is an object that is being written. Its keys keep their order.
type line struct{ b strings.Builder }

func begin(do string) *line {
	l := new(line)
	l.b.WriteString(`{"do":"` + do + `"`)
	return l
}

func (l *line) key(key string) *strings.Builder {
	l.b.WriteString(`,"` + key + `":`)
	return &l.b
}

func (l *line) text(key, value string) *line {
	if strings.ContainsAny(value, "\"\\\n") {
		panic("a text that needs escapes: " + value)
	}
	l.key(key).WriteString(`"` + value + `"`)
	return l
}

func (l *line) bytes(key string, value []byte) *line { return l.text(key, hex.EncodeToString(value)) }
func (l *line) wide(key string, value uint64) *line  { return l.text(key, fmt.Sprintf("%016x", value)) }

func (l *line) flag(key string, value bool) *line {
	l.key(key).WriteString(strconv.FormatBool(value))
	return l
}

func (l *line) num(key string, value int64) *line {
	if value >= 1<<53 || value <= -(1<<53) {
		panic(key + " has more than 53 bits")
	}
	l.key(key).WriteString(strconv.FormatInt(value, 10))
	return l
}

func (t *transcript) end(l *line) { t.lines = append(t.lines, l.b.String()+"}") }

// names are what docs/protocol.md calls the errors.
var names = []struct {
	err  error
	name string
}{
	{ackbits.ErrShort, "short"}, {ackbits.ErrOversize, "oversize"}, {ackbits.ErrFormat, "format"},
	{ackbits.ErrToken, "token"}, {ackbits.ErrReplayed, "replayed"}, {ackbits.ErrForged, "forged"},
	{ackbits.ErrType, "type"}, {ackbits.ErrPayload, "payload"}, {ackbits.ErrWindow, "window"},
	{ackbits.ErrRejected, "rejected"}, {ackbits.ErrEventTooLarge, "event-too-large"},
	{ackbits.ErrDatagramTooLarge, "datagram-too-large"}, {ackbits.ErrReservedType, "reserved-type"},
	{ackbits.ErrTimeout, "timeout"}, {ackbits.ErrPeerLeft, "peer-left"}, {ackbits.ErrClosed, "closed"},
	{ackbits.ErrUnacknowledged, "unacknowledged"}, {ackbits.ErrStalled, "stalled"},
	{ackbits.ErrKeyExhausted, "key-exhausted"}, {ackbits.ErrLaneFull, "lane-full"},
	{ackbits.ErrLaneOverflow, "lane-overflow"}, {ackbits.ErrAck, "ack"},
}

func name(err error) string {
	if err == nil {
		return ""
	}
	for _, n := range names {
		if errors.Is(err, n.err) {
			return n.name
		}
	}
	panic(err)
}

// options are what a file says of a session beside the plain defaults.
type options struct {
	ackbits.Config
	accept     bool
	seal, open []byte // AES-128-GCM
}

// refuse and withhold are the first bytes of payloads that the application
// refuses and withholds, where options.accept is set.
const (
	refuse   = 0xEE
	withhold = 0xDD
)

func accept(_ ackbits.Header, payload []byte) error {
	switch {
	case bytes.HasPrefix(payload, []byte{refuse}):
		return errors.New("refused")
	case bytes.HasPrefix(payload, []byte{withhold}):
		return ackbits.ErrWithhold
	}
	return nil
}

func gcm(key []byte) cipher.AEAD {
	block, err := aes.NewCipher(key)
	if err != nil {
		panic(err)
	}
	aead, err := cipher.NewGCM(block)
	if err != nil {
		panic(err)
	}
	return aead
}

// peer is one end of a session, whose calls are written down.
type peer struct {
	*transcript
	s       *ackbits.Session
	clock   *ackbits.ManualClock
	tracker ackbits.AckTracker // as the session's own must be
	seq     uint16             // of its next datagram, for those that are made by hand
	token   uint64
	wide    bool
	copies  map[uint16]int // of each event, as far as no id wraps
	began   time.Duration
}

// token of all sessions; another would show nothing more.
const token = 0x1122334455667788

// enter begins a session now, which is its time 0.
func (w *world) enter(about string, o options) *peer {
	cfg := o.Config
	cfg.Token = token
	defaults(&cfg)
	p := &peer{transcript: w.transcript(), clock: new(ackbits.ManualClock), token: token, wide: cfg.Wide, copies: map[uint16]int{}, began: w.now}
	cfg.Clock = p.clock
	if o.accept {
		cfg.Accept = accept
	}
	if o.seal != nil {
		cfg.Seal, cfg.Open = gcm(o.seal), gcm(o.open)
	}
	s, err := ackbits.NewSession(cfg)
	if err != nil {
		panic(err)
	}
	p.s = s
	p.end(begin("new").text("about", about).wide("token", token).
		flag("wide", cfg.Wide).flag("ordered", cfg.Ordered).flag("bundle", cfg.Bundle).flag("outcomes", cfg.Outcomes).flag("accept", o.accept).
		num("heartbeat", int64(cfg.Heartbeat)).num("timeout", int64(cfg.Timeout)).num("resend", int64(cfg.ResendDelay)).
		num("loss", int64(cfg.LossDelay)).num("stall", int64(max(cfg.StallTimeout, -1))).num("poll", int64(cfg.PollInterval)).
		num("backlog", int64(cfg.Backlog)).num("max_datagram", int64(cfg.MaxDatagram)).
		bytes("seal", o.seal).bytes("open", o.open))
	return p
}

// defaults writes the library's defaults out, for readers who do not know them.
func defaults(cfg *ackbits.Config) {
	for _, d := range []struct {
		value *time.Duration
		zero  time.Duration
	}{
		{&cfg.Heartbeat, 50 * time.Millisecond}, {&cfg.Timeout, 5 * time.Second},
		{&cfg.ResendDelay, 100 * time.Millisecond}, {&cfg.LossDelay, time.Second},
	} {
		if *d.value == 0 {
			*d.value = d.zero
		}
	}
	if cfg.StallTimeout == 0 {
		cfg.StallTimeout = max(15*time.Second, cfg.Timeout)
	}
	if cfg.MaxDatagram == 0 {
		cfg.MaxDatagram = ackbits.MaxDatagramSize
	}
}

// step begins a step, which happens now.
func (p *peer) step(do string) *line {
	p.clock.Set(time.Time{}.Add(p.w.now - p.began))
	return begin(do).num("at", int64(p.w.now-p.began))
}

// state ends a step with what can be seen of the session.
func (p *peer) state(l *line) {
	stats := p.s.Stats()
	deadline := int64(-1)
	if at, ok := p.s.Deadline(); ok {
		deadline = max(int64(at.Sub(time.Time{})), int64(p.w.now-p.began))
	}
	p.end(l.num("ack", int64(p.tracker.Ack())).wide("bits", p.tracker.WideAckBits()).
		num("in_flight", int64(p.s.InFlight())).num("room", int64(p.s.Room())).
		num("srtt", int64(stats.RTT)).num("rttvar", int64(stats.RTTVar)).
		num("deadline", deadline).text("ended", name(p.s.Err())))
}

func (p *peer) receive(datagram []byte) ackbits.Incoming {
	l := p.step("receive").bytes("datagram", datagram)
	in, err := p.s.Receive(bytes.Clone(datagram))
	isNew := err == nil && (in.Arrival == ackbits.Newest || in.Arrival == ackbits.Late)
	if handed := in.Payload != nil; isNew && (handed || !application(in.Type)) {
		p.tracker.Receive(in.Sequence)
	}
	arrival := ""
	if err == nil {
		arrival = strings.ToLower(in.Arrival.String())
	}
	var events []string
	for _, e := range in.Events {
		events = append(events, fmt.Sprintf("%d:%x", e.ID, e.Data))
	}
	p.state(l.text("error", name(err)).text("arrival", arrival).num("type", int64(in.Type)).num("seq", int64(in.Sequence)).
		flag("latest", in.Latest).flag("handed", in.Payload != nil).bytes("payload", in.Payload).text("events", strings.Join(events, ",")))
	return in
}

func application(t ackbits.Type) bool { return t < ackbits.TypeEvent || t >= 16 }

func (p *peer) send(event []byte) {
	l := p.step("send").bytes("event", event)
	id, err := p.s.Send(event)
	p.state(l.text("error", name(err)).num("id", int64(id)))
}

// sends queues so many copies of an event; the last id is written down.
func (p *peer) sends(n int, event []byte) {
	l := p.step("sends").num("count", int64(n)).bytes("event", event)
	var id uint16
	for range n {
		var err error
		if id, err = p.s.Send(event); err != nil {
			panic(err)
		}
	}
	p.state(l.text("error", "").num("id", int64(id)))
}

func (p *peer) append(t ackbits.Type, payload ...byte) []byte {
	l := p.step("append").num("type", int64(t)).bytes("payload", payload)
	datagram, seq, err := p.s.AppendDatagram(nil, t, payload)
	p.note(datagram)
	p.state(l.text("error", name(err)).bytes("datagram", datagram).num("seq", int64(seq)))
	return datagram
}

// burst sends so many datagrams that are all alike; the last is written down.
func (p *peer) burst(n int, t ackbits.Type, payload ...byte) (datagram []byte) {
	l := p.step("burst").num("count", int64(n)).num("type", int64(t)).bytes("payload", payload)
	var seq uint16
	for range n {
		var err error
		if datagram, seq, err = p.s.AppendDatagram(nil, t, payload); err != nil {
			panic(err)
		}
	}
	p.state(l.text("error", "").bytes("datagram", datagram).num("seq", int64(seq)))
	return datagram
}

// due makes one call of AppendDue.
func (p *peer) due() []byte {
	l := p.step("due")
	datagram, _ := p.s.AppendDue(nil)
	p.note(datagram)
	p.state(l.bytes("datagram", datagram))
	return datagram
}

// flush calls due until nothing is.
func (p *peer) flush() (out [][]byte) {
	for {
		datagram := p.due()
		if datagram == nil {
			return out
		}
		out = append(out, datagram)
	}
}

// mostCopies is what a plain sender may be asked for: repeated losses of one event
// may make it choose smaller datagrams, which the document leaves to it.
const mostCopies = 4

// note counts the copies of each event in a bare datagram.
func (p *peer) note(datagram []byte) {
	h, payload, err := ackbits.ParseHeader(datagram)
	if err != nil || h.Sealed {
		return
	}
	if h.Type == ackbits.TypeBundle {
		payload = payload[1:]
	} else if h.Type != ackbits.TypeEvent {
		return
	}
	count := int(payload[0])
	payload = payload[1:]
	for range count {
		id := uint16(payload[0]) | uint16(payload[1])<<8
		p.copies[id]++
		payload = payload[4+int(payload[2])+int(payload[3])<<8:]
	}
}

func (p *peer) outcomes() {
	for {
		l := p.step("outcome")
		o, ok := p.s.NextOutcome()
		p.state(l.flag("found", ok).num("seq", int64(o.Sequence)).num("type", int64(o.Type)).flag("delivered", o.Delivered).num("rtt", int64(o.RTT)))
		if !ok {
			return
		}
	}
}

func (p *peer) close() {
	l := p.step("close")
	p.s.Close()
	p.state(l)
}

func (p *peer) shutdown(patience time.Duration) {
	l := p.step("shutdown").num("patience", int64(patience))
	p.s.Shutdown(patience)
	p.state(l)
}

// sleep waits for the deadline and calls due there, after a look a nanosecond
// before, when nothing may happen.
func (p *peer) sleep() []byte {
	at, ok := p.s.Deadline()
	if !ok {
		panic("no deadline")
	}
	if until := at.Sub(time.Time{}) + p.began; until > p.w.now {
		p.w.now = until - 1
		if p.due() != nil {
			panic("something before the deadline")
		}
		p.w.now = until
	}
	return p.due()
}

// by builds a datagram to this end by hand.
func (p *peer) by(t ackbits.Type, seq, ack uint16, bits uint64, payload ...byte) []byte {
	h := ackbits.Header{Wide: p.wide, Type: t, Token: p.token, Sequence: seq, Ack: ack, AckBits: bits}
	return append(h.AppendTo(nil), payload...)
}

// hear receives the next datagram of a peer that is not there, whose
// acknowledgements are given.
func (p *peer) hear(t ackbits.Type, ack uint16, bits uint64, payload ...byte) ackbits.Incoming {
	p.seq++
	return p.receive(p.by(t, p.seq-1, ack, bits, payload...))
}

// list is the payload of an Event datagram.
func list(events ...ackbits.Event) []byte {
	payload, err := ackbits.AppendEvents(nil, events...)
	if err != nil {
		panic(err)
	}
	return payload
}

// ids is a list of events of one byte each.
func ids(numbers ...uint16) []byte {
	var events []ackbits.Event
	for _, id := range numbers {
		events = append(events, ackbits.Event{ID: id, Data: []byte{byte(id)}})
	}
	return list(events...)
}

// row is a list of n empty events from an id on.
func row(first uint16, n int) []byte {
	events := make([]ackbits.Event, n)
	for i := range events {
		events[i].ID = first + uint16(i)
	}
	return list(events...)
}

func filled(n int, with byte) []byte { return bytes.Repeat([]byte{with}, n) }
