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
	var survived []string
	for _, m := range b.mutants {
		if noticed, _ := b.suites[0].notices(m.id, ".", time.Minute); !noticed {
			survived = append(survived, m.key)
		}
	}
	if want := "a.go clamp: n > limit: > → >=: in if n > limit && n != 99 {, a.go clamp: limit: one less: in if n > limit && n != 99 {"; len(b.mutants) < 10 || strings.Join(survived, ", ") != want {
		t.Fatalf("of %d mutants survived %q, want %q", len(b.mutants), survived, want)
	}
}
