// Package server runs the arena: one UDP socket, one goroutine that reads it,
// and a few shards, each a goroutine with rooms of its own.
package server

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/ackbits/ackbits"
	"github.com/ackbits/ackbits/examples/arena/game"
	"github.com/ackbits/ackbits/examples/arena/ledger"
	"github.com/ackbits/ackbits/examples/arena/proto"
	"golang.org/x/net/ipv4"
)

// ErrConfig: a Config that makes no sense.
var ErrConfig = errors.New("arena: invalid configuration")

// socketBuffer is how much the kernel may hold for us, if it lets us: what comes
// in while a scheduler looks elsewhere for some milliseconds.
const socketBuffer = 4 << 20

// Config says what a server is.
type Config struct {
	Listen string // an IPv4 address and port
	Shards int    // goroutines that run rooms
	Limits
	Seed   uint64       // of the worlds
	Ledger *ledger.Book // nil: none is kept
	Log    *slog.Logger // nil: slog.Default
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
	}
	return nil
}

// Server is a running server.
type Server struct {
	cfg      Config
	log      *slog.Logger
	socket   *ipv4.PacketConn
	addr     netip.AddrPort
	table    table
	cookies  *cookies
	shards   []*shard
	done     chan struct{} // closed when the shards have ended
	counters Counters
}

// Listen opens the socket of a server. Nobody is answered before Serve.
func Listen(cfg Config) (*Server, error) {
	if err := cfg.check(); err != nil {
		return nil, err
	}
	if cfg.Log == nil {
		cfg.Log = slog.Default()
	}
	conn, err := net.ListenPacket("udp4", cfg.Listen)
	if err != nil {
		return nil, err
	}
	udp := conn.(*net.UDPConn)
	if err := errors.Join(udp.SetReadBuffer(socketBuffer), udp.SetWriteBuffer(socketBuffer)); err != nil {
		cfg.Log.Warn("small socket buffers", "err", err)
	}
	s := &Server{
		cfg:     cfg,
		log:     cfg.Log,
		socket:  ipv4.NewPacketConn(udp),
		addr:    plain(udp.LocalAddr().(*net.UDPAddr)),
		cookies: newCookies(),
		done:    make(chan struct{}),
		table: table{
			peers:   make(map[netip.AddrPort]*peer),
			players: make(map[netip.Addr]int),
			limits:  cfg.Limits,
		},
	}
	for range cfg.Shards {
		s.shards = append(s.shards, newShard(s))
	}
	for i := range cfg.Rooms {
		sh := s.shards[i%cfg.Shards]
		r := newRoom(sh, cfg.Seed+uint64(i))
		sh.rooms = append(sh.rooms, r)
		s.table.rooms = append(s.table.rooms, r)
	}
	return s, nil
}

// Addr returns the address of the socket.
func (s *Server) Addr() netip.AddrPort { return s.addr }

// Counters returns what the server counts as it goes.
func (s *Server) Counters() *Counters { return &s.counters }

// Players returns how many sessions there are.
func (s *Server) Players() int { return s.table.size() }

// Serve runs the server until ctx is done. Then it lets nobody in any more,
// tells every player, waits for events to arrive, two seconds at most, and
// leaves with Disconnects.
func (s *Server) Serve(ctx context.Context) error {
	stop := make(chan struct{})
	var shards, reader sync.WaitGroup
	for _, sh := range s.shards {
		shards.Go(func() { sh.run(stop) })
	}
	reader.Go(s.read)
	s.log.Info("serving", "addr", s.addr, "shards", s.cfg.Shards, "rooms", s.cfg.Rooms, "room size", s.cfg.RoomSize)
	<-ctx.Done()
	s.log.Info("leaving", "players", s.Players())
	s.table.close()
	close(stop)
	shards.Wait()
	close(s.done)
	err := s.socket.Close()
	reader.Wait()
	return err
}

