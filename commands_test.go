package ackbits_test

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Commands in documents are checked like links: the packages, flags, tags, variables
// of the environment and names of tests that they mention exist. It is done by reading
// the sources, as running them all would take hours. What a `go run` runs has tests of
// its own, or .ci/run runs it.

// command is a line of a shell, or what a sentence quotes of one.
type command struct {
	line int
	text string
	dirs []string // where it may be meant to run
}

func TestDocumentsNameCommandsThatExist(t *testing.T) {
	checked := 0
	for _, name := range documents(t) {
		for _, c := range commands(filepath.Dir(name), read(t, name)) {
			checked++
			err := checkCommand(filepath.Dir(name), c.dirs[0], words(c.text))
			if err != nil && len(c.dirs) > 1 && checkCommand(filepath.Dir(name), c.dirs[1], words(c.text)) == nil {
				err = nil
			}
			if err != nil {
				t.Errorf("%s:%d: %s: %v", name, c.line, c.text, err)
			}
		}
	}
	if checked < 50 {
		t.Errorf("only %d commands were found", checked)
	}
}

// A check that passes everything would not be noticed above.
func TestWrongCommandsAreFound(t *testing.T) {
	for text, want := range map[string]string{
		"go -C internal/bench run . -tags enet":    "no flag -tags",
		"go run ./examples/quickstart -lose 0.2":   "no flag -lose",
		"go run ./examples/quickstarts":            "no Go files",
		"go run ./simnet":                          "no program",
		"go -C examples/arena run . sevre":         "no word sevre",
		"go test -run Wlak .":                      "no test matches Wlak",
		"go test -run 'Walk|Wlak' .":               "no test matches Wlak",
		"go test -fuzz FuzzWlak .":                 "no test matches FuzzWlak",
		"go test -tags tsark ./internal/wireshark": "no build tag tsark",
		"go test -update-reply .":                  "no flag -update-reply",
		"ACKBITS_SAOK=24h go test -run Soak .":     "no variable ACKBITS_SAOK",
		"go get github.com/ackbits/ackbit":         "not this module",
		"go build -o x .":                          "unknown command",
		".ci/runs":                                 "no such file",
		"sleep 1":                                  "unknown command",
	} {
		require.ErrorContains(t, checkCommand(".", ".", words(text)), want, text)
	}
	document := "Run\n\n    cd examples\n    go run ./arena # plays\n\n```sh\ngo test .\n```\nor `X=1 go vet .`, not `Send`.\n"
	require.Equal(t, []command{
		{4, "go run ./arena", []string{"examples"}},
		{7, "go test .", []string{".", "docs"}},
		{9, "X=1 go vet .", []string{".", "docs"}},
	}, commands("docs", document))
	require.Equal(t, []string{"A=b c", "go", "run", "x y", ""}, words(`A='b c' go run "x y" ''`))
}

var (
	quoted  = regexp.MustCompile("`((?:[A-Z_]+=\\S+ )*(?:go (?:-C|run|test|vet|get) |\\.ci/|\\./run)[^`]*)`")
	comment = regexp.MustCompile(`\s+#\s.*$`)
)

// commands returns the commands of a document: the lines of indented and of fenced
// blocks, and what sentences quote.
func commands(own, document string) (found []command) {
	dir, before, indented := ".", "", false
	eachLine(document, func(number int, line, language string, opens bool) {
		shell := language == "sh" && !opens
		indented = language == "" && strings.HasPrefix(line, "    ") && (indented || before == "")
		before = strings.TrimSpace(line)
		switch {
		case shell || indented:
			text := comment.ReplaceAllString(before, "")
			if to, ok := strings.CutPrefix(text, "cd "); ok {
				dir = filepath.Join(dir, to)
			} else if text != "" {
				found = append(found, command{number, text, dirs(dir, own)})
			}
		case language == "":
			dir = "."
			for _, m := range quoted.FindAllStringSubmatch(line, -1) {
				found = append(found, command{number, m[1], dirs(".", own)})
			}
		case opens:
			dir = "."
		}
	})
	return found
}

// dirs is where a command may be meant to run: where the last cd led to, else in the
// root, or the document's own folder.
func dirs(dir, own string) []string {
	if dir != "." || own == "." {
		return []string{dir}
	}
	return []string{dir, own}
}

