package main

import (
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ackbits/ackbits/internal/bench/peers"
)

// TestRun measures every subject, briefly, and looks at what comes of it.
func TestRun(t *testing.T) {
	out := t.TempDir()
	subjects := peers.Subjects()
	if err := run(append(subjects, peers.Driver()), effort{rounds: 1, cpu: time.Millisecond, idle: 2}, out); err != nil {
		t.Fatal(err)
	}
	table, err := os.ReadFile(filepath.Join(out, "table.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range subjects {
		if n := strings.Count(string(table), "| "+title(s)+" |"); n != 2 {
			t.Errorf("%s stands in the table %d times, want a row of figures and one of settings", s.Name, n)
		}
	}
	f, err := os.Open(filepath.Join(out, "chart.svg"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var text strings.Builder
	for d := xml.NewDecoder(f); ; {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if data, ok := token.(xml.CharData); ok {
			text.Write(data)
		}
	}
	for _, s := range subjects {
		if n := strings.Count(text.String(), title(s)); n < 2 {
			t.Errorf("%s stands in the chart %d times, want once for CPU and once for memory", title(s), n)
		}
	}

	// Drawn anew from the table it shows the same rows.
	rows, err := barsOfTable(string(table))
	if err != nil {
		t.Fatal(err)
	}
	if len(rows) != len(subjects) {
		t.Fatalf("%d rows of %d are read from the table", len(rows), len(subjects))
	}
	for i, s := range subjects {
		if r := rows[i]; r.name != title(s) || r.single <= 0 || r.stream <= 0 || r.idle <= 0 {
			t.Errorf("row %d is read as %+v", i, r)
		}
	}
	if err := redrawChart(out); err != nil {
		t.Error(err)
	}
}

func TestMarkdown(t *testing.T) {
	results := []result{{
		Subject: peers.Subject{Name: "us", Settings: "none", Does: "little"},
		single:  cost{ns: 100},
		stream:  cost{ns: 40},
		idle:    idle{bytes: 2048},
	}, {
		Subject: peers.Subject{Name: "them, fast", Version: "1.2", Settings: "some", Does: "much"},
		single:  cost{ns: 1250, allocs: 4.04},
		stream:  cost{ns: 90, allocs: 0.2},
		idle:    idle{bytes: 20480, stack: 8192, goroutines: 3.1, server: 512},
	}}
	got := markdown(results, effort{rounds: 7}, "make")
	for _, want := range []string{
		"| us | 100 | 0 | 40 | 0 | 2.0 | 0 |\n",
		"| them 1.2, fast | 1250 (12×) | 4.0 | 90 (2.2×) | 0.2 | 20.0 (10×); 0.5 (0.2×) at a shared host | 3.1, 8 KiB of stacks |\n",
		"| them 1.2, fast | some | much |\n",
		"`make`: medians of 7",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
}

func TestMedian(t *testing.T) {
	if got, want := median([]cost{{3, 1}, {9, 0}, {1, 1}}), (cost{3, 1}); got != want {
		t.Errorf("odd: %v, want %v", got, want)
	}
	if got, want := median([]cost{{3, 0}, {1, 0}}), (cost{2, 0}); got != want {
		t.Errorf("even: %v, want %v", got, want)
	}
}
