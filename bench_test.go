package ackbits

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"
)

// The benchmarks are named after traffic. What they cost is to be read beside
// BenchmarkStateByHand of the same run: the machine's speed drifts, ratios do
// not.

// byHand is the least that a state datagram can cost: the fields written, the
// payload copied, the fields read and compared. It is the limit that Session is
// measured against.
type byHand struct {
	token          uint64
	sequence, ack  uint16
	bits           uint32
	sent, received uint64
}

func (p *byHand) send(dst []byte, payload []byte) []byte {
	var b [HeaderSize]byte
	b[0] = formatNarrow
	b[1] = byte(TypeSnapshot)
	binary.LittleEndian.PutUint64(b[2:], p.token)
	binary.LittleEndian.PutUint16(b[10:], p.sequence)
	binary.LittleEndian.PutUint16(b[12:], p.ack)
	binary.LittleEndian.PutUint32(b[14:], p.bits)
	p.sequence++
	p.sent++
	return append(append(dst, b[:]...), payload...)
}

func (p *byHand) receive(datagram []byte) (payload []byte, ok bool) {
	if len(datagram) < HeaderSize || datagram[0] != formatNarrow || binary.LittleEndian.Uint64(datagram[2:]) != p.token {
		return nil, false
	}
	step := binary.LittleEndian.Uint16(datagram[10:]) - p.ack
	p.ack += step
	p.bits = p.bits<<step | 1<<(step-1)
	p.received++
	return datagram[HeaderSize:], true
}

// benchPair is two sessions that share a clock and a buffer each.
type benchPair struct {
	clock ManualClock
	a, b  *Session
	buf   []byte
}

func newBenchPair(tb testing.TB, cfg Config) *benchPair {
	p := &benchPair{buf: make([]byte, 0, MaxDatagramSize)}
	p.clock.Set(time.Unix(1_000_000_000, 0))
	cfg.Clock = &p.clock
	var err error
	if p.a, err = NewSession(cfg); err != nil {
		tb.Fatal(err)
	}
	if p.b, err = NewSession(cfg); err != nil {
		tb.Fatal(err)
	}
	return p
}

var benchState = make([]byte, 100)

func BenchmarkStateByHand(b *testing.B) {
	var x, y byHand
	x.ack, y.ack = 65535, 65535
	buf := make([]byte, 0, MaxDatagramSize)
	var clock ManualClock
	clock.Set(time.Unix(1_000_000_000, 0))
	for b.Loop() {
		clock.Advance(time.Millisecond)
		if _, ok := y.receive(x.send(buf, benchState)); !ok {
			b.Fatal("refused")
		}
		x, y = y, x
	}
}

// BenchmarkState is one state datagram of 100 bytes from peer to peer: sent,
// received, and the acknowledgement of the other direction read.
func BenchmarkState(b *testing.B) {
	for _, form := range []struct {
		name string
		cfg  Config
	}{
		{"narrow", Config{}},
		{"wide", Config{Wide: true}},
		{"outcomes", Config{Outcomes: true}},
		{"adaptive", Config{Adaptive: true, Bundle: true}},
	} {
		b.Run(form.name, func(b *testing.B) {
			p := newBenchPair(b, form.cfg)
			x, y := p.a, p.b
			b.ReportAllocs()
			for b.Loop() {
				p.clock.Advance(time.Millisecond)
				datagram, _, _ := x.AppendDatagram(p.buf, TypeSnapshot, benchState)
				if in, _ := y.Receive(datagram); in.Payload == nil {
					b.Fatal("not delivered")
				}
				x.NextOutcome()
				x, y = y, x
			}
		})
	}
}

// BenchmarkEvent is one event of 64 bytes from Send to the acknowledgement of
// its delivery, which a state datagram without payload brings back.
func BenchmarkEvent(b *testing.B) {
	event := make([]byte, 64)
	b.Run("one in flight", func(b *testing.B) {
		p := newBenchPair(b, Config{})
		b.ReportAllocs()
		for b.Loop() {
			p.clock.Advance(time.Millisecond)
			p.a.Send(event)
			for datagram := range p.a.Due(p.buf) {
				p.b.Receive(datagram)
			}
			datagram, _, _ := p.b.AppendDatagram(p.buf, TypeSnapshot, nil)
			p.a.Receive(datagram)
			if p.a.InFlight() != 0 {
				b.Fatal("not delivered")
			}
		}
	})
	b.Run("ten a tick", func(b *testing.B) {
		p := newBenchPair(b, Config{})
		var answers [10][]byte // ten ticks on the way back: a hundred events in flight
		tick, n := 0, 0
		b.ReportAllocs()
		for b.Loop() {
			p.a.Send(event)
			if n++; n%10 != 0 {
				continue
			}
			p.clock.Advance(time.Millisecond)
			for datagram := range p.a.Due(p.buf) {
				p.b.Receive(datagram)
			}
			answer := &answers[tick%len(answers)]
			if len(*answer) > 0 {
				p.a.Receive(*answer)
			}
			*answer, _, _ = p.b.AppendDatagram((*answer)[:0], TypeSnapshot, nil)
			tick++
		}
		if p.a.Err() != nil {
			b.Fatal(p.a.Err())
		}
	})
}

