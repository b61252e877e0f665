// Lab runs policies of resending over bad links in virtual time, ackbits' own and
// those of other libraries, prints what they reach and writes a report:
//
//	go -C examples/lab run .
//
// The README says how to read it.
package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"
)

func main() {
	// The other libraries read the clock. A bubble of testing/synctest has one that
	// can be played, but wants a test around it: this whole program is one.
	args := os.Args[1:]
	os.Args = os.Args[:1] // the flags are ours, not those of a test
	all := func(string, string) (bool, error) { return true, nil }
	testing.Main(all, []testing.InternalTest{{Name: "lab", F: func(t *testing.T) {
		os.Exit(run(t, args, os.Stdout, os.Stderr))
	}}}, nil, nil)
}

type options struct {
	lab
	bad       link // for what only one link is shown of
	out       string
	chartFile string
	files     bool
}

const (
	defaultPolicies  = "adaptive+bundle,fixed,fixed+bundle,kcp,quic,quic-streams,sctp"
	defaultLinks     = "clean,1%,5%,10%,30%,bursts"
	defaultWorkloads = "w1"
)

// run is the program; what it returns is the exit code.
func run(t *testing.T, args []string, out, errOut io.Writer) int {
	o, err := parseArgs(args, out, errOut)
	if errors.Is(err, flag.ErrHelp) {
		return 0
	}
	if err != nil {
		fmt.Fprintln(errOut, "lab:", err)
		return 2
	}
	if o.files {
		err = o.compareFiles(t, args, out)
	} else {
		err = o.run(t, args, out, errOut)
	}
	if err != nil {
		fmt.Fprintln(errOut, "lab:", err)
		return 1
	}
	return 0
}

func parseArgs(args []string, out, errOut io.Writer) (o *options, err error) {
	o = new(options)
	f := flag.NewFlagSet("lab", flag.ContinueOnError)
	f.SetOutput(errOut)
	policies := f.String("policies", defaultPolicies, policyHelp)
	links := f.String("links", defaultLinks, linkHelp)
	workloads := f.String("workloads", defaultWorkloads, workHelp)
	bad := f.String("bad", "10%", "the link of the last charts, written as in -links")
	seeds := f.String("seeds", "1,2", "the games of each, by their seeds")
	f.DurationVar(&o.duration, "duration", 5*time.Minute, "how long events are sent in a game, in virtual time")
	f.StringVar(&o.out, "out", "lab.html", "the report's `file`; nothing: none is written")
	f.StringVar(&o.chartFile, "chart", "", "the `file` for the overview chart alone, as SVG")
	f.BoolVar(&o.files, "files", false, "instead: how long a file takes beside the game, and what it does to it")
	f.Usage = func() {
		fmt.Fprintf(errOut, "Lists are parted by commas, the parts of a name joined with a plus: -links 5%%+rtt=20ms,bursts+jitter=10ms\n\n")
		f.PrintDefaults()
	}
	if len(args) > 0 && (args[0] == "-h" || args[0] == "-help" || args[0] == "--help") {
		f.SetOutput(out)
		errOut = out
	}
	if err := f.Parse(args); err != nil {
		return nil, err
	}
	if f.NArg() > 0 {
		return nil, fmt.Errorf("unexpected argument %q", f.Arg(0))
	}
	if o.duration < time.Second || o.duration > time.Hour {
		return nil, fmt.Errorf("-duration %v is not from 1s to 1h", o.duration)
	}
	if o.policies, err = parse(*policies, parsePolicy); err != nil {
		return nil, fmt.Errorf("-policies: %w", err)
	}
	if o.links, err = parse(*links, parseLink); err != nil {
		return nil, fmt.Errorf("-links: %w", err)
	}
	if o.workloads, err = parse(*workloads, parseWorkload); err != nil {
		return nil, fmt.Errorf("-workloads: %w", err)
	}
	if o.bad, err = parseLink(*bad); err != nil {
		return nil, fmt.Errorf("-bad: %w", err)
	}
	if o.bad.police.Rate > 0 || o.bad.squeeze > 0 || o.bad.withhold > 0 {
		return nil, errors.New("-bad: no police, squeeze or withhold: its charts follow datagrams over one link, in one condition")
	}
	o.seeds, err = parse(*seeds, func(s string) (uint64, error) { return strconv.ParseUint(s, 10, 64) })
	if err != nil {
		return nil, fmt.Errorf("-seeds: %w", err)
	}
	return o, nil
}

func (o *options) run(t *testing.T, args []string, out, errOut io.Writer) error {
	bar := newBar(o.games(), errOut)
	res := o.lab.run(t, func() { _ = bar.Add(1) })
	_ = bar.Finish()
	for w, load := range o.workloads {
		fmt.Fprintf(out, "\n%s: %s\n\n", load.name, load.about())
		if err := o.table(out, res[w]); err != nil {
			return err
		}
	}
	if o.chartFile != "" {
		picture, err := o.chart(res[0])
		if err == nil {
			err = os.WriteFile(o.chartFile, picture, 0o644)
		}
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "\nThe chart is in %s.\n", o.chartFile)
	}
	if o.out == "" {
		return nil
	}
	r, err := o.report(res, o.bad, command(args))
	if err != nil {
		return err
	}
	return o.write(r, out)
}

func command(args []string) string {
	return strings.Join(append([]string{"go -C examples/lab run ."}, args...), " ")
}

// write writes the report, and says where it is.
func (o *options) write(r *report, out io.Writer) error {
	var page bytes.Buffer
	if err := r.write(&page); err != nil {
		return err
	}
	if err := os.WriteFile(o.out, page.Bytes(), 0o644); err != nil {
		return err
	}
	path, err := filepath.Abs(o.out)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "\nThe report is in %s.\n", path)
	return nil
}

// newBar returns a progress bar, which only a terminal shows.
func newBar(games int, out io.Writer) *progressbar.ProgressBar {
	f, ok := out.(*os.File)
	return progressbar.NewOptions(games,
		progressbar.OptionSetWriter(out),
		progressbar.OptionSetVisibility(ok && term.IsTerminal(int(f.Fd()))),
		progressbar.OptionSetDescription("playing"),
		progressbar.OptionShowCount(),
		progressbar.OptionSetPredictTime(true),
		progressbar.OptionFullWidth(),
		progressbar.OptionClearOnFinish(),
		progressbar.OptionThrottle(100*time.Millisecond),
	)
}
