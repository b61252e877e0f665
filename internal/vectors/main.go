// Command vectors writes testdata/vectors: transcripts of one end of a session or
// of a lane, which every implementation of docs/protocol.md must reproduce. Chapter
// 19 of that document describes them.
//
//	go run ./internal/vectors
//
// A file is a story told by the library itself: what it holds is right as far as
// the library's own tests say so, and what it is for is that nothing on the wire
// changes unnoticed.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
)

func main() {
	dir := flag.String("dir", "testdata/vectors", "the `folder` to write to")
	flag.Parse()
	if err := write(*dir); err != nil {
		fmt.Fprintln(os.Stderr, "vectors:", err)
		os.Exit(1)
	}
}

func write(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for _, s := range stories {
		if err := os.WriteFile(filepath.Join(dir, s.name+".json"), s.file(), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// story is what a file tells.
type story struct {
	name string
	tell func(w *world)
}

func (s story) file() []byte {
	w := new(world)
	s.tell(w)
	return w.text()
}

// each plays several stories into one file.
func each(parts ...func(*world)) func(*world) {
	return func(w *world) {
		for _, play := range parts {
			play(w)
		}
	}
}

// stories are the files, in the order of the document's chapters.
var stories = []story{
	{"narrow", narrow}, {"wide", wide}, {"malformed", malformed}, {"accept", accepting}, {"latest", latest},
	{"tracker", tracker}, {"acks", acks},
	{"events", each(eventsOut, eventSizes, sendWindow)}, {"window", window}, {"ordered", ordered}, {"bundle", bundle},
	{"time", each(times, clocks, stalls)}, {"leaving", each(leaving, shutdown)}, {"outcomes", outcomes}, {"half", half},
	{"sealed", sealed}, {"sealed-hostile", sealedHostile}, {"sealed-wrap", sealedWrap},
	{"loss", loss}, {"loss-wide-ordered", lossWideOrdered}, {"loss-bundle", lossBundle}, {"loss-sealed", lossSealed},
	{"wrap-sequences", wrapSequences}, {"wrap-ids", wrapIDs},
	{"lane", each(lane, laneLimits)}, {"lane-loss", laneLoss},
}
