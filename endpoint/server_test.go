package endpoint_test

import (
	"crypto/cipher"
	"crypto/ecdh"
	"crypto/rand"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ackbits/ackbits"
	"github.com/ackbits/ackbits/endpoint"
	"github.com/stretchr/testify/require"
)

func TestShutdownDeliversAndAdmitsNobody(t *testing.T) {
	w := newWorld(t, endpoint.ServerConfig{})
	a, b := w.join("198.51.100.7:1", knowing("ann")), w.join("198.51.100.8:1", knowing("bob"))
	w.run(100 * time.Millisecond)
	for p := range w.server.Peers() {
		p.Session().Send([]byte("good night"))
	}
	w.server.Shutdown(time.Second)
	late := w.shake(host(1), knowing("eve"))
	require.ErrorIs(t, late.Err(), endpoint.ErrRefused)
	require.ErrorContains(t, late.Err(), "shutting down")
	w.run(200 * time.Millisecond)
	for _, c := range []*endpoint.Client{a, b} {
		require.ErrorIs(t, c.Err(), ackbits.ErrPeerLeft)
	}
	require.Equal(t, []string{"good night"}, w.heard[address("198.51.100.7:1")])
	require.Equal(t, []string{"good night"}, w.heard[address("198.51.100.8:1")])
	require.Len(t, w.events, 4)
	for _, e := range w.events[2:] {
		require.Equal(t, endpoint.Left, e.Kind)
		require.ErrorIs(t, e.Err, ackbits.ErrClosed)
	}
	require.Empty(t, slices.Collect(w.server.Peers()))
	_, ok := w.server.Deadline()
	require.False(t, ok)
}

// Due has nothing to do a nanosecond before Deadline, and something at it. Times
// are off any tick.
func TestDeadlineIsExact(t *testing.T) {
	for seed := range 20 {
		w := newWorld(t, endpoint.ServerConfig{Session: ackbits.Config{Heartbeat: 31_234_567}})
		w.clock.Advance(time.Duration(seed) * 1_234_567)
		c := w.join(home, knowing("ann"))
		due := func() (n int) {
			for range c.Due(w.buf[:]) {
				n++
			}
			for range w.server.Due(w.buf[:]) {
				n++
			}
			return n
		}
		deadline := func() time.Time {
			at, ok := c.Deadline()
			require.True(t, ok)
			if s, ok := w.server.Deadline(); ok && s.Before(at) {
				at = s
			}
			return at
		}
		for step := range 30 {
			at := deadline()
			if at.After(w.clock.Now()) {
				w.clock.Set(at.Add(-1))
				require.Zero(t, due(), "seed %d step %d", seed, step)
				w.clock.Set(at)
			}
			w.flush()
			sent := w.take()
			require.NotEmpty(t, sent, "seed %d step %d", seed, step)
			w.clock.Advance(time.Duration(seed+1) * 777_777)
			for i, p := range sent {
				if (i+step+seed)%5 > 0 { // the others are lost
					w.deliver(p)
				}
			}
		}
		require.NotNil(t, c.Session())
	}
}

// P-13.2.1.
func TestClientEndsAtItsTimeoutAndNotBefore(t *testing.T) {
	w := newWorld(t, endpoint.ServerConfig{})
	cfg := knowing("ann")
	cfg.Timeout = 1234567 * time.Microsecond
	c := w.join(home, cfg)
	start := w.clock.Now()
	for c.Err() == nil {
		at, ok := c.Deadline()
		require.True(t, ok)
		w.clock.Set(at)
		for range c.Due(w.buf[:]) {
		}
	}
	require.Equal(t, cfg.Timeout, w.clock.Now().Sub(start))
}

// The same seeds and calls give the same bytes.
func TestRunsRepeatThemselves(t *testing.T) {
	run := func(seed int) []packet {
		w := newWorld(t, endpoint.ServerConfig{Rand: seeded(seed)})
		c := w.join(home, knowing("ann"))
		w.join("198.51.100.8:1", knowing("bob"))
		w.run(time.Second)
		w.rebind(home, elsewhere)
		w.run(time.Second)
		c.Session().Close()
		w.run(time.Second)
		return w.log
	}
	require.Equal(t, run(1), run(1))
	require.NotEqual(t, run(1), run(2))
}

