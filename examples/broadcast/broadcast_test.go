package main

import (
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ackbits/ackbits"
	"github.com/ackbits/ackbits/simnet"
)

func TestAllReceiveTheSameInOneOrder(t *testing.T) {
	for seed := range uint64(20) {
		names := []string{"a", "b", "c", "d"}
		link := simnet.Config{Delay: 40 * time.Millisecond, Jitter: 60 * time.Millisecond, Loss: 0.3, Duplicate: 0.1}
		r, err := newRoom(names, seed, link)
		require.NoError(t, err)
		require.NoError(t, r.play(10))
		require.Len(t, r.log, 40)
		for _, c := range r.clients {
			var lines, own []string
			for _, h := range c.received {
				lines = append(lines, h.line)
				if strings.HasPrefix(h.line, c.name+" ") {
					own = append(own, h.line)
				}
			}
			require.Equal(t, r.log, lines)
			require.Equal(t, "1 2 3 4 5 6 7 8 9 10", strings.Join(fieldsAt(own, 2), " "), "in the order in which they were sent")
			require.True(t, slices.IsSortedFunc(c.received, func(x, y heard) int { return int(x.at - y.at) }))
		}
	}
}

func fieldsAt(lines []string, n int) (fields []string) {
	for _, line := range lines {
		fields = append(fields, strings.Fields(line)[n])
	}
	return fields
}

func TestADeadPathEndsIt(t *testing.T) {
	r, err := newRoom([]string{"a", "b"}, 1, simnet.Config{Loss: 1})
	require.NoError(t, err)
	require.ErrorIs(t, r.play(1), ackbits.ErrTimeout)
}

// fullDisk is where nothing more can be written.
type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, syscall.ENOSPC }

func TestRun(t *testing.T) {
	var out, again, errOut strings.Builder
	args := []string{"-loss", "0.4", "-rtt", "120ms", "-lines", "5", "-seed", "3"}
	require.Zero(t, run(args, &out, &errOut), errOut.String())
	require.Contains(t, out.String(), "alice, bob, carol received the same 15 lines in the same order.")
	require.Zero(t, run(args, &again, &errOut))
	require.Equal(t, out.String(), again.String())
	for _, args := range [][]string{{"-loss", "1"}, {"-loss", "NaN"}, {"-rtt", "2s"}, {"-lines", "0"}, {"-x"}, {"rest"}} {
		errOut.Reset()
		require.Equal(t, 2, run(args, &out, &errOut), args)
		require.Contains(t, errOut.String(), args[0])
	}
	errOut.Reset()
	require.Equal(t, 1, run(nil, fullDisk{}, &errOut))
	require.Equal(t, "broadcast: no space left on device\n", errOut.String())
	require.Zero(t, run([]string{"-h"}, &out, &errOut))
}
