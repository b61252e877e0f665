package ackbits

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestLowestOfASetCountsFromItsBase(t *testing.T) {
	fromEveryEdge(t, func(t *testing.T, base uint16) {
		for _, ahead := range []uint16{0, 1, 62, 63, 64, 65, 127, 128, 191, 192, 254, 255} {
			var s idSet
			s.add(base + ahead)
			require.Equal(t, base+ahead, s.lowest(base))
			s.add(base + 255)
			require.Equal(t, base+ahead, s.lowest(base))
			if ahead < 255 {
				s.remove(base + ahead)
				require.Equal(t, base+255, s.lowest(base))
			}
			require.Equal(t, 1, s.n)
		}
	})
}

// The dumb model: a map.
func TestIDSetIsASet(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		base := rapid.SampledFrom(edgeStarts).Draw(t, "base")
		var s idSet
		model := map[uint16]bool{}
		for range rapid.IntRange(1, 100).Draw(t, "steps") {
			id := base + uint16(rapid.IntRange(0, 255).Draw(t, "ahead"))
			switch rapid.IntRange(0, 3).Draw(t, "action") {
			case 0, 1:
				s.add(id)
				model[id] = true
			case 2:
				s.remove(id)
				delete(model, id)
			case 3: // base never passes a member
				for step := id - base; step > 0 && !model[base]; step-- {
					base++
				}
			}
			require.Equal(t, len(model), s.n)
			require.Equal(t, model[id], s.has(id))
			if len(model) > 0 {
				lowest := uint16(255)
				for id := range model {
					lowest = min(lowest, id-base)
				}
				require.Equal(t, base+lowest, s.lowest(base))
			}
		}
	})
}
