package main

import (
	"os"
	"syscall"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestColumnsOfATerminal(t *testing.T) {
	terminal, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	require.NoError(t, err)
	defer terminal.Close()
	n, ok := columns(terminal)
	assert.True(t, ok)
	assert.Equal(t, 80, n, "it does not say")

	size := [4]uint16{24, 37}
	_, _, errno := syscall.Syscall(syscall.SYS_IOCTL, terminal.Fd(), syscall.TIOCSWINSZ, uintptr(unsafe.Pointer(&size)))
	require.Zero(t, errno)
	n, ok = columns(terminal)
	assert.True(t, ok)
	assert.Equal(t, 37, n)
}

// The device that stands for a full disk.
func TestDevFull(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	require.NoError(t, err)
	defer full.Close()
	_, ok := columns(full)
	assert.False(t, ok)
	assert.Equal(t, exitFailed, run(t.Context(), nil, spread, &progress{out: full}, os.Stderr))
}
