package main

import (
	"context"
	"crypto/ecdh"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"os"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/ackbits/ackbits"
	"github.com/ackbits/ackbits/examples/arena/client"
	"github.com/ackbits/ackbits/examples/arena/game"
	"github.com/ackbits/ackbits/examples/arena/link"
	"github.com/ackbits/ackbits/examples/arena/proto"
	"github.com/ackbits/ackbits/examples/arena/tui"
)

// player is a client with a socket of its own, for one goroutine. When it has
// lost its server it can join again.
type player struct {
	*client.Client
	name   string
	key    *ecdh.PublicKey
	conn   *link.Conn
	level  client.Level // the map, kept when the server is lost
	clock  ackbits.ManualClock
	polled time.Time
	buf    []byte
}

func newPlayer(name string, to netip.AddrPort, key *ecdh.PublicKey, conditions link.Conditions) (*player, error) {
	conn, err := link.Dial(netip.Addr{}, to, conditions, rand.Uint64())
	if err != nil {
		return nil, err
	}
	p := &player{name: name, key: key, conn: conn, buf: make([]byte, 0, 2048)}
	p.clock.Set(time.Now())
	p.Rejoin()
	return p, nil
}

// Rejoin begins a new attempt to play.
func (p *player) Rejoin() {
	p.Client = client.New(client.Config{
		Name:      p.name,
		ServerKey: p.key,
		Clock:     &p.clock,
		Level:     &p.level,
		Send:      func(datagram []byte) { p.conn.Send(p.clock.Now(), datagram) },
	})
}

// Refused reports whether the server's machine says that nobody listens there.
func (p *player) Refused() bool { return p.conn.Refused() }

// Level returns the map, as far as it has arrived.
func (p *player) Level() *client.Level { return &p.level }

// Poll receives what has arrived, and sends the buttons and what is due.
func (p *player) Poll(held game.Buttons) {
	if !p.polled.IsZero() && time.Since(p.polled) > link.Pause {
		link.AfterPause()
	}
	now := time.Now()
	p.polled = now
	p.clock.Set(now)
	for {
		datagram, ok := p.conn.Receive(now, p.buf[:0])
		if !ok {
			break
		}
		p.Receive(datagram)
	}
	p.Tick(held)
	p.conn.Flush(now)
}

// userName returns a name for a player who gave none.
func userName() string {
	for _, variable := range []string{"USER", "USERNAME", "LOGNAME"} {
		if name := proto.Clip(os.Getenv(variable), proto.MaxName); name != "" {
			return name
		}
	}
	return "player"
}

// play runs the terminal client.
func play(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("arena play", flag.ContinueOnError)
	join := flags.String("join", "127.0.0.1:7777", "`address` of the server: host:port, where the host may be a name")
	key := flags.String("key", "", keyHelp)
	name := flags.String("name", userName(), "your name, up to 16 bytes")
	var conditions link.Conditions
	conditionFlags(flags, &conditions)
	if err := parse(flags, args); err != nil {
		return err
	}
	if err := checkConditions(conditions); err != nil {
		return err
	}
	if proto.Clip(*name, proto.MaxName) == "" {
		fmt.Fprintf(os.Stderr, "nobody could read the name %q\n", *name)
		return errUsage
	}
	to, public, err := resolve(*join, *key)
	if err != nil {
		return err
	}
	p, err := newPlayer(*name, to, public, conditions)
	if err != nil {
		return err
	}
	defer p.conn.Close()
	if _, err := tea.NewProgram(tui.New(p, *join), tea.WithContext(ctx)).Run(); err != nil && !errors.Is(err, tea.ErrProgramKilled) {
		return fmt.Errorf("the terminal client needs a terminal (for players without a human: arena bots): %w", err)
	}
	if p.Over() == nil { // a signal ended it
		p.Leave()
		p.conn.Flush(time.Now().Add(conditions.RTT + conditions.Jitter))
	}
	switch err := p.Over(); {
	case errors.Is(err, ackbits.ErrClosed), errors.Is(err, client.ErrLeft):
		fmt.Println("you left the game")
	default:
		fmt.Println("the game is over:", err)
	}
	return nil
}
