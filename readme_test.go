package ackbits_test

import (
	"bufio"
	"bytes"
	"go/build"
	"io/fs"
	"net/url"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// Documents are checked like code: what they show compiles, what they link to
// exists. A passage of Go that a document shows is marked where it is compiled,
//
//	// README: begin name
//	…
//	// README: end name
//
// and its fenced block is that passage, to the letter but for the indentation
// that all of its lines share.

// documents returns the files that are checked: README.md, and of the others
// those there are.
func documents(t *testing.T) []string {
	t.Helper()
	found := []string{"README.md"}
	for _, pattern := range []string{"CONTRIBUTING.md", "SECURITY.md", "docs/*.md", "docs/*/README.md", "examples/*/README.md", "internal/*/README.md", "interop/*/README.md"} {
		names, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		found = append(found, names...)
	}
	return found
}

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return strings.ReplaceAll(string(text), "\r\n", "\n")
}

func TestDocumentsShowCompiledCode(t *testing.T) {
	passages := markedPassages(t)
	for _, name := range documents(t) {
		shown := blocks(read(t, name), "go")
		if name == "README.md" && len(shown) == 0 {
			t.Error("README.md shows no Go")
		}
		for _, b := range shown {
			if _, ok := passages[b.text]; !ok {
				t.Errorf("%s:%d: this block is no marked passage of a compiled file:\n%s", name, b.line, b.text)
			}
		}
	}
}

var exampleOutput = regexp.MustCompile(`// (?:Unordered o|O)utput:\n((?:\s*//.*\n)+)`)

// What the guide's programs print stands in the guide, and nothing else.
func TestGuideShowsWhatItsStepsPrint(t *testing.T) {
	names, err := filepath.Glob("examples/guide/*/main_test.go")
	if err != nil || len(names) == 0 {
		t.Fatal("no steps", err)
	}
	printed := make(map[string]string)
	for _, name := range names {
		m := exampleOutput.FindStringSubmatch(read(t, name))
		if m == nil {
			t.Errorf("%s: no Output", name)
			continue
		}
		var out strings.Builder
		for line := range strings.Lines(m[1]) {
			out.WriteString(strings.TrimPrefix(strings.TrimPrefix(strings.TrimSpace(line), "//"), " ") + "\n")
		}
		printed[out.String()] = name
	}
	for _, b := range blocks(read(t, "docs/guide.md"), "text") {
		if _, ok := printed[b.text]; !ok {
			t.Errorf("docs/guide.md:%d: no step prints this:\n%s", b.line, b.text)
		}
		delete(printed, b.text)
	}
	for _, name := range printed {
		t.Errorf("docs/guide.md does not show what %s says", name)
	}
}

func TestReadmeNamesTheCommands(t *testing.T) {
	text := read(t, "README.md")
	for _, command := range []string{"go test ./...", "go run ./examples/quickstart", "go run ./examples/hello serve", "go run ./examples/hello join"} {
		if !strings.Contains(text, command) {
			t.Errorf("README.md does not name %q", command)
		}
	}
}

var (
	version   = regexp.MustCompile(` \d+(\.\d+)+`)
	timesOurs = regexp.MustCompile(`\d+(\.\d+)?×`)
)

// What README.md shows of the comparison is in its table: CPU with ten messages a tick,
// allocations, and idle memory.
func TestReadmeShowsTheTableOfTheBench(t *testing.T) {
	_, table, _ := strings.Cut(read(t, "README.md"), "| CPU, ten messages a tick |")
	shown := regexp.MustCompile(`(?m)^\| ([a-zA-Z].*) \| (.*) \| (.*) \| (.*) \|$`).FindAllStringSubmatch(strings.Split(table, "\n\n")[0], -1)
	if len(shown) < 4 {
		t.Fatal("README.md shows no comparison")
	}
	measured := make(map[string][]string)
	for line := range strings.Lines(read(t, "internal/bench/results/table.md")) {
		if cells := strings.Split(strings.TrimSpace(line), " | "); len(cells) == 7 {
			name := version.ReplaceAllString(strings.TrimPrefix(cells[0], "| "), "")
			measured[name] = []string{cells[3], strings.TrimSuffix(cells[4], ".0"), cells[5]}
		}
	}
	for _, row := range shown {
		is := measured[row[1]]
		if is == nil {
			t.Errorf("the bench's table has no %s", row[1])
			continue
		}
		want := []string{timesOurs.FindString(is[0]), is[1], timesOurs.FindString(is[2])}
		if row[1] == "ackbits" {
			want = []string{is[0] + " ns", is[1], is[2] + " KiB"}
		}
		if got := row[2:]; !slices.Equal(got, want) {
			t.Errorf("README.md says %q of %s, the bench's table %q", got, row[1], want)
		}
	}
}

