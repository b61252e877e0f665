// Guard runs the library's benchmarks briefly and fails if one of them
// allocates in its steady state, or costs more beside the hand-written baseline
// of the same run than its band allows.
//
//	go -C internal/bench run ./guard
package main

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"

	"golang.org/x/perf/benchfmt"
)

// baseline is the state datagram that is written, copied and read by hand.
const baseline = "StateByHand"

// bands is what a benchmark may cost, as a multiple of the baseline. Each is
// about twice what was measured on a quiet machine, or 1: a band that trips over a
// neighbour's load would soon be ignored, and a change that matters, a scan or an
// allocation on the hot path, exceeds it all the same.
var bands = map[string]float64{
	"State/narrow":                6,
	"State/wide":                  6,
	"State/outcomes":              6,
	"State/adaptive":              8,
	"Event/one_in_flight":         15,
	"Event/ten_a_tick":            5,
	"EventUnderLoss/fixed":        7,
	"EventUnderLoss/adaptive":     9,
	"AppendDueIdle/0_in_flight":   1,
	"AppendDueIdle/256_in_flight": 1,
	"Header/encode":               1,
	"Header/parse":                1,
	"LaneQueued512/queued=512":    1,
}

// rounds are short and many: the fastest of them is the one that was disturbed
// least.
var command = []string{
	"test", "-run", "^$", "-benchmem", "-benchtime", "20ms", "-count", "25",
	"-bench", "^Benchmark(StateByHand|State|Event|EventUnderLoss|AppendDueIdle|Header|LaneQueued512)$", ".",
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run() error {
	test := exec.Command("go", command...)
	test.Dir = "../.."
	test.Stderr = os.Stderr
	out, err := test.Output()
	if err != nil {
		return fmt.Errorf("the benchmarks failed: %w\n%s", err, out)
	}
	fastest, allocs := map[string]float64{}, map[string]float64{}
	for reader := benchfmt.NewReader(bytes.NewReader(out), "go test"); reader.Scan(); {
		result, ok := reader.Result().(*benchfmt.Result)
		if !ok {
			continue
		}
		name, _, _ := strings.Cut(string(result.Name), "-")
		for _, v := range result.Values {
			switch v.Unit {
			case "sec/op":
				if old, ok := fastest[name]; !ok || v.Value < old {
					fastest[name] = v.Value
				}
			case "allocs/op":
				allocs[name] = max(allocs[name], v.Value)
			}
		}
	}
	base := fastest[baseline]
	if base == 0 {
		return fmt.Errorf("no figure for %s", baseline)
	}
	failed := 0
	fmt.Printf("%-30s %8s %6s %7s\n", "", "× hand", "band", "allocs")
	for _, name := range slices.Sorted(maps.Keys(bands)) {
		band := bands[name]
		cost, ok := fastest[name]
		if !ok {
			return fmt.Errorf("no figure for %s", name)
		}
		verdict := ""
		if cost > band*base || allocs[name] > 0 {
			verdict = "  FAIL"
			failed++
		}
		fmt.Printf("%-30s %8.2f %6.0f %7.0f%s\n", name, cost/base, band, allocs[name], verdict)
	}
	if failed > 0 {
		return fmt.Errorf("%d benchmarks left their band or allocate", failed)
	}
	return nil
}
