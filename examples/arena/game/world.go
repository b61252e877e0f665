package game

// What says what has happened in a step.
type What uint8

const (
	Spawned What = iota + 1 // Slot came to life
	Died                    // Slot was shot by By
	Scored                  // Slot now has Score
)

// Happening is something that everybody must learn of.
type Happening struct {
	What  What
	Slot  uint8
	By    uint8
	Score uint16
}

// World is one arena and the only authority on it. It is not safe for
// concurrent use.
type World struct {
	state   State
	players [MaxPlayers]player
	rng     uint64
	news    []Happening
}

// player is what of a slot nobody sees.
type player struct {
	buttons  Buttons
	reload   int // steps until the next shot
	respawn  int // steps until it comes to life
	shotLife int
	shotDir  uint8
	score    uint16
}

// New returns an empty world.
func New(seed uint64) *World { return &World{rng: seed} }

// Join puts a player into a slot; it comes to life in the next step.
func (w *World) Join(slot int) {
	w.state[slot] = Body{Present: true}
	w.players[slot] = player{respawn: 1}
}

// Leave empties a slot.
func (w *World) Leave(slot int) {
	w.state[slot] = Body{}
	w.players[slot] = player{}
}

// Hold sets the buttons that a player holds from now on.
func (w *World) Hold(slot int, b Buttons) { w.players[slot].buttons = b }

// Score returns the score of a slot.
func (w *World) Score(slot int) uint16 { return w.players[slot].score }

// State returns what a snapshot shows. It is valid until the next call.
func (w *World) State() *State { return &w.state }

// Step moves the world by one sixtieth of a second and returns what happened,
// valid until the next Step.
func (w *World) Step() []Happening {
	w.news = w.news[:0]
	for slot := range w.state {
		if w.state[slot].Present {
			w.move(slot)
		}
	}
	for slot := range w.state {
		if w.state[slot].Shot {
			w.fly(slot)
		}
	}
	return w.news
}

// move lets a player come to life, walk and shoot.
func (w *World) move(slot int) {
	body, p := &w.state[slot], &w.players[slot]
	if !body.Alive {
		if p.respawn--; p.respawn <= 0 {
			w.spawn(slot)
		}
		return
	}
	if facing, ok := p.buttons.Direction(); ok {
		body.Facing = facing
		d := directions[facing]
		// One axis at a time, so that a player slides along a wall.
		if x := min(max(body.X+d[0]*walk/10, 0), Width-1); !blocked(x, body.Y) {
			body.X = x
		}
		if y := min(max(body.Y+d[1]*walk/10, 0), Height-1); !blocked(body.X, y) {
			body.Y = y
		}
	}
	if p.reload > 0 {
		p.reload--
	}
	if p.buttons&Fire != 0 && p.reload == 0 && !body.Shot {
		p.reload, p.shotLife, p.shotDir = reload, shotLife, body.Facing
		body.Shot, body.ShotX, body.ShotY = true, body.X, body.Y
	}
}

func (w *World) spawn(slot int) {
	body := &w.state[slot]
	for {
		body.X, body.Y = int16(w.random()%Width), int16(w.random()%Height)
		if !blocked(body.X, body.Y) {
			break
		}
	}
	body.Alive, body.HP = true, MaxHP
	w.news = append(w.news, Happening{What: Spawned, Slot: uint8(slot)})
}

// fly moves the shot of a player, and hits the first player in its way.
func (w *World) fly(slot int) {
	body, p := &w.state[slot], &w.players[slot]
	d := directions[p.shotDir]
	x, y := body.ShotX+d[0]*shotSpeed/10, body.ShotY+d[1]*shotSpeed/10
	if p.shotLife--; p.shotLife <= 0 || x < 0 || y < 0 || x >= Width || y >= Height || blocked(x, y) {
		body.Shot, body.ShotX, body.ShotY = false, 0, 0
		return
	}
	body.ShotX, body.ShotY = x, y
	for other := range w.state {
		target := &w.state[other]
		if other == slot || !target.Alive || !near(target.X, x) || !near(target.Y, y) {
			continue
		}
		body.Shot, body.ShotX, body.ShotY = false, 0, 0
		w.hit(other, slot)
		return
	}
}

func near(a, b int16) bool { return a-b <= reach && b-a <= reach }

// hit takes a hit point from a player, and its life with the last.
func (w *World) hit(victim, by int) {
	body := &w.state[victim]
	if body.HP--; body.HP > 0 {
		return
	}
	body.Alive = false
	w.players[victim].respawn = respawnAfter
	w.players[by].score++
	w.news = append(w.news,
		Happening{What: Died, Slot: uint8(victim), By: uint8(by)},
		Happening{What: Scored, Slot: uint8(by), Score: w.players[by].score})
}

// random is splitmix64: small, and the same everywhere.
func (w *World) random() uint64 {
	w.rng += 0x9e3779b97f4a7c15
	x := w.rng
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
