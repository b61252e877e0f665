package main

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// suite is the compiled tests of one package.
type suite struct {
	binary string
	dir    string // where they run
	flags  []string
}

// test is one of them.
type test struct {
	suite *suite
	name  string
	took  time.Duration
	feels []byte // by the number of a mutant: 1 if it computes anything else for this test
}

// command prepares a run of the tests that match a pattern, with a mutant; 0 is none.
func (s *suite) command(ctx context.Context, mutant int, pattern string, args ...string) *exec.Cmd {
	args = append(args, s.flags...)
	c := exec.CommandContext(ctx, s.binary, append(args, "-test.run", pattern)...)
	c.Dir = s.dir
	c.Env = append(os.Environ(), "MUTANT="+strconv.Itoa(mutant))
	return c
}

// notices reports whether the tests that match a pattern fail with a mutant, or do
// not end within limit. A machine that is busy with something else gets more time.
func (s *suite) notices(mutant int, pattern string, limit time.Duration) (noticed bool, out []byte) {
	for range 4 {
		// The tests' own limit comes first, since it names the test that hangs.
		ctx, cancel := context.WithTimeout(context.Background(), limit+2*time.Second)
		c := s.command(ctx, mutant, pattern, "-test.timeout", limit.String())
		began := time.Now()
		out, err := c.CombinedOutput()
		cancel()
		used := c.ProcessState.UserTime() + c.ProcessState.SystemTime()
		if err == nil {
			return false, out
		}
		if time.Since(began) < limit || used > limit/2 {
			return true, out
		}
		limit *= 2
	}
	return true, out
}

// list returns the tests whose names match a pattern, "" being all.
func (s *suite) list(pattern string) ([]*test, error) {
	out, err := exec.Command(s.binary, "-test.list", cmp.Or(pattern, ".")).Output()
	if err != nil {
		return nil, err
	}
	var tests []*test
	for line := range strings.Lines(string(out)) {
		name := strings.TrimSpace(line)
		if strings.HasPrefix(name, "Test") || strings.HasPrefix(name, "Fuzz") || strings.HasPrefix(name, "Example") {
			tests = append(tests, &test{suite: s, name: name})
		}
	}
	return tests, nil
}

// measure runs a test without a mutant, and notes how long it takes and which of n
// mutants it feels.
func (t *test) measure(n int, work string) error {
	file, err := os.Create(filepath.Join(work, t.name+".felt"))
	if err != nil {
		return err
	}
	defer os.Remove(file.Name())
	if err := file.Truncate(int64(n + 1)); err != nil {
		return err
	}
	if err := file.Close(); err != nil {
		return err
	}
	c := t.suite.command(context.Background(), 0, "^"+t.name+"$")
	c.Env = append(c.Env, "MUTANTS_FELT="+file.Name())
	began := time.Now()
	if out, err := c.CombinedOutput(); err != nil {
		return fmt.Errorf("%s fails without a mutant: %w:\n%s", t.name, err, out)
	}
	t.took = time.Since(began)
	t.feels, err = os.ReadFile(file.Name())
	return err
}

// killer returns the test that failed, or did not end.
func killer(out []byte) string {
	_, after, found := bytes.Cut(out, []byte("--- FAIL: "))
	if !found {
		if _, after, found = bytes.Cut(out, []byte("\tTest")); !found || !bytes.HasPrefix(out, []byte("panic")) {
			return ""
		}
		after = slices.Concat([]byte("Test"), after)
	}
	name, _, _ := strings.Cut(strings.FieldsFunc(string(after), func(r rune) bool { return strings.ContainsRune(" (\n\t", r) })[0], "/")
	return name
}