func TestAcceptIsToldWhose(t *testing.T) {
	var seen []string
	w := newWorld(t, endpoint.ServerConfig{Accept: func(p *endpoint.Peer, h ackbits.Header, payload []byte) error {
		seen = append(seen, fmt.Sprint(string(p.Hello()), " ", h.Type, " ", string(payload)))
		return errors.New("no")
	}})
	c := w.join(home, knowing("ann"))
	w.run(100 * time.Millisecond)
	d, _, err := c.Session().AppendDatagram(nil, ackbits.TypeInput, []byte("left"))
	require.NoError(t, err)
	in, err := w.server.Receive(address(home), d)
	require.ErrorIs(t, err, ackbits.ErrRejected)
	require.Zero(t, in)
	require.Equal(t, []string{"ann Input left"}, seen)
}

func TestValuesThatMakeNoSenseAreNamed(t *testing.T) {
	p256, err := ecdh.P256().GenerateKey(rand.Reader)
	require.NoError(t, err)
	broken := func([]byte) (cipher.AEAD, error) { return nil, errors.New("no such cipher") }
	for text, cfg := range map[string]endpoint.ServerConfig{
		"Key is missing":                  {},
		"P-256":                           {Key: p256},
		"MaxPeers of -1 is negative":      {Key: serverKey, MaxPeers: -1},
		"MaxPerAddress of -2 is negative": {Key: serverKey, MaxPerAddress: -2},
		"Heartbeat":                       {Key: serverKey, Session: ackbits.Config{Heartbeat: -1}},
		"no such cipher":                  {Key: serverKey, AEAD: broken},
	} {
		_, err := endpoint.NewServer(cfg)
		require.ErrorIs(t, err, ackbits.ErrConfig)
		require.ErrorContains(t, err, text)
		_, err = endpoint.NewGate(cfg)
		require.ErrorIs(t, err, ackbits.ErrConfig)
	}
	for text, cfg := range map[string]endpoint.ClientConfig{
		"Hello of 513 bytes is more than 512": {Hello: make([]byte, 513)},
		"P-256":                               {ServerKey: p256.PublicKey()},
		"Timeout of -1ns is negative":         {Timeout: -1},
		"Heartbeat":                           {Session: ackbits.Config{Heartbeat: -1}},
		"no such cipher":                      {AEAD: broken},
	} {
		_, err := endpoint.NewClient(cfg)
		require.ErrorIs(t, err, ackbits.ErrConfig)
		require.ErrorContains(t, err, text)
	}
}

func TestReplyThatIsTooLongIsSaid(t *testing.T) {
	w := newWorld(t, endpoint.ServerConfig{Admit: func(endpoint.Request) ([]byte, error) { return make([]byte, 513), nil }})
	c := w.join(home, knowing("ann"))
	w.settle()
	require.ErrorContains(t, c.Err(), "reply of 513 bytes, the limit is 512")
}

// P-13.1.4.
func TestHelloAndReplyAsLongAsCanBe(t *testing.T) {
	w := newWorld(t, endpoint.ServerConfig{Admit: func(r endpoint.Request) ([]byte, error) { return r.Hello, nil }})
	cfg := knowing(strings.Repeat("x", 512))
	c := w.join(home, cfg)
	w.settle()
	require.Equal(t, string(cfg.Hello), string(c.Reply()))
	for _, p := range w.logged("Hello") {
		require.Len(t, p.data, 640, "its length does not show")
	}
}

func TestDatagramOfASessionTakesNoMemory(t *testing.T) {
	w, c, _ := joined(t, endpoint.ServerConfig{})
	from, d := address(home), make([]byte, 0, ackbits.MaxDatagramSize)
	payload := make([]byte, 100)
	step := func() {
		w.clock.Advance(10 * time.Millisecond)
		d, _, _ = c.Session().AppendDatagram(d[:0], ackbits.TypeInput, payload)
		w.server.Receive(from, d)
		for _, answer := range w.server.Due(w.buf[:]) {
			c.Receive(answer)
		}
	}
	for range 3000 {
		step()
	}
	require.Zero(t, testing.AllocsPerRun(1000, step))
}

