// Command mutate changes the library in one small way after another and sees
// whether its tests notice. A change that none notices is either one that means
// nothing, and stands in equivalent.txt with the reason, or a hole in the tests.
//
//	go -C internal/mutate run .                     # all of the root package
//	go -C internal/mutate run . -files ack,inbox    # some files
//	go -C internal/mutate run . -sample 10          # every tenth mutant
//	go -C internal/mutate run . -requirements 20    # see requirements.go (-seed, -dir ../../endpoint)
//
// All mutants are compiled at once, each behind a number that an environment
// variable chooses, so that trying one takes a run of the tests and no build.
// Tools that build each anew take some hours for what this does in minutes.
package main

import (
	"context"
	_ "embed"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

//go:embed equivalent.txt
var equivalentText string

func main() {
	dir := flag.String("dir", "../..", "the `package` to change")
	files := flag.String("files", "", "only these files, comma-separated, without .go")
	sample := flag.Int("sample", 1, "try every n-th mutant only")
	workers := flag.Int("workers", runtime.NumCPU(), "how many to try at a time")
	tests := flag.String("run", "", "only the tests that match this `pattern`")
	keep := flag.Int("keep", 95, "the least share of mutants that must be noticed, in percent")
	requirements := flag.Int("requirements", 0, "instead, break the code of so many requirements of docs/protocol.md and see whether the tests that cite them notice")
	seed := flag.Uint64("seed", 0, "which requirements; 0: others each time")
	flag.Parse()
	var err error
	if *requirements > 0 {
		err = runRequirements(*dir, *requirements, *seed)
	} else {
		err = run(*dir, *files, *tests, *sample, *workers, *keep)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutate:", err)
		os.Exit(1)
	}
}

// timeoutOfOne is how long the tests of one requirement may take with a mutant.
const timeoutOfOne = time.Minute

func run(dir, files, tests string, sample, workers, keep int) error {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	p, err := load(dir)
	if err != nil {
		return err
	}
	work, err := os.MkdirTemp("", "mutate")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	mutants, binary, err := compile(p, dir, work)
	if err != nil {
		return err
	}
	t := trial{binary: binary, dir: dir, tests: tests, timeout: time.Minute}
	began := time.Now()
	if killed, out := t.notices(0); killed {
		return fmt.Errorf("the tests fail without a mutant:\n%s", out)
	}
	baseline := time.Since(began)
	t.timeout = 5*baseline + 5*time.Second
	fmt.Printf("%d mutants; the tests take %v\n", len(mutants), baseline.Round(time.Millisecond))

	equivalent := map[string]string{}
	for line := range strings.Lines(equivalentText) {
		if mutant, reason, ok := strings.Cut(strings.TrimSpace(line), "  # "); ok {
			equivalent[strings.Join(strings.Fields(mutant), " ")] = reason
		}
	}
	stale := maps.Clone(equivalent)
	for _, m := range mutants {
		delete(stale, m.key)
	}
	for key := range stale {
		fmt.Printf("equivalent.txt names no mutant: %s\n", key)
	}
	var chosen []mutant
	for i, m := range mutants {
		if files != "" && !slices.Contains(strings.Split(files, ","), strings.TrimSuffix(m.file, ".go")) {
			continue
		}
		if i%sample == 0 {
			chosen = append(chosen, m)
		}
	}
	var (
		mu      sync.Mutex
		wg      sync.WaitGroup
		next    int
		killed  int
		known   int      // equivalent ones
		killers []string // tests that noticed something, the last one first
	)
	for range workers {
		wg.Go(func() {
			for {
				mu.Lock()
				if next == len(chosen) {
					mu.Unlock()
					return
				}
				m := chosen[next]
				next++
				mu.Unlock()
				// Neighbours are mostly noticed by the same tests: those first.
				noticed, out := false, []byte(nil)
				mu.Lock()
				likely := strings.Join(killers[:min(len(killers), 10)], "|")
				mu.Unlock()
				if likely != "" && tests == "" {
					quick := t
					quick.tests = "^(" + likely + ")$"
					quick.timeout = 2*baseline + 2*time.Second // a few tests only
					noticed, out = quick.notices(m.id)
				}
				if !noticed {
					noticed, out = t.notices(m.id)
				}
				mu.Lock()
				if noticed {
					killed++
					if name := killer(out); name != "" {
						killers = slices.DeleteFunc(killers, func(k string) bool { return k == name })
						killers = slices.Insert(killers, 0, name)
					}
				} else if reason, ok := equivalent[m.key]; ok {
					known++
					fmt.Printf("equivalent  %s:%d  %s\n            %s\n", m.file, m.line, m.what, reason)
				} else {
					fmt.Printf("SURVIVED    %s:%d  %s\n            %s\n", m.file, m.line, m.what, m.key)
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	share := 100.0
	if n := len(chosen) - known; n > 0 {
		share = 100 * float64(killed) / float64(n)
	}
	fmt.Printf("%d of %d mutants noticed (%.1f %% of those that mean something), %d equivalent, in %v\n",
		killed, len(chosen), share, known, time.Since(began).Round(time.Second))
	if share < float64(keep) {
		return fmt.Errorf("less than %d %% are noticed", keep)
	}
	return nil
}

// killer returns the test that failed.
func killer(out []byte) string {
	_, after, found := strings.Cut(string(out), "--- FAIL: ")
	if !found {
		if _, after, found = strings.Cut(string(out), "\tTest"); !found || !strings.HasPrefix(string(out), "panic") {
			return ""
		}
		after = "Test" + after
	}
	return strings.FieldsFunc(after, func(r rune) bool { return strings.ContainsRune(" /(\n\t", r) })[0]
}

// compile writes the package with all mutants in it to work and compiles its tests.
func compile(p *pkg, dir, work string) (mutants []mutant, binary string, err error) {
	overlay := struct{ Replace map[string]string }{map[string]string{}}
	put := func(name string, text []byte) error {
		path := filepath.Join(work, name)
		overlay.Replace[filepath.Join(dir, name)] = path
		return os.WriteFile(path, text, 0o644)
	}
	for _, f := range p.files {
		text, found := p.instrument(f, len(mutants)+1)
		mutants = append(mutants, found...)
		if err := put(f.name, text); err != nil {
			return nil, "", err
		}
	}
	name(mutants)
	if err := put("zz_mutants.go", []byte("package "+p.name+"\n"+helpers)); err != nil {
		return nil, "", err
	}
	text, err := json.Marshal(overlay)
	if err != nil {
		return nil, "", err
	}
	path := filepath.Join(work, "overlay.json")
	if err := os.WriteFile(path, text, 0o644); err != nil {
		return nil, "", err
	}
	binary = filepath.Join(work, "mutants.test")
	c := exec.Command("go", "test", "-c", "-vet=off", "-overlay", path, "-o", binary, ".")
	c.Dir = dir
	if out, err := c.CombinedOutput(); err != nil {
		return nil, "", fmt.Errorf("%w:\n%s", err, out)
	}
	return mutants, binary, nil
}

// trial runs the tests.
type trial struct {
	binary, dir, tests string
	timeout            time.Duration
}

// notices reports whether the tests fail, or never end, with a mutant; 0 is none.
func (t *trial) notices(id int) (noticed bool, out []byte) {
	ctx, cancel := context.WithTimeout(context.Background(), t.timeout)
	defer cancel()
	args := []string{"-test.timeout", t.timeout.String(), "-test.short", "-test.failfast", "-rapid.nofailfile", "-rapid.shrinktime=1ms"}
	if t.tests != "" {
		args = append(args, "-test.run", t.tests)
	}
	c := exec.CommandContext(ctx, t.binary, args...)
	c.Dir = t.dir
	c.Env = append(os.Environ(), "MUTANT="+strconv.Itoa(id))
	out, err := c.CombinedOutput()
	return err != nil, out
}
