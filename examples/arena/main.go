// Arena is a small game over UDP: a server, bots and a terminal client, built on
// the ackbits library. Without a subcommand it runs everything at once for ten
// seconds and checks that every event arrived exactly once.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
)

const usage = `usage: arena [all]   server, bots and lossy links in one process, ledgers compared
       arena serve   the server
       arena bots    many players without a human
       arena play    the terminal client
       arena compare SERVER.ledger BOTS.ledger
Each has -h.
`

// errUsage: the command line makes no sense, and the user has been told.
var errUsage = errors.New("usage")

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := run(ctx, os.Args[1:])
	switch {
	case err == nil, errors.Is(err, flag.ErrHelp):
	case errors.Is(err, errUsage):
		os.Exit(2)
	default:
		fmt.Fprintln(os.Stderr, "arena:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	command := "all"
	if len(args) > 0 && args[0][0] != '-' {
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
	case "compare":
		return compare(args)
	}
	fmt.Fprint(os.Stderr, usage)
	return errUsage
}

// parse reads the flags of a subcommand that takes no arguments.
func parse(flags *flag.FlagSet, args []string) error {
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return err
		}
		return errUsage // the flag package has told
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
