package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"time"
	"unicode"
)

// The terminal: the dots in its first line, the chat below.

// screen is the output. Only one goroutine may use it.
type screen struct {
	out      io.Writer
	terminal bool
	pause    time.Duration // at least, from one draw to the next
	drawn    time.Time
	err      error // the first one of writing
}

// What a terminal is told (ECMA-48 and, for save and restore, DEC).
const (
	openScreen  = "\n\x1b7\x1b[2r\x1b8"          // the first line does not scroll
	closeScreen = "\x1b7\x1b[r\x1b8\n"           // all lines do
	drawFirst   = "\x1b7\x1b[1;1H\x1b[2K%s\x1b8" // replaces the first line
	eraseLine   = "\r\x1b[K"
	eraseTyped  = "\x1b[A\r\x1b[K"
)

func (s *screen) open() {
	if s.terminal {
		s.print(openScreen)
	}
}

func (s *screen) close() {
	if s.terminal {
		s.print(closeScreen)
	}
}

// say prints a line of text that may come from anybody.
func (s *screen) say(line string) {
	start := ""
	if s.terminal {
		start = eraseLine // what somebody is typing; it is not lost, only out of sight
	}
	s.print(start + printable(line) + "\n")
}

// draw shows the dots.
func (s *screen) draw(dots []byte) {
	now := time.Now()
	if now.Sub(s.drawn) < s.pause {
		return
	}
	s.drawn = now
	line := bytes.Repeat([]byte{'.'}, width)
	for ; len(dots) >= 2; dots = dots[2:] {
		if dots[1] < width {
			line[dots[1]] = letter(string(dots[:1]))
		}
	}
	if s.terminal {
		s.print(fmt.Sprintf(drawFirst, line))
	} else {
		s.print(string(line) + "\n")
	}
}

// clearTyped removes the line that the terminal has shown while it was typed: it
// comes back from the server, with the name before it.
func (s *screen) clearTyped() {
	if s.terminal {
		s.print(eraseTyped)
	}
}

func (s *screen) print(text string) {
	if _, err := io.WriteString(s.out, text); s.err == nil {
		s.err = err
	}
}

// printable replaces what could do something to a terminal.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return '?'
	}, strings.ToValidUTF8(text, "?"))
}

// isTerminal reports whether a file is a terminal that understands the above.
func isTerminal(f *os.File) bool {
	info, err := f.Stat()
	if err != nil || info.Mode()&os.ModeCharDevice == 0 {
		return false
	}
	if runtime.GOOS == "windows" {
		return os.Getenv("WT_SESSION") != "" // not the old console
	}
	return os.Getenv("TERM") != "" && os.Getenv("TERM") != "dumb"
}
