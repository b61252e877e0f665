package game_test

import (
	"bytes"
	"testing"

	"github.com/ackbits/ackbits/examples/arena/game"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// head is what a map begins with, before its tiles.
const head = game.MapSize - game.Columns*game.Rows

// plain is a map without anything on it.
func plain(t *testing.T) *game.Map {
	data := bytes.Clone(ground.Bytes())
	copy(data[head:], bytes.Repeat([]byte{byte(game.Ground)}, game.Columns*game.Rows))
	m, err := game.ParseMap(data)
	require.NoError(t, err)
	return m
}

// A seed makes one map; every map can be read, most of it can be walked on, there is
// something to hide behind, and nobody is shut in anywhere.
func TestGenerate(t *testing.T) {
	seeds := uint64(20)
	if testing.Short() {
		seeds = 4
	}
	for seed := range seeds {
		m := game.Generate(seed)
		require.Equal(t, m.Bytes(), game.Generate(seed).Bytes())
		_, err := game.ParseMap(m.Bytes())
		require.NoError(t, err)
		counts := map[game.Tile]int{}
		var start [2]int
		for row := range game.Rows {
			for column := range game.Columns {
				tile := m.At(column, row)
				counts[tile]++
				if tile < game.Water {
					start = [2]int{column, row}
				}
			}
		}
		walkable := counts[game.Ground] + counts[game.Grass] + counts[game.Sand]
		require.Greater(t, walkable, game.Columns*game.Rows*6/10, "seed %d: %v", seed, counts)
		require.Greater(t, counts[game.Wall], 2000, "seed %d: %v", seed, counts)
		require.Greater(t, counts[game.Tree], 1000, "seed %d: %v", seed, counts)
		require.Greater(t, counts[game.Water], 1000, "seed %d: %v", seed, counts)
		require.Equal(t, walkable, reachable(m, start), "seed %d", seed)
	}
	require.NotEqual(t, game.Generate(1).Bytes(), game.Generate(2).Bytes())
}

// reachable counts the tiles that one can walk to.
func reachable(m *game.Map, start [2]int) int {
	seen := make([]bool, game.Columns*game.Rows)
	seen[start[1]*game.Columns+start[0]] = true
	count := 0
	for stack := [][2]int{start}; len(stack) > 0; {
		at := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		count++
		for _, d := range [][2]int{{0, 1}, {1, 0}, {0, -1}, {-1, 0}} {
			next := [2]int{at[0] + d[0], at[1] + d[1]}
			if m.At(next[0], next[1]) < game.Water && !seen[next[1]*game.Columns+next[0]] { // outside it is Wall
				seen[next[1]*game.Columns+next[0]] = true
				stack = append(stack, next)
			}
		}
	}
	return count
}

// What is no map is refused, whatever a server sends: another size, another mark,
// a tile that there is not, one that is missing.
func TestHostileMap(t *testing.T) {
	good := ground.Bytes()
	for name, bad := range map[string][]byte{
		"empty": nil, "short": good[:game.MapSize-1], "long": append(bytes.Clone(good), 1),
	} {
		_, err := game.ParseMap(bad)
		require.ErrorIs(t, err, game.ErrMap, name)
	}
	rapid.Check(t, func(t *rapid.T) {
		bad := bytes.Clone(good)
		at := rapid.OneOf(rapid.IntRange(0, head-1), rapid.IntRange(head, game.MapSize-1)).Draw(t, "at")
		value := bad[at] ^ rapid.Byte().Filter(func(b byte) bool { return b != 0 }).Draw(t, "change")
		if at >= head {
			value = rapid.SampledFrom([]byte{byte(game.Unknown), byte(game.Wall) + 1, 255}).Draw(t, "tile")
		}
		bad[at] = value
		if _, err := game.ParseMap(bad); err == nil {
			t.Fatalf("byte %d is %d and the map is read", at, value)
		}
	})
}

// What has not arrived of a map is unknown, and what no map has is, too.
func TestArriving(t *testing.T) {
	data := make([]byte, game.MapSize)
	m := game.Arriving(data)
	require.Equal(t, game.Unknown, m.At(3, 2))
	data[head+2*game.Columns+3] = byte(game.Tree)
	require.Equal(t, game.Tree, m.At(3, 2))
	data[head+2*game.Columns+3] = 200
	require.Equal(t, game.Unknown, m.At(3, 2))
	require.Equal(t, game.Wall, m.At(-1, 0))
	require.Equal(t, game.Wall, m.At(0, game.Rows))
}
