package main

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// These tests use real sockets and the real clock: they say what must hold however slow
// the machine is, and no figures.

const testSize = 2 << 20

// runUntil runs the program; once so many bytes are stored, it is interrupted.
func runUntil(t *testing.T, path string, stored int64, args ...string) (code int, out, errOut string) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	if stored > 0 {
		go func() {
			for ctx.Err() == nil {
				if info, err := os.Stat(path + ".part"); err == nil && info.Size() >= stored {
					cancel()
				}
				time.Sleep(5 * time.Millisecond)
			}
		}()
	}
	var o, e bytes.Buffer
	code = run(ctx, append([]string{"-out", path, "-alone", "400ms", "-rate", "30", "-size", "2"}, args...), &o, &e)
	return code, o.String(), e.String()
}

func requireStored(t *testing.T, path string, want []byte) {
	got, err := os.ReadFile(path)
	require.NoError(t, err)
	require.True(t, bytes.Equal(want, got))
	for _, left := range []string{".part", ".have", ".have.new"} {
		require.NoFileExists(t, path+left)
	}
}

func madeUp(t *testing.T) []byte {
	want, err := io.ReadAll(io.NewSectionReader(landscape{testSize}, 0, testSize))
	require.NoError(t, err)
	return want
}

func TestAFileOverUDP(t *testing.T) {
	path := filepath.Join(t.TempDir(), "map")
	code, out, errOut := runUntil(t, path, 0, "-loss", "0.05")
	require.Zero(t, code, errOut)
	require.Contains(t, out, "its SHA-256 is that of what was sent")
	require.Contains(t, out, "states, p99")
	requireStored(t, path, madeUp(t))
}

func TestAFileOfOnesOwn(t *testing.T) {
	path := filepath.Join(t.TempDir(), "map")
	want := bytes.Repeat([]byte("a text\n"), 10_000)
	require.NoError(t, os.WriteFile(path+".in", want, 0o666))
	code, _, errOut := runUntil(t, path, 0, "-in", path+".in")
	require.Zero(t, code, errOut)
	requireStored(t, path, want)
}

func TestInterruptedAndResumed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "map")
	code, _, errOut := runUntil(t, path, testSize/3, "-rate", "10")
	require.Equal(t, exitInterrupted, code)
	require.Contains(t, errOut, "Run it again")
	require.FileExists(t, path+".have")
	code, out, errOut := runUntil(t, path, 0)
	require.Zero(t, code, errOut)
	require.NotContains(t, out, "2.0 MiB in", "not all of it went again")
	requireStored(t, path, madeUp(t))
}

// What was stored is changed between two runs: the digest tells, and a third run starts
// anew.
func TestChangedBetweenTwoRuns(t *testing.T) {
	path := filepath.Join(t.TempDir(), "map")
	code, _, _ := runUntil(t, path, testSize/3, "-rate", "10")
	require.Equal(t, exitInterrupted, code)
	f, err := os.OpenFile(path+".part", os.O_RDWR, 0)
	require.NoError(t, err)
	_, err = f.WriteAt([]byte("changed"), 1000)
	require.NoError(t, err)
	require.NoError(t, f.Close())
	code, _, errOut := runUntil(t, path, 0)
	require.Equal(t, exitFailed, code)
	require.Contains(t, errOut, "wrong digest")
	require.NoFileExists(t, path+".part")
	code, _, errOut = runUntil(t, path, 0)
	require.Zero(t, code, errOut)
	requireStored(t, path, madeUp(t))
}

func TestADirectoryThatIsNotThere(t *testing.T) {
	code, _, errOut := runUntil(t, filepath.Join(t.TempDir(), "none", "map"), 0)
	require.Equal(t, exitFailed, code)
	require.Contains(t, errOut, "no such file or directory")
}

func TestBadArguments(t *testing.T) {
	for _, args := range [][]string{{"-loss", "1"}, {"-rate", "0"}, {"-size", "-1"}, {"-rtt", "1h"}, {"-limit", "-1"}, {"file"}, {"-loss", "NaN"}, {"-nonsense"}} {
		code, _, errOut := runUntil(t, filepath.Join(t.TempDir(), "map"), 0, args...)
		require.Equal(t, exitUsage, code, args)
		require.NotEmpty(t, errOut)
	}
	require.Zero(t, run(t.Context(), []string{"-h"}, io.Discard, io.Discard))
}

func TestMadeUpFileIsTheSameInPieces(t *testing.T) {
	all := madeUp(t)[:5000]
	for _, n := range []int{1, 7, 8, 1000} {
		var got []byte
		for off := 0; off < len(all); off += n {
			p := make([]byte, min(n, len(all)-off))
			_, err := landscape{testSize}.ReadAt(p, int64(off))
			require.NoError(t, err)
			got = append(got, p...)
		}
		require.Equal(t, all, got)
	}
	n, err := landscape{10}.ReadAt(make([]byte, 20), 0)
	require.Equal(t, 10, n)
	require.Equal(t, io.EOF, err)
}
