package trace

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestDocumentHasItsRules(t *testing.T) {
	found := Document("# T\n\n## 2 Two\n\n- **P-2.1.1** A peer MUST a. Then b.\n- P-2.1.9 is no rule\n### 2.2 More\n- **P-2.2.10** Only this\n")
	require.Equal(t, []Requirement{
		{"P-2.1.1", "2 Two", "A peer MUST a.", 5},
		{"P-2.2.10", "2.2 More", "Only this", 8},
	}, found)
	require.Negative(t, Compare("P-2.2.9", "P-2.2.10"))
	require.Positive(t, Compare("P-10.1.1", "P-9.9.9"))
}

func TestCitationsBelongToWhatTheyStandAt(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644))
	}
	write("a.go", `package a

// size is that of P-1.1.1.
const (
	size = 1
	// other, P-1.1.2
	other = 2
)

// T is as P-1.1.3 and P-1.1.1 say.
type T struct{}

// f: P-1.1.4
func (t *T) f(x int) int {
	x++
	// P-1.1.5: a guard
	if x > 1 {
		return 2
	}
	x-- // P-1.1.6
	return x
}
`)
	write("a_test.go", "package a\n\n// P-1.1.4\nfunc TestF() {\n\t// P-1.1.5\n}\n")
	write("nested/go.mod", "module nested\n")
	write("nested/b.go", "package b // P-9.9.9\n")
	found, err := Sources(dir)
	require.NoError(t, err)
	type at struct {
		ID, Name string
		Test     bool
		From, To int
	}
	var got []at
	for _, c := range found {
		got = append(got, at{c.ID, c.Name, c.Test, c.From, c.To})
	}
	require.Equal(t, []at{
		{"P-1.1.1", "size", false, 4, 8}, {"P-1.1.1", "T", false, 11, 11},
		{"P-1.1.2", "other", false, 4, 8}, {"P-1.1.3", "T", false, 11, 11},
		{"P-1.1.4", "T.f", false, 14, 22}, {"P-1.1.4", "TestF", true, 4, 6},
		{"P-1.1.5", "T.f", false, 17, 19}, {"P-1.1.5", "TestF", true, 4, 6},
		{"P-1.1.6", "T.f", false, 20, 20},
	}, got)

	write("a_test.go", "package a\n\n// P-1.1.4\nfunc helper() {}\n")
	_, err = Sources(dir)
	require.ErrorContains(t, err, "a_test.go:3: P-1.1.4 is cited outside of a test")
}
