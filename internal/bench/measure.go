package main

import (
	"fmt"
	"runtime"
	"slices"
	"syscall"
	"time"

	"github.com/ackbits/ackbits/internal/bench/peers"
)

// effort is how much a run measures.
type effort struct {
	rounds int
	cpu    time.Duration // of each measurement
	idle   int           // connections
}

// cost is what a delivered message takes, both ends together.
type cost struct{ ns, allocs float64 }

type result struct {
	peers.Subject
	single, stream cost
	idle           idle
}

// idle is what an end of an idle connection takes.
type idle struct {
	bytes, stack, goroutines float64
	server                   float64 // bytes where a server keeps connections together; 0: the same
}

// measure measures the subjects in turn, round after round, so that a noisy
// minute of the machine does not fall on one of them alone.
func measure(subjects []peers.Subject, e effort, log func(string, ...any)) ([]result, error) {
	results := make([]result, len(subjects))
	single, stream := make([][]cost, len(subjects)), make([][]cost, len(subjects))
	for i, s := range subjects {
		log("%s: %d idle connections\n", s.Name, e.idle)
		results[i].Subject = s
		var err error
		if results[i].idle, err = measureIdle(s, e.idle); err != nil {
			return nil, fmt.Errorf("%s, idle: %w", s.Name, err)
		}
	}
	for round := range e.rounds {
		for i, s := range subjects {
			log("\rround %d of %d: %-40s", round+1, e.rounds, s.Name)
			c, err := measureRun(s, e.cpu, peers.Pair.Single)
			if err != nil {
				return nil, fmt.Errorf("%s, one in flight: %w", s.Name, err)
			}
			single[i] = append(single[i], c)
			if c, err = measureRun(s, e.cpu, peers.Pair.Stream); err != nil {
				return nil, fmt.Errorf("%s, ten a tick: %w", s.Name, err)
			}
			stream[i] = append(stream[i], c)
		}
	}
	log("\r%60s\r", "")
	for i := range results {
		results[i].single, results[i].stream = median(single[i]), median(stream[i])
	}
	return results, nil
}

// measureRun measures a workload on a fresh pair: a first run warms it up, a
// second tells how many messages fill the time.
func measureRun(s peers.Subject, target time.Duration, run func(peers.Pair, int) error) (cost, error) {
	pair, err := s.New()
	if err != nil {
		return cost{}, err
	}
	n := 1000
	for range 2 {
		begin := cpuTime()
		if err := run(pair, n); err != nil {
			return cost{}, err
		}
		n = int(min(max(float64(n)*float64(target)/float64(max(cpuTime()-begin, 1)), 500), 2_000_000))
	}
	runtime.GC()
	mallocs := usage(s).mallocs
	begin := cpuTime()
	if err := run(pair, n); err != nil {
		return cost{}, err
	}
	took := cpuTime() - begin
	mallocs = usage(s).mallocs - mallocs
	return cost{float64(took) / float64(n), float64(mallocs) / float64(n)}, pair.Close()
}

// cpuTime is the time that all threads of the process ran, in the program and
// in the kernel: what a library's goroutines do counts wherever they do it, and
// so does the garbage collector.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err) // its arguments are right
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

type memory struct{ bytes, stack, mallocs uint64 }

func usage(s peers.Subject) memory {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	u := memory{m.HeapAlloc, m.StackInuse, m.Mallocs}
	if s.Usage != nil {
		u.bytes, u.mallocs = s.Usage()
	}
	return u
}

func measureIdle(s peers.Subject, n int) (idle, error) {
	// A first connection makes what all share: pools, a certificate.
	first, err := s.Idle(1)
	if err != nil {
		return idle{}, err
	}
	if err := first.Close(); err != nil {
		return idle{}, err
	}
	collect()
	goroutines, before := runtime.NumGoroutine(), usage(s)
	connections, err := s.Idle(n)
	if err != nil {
		return idle{}, err
	}
	collect()
	after := usage(s)
	ends := float64(2 * n)
	per := func(after, before uint64) float64 { return max(0, float64(after)-float64(before)) / ends }
	result := idle{
		bytes:      per(after.bytes, before.bytes),
		stack:      per(after.stack, before.stack),
		goroutines: float64(runtime.NumGoroutine()-goroutines) / ends,
	}
	if s.Usage != nil {
		result.stack = 0
	}
	if s.Server != nil {
		if result.server, err = s.Server(n); err != nil {
			return idle{}, err
		}
	}
	return result, connections.Close()
}

// collect leaves only what is reachable: two collections empty every sync.Pool,
// and goroutines that were told to end have the time to.
func collect() {
	time.Sleep(100 * time.Millisecond)
	runtime.GC()
	runtime.GC()
}

func median(costs []cost) cost {
	of := func(get func(cost) float64) float64 {
		list := make([]float64, len(costs))
		for i, c := range costs {
			list[i] = get(c)
		}
		slices.Sort(list)
		return (list[(len(list)-1)/2] + list[len(list)/2]) / 2
	}
	return cost{of(func(c cost) float64 { return c.ns }), of(func(c cost) float64 { return c.allocs })}
}
