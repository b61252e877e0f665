package transfer

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ackbits/ackbits"
	"github.com/ackbits/ackbits/simnet"
)

const (
	ms       = time.Millisecond
	testType = ackbits.Type(200)
)

// memory is a Sink.
type memory struct {
	data   []byte
	writes int // units
}

func (m *memory) ReadAt(p []byte, off int64) (int, error) {
	return bytes.NewReader(m.data).ReadAt(p, off)
}

func (m *memory) WriteAt(p []byte, off int64) (int, error) {
	if n := off + int64(len(p)); int64(len(m.data)) < n {
		m.data = append(m.data, make([]byte, n-int64(len(m.data)))...)
	}
	m.writes += (len(p) + unit - 1) / unit
	return copy(m.data[off:], p), nil
}

// peer is one side of a game: a session, the transfers beside it, and W1, which is
// 20 events of 64 bytes a second and states of 100 bytes.
type peer struct {
	name      string
	token     uint64
	session   *ackbits.Session
	transfers *Transfers
	now       func() time.Duration
	send      func([]byte)
	other     *peer
	onTicks   bool
	idle      bool // no game
	stateRate int
	ticks     int
	arrived   [][]byte
	out       []byte
	sinks     []*memory

	stateAt, eventAt []time.Duration // when they were sent
	stateIn, eventIn []latency       // of the other side's
	wire             int             // bytes sent, headers included, transfers apart
	transferWire     int             // likewise, of transfers
	answers, foreign int
	onOutcome        func(ackbits.Outcome)
	drop             func() bool // the next outcome
}

// latency is when something was sent and how long it took.
type latency struct{ at, took time.Duration }

func (p *peer) flush() {
	for o, ok := p.session.NextOutcome(); ok; o, ok = p.session.NextOutcome() {
		if p.drop == nil || !p.drop() {
			p.transfers.Outcome(o)
		}
		if p.onOutcome != nil {
			p.onOutcome(o)
		}
	}
	for datagram := range p.session.Due(p.out) {
		p.wire += len(datagram) + simnet.UDPOverIPv4
		p.send(datagram)
	}
	for datagram := range p.transfers.Due(p.out) {
		p.transferWire += len(datagram) + simnet.UDPOverIPv4
		if len(datagram) == ackbits.HeaderSize+7 {
			p.answers++
		}
		p.send(datagram)
	}
}

func (p *peer) Receive(datagram []byte) {
	if p.onTicks {
		p.arrived = append(p.arrived, slices.Clone(datagram))
		return
	}
	p.take(datagram)
}

func (p *peer) take(datagram []byte) {
	in, err := p.session.Receive(datagram)
	if err != nil {
		return
	}
	for _, e := range in.Events {
		k := binary.LittleEndian.Uint32(e.Data)
		if k >= uint32(len(p.other.eventAt)) {
			p.foreign++ // no event of the game's
			continue
		}
		p.eventIn = append(p.eventIn, latency{p.other.eventAt[k], p.now() - p.other.eventAt[k]})
	}
	if in.Type == ackbits.TypeSnapshot && in.Payload != nil {
		k := binary.LittleEndian.Uint32(in.Payload)
		p.stateIn = append(p.stateIn, latency{p.other.stateAt[k], p.now() - p.other.stateAt[k]})
	}
}

func (p *peer) Due(func([]byte)) {
	if !p.onTicks {
		p.flush()
	}
}

func (p *peer) Deadline() (time.Time, bool) {
	if p.onTicks {
		return time.Time{}, false
	}
	at, ok := p.session.Deadline()
	if t, some := p.transfers.Deadline(); some && (!ok || t.Before(at)) {
		at, ok = t, true
	}
	return at, ok
}

func (p *peer) tick() {
	for _, datagram := range p.arrived {
		p.take(datagram)
		p.flush()
	}
	p.arrived = p.arrived[:0]
	if !p.idle {
		if (p.ticks+1)*20/60 > p.ticks*20/60 && p.session.Room() > 0 {
			event := make([]byte, 64)
			binary.LittleEndian.PutUint32(event, uint32(len(p.eventAt)))
			if _, err := p.session.Send(event); err == nil {
				p.eventAt = append(p.eventAt, p.now())
			}
		}
		if (p.ticks+1)*p.stateRate/60 > p.ticks*p.stateRate/60 {
			state := make([]byte, 100)
			binary.LittleEndian.PutUint32(state, uint32(len(p.stateAt)))
			if datagram, _, err := p.session.AppendDatagram(p.out[:0], ackbits.TypeSnapshot, state); err == nil {
				p.stateAt = append(p.stateAt, p.now())
				p.wire += len(datagram) + simnet.UDPOverIPv4
				p.send(datagram)
			}
		}
	}
	p.ticks++
	p.flush()
}