// BenchmarkEventUnderLoss is one event of 64 bytes at 10 % loss each way, its
// retransmissions included: ten a tick of 10 ms.
func BenchmarkEventUnderLoss(b *testing.B) {
	for _, form := range []struct {
		name string
		cfg  Config
	}{{"fixed", Config{}}, {"adaptive", Config{Adaptive: true, Bundle: true}}} {
		b.Run(form.name, func(b *testing.B) {
			p := newBenchPair(b, form.cfg)
			random := rand.New(rand.NewPCG(1, 2))
			event := make([]byte, 64)
			n := 0
			b.ReportAllocs()
			for b.Loop() {
				if p.a.Room() > 0 {
					p.a.Send(event)
				}
				if n++; n%10 != 0 {
					continue
				}
				p.clock.Advance(10 * time.Millisecond)
				for datagram := range p.a.Due(p.buf) {
					if random.Uint64N(10) != 0 {
						p.b.Receive(datagram)
					}
				}
				datagram, _, _ := p.b.AppendDatagram(p.buf, TypeSnapshot, nil)
				if random.Uint64N(10) != 0 {
					p.a.Receive(datagram)
				}
			}
		})
	}
}

// BenchmarkAppendDueIdle is the call that finds nothing to do.
func BenchmarkAppendDueIdle(b *testing.B) {
	for _, inFlight := range []int{0, 256} {
		b.Run(fmt.Sprint(inFlight, " in flight"), func(b *testing.B) {
			p := newBenchPair(b, Config{})
			for range inFlight {
				p.a.Send(make([]byte, 64))
			}
			for range p.a.Due(p.buf) {
			}
			b.ReportAllocs()
			for b.Loop() {
				if _, ok := p.a.AppendDue(p.buf); ok {
					b.Fatal("something was due")
				}
			}
		})
	}
}

// BenchmarkFullWindow is a whole window of 256 events of 64 bytes in one burst,
// from Send to the acknowledgement of all.
func BenchmarkFullWindow(b *testing.B) {
	p := newBenchPair(b, Config{})
	event := make([]byte, 64)
	b.ReportAllocs()
	for b.Loop() {
		p.clock.Advance(time.Millisecond)
		for range eventWindow {
			p.a.Send(event)
		}
		for datagram := range p.a.Due(p.buf) {
			p.b.Receive(datagram)
		}
		datagram, _, _ := p.b.AppendDatagram(p.buf, TypeSnapshot, nil)
		p.a.Receive(datagram)
		if p.a.InFlight() != 0 {
			b.Fatal("not delivered")
		}
	}
}

