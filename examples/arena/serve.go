package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"time"

	"github.com/ackbits/ackbits/examples/arena/ledger"
	"github.com/ackbits/ackbits/examples/arena/server"
)

// serve runs the server until a signal asks it to leave.
func serve(ctx context.Context, args []string) (err error) {
	flags := flag.NewFlagSet("arena serve", flag.ContinueOnError)
	var cfg server.Config
	flags.StringVar(&cfg.Listen, "listen", "127.0.0.1:7777", "`address` of the game: host:port, where the host may be a name, 0.0.0.0, or [::] for all addresses")
	key := flags.String("key", "", "`file` of the server's private key, made if it does not exist; empty for "+keyFileWords())
	flags.IntVar(&cfg.Shards, "shards", runtime.GOMAXPROCS(0), "goroutines that run rooms")
	flags.IntVar(&cfg.Rooms, "rooms", 32, "worlds")
	flags.IntVar(&cfg.RoomSize, "size", 32, "players in a room, at most 64")
	flags.IntVar(&cfg.PerAddress, "per-address", 64, "players of an IPv4 address or IPv6 /64, those who left within 20 s included")
	flags.IntVar(&cfg.PerNetwork, "per-network", 256, "players of an IPv4 /24 or IPv6 /48, and no more than it leaves free seats; 0 for no limit")
	flags.IntVar(&cfg.Chat, "chat", 120, "lines of chat of an IPv4 address or IPv6 /64 a minute; 0 for no limit")
	flags.DurationVar(&cfg.Idle, "idle", time.Minute, "players who press nothing for so long go, six times sooner in a crowded server; 0 for never")
	flags.Uint64Var(&cfg.Seed, "seed", 0, "of the map, so that players of an earlier server need not load it again; 0 for a random one")
	http := flags.String("http", "127.0.0.1:7778", "loopback `address` of /metrics; empty for none")
	pprof := flags.Bool("pprof", false, "serve profiles at /debug/pprof/, too")
	file := flags.String("ledger", "", "`file` for the ledger; empty for none")
	unsealed := flags.Bool("unsealed", false, "sessions without encryption, to measure what that costs; clients need it, too")
	verbose := flags.Bool("v", false, "log every player")
	if err := parse(flags, args); err != nil {
		return err
	}
	if cfg.Seed == 0 {
		cfg.Seed = rand.Uint64()
	}
	cfg.Log = logger(*verbose)
	if *unsealed {
		cfg.AEAD = noAEAD
	}
	if cfg.Key, err = loadKey(*key); err != nil {
		return err
	}
	if *file != "" {
		f, err2 := os.Create(*file)
		if err2 != nil {
			return err2
		}
		defer func() { err = errors.Join(err, f.Close()) }()
		cfg.Ledger = ledger.NewBook(f)
	}
	s, err := server.Listen(cfg)
	if errors.Is(err, syscall.EADDRINUSE) {
		return fmt.Errorf("%w (another server? choose another address with -listen)", err)
	}
	if err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "join with: arena play -join %s -key %s\n", joinAddr(s.Addr()), server.EncodeKey(cfg.Key.PublicKey()))
	if *http != "" {
		stop, err := s.ServeHTTP(*http, *pprof)
		if err != nil {
			return fmt.Errorf("%w (another address: -http, none: -http=)", err)
		}
		defer stop()
	}
	return s.Serve(ctx)
}

// joinAddr returns the address for players: a server on all addresses is found under
// the name of its machine.
func joinAddr(addr netip.AddrPort) string {
	if addr.Addr().IsUnspecified() {
		return fmt.Sprintf("HOST:%d", addr.Port())
	}
	return addr.String()
}

// keyFile returns where a server's key is kept that is given no file.
func keyFile() (string, error) {
	dir, err := os.UserConfigDir()
	if err != nil {
		return "", fmt.Errorf("no folder for the server's key, name a file with -key: %w", err)
	}
	return filepath.Join(dir, "ackbits-arena", "server.key"), nil
}

func keyFileWords() string {
	file, err := keyFile()
	if err != nil {
		return "a file in your configuration folder"
	}
	return file
}
