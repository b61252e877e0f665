// Guard runs the library's benchmarks briefly and fails if one of them
// allocates in its steady state, or costs more beside the hand-written baseline
// of the same run than its band allows. All take turns, so that a neighbour who is busy
// for some seconds slows all of them, and each counts as fast as in its best turn.
//
//	go -C internal/bench run ./guard
package main

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
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

// mostAdaptive is what a state datagram of Config.Adaptive may cost beside one of the
// default. The aim is 1.3; a quiet machine shows 1.2, and a busy one moves it by a tenth.
const mostAdaptive = 1.45

// rounds are short and many: the fastest of them is the one that was disturbed
// least. Fewer, and a machine that is shared disturbs all of them.
const rounds = 25

// round is one of them.
var round = []string{
	"-test.run", "^$", "-test.benchmem", "-test.benchtime", "20ms",
	"-test.bench", "^Benchmark(StateByHand|State|Event|EventUnderLoss|AppendDueIdle|Header|LaneQueued512)$",
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run() error {
	fastest, allocs, err := measure()
	if err != nil {
		return err
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
		mark := ""
		if cost > band*base || allocs[name] > 0 {
			mark = "  FAIL"
			failed++
		}
		fmt.Printf("%-30s %8.2f %6.0f %7.0f%s\n", name, cost/base, band, allocs[name], mark)
	}
	adaptive := fastest["State/adaptive"] / fastest["State/narrow"]
	fmt.Printf("Adaptive beside the default: %.2f, at most %.2f\n", adaptive, mostAdaptive)
	if adaptive > mostAdaptive {
		failed++
	}
	if failed > 0 {
		return fmt.Errorf("%d benchmarks left their band or allocate", failed)
	}
	return nil
}

// measure returns the fewest nanoseconds and the most allocations of each benchmark.
func measure() (fastest, allocs map[string]float64, err error) {
	dir, err := os.MkdirTemp("", "guard")
	if err != nil {
		return nil, nil, err
	}
	defer os.RemoveAll(dir)
	binary := filepath.Join(dir, "ackbits.test")
	build := exec.Command("go", "test", "-c", "-o", binary, ".")
	build.Dir = "../.."
	if out, err := build.CombinedOutput(); err != nil {
		return nil, nil, fmt.Errorf("the benchmarks cannot be built: %w\n%s", err, out)
	}
	fastest, allocs = map[string]float64{}, map[string]float64{}
	for range rounds {
		test := exec.Command(binary, round...)
		test.Dir = "../.."
		test.Stderr = os.Stderr
		out, err := test.Output()
		if err != nil {
			return nil, nil, fmt.Errorf("the benchmarks failed: %w\n%s", err, out)
		}
		note(out, fastest, allocs)
	}
	return fastest, allocs, nil
}

// note notes the figures that a round printed.
func note(out []byte, fastest, allocs map[string]float64) {
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
}
