//go:build !(linux || darwin || freebsd || netbsd || dragonfly || windows)

package main

import "os"

// columns returns 80, which most terminals have at least. ok is false if f is no
// character device and so no terminal.
func columns(f *os.File) (n int, ok bool) {
	info, err := f.Stat()
	return 80, err == nil && info.Mode()&os.ModeCharDevice != 0
}
