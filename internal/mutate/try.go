package main

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"time"
)

// options say which mutants are tried, and against which tests.
type options struct {
	files, tests          string
	sample, workers, keep int
	known                 bool
	within                time.Duration
}

// run tries the mutants of a package and fails if too many survive, or if an
// equivalent names none.
func run(dir string, o options) error {
	work, err := os.MkdirTemp("", "mutate")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	began := time.Now()
	b, err := compile(dir, work)
	if err != nil {
		return err
	}
	known := equivalents()
	outdated := stale(known, b.prefix, b.mutants)
	for _, key := range outdated {
		fmt.Printf("equivalent.txt names no mutant: %s\n", key)
	}
	t := &trial{compiled: b, options: o, equivalents: known, tally: map[string]*count{}}
	if err := t.measure(work); err != nil {
		return err
	}
	fmt.Printf("%d mutants, %d tests, ready after %v\n", len(b.mutants), len(t.tests), time.Since(began).Round(time.Second))
	t.chosen = o.choose(b.mutants)
	workers(o.workers, len(t.chosen), func(i int) { t.try(t.chosen[i]) })
	share := t.report()
	fmt.Printf("in %v\n", time.Since(began).Round(time.Second))
	switch {
	case share < float64(o.keep):
		return fmt.Errorf("less than %d %% are noticed", o.keep)
	case len(outdated) > 0:
		return fmt.Errorf("%d lines of equivalent.txt name no mutant", len(outdated))
	}
	return nil
}

// choose returns the mutants to be tried.
func (o *options) choose(mutants []mutant) (chosen []mutant) {
	for i, m := range mutants {
		if o.files != "" && !slices.Contains(strings.Split(o.files, ","), strings.TrimSuffix(m.file, ".go")) {
			continue
		}
		if i%o.sample == 0 {
			chosen = append(chosen, m)
		}
	}
	return chosen
}

// workers calls do for 0 … n-1, some at a time.
func workers(some, n int, do func(i int)) {
	var wg sync.WaitGroup
	next := make(chan int)
	for range some {
		wg.Go(func() {
			for i := range next {
				do(i)
			}
		})
	}
	for i := range n {
		next <- i
	}
	close(next)
	wg.Wait()
}

// trial tries mutants.
type trial struct {
	*compiled
	options
	equivalents map[string]string
	tests       []*test // the quickest first
	chosen      []mutant

	mu      sync.Mutex
	killers []string          // tests that noticed something, the last one first
	tally   map[string]*count // by file
}

// count is what became of the mutants of a file.
type count struct{ noticed, equivalent, survived int }

// measure runs each test once without a mutant. One that fails now and then is left
// out: it would notice what it does not.
func (t *trial) measure(work string) error {
	for _, s := range t.suites {
		tests, err := s.list(t.options.tests)
		if err != nil {
			return err
		}
		t.tests = append(t.tests, tests...)
	}
	errs := make([]error, len(t.tests))
	workers(t.workers, len(t.tests), func(i int) { errs[i] = t.tests[i].measure(len(t.mutants), work) })
	for i, err := range errs {
		if err == nil {
			continue
		}
		if again := t.tests[i].measure(len(t.mutants), work); again != nil {
			return again
		}
		fmt.Printf("UNSTABLE    %v\n", err)
		t.tests[i] = nil
	}
	t.tests = slices.DeleteFunc(t.tests, func(u *test) bool { return u == nil })
	slices.SortFunc(t.tests, func(a, b *test) int { return int(a.took - b.took) })
	return nil
}

// try runs the tests that feel a mutant against it and counts what became of it.
func (t *trial) try(m mutant) {
	reason, equivalent := t.equivalents[m.key]
	noticed := false
	felt := t.feeling(m)
	if !equivalent || t.known {
		noticed = t.notice(m, felt)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	file := t.prefix + m.file
	c := t.tally[file]
	if c == nil {
		c = &count{}
		t.tally[file] = c
	}
	switch {
	case noticed:
		c.noticed++
		if equivalent {
			fmt.Printf("NOTICED     %s:%d  %s\n            though it should mean nothing: %s\n", file, m.line, m.what, reason)
		}
	case equivalent:
		c.equivalent++
	default:
		c.survived++
		fmt.Printf("SURVIVED    %s:%d  %s  (felt by %d tests)\n            %s\n", file, m.line, m.what, len(felt), m.key)
	}
}

// feeling returns the tests that may notice a mutant: those that noticed a neighbour
// lately, and the others, the quickest first.
func (t *trial) feeling(m mutant) (tests []*test) {
	for _, u := range t.tests {
		if u.feels[m.id] != 0 {
			tests = append(tests, u)
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	rank := func(u *test) int {
		if i := slices.Index(t.killers, u.name); i >= 0 && u.took < time.Second {
			return i
		}
		return len(t.killers)
	}
	slices.SortStableFunc(tests, func(a, b *test) int { return rank(a) - rank(b) })
	return tests
}

// notice runs tests against a mutant until one of them fails: first those that take
// a tenth of a second together, then those of half a second, and so on.
func (t *trial) notice(m mutant, tests []*test) bool {
	var all time.Duration
	for slice := time.Second / 10; len(tests) > 0 && (t.within == 0 || all < t.within); slice *= 5 {
		n, took := 0, time.Duration(0)
		for n < len(tests) && (n == 0 || tests[n].suite == tests[0].suite && took+tests[n].took <= slice) {
			took += tests[n].took
			n++
		}
		noticed, out := tests[0].suite.notices(m.id, pattern(tests[:n]), 10*took+2*time.Second)
		if noticed {
			t.remember(killer(out))
			return true
		}
		tests, all = tests[n:], all+took
	}
	return false
}

// mostKillers is how many tests are remembered for having noticed something. More
// are run in vain before the right one; fewer leave that to the slower search.
const mostKillers = 10

func (t *trial) remember(name string) {
	if name == "" {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.killers = slices.DeleteFunc(t.killers, func(k string) bool { return k == name })
	t.killers = slices.Insert(t.killers, 0, name)
	t.killers = t.killers[:min(len(t.killers), mostKillers)]
}

// pattern matches the tests' names.
func pattern(tests []*test) string {
	var names []string
	for _, u := range tests {
		names = append(names, u.name)
	}
	return "^(" + strings.Join(names, "|") + ")$"
}

// report prints what became of the mutants of each file, and returns which share of
// those that mean something was noticed, in percent.
func (t *trial) report() float64 {
	var all count
	fmt.Printf("\n%-28s %8s %8s %11s %9s\n", "file", "mutants", "noticed", "equivalent", "survived")
	line := func(name string, c count) {
		fmt.Printf("%-28s %8d %8d %11d %9d\n", name, c.noticed+c.equivalent+c.survived, c.noticed, c.equivalent, c.survived)
	}
	for _, file := range slices.Sorted(maps.Keys(t.tally)) {
		c := *t.tally[file]
		line(file, c)
		all.noticed += c.noticed
		all.equivalent += c.equivalent
		all.survived += c.survived
	}
	line("", all)
	share := 100.0
	if n := all.noticed + all.survived; n > 0 {
		share = 100 * float64(all.noticed) / float64(n)
	}
	fmt.Printf("%.1f %% of those that mean something noticed, ", share)
	return share
}
