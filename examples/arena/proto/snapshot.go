package proto

import (
	"encoding/binary"
	"math/bits"

	"github.com/ackbits/ackbits/examples/arena/game"
)

// A snapshot is the difference between the state at its number and the state at
// an earlier number, its baseline:
//
//	number u32, age u8, changed u64, then for each changed slot:
//	fields u8, then the fields that it names
//
// The baseline is number − age; age 0 stands for the empty state. With all 64
// slots changed in every field it has 781 bytes, so it always fits one datagram.
const (
	// MaxAge is the greatest age of a baseline, 3 s at 20 Hz. Both sides keep
	// as many states; more would cost memory, fewer would send whole states to
	// whoever has a second of bad luck.
	MaxAge = 63

	// MaxSnapshotSize is the longest payload of a snapshot.
	MaxSnapshotSize = snapshotHead + game.MaxPlayers*(1+1+1+4+4)

	snapshotHead = 4 + 1 + 8
)

const (
	fieldLook     = 1 << iota // u8: present, alive, shot, facing<<3
	fieldHP                   // u8
	fieldPlace                // i16, i16
	fieldStep                 // i8, i8: place as a difference
	fieldShot                 // i16, i16
	fieldShotStep             // i8, i8
	allFields     = fieldLook | fieldHP | fieldPlace | fieldStep | fieldShot | fieldShotStep
)

// AppendSnapshot appends the payload that turns base, of age numbers ago, into
// state. With age 0, base must be the empty state.
func AppendSnapshot(dst []byte, number uint32, age uint8, base, state *game.State) []byte {
	dst = binary.LittleEndian.AppendUint32(dst, number)
	dst = append(dst, age)
	var changed uint64
	for slot := range state {
		if state[slot] != base[slot] {
			changed |= 1 << slot
		}
	}
	dst = binary.LittleEndian.AppendUint64(dst, changed)
	for ; changed != 0; changed &= changed - 1 {
		slot := bits.TrailingZeros64(changed)
		dst = appendBody(dst, &base[slot], &state[slot])
	}
	return dst
}

func appendBody(dst []byte, base, body *game.Body) []byte {
	at := len(dst)
	dst = append(dst, 0)
	if look(body) != look(base) {
		dst[at] |= fieldLook
		dst = append(dst, look(body))
	}
	if body.HP != base.HP {
		dst[at] |= fieldHP
		dst = append(dst, body.HP)
	}
	var how byte
	dst, how = appendPoint(dst, base.X, base.Y, body.X, body.Y, fieldPlace, fieldStep)
	dst[at] |= how
	dst, how = appendPoint(dst, base.ShotX, base.ShotY, body.ShotX, body.ShotY, fieldShot, fieldShotStep)
	dst[at] |= how
	return dst
}

// appendPoint appends a point as a difference if that is small, and returns
// which of the two fields that makes.
func appendPoint(dst []byte, fromX, fromY, x, y int16, whole, step byte) (out []byte, field byte) {
	dx, dy := x-fromX, y-fromY
	switch {
	case dx == 0 && dy == 0:
		return dst, 0
	case dx == int16(int8(dx)) && dy == int16(int8(dy)):
		return append(dst, byte(dx), byte(dy)), step
	}
	dst = binary.LittleEndian.AppendUint16(dst, uint16(x))
	return binary.LittleEndian.AppendUint16(dst, uint16(y)), whole
}

func look(b *game.Body) byte {
	v := b.Facing << 3
	if b.Present {
		v |= 1
	}
	if b.Alive {
		v |= 2
	}
	if b.Shot {
		v |= 4
	}
	return v
}

// SnapshotNumbers returns which snapshot a payload is and which it builds on;
// whole is true if it builds on none.
func SnapshotNumbers(payload []byte) (number, baseline uint32, whole bool, err error) {
	if len(payload) < snapshotHead || len(payload) > MaxSnapshotSize {
		return 0, 0, false, ErrMalformed
	}
	number = binary.LittleEndian.Uint32(payload)
	age := uint32(payload[4])
	if age > MaxAge || age > number {
		return 0, 0, false, ErrMalformed
	}
	return number, number - age, age == 0, nil
}

// ParseSnapshot turns state, which must hold the baseline or for a whole
// snapshot the empty state, into the state of the snapshot. After an error state
// means nothing.
func ParseSnapshot(payload []byte, state *game.State) error {
	if _, _, _, err := SnapshotNumbers(payload); err != nil {
		return err
	}
	changed := binary.LittleEndian.Uint64(payload[5:])
	r := reader{rest: payload[snapshotHead:]}
	for ; changed != 0; changed &= changed - 1 {
		r.body(&state[bits.TrailingZeros64(changed)])
	}
	if r.failed || len(r.rest) != 0 {
		return ErrMalformed
	}
	return nil
}

// body reads the changes of one slot.
func (r *reader) body(b *game.Body) {
	fields := r.u8()
	if fields == 0 || fields&^allFields != 0 ||
		fields&fieldPlace != 0 && fields&fieldStep != 0 || fields&fieldShot != 0 && fields&fieldShotStep != 0 {
		r.failed = true
		return
	}
	if fields&fieldLook != 0 {
		v := r.u8()
		b.Present, b.Alive, b.Shot, b.Facing = v&1 != 0, v&2 != 0, v&4 != 0, v>>3
	}
	if fields&fieldHP != 0 {
		b.HP = r.u8()
	}
	r.point(fields, fieldPlace, fieldStep, &b.X, &b.Y)
	r.point(fields, fieldShot, fieldShotStep, &b.ShotX, &b.ShotY)
	if b.Facing > 7 || b.HP > game.MaxHP || !inside(b.X, b.Y) || !inside(b.ShotX, b.ShotY) {
		r.failed = true
	}
}

func (r *reader) point(fields, whole, step byte, x, y *int16) {
	switch {
	case fields&whole != 0:
		*x, *y = int16(r.u16()), int16(r.u16())
	case fields&step != 0:
		*x += int16(int8(r.u8()))
		*y += int16(int8(r.u8()))
	}
}

func inside(x, y int16) bool { return x >= 0 && x < game.Width && y >= 0 && y < game.Height }
