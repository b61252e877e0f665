package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestFilesAreCurrent tells the stories again: the files are what they were, and no
// other lies beside them.
func TestFilesAreCurrent(t *testing.T) {
	const dir = "../../testdata/vectors"
	names, err := filepath.Glob(dir + "/*.json")
	require.NoError(t, err)
	require.Len(t, names, len(stories), "a file that no story writes, or a story without a file")
	for _, s := range stories {
		text, err := os.ReadFile(filepath.Join(dir, s.name+".json"))
		require.NoError(t, err)
		if string(s.file()) != string(text) { // require.Equal would print megabytes
			t.Errorf("%s.json is not what the library does: see TestVectors, then go run ./internal/vectors", s.name)
		}
	}
}
