package ring

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestElementsSurviveResizing(t *testing.T) {
	for _, first := range []int64{0, 1, 7, 8, 65533, 1 << 40} {
		r := make(Ring[int64], 8)
		for k := first; k < first+8; k++ {
			*r.At(k) = k
		}
		for _, n := range []int{8, 16, 1024} {
			resized := r.Resized(n, first, first+8)
			require.Len(t, resized, n)
			for k := first; k < first+8; k++ {
				require.Equal(t, k, *resized.At(k))
			}
		}
		small := r.Resized(4, first+4, first+8)
		for k := first + 4; k < first+8; k++ {
			require.Equal(t, k, *small.At(k))
		}
	}
}

func TestEmptyRingGrows(t *testing.T) {
	var r Ring[int]
	require.Len(t, r.Resized(4, 9, 9), 4)
}

func TestCeil(t *testing.T) {
	for n, want := range map[int]int{1: 1, 2: 2, 3: 4, 4: 4, 5: 8, 255: 256, 256: 256, 257: 512} {
		require.Equal(t, want, Ceil(n), n)
	}
}
