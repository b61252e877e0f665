// Package server runs the arena: one UDP socket, one goroutine that reads it,
// and a few shards, each a goroutine with rooms of its own.
package server

import (
	"context"
	"crypto/cipher"
	"crypto/ecdh"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ackbits/ackbits"
	"github.com/ackbits/ackbits/endpoint"
	"github.com/ackbits/ackbits/examples/arena/game"
	"github.com/ackbits/ackbits/examples/arena/ledger"
)

// ErrConfig: a Config that makes no sense.
var ErrConfig = errors.New("arena: invalid configuration")

// Config says what a server is.
type Config struct {
	Listen string           // host:port; without a host, all addresses of the machine
	Key    *ecdh.PrivateKey // X25519: the server's identity
	Shards int              // goroutines that run rooms
	Limits
	Idle   time.Duration                         // players who press nothing for so long go, six times sooner in a crowded server; 0: never
	Seed   uint64                                // of the map and of the worlds
	Ledger *ledger.Book                          // nil: none is kept
	Log    *slog.Logger                          // nil: slog.Default
	AEAD   func(key []byte) (cipher.AEAD, error) // of sessions; nil: AES-256-GCM
}

func (cfg *Config) check() error {
	switch {
	case cfg.Shards < 1:
		return fmt.Errorf("%w: %d shards", ErrConfig, cfg.Shards)
	case cfg.Rooms < cfg.Shards:
		return fmt.Errorf("%w: %d rooms for %d shards", ErrConfig, cfg.Rooms, cfg.Shards)
	case cfg.RoomSize < 1 || cfg.RoomSize > game.MaxPlayers:
		return fmt.Errorf("%w: rooms for %d players, the limit is %d", ErrConfig, cfg.RoomSize, game.MaxPlayers)
	case cfg.PerAddress < 1:
		return fmt.Errorf("%w: %d players for each address", ErrConfig, cfg.PerAddress)
	case cfg.PerNetwork < 0:
		return fmt.Errorf("%w: %d players for each network", ErrConfig, cfg.PerNetwork)
	case cfg.Chat < 0:
		return fmt.Errorf("%w: %d lines of chat a minute", ErrConfig, cfg.Chat)
	case cfg.Idle < 0:
		return fmt.Errorf("%w: idle after %v", ErrConfig, cfg.Idle)
	}
	return nil
}

// Server is a running server.
type Server struct {
	cfg      Config
	log      *slog.Logger
	clock    ackbits.Clock
	socket   *socket
	door     door
	table    table
	budgets  *budgets
	shards   []*shard
	began    time.Time
	emptied  atomic.Int64 // when the reader last found the socket empty, since began
	failed   chan error   // the first error that ends the server
	counters Counters
}

// Listen opens the socket of a server. Nobody is answered before Serve.
func Listen(cfg Config) (*Server, error) {
	if err := cfg.check(); err != nil {
		return nil, err
	}
	socket, err := open(cfg.Listen)
	if err != nil {
		return nil, err
	}
	s, err := newServer(cfg, socket, system{})
	if err != nil {
		return nil, errors.Join(err, socket.conn.Close())
	}
	if err := socket.shrunk; err != nil {
		s.log.Warn("small socket buffers", "err", err)
	}
	return s, nil
}

// system is the clock of the machine.
type system struct{}

func (system) Now() time.Time { return time.Now() }

// newServer makes a server that has a socket, and its rooms.
func newServer(cfg Config, socket *socket, clock ackbits.Clock) (*Server, error) {
	if cfg.Log == nil {
		cfg.Log = slog.Default()
	}
	s := &Server{
		cfg:     cfg,
		log:     cfg.Log,
		clock:   clock,
		socket:  socket,
		table:   newTable(cfg.Limits),
		budgets: newBudgets(cfg.Chat),
		began:   clock.Now(),
		failed:  make(chan error, 1),
	}
	var err error
	s.door.gate, err = endpoint.NewGate(endpoint.ServerConfig{
		Key:           cfg.Key,
		Clock:         clock,
		Session:       sessionConfig,
		Admit:         s.admit,
		MaxPeers:      cfg.seats(),
		MaxPerAddress: cfg.PerAddress,
		AEAD:          cfg.AEAD,
	})
	if err != nil {
		return nil, err
	}
	level := newLevel(cfg.Seed)
	for range cfg.Shards {
		s.shards = append(s.shards, newShard(s))
	}
	for i := range cfg.Rooms {
		sh := s.shards[i%cfg.Shards]
		r := newRoom(sh, cfg.Seed+uint64(i), level)
		sh.rooms = append(sh.rooms, r)
		s.table.rooms = append(s.table.rooms, r)
	}
	return s, nil
}

// Addr returns the address of the socket.
func (s *Server) Addr() netip.AddrPort { return s.socket.local }

// Counters returns what the server counts as it goes.
func (s *Server) Counters() *Counters { return &s.counters }

// Gate returns what the handshake counts.
func (s *Server) Gate() endpoint.Stats { return s.door.stats() }

// Players returns how many sessions there are.
func (s *Server) Players() int { return s.table.size() }

// Serve runs the server until ctx is done, or the ledger cannot be written. Then
// it lets nobody in any more, tells every player, waits for events to arrive, two
// seconds at most, and leaves with Disconnects.
func (s *Server) Serve(ctx context.Context) error {
	stop := make(chan struct{})
	var shards, reader sync.WaitGroup
	for _, sh := range s.shards {
		shards.Go(func() { sh.run(stop) })
	}
	reader.Go(s.read)
	s.log.Info("serving", "addr", s.Addr(), "key", EncodeKey(s.cfg.Key.PublicKey()),
		"shards", s.cfg.Shards, "rooms", s.cfg.Rooms, "room size", s.cfg.RoomSize)
	var err error
	select {
	case <-ctx.Done():
	case err = <-s.failed:
	}
	s.log.Info("leaving", "players", s.Players())
	s.table.close()
	close(stop)
	shards.Wait()
	err = errors.Join(err, s.socket.conn.Close())
	reader.Wait()
	return err
}

// fail ends the server with an error, the first of which counts.
func (s *Server) fail(err error) {
	select {
	case s.failed <- err:
	default:
	}
}

// emptiedSince reports whether the reader has found the socket empty since t.
func (s *Server) emptiedSince(t time.Time) bool {
	return s.began.Add(time.Duration(s.emptied.Load())).After(t)
}
