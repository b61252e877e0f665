// Package lane carries an [ackbits.OrderedLane] in the application datagrams of
// an [ackbits.Session]. The session brings the token, the checks, the heartbeat
// and the timeout; the lane brings the order. They acknowledge apart: the
// session's own acknowledgements are of datagrams and say nothing of events.
//
// Copy it into your game and change it: an event_id and a cumulative
// acknowledgement are all that the lane needs of a protocol.
package lane

import (
	"encoding/binary"
	"errors"
	"time"

	"github.com/ackbits/ackbits"
)

// The two datagrams of a lane. Every number is little-endian, as in the
// session's header.
const (
	TypeEvent ackbits.Type = 16 // event_id u32, then the event
	TypeAck   ackbits.Type = 17 // u32: the highest event_id delivered without a gap

	idSize = 4
)

var errPayload = errors.New("lane: a malformed payload")

// Conn is one side of a connection. It is made by New and not safe for
// concurrent use.
type Conn struct {
	*ackbits.Session // for its own datagrams, Stats and so on; not for Receive, Due and Deadline
	lane             *ackbits.OrderedLane
	owesAck          bool
	buf, payload     []byte
}

// New returns a connection that begins now. A session's Accept is asked about
// all datagrams but the lane's.
func New(session ackbits.Config, lane ackbits.LaneConfig) (*Conn, error) {
	accept := session.Accept
	session.Accept = func(h ackbits.Header, payload []byte) error {
		switch {
		case h.Type == TypeEvent && len(payload) < idSize, h.Type == TypeAck && len(payload) != idSize:
			return errPayload // before it is acknowledged
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

// Send queues an event. ErrLaneFull means that a Droppable one was refused.
func (c *Conn) Send(event []byte, p ackbits.Priority) error {
	if len(event) > c.MaxPayload()-idSize {
		return ackbits.ErrEventTooLarge
	}
	_, err := c.lane.Send(event, p)
	return err
}

// Receive takes in a datagram. If it brought the next event in order, event is
// that one and part of datagram; ok says so, for an event may be empty. Any
// other datagram is in in. Call Due after it.
func (c *Conn) Receive(datagram []byte) (event []byte, ok bool, in ackbits.Incoming, err error) {
	in, err = c.Session.Receive(datagram)
	if err != nil || in.Payload == nil {
		return nil, false, in, err
	}
	switch in.Type {
	case TypeEvent:
		deliver, _ := c.lane.Receive(binary.LittleEndian.Uint32(in.Payload))
		c.owesAck = true // whatever deliver says: it may repair the loss of an earlier one
		if deliver {
			return in.Payload[idSize:], true, in, nil
		}
	case TypeAck:
		err = c.lane.ReceiveAck(binary.LittleEndian.Uint32(in.Payload))
	}
	return nil, false, in, err
}

// Due calls send for each datagram that is due; it must not keep it.
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
	c.payload = payload // for its room
	if datagram, _, err := c.AppendDatagram(c.buf, t, payload); err == nil {
		send(datagram)
	} // else the session has ended, and Err tells
}

// Deadline returns when Due next has something to do.
func (c *Conn) Deadline() (t time.Time, ok bool) {
	t, ok = c.Session.Deadline()
	if at, some := c.lane.Deadline(); some && ok && at.Before(t) {
		t = at
	}
	return t, ok
}

// Err returns why the connection has ended: the session's reason or the lane's.
func (c *Conn) Err() error {
	if err := c.Session.Err(); err != nil {
		return err
	}
	return c.lane.Err()
}

// InFlight returns how many events are not known as delivered.
func (c *Conn) InFlight() int { return c.lane.InFlight() }
