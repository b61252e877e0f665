package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ackbits/ackbits"
	"github.com/ackbits/ackbits/endpoint"
)

// terminal is a player's: what is typed, and what is shown.
type terminal struct {
	t      *testing.T
	ctx    context.Context
	typing io.WriteCloser
	leave  context.CancelFunc
	code   chan int
	errOut bytes.Buffer // once code came

	mu     sync.Mutex
	shown  bytes.Buffer
	change chan struct{} // something more is shown
}

// start runs the program.
func start(t *testing.T, args ...string) *terminal {
	ctx, leave := context.WithCancel(t.Context())
	bounded, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	t.Cleanup(cancel)
	in, typing := io.Pipe()
	term := &terminal{t: t, ctx: bounded, typing: typing, leave: leave, code: make(chan int, 1), change: make(chan struct{}, 1)}
	go func() { term.code <- run(ctx, args, in, &screen{out: term}, &term.errOut) }()
	return term
}

func (term *terminal) Write(b []byte) (int, error) {
	term.mu.Lock()
	defer term.mu.Unlock()
	select {
	case term.change <- struct{}{}:
	default:
	}
	return term.shown.Write(b)
}

func (term *terminal) text() string {
	term.mu.Lock()
	defer term.mu.Unlock()
	return term.shown.String()
}

// see waits until something is shown, and returns it.
func (term *terminal) see(pattern string) []string {
	term.t.Helper()
	re := regexp.MustCompile("(?m)" + pattern)
	for {
		if m := re.FindStringSubmatch(term.text()); m != nil {
			return m
		}
		select {
		case <-term.change:
		case <-term.ctx.Done():
			require.FailNow(term.t, "not shown: "+pattern, term.text())
		}
	}
}

func (term *terminal) say(line string) {
	_, err := io.WriteString(term.typing, line+"\n")
	require.NoError(term.t, err)
}

// ends waits until the program has ended.
func (term *terminal) ends(code int, errOut string) {
	term.t.Helper()
	select {
	case got := <-term.code:
		require.Equal(term.t, errOut, term.errOut.String())
		require.Equal(term.t, code, got)
	case <-term.ctx.Done():
		require.FailNow(term.t, "it does not end", term.text())
	}
}

// startServe runs a server and returns what to join it with.
func startServe(t *testing.T, listen string) (host *terminal, key, address string) {
	host = start(t, "serve", "-listen", listen, "-name", "host")
	m := host.see(`join -key (\S+) (\S+)$`)
	return host, m[1], m[2]
}

// loopbacks returns where a server can listen here, and where it is joined then.
func loopbacks(t *testing.T) map[string][]string {
	port := func(address string) string {
		_, port, err := net.SplitHostPort(address)
		require.NoError(t, err)
		return port
	}
	all := map[string][]string{"127.0.0.1:0": {"127.0.0.1"}, ":0": {"127.0.0.1", "localhost"}}
	if probe, err := net.ListenPacket("udp6", "[::1]:0"); err == nil { // this machine has IPv6
		require.NotEmpty(t, port(probe.LocalAddr().String()))
		probe.Close()
		all["[::1]:0"], all[":0"] = []string{"::1"}, append(all[":0"], "::1")
	}
	return all
}

func TestTwoTerminals(t *testing.T) {
	for listen, hosts := range loopbacks(t) {
		for _, at := range hosts {
			t.Run(listen+" from "+at, func(t *testing.T) {
				host, key, address := startServe(t, listen)
				_, port, err := net.SplitHostPort(address)
				require.NoError(t, err)
				ann := start(t, "join", "-name", "ann", "-key", key, net.JoinHostPort(at, port))
				ann.see(`^Joining .* as ann …$`)
				ann.see(`^ann has joined$`)
				host.see(`^ann has joined$`)
				ann.say("hello, host")
				host.see(`^ann: hello, host$`)
				host.say("hello, ann")
				ann.see(`^host: hello, ann$`)
				for _, term := range []*terminal{ann, host} {
					term.see(`^\.*(a\.*h|h\.*a)\.*$`)
				}
				ann.leave() // Ctrl-C
				ann.ends(0, "")
				host.see(`^ann has left$`)
				host.leave()
				host.ends(0, "")
				for _, term := range []*terminal{ann, host} {
					assert.Equal(t, 1, strings.Count(term.text(), "ann: hello, host"))
					assert.Equal(t, 1, strings.Count(term.text(), "host: hello, ann"))
				}
			})
		}
	}
}