// game is two peers and what is between them.
type game struct {
	seed     uint64
	up, down simnet.Config // from a, the client, to b; and back
	session  ackbits.Config
	onTicks  string // the names of the peers that are
	idle     bool
	deaf     bool // no outcomes
	accept   func(p *peer, o Offer) (Sink, error)
	resume   func(p *peer, o Offer) []byte
	maxRate  int

	twins int // further sessions on the same link

	pair   *simnet.Pair
	a, b   *peer
	a2, b2 *peer
}

func (g *game) start(t testing.TB) {
	clock := new(ackbits.ManualClock)
	clock.Set(time.Unix(1000, 0))
	var hosts [2]host
	rng := rand.New(rand.NewPCG(g.seed, 77))
	for i := range 1 + g.twins {
		a, b := g.newPeer(t, clock, "a", 60, i), g.newPeer(t, clock, "b", 20, i)
		a.other, b.other = b, a
		hosts[0], hosts[1] = append(hosts[0], a), append(hosts[1], b)
	}
	g.a, g.b = hosts[0][0], hosts[1][0]
	g.pair = simnet.NewPair(g.seed, clock, hosts[0], hosts[1], g.up, g.down)
	for i, d := range []simnet.Direction{simnet.AToB, simnet.BToA} {
		for _, p := range hosts[i] {
			p.send, p.now = func(b []byte) { g.pair.Send(d, b) }, g.pair.Now
			g.pair.At(time.Duration(rng.Int64N(int64(time.Second/60))), func() {
				g.pair.Every(60, time.Second, p.tick)
			})
		}
	}
	if g.twins > 0 {
		g.a2, g.b2 = hosts[0][1], hosts[1][1]
	}
}

// newPeer makes one peer.
func (g *game) newPeer(t testing.TB, clock ackbits.Clock, name string, rate, twin int) *peer {
	p := &peer{name: name, stateRate: rate, out: make([]byte, 0, ackbits.MaxDatagramSize), onTicks: strings.Contains(g.onTicks, name), idle: g.idle}
	cfg := g.session
	p.token = g.seed + uint64(twin)<<32
	cfg.Clock, cfg.Outcomes, cfg.Token = clock, !g.deaf, p.token
	if p.onTicks {
		cfg.PollInterval = time.Second / 60
	}
	cfg.Accept = func(h ackbits.Header, payload []byte) error {
		if h.Type == testType {
			return p.transfers.Receive(payload)
		}
		return nil
	}
	var err error
	p.session, err = ackbits.NewSession(cfg)
	require.NoError(t, err)
	p.transfers, err = New(p.session, Config{
		Type: testType, Clock: clock, PollInterval: cfg.PollInterval, MaxRate: g.maxRate,
		Accept: func(o Offer) (Sink, error) {
			if g.accept != nil {
				return g.accept(p, o)
			}
			m := new(memory)
			p.sinks = append(p.sinks, m)
			return m, nil
		},
		Resume: func(o Offer) []byte {
			if g.resume != nil {
				return g.resume(p, o)
			}
			return nil
		},
	})
	require.NoError(t, err)
	return p
}

// host is one end of the link, with a session or more.
type host []*peer

func (h host) Receive(datagram []byte) {
	for _, p := range h {
		if len(h) == 1 || len(datagram) > 9 && binary.LittleEndian.Uint64(datagram[2:]) == p.token {
			p.Receive(datagram)
		}
	}
}

func (h host) Due(send func([]byte)) {
	for _, p := range h {
		p.Due(send)
	}
}

func (h host) Deadline() (at time.Time, ok bool) {
	for _, p := range h {
		if t, some := p.Deadline(); some && (!ok || t.Before(at)) {
			at, ok = t, true
		}
	}
	return at, ok
}

// content returns bytes that no two places of have in common.
func content(seed uint64, n int) []byte {
	b := make([]byte, n)
	rand.NewChaCha8([32]byte{byte(seed), byte(seed >> 8), 1}).Read(b)
	return b
}

// run plays until all outgoing of both sides have ended, for so long at most.
func (g *game) run(limit time.Duration, out ...*Outgoing) bool {
	return g.pair.RunUntil(func() bool {
		for _, o := range out {
			if o.Err() == nil {
				return false
			}
		}
		return true
	}, g.pair.Now()+limit)
}
