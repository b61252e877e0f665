package main

import (
	"context"
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
	"github.com/ackbits/ackbits/examples/arena/tui"
)

// player is a client with a socket of its own, for one goroutine.
type player struct {
	*client.Client
	conn  *link.Conn
	clock ackbits.ManualClock
	buf   []byte
}

func newPlayer(name string, to netip.AddrPort, weather link.Weather) (*player, error) {
	conn, err := link.Dial(netip.Addr{}, to, weather, rand.Uint64())
	if err != nil {
		return nil, err
	}
	p := &player{conn: conn, buf: make([]byte, 0, 2048)}
	p.clock.Set(time.Now())
	p.Client = client.New(client.Config{
		Name:  name,
		Nonce: rand.Uint64(),
		Clock: &p.clock,
		Send:  func(datagram []byte) { conn.Send(p.clock.Now(), datagram) },
	})
	return p, nil
}

// Poll takes in what has arrived, and sends the buttons and what is due.
func (p *player) Poll(held game.Buttons) {
	now := time.Now()
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

// play runs the terminal client.
func play(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("arena play", flag.ContinueOnError)
	join := flags.String("join", "127.0.0.1:7777", "`address` of the server")
	name := flags.String("name", os.Getenv("USER"), "your name")
	var weather link.Weather
	weatherFlags(flags, &weather)
	if err := parse(flags, args); err != nil {
		return err
	}
	if err := checkWeather(weather); err != nil {
		return err
	}
	to, err := netip.ParseAddrPort(*join)
	if err != nil {
		return err
	}
	p, err := newPlayer(*name, to, weather)
	if err != nil {
		return err
	}
	defer p.conn.Close()
	if _, err := tea.NewProgram(tui.New(p), tea.WithContext(ctx)).Run(); err != nil && !errors.Is(err, tea.ErrProgramKilled) {
		return err
	}
	if p.Over() == nil { // a signal ended it
		p.Leave()
		p.conn.Flush(time.Now().Add(weather.RTT + weather.Jitter))
	}
	fmt.Println("the game is over:", p.Over())
	return nil
}