func TestThreeTerminals(t *testing.T) {
	host, _, address := startServe(t, "127.0.0.1:0")
	ann := start(t, "join", "-name", "ann", address)
	host.see("^ann has joined$")
	bob := start(t, "join", "-name", "bob", address)
	for _, term := range []*terminal{host, ann, bob} {
		term.see("^bob has joined$")
	}
	for i := range 20 {
		ann.say(fmt.Sprint("line ", i))
	}
	bob.say(strings.Repeat("x", 3000))
	for _, term := range []*terminal{host, ann, bob} {
		for i := range 20 {
			term.see(fmt.Sprintf("^ann: line %d$", i))
		}
		term.see(`^bob: x{1000}$`)
	}
	bob.see(`^\(a line is cut to 1000 bytes\)$`)
	bob.say("that was all")
	bob.typing.Close() // Ctrl-D
	bob.ends(0, "")
	ann.see("^bob: that was all$")
	ann.see("^bob has left$")
	host.leave()
	host.ends(0, "")
	ann.ends(1, "hello: the server has ended the game\n")
}

// socket is a UDP socket, connected if to is not nil.
func socket(t *testing.T, at string, to net.Addr) *net.UDPConn {
	t.Helper()
	local, err := net.ResolveUDPAddr("udp", at)
	require.NoError(t, err)
	if to != nil {
		conn, err := net.DialUDP("udp", local, to.(*net.UDPAddr))
		require.NoError(t, err)
		t.Cleanup(func() { conn.Close() })
		return conn
	}
	conn, err := net.ListenUDP("udp", local)
	require.NoError(t, err)
	t.Cleanup(func() { conn.Close() })
	return conn
}

// soon returns what serve returned.
func soon(t *testing.T, ended <-chan error) error {
	t.Helper()
	select {
	case err := <-ended:
		return err
	case <-time.After(10 * time.Second):
		require.FailNow(t, "the server goes on")
		return nil
	}
}

func quiet(name string) *player { return &player{name: name, screen: &screen{out: io.Discard}} }

func TestNobodyAnswers(t *testing.T) {
	silent := socket(t, "127.0.0.1:0", nil)
	cfg := endpoint.ClientConfig{Timeout: 100 * time.Millisecond}
	err := join(t.Context(), socket(t, "127.0.0.1:0", silent.LocalAddr()), cfg, quiet("ann"))
	require.ErrorIs(t, err, endpoint.ErrNoAnswer)

	ctx, interrupt := context.WithCancel(t.Context())
	interrupt() // Ctrl-C does not wait for an answer
	err = join(ctx, socket(t, "127.0.0.1:0", silent.LocalAddr()), endpoint.ClientConfig{Timeout: time.Hour}, quiet("ann"))
	require.ErrorIs(t, err, context.Canceled)
}

func TestAnotherKey(t *testing.T) {
	_, _, address := startServe(t, "127.0.0.1:0")
	another, err := newKey()
	require.NoError(t, err)
	to, err := net.ResolveUDPAddr("udp", address)
	require.NoError(t, err)
	cfg := endpoint.ClientConfig{ServerKey: another.PublicKey(), Timeout: 300 * time.Millisecond}
	require.ErrorIs(t, join(t.Context(), socket(t, "127.0.0.1:0", to), cfg, quiet("ann")), endpoint.ErrServerKey)
}

// A server that crashed and runs again tells its clients at once.
func TestServerCrashes(t *testing.T) {
	key, err := newKey()
	require.NoError(t, err)
	conn := socket(t, "127.0.0.1:0", nil)
	crashed := make(chan error, 1)
	go func() { crashed <- serve(t.Context(), conn, key, quiet("host")) }()
	ann := start(t, "join", "-name", "ann", conn.LocalAddr().String())
	ann.see("^ann has joined$")
	require.NoError(t, conn.Close())
	require.ErrorIs(t, soon(t, crashed), net.ErrClosed)

	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	again := socket(t, conn.LocalAddr().String(), nil)
	go func() { ended <- serve(ctx, again, key, quiet("host")) }()
	ann.ends(1, "hello: the server does not know you any more, as it was restarted or heard nothing of you for 5 s: join again\n")
	stop()
	require.NoError(t, soon(t, ended))
}

