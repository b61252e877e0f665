//go:build linux || darwin || freebsd || netbsd || dragonfly

package main

import (
	"context"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A named pipe keeps who reads it waiting: first until somebody opens it to write,
// then until that one closes it. Ctrl-C must work in both.
func TestInterruptWhileReadingAPipe(t *testing.T) {
	for name, write := range map[string]bool{"nobody writes": false, "nobody closes": true} {
		t.Run(name, func(t *testing.T) {
			pipe := filepath.Join(t.TempDir(), "pipe")
			require.NoError(t, syscall.Mkfifo(pipe, 0o600))
			ctx, interrupt := context.WithCancel(t.Context())
			done := make(chan result)
			go func() { done <- runWith(ctx, spread, "-virtual", "-in", pipe) }()
			writer := func() *os.File { // opens once the program has
				f, err := os.OpenFile(pipe, os.O_WRONLY, 0)
				require.NoError(t, err)
				return f
			}
			if write {
				f := writer()
				defer f.Close()
				_, err := f.WriteString("a line\n")
				require.NoError(t, err)
			}
			interrupt()
			select {
			case r := <-done:
				assert.Equal(t, exitInterrupted, r.code)
				assert.Equal(t, "quickstart: interrupted while reading "+pipe+"\n", r.err)
				assert.Empty(t, r.out)
			case <-time.After(10 * time.Second):
				t.Error("it goes on waiting")
			}
			if !write {
				writer().Close() // so that the reader ends
			}
		})
	}
}

func TestPipeIsRead(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	require.NoError(t, syscall.Mkfifo(pipe, 0o600))
	go func() { _ = os.WriteFile(pipe, []byte("one\ntwo\n"), 0) }()
	r := runWith(t.Context(), spread, "-virtual", "-in", pipe)
	assert.Zero(t, r.code, "%s%s", r.out, r.err)
	assert.Contains(t, r.out, "2 lines in each direction")
}

func TestFilesAreNoTerminals(t *testing.T) {
	for _, name := range []string{os.DevNull, filepath.Join(t.TempDir(), "file")} {
		f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE, 0o600)
		require.NoError(t, err)
		_, ok := columns(f)
		assert.False(t, ok, name)
		require.NoError(t, f.Close())
	}
}
