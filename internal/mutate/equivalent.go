package main

import (
	_ "embed"
	"path"
	"slices"
	"strings"
)

//go:embed equivalent.txt
var equivalentText string

// equivalents returns the mutants that mean nothing, by key, each with the reason.
func equivalents() map[string]string {
	known := map[string]string{}
	for line := range strings.Lines(equivalentText) {
		if mutant, reason, ok := strings.Cut(strings.TrimSpace(line), "  # "); ok {
			known[strings.Join(strings.Fields(mutant), " ")] = reason
		}
	}
	return known
}

// stale returns the equivalents of the package in the folder prefix that name no
// mutant any more.
func stale(known map[string]string, prefix string, mutants []mutant) []string {
	named := map[string]bool{}
	for _, m := range mutants {
		named[m.key] = true
	}
	var found []string
	for key := range known {
		file, _, _ := strings.Cut(key, " ")
		if folder, _ := path.Split(file); folder == prefix && !named[key] {
			found = append(found, key)
		}
	}
	slices.Sort(found)
	return found
}
