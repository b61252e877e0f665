package main

import (
	"bytes"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/ackbits/ackbits/internal/bench/peers"
)

// markdown renders the table. The first result is what the others are compared
// with.
func markdown(results []result, e effort, command string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "Per delivered message of %d bytes, both ends together, in memory; idle memory and goroutines per end of a connection.\n", peers.MessageSize)
	fmt.Fprintf(&b, "In parentheses: as a multiple of ackbits' figure. Made by `%s`: medians of %d interleaved rounds, %s, %s.\n\n", command, e.rounds, runtime.Version(), machine())
	b.WriteString("| | one in flight, CPU ns | allocations | ten a tick, CPU ns | allocations | idle KiB | goroutines |\n")
	b.WriteString("|---|--:|--:|--:|--:|--:|--:|\n")
	base := results[0]
	for _, r := range results {
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %s | %s |\n",
			title(r.Subject),
			against(digits(r.single.ns), r.single.ns, base.single.ns),
			count(r.single.allocs),
			against(digits(r.stream.ns), r.stream.ns, base.stream.ns),
			count(r.stream.allocs),
			kib(r.idle, base.idle),
			goroutines(r.idle))
	}
	b.WriteString("\n| | settings | what else it does, or does not |\n|---|---|---|\n")
	for _, r := range results {
		fmt.Fprintf(&b, "| %s | %s | %s |\n", title(r.Subject), r.Settings, r.Does)
	}
	return b.String()
}

func title(s peers.Subject) string {
	name, detail, _ := strings.Cut(s.Name, ", ")
	if v := version(s); v != "" {
		name += " " + v
	}
	if detail != "" {
		name += ", " + detail
	}
	return name
}

// against adds a figure's ratio to what it is compared with.
func against(text string, value, base float64) string {
	if value == base || base == 0 {
		return text
	}
	return fmt.Sprintf("%s (%s×)", text, digits(value/base))
}

// digits prints x with two digits, or more where it has more before the point.
func digits(x float64) string {
	if x >= 10 {
		return fmt.Sprintf("%.0f", x)
	}
	return fmt.Sprintf("%.1f", x)
}

func count(x float64) string {
	if x < 0.05 {
		return "0"
	}
	return digits(x)
}

func kib(i, base idle) string {
	text := against(fmt.Sprintf("%.1f", i.bytes/1024), i.bytes, base.bytes)
	if i.server > 0 {
		text += "; " + against(fmt.Sprintf("%.1f", i.server/1024), i.server, base.bytes) + " at a shared host"
	}
	return text
}

func goroutines(i idle) string {
	if i.goroutines < 0.05 {
		return "0"
	}
	return fmt.Sprintf("%s, %.0f KiB of stacks", digits(i.goroutines), i.stack/1024)
}

// version is that of the subject's library, from the build.
func version(s peers.Subject) string {
	if s.Version != "" || s.Module == "" {
		return s.Version
	}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, m := range info.Deps {
			if m.Path == s.Module {
				return strings.TrimPrefix(m.Version, "v")
			}
		}
	}
	return ""
}

func buildTags() string {
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if s.Key == "-tags" {
				return s.Value
			}
		}
	}
	return ""
}

// machine names the processor.
func machine() string {
	name := runtime.GOOS + "/" + runtime.GOARCH
	info, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return name // not Linux
	}
	for line := range bytes.Lines(info) {
		if key, value, ok := strings.Cut(string(line), ":"); ok && strings.TrimSpace(key) == "model name" {
			return fmt.Sprintf("%s, %s, %d threads", name, strings.TrimSpace(value), runtime.NumCPU())
		}
	}
	return name
}
