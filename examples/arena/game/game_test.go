package game_test

import (
	"slices"
	"testing"

	"github.com/ackbits/ackbits/examples/arena/game"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// The same seed and the same calls give the same game, and whatever players do,
// nobody leaves the arena or stands in a wall, and what a snapshot shows is in
// range.
func TestAnyPlay(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		seed := rapid.Uint64().Draw(t, "seed")
		a, b := game.New(seed, ground), game.New(seed, ground)
		seated := make(map[int]bool)
		for range rapid.IntRange(1, 40).Draw(t, "rounds") {
			slot := rapid.IntRange(0, game.MaxPlayers-1).Draw(t, "slot")
			switch rapid.IntRange(0, 3).Draw(t, "what") {
			case 0:
				a.Join(slot)
				b.Join(slot)
				seated[slot] = true
			case 1:
				a.Leave(slot)
				b.Leave(slot)
				delete(seated, slot)
			default:
				held := game.Buttons(rapid.Uint8Max(uint8(game.AllButtons)).Draw(t, "held"))
				a.Hold(slot, held)
				b.Hold(slot, held)
			}
			for range rapid.IntRange(1, 40).Draw(t, "steps") {
				if !slices.Equal(a.Step(), b.Step()) || *a.State() != *b.State() {
					t.Fatal("two games from the same seed differ")
				}
				for slot := range game.MaxPlayers {
					if fault := fault(&a.State()[slot], seated[slot]); fault != "" {
						t.Fatalf("slot %d %s: %+v", slot, fault, a.State()[slot])
					}
				}
			}
		}
	})
}

// ground is the map of these tests.
var ground = game.Generate(7)

// fault says what is wrong with a slot, if anything.
func fault(p *game.Body, seated bool) string {
	switch {
	case p.Present != seated:
		return "is taken by nobody, or empty"
	case !p.Present && *p != game.Body{}:
		return "is empty and not zero"
	case !inside(p.X, p.Y), !inside(p.ShotX, p.ShotY):
		return "is outside the arena"
	case p.HP > game.MaxHP, p.Facing > 7, p.Alive != (p.HP > 0):
		return "is out of range"
	case !p.Shot && (p.ShotX != 0 || p.ShotY != 0):
		return "has a place for no shot"
	}
	if p.Alive && !ground.Walkable(p.X, p.Y) || p.Shot && ground.Stops(p.ShotX, p.ShotY) {
		return "is in a wall"
	}
	return ""
}

func inside(x, y int16) bool { return x >= 0 && x < game.Width && y >= 0 && y < game.Height }

// A duel: one walks up to the other and shoots three times; a death, a score
// and later a new life are told in this order.
func TestDuel(t *testing.T) {
	w := game.New(1, plain(t))
	w.Join(3)
	w.Join(5)
	require.Equal(t, []game.Happening{{What: game.Spawned, Slot: 3}, {What: game.Spawned, Slot: 5}}, w.Step())
	var told []game.Happening
	for range 60 * game.TickRate {
		state := w.State()
		w.Hold(3, hunt(state[3], state[5]))
		told = append(told, w.Step()...)
		if len(told) == 3 {
			break
		}
	}
	require.Equal(t, []game.Happening{
		{What: game.Died, Slot: 5, By: 3},
		{What: game.Scored, Slot: 3, Score: 1},
		{What: game.Spawned, Slot: 5},
	}, told)
	require.EqualValues(t, 1, w.Score(3))
}

// hunt walks along x, then along y, and fires.
func hunt(me, other game.Body) game.Buttons {
	const close = game.Cell / 2
	switch dx, dy := int(other.X)-int(me.X), int(other.Y)-int(me.Y); {
	case dx > close:
		return game.Right | game.Fire
	case dx < -close:
		return game.Left | game.Fire
	case dy > 0:
		return game.Down | game.Fire
	default:
		return game.Up | game.Fire
	}
}

// Each direction's buttons ask for that direction, and opposite ones cancel out.
func TestDirections(t *testing.T) {
	for facing := range uint8(8) {
		got, ok := game.Toward(facing).Direction()
		require.True(t, ok)
		require.Equal(t, facing, got)
	}
	for _, held := range []game.Buttons{0, game.Fire, game.Up | game.Down, game.Left | game.Right} {
		_, ok := held.Direction()
		require.False(t, ok)
	}
}
