// Arena is a small game over UDP: a server, bots and a terminal client, built on
// the ackbits library. Without a subcommand it runs everything at once for ten
// seconds and checks that every event arrived exactly once.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
)

const usage = `usage: arena [all]   server, bots and lossy links in one process, ledgers compared
       arena serve   the server
       arena bots    many players without a human
       arena play    the terminal client
       arena screen  print what a player among bots sees after a while
       arena compare SERVER.ledger BOTS.ledger
Each has -h.
`

// errUsage: the command line makes no sense, and the reason was printed.
var errUsage = errors.New("usage")

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(exit(run(ctx, os.Args[1:]), os.Stderr))
}

// exit says what went wrong and returns the exit code for it.
func exit(err error, out io.Writer) (code int) {
	switch {
	case err == nil, errors.Is(err, flag.ErrHelp):
		return 0
	case errors.Is(err, errUsage):
		return 2
	}
	fmt.Fprintln(out, "arena:", err)
	return 1
}

func run(ctx context.Context, args []string) error {
	command := "all"
	if len(args) > 0 && (args[0] == "" || args[0][0] != '-') {
		command, args = args[0], args[1:]
	}
	switch command {
	case "all":
		return all(ctx, args)
	case "serve":
		return serve(ctx, args)
	case "bots":
		return runBots(ctx, args)
	case "play":
		return play(ctx, args)
	case "screen":
		return printScreen(ctx, args)
	case "compare":
		return compare(args)
	case "help":
		fmt.Fprint(os.Stderr, usage)
		return flag.ErrHelp
	}
	fmt.Fprintf(os.Stderr, "there is no command %q\n%s", command, usage)
	return errUsage
}

// parse reads the flags of a subcommand that takes no arguments.
func parse(flags *flag.FlagSet, args []string) error {
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return err
		}
		return errUsage // the flag package has printed why
	}
	if flags.NArg() > 0 {
		fmt.Fprintf(os.Stderr, "%s takes no arguments, got %q\n", flags.Name(), flags.Args())
		return errUsage
	}
	return nil
}

// logger writes to standard error.
func logger(verbose bool) *slog.Logger {
	level := slog.LevelInfo
	if verbose {
		level = slog.LevelDebug
	}
	return slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: level}))
}

// output is standard output that remembers its first error: a full disk behind it
// must not look like success.
type output struct{ err error }

func (o *output) Write(b []byte) (int, error) {
	n, err := os.Stdout.Write(b)
	if o.err == nil {
		o.err = err
	}
	return n, err
}
