// Command bench measures ackbits and its alternatives on the same work and
// prints one table. It writes the table as Markdown and as an SVG chart too.
//
//	go -C internal/bench run [-tags enet] . [-rounds n] [-out dir] [-short] [-redraw]
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/ackbits/ackbits/internal/bench/peers"
)

func main() {
	rounds := flag.Int("rounds", 7, "how often each subject is measured; the table has the medians")
	out := flag.String("out", "results", "folder of table.md and chart.svg; empty: write nothing")
	short := flag.Bool("short", false, "one brief round that only shows that everything works; writes nothing unless -out is given")
	redraw := flag.Bool("redraw", false, "only draw chart.svg anew, from the table.md that is there")
	flag.Parse()
	if *redraw {
		if err := redrawChart(*out); err != nil {
			fmt.Fprintln(os.Stderr, "bench:", err)
			os.Exit(1)
		}
		return
	}
	effort := effort{rounds: *rounds, cpu: 250 * time.Millisecond, idle: 200}
	if *short {
		effort.rounds, effort.cpu, effort.idle = 1, 10*time.Millisecond, 20
		given := false
		flag.Visit(func(f *flag.Flag) { given = given || f.Name == "out" })
		if !given {
			*out = ""
		}
	}
	if err := run(append(peers.Subjects(), peers.Driver()), effort, *out); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// run measures the subjects, the last of which is not in the chart.
func run(subjects []peers.Subject, e effort, out string) error {
	results, err := measure(subjects, e, func(format string, args ...any) { fmt.Fprintf(os.Stderr, format, args...) })
	if err != nil {
		return err
	}
	table := markdown(results, e, command(os.Args[1:]))
	fmt.Print(table)
	if out == "" {
		return nil
	}
	if err := os.MkdirAll(out, 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(out, "table.md"), []byte(table), 0o644); err != nil {
		return err
	}
	return chart(barsOf(results[:len(results)-1]), filepath.Join(out, "chart.svg"))
}

func redrawChart(dir string) error {
	table, err := os.ReadFile(filepath.Join(dir, "table.md"))
	if err != nil {
		return err
	}
	rows, err := barsOfTable(string(table))
	if err != nil {
		return err
	}
	return chart(rows, filepath.Join(dir, "chart.svg"))
}

// command is the command line that made a table.
func command(args []string) string {
	tags := buildTags()
	if tags != "" {
		tags = "-tags " + tags + " "
	}
	return strings.TrimSpace("go -C internal/bench run " + tags + ". " + strings.Join(args, " "))
}