func TestServerFallsSilent(t *testing.T) {
	var out bytes.Buffer
	p := &player{screen: &screen{out: &out, pause: time.Hour}, seen: time.Now().Add(-2 * time.Second)}
	p.move()
	p.move()
	require.Equal(t, "(nothing has come from the server for a second)\n", out.String())
	out.Reset()
	p.screen.drawn = time.Now()
	p.see(nil)
	require.Equal(t, "(the server answers again)\n", out.String())
}

func TestEveryEndIsExplained(t *testing.T) {
	require.NoError(t, explain(ackbits.ErrClosed, "host:1"))
	require.NoError(t, explain(context.Canceled, "host:1"))
	for _, err := range []error{
		ackbits.ErrPeerLeft, ackbits.ErrTimeout, ackbits.ErrStalled, endpoint.ErrNoAnswer, endpoint.ErrServerKey,
		endpoint.ErrReset, endpoint.ErrVersion, &endpoint.RefusedError{Reason: "full"},
	} {
		text := explain(err, "host:1").Error()
		require.Greater(t, len(strings.Fields(text)), 4, text)
		require.NotContains(t, text, "ackbits: timeout")
	}
	require.Contains(t, explain(&endpoint.RefusedError{Reason: "full"}, "host:1").Error(), "host:1 does not admit you: full")
}

func TestBadArguments(t *testing.T) {
	for args, want := range map[string]string{
		"":                       `say "hello serve" or "hello join"; -h shows more`,
		"sing":                   `unknown command "sing": say "hello serve" or "hello join"; -h shows more`,
		"serve -port 5":          "serve: flag provided but not defined: -port; -h shows the flags",
		"serve here":             `serve: unexpected argument "here"; -h shows the usage`,
		"join a b":               `join: unexpected argument "b"; -h shows the usage`,
		"join -key x":            "-key x: this is not the key that a server prints, of 43 letters and digits",
		"serve -key x":           "serve: flag provided but not defined: -key; -h shows the flags",
		"join -listen localhost": "join: flag provided but not defined: -listen; -h shows the flags",
	} {
		var out, errOut bytes.Buffer
		require.Equal(t, exitUsage, run(t.Context(), strings.Fields(args), nil, &screen{out: &out}, &errOut), args)
		require.Equal(t, "hello: "+want+"\n", errOut.String())
		require.Empty(t, out.String())
	}
}

func TestAddressesThatAreNone(t *testing.T) {
	taken := socket(t, "127.0.0.1:0", nil).LocalAddr().String()
	for args, want := range map[string]string{
		"serve -listen nowhere":   "hello: -listen nowhere: address nowhere: missing port in address\n",
		"serve -listen " + taken:  "(if another program has the port, -listen :5000 takes port 5000)\n",
		"join 127.0.0.1:notaport": "hello: cannot reach 127.0.0.1:notaport: ",
	} {
		var errOut bytes.Buffer
		require.Equal(t, exitFailed, run(t.Context(), strings.Fields(args), strings.NewReader(""), &screen{out: io.Discard}, &errOut))
		require.Contains(t, errOut.String(), want)
	}
}

func TestHelp(t *testing.T) {
	for _, args := range [][]string{{"-h"}, {"help"}, {"serve", "-h"}, {"join", "--help"}} {
		var out bytes.Buffer
		require.Zero(t, run(t.Context(), args, nil, &screen{out: &out}, os.Stderr))
		require.Equal(t, usage, out.String())
	}
}

func TestHostsGetAPort(t *testing.T) {
	for host, want := range map[string]string{
		"localhost": "localhost:4000", "10.1.2.3": "10.1.2.3:4000", "10.1.2.3:5": "10.1.2.3:5",
		"::1": "[::1]:4000", "[::1]": "[::1]:4000", "[::1]:5": "[::1]:5", "fe80::1%eth0": "[fe80::1%eth0]:4000",
	} {
		require.Equal(t, want, withPort(host))
	}
}

