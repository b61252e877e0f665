package game

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// The size of a map, in tiles. A tile is as large as a Cell.
const (
	Columns = Width / Cell
	Rows    = Height / Cell

	// MapSize is how many bytes a map has: a mark, columns u16, rows u16, then a
	// byte for each tile, row by row.
	MapSize = mapHead + Columns*Rows

	mapHead = 4 + 2 + 2
	mapMark = "MAP1"
)

// ErrMap: bytes that are no map.
var ErrMap = errors.New("arena: malformed map")

// Tile is what stands on a place of the map.
type Tile uint8

// Unknown is what has not arrived yet, and lies in no complete map.
const (
	Unknown Tile = iota
	Ground
	Grass
	Sand
	Water // stops players
	Tree  // stops players and shots, as a wall does
	Wall
)

// Map is where everybody walks. Many worlds may share one: it does not change.
type Map struct{ bytes []byte }

// ParseMap reads a complete map. It keeps data, which must not change any more.
func ParseMap(data []byte) (*Map, error) {
	if len(data) != MapSize {
		return nil, fmt.Errorf("%w: %d bytes, want %d", ErrMap, len(data), MapSize)
	}
	columns, rows := binary.LittleEndian.Uint16(data[len(mapMark):]), binary.LittleEndian.Uint16(data[len(mapMark)+2:])
	if string(data[:len(mapMark)]) != mapMark || columns != Columns || rows != Rows {
		return nil, fmt.Errorf("%w: %q, %d × %d tiles, want %q, %d × %d", ErrMap, data[:len(mapMark)], columns, rows, mapMark, Columns, Rows)
	}
	for i, t := range data[mapHead:] {
		if Tile(t) == Unknown || Tile(t) > Wall {
			return nil, fmt.Errorf("%w: tile %d is %d", ErrMap, i, t)
		}
	}
	return &Map{data}, nil
}

// Arriving returns what there is of a map of which not all bytes have arrived: data
// has its size, and zeros where bytes are missing. It follows what is written into
// data; where that means nothing it has Unknown. It is to be looked at, not to play on.
func Arriving(data []byte) *Map { return &Map{data[:MapSize:MapSize]} }

// Bytes returns what ParseMap reads. Nobody may change them.
func (m *Map) Bytes() []byte { return m.bytes }

// At returns the tile at a column and a row; outside the map it is Wall.
func (m *Map) At(column, row int) Tile {
	if column < 0 || row < 0 || column >= Columns || row >= Rows {
		return Wall
	}
	if t := Tile(m.bytes[mapHead+row*Columns+column]); t <= Wall {
		return t
	}
	return Unknown
}

// at returns the tile at a place in units.
func (m *Map) at(x, y int16) Tile { return m.At(int(x)>>cellBits, int(y)>>cellBits) }

// Walkable reports whether a player may stand at a place in units.
func (m *Map) Walkable(x, y int16) bool { return m.at(x, y) < Water }

// Stops reports whether a shot ends at a place in units.
func (m *Map) Stops(x, y int16) bool { return m.at(x, y) > Water }

// Walk moves a player by one step. The server decides with it; a client shows with
// it what the server will have decided.
func (m *Map) Walk(b *Body, held Buttons) {
	facing, ok := held.Direction()
	if !ok {
		return
	}
	b.Facing = facing
	d := directions[facing]
	// One axis at a time, so that a player slides along a wall.
	if x := min(max(b.X+d[0]*walk/10, 0), Width-1); m.Walkable(x, b.Y) {
		b.X = x
	}
	if y := min(max(b.Y+d[1]*walk/10, 0), Height-1); m.Walkable(b.X, y) {
		b.Y = y
	}
}
