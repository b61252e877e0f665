package main

import (
	"bytes"
	"context"
	_ "embed"
	"fmt"
	"io"
	"os"
)

//go:embed voyage.txt
var voyage []byte

// script is the lines that each peer sends: the first count lines of a text, which
// is repeated if it has fewer. A line is what is between two line feeds, of any
// bytes; the carriage return in a Windows file is part of the line.
type script struct {
	text   [][]byte
	count  int
	digest digest
}

// The largest input. More would work, but there is nothing to learn from it.
const (
	maxText   = 256 << 20
	maxEvents = 10_000_000
)

// readScript returns a script of a file, or of the embedded text if the name is
// empty, with count lines, or with all lines of the text if count is 0. A line of
// more than maxLine bytes is an error. Reading a named pipe can take for ever, so it
// returns ctx.Err() when ctx is cancelled.
func readScript(ctx context.Context, name string, count, maxLine int) (s script, err error) {
	if name == "" {
		return newScript("the embedded text", voyage, count, maxLine)
	}
	done := make(chan struct{})
	var read script
	var readErr error
	go func() {
		defer close(done)
		var text []byte
		if text, readErr = readFile(name); readErr == nil {
			read, readErr = newScript(name, text, count, maxLine)
		}
	}()
	select {
	case <-done:
		return read, readErr
	case <-ctx.Done():
		return script{}, ctx.Err()
	}
}

func readFile(name string) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxText+1))
	if err != nil {
		return nil, err
	}
	if len(text) > maxText {
		return nil, fmt.Errorf("%s is larger than %d MiB", name, maxText>>20)
	}
	return text, nil
}

func newScript(name string, text []byte, count, maxLine int) (script, error) {
	if len(text) == 0 {
		return script{}, fmt.Errorf("%s is empty: there is nothing to send", name)
	}
	s := script{text: bytes.Split(bytes.TrimSuffix(text, []byte("\n")), []byte("\n")), count: count}
	if count == 0 {
		s.count = len(s.text)
	}
	if s.count > maxEvents {
		return script{}, fmt.Errorf("%s has %d lines; use -events to send no more than the first %d", name, s.count, maxEvents)
	}
	for i, line := range s.text[:min(s.count, len(s.text))] {
		if len(line) > maxLine {
			return script{}, fmt.Errorf("line %d of %s has %d bytes, but an event has room for a line of %d", i+1, name, len(line), maxLine)
		}
	}
	var event []byte
	for i := range s.count {
		event = appendLine(event[:0], i, s.line(i))
		s.digest.add(event)
	}
	return s, nil
}

func (s script) line(i int) []byte { return s.text[i%len(s.text)] }

// due returns how many lines should have been sent at a tick, if they are spread
// evenly over the given number of ticks.
func (s script) due(tick uint32, ticks int) int {
	if int64(tick) >= int64(ticks) {
		return s.count
	}
	return int(int64(s.count) * int64(tick) / int64(ticks))
}