// README, changelog and the rules of releasing say the same of versions and modules.
func TestDocumentsAgreeOnVersions(t *testing.T) {
	heading := regexp.MustCompile(`(?m)^## (v\d+\.\d+\.\d+), (unreleased|\d{4}-\d\d-\d\d)$`)
	newest := heading.FindStringSubmatch(read(t, "CHANGELOG.md"))
	if newest == nil {
		t.Fatal("CHANGELOG.md begins with no version")
	}
	label := "[" + newest[1]
	if newest[2] == "unreleased" {
		label += ", unreleased"
	}
	if !strings.Contains(read(t, "README.md"), label+"](CHANGELOG.md)") {
		t.Errorf("README.md does not say %s](CHANGELOG.md)", label)
	}
	rules := read(t, "CONTRIBUTING.md")
	for _, name := range walk(t) {
		dir, file := path.Split(filepath.ToSlash(name))
		if dir == "" || file != "go.mod" {
			continue
		}
		dir = path.Clean(dir)
		if !strings.Contains(rules, "`"+dir+"`") {
			t.Errorf("CONTRIBUTING.md does not name the module in %s", dir)
		}
		root := "replace " + modulePath + " => " + strings.Repeat("/..", 1+strings.Count(dir, "/"))[1:] + "\n"
		if !strings.Contains(read(t, name), root) {
			t.Errorf("%s does not say %s", name, root)
		}
	}
}

func TestDocumentsLinkToFiles(t *testing.T) {
	for _, name := range documents(t) {
		for _, target := range relativeLinks(read(t, name)) {
			file := path.Join(path.Dir(filepath.ToSlash(name)), target)
			if strings.HasPrefix(target, "/") {
				file = path.Join(".", strings.TrimLeft(target, "/"))
			}
			if !filepath.IsLocal(file) {
				t.Errorf("%s: link %q leads out of the repository", name, target)
			} else if _, err := os.Stat(file); err != nil {
				t.Errorf("%s: link %q: %v", name, target, err)
			}
		}
	}
}

// The text of the repository is about the library, not about the machine on
// which it was written.
func TestFilesDoNotNameTheWorkshop(t *testing.T) {
	words := []string{"/wo" + "rk/", "sub" + "agent", "farm-" + "bench", "proxy.gol" + "ang.org"}
	for _, name := range trackedFiles(t) {
		text, err := os.ReadFile(name)
		if os.IsNotExist(err) {
			continue // removed, and not committed yet
		}
		if err != nil {
			t.Error(err)
			continue
		}
		if bytes.IndexByte(text, 0) >= 0 {
			continue // not text
		}
		text = bytes.ToLower(text)
		for _, word := range words {
			if at := bytes.Index(text, []byte(word)); at >= 0 {
				t.Errorf("%s:%d: %q", name, 1+bytes.Count(text[:at], []byte("\n")), word)
			}
		}
	}
}

// goFiles returns the Go files that are compiled on this system, those of nested
// modules included.
func goFiles(t *testing.T) (names []string) {
	t.Helper()
	for _, name := range walk(t) {
		dir, file := filepath.Split(name)
		if filepath.Ext(file) != ".go" || strings.Contains(filepath.ToSlash(dir), "testdata/") {
			continue
		}
		compiled, err := build.Default.MatchFile(dir, file)
		if err != nil {
			t.Error(err)
		}
		if compiled {
			names = append(names, name)
		}
	}
	return names
}

