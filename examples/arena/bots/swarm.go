// Package bots plays the arena with many clients at once, each with a socket, a
// session and a lossy link of its own, and keeps a ledger of their events.
package bots

import (
	"context"
	"crypto/cipher"
	"crypto/ecdh"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"sync"
	"time"

	"github.com/ackbits/ackbits"
	"github.com/ackbits/ackbits/examples/arena/client"
	"github.com/ackbits/ackbits/examples/arena/latency"
	"github.com/ackbits/ackbits/examples/arena/ledger"
	"github.com/ackbits/ackbits/examples/arena/link"
)

// pollEvery is how often each bot is looked after. It adds to every latency that
// bots measure; shorter would cost the processor more than the protocol does.
const pollEvery = 4 * time.Millisecond

// Config says how many bots there are and what their paths are like.
type Config struct {
	N          int
	Server     netip.AddrPort
	ServerKey  *ecdh.PublicKey                       // nil: whoever answers is believed
	AEAD       func(key []byte) (cipher.AEAD, error) // as the server's; nil: AES-256-GCM
	Local      netip.Addr                            // where their sockets are bound; the zero value: anywhere
	Conditions link.Conditions
	Workers    int // goroutines
	Seed       uint64
	Ledger     *ledger.Book  // nil: none is kept
	Ramp       time.Duration // they join evenly over this time
	Map        bool          // they fetch the map, and play once they have it
}

// Swarm is a crowd of bots.
type Swarm struct {
	cfg     Config
	bots    []*bot
	workers []*worker
}

// worker is a goroutine that looks after some of the bots. mu guards it and
// them; it holds it for one round at a time.
type worker struct {
	swarm *Swarm
	mu    sync.Mutex
	clock ackbits.ManualClock
	bots  []*bot
	buf   []byte
	err   error

	events      latency.Histogram // from the server's stamp to delivery
	maps        latency.Histogram // from the beginning of a session until the map was there
	datagramsIn uint64
}

// New opens the sockets of a swarm. Run makes them play.
func New(cfg Config) (*Swarm, error) {
	s := &Swarm{cfg: cfg}
	for range max(cfg.Workers, 1) {
		w := &worker{swarm: s, buf: make([]byte, 0, 2048)}
		w.clock.Set(time.Now())
		s.workers = append(s.workers, w)
	}
	now := time.Now()
	for i := range cfg.N {
		conn, err := link.Dial(cfg.Local, cfg.Server, cfg.Conditions, cfg.Seed+uint64(i))
		if err != nil {
			return nil, errors.Join(err, s.close())
		}
		w := s.workers[i%len(s.workers)]
		b := &bot{name: fmt.Sprintf("bot-%03d", i), worker: w, conn: conn,
			rng: rand.New(rand.NewPCG(cfg.Seed, uint64(i)))}
		// Their ticks lie evenly in time, as those of real players would.
		b.frozenUntil = now.Add(cfg.Ramp*time.Duration(i)/time.Duration(cfg.N) + tick*time.Duration(i)/time.Duration(cfg.N))
		b.nextTick = b.frozenUntil
		if cfg.Map {
			b.level = new(client.Level)
		}
		s.bots = append(s.bots, b)
		w.bots = append(w.bots, b)
		b.join()
	}
	return s, nil
}

func (s *Swarm) close() (err error) {
	for _, b := range s.bots {
		err = errors.Join(err, b.conn.Close())
	}
	return err
}

// Run plays until ctx is done, then lets every bot leave properly. It returns
// early if the server has sent all of them away.
func (s *Swarm) Run(ctx context.Context) error {
	var wg sync.WaitGroup
	for _, w := range s.workers {
		wg.Go(func() { w.run(ctx) })
	}
	wg.Wait()
	var err error
	for _, w := range s.workers {
		err = errors.Join(err, w.err)
	}
	return err
}

// run looks after the worker's bots until all are done.
func (w *worker) run(ctx context.Context) {
	ticker := time.NewTicker(pollEvery)
	defer ticker.Stop()
	last := time.Now()
	for {
		<-ticker.C
		if time.Since(last) > link.Pause {
			link.AfterPause()
		}
		last = time.Now()
		if w.round(ctx.Err() != nil) == 0 {
			return
		}
	}
}

// round polls every bot once and returns how many are not done.
func (w *worker) round(leave bool) (active int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, b := range w.bots {
		now := time.Now() // a round of many bots takes its time
		w.clock.Set(now)
		if leave && b.leaveBy.IsZero() {
			b.leaveBy = now.Add(drain)
		}
		b.poll(now)
		if !b.done {
			active++
		}
	}
	return active
}

// fail keeps the first error for Run to return.
func (w *worker) fail(err error) {
	if w.err == nil {
		w.err = err
	}
}