// words splits a command as a shell does, as far as documents need it.
func words(text string) (list []string) {
	var word strings.Builder
	quote, some := rune(0), false
	for _, r := range text + " " {
		switch {
		case r == quote:
			quote = 0
		case quote == 0 && (r == '\'' || r == '"'):
			quote, some = r, true
		case quote == 0 && r == ' ':
			if some {
				list = append(list, word.String())
			}
			word.Reset()
			some = false
		default:
			word.WriteRune(r)
			some = true
		}
	}
	return list
}

// checkCommand says what is wrong with a command of a document in the folder own, if it
// is run in dir.
func checkCommand(own, dir string, words []string) error {
	var env []string
	for len(words) > 0 && strings.Contains(words[0], "=") {
		name, _, _ := strings.Cut(words[0], "=")
		env, words = append(env, name), words[1:]
	}
	if len(words) == 0 {
		return fmt.Errorf("unknown command")
	}
	if len(words) > 2 && words[0] == "go" && words[1] == "-C" {
		dir = filepath.Join(dir, words[2])
		words = append([]string{"go"}, words[3:]...)
	}
	switch first := words[0]; {
	case strings.HasPrefix(first, ".ci/"):
		return exists(first)
	case strings.HasPrefix(first, "./"):
		return exists(filepath.Join(own, first))
	case (first == "wireshark" || first == "tshark") && len(words) > 2:
		_, script, _ := strings.Cut(words[2], "lua_script:")
		return exists(filepath.Join(own, script))
	case first == "go" && len(words) > 2 && words[1] == "get":
		if words[2] != modulePath {
			return fmt.Errorf("%s is not this module", words[2])
		}
		return nil
	case first == "go" && len(words) > 1 && slices.Contains([]string{"run", "test", "vet"}, words[1]):
		return checkGo(dir, env, words[1], words[2:])
	}
	return fmt.Errorf("unknown command %s", words[0])
}

func exists(name string) error {
	if _, err := os.Stat(name); err != nil {
		return fmt.Errorf("no such file: %s", name)
	}
	return nil
}

const modulePath = "github.com/ackbits/ackbits"

// valued are the flags of the go command that documents use and that have a value.
var valued = []string{"-tags", "-exec", "-run", "-bench", "-fuzz", "-fuzztime", "-fuzzminimizetime", "-benchtime", "-count", "-timeout", "-rapid.checks"}

// checkGo checks go run, go test and go vet.
func checkGo(dir string, env []string, verb string, args []string) error {
	var packages, flags, tags, names []string
	for len(args) > 0 && !(verb == "run" && len(packages) > 0) {
		arg := args[0]
		args = args[1:]
		switch {
		case slices.Contains(valued, arg) && len(args) > 0:
			if arg == "-tags" {
				tags = append(tags, args[0])
			} else if slices.Contains([]string{"-run", "-bench", "-fuzz"}, arg) && args[0] != "^$" {
				names = append(names, strings.Split(args[0], "|")...)
			}
			args = args[1:]
		case arg == "-v" || arg == "-short" || arg == "-race":
		case strings.HasPrefix(arg, "-"):
			flags = append(flags, arg)
		default:
			packages = append(packages, arg)
		}
	}
	if len(packages) == 0 && len(names)+len(flags)+len(tags) > 0 {
		packages = []string{"."}
	}
	var all sources
	for _, pattern := range packages {
		s, err := sourcesOf(dir, pattern, verb != "run")
		if err != nil {
			return err
		}
		all += s
	}
	if verb == "run" {
		if err := all.checkProgram(dir, packages[0], args); err != nil {
			return err
		}
	}
	if len(tags) > 0 { // which may concern packages that are imported
		more, err := sourcesOf(dir, "./...", true)
		if err != nil {
			return err
		}
		for _, tag := range tags {
			if !regexp.MustCompile(`(?m)^//go:build .*\b` + tag + `\b`).MatchString(string(more)) {
				return fmt.Errorf("no build tag %s", tag)
			}
		}
	}
	return all.check(env, flags, names)
}

// sources are the text of the packages that a command names.
type sources string

// sourcesOf reads the packages that a pattern names, with their tests or without. Many
// commands name the same ones.
func sourcesOf(dir, pattern string, tests bool) (sources, error) {
	key := fmt.Sprint(dir, " ", pattern, tests)
	if s, ok := readBefore[key]; ok {
		return s, nil
	}
	s, err := readSources(dir, pattern, tests)
	if err == nil {
		readBefore[key] = s
	}
	return s, err
}

