package main

import (
	"os"
	"syscall"
	"unsafe"
)

var getConsoleScreenBufferInfo = syscall.NewLazyDLL("kernel32.dll").NewProc("GetConsoleScreenBufferInfo")

// columns returns how many columns the console window f has. ok is false if f is no
// console.
func columns(f *os.File) (n int, ok bool) {
	var info struct {
		sizeX, sizeY, cursorX, cursorY int16
		attributes                     uint16
		left, top, right, bottom       int16
		maximumX, maximumY             int16
	}
	done, _, _ := getConsoleScreenBufferInfo.Call(f.Fd(), uintptr(unsafe.Pointer(&info)))
	if done == 0 {
		return 0, false
	}
	return int(info.right) - int(info.left) + 1, true
}
