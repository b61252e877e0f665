// Package client is a player's side of the protocol: joining, the session,
// snapshots and events. It has no socket, no goroutine and no timer: the caller
// hands in what arrived, calls Tick sixty times a second, and sends what it is
// given. So the same code runs in a bot, in a terminal and in a browser.
package client

import (
	"errors"
	"fmt"
	"time"

	"github.com/ackbits/ackbits"
	"github.com/ackbits/ackbits/examples/arena/game"
	"github.com/ackbits/ackbits/examples/arena/proto"
)

// Reasons for which a client is over that are not a session's.
var (
	ErrNoAnswer = errors.New("arena: no answer from the server")
	ErrRefused  = errors.New("arena: refused")
	ErrLeft     = errors.New("arena: left before the game began")
	ErrGoodbye  = errors.New("arena: the server said goodbye")
)

const (
	askAgain = 250 * time.Millisecond // until a Connect is sent again
	patience = 10 * time.Second       // until a server without an answer is given up
	tick     = time.Second / game.TickRate
)

// Config says who plays. Send is required.
type Config struct {
	Name  string
	Nonce uint64                // random: tells the answers to this client from others
	Clock ackbits.Clock         // nil is the system's
	Send  func(datagram []byte) // sends a datagram; it must not keep the bytes

	// Opened, if not nil, is called when the session begins; Sent and Got for
	// each event of it.
	Opened func(token uint64)
	Sent   func(event []byte)
	Got    func(id uint16, event []byte, e proto.Event)
}

// Client is one attempt to play: it joins, plays, and is over. To play again,
// make another one. It is not safe for concurrent use.
type Client struct {
	cfg     Config
	name    string
	began   time.Time // zero before the first Tick
	askedAt time.Time
	cookie  proto.Cookie
	token   uint64
	session *ackbits.Session // nil while joining
	err     error            // why it is over, unless the session knows
	memory  memory
	view    View
	buf     []byte // of outgoing datagrams
	scratch []byte // of outgoing payloads and events
}

// New returns a client that asks to join at its first Tick.
func New(cfg Config) *Client {
	if cfg.Clock == nil {
		cfg.Clock = system{}
	}
	return &Client{cfg: cfg, name: proto.Clip(cfg.Name, proto.MaxName),
		buf: make([]byte, 0, ackbits.MaxDatagramSize)}
}

type system struct{}

func (system) Now() time.Time { return time.Now() }

// Receive takes in a datagram that came from the server. Anything else that a
// socket may receive is dropped here too. It must not change until Receive
// returns.
func (c *Client) Receive(datagram []byte) {
	if c.session == nil {
		c.answer(datagram)
		return
	}
	in, err := c.session.Receive(datagram)
	if err != nil {
		return // not of this session, or it has ended
	}
	for _, raw := range in.Events {
		event, err := proto.ParseEvent(raw.Data)
		if c.cfg.Got != nil {
			c.cfg.Got(raw.ID, raw.Data, event)
		}
		if err == nil {
			c.view.apply(event)
		}
	}
	c.flush() // so that a burst does not outrun our acknowledgements
}

// answer takes in what may be the answer to our Connect.
func (c *Client) answer(datagram []byte) {
	h, payload, err := ackbits.ParseHeader(datagram)
	if err != nil || h.Token != c.cfg.Nonce || c.err != nil {
		return
	}
	a, err := proto.ParseAccept(h, payload)
	if err != nil {
		return
	}
	switch a.Verdict {
	case proto.Challenge:
		if c.cookie != a.Cookie {
			c.cookie = a.Cookie
			c.ask(c.cfg.Clock.Now())
		}
	case proto.Busy: // our earlier session is about to time out: go on asking
	case proto.Granted:
		c.open(a.Token)
	default:
		c.err = fmt.Errorf("%w: %v", ErrRefused, a.Verdict)
	}
}

// ask sends a Connect.
func (c *Client) ask(now time.Time) {
	c.askedAt = now
	c.cfg.Send(proto.AppendConnect(c.buf[:0], proto.Connect{Nonce: c.cfg.Nonce, Cookie: c.cookie, Name: c.name}))
}

// open begins the session.
func (c *Client) open(token uint64) {
	c.session, c.err = ackbits.NewSession(ackbits.Config{
		Token:        token,
		Clock:        c.cfg.Clock,
		Ordered:      true, // who is in which slot depends on it
		PollInterval: tick,
		Adaptive:     true,
		Bundle:       true,
		Backlog:      256,
		Accept:       c.accept,
	})
	c.token = token
	if c.err == nil && c.cfg.Opened != nil {
		c.cfg.Opened(token)
	}
}

// accept decides on an application datagram: the server sends snapshots only.
func (c *Client) accept(h ackbits.Header, payload []byte) error {
	if h.Type != ackbits.TypeSnapshot {
		return proto.ErrMalformed
	}
	return c.memory.take(payload)
}

// Tick does what a sixtieth of a second asks for: Connects while joining, then
// the input, and what the session owes. Hand in what has arrived before.
func (c *Client) Tick(held game.Buttons) {
	now := c.cfg.Clock.Now()
	if c.began.IsZero() {
		c.began = now
	}
	switch {
	case c.Over() != nil:
	case c.session != nil:
		c.scratch = proto.AppendInput(c.scratch[:0], held)
		if out, _, err := c.session.AppendDatagram(c.buf[:0], ackbits.TypeInput, c.scratch); err == nil {
			c.cfg.Send(out)
		}
		c.flush()
	case now.Sub(c.began) >= patience:
		c.err = ErrNoAnswer
	case now.Sub(c.askedAt) >= askAgain:
		c.ask(now)
	}
}

// flush sends what the session owes.
func (c *Client) flush() {
	for datagram := range c.session.Due(c.buf) {
		c.cfg.Send(datagram)
	}
}

// Say sends a line of chat. While joining, and when so much is undelivered that
// it would end the session, the line is dropped; ok reports whether it was not.
func (c *Client) Say(text string) (ok bool) {
	if c.session == nil || c.session.Room() == 0 {
		return false
	}
	c.scratch = proto.AppendEvent(c.scratch[:0], proto.Event{
		Kind: proto.Say, At: c.cfg.Clock.Now(), Text: proto.Clip(text, proto.MaxText)})
	if _, err := c.session.Send(c.scratch); err != nil {
		return false
	}
	if c.cfg.Sent != nil {
		c.cfg.Sent(c.scratch)
	}
	return true
}

// Leave says goodbye to the server and ends the session.
func (c *Client) Leave() {
	if c.session == nil {
		c.err = ErrLeft
		return
	}
	c.session.Close()
	c.flush()
}

// Over returns why the client is over, nil while it is not.
func (c *Client) Over() error {
	if c.err != nil || c.session == nil {
		return c.err
	}
	err := c.session.Err()
	if err != nil && c.view.Closing != "" {
		return fmt.Errorf("%w: %s (%w)", ErrGoodbye, c.view.Closing, err)
	}
	return err
}

// Playing reports whether the server has let us in and the session lives.
func (c *Client) Playing() bool { return c.session != nil && c.session.Err() == nil }

// Token returns the token of the session, 0 while joining.
func (c *Client) Token() uint64 { return c.token }

// View returns what the player sees. It is valid until the next call.
func (c *Client) View() *View {
	c.view.State = c.memory.newest()
	return &c.view
}

// Network is the state of the connection.
type Network struct {
	ackbits.Stats
	InFlight int
}

// Network returns the counters of the session.
func (c *Client) Network() Network {
	if c.session == nil {
		return Network{}
	}
	return Network{c.session.Stats(), c.session.InFlight()}
}
