package proto

import (
	"encoding/binary"
	"time"

	"github.com/ackbits/ackbits/examples/arena/game"
)

// Kind says what an event tells.
type Kind uint8

// Say is the only event that clients send.
const (
	Welcome Kind = iota + 1 // you are Slot
	Joined                  // Slot is Text
	Left                    // Slot is gone, for the reason in Text
	Spawned                 // Slot came to life
	Died                    // Slot was shot by By
	Scored                  // Slot has Score
	Said                    // Slot said Text
	Closing                 // the server ends the session, for the reason in Text
	Say                     // a client says Text
)

// Limits of texts, in bytes.
const (
	MaxName = 16
	MaxText = 120
)

// Event is one event of the game. Each kind uses the fields that its comment
// names; At is when it was sent, to the microsecond.
type Event struct {
	Kind  Kind
	At    time.Time
	Slot  uint8
	By    uint8
	Score uint16
	Text  string
}

// AppendEvent appends the bytes of an event: kind u8, at u64, then what the kind
// has. Texts must have been clipped.
func AppendEvent(dst []byte, e Event) []byte {
	dst = append(dst, byte(e.Kind))
	dst = binary.LittleEndian.AppendUint64(dst, uint64(e.At.UnixMicro()))
	switch e.Kind {
	case Welcome, Spawned:
		return append(dst, e.Slot)
	case Died:
		return append(dst, e.Slot, e.By)
	case Scored:
		return binary.LittleEndian.AppendUint16(append(dst, e.Slot), e.Score)
	case Joined, Left, Said:
		return appendText(append(dst, e.Slot), e.Text)
	default:
		return appendText(dst, e.Text)
	}
}

// ParseEvent reads the bytes of an event.
func ParseEvent(data []byte) (Event, error) {
	r := reader{rest: data}
	e := Event{Kind: Kind(r.u8()), At: time.UnixMicro(int64(r.u64()))}
	switch e.Kind {
	case Welcome, Spawned:
		e.Slot = r.u8()
	case Died:
		e.Slot, e.By = r.u8(), r.u8()
	case Scored:
		e.Slot, e.Score = r.u8(), r.u16()
	case Joined:
		e.Slot, e.Text = r.u8(), r.text(MaxName)
	case Left, Said:
		e.Slot, e.Text = r.u8(), r.text(MaxText)
	case Closing, Say:
		e.Text = r.text(MaxText)
	default:
		return Event{}, ErrMalformed
	}
	if r.failed || len(r.rest) != 0 || e.Slot >= game.MaxPlayers || e.By >= game.MaxPlayers {
		return Event{}, ErrMalformed
	}
	return e, nil
}
