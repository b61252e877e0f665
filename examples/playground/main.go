// Playground is a page on which two peers play over a bad network, in virtual
// time, with everything to be touched:
//
//	go run ./examples/playground                  serves it and prints its address
//	go run ./examples/playground -out page.html   writes it as one file
//	go run ./examples/playground -check           prints what each preset comes to
//
// The page runs the library itself, compiled to WebAssembly; -check runs the same
// settings here, and what both come to is equal to the digit.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/ackbits/ackbits/examples/playground/page"
	"github.com/ackbits/ackbits/examples/playground/sim"
)

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "playground:", err)
		os.Exit(1)
	}
}

func run(args []string, out io.Writer) error {
	f := flag.NewFlagSet("playground", flag.ContinueOnError)
	addr := f.String("addr", "localhost:0", "the `address` to serve the page at; a port of 0 is any that is free")
	file := f.String("out", "", "write the page to a `file` instead of serving it")
	check := f.Bool("check", false, "print figures instead: of the settings given as arguments, as they stand in a page's address behind the #; without any, of every preset")
	length := f.Duration("for", 20*time.Second, "how long -check plays, in virtual time")
	if err := f.Parse(args); err != nil {
		return err
	}
	if *check {
		return report(out, f.Args(), *length)
	}
	if f.NArg() > 0 {
		return fmt.Errorf("unexpected argument %q", f.Arg(0))
	}
	html, err := page.Build()
	if err != nil {
		return err
	}
	if *file != "" {
		if err := os.WriteFile(*file, html, 0o644); err != nil {
			return err
		}
		fmt.Fprintf(out, "The page is in %s (%d KiB).\n", *file, len(html)/1024)
		return nil
	}
	return serve(out, *addr, html)
}

// report prints the figures of settings, or of all presets.
func report(out io.Writer, fragments []string, length time.Duration) error {
	if len(fragments) == 0 {
		for _, p := range sim.Presets {
			fragments = append(fragments, "link="+p.Key)
		}
	}
	if length < 0 || length > time.Hour {
		return fmt.Errorf("-for %v is not from 0 to 1h", length)
	}
	for _, fragment := range fragments {
		s, err := sim.Parse(strings.TrimPrefix(fragment, "#"))
		if err != nil {
			return err
		}
		text, err := sim.Report(s, length)
		if err != nil {
			return err
		}
		fmt.Fprint(out, text)
	}
	return nil
}

func serve(out io.Writer, addr string, html []byte) error {
	listener, err := net.Listen("tcp", addr)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "The playground is at http://%s/ until you press Ctrl-C.\n", listener.Addr())
	server := &http.Server{Handler: page.Handler(html), ReadHeaderTimeout: 10 * time.Second}
	return server.Serve(listener)
}