func BenchmarkHeader(b *testing.B) {
	h := Header{Type: TypeSnapshot, Token: 7, Sequence: 1, Ack: 2, AckBits: 3}
	buf := make([]byte, 0, MaxDatagramSize)
	b.Run("encode", func(b *testing.B) {
		for b.Loop() {
			buf = h.AppendTo(buf[:0])
		}
	})
	b.Run("parse", func(b *testing.B) {
		for b.Loop() {
			if _, _, err := ParseHeader(buf); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func BenchmarkTracker(b *testing.B) {
	for _, traffic := range []struct {
		name  string
		order func(i uint16) uint16
	}{
		{"in order", func(i uint16) uint16 { return i }},
		{"gaps", func(i uint16) uint16 { return i + i/8 }},
		{"reverse", func(i uint16) uint16 { return i&^15 | 15 - i&15 }},
	} {
		b.Run(traffic.name, func(b *testing.B) {
			var t AckTracker
			var i uint16
			for b.Loop() {
				t.Receive(traffic.order(i))
				i++
			}
		})
	}
}

// BenchmarkServerTick is one 60 Hz tick of a server: each client's state datagram
// comes in, every third tick one goes out to it, every sixtieth an event, and
// each session is asked what is due. ns/session is the figure: what happens
// inside the server's sessions, without the clients'. By hand is the same traffic
// with nothing behind it. The cost of a session is flat as long as a cache holds
// both sides, some 4 KiB for each client.
func BenchmarkServerTick(b *testing.B) {
	for _, n := range []int{100, 400, 1_000, 10_000, 100_000} {
		b.Run(fmt.Sprint("sessions/", n), func(b *testing.B) { benchServer(b, newServedSessions(n)) })
		b.Run(fmt.Sprint("by hand/", n), func(b *testing.B) { benchServer(b, newServedByHand(n)) })
	}
}

// served is a server with its clients, both of whom it ticks.
type served interface {
	len() int
	clientTick(i, tick int)
	serverTick(i, tick int)
	advance()
}

func benchServer(b *testing.B, s served) {
	tick := 0
	turn := func() (inside time.Duration) {
		s.advance()
		for i := range s.len() {
			s.clientTick(i, tick)
		}
		start := time.Now()
		for i := range s.len() {
			s.serverTick(i, tick)
		}
		tick++
		return time.Since(start)
	}
	for range max(600_000/max(s.len(), 1000), eventEvery+1) { // warm up: each has sent an event
		turn()
	}
	var inside time.Duration
	b.ReportAllocs()
	for b.Loop() {
		inside += turn()
	}
	b.ReportMetric(float64(inside.Nanoseconds())/float64(b.N)/float64(s.len()), "ns/session")
}

// What a server sends, in ticks.
const (
	snapshotEvery = 3
	eventEvery    = 60
)

var (
	benchInput = make([]byte, 32)
	benchEvent = make([]byte, 64)
)

// mail is what a tick of one side hands to the other, as a socket would.
type mail struct {
	datagrams [4][MaxDatagramSize / 4]byte
	sizes     [4]int
	n         int
}

func (m *mail) put(datagram []byte) {
	m.sizes[m.n] = copy(m.datagrams[m.n][:], datagram)
	m.n++
}

func (m *mail) take(receive func([]byte)) {
	for i := range m.n {
		receive(m.datagrams[i][:m.sizes[i]])
	}
	m.n = 0
}

type servedSessions struct {
	clock            ManualClock
	servers, clients []*Session
	in, out          []mail
	buf              []byte
}

func newServedSessions(n int) *servedSessions {
	s := &servedSessions{
		servers: make([]*Session, n), clients: make([]*Session, n),
		in: make([]mail, n), out: make([]mail, n), buf: make([]byte, 0, MaxDatagramSize),
	}
	s.clock.Set(time.Unix(1_000_000_000, 0))
	for i := range n {
		cfg := Config{Token: uint64(i), Clock: &s.clock, PollInterval: time.Second / 60}
		s.servers[i], _ = NewSession(cfg)
		s.clients[i], _ = NewSession(cfg)
	}
	return s
}

func (s *servedSessions) len() int { return len(s.servers) }
func (s *servedSessions) advance() { s.clock.Advance(time.Second / 60) }

func (s *servedSessions) clientTick(i, _ int) {
	s.out[i].take(func(datagram []byte) { s.clients[i].Receive(datagram) })
	datagram, _, _ := s.clients[i].AppendDatagram(s.buf, TypeInput, benchInput)
	s.in[i].put(datagram)
}

func (s *servedSessions) serverTick(i, tick int) {
	session, out := s.servers[i], &s.out[i]
	s.in[i].take(func(datagram []byte) { session.Receive(datagram) })
	for datagram := range session.Due(s.buf) {
		out.put(datagram)
	}
	if (tick+i)%eventEvery == 0 {
		session.Send(benchEvent)
	}
	if (tick+i)%snapshotEvery == 0 {
		datagram, _, _ := session.AppendDatagram(s.buf, TypeSnapshot, benchState)
		out.put(datagram)
	}
	for datagram := range session.Due(s.buf) {
		out.put(datagram)
	}
}

type servedByHand struct {
	servers, clients []*byHand
	in, out          []mail
	buf              []byte
}

func newServedByHand(n int) *servedByHand {
	s := &servedByHand{
		servers: make([]*byHand, n), clients: make([]*byHand, n),
		in: make([]mail, n), out: make([]mail, n), buf: make([]byte, 0, MaxDatagramSize),
	}
	for i := range n {
		s.servers[i], s.clients[i] = &byHand{ack: 65535}, &byHand{ack: 65535}
	}
	return s
}

func (s *servedByHand) len() int { return len(s.servers) }
func (s *servedByHand) advance() {}

func (s *servedByHand) clientTick(i, _ int) {
	s.out[i].take(func(datagram []byte) { s.clients[i].receive(datagram) })
	s.in[i].put(s.clients[i].send(s.buf, benchInput))
}

func (s *servedByHand) serverTick(i, tick int) {
	s.in[i].take(func(datagram []byte) { s.servers[i].receive(datagram) })
	if (tick+i)%eventEvery == 0 {
		s.out[i].put(s.servers[i].send(s.buf, benchEvent))
	}
	if (tick+i)%snapshotEvery == 0 {
		s.out[i].put(s.servers[i].send(s.buf, benchState))
	}
}
