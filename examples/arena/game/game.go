// Package game is the arena itself: players who walk, shoot and come back to
// life, one step at a time. It knows nothing of networks, clocks or sessions;
// the same seed and the same calls give the same game.
package game

// The arena is measured in units; a terminal draws one Cell as one character.
const (
	Cell     = 1 << cellBits
	Width    = 512 * Cell
	Height   = 256 * Cell
	cellBits = 5

	MaxPlayers = 64 // slots of a world; a bit each in a snapshot
	TickRate   = 60 // steps a second
	MaxHP      = 3

	walk         = 8 // units a step: 15 cells a second
	shotSpeed    = 24
	shotLife     = 60           // steps
	reload       = TickRate / 2 // steps between two shots
	respawnAfter = 2 * TickRate
	reach        = Cell // a shot this near to a player's middle hits
)

// Buttons are the keys that a player holds.
type Buttons uint8

const (
	Up Buttons = 1 << iota
	Down
	Left
	Right
	Fire

	AllButtons = Up | Down | Left | Right | Fire
)

// Body is one slot as everybody sees it. The zero value is an empty slot.
type Body struct {
	Present, Alive, Shot bool
	Facing               uint8 // 0 is right, then clockwise in eighths of a turn
	HP                   uint8
	X, Y                 int16
	ShotX, ShotY         int16 // zero unless Shot
}

// State is everything that a snapshot shows.
type State [MaxPlayers]Body

// directions are unit vectors times ten, by Body.Facing.
var directions = [8][2]int16{{10, 0}, {7, 7}, {0, 10}, {-7, 7}, {-10, 0}, {-7, -7}, {0, -10}, {7, -7}}

// Direction returns the direction that buttons ask for; ok is false if they
// cancel out.
func (b Buttons) Direction() (facing uint8, ok bool) {
	dx, dy := 0, 0
	if b&Right != 0 {
		dx++
	}
	if b&Left != 0 {
		dx--
	}
	if b&Down != 0 {
		dy++
	}
	if b&Up != 0 {
		dy--
	}
	const none = 255
	facing = [3][3]uint8{{5, 6, 7}, {4, none, 0}, {3, 2, 1}}[dy+1][dx+1]
	return facing, facing != none
}

// Toward returns the buttons that walk in a direction.
func Toward(facing uint8) Buttons {
	return [8]Buttons{Right, Right | Down, Down, Down | Left, Left, Left | Up, Up, Up | Right}[facing&7]
}
