// Package client is a player's side of the protocol: joining, the session,
// snapshots and events. It has no socket, no goroutine and no timer: the caller
// passes in what arrived, calls Tick sixty times a second, and sends what it is
// given. So the same code runs in a bot, in a terminal and in a browser.
package client

import (
	"crypto/cipher"
	"crypto/ecdh"
	"errors"
	"fmt"
	"time"

	"github.com/ackbits/ackbits"
	"github.com/ackbits/ackbits/endpoint"
	"github.com/ackbits/ackbits/examples/arena/game"
	"github.com/ackbits/ackbits/examples/arena/proto"
)

// Reasons for which a client is over that are neither a session's nor the
// handshake's.
var (
	ErrLeft  = errors.New("left before the game began")
	ErrEnded = errors.New("the server ended the session")
)

const tick = time.Second / game.TickRate

// Config says who plays. Send is required.
type Config struct {
	Name      string
	ServerKey *ecdh.PublicKey                       // nil: whoever answers is believed
	Clock     ackbits.Clock                         // nil is the system's
	Send      func(datagram []byte)                 // sends a datagram; it must not keep the bytes
	Level     *Level                                // where the map goes; nil: play without, as a bot may
	AEAD      func(key []byte) (cipher.AEAD, error) // of the session, as the server's; nil: AES-256-GCM

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
	door    *endpoint.Client // nil before the first Tick
	session *ackbits.Session // nil while joining
	token   uint64
	err     error     // why it is over, unless door knows
	heardAt time.Time // when the server was last heard, or the client began
	memory  memory
	fetch   fetching
	steps   prediction
	view    View
	buf     []byte // of outgoing datagrams
	scratch []byte // of outgoing payloads and events
}

// New returns a client that asks to join at its first Tick.
func New(cfg Config) *Client {
	if cfg.Clock == nil {
		cfg.Clock = system{}
	}
	return &Client{cfg: cfg, fetch: fetching{level: cfg.Level}, buf: make([]byte, 0, ackbits.MaxDatagramSize)}
}

type system struct{}

func (system) Now() time.Time { return time.Now() }

// begin begins to join.
func (c *Client) begin() {
	c.heardAt = c.cfg.Clock.Now()
	hello := proto.Hello{Version: proto.HelloVersion, Map: c.cfg.Level != nil, Name: proto.Clip(c.cfg.Name, proto.MaxName)}
	c.door, c.err = endpoint.NewClient(endpoint.ClientConfig{
		ServerKey: c.cfg.ServerKey,
		Hello:     proto.AppendHello(nil, hello),
		Clock:     c.cfg.Clock,
		AEAD:      c.cfg.AEAD,
		Session: ackbits.Config{
			Ordered:      true, // who is in which slot depends on it
			PollInterval: tick,
			Adaptive:     true,
			Bundle:       true,
			Backlog:      256,
			Outcomes:     c.cfg.Level != nil, // the transfer of the map asks
			Accept:       c.accept,
		},
	})
}

// Receive processes a datagram that came from the server's address. Anything else
// that a socket may receive is dropped here too. It overwrites the datagram, which
// must not change otherwise until Receive returns.
func (c *Client) Receive(datagram []byte) {
	if c.door == nil {
		return
	}
	in, err := c.door.Receive(datagram)
	if c.session == nil {
		if c.session = c.door.Session(); c.session != nil {
			c.opened()
		}
		c.flush()
		return
	}
	if err != nil {
		return // not of this session, or it has ended
	}
	if in.Type != 0 { // of the session
		c.heardAt = c.cfg.Clock.Now()
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
	c.flush() // so that a burst does not overrun the ack window
}

// opened begins the session with an input: its header shows the token, and the
// server learns that its Accept arrived.
func (c *Client) opened() {
	c.heardAt = c.cfg.Clock.Now()
	if err := c.fetch.begin(c); err != nil {
		c.fail(err)
		return
	}
	out, _, err := c.session.AppendDatagram(c.buf[:0], ackbits.TypeInput, proto.AppendInput(c.scratch[:0], 0))
	if err != nil {
		return
	}
	if h, _, err := ackbits.ParseHeader(out); err == nil {
		c.token = h.Token
	}
	if c.cfg.Opened != nil {
		c.cfg.Opened(c.token)
	}
	c.cfg.Send(out)
}

// accept decides on an application datagram: the server sends snapshots, and the map.
func (c *Client) accept(h ackbits.Header, payload []byte) error {
	switch h.Type {
	case ackbits.TypeSnapshot:
		newest, err := c.memory.take(payload)
		if newest {
			c.steps.acked = h.Ack
		}
		return err
	case proto.TypeMap:
		return c.fetch.receive(payload)
	}
	return proto.ErrMalformed
}

// Tick does the work of a sixtieth of a second: it sends the input, and what is due in
// handshake and session. Pass in what has arrived before.
func (c *Client) Tick(held game.Buttons) {
	if c.Over() != nil {
		return
	}
	if c.door == nil {
		c.begin()
	}
	if c.session != nil {
		c.scratch = proto.AppendInput(c.scratch[:0], held)
		if out, sequence, err := c.session.AppendDatagram(c.buf[:0], ackbits.TypeInput, c.scratch); err == nil {
			c.steps.sent(sequence, held)
			c.cfg.Send(out)
		}
	}
	c.flush()
}

// flush sends what is due in handshake and session, and of the map's transfer.
func (c *Client) flush() {
	if c.door == nil {
		return
	}
	if err := c.fetch.flush(c); err != nil {
		c.fail(err)
	}
	for datagram := range c.door.Due(c.buf) {
		c.cfg.Send(datagram)
	}
}

// fail ends the client for a reason of its own.
func (c *Client) fail(err error) {
	if c.err == nil {
		c.err = err
	}
	c.session.Close()
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

// Leave ends the session, or the attempt to join.
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
	if c.err != nil || c.door == nil {
		return c.err
	}
	err := c.door.Err()
	if err != nil && c.view.Closing != "" {
		return fmt.Errorf("%w: %s (%w)", ErrEnded, c.view.Closing, err)
	}
	return err
}

// Lost reports whether a client that is over with err lost its server, so that
// another attempt may do. After all others the server, or the player, has decided.
func Lost(err error) bool {
	for _, lost := range []error{endpoint.ErrNoAnswer, endpoint.ErrReset,
		ackbits.ErrTimeout, ackbits.ErrStalled, ackbits.ErrUnacknowledged, ackbits.ErrKeyExhausted} {
		if errors.Is(err, lost) {
			return true
		}
	}
	return false
}

// Silence returns how long the server has not been heard.
func (c *Client) Silence() time.Duration {
	if c.door == nil {
		return 0
	}
	return c.cfg.Clock.Now().Sub(c.heardAt)
}

// Playing reports whether the server has admitted us and the session is active.
func (c *Client) Playing() bool { return c.session != nil && c.door.Err() == nil }

// Token returns the token of the session, 0 while joining.
func (c *Client) Token() uint64 { return c.token }

// View returns what the player sees. It is valid until the next call.
func (c *Client) View() *View {
	c.view.State = c.memory.newest()
	c.view.Self = c.view.State[c.view.slot]
	if m := c.Map(); m != nil && c.view.Self.Alive {
		c.steps.walk(m, &c.view.Self)
	}
	return &c.view
}

// Map returns the map on which the player walks, nil before it is there, and where none
// is wanted.
func (c *Client) Map() *game.Map {
	if c.cfg.Level == nil {
		return nil
	}
	return c.cfg.Level.Map()
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
