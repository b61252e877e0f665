package main

import (
	"bytes"
	_ "embed"
	"fmt"
	"io"
	"os"

	"github.com/ackbits/ackbits"
)

//go:embed voyage.txt
var voyage []byte

// script is the lines that each peer sends: those of a text, repeated or cut
// short to make up a count. A line is what stands between two line feeds,
// whatever its bytes; the carriage return of a Windows file is part of it.
type script struct {
	text   [][]byte
	count  int
	digest digest
}

// The most that the example takes in. It could take more, but not usefully.
const (
	maxText   = 256 << 20
	maxEvents = 10_000_000
)

// readScript reads the lines of a file, or of the embedded text if the name is
// empty, and makes count of them, or as many as there are if count is 0.
func readScript(name string, count int) (script, error) {
	if name == "" {
		return newScript("the embedded text", voyage, count)
	}
	text, err := readFile(name)
	if err != nil {
		return script{}, err
	}
	return newScript(name, text, count)
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

func newScript(name string, text []byte, count int) (script, error) {
	if len(text) == 0 {
		return script{}, fmt.Errorf("%s is empty: there is nothing to send", name)
	}
	s := script{text: bytes.Split(bytes.TrimSuffix(text, []byte("\n")), []byte("\n")), count: count}
	if count == 0 {
		s.count = len(s.text)
	}
	if s.count > maxEvents {
		return script{}, fmt.Errorf("%s has %d lines; with -events, up to the first %d are sent", name, s.count, maxEvents)
	}
	const maxLine = ackbits.MaxEventSize - numberSize
	for i, line := range s.text[:min(s.count, len(s.text))] {
		if len(line) > maxLine {
			return script{}, fmt.Errorf("line %d of %s has %d bytes; an event, and so a line here, can carry %d", i+1, name, len(line), maxLine)
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
