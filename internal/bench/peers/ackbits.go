package peers

import (
	"errors"

	"github.com/ackbits/ackbits"
)

// stateSize is the state datagram that the receiver sends each tick, as a game
// would; it carries the acknowledgements.
const stateSize = 20

// Ackbits returns two Sessions with cfg that share a ManualClock, driven by the
// loop that the package documents.
func Ackbits(cfg ackbits.Config) Machine {
	return func(clock *Clock, a, b Wire) (End, End, error) {
		manual := new(ackbits.ManualClock)
		clock.Follow(manual.Advance)
		cfg := cfg
		cfg.Clock = manual
		sa, errA := ackbits.NewSession(cfg)
		sb, errB := ackbits.NewSession(cfg)
		return &ackbitsEnd{Session: sa, wire: a}, &ackbitsEnd{Session: sb, wire: b, states: true}, errors.Join(errA, errB)
	}
}

type ackbitsEnd struct {
	*ackbits.Session
	wire   Wire
	states bool
}

var state [stateSize]byte

func (e *ackbitsEnd) Send(msg []byte) error {
	_, err := e.Session.Send(msg)
	return err
}

func (e *ackbitsEnd) Receive(datagram []byte) error {
	in, err := e.Session.Receive(datagram)
	if err != nil {
		return err
	}
	for _, ev := range in.Events {
		e.wire.Message(ev.Data)
	}
	return e.flush()
}

func (e *ackbitsEnd) Tick() error {
	if e.states {
		d, _, err := e.AppendDatagram(e.wire.Buf[:0], ackbits.TypeSnapshot, state[:])
		if err != nil {
			return err
		}
		e.wire.Datagram(d)
	}
	return e.flush()
}

func (e *ackbitsEnd) flush() error {
	for d := range e.Due(e.wire.Buf) {
		e.wire.Datagram(d)
	}
	return e.Err()
}

func (e *ackbitsEnd) Unacked() int { return e.InFlight() }

func ackbitsSubjects() []Subject {
	m := Ackbits(ackbits.Config{})
	return []Subject{{
		Name:     "ackbits",
		Settings: "`Session`, defaults; the receiver answers with a state datagram of 20 bytes each tick",
		Does:     "no encryption, no congestion control",
		New:      m.open,
		Idle:     m.idle,
	}}
}
