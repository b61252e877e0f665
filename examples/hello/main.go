// Hello is the smallest game over package endpoint: a chat, and a dot for each
// player that moves along a line.
//
//	go run ./examples/hello serve
//	go run ./examples/hello join
//
// in two terminals, or join 192.168.1.20 on another machine. A line that you type is
// sent as an event, which is delivered exactly once; where the dots are is state, of
// which only the newest counts. Enter alone turns your dot around; Ctrl-C leaves.
//
// All that a game needs of the network is in server.go and client.go. The rest are
// flags, messages and the terminal.
package main

import (
	"bufio"
	"cmp"
	"context"
	"crypto/ecdh"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"os/user"
	"strconv"
	"strings"
	"time"

	"github.com/ackbits/ackbits"
	"github.com/ackbits/ackbits/endpoint"
)

const defaultPort = "4000"

// The exit codes.
const (
	exitFailed = 1
	exitUsage  = 2
)

func main() {
	// The first Ctrl-C leaves the game, a second one ends the program at once.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	context.AfterFunc(ctx, stop)
	s := &screen{out: os.Stdout, terminal: isTerminal(os.Stdout)}
	if !s.terminal {
		s.pause = time.Second
	}
	os.Exit(run(ctx, os.Args[1:], os.Stdin, s, os.Stderr))
}

// run is the whole program. It returns the exit code.
func run(ctx context.Context, args []string, in io.Reader, s *screen, errOut io.Writer) int {
	o, err := parse(args)
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(errOut, "hello:", err)
		return exitUsage
	}
	switch {
	case err != nil:
		s.print(usage)
		err = nil
	case o.command == "serve":
		err = startServer(ctx, o, &player{name: o.name, lines: readLines(in, func() {}), screen: s})
	default:
		ctx, leave := context.WithCancel(ctx)
		defer leave()
		err = startClient(ctx, o, &player{name: o.name, lines: readLines(in, leave), screen: s})
	}
	if err == nil && s.err != nil {
		err = fmt.Errorf("the output is incomplete: %w", s.err)
	}
	if err != nil {
		fmt.Fprintln(errOut, "hello:", err)
		return exitFailed
	}
	return 0
}

const usage = `hello: a chat and a moving dot for each player, over UDP

  hello serve [-listen address] [-name name]
      Runs the server, on port 4000 of all addresses unless -listen names another
      one such as 127.0.0.1:5000 or [::1]:5000. You play there as well.
  hello join [-key key] [-name name] [host | host:port]
      Joins a server, the one on this machine if no host is named. The server
      prints its key. With -key you play with that server or not at all; without it
      you trust whoever answers at the address.

A line that you type goes to everybody. Enter alone turns your dot around.
Ctrl-C leaves, and who joined leaves at the end of the input, too.
`

// options are the command line.
type options struct {
	command string // serve or join
	name    string
	address string // to listen on, or of the server
	key     *ecdh.PublicKey
}

func parse(args []string) (o options, err error) {
	const hint = `say "hello serve" or "hello join"; -h shows more`
	if len(args) == 0 {
		return o, errors.New(hint)
	}
	f := flag.NewFlagSet("hello", flag.ContinueOnError)
	f.SetOutput(io.Discard)
	f.StringVar(&o.name, "name", "", "")
	var key string
	switch o.command = args[0]; o.command {
	case "serve":
		f.StringVar(&o.address, "listen", ":"+defaultPort, "")
	case "join":
		f.StringVar(&key, "key", "", "")
	case "-h", "-help", "--help", "help":
		return o, flag.ErrHelp
	default:
		return o, fmt.Errorf("unknown command %q: %s", o.command, hint)
	}
	if err := f.Parse(args[1:]); errors.Is(err, flag.ErrHelp) {
		return o, err
	} else if err != nil {
		return o, fmt.Errorf("%s: %w; -h shows the flags", o.command, err)
	}
	rest := f.Args()
	if o.command == "join" {
		o.address = withPort(cmp.Or(f.Arg(0), "localhost"))
		rest = rest[min(len(rest), 1):]
	}
	if len(rest) > 0 {
		return o, fmt.Errorf("%s: unexpected argument %q; -h shows the usage", o.command, rest[0])
	}
	if key != "" {
		if o.key, err = parseKey(key); err != nil {
			return o, fmt.Errorf("-key %s: %w", key, err)
		}
	}
	o.name = shorten(cmp.Or(o.name, userName(), o.command))
	return o, nil
}

// withPort adds the default port to a host without one.
func withPort(host string) string {
	if _, _, err := net.SplitHostPort(host); err == nil {
		return host
	}
	return net.JoinHostPort(strings.Trim(host, "[]"), defaultPort)
}

