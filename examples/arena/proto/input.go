// Package proto is what the arena puts into payloads and events. Whatever comes
// off the wire is hostile: parsing is bounded, checks every value, and returns an
// error that is already allocated.
package proto

import (
	"errors"

	"github.com/ackbits/ackbits/examples/arena/game"
)

// ErrMalformed is the answer to bytes that no honest peer sends.
var ErrMalformed = errors.New("arena: malformed payload")

// AppendInput appends the payload of an Input: the buttons held now. The next
// one replaces it, so a lost one needs no copy.
func AppendInput(dst []byte, held game.Buttons) []byte { return append(dst, byte(held)) }

// ParseInput reads the payload of an Input.
func ParseInput(payload []byte) (game.Buttons, error) {
	if len(payload) != 1 || game.Buttons(payload[0])&^game.AllButtons != 0 {
		return 0, ErrMalformed
	}
	return game.Buttons(payload[0]), nil
}
