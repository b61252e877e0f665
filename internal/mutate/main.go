// Command mutate changes the library in one small way after another and sees
// whether its tests notice. A change that none notices is either one that means
// nothing, and stands in equivalent.txt with the reason, or a hole in the tests.
//
//	go -C internal/mutate run .                     # all of the root package
//	go -C internal/mutate run . -files ack,inbox    # some files
//	go -C internal/mutate run . -sample 10          # every tenth mutant
//	go -C internal/mutate run . -dir ../ring        # another package; one of internal/ against the root's tests, too
//	go -C internal/mutate run . -within 1s          # a first look: more survive, in a fraction of the time
//	go -C internal/mutate run . -known              # those of equivalent.txt, too
//	go -C internal/mutate run . -requirements 20    # see requirements.go (-seed, -dir ../../endpoint)
//
// All mutants are compiled at once, each behind a number that an environment
// variable chooses, so that trying one takes a run of tests and no build. Each test
// is run once without a mutant to see for which mutants it computes anything else
// (a comparison of numbers that were never equal does not care about < or <=). Only
// those tests are run against a mutant, the quickest first.
package main

import (
	"flag"
	"fmt"
	"os"
	"runtime"
)

func main() {
	dir := flag.String("dir", "../..", "the `package` to change")
	var o options
	flag.StringVar(&o.files, "files", "", "only these files, comma-separated, without .go")
	flag.IntVar(&o.sample, "sample", 1, "try every n-th mutant only")
	flag.IntVar(&o.workers, "workers", runtime.NumCPU(), "how many to try at a time")
	flag.StringVar(&o.tests, "run", "", "only the tests that match this `pattern`")
	flag.IntVar(&o.keep, "keep", 95, "the least share of mutants that must be noticed, in percent")
	flag.DurationVar(&o.within, "within", 0, "give up on a mutant after tests that take so long: a first look; 0: all of them")
	flag.BoolVar(&o.known, "known", false, "try those of equivalent.txt, too")
	requirements := flag.Int("requirements", 0, "instead, break the code of so many requirements of docs/protocol.md and see whether the tests that cite them notice")
	seed := flag.Uint64("seed", 0, "which requirements; 0: others each time")
	flag.Parse()
	var err error
	if *requirements > 0 {
		err = runRequirements(*dir, *requirements, *seed)
	} else {
		err = run(*dir, o)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutate:", err)
		os.Exit(1)
	}
}