// read reads the socket until it is closed.
func (s *Server) read() {
	messages := newMessages(maxRead)
	answers := newOutbox(s.socket, &s.counters)
	pending := make(map[*shard]*batch, len(s.shards))
	for {
		n, err := s.socket.ReadBatch(messages, 0)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			s.log.Warn("reading", "err", err)
			time.Sleep(10 * time.Millisecond) // whatever it is, do not spin
			continue
		}
		now := time.Now()
		s.counters.DatagramsIn.Add(uint64(n))
		s.table.mu.Lock()
		for i := range messages[:n] {
			m := &messages[i]
			s.sort(m.Buffers[0][:m.N], m.Addr.(*net.UDPAddr), now, pending, answers)
		}
		s.table.mu.Unlock()
		answers.flush()
		for sh, b := range pending {
			if len(b.items) == 0 {
				continue
			}
			select {
			case sh.inbox <- b:
			case <-s.done:
				return
			}
			pending[sh] = sh.empty()
		}
	}
}

// sort gives a datagram to the shard of its session, or answers it. It is where
// hostile bytes end: what is from no peer and no Connect costs a look-up. The
// caller holds the lock of the table.
func (s *Server) sort(datagram []byte, from *net.UDPAddr, now time.Time, pending map[*shard]*batch, answers *outbox) {
	s.counters.BytesIn.Add(uint64(len(datagram)))
	h, payload, err := ackbits.ParseHeader(datagram)
	if err != nil {
		s.counters.Foreign.Add(1)
		return
	}
	if h.Type == ackbits.TypeConnect {
		s.connect(h, payload, from, now, pending, answers)
		return
	}
	p := s.table.peers[plain(from)]
	if p == nil || p.token != h.Token {
		s.counters.Foreign.Add(1)
		return
	}
	batchFor(pending, p.room.shard).add(p, datagram)
}

// connect answers a Connect. Until the cookie is right nothing is remembered,
// and the answer is shorter than the question.
func (s *Server) connect(h ackbits.Header, payload []byte, from *net.UDPAddr, now time.Time, pending map[*shard]*batch, answers *outbox) {
	c, err := proto.ParseConnect(h, payload)
	if err != nil {
		s.counters.Foreign.Add(1)
		return
	}
	s.counters.Connects.Add(1)
	addr := plain(from)
	answer := proto.Accept{Nonce: c.Nonce}
	if !s.cookies.valid(c.Cookie, addr, c.Nonce, now) {
		answer.Verdict = proto.Challenge
		answer.Cookie = s.cookies.issue(addr, c.Nonce, now)
	} else {
		answer.Verdict, answer.Token = s.admit(c, addr, from, pending)
		if answer.Verdict != proto.Granted {
			s.counters.Refused.Add(1)
		}
	}
	s.counters.Answered.Add(1)
	answers.send(proto.AppendAccept(answers.buffer(), answer), from)
}

// admit lets a client in whose cookie is right, or says why not.
func (s *Server) admit(c proto.Connect, addr netip.AddrPort, from *net.UDPAddr, pending map[*shard]*batch) (proto.Verdict, uint64) {
	if p := s.table.peers[addr]; p != nil {
		if p.nonce == c.Nonce {
			return proto.Granted, p.token // our answer was lost
		}
		return proto.Busy, 0
	}
	room, verdict := s.table.seat(addr)
	if verdict != proto.Granted {
		return verdict, 0
	}
	p := &peer{addr: addr, to: from, nonce: c.Nonce, token: newToken(), name: c.Name, room: room}
	s.table.add(p)
	s.counters.Granted.Add(1)
	b := batchFor(pending, room.shard)
	b.items = append(b.items, item{peer: p, join: true})
	return proto.Granted, p.token
}

// newToken returns a token that nobody can guess and that was never used.
func newToken() uint64 {
	var b [8]byte
	rand.Read(b[:]) // never fails
	return binary.LittleEndian.Uint64(b[:])
}

func batchFor(pending map[*shard]*batch, sh *shard) *batch {
	b := pending[sh]
	if b == nil {
		b = sh.empty()
		pending[sh] = b
	}
	return b
}

// empty returns a batch to fill.
func (sh *shard) empty() *batch {
	select {
	case b := <-sh.spare:
		return b
	default:
		return new(batch)
	}
}

// plain returns the address in the one form that table uses.
func plain(a *net.UDPAddr) netip.AddrPort {
	ap := a.AddrPort()
	return netip.AddrPortFrom(ap.Addr().Unmap(), ap.Port())
}