// P-13.2.2.
func TestAStrangersHelloTakesNoMemory(t *testing.T) {
	w := newWorld(t, endpoint.ServerConfig{})
	flood(w, 0, 300)
	hello := make([]byte, 640)
	hello[0], hello[1], hello[2] = 0x0E, 1, 1
	require.Zero(t, testing.AllocsPerRun(1000, func() {
		w.server.Receive(address(home), hello)
		for range w.server.Due(w.buf[:]) {
		}
	}))
}

// A loop that is broken off goes on where it was.
func TestDueThatIsBrokenOffStarvesNobody(t *testing.T) {
	w := newWorld(t, endpoint.ServerConfig{})
	for i := range 5 {
		require.NotNil(t, w.shake(host(i), knowing("")).Session())
	}
	heard := map[string]int{}
	for range 100 {
		w.clock.Advance(10 * time.Millisecond) // each has a heartbeat due every fifth time
		for p := range w.server.Peers() {
			p.Session().Send([]byte("x"))
		}
		for to := range w.server.Due(w.buf[:]) {
			heard[to.String()]++
			break
		}
	}
	require.Len(t, heard, 5)
	for to, n := range heard {
		require.Equal(t, 20, n, to)
	}
}

// A peer may be thrown out, and its Left fetched, in a loop over all.
func TestPeersMayGoWhileTheyAreLoopedOver(t *testing.T) {
	w := newWorld(t, endpoint.ServerConfig{})
	for i := range 5 {
		w.shake(host(i), knowing(fmt.Sprint(i)))
	}
	w.fetch()
	var seen []string
	for p := range w.server.Peers() {
		seen = append(seen, string(p.Hello()))
		p.Session().Close()
		w.flush()
	}
	require.Equal(t, []string{"0", "1", "2", "3", "4"}, seen)
	require.Empty(t, slices.Collect(w.server.Peers()))
}

func TestClockThatIsSetBackEndsNothing(t *testing.T) {
	w, c, _ := joined(t, endpoint.ServerConfig{})
	w.clock.Advance(-time.Hour)
	w.run(time.Second)
	w.clock.Advance(48 * time.Hour)
	w.run(time.Second)
	require.NoError(t, c.Err())
	other := w.join("198.51.100.9:1", knowing("bob"))
	w.run(time.Second)
	require.NotNil(t, other.Session())
}

func TestKindsHaveNames(t *testing.T) {
	require.Equal(t, "Joined Moved Left none", fmt.Sprint(endpoint.Joined, endpoint.Moved, endpoint.Left, endpoint.EventKind(0)))
}

// The package stands on the standard library alone, opens no socket, starts no
// goroutine and reads one clock.
func TestPackageImportsOnlyWhatItMay(t *testing.T) {
	allowed := []string{
		"bytes", "container/list", "crypto/aes", "crypto/cipher", "crypto/ecdh", "crypto/hkdf", "crypto/hmac", "crypto/rand",
		"crypto/sha256", "crypto/subtle", "encoding/binary", "errors", "fmt", "hash", "io", "iter", "net/netip", "slices",
		"strings", "time", "unicode/utf8", "github.com/ackbits/ackbits",
	}
	files, err := filepath.Glob("*.go")
	require.NoError(t, err)
	clocks := 0
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		text, err := os.ReadFile(name)
		require.NoError(t, err)
		file, err := parser.ParseFile(token.NewFileSet(), name, text, parser.SkipObjectResolution)
		require.NoError(t, err)
		for _, spec := range file.Imports {
			require.Contains(t, allowed, strings.Trim(spec.Path.Value, `"`), name)
		}
		clocks += strings.Count(string(text), "time.Now(")
		ast.Inspect(file, func(n ast.Node) bool {
			switch n.(type) {
			case *ast.GoStmt, *ast.ChanType, *ast.SelectStmt:
				t.Errorf("%s knows concurrency", name)
			}
			return true
		})
	}
	require.Equal(t, 1, clocks)
}