// fullDisk is where nothing can be written.
type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, syscall.ENOSPC }

func TestFullDisk(t *testing.T) {
	var errOut bytes.Buffer
	require.Equal(t, exitFailed, run(t.Context(), []string{"-h"}, nil, &screen{out: fullDisk{}}, &errOut))
	require.Equal(t, "hello: the output is incomplete: no space left on device\n", errOut.String())
}

func TestScreen(t *testing.T) {
	var out bytes.Buffer
	s := &screen{out: &out, terminal: true}
	s.say("bell \a, colour \x1b[31m, half a rune \xff")
	require.Equal(t, "\r\x1b[Kbell ?, colour ?[31m, half a rune ?\n", out.String())
	out.Reset()
	s.draw([]byte{'a', 0, 'b', width - 1, '\x1b', 20, 'c', width, 'd'})
	require.Equal(t, "\x1b7\x1b[1;1H\x1b[2Ka"+strings.Repeat(".", 19)+"*"+strings.Repeat(".", 18)+"b\x1b8", out.String())
	require.Equal(t, "somebody", shorten(""))
	require.Equal(t, "abcdefghijklmnop", shorten("abcdefghijklmnopq"))
}

func TestDotsTurnAround(t *testing.T) {
	p := quiet("ann")
	for range 10 * width {
		before := p.place
		p.move()
		require.Equal(t, 1, max(int(p.place)-int(before), int(before)-int(p.place)))
		require.Less(t, p.place, byte(width))
	}
	p.place, p.back = 10, false
	lines := make(chan string, 1)
	p.lines = lines
	lines <- ""
	require.Empty(t, p.typed())
	p.move()
	require.Equal(t, byte(9), p.place)
	require.Empty(t, p.typed(), "nothing more was typed")
}

// The README shows the server and the client: each is to stay short.
func TestEachSideIsUnder60Lines(t *testing.T) {
	for _, name := range []string{"server.go", "client.go"} {
		text, err := os.ReadFile(name)
		require.NoError(t, err)
		_, rest, ok := strings.Cut(string(text), "// README: begin hello-"+strings.TrimSuffix(name, ".go")+"\n")
		require.True(t, ok)
		passage, _, ok := strings.Cut(rest, "// README: end")
		require.True(t, ok)
		require.Less(t, strings.Count(strings.TrimSpace(passage), "\n")+1, 60, name)
	}
}

// A line that is lost is sent again, although who said it is leaving already.
func TestLastWordsAreDelivered(t *testing.T) {
	host, _, address := startServe(t, "127.0.0.1:0")
	to, err := net.ResolveUDPAddr("udp", address)
	require.NoError(t, err)
	front, back := socket(t, "127.0.0.1:0", nil), socket(t, "127.0.0.1:0", to)
	var drop atomic.Int32 // so many datagrams with events on their way to the server
	go func() {           // the relay, to the server
		buf := make([]byte, ackbits.MaxDatagramSize)
		for n, from, err := front.ReadFromUDPAddrPort(buf); err == nil; n, from, err = front.ReadFromUDPAddrPort(buf) {
			h, _, err := ackbits.ParseHeader(buf[:n])
			if err == nil && h.Type == ackbits.TypeEvent && drop.Add(-1) >= 0 {
				continue
			}
			back.Write(buf[:n])
			for n, err := 0, error(nil); err == nil; n, err = back.Read(buf) { // and what has come back
				if n > 0 {
					front.WriteToUDPAddrPort(buf[:n], from)
				}
				back.SetReadDeadline(time.Now().Add(5 * time.Millisecond))
			}
		}
	}()
	ann := start(t, "join", "-name", "ann", front.LocalAddr().String())
	ann.see("^ann has joined$")
	drop.Store(2)
	ann.say("good night")
	ann.typing.Close()
	ann.ends(0, "")
	host.see("^ann: good night$")
	host.see("^ann has left$")
	require.Negative(t, drop.Load(), "the line was lost twice")
}
