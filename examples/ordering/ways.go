package main

import (
	"encoding/binary"
	"time"

	"github.com/ackbits/ackbits"
	"github.com/ackbits/ackbits/examples/ordering/lane"
)

// event returns the event with number n; number returns the number of an event.
func event(n int) []byte {
	return binary.LittleEndian.AppendUint64(make([]byte, 0, eventSize), uint64(n))[:eventSize]
}
func number(event []byte) uint64 { return binary.LittleEndian.Uint64(event) }

// end is one end of a connection, in any of the three ways.
type end interface {
	send(event []byte) error
	receive(datagram []byte, deliver func(event []byte))
	due(send func(datagram []byte))
	deadline() (time.Time, bool)
	appendState(dst, state []byte) []byte

	copies() uint64 // how many copies of events it has sent
	waiting() int   // events that it keeps since they are not acknowledged yet
	held() int      // events that it keeps since earlier ones have not arrived yet
	stats() ackbits.Stats
	err() error
}

// session sends its events by Session.Send.
type session struct {
	*ackbits.Session
	buf       []byte
	delivered uint64 // events
}

func openUnordered(cfg ackbits.Config) (end, error) {
	s, err := ackbits.NewSession(cfg)
	return &session{Session: s, buf: make([]byte, 0, ackbits.MaxDatagramSize)}, err
}

func openOrdered(cfg ackbits.Config) (end, error) {
	cfg.Ordered = true
	return openUnordered(cfg)
}

func (s *session) send(event []byte) error {
	_, err := s.Send(event)
	return err
}

func (s *session) receive(datagram []byte, deliver func([]byte)) {
	in, _ := s.Receive(datagram) // an invalid datagram is dropped and delivers nothing
	for _, e := range in.Events {
		deliver(e.Data)
		s.delivered++
	}
}

func (s *session) due(send func([]byte)) {
	for datagram := range s.Due(s.buf) {
		send(datagram)
	}
}

func (s *session) deadline() (time.Time, bool) { return s.Deadline() }
func (s *session) appendState(dst, state []byte) []byte {
	dst, _, _ = s.AppendDatagram(dst, ackbits.TypeSnapshot, state)
	return dst
}

func (s *session) copies() uint64       { return s.Stats().EventsSent + s.Stats().EventsResent }
func (s *session) waiting() int         { return s.InFlight() }
func (s *session) held() int            { return int(s.Stats().EventsReceived - s.delivered) }
func (s *session) stats() ackbits.Stats { return s.Stats() }
func (s *session) err() error           { return s.Err() }

// laned sends its events over an OrderedLane.
type laned struct {
	*lane.Conn
	sent uint64
}

func openLane(cfg ackbits.Config) (end, error) {
	c, err := lane.New(cfg, ackbits.LaneConfig{})
	return &laned{Conn: c}, err
}

func (l *laned) send(event []byte) error { return l.Send(event, ackbits.Critical) }

func (l *laned) receive(datagram []byte, deliver func([]byte)) {
	if event, ok, _, _ := l.Receive(datagram); ok {
		deliver(event)
	}
}

func (l *laned) due(send func([]byte)) {
	l.Due(func(datagram []byte) {
		if h, _, err := ackbits.ParseHeader(datagram); err == nil && h.Type == lane.TypeEvent {
			l.sent++
		}
		send(datagram)
	})
}

func (l *laned) deadline() (time.Time, bool) { return l.Deadline() }
func (l *laned) appendState(dst, state []byte) []byte {
	dst, _, _ = l.AppendDatagram(dst, ackbits.TypeSnapshot, state)
	return dst
}

func (l *laned) copies() uint64       { return l.sent }
func (l *laned) waiting() int         { return l.InFlight() }
func (l *laned) held() int            { return 0 }
func (l *laned) stats() ackbits.Stats { return l.Stats() }
func (l *laned) err() error           { return l.Err() }

// side is an end on the simulated network.
type side struct {
	end     end
	deliver func(event []byte)
	states  uint64
	buf     []byte
}

func (s *side) Receive(datagram []byte) { s.end.receive(datagram, s.deliver) }
func (s *side) Due(send func([]byte))   { s.end.due(send) }

func (s *side) Deadline() (time.Time, bool) { return s.end.deadline() }

// state returns a state datagram.
func (s *side) state() []byte {
	s.states++
	s.buf = s.end.appendState(s.buf[:0], make([]byte, stateSize))
	return s.buf
}
