//go:build enet

package peers

// #cgo CFLAGS: -O2 -Wall -Wextra
// #cgo LDFLAGS: -lenet
// #include "enet.h"
import "C"

import (
	"errors"
	"fmt"
	"io"
	"sync"
)

var enetInit = sync.OnceValue(func() error {
	if C.bench_init() != 0 {
		return errors.New("peers: ENet does not initialize")
	}
	return nil
})

// enetPair is a pair of hosts whose loops run in C, a call from Go for a whole
// run. ENet's state is global: only one pair may run at a time.
type enetPair struct{ c *C.bench_pair }

func openENet() (Pair, error) {
	if err := enetInit(); err != nil {
		return nil, err
	}
	p := C.bench_open()
	if p == nil {
		return nil, errors.New("peers: ENet does not connect")
	}
	return &enetPair{p}, nil
}

func enetResult(code C.int) error {
	if code == 0 {
		return nil
	}
	return fmt.Errorf("peers: ENet: %s", C.GoString(C.bench_error(code)))
}

func (p *enetPair) Single(n int) error {
	return enetResult(C.bench_single(p.c, C.int(n)))
}

func (p *enetPair) Stream(n int) error {
	return enetResult(C.bench_stream(p.c, C.int(n), Batch, Delay))
}

func (p *enetPair) Close() error { C.bench_close(p.c); return nil }

// enetIdle counts ENet's bytes while it opens connections.
func enetIdle(n int) (io.Closer, error) {
	C.bench_count(1)
	defer C.bench_count(0)
	return idlePairs(n, openENet)
}

func enetUsage() (bytes, mallocs uint64) {
	return uint64(C.bench_live()), uint64(C.bench_mallocs())
}

func enetServer(n int) (bytes float64, err error) {
	if err := enetInit(); err != nil {
		return 0, err
	}
	b := C.bench_serve(C.int(n))
	if b < 0 {
		return 0, errors.New("peers: ENet does not serve")
	}
	return float64(b) / float64(n), nil
}

func enetVersion() string {
	v := uint(C.bench_version())
	return fmt.Sprintf("%d.%d.%d", v>>16, v>>8&0xff, v&0xff)
}

func enetSubjects() []Subject {
	return []Subject{{
		Name:     "ENet, C core",
		Version:  enetVersion(),
		Settings: "1 channel, reliable packets, a host for each end; its loop runs in C, with socket and time functions in memory",
		Does:     "ordered, fragmentation, throttles unreliable packets; no encryption",
		New:      openENet,
		Idle:     enetIdle,
		Usage:    enetUsage,
		Server:   enetServer,
	}}
}

// enetPeak is the most reliable data in flight in the last Stream, in bytes.
func enetPeak(p Pair) int { return int(C.bench_peak(p.(*enetPair).c)) }