// walk returns all files that do not hide.
func walk(t *testing.T) (names []string) {
	t.Helper()
	err := filepath.WalkDir(".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && name != "." && (entry.Name()[0] == '.' || entry.Name()[0] == '_'):
			return fs.SkipDir
		case entry.Type().IsRegular():
			names = append(names, name)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// trackedFiles returns the files that git knows, or all where there is no git.
func trackedFiles(t *testing.T) (names []string) {
	t.Helper()
	list, err := exec.Command("git", "ls-files", "-z").Output()
	if err != nil {
		t.Log("without git:", err)
		return walk(t)
	}
	for name := range strings.SplitSeq(string(list), "\x00") {
		if name != "" {
			names = append(names, name)
		}
	}
	return names
}

var marker = regexp.MustCompile(`^\s*// README: (begin|end) (\S+)$`)

// markedPassages returns the passages that are marked, with the files they are in.
func markedPassages(t *testing.T) map[string]string {
	t.Helper()
	passages := make(map[string]string)
	for _, name := range goFiles(t) {
		var open string
		var lines []string
		for line := range strings.Lines(read(t, name)) {
			line = strings.TrimSuffix(line, "\n")
			m := marker.FindStringSubmatch(line)
			switch {
			case m == nil:
				lines = append(lines, line)
			case m[1] == "begin" && open == "":
				open, lines = m[2], nil
			case m[1] == "end" && open == m[2]:
				passages[dedent(lines)] = name
				open = ""
			default:
				t.Errorf("%s: %q does not fit the marker before it", name, strings.TrimSpace(line))
			}
		}
		if open != "" {
			t.Errorf("%s: %q has no end", name, open)
		}
	}
	return passages
}

type block struct {
	line int // of its fence
	text string
}

var fence = regexp.MustCompile("^\\s*(```+|~~~+)\\s*(\\w*)")

// blocks returns the fenced blocks of a language.
func blocks(document, of string) (found []block) {
	eachLine(document, func(number int, line, language string, opens bool) {
		switch {
		case opens && language == of:
			found = append(found, block{line: number})
		case !opens && language == of:
			found[len(found)-1].text += line + "\n"
		}
	})
	for i := range found {
		found[i].text = dedent(strings.Split(found[i].text, "\n"))
	}
	return found
}

// eachLine calls f for the lines of a document, with the language of the fenced
// block that a line opens or is in: "" outside, "text" if it has none. Lines that
// close a block are left out.
func eachLine(document string, f func(number int, line, language string, opens bool)) {
	lines := bufio.NewScanner(strings.NewReader(document))
	lines.Buffer(nil, len(document)+1)
	closing, language := "", ""
	for number := 1; lines.Scan(); number++ {
		m := fence.FindStringSubmatch(lines.Text())
		switch {
		case closing == "" && m != nil:
			if closing, language = m[1], m[2]; language == "" {
				language = "text"
			}
			f(number, lines.Text(), language, true)
		case closing != "" && strings.TrimSpace(lines.Text()) == closing:
			closing, language = "", ""
		default:
			f(number, lines.Text(), language, false)
		}
	}
}

// dedent takes away the indentation that all lines share, and empty lines at
// both ends.
func dedent(lines []string) string {
	shared, first := "", true
	for _, line := range lines {
		text := strings.TrimLeft(line, " \t")
		if text == "" {
			continue
		}
		indent := line[:len(line)-len(text)]
		if first {
			shared, first = indent, false
		}
		for !strings.HasPrefix(indent, shared) {
			shared = shared[:len(shared)-1]
		}
	}
	var b strings.Builder
	for _, line := range lines {
		if strings.TrimSpace(line) != "" {
			b.WriteString(strings.TrimPrefix(line, shared))
		}
		b.WriteByte('\n')
	}
	return strings.Trim(b.String(), "\n") + "\n"
}

var (
	code = regexp.MustCompile("`[^`\n]*`")
	link = regexp.MustCompile(`\]\(\s*<?([^)>\s]+)` + // [text](target)
		`|(?m:^\s*\[[^\]]+\]:\s*<?([^>\s]+))` + // [name]: target
		`|\b(?:href|src|srcset)="([^"]+)"`)
)

// relativeLinks returns the targets of links and images that are files of this
// repository.
func relativeLinks(document string) (targets []string) {
	var prose strings.Builder
	eachLine(document, func(_ int, line, language string, _ bool) {
		if language == "" {
			prose.WriteString(line + "\n")
		}
	})
	for _, m := range link.FindAllStringSubmatch(code.ReplaceAllString(prose.String(), "code"), -1) {
		u, err := url.Parse(m[1] + m[2] + m[3])
		if err != nil {
			targets = append(targets, m[0]) // no file is called that
		} else if u.Scheme == "" && u.Host == "" && u.Path != "" {
			targets = append(targets, u.Path)
		}
	}
	return targets
}
