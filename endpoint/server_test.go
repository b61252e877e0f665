package endpoint_test

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/ecdh"
	"crypto/rand"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	mathrand "math/rand/v2"
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
	require.Equal(t, uint64(1), w.server.Stats().RefusedLeaving)
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
		chance := mathrand.New(mathrand.NewPCG(uint64(seed), 0))
		c := w.join(home, knowing("ann"))
		d := w.join(elsewhere, knowing("bob"))
		due := func() (n int) {
			for _, c := range []*endpoint.Client{c, d} {
				for range c.Due(w.buf[:]) {
					n++
				}
			}
			for range w.server.Due(w.buf[:]) {
				n++
			}
			return n
		}
		deadline := func() time.Time {
			at, ok := c.Deadline()
			require.True(t, ok)
			other, ok := d.Deadline()
			require.True(t, ok)
			if other.Before(at) {
				at = other
			}
			if s, ok := w.server.Deadline(); ok && s.Before(at) {
				at = s
			}
			return at
		}
		for step := range 150 {
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
			for _, p := range sent {
				if chance.IntN(5) > 0 { // the others are lost
					w.deliver(p)
				}
			}
		}
		require.NotNil(t, c.Session())
		require.NotNil(t, d.Session())
	}
}

// P-13.2.1.
func TestClientEndsAtItsTimeoutAndNotBefore(t *testing.T) {
	w := newWorld(t, endpoint.ServerConfig{})
	cfg := knowing("ann")
	cfg.Timeout = 1234567 * time.Microsecond
	c := w.join(home, cfg)
	start := w.clock.Now()
	hellos := 0
	for step := 0; c.Err() == nil && step < 100; step++ {
		at, ok := c.Deadline()
		require.True(t, ok)
		w.clock.Set(at)
		for range c.Due(w.buf[:]) {
			hellos++
			require.LessOrEqual(t, hellos, 5)
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

// unfit is an AEAD that no session takes.
type unfit struct{ cipher.AEAD }

func (unfit) NonceSize() int { return 12 }
func (unfit) Overhead() int  { return 65 }

func TestAEADThatNoSessionTakesIsFoundAtTheStart(t *testing.T) {
	aead := func([]byte) (cipher.AEAD, error) { return unfit{}, nil }
	_, err := endpoint.NewServer(endpoint.ServerConfig{Key: serverKey, AEAD: aead})
	require.ErrorIs(t, err, ackbits.ErrConfig)
	_, err = endpoint.NewClient(endpoint.ClientConfig{AEAD: aead})
	require.ErrorIs(t, err, ackbits.ErrConfig)
}

// An AEAD that works at the start and not later ends the attempt.
func TestAEADThatFailsLaterAdmitsNobody(t *testing.T) {
	fails := false
	aead := func(key []byte) (cipher.AEAD, error) {
		if fails {
			return nil, errors.New("out of keys")
		}
		block, err := aes.NewCipher(key)
		if err != nil {
			return nil, err
		}
		return cipher.NewGCM(block)
	}
	w := newWorld(t, endpoint.ServerConfig{AEAD: aead})
	fails = true
	require.Nil(t, w.shake(host(1), knowing("")).Session())
	s := w.server.Stats()
	require.Equal(t, uint64(1), s.Failed)
	require.Zero(t, s.Peers)
	fails = false
	require.NotNil(t, w.shake(host(2), knowing("")).Session(), "keys of 32 bytes, which AES takes")
	cfg := knowing("")
	cfg.AEAD = aead
	c := w.join(home, cfg)
	w.flush()
	w.deliver(w.take()[0])
	w.flush()
	w.deliver(w.take()[0])
	fails = true
	w.flush()
	fails = false
	for _, p := range w.take() {
		w.deliver(p)
	}
	w.flush()
	fails = true
	for _, p := range w.take() {
		w.deliver(p)
	}
	require.ErrorContains(t, c.Err(), "out of keys")
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
	cfg.Hello[0] = 'y' // it is the caller's again
	w.settle()
	require.Equal(t, strings.Repeat("x", 512), string(c.Reply()))
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

// What a peer is due goes out in one Due, its Probe and all, and Deadline says so.
func TestProbeIsDueAtOnce(t *testing.T) {
	w, c, peer := joined(t, endpoint.ServerConfig{})
	w.take()
	d, _, err := c.Session().AppendDatagram(nil, ackbits.TypeInput, nil)
	require.NoError(t, err)
	w.server.Receive(address(elsewhere), d)
	at, ok := w.server.Deadline()
	require.True(t, ok)
	require.Equal(t, w.clock.Now(), at)
	peer.Session().Send([]byte("and this"))
	w.flush()
	sent := w.take()
	require.Equal(t, []string{"Probe", "session"}, kinds(sent))
	require.Equal(t, []packet{{w.at, address(elsewhere), sent[0].data}, {w.at, address(home), sent[1].data}}, sent)
	c.Receive(sent[0].data)
	at, ok = c.Deadline()
	require.True(t, ok)
	require.Equal(t, w.clock.Now(), at, "and so does the client's, for its reply")
	c.Session().Send([]byte("and that"))
	for d := range c.Due(w.buf[:]) {
		require.Equal(t, "ProbeReply", kindOf(d))
		break
	}
	for d := range c.Due(w.buf[:]) {
		require.Equal(t, "session", kindOf(d), "what was broken off is left")
		break
	}
	for range c.Due(w.buf[:]) {
		t.Fatal("and nothing else")
	}
}

// What comes to a server in vain is counted for its reason.
func TestWhatComesInVainIsCounted(t *testing.T) {
	w, c, _ := joined(t, endpoint.ServerConfig{})
	d, _, err := c.Session().AppendDatagram(nil, ackbits.TypeInput, nil)
	require.NoError(t, err)
	bare := slices.Clone(d)
	bare[0] = 0x0A
	reply := append(append([]byte{0x0E, 7}, d[2:10]...), make([]byte, 16)...)
	for _, in := range []struct {
		datagram                   []byte
		err                        error
		malformed, forged, foreign uint64
	}{
		{nil, ackbits.ErrShort, 0, 0, 1},
		{[]byte("GET / HTTP/1.1, and something"), ackbits.ErrFormat, 0, 0, 1},
		{bare, ackbits.ErrFormat, 0, 0, 1},
		{make([]byte, 1201), ackbits.ErrOversize, 0, 0, 1},
		{append(slices.Clone(d[:2]), make([]byte, 40)...), ackbits.ErrToken, 0, 0, 1},
		{[]byte{0x0E, 9, 1}, ackbits.ErrType, 1, 0, 0},
		{[]byte{0x0E, 2, 1}, ackbits.ErrType, 1, 0, 0},
		{append([]byte{0x0E, 1, 1}, make([]byte, 636)...), ackbits.ErrShort, 1, 0, 0},
		{append([]byte{0x0E, 1, 1}, make([]byte, 1198)...), ackbits.ErrOversize, 1, 0, 0},
		{reply[:25], ackbits.ErrShort, 1, 0, 0},
		{append(slices.Clone(reply), 0), ackbits.ErrOversize, 1, 0, 0},
		{reply, ackbits.ErrForged, 0, 1, 0},
		{append([]byte{0x0E, 7}, make([]byte, 24)...), ackbits.ErrToken, 0, 0, 1},
	} {
		before := w.server.Stats()
		got, err := w.server.Receive(address(elsewhere), slices.Clone(in.datagram))
		require.ErrorIs(t, err, in.err, "%x", in.datagram)
		require.Zero(t, got)
		after := w.server.Stats()
		require.Equal(t, []uint64{in.malformed, in.forged, in.foreign},
			[]uint64{after.Malformed - before.Malformed, after.Forged - before.Forged, after.Foreign - before.Foreign}, "%x", in.datagram)
	}
	_, err = w.server.Receive(address(home), d)
	require.NoError(t, err)
}

// What comes to a client in vain is told for its reason.
func TestWhatComesToAClientInVain(t *testing.T) {
	w := newWorld(t, endpoint.ServerConfig{})
	c := w.join(home, knowing("ann"))
	code := append([]byte{0x0E, 5}, make([]byte, 24)...)
	for _, in := range []struct {
		datagram []byte
		err      error
	}{
		{nil, ackbits.ErrToken}, {make([]byte, 40), ackbits.ErrToken},
		{[]byte{0x0E, 1}, ackbits.ErrType}, {[]byte{0x0E, 7}, ackbits.ErrType}, {[]byte{0x0E, 0}, ackbits.ErrType},
		{[]byte{0x0E, 2}, ackbits.ErrShort}, {[]byte{0x0E, 3}, ackbits.ErrShort}, {[]byte{0x0E, 4}, ackbits.ErrShort},
		{code, nil}, {append([]byte{0x0E, 6}, code[2:]...), nil}, // early, perhaps
		{append([]byte{0x0E, 2, 1}, make([]byte, 32)...), ackbits.ErrPayload},
		{append([]byte{0x0E, 2, 9}, make([]byte, 32)...), ackbits.ErrForged}, // of another version, and to somebody else
		{append([]byte{0x0E, 2, 1}, make([]byte, 96)...), ackbits.ErrForged},
		{append([]byte{0x0E, 3}, make([]byte, 587)...), ackbits.ErrOversize},
		{append([]byte{0x0E, 4}, make([]byte, 289)...), ackbits.ErrOversize},
	} {
		_, err := c.Receive(in.datagram)
		require.ErrorIs(t, err, in.err, "%x", in.datagram)
	}
	w.run(time.Second)
	require.NotNil(t, c.Session())
	for _, in := range []struct {
		datagram []byte
		err      error
	}{
		{code, ackbits.ErrToken}, {append([]byte{0x0E, 6}, code[2:]...), ackbits.ErrToken},
		{code[:25], ackbits.ErrShort}, {[]byte{0x0E, 6, 1}, ackbits.ErrShort},
		{[]byte{0x0E, 2}, nil}, {[]byte{0x0E, 3}, nil}, {[]byte{0x0E, 4}, nil}, // late
		{append(append([]byte{0x0E, 5}, w.logged("session")[0].data[2:10]...), make([]byte, 16)...), ackbits.ErrForged},
	} {
		_, err := c.Receive(in.datagram)
		require.ErrorIs(t, err, in.err, "%x", in.datagram)
	}
	require.NoError(t, c.Err())
}

// A client computes for so many answers only that forged ones cost it little.
func TestForgedAnswersCostAClientLittle(t *testing.T) {
	w := newWorld(t, endpoint.ServerConfig{})
	c := w.join(home, knowing("ann"))
	w.flush()
	w.deliver(w.take()[0])
	w.flush()
	w.deliver(w.take()[0])
	tries := func() (n int) {
		for range 300 {
			if _, err := c.Receive(junkAccept()); errors.Is(err, ackbits.ErrForged) {
				n++
			}
		}
		return n
	}
	require.Equal(t, 249, tries(), "the Challenge was the first")
	w.clock.Advance(10 * time.Millisecond)
	require.Equal(t, 10, tries())
	_, err := c.Receive(append([]byte{0x0E, 4}, make([]byte, 40)...))
	require.ErrorIs(t, err, ackbits.ErrForged, "a Refuse is cheap, and always looked at")
	w.run(300 * time.Millisecond)
	require.NotNil(t, c.Session())
}

// A cookie is answered at once, but once in 250 ms: whoever sends a Challenge again
// does not make a client talk.
func TestSecondChallengeIsNoReasonToHurry(t *testing.T) {
	w := newWorld(t, endpoint.ServerConfig{})
	c := w.join(home, knowing("ann"))
	w.flush()
	w.deliver(w.take()[0])
	w.flush()
	challenge := w.take()[0]
	said := 0
	for range 24 {
		w.deliver(challenge)
		w.flush()
		said += len(w.take())
		w.clock.Advance(10 * time.Millisecond)
	}
	require.Equal(t, 1, said)
	require.Nil(t, c.Session())
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

// The application may flush a peer's session by itself.
func TestSessionThatEndsBetweenTwoDuesLeaves(t *testing.T) {
	w, c, peer := joined(t, endpoint.ServerConfig{})
	peer.Session().Close()
	disconnects := 0
	for d := range peer.Session().Due(w.buf[:]) {
		disconnects++
		c.Receive(d)
	}
	require.Equal(t, 3, disconnects)
	require.ErrorIs(t, c.Err(), ackbits.ErrPeerLeft)
	require.ErrorIs(t, peer.Session().Err(), ackbits.ErrClosed)
	at, ok := w.server.Deadline()
	require.True(t, ok)
	require.Equal(t, w.clock.Now(), at, "there is something to see to")
	w.flush()
	require.Empty(t, w.take())
	require.Len(t, w.events, 2)
	require.Equal(t, endpoint.Left, w.events[1].Kind)
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
		"strings", "time", "unicode", "unicode/utf8", "github.com/ackbits/ackbits", "github.com/ackbits/ackbits/internal/timeline",
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
	require.Zero(t, clocks, "internal/timeline alone reads clocks")
}

// A loop over Due may range over it again, and a peer that ends there has left once.
func TestDueWithinDue(t *testing.T) {
	w, _, peer := joined(t, endpoint.ServerConfig{})
	w.fetch()
	w.events = nil
	peer.Session().Close()
	var inner [ackbits.MaxDatagramSize]byte
	for range w.server.Due(w.buf[:]) {
		for range w.server.Due(inner[:]) {
		}
	}
	w.fetch()
	require.Len(t, w.events, 1)
	require.Equal(t, endpoint.Left, w.events[0].Kind)
}
