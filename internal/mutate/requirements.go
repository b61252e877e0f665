package main

import (
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/ackbits/ackbits/internal/trace"
)

// mostTries is how many mutants of one requirement's guard are tried.
const mostTries = 8

// timeoutOfOne is how long the tests of one requirement may take with a mutant.
const timeoutOfOne = time.Minute

// guarded is a requirement of docs/protocol.md with the mutants of the code that
// cites it, and the tests that do.
type guarded struct {
	id      string
	mutants []mutant
	tests   []string
}

// guard finds for each requirement the mutants of the statements or functions that
// cite it. Those that are kept by a constant or a type have none.
func guard(dir string, mutants []mutant) ([]guarded, error) {
	citations, err := trace.Sources(dir)
	if err != nil {
		return nil, err
	}
	found := map[string]*guarded{}
	for _, c := range citations {
		if strings.Contains(c.File, "/") {
			continue // of another package
		}
		g := found[c.ID]
		if g == nil {
			g = &guarded{id: c.ID}
			found[c.ID] = g
		}
		if c.Test {
			g.tests = append(g.tests, c.Name)
			continue
		}
		for _, m := range mutants {
			if m.file == c.File && c.From <= m.line && m.line <= c.To && !slices.Contains(g.mutants, m) {
				g.mutants = append(g.mutants, m)
			}
		}
	}
	var all []guarded
	for _, id := range slices.SortedFunc(maps.Keys(found), trace.Compare) {
		if g := found[id]; len(g.mutants) > 0 && len(g.tests) > 0 {
			all = append(all, *g)
		}
	}
	return all, nil
}

// runRequirements breaks the code that keeps n requirements, chosen by a seed, in up
// to mostTries ways each. Of these the tests that cite the requirement must notice at
// least one: else they do not test it.
func runRequirements(dir string, n int, seed uint64) error {
	work, err := os.MkdirTemp("", "mutate")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	b, err := compile(dir, work)
	if err != nil {
		return err
	}
	s := b.suites[0]
	all, err := guard(s.dir, b.mutants)
	if err != nil {
		return err
	}
	seed = cmp.Or(seed, rand.Uint64())
	fmt.Printf("%d requirements with code that can be changed, seed %d\n", len(all), seed)
	draws := rand.New(rand.NewPCG(seed, 0))
	draws.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	var untested []string
	for _, g := range all[:min(n, len(all))] {
		tests := "^(" + strings.Join(g.tests, "|") + ")$"
		if failed, out := s.notices(0, tests, timeoutOfOne); failed {
			return fmt.Errorf("the tests of %s fail without a mutant:\n%s", g.id, out)
		}
		draws.Shuffle(len(g.mutants), func(i, j int) { g.mutants[i], g.mutants[j] = g.mutants[j], g.mutants[i] })
		tried, noticed := 0, 0
		for _, m := range g.mutants[:min(mostTries, len(g.mutants))] {
			tried++
			if killed, _ := s.notices(m.id, tests, timeoutOfOne); killed {
				noticed++
			}
		}
		fmt.Printf("%-9s %d of %d mutants noticed by %s\n", g.id, noticed, tried, strings.Join(g.tests, ", "))
		if noticed == 0 {
			untested = append(untested, g.id)
		}
	}
	if len(untested) > 0 {
		return fmt.Errorf("the tests that cite them do not notice that they are broken: %s", strings.Join(untested, ", "))
	}
	return nil
}
