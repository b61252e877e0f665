package endpoint_test

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
)

// Every test that SECURITY.md names for a promise is there.
func TestSecurityNamesTestsThatExist(t *testing.T) {
	text, err := os.ReadFile("../SECURITY.md")
	require.NoError(t, err)
	exists := map[string]bool{}
	for _, pattern := range []string{"*_test.go", "../*_test.go"} {
		files, err := filepath.Glob(pattern)
		require.NoError(t, err)
		for _, file := range files {
			source, err := os.ReadFile(file)
			require.NoError(t, err)
			for _, m := range regexp.MustCompile(`(?m)^func ((?:Test|Fuzz|Benchmark)\w+)\(`).FindAllSubmatch(source, -1) {
				exists[string(m[1])] = true
			}
		}
	}
	names := regexp.MustCompile("`((?:Test|Fuzz|Benchmark)[A-Z]\\w+)`").FindAllSubmatch(text, -1)
	require.Greater(t, len(names), 20)
	for _, m := range names {
		require.True(t, exists[string(m[1])], "%s is not there", m[1])
	}
}
