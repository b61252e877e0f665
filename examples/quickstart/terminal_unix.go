//go:build linux || darwin || freebsd || netbsd || dragonfly

package main

import (
	"os"
	"syscall"
	"unsafe"
)

// columns returns how many columns the terminal f has, 80 if it does not say. ok is
// false if f is no terminal.
func columns(f *os.File) (n int, ok bool) {
	var size struct{ rows, columns, width, height uint16 }
	_, _, errno := syscall.Syscall(syscall.SYS_IOCTL, f.Fd(), syscall.TIOCGWINSZ, uintptr(unsafe.Pointer(&size)))
	if errno != 0 {
		return 0, false
	}
	if size.columns == 0 {
		return 80, true
	}
	return int(size.columns), true
}