func parseKey(text string) (*ecdh.PublicKey, error) {
	b, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil || len(b) != 32 {
		return nil, errors.New("this is not the key that a server prints, of 43 letters and digits")
	}
	return ecdh.X25519().NewPublicKey(b)
}

func userName() string {
	u, err := user.Current()
	if err != nil {
		return ""
	}
	return u.Username[strings.LastIndex(u.Username, `\`)+1:] // without a Windows domain
}

// readLines returns the lines of the input as they are typed, and calls atEnd once
// the last one was taken.
func readLines(in io.Reader, atEnd func()) <-chan string {
	lines := make(chan string)
	go func() {
		defer atEnd()
		r := bufio.NewReader(in)
		for {
			line, err := r.ReadString('\n')
			if err != nil && line == "" {
				return
			}
			lines <- strings.TrimRight(line, "\r\n")
		}
	}()
	return lines
}

// startServer opens the port, says how to join, and serves.
func startServer(ctx context.Context, o options, host *player) error {
	key, err := newKey()
	if err != nil {
		return err
	}
	addr, err := net.ResolveUDPAddr("udp", o.address)
	if err != nil {
		return fmt.Errorf("-listen %s: %w", o.address, err)
	}
	conn, err := net.ListenUDP("udp", addr)
	if err != nil {
		return fmt.Errorf("%w (if another program has the port, -listen :5000 takes port 5000)", err)
	}
	defer conn.Close()
	host.screen.open()
	defer host.screen.close()
	public := base64.RawURLEncoding.EncodeToString(key.PublicKey().Bytes())
	host.hear(fmt.Sprintf("Serving on %v. To join:", conn.LocalAddr()))
	for _, address := range joinAddresses(conn.LocalAddr().(*net.UDPAddr)) {
		host.hear(fmt.Sprintf("  go run ./examples/hello join -key %s %s", public, address))
	}
	return serve(ctx, conn, key, host)
}

// newKey makes a new identity for the server. One that players meet again keeps its
// key in a file, and its public half comes with the game.
func newKey() (*ecdh.PrivateKey, error) { return ecdh.X25519().GenerateKey(rand.Reader) }

// joinAddresses returns at which addresses a server can be reached.
func joinAddresses(listening *net.UDPAddr) (addresses []string) {
	port := strconv.Itoa(listening.Port)
	if !listening.IP.IsUnspecified() {
		return []string{net.JoinHostPort(listening.IP.String(), port)}
	}
	addresses = []string{net.JoinHostPort("localhost", port)}
	local, _ := net.InterfaceAddrs() // no list, no other addresses to show
	for _, a := range local {
		if n, ok := a.(*net.IPNet); ok && n.IP.IsGlobalUnicast() {
			addresses = append(addresses, net.JoinHostPort(n.IP.String(), port))
		}
	}
	return addresses
}

// startClient connects to the server's address and plays.
func startClient(ctx context.Context, o options, me *player) error {
	dialed, err := net.Dial("udp", o.address)
	if err != nil {
		return fmt.Errorf("cannot reach %s: %w", o.address, err)
	}
	defer dialed.Close()
	me.screen.open()
	defer me.screen.close()
	conn := dialed.(*net.UDPConn)
	me.hear(fmt.Sprintf("Joining %s (%v) as %s …", o.address, conn.RemoteAddr(), me.name))
	cfg := endpoint.ClientConfig{ServerKey: o.key, Hello: []byte(me.name)}
	return explain(join(ctx, conn, cfg, me), o.address)
}

// explain says what a player can do about the end of a session. Leaving is none.
func explain(err error, address string) error {
	var refused *endpoint.RefusedError
	switch {
	case errors.Is(err, ackbits.ErrClosed), errors.Is(err, context.Canceled):
		return nil
	case errors.Is(err, ackbits.ErrPeerLeft):
		return errors.New("the server has ended the game")
	case errors.As(err, &refused):
		return fmt.Errorf("the server at %s does not admit you: %s", address, refused.Reason)
	case errors.Is(err, endpoint.ErrNoAnswer):
		return fmt.Errorf("no answer from %s within 5 s: is the server running there, and does a firewall let UDP through?", address)
	case errors.Is(err, endpoint.ErrServerKey):
		return fmt.Errorf("the server at %s does not have the key that -key names: it was restarted, or it is not the one you want", address)
	case errors.Is(err, endpoint.ErrReset):
		return errors.New("the server does not know you any more, as it was restarted or heard nothing of you for 5 s: join again")
	case errors.Is(err, ackbits.ErrTimeout):
		return fmt.Errorf("nothing has come from %s for 5 s: the server or the network is down", address)
	}
	return fmt.Errorf("the game at %s has ended: %w", address, err)
}
