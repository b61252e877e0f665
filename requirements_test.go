package ackbits_test

import (
	"cmp"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ackbits/ackbits/internal/trace"
)

var updateRequirements = flag.Bool("update-requirements", false, "write docs/requirements.md anew")

const requirementsFile = "docs/requirements.md"

// TestEveryRequirementIsTraced reads docs/protocol.md and all sources: the code
// that keeps a requirement cites it, and so does a test. docs/requirements.md is the
// list of them. That the tests cited notice when the code is broken is what
// `go -C internal/mutate run . -requirements 20` tries.
func TestEveryRequirementIsTraced(t *testing.T) {
	requirements := trace.Document(read(t, protocolFile))
	require.NotEmpty(t, requirements)
	citations, err := trace.Sources(".")
	require.NoError(t, err)
	known := map[string]bool{}
	for _, r := range requirements {
		known[r.ID] = true
	}
	code, tests := map[string][]trace.Citation{}, map[string][]trace.Citation{}
	for _, c := range citations {
		switch {
		case strings.HasPrefix(c.File, "internal/trace/"): // examples of its own
		case !known[c.ID]:
			t.Errorf("%s:%d: %s is not in %s", c.File, c.Line, c.ID, protocolFile)
		case c.Test:
			tests[c.ID] = append(tests[c.ID], c)
		default:
			code[c.ID] = append(code[c.ID], c)
		}
	}
	for _, r := range requirements {
		if code[r.ID] == nil {
			t.Errorf("%s:%d: no code cites %s", protocolFile, r.Line, r.ID)
		}
		if tests[r.ID] == nil {
			t.Errorf("%s:%d: no test cites %s", protocolFile, r.Line, r.ID)
		}
	}
	list := requirementList(requirements, code, tests)
	if *updateRequirements {
		require.NoError(t, os.WriteFile(requirementsFile, []byte(list), 0o644))
	}
	if read(t, requirementsFile) != list {
		t.Errorf("%s is not current: go test -run Requirement . -update-requirements", requirementsFile)
	}
}

// requirementList is docs/requirements.md.
func requirementList(requirements []trace.Requirement, code, tests map[string][]trace.Citation) string {
	var out strings.Builder
	out.WriteString("# Requirements\n\nWhat [protocol.md](protocol.md) requires, the code that keeps it, and the tests that fail without it. Generated: `go test -run Requirement . -update-requirements`.\n")
	chapter := 0
	for _, r := range requirements {
		if n := trace.Numbers(r.ID)[0]; n != chapter {
			chapter = n
			fmt.Fprintf(&out, "\n## Chapter %d\n\n| | requirement | code | tests |\n|---|---|---|---|\n", n)
		}
		text := strings.ReplaceAll(r.Text, "|", `\|`)
		fmt.Fprintf(&out, "| [%s](protocol.md#%s) | %s | %s | %s |\n", r.ID, slug(r.Section), text, places(code[r.ID]), places(tests[r.ID]))
	}
	return out.String()
}

// places lists where a requirement is cited, by file. Lines would change too often.
func places(citations []trace.Citation) string {
	var found []string
	for _, c := range citations {
		place := fmt.Sprintf("[%s](../%s) %s", strings.TrimSuffix(filepath.Base(c.File), ".go"), c.File, c.Name)
		if dir := filepath.Dir(c.File); dir != "." {
			place = fmt.Sprintf("[%s](../%s) %s", strings.TrimSuffix(c.File, ".go"), c.File, c.Name)
		}
		if !slices.Contains(found, place) {
			found = append(found, place)
		}
	}
	return strings.Join(found, "<br>")
}

var notInSlug = regexp.MustCompile(`[^a-z0-9 -]`)

// slug is the anchor of a heading.
func slug(heading string) string {
	return strings.ReplaceAll(notInSlug.ReplaceAllString(strings.ToLower(heading), ""), " ", "-")
}

// TestRequirementsAreNumberedInARow keeps the numbers as a reader expects them.
func TestRequirementsAreNumberedInARow(t *testing.T) {
	before := [3]int{}
	for _, r := range trace.Document(read(t, protocolFile)) {
		n := trace.Numbers(r.ID)
		section, _, _ := strings.Cut(r.Section, " ")
		// A chapter without sections has its rules in section 1.
		require.Contains(t, []string{fmt.Sprintf("%d.%d", n[0], n[1]), fmt.Sprint(n[0])}, section, "%s stands in %q", r.ID, r.Section)
		want := [3]int{n[0], n[1], 1}
		if n[0] == before[0] && n[1] == before[1] {
			want[2] = before[2] + 1
		}
		require.Equal(t, want, n, "the rules before %s", r.ID)
		require.Positive(t, cmp.Or(n[0]-before[0], n[1]-before[1], n[2]-before[2]))
		before = n
	}
}

// TestDocumentsCiteRulesThatExist reads everything else: documents, the dissector,
// the other implementations.
func TestDocumentsCiteRulesThatExist(t *testing.T) {
	known := map[string]bool{}
	for _, r := range trace.Document(read(t, protocolFile)) {
		known[r.ID] = true
	}
	err := filepath.WalkDir(".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			if name := entry.Name(); path != "." && (strings.HasPrefix(name, ".") || name == "node_modules" || name == "trace") {
				return filepath.SkipDir
			}
			return nil
		}
		if slices.Contains([]string{".md", ".lua", ".c", ".h", ".js", ".mjs"}, filepath.Ext(path)) {
			for _, id := range trace.Mentions(read(t, path)) {
				require.True(t, known[id], "%s cites %s, which is not in %s", path, id, protocolFile)
			}
		}
		return nil
	})
	require.NoError(t, err)
}
