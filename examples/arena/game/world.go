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
	ground  *Map
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

// New returns an empty world on a map.
func New(seed uint64, ground *Map) *World { return &World{rng: seed, ground: ground} }

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
	w.ground.Walk(body, p.buttons)
	if p.reload > 0 {
		p.reload--
	}
	if p.buttons&Fire != 0 && p.reload == 0 && !body.Shot {
		p.reload, p.shotLife, p.shotDir = reload, shotLife, body.Facing
		body.Shot, body.ShotX, body.ShotY = true, body.X, body.Y
	}
}

// Who comes to life does so near somebody who lives, or else near the middle: so far
// away at most, in units.
const (
	spawnX = 24 * Cell
	spawnY = 10 * Cell
)

// nearby is how often a place nearby is tried before any place does.
const nearby = 64

func (w *World) spawn(slot int) {
	body := &w.state[slot]
	x, y := w.meeting()
	for try := 0; ; try++ {
		if try < nearby {
			body.X, body.Y = w.around(x, spawnX, Width), w.around(y, spawnY, Height)
		} else {
			body.X, body.Y = int16(random(&w.rng)%Width), int16(random(&w.rng)%Height)
		}
		if w.ground.Walkable(body.X, body.Y) {
			break
		}
	}
	body.Alive, body.HP = true, MaxHP
	w.news = append(w.news, Happening{What: Spawned, Slot: uint8(slot)})
}

// meeting returns where somebody is who lives, or the middle of the map.
func (w *World) meeting() (x, y int16) {
	first := int(random(&w.rng) % MaxPlayers)
	for i := range w.state {
		if p := &w.state[(first+i)%MaxPlayers]; p.Alive {
			return p.X, p.Y
		}
	}
	return Width / 2, Height / 2
}

// around returns a coordinate at most so far from a middle, and within the map.
func (w *World) around(middle int16, far, limit int) int16 {
	return int16(min(max(int(middle)+int(random(&w.rng)%uint64(2*far+1))-far, 0), limit-1))
}

// fly moves the shot of a player, and hits the first player in its way.
func (w *World) fly(slot int) {
	body, p := &w.state[slot], &w.players[slot]
	d := directions[p.shotDir]
	x, y := body.ShotX+d[0]*shotSpeed/10, body.ShotY+d[1]*shotSpeed/10
	if p.shotLife--; p.shotLife <= 0 || x < 0 || y < 0 || x >= Width || y >= Height || w.ground.Stops(x, y) {
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
