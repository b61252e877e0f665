package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

const sample = `package sample

const limit = 10

func clamp(n int) int {
	if n > limit && n != 99 {
		n = limit
	}
	return n + 1
}
`

const sampleTest = `package sample

import "testing"

func TestClamp(t *testing.T) {
	if clamp(3) != 4 || clamp(10) != 11 || clamp(11) != 11 || clamp(12) != 11 || clamp(99) != 100 {
		t.Fatal()
	}
}
`

// TestMutants tries every mutant of a function that is tested well, but for the
// edge of its limit, where no test can see a difference.
func TestMutants(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"go.mod": "module sample\n\ngo 1.26\n", "a.go": sample, "a_test.go": sampleTest} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	defer os.Chdir(here)
	b, err := compile(dir, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	clamps := &test{suite: b.suites[0], name: "TestClamp"}
	if err := clamps.measure(len(b.mutants), t.TempDir()); err != nil {
		t.Fatal(err)
	}
	var survived []string
	for _, m := range b.mutants {
		noticed, out := clamps.suite.notices(m.id, ".", time.Minute)
		switch {
		case !noticed:
			survived = append(survived, m.key)
		case clamps.feels[m.id] == 0:
			t.Errorf("noticed, but not felt: %s", m.key)
		case killer(out) != clamps.name:
			t.Errorf("noticed by %q: %s", killer(out), out)
		}
	}
	if want := "a.go clamp: n > limit: > → >=: in if n > limit && n != 99 {, a.go clamp: limit: one less: in if n > limit && n != 99 {"; len(b.mutants) < 10 || strings.Join(survived, ", ") != want {
		t.Errorf("of %d mutants survived %q, want %q", len(b.mutants), survived, want)
	}
	known := map[string]string{survived[0]: "", "a.go gone: 1: one more: in 1": "", "sub/a.go elsewhere: 1: one more: in 1": ""}
	if found := stale(known, b.prefix, b.mutants); len(found) != 1 || found[0] != "a.go gone: 1: one more: in 1" {
		t.Errorf("stale: %q", found)
	}
}
