package main

import (
	"encoding/binary"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/ackbits/ackbits"
	"github.com/ackbits/ackbits/transfer"
)

const (
	tickRate                = 60
	stateSize               = 100
	fileType   ackbits.Type = 200
	settleTime              = 300 * time.Millisecond // of a game that has just begun
)

type config struct {
	token uint64
	limit int // bytes a second
}

// peer is one side of the game. Its loop, in relay.go, calls Receive, tick and flush
// from one goroutine; what others ask is under a lock.
type peer struct {
	session *ackbits.Session
	files   *transfer.Transfers
	store   *store // of the side that receives
	send    func(datagram []byte)
	start   time.Time // of both sides: states carry the time since, and tell how old they are
	buf     []byte

	mu       sync.Mutex
	leaving  bool
	after    time.Duration
	act      func()
	outgoing *transfer.Outgoing
	incoming *transfer.Incoming
	res      result
}

// result is what a peer has seen.
type result struct {
	before, during []time.Duration // how old states were when they came
	began, ended   time.Time       // of the transfer
	done, size     int64
	got            int64 // bytes stored in this run
	wire           int64 // bytes received on the wire since the transfer began
	had            int64 // bytes that were there before
	digest         [32]byte
	err            error
}

func newPeer(cfg config, target *store) (p *peer, err error) {
	p = &peer{store: target, start: time.Now(), buf: make([]byte, ackbits.MaxDatagramSize)}
	p.session, err = ackbits.NewSession(ackbits.Config{
		Token: cfg.token, Adaptive: true, Bundle: true, Outcomes: true,
		Accept: func(h ackbits.Header, payload []byte) error {
			if h.Type == fileType {
				return p.files.Receive(payload)
			}
			return nil
		},
	})
	if err != nil {
		return nil, err
	}
	files := transfer.Config{Type: fileType, MaxRate: cfg.limit}
	if target != nil {
		files.Accept, files.Resume = target.open, target.have
	}
	p.files, err = transfer.New(p.session, files)
	return p, err
}

// Receive handles a datagram.
func (p *peer) Receive(datagram []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	in, _ := p.session.Receive(datagram)
	if !p.res.began.IsZero() && p.res.ended.IsZero() {
		p.res.wire += int64(len(datagram)) + 28
	}
	if in.Type == ackbits.TypeSnapshot && len(in.Payload) == stateSize {
		age := time.Since(p.start) - time.Duration(binary.LittleEndian.Uint64(in.Payload))
		switch {
		case !p.res.began.IsZero() && p.res.ended.IsZero():
			p.res.during = append(p.res.during, age)
		case p.res.began.IsZero() && time.Since(p.start) > settleTime:
			p.res.before = append(p.res.before, age)
		}
	}
}

// tick sends the state of the game.
func (p *peer) tick() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.act != nil && time.Since(p.start) > p.after {
		p.act()
		p.act = nil
	}
	state := make([]byte, stateSize)
	binary.LittleEndian.PutUint64(state, uint64(time.Since(p.start)))
	if datagram, _, err := p.session.AppendDatagram(p.buf[:0], ackbits.TypeSnapshot, state); err == nil {
		p.send(datagram)
	}
}

// flush sends what is due, and looks how far the file is.
func (p *peer) flush() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for o, ok := p.session.NextOutcome(); ok; o, ok = p.session.NextOutcome() {
		p.files.Outcome(o)
	}
	for datagram := range p.session.Due(p.buf) {
		p.send(datagram)
	}
	for datagram := range p.files.Due(p.buf) {
		p.send(datagram)
	}
	p.look()
}

// look follows the file. Once it has ended, and the other side knows, the peer leaves.
func (p *peer) look() {
	for in := range p.files.Incoming() {
		p.incoming = in
		done, size := in.Progress()
		if p.res.began.IsZero() {
			p.res.began, p.res.had, p.res.digest = time.Now(), done, in.Offer().Digest
		}
		p.res.done, p.res.size, p.res.got = done, size, done-p.res.had
		if err := p.store.saveNowAndThen(in); err != nil {
			in.Cancel()
		}
	}
	if p.incoming != nil {
		p.note(p.incoming.Err())
	}
	if p.outgoing != nil {
		p.note(p.outgoing.Err())
	}
	if p.leaving || !p.res.ended.IsZero() && p.files.Idle() {
		p.session.Close()
	}
}

// note keeps the first end.
func (p *peer) note(err error) {
	if err == nil || !p.res.ended.IsZero() {
		return
	}
	p.res.err, p.res.ended = err, time.Now()
	if p.incoming != nil && err != io.EOF {
		_ = p.store.save(p.incoming) // what is there may serve another run
	}
}

// deadline returns when flush has something to do.
func (p *peer) deadline() (time.Time, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	at, ok := p.session.Deadline()
	if t, some := p.files.Deadline(); some && (!ok || t.Before(at)) {
		return t, true
	}
	return at, ok
}

// over reports whether the session has ended.
func (p *peer) over() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.session.Err() != nil
}

// later has something done after a time.
func (p *peer) later(after time.Duration, act func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.after, p.act = after, act
}

// offer begins a transfer.
func (p *peer) offer(name string, source io.ReaderAt, size int64) {
	out, err := p.files.Send([]byte(name), source, size)
	if err != nil {
		p.res.err, p.res.ended = err, time.Now()
	}
	p.outgoing = out
}

// leave ends the session, in the middle if need be.
func (p *peer) leave() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.leaving = true
}

// result returns what was seen so far.
func (p *peer) result() result {
	p.mu.Lock()
	defer p.mu.Unlock()
	r := p.res
	r.before, r.during = slices.Clone(r.before), slices.Clone(r.during)
	if r.err == nil {
		r.err = p.session.Err()
	}
	return r
}

// recent returns the p99 of the last seconds' states.
func (p *peer) recent() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	states := p.res.during
	return quantile(slices.Clone(states[max(0, len(states)-5*tickRate):]), 0.99)
}

// quantile sorts of, and returns what a share of it does not exceed.
func quantile(of []time.Duration, share float64) time.Duration {
	if len(of) == 0 {
		return 0
	}
	slices.Sort(of)
	return of[min(int(share*float64(len(of))), len(of)-1)]
}
