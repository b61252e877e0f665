// Package lane sends the events of an [ackbits.OrderedLane] in the application
// datagrams of an [ackbits.Session]. The session provides the token, the validity
// checks, the heartbeat and the timeout; the lane provides reliable delivery in
// order. The lane has acknowledgements of its own: those of the session are about
// datagrams, not about the lane's events.
//
// Copy it into your game and change it. All that the lane needs of a protocol is an
// event id and a cumulative acknowledgement.
package lane

import (
	"encoding/binary"
	"errors"
	"time"

	"github.com/ackbits/ackbits"
)

// The types of the two datagrams that a lane needs, and what their payloads are.
// Numbers are little-endian, as in the session's header.
const (
	TypeEvent ackbits.Type = 16 // event_id u32, then the event
	TypeAck   ackbits.Type = 17 // u32: the last event_id delivered; those before it were, too

	idSize = 4
)

var errPayload = errors.New("lane: a malformed payload")

// Conn is one side of a connection. Use New to make one. It is not safe for use by
// several goroutines at once.
type Conn struct {
	*ackbits.Session // for AppendDatagram, Stats and so on. Conn replaces Receive, Due, Deadline, Send, Err and InFlight
	lane             *ackbits.OrderedLane
	owesAck          bool
	buf, payload     []byte
}

// New returns a connection that begins now. session.Accept is called for all
// application datagrams except those of the lane.
func New(session ackbits.Config, lane ackbits.LaneConfig) (*Conn, error) {
	accept := session.Accept
	session.Accept = func(h ackbits.Header, payload []byte) error {
		switch {
		case h.Type == TypeEvent && len(payload) < idSize, h.Type == TypeAck && len(payload) != idSize:
			return errPayload // so that the datagram is not acknowledged
		case h.Type == TypeEvent, h.Type == TypeAck, accept == nil:
			return nil
		}
		return accept(h, payload)
	}
	lane.Clock = session.Clock
	s, err := ackbits.NewSession(session)
	if err != nil {
		return nil, err
	}
	l, err := ackbits.NewOrderedLane(lane)
	if err != nil {
		return nil, err
	}
	return &Conn{Session: s, lane: l, buf: make([]byte, 0, ackbits.MaxDatagramSize)}, nil
}

// Send queues a copy of an event. If too many events are undelivered, it refuses a
// Droppable one with ackbits.ErrLaneFull, and a Critical one ends the lane with
// ackbits.ErrLaneOverflow. An event that does not fit into a datagram is
// ackbits.ErrEventTooLarge.
func (c *Conn) Send(event []byte, p ackbits.Priority) error {
	if len(event) > c.MaxPayload()-idSize {
		return ackbits.ErrEventTooLarge
	}
	_, err := c.lane.Send(event, p)
	return err
}

// Receive processes a datagram. If it delivers the next event in order, ok is true
// and event is that event, a part of datagram. What any other datagram delivers is
// in in. Call Due after each Receive.
func (c *Conn) Receive(datagram []byte) (event []byte, ok bool, in ackbits.Incoming, err error) {
	in, err = c.Session.Receive(datagram)
	if err != nil || in.Payload == nil {
		return nil, false, in, err
	}
	switch in.Type {
	case TypeEvent:
		deliver, _ := c.lane.Receive(binary.LittleEndian.Uint32(in.Payload))
		c.owesAck = true // even if it was delivered before: the acknowledgement may have been lost
		if deliver {
			return in.Payload[idSize:], true, in, nil
		}
	case TypeAck:
		err = c.lane.ReceiveAck(binary.LittleEndian.Uint32(in.Payload))
	}
	return nil, false, in, err
}

// Due calls send for each datagram that is to leave now. The datagram is valid
// during the call only.
func (c *Conn) Due(send func(datagram []byte)) {
	if c.owesAck {
		c.owesAck = false
		c.send(send, TypeAck, binary.LittleEndian.AppendUint32(c.payload[:0], c.lane.Ack()))
	}
	for ev, ok := c.lane.NextDue(c.MaxPayload() - idSize); ok; ev, ok = c.lane.NextDue(c.MaxPayload() - idSize) {
		c.send(send, TypeEvent, append(binary.LittleEndian.AppendUint32(c.payload[:0], ev.ID), ev.Data...))
	}
	for datagram := range c.Session.Due(c.buf) {
		send(datagram)
	}
}

func (c *Conn) send(send func([]byte), t ackbits.Type, payload []byte) {
	c.payload = payload // so that its memory is used again
	if datagram, _, err := c.AppendDatagram(c.buf, t, payload); err == nil {
		send(datagram)
	} // otherwise the session has ended, and Err returns why
}

// Deadline returns when Due next has something to do.
func (c *Conn) Deadline() (t time.Time, ok bool) {
	t, ok = c.Session.Deadline()
	if at, some := c.lane.Deadline(); some && ok && at.Before(t) {
		t = at
	}
	return t, ok
}

// Err returns why the connection has ended, nil while it lives: the session's error,
// or else the lane's.
func (c *Conn) Err() error {
	if err := c.Session.Err(); err != nil {
		return err
	}
	return c.lane.Err()
}

// InFlight returns how many events are not known to be delivered.
func (c *Conn) InFlight() int { return c.lane.InFlight() }