var readBefore = map[string]sources{}

func readSources(dir, pattern string, tests bool) (sources, error) {
	var text strings.Builder
	root, deep := strings.CutSuffix(pattern, "/...")
	root = filepath.Join(dir, filepath.FromSlash(root))
	err := filepath.WalkDir(root, func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && name != root:
			if _, err := os.Stat(filepath.Join(name, "go.mod")); err == nil || !deep || entry.Name() == "testdata" || entry.Name()[0] == '.' {
				return fs.SkipDir
			}
		case filepath.Ext(name) == ".go" && (tests || !strings.HasSuffix(name, "_test.go")):
			b, err := os.ReadFile(name)
			text.Write(b)
			return err
		}
		return nil
	})
	if err != nil || text.Len() == 0 {
		return "", fmt.Errorf("no Go files in %s", root)
	}
	return sources(strings.ReplaceAll(text.String(), "\r\n", "\n")), nil
}

// untried are programs that neither tests nor .ci/run start, and why.
var untried = map[string]string{
	"examples/playground/browser/pictures": "draws the pictures of the README, in a browser",
}

var (
	subcommand = regexp.MustCompile(`^[a-z]+$`)
	program    = regexp.MustCompile(`(?m)^package main$`)
)

// checkProgram checks the arguments of a program that go run runs in dir, and that
// somebody tries it.
func (s sources) checkProgram(dir, pattern string, args []string) error {
	at := filepath.ToSlash(filepath.Join(dir, pattern))
	if !program.MatchString(string(s)) {
		return fmt.Errorf("no program in %s", at)
	}
	ci, err := os.ReadFile(".ci/run")
	if err != nil {
		return err
	}
	tests, err := filepath.Glob(filepath.Join(at, "*_test.go"))
	if err != nil {
		return err
	}
	started := strings.Contains(string(ci), "go run ./"+at) || strings.Contains(string(ci), fmt.Sprintf("go -C %s run %s", filepath.ToSlash(dir), pattern))
	if len(tests) == 0 && !started && untried[at] == "" {
		return fmt.Errorf("neither tests nor .ci/run try %s", at)
	}
	if len(args) > 0 && subcommand.MatchString(args[0]) && !strings.Contains(string(s), strconv.Quote(args[0])) {
		return fmt.Errorf("no word %s in %s", args[0], at)
	}
	for _, arg := range args {
		if err := s.checkFlag(arg); err != nil {
			return err
		}
	}
	return nil
}

// check checks what a command says of the environment, and of tests and their flags.
func (s sources) check(env, flags, names []string) error {
	for _, name := range env {
		if !strings.Contains(string(s), strconv.Quote(name)) && name != "GOOS" && name != "GOARCH" {
			return fmt.Errorf("no variable %s", name)
		}
	}
	for _, flag := range flags {
		if err := s.checkFlag(flag); err != nil {
			return err
		}
	}
	for _, name := range names {
		if err := s.checkTest(name); err != nil {
			return err
		}
	}
	return nil
}

var testFunction = regexp.MustCompile(`^func ((?:Test|Benchmark|Fuzz|Example)\w*)\(`)

// checkTest checks that a test, benchmark, fuzz target or example matches.
func (s sources) checkTest(pattern string) error {
	re, err := regexp.Compile(pattern)
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(s)) {
		if !strings.HasPrefix(line, "func ") {
			continue // quickly: there are many
		}
		if m := testFunction.FindStringSubmatch(line); m != nil && re.MatchString(m[1]) {
			return nil
		}
	}
	return fmt.Errorf("no test matches %s", pattern)
}

// checkFlag checks that the sources define a flag, if arg is one.
func (s sources) checkFlag(arg string) error {
	name, _, _ := strings.Cut(strings.TrimPrefix(arg, "-"), "=")
	if !strings.HasPrefix(arg, "-") || name == "h" {
		return nil
	}
	const call = `\.(?:Bool|String|Int|Int64|Uint|Uint64|Float64|Duration|Func|BoolFunc|Text)?(?:Var)?\((?:[^,"\n]+, )?"`
	if !regexp.MustCompile(call + regexp.QuoteMeta(name) + `"`).MatchString(string(s)) {
		return fmt.Errorf("no flag -%s", name)
	}
	return nil
}
