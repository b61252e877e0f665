package endpoint_test

import (
	"crypto/ecdh"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/ackbits/ackbits"
	"github.com/ackbits/ackbits/endpoint"
	"github.com/stretchr/testify/require"
)

const (
	home      = "198.51.100.7:4000"
	elsewhere = "203.0.113.66:6666"
)

func knowing(hello string) endpoint.ClientConfig {
	return endpoint.ClientConfig{ServerKey: serverKey.PublicKey(), Hello: []byte(hello)}
}

// joined returns a world with one client that has joined, and its peer.
func joined(t *testing.T, cfg endpoint.ServerConfig) (*world, *endpoint.Client, *endpoint.Peer) {
	w := newWorld(t, cfg)
	c := w.join(home, knowing("ann"))
	w.run(200 * time.Millisecond)
	require.NotNil(t, c.Session())
	require.Len(t, w.events, 1)
	return w, c, w.events[0].Peer
}

// P-13.1.2.
func TestSpoofedSourceGetsLessThanItSentAndLeavesNothing(t *testing.T) {
	w := newWorld(t, endpoint.ServerConfig{})
	c := w.join(home, knowing("ann"))
	var asked, answered int
	send := func(data []byte) {
		asked += len(data)
		w.server.Receive(address(elsewhere), append([]byte(nil), data...))
		sent := 0
		for to, d := range w.server.Due(w.buf[:]) {
			require.Equal(t, address(elsewhere), to)
			sent += len(d)
		}
		require.LessOrEqual(t, sent, len(data))
		answered += sent
	}
	w.run(time.Second)
	require.NotNil(t, c.Session())
	before := w.server.Stats()
	for _, p := range w.log { // everything that anybody ever said here
		for n := range len(p.data) + 1 {
			if n < 200 || n == len(p.data) {
				send(p.data[:n])
			}
		}
	}
	long := make([]byte, 1500)
	long[0], long[1] = 0x0E, 1
	for n := range 1500 {
		send(long[:n])
	}
	t.Logf("%d bytes drew %d", asked, answered)
	require.NotZero(t, answered)
	after := w.server.Stats()
	require.Equal(t, before.Remembered, after.Remembered)
	require.Equal(t, before.Peers, after.Peers)
	require.Equal(t, before.Joins, after.Joins)
	w.flush()
	require.Len(t, w.events, 1)
	require.NoError(t, c.Err())
}

// Whatever is captured, and whenever and from wherever it is said again: nobody
// joins, moves or leaves by it.
func TestReplaysMakeMoveAndEndNobody(t *testing.T) {
	for _, after := range []time.Duration{0, time.Second, 9 * time.Second, 15 * time.Second, 25 * time.Second} {
		for _, from := range []string{home, elsewhere} {
			t.Run(fmt.Sprint(after, " from ", from), func(t *testing.T) {
				w, c, peer := joined(t, endpoint.ServerConfig{})
				captured := w.log
				w.run(after)
				for _, p := range captured {
					w.server.Receive(address(from), append([]byte(nil), p.data...))
					c.Receive(append([]byte(nil), p.data...))
				}
				for _, p := range w.take() {
					require.Equal(t, address(home), p.to)
				}
				w.run(time.Second)
				require.NoError(t, c.Err())
				require.NoError(t, peer.Session().Err())
				require.Equal(t, address(home), peer.Addr())
				require.Len(t, w.events, 1, "the join alone")
				require.Zero(t, w.server.Stats().Moves)
			})
		}
	}
}

// The same once the client has left.
// P-13.2.6.
func TestReplaysAfterALeaveMakeNobody(t *testing.T) {
	for _, after := range []time.Duration{0, 5 * time.Second, 15 * time.Second, 25 * time.Second, 41 * time.Second} {
		for _, from := range []string{home, elsewhere} {
			w, c, _ := joined(t, endpoint.ServerConfig{})
			c.Session().Close()
			w.run(100 * time.Millisecond)
			require.ErrorIs(t, c.Err(), ackbits.ErrClosed)
			require.Len(t, w.events, 2)
			captured := w.log
			w.run(after)
			for _, p := range captured {
				w.server.Receive(address(from), append([]byte(nil), p.data...))
			}
			w.run(time.Second)
			require.Len(t, w.events, 2, "%v %v", after, from)
			require.Zero(t, w.server.Stats().Peers)
		}
	}
}

// A datagram that somebody delivers from elsewhere before the true one arrives
// costs one Probe, and nothing else.
// P-13.4.2.
func TestRacedCopyCostsAProbe(t *testing.T) {
	w, c, peer := joined(t, endpoint.ServerConfig{})
	for i := range 50 {
		d, _, err := c.Session().AppendDatagram(nil, ackbits.TypeInput, []byte{byte(i)})
		require.NoError(t, err)
		w.server.Receive(address(elsewhere), append([]byte(nil), d...))
		sent := 0
		for to, d := range w.server.Due(w.buf[:]) {
			if to == address(elsewhere) {
				sent += len(d)
			}
		}
		require.LessOrEqual(t, sent, 26)
		w.server.Receive(address(home), d)
		w.run(20 * time.Millisecond)
	}
	require.Equal(t, address(home), peer.Addr())
	require.Zero(t, w.server.Stats().Moves)
	require.LessOrEqual(t, w.server.Stats().Probes, uint64(11), "one in 100 ms")
	require.NotZero(t, w.server.Stats().Probes)
}

// A joined peer that forges its address does not see what is asked there.
// P-13.4.3.
func TestPeerCannotPointTheGameAtAnother(t *testing.T) {
	w, c, peer := joined(t, endpoint.ServerConfig{})
	victim := address(elsewhere)
	for i := range 200 {
		d, _, err := c.Session().AppendDatagram(nil, ackbits.TypeInput, []byte("x"))
		require.NoError(t, err)
		w.server.Receive(victim, d)
		for range 3 { // it guesses
			guess := append([]byte{0x0E, 7}, w.logged("session")[0].data[2:10]...)
			w.server.Receive(victim, append(guess, make([]byte, 16)...))
			guess[2+i%8]++
			w.server.Receive(victim, append(guess, make([]byte, 16)...))
		}
		var sent int
		for to, d := range w.server.Due(w.buf[:]) {
			if to == victim {
				require.Equal(t, "Probe", kindOf(d))
				sent++
			}
		}
		require.LessOrEqual(t, sent, 1)
		w.clock.Advance(10 * time.Millisecond)
	}
	require.Equal(t, address(home), peer.Addr())
	require.LessOrEqual(t, w.server.Stats().Probes, uint64(21))
}

// P-13.2.3.
func TestWrongServerKeyIsFoundBeforeTheHelloIsSent(t *testing.T) {
	other, err := ecdh.X25519().NewPrivateKey([]byte("another server's key, 32 bytes.."))
	require.NoError(t, err)
	admitted := false
	w := newWorld(t, endpoint.ServerConfig{Key: other, Admit: func(endpoint.Request) ([]byte, error) {
		admitted = true
		return nil, nil
	}})
	c := w.join(home, knowing("ticket"))
	w.run(4990 * time.Millisecond)
	require.NoError(t, c.Err(), "whoever answered may have been an impostor")
	w.run(20 * time.Millisecond)
	require.ErrorIs(t, c.Err(), endpoint.ErrServerKey)
	require.False(t, admitted)
	for _, p := range w.logged("Hello") {
		require.Equal(t, make([]byte, 640-36), p.data[36:], "no cookie, no hello")
	}
}

// A forged challenge with another key, or another version, ends nothing.
// P-13.2.3.
func TestImpostorsChallengeEndsNothing(t *testing.T) {
	w := newWorld(t, endpoint.ServerConfig{})
	c := w.join(home, knowing("ann"))
	w.flush()
	hello := w.take()[0]
	for _, at := range []int{2, 40} { // the version; the server's key
		forged := make([]byte, 99)
		forged[0], forged[1], forged[2] = 0x0E, 2, 1
		copy(forged[3:], hello.data[4:36])
		copy(forged[35:], serverKey.PublicKey().Bytes())
		forged[at]++
		_, err := c.Receive(forged)
		require.NoError(t, err)
	}
	require.NoError(t, c.Err())
	w.run(time.Second)
	require.NotNil(t, c.Session())
}

// P-13.2.3.
func TestVersionThatIsNotOursIsTheReasonAtTheEnd(t *testing.T) {
	w := newWorld(t, endpoint.ServerConfig{})
	c := w.join(home, knowing("ann"))
	for range 600 {
		w.flush()
		for _, p := range w.take() {
			if kindOf(p.data) == "Challenge" {
				p.data[2] = 9
			}
			w.deliver(p)
		}
		w.clock.Advance(10 * time.Millisecond)
	}
	require.ErrorIs(t, c.Err(), endpoint.ErrVersion)
}

// P-13.1.3.
func TestServerAnswersAHelloOfAnotherVersionWithItsOwn(t *testing.T) {
	w := newWorld(t, endpoint.ServerConfig{})
	w.join(home, knowing("ann"))
	w.settle()
	hello := w.logged("Hello")[1] // with a good cookie
	hello.data[2] = 2
	w.take()
	w.clock.Advance(100 * time.Millisecond) // since its Accept
	w.flush()
	w.take()
	require.NoError(t, w.deliver(hello))
	w.flush()
	answer := w.take()
	require.Equal(t, []string{"Challenge"}, kinds(answer))
	require.Equal(t, byte(1), answer[0].data[2])
}

// P-13.2.1.
func TestSilenceIsNoAnswer(t *testing.T) {
	w := newWorld(t, endpoint.ServerConfig{})
	c := w.join(home, knowing("ann"))
	hellos := 0
	for range 501 {
		w.flush()
		hellos += len(w.take())
		w.clock.Advance(10 * time.Millisecond)
	}
	require.ErrorIs(t, c.Err(), endpoint.ErrNoAnswer)
	require.Equal(t, 20, hellos, "one in 250 ms for 5 s")
	_, ok := c.Deadline()
	require.False(t, ok)
	_, err := c.Receive([]byte("anything"))
	require.ErrorIs(t, err, endpoint.ErrNoAnswer)
}

func TestRefusalCarriesItsReason(t *testing.T) {
	long := strings.Repeat("ü", 200) // 400 bytes
	for _, reason := range []string{"banned", "", long} {
		w := newWorld(t, endpoint.ServerConfig{Admit: func(endpoint.Request) ([]byte, error) { return nil, errors.New(reason) }})
		c := w.join(home, knowing("ann"))
		w.settle()
		require.ErrorIs(t, c.Err(), endpoint.ErrRefused)
		var refused *endpoint.RefusedError
		require.ErrorAs(t, c.Err(), &refused)
		require.Equal(t, reason[:min(len(reason), 256)], refused.Reason)
		require.Empty(t, w.events)
		require.Equal(t, uint64(1), w.server.Stats().RefusedByAdmit)
		require.LessOrEqual(t, len(w.logged("Refuse")[0].data), 290)
	}
}

// A Refuse that is lost is said again, and Admit is asked once.
// P-13.2.6.
func TestRefusalThatIsLostComesAgain(t *testing.T) {
	asked := 0
	w := newWorld(t, endpoint.ServerConfig{Admit: func(endpoint.Request) ([]byte, error) {
		asked++
		return nil, errors.New("no")
	}})
	c := w.join(home, knowing("ann"))
	lost := 0
	for step := 0; c.Err() == nil && step < 600; step++ {
		w.flush()
		for _, p := range w.take() {
			if kindOf(p.data) == "Refuse" && lost < 3 {
				lost++
				continue
			}
			w.deliver(p)
		}
		w.clock.Advance(10 * time.Millisecond)
	}
	require.ErrorIs(t, c.Err(), endpoint.ErrRefused)
	require.Equal(t, 1, asked)
	require.Equal(t, w.logged("Refuse")[0].data, w.logged("Refuse")[3].data)
}

// P-13.2.5.
func TestWideAndNarrowDoNotFit(t *testing.T) {
	for _, wide := range []bool{false, true} {
		w := newWorld(t, endpoint.ServerConfig{Session: ackbits.Config{Wide: wide}})
		cfg := knowing("ann")
		cfg.Session.Wide = !wide
		c := w.join(home, cfg)
		w.settle()
		require.ErrorIs(t, c.Err(), endpoint.ErrRefused)
		require.ErrorContains(t, c.Err(), map[bool]string{true: "wide", false: "narrow"}[wide])
		cfg.Session.Wide = wide
		c = w.join(elsewhere, cfg)
		w.settle()
		require.NoError(t, c.Err())
		require.NotNil(t, c.Session())
	}
}

func TestTwoClientsBehindOneAddress(t *testing.T) {
	w := newWorld(t, endpoint.ServerConfig{})
	a := w.join("198.51.100.7:4000", knowing("ann"))
	b := w.join("198.51.100.7:4001", knowing("bob"))
	w.settle()
	a.Session().Send([]byte("I am ann"))
	b.Session().Send([]byte("I am bob"))
	w.run(time.Second)
	require.Len(t, w.events, 2)
	for _, e := range w.events {
		require.Equal(t, []string{"I am " + string(e.Peer.Hello())}, w.got[e.Peer])
	}
}

// P-13.2.5.
func TestPendingIsAskedAgain(t *testing.T) {
	asked := 0
	w := newWorld(t, endpoint.ServerConfig{Admit: func(endpoint.Request) ([]byte, error) {
		if asked++; asked < 4 {
			return nil, fmt.Errorf("the backend is slow: %w", endpoint.ErrPending)
		}
		return []byte("in"), nil
	}})
	c := w.join(home, knowing("ann"))
	w.run(700 * time.Millisecond)
	require.Nil(t, c.Session())
	require.Equal(t, 1, w.server.Stats().Remembered)
	w.run(100 * time.Millisecond)
	require.NotNil(t, c.Session())
	require.Equal(t, uint64(3), w.server.Stats().Pending)
	require.Equal(t, 4, asked)
}

// P-13.5.1.
func TestResetTellsAClientOfARestart(t *testing.T) {
	w, c, _ := joined(t, endpoint.ServerConfig{})
	s := c.Session()
	s.Send([]byte("was it heard?"))
	w.serve(endpoint.ServerConfig{Rand: seeded(99)})
	w.run(60 * time.Millisecond)
	require.ErrorIs(t, c.Err(), endpoint.ErrReset)
	require.Error(t, s.Err(), "its session is over, too")
	var left []string
	for e := range s.Undelivered() {
		left = append(left, string(e.Data))
	}
	require.Equal(t, []string{"was it heard?"}, left)

	again := w.join(home, knowing("ann"))
	w.run(time.Second)
	require.NotNil(t, again.Session())
	require.NoError(t, again.Err())
}

// A server that has ended a session by itself lets the client know.
// P-13.5.2.
func TestResetTellsAClientThatWasTimedOut(t *testing.T) {
	w, c, _ := joined(t, endpoint.ServerConfig{})
	for range 520 { // the server hears nothing; the client does
		w.flush()
		for _, p := range w.take() {
			if p.to != w.at {
				w.deliver(p)
			}
		}
		w.clock.Advance(10 * time.Millisecond)
	}
	require.Len(t, w.events, 2)
	require.ErrorIs(t, w.events[1].Err, ackbits.ErrTimeout)
	require.NoError(t, c.Err())
	w.run(100 * time.Millisecond)
	require.ErrorIs(t, c.Err(), endpoint.ErrReset)
}

// Nobody can have the Reset of a session that lives, and none but the right one
// ends a client.
// P-13.5.1.
func TestResetOfALiveSessionCannotBeHad(t *testing.T) {
	w, c, _ := joined(t, endpoint.ServerConfig{})
	d := w.logged("session")[0].data
	for n := range len(d) + 1 {
		forged := append(append([]byte(nil), d[:n]...), make([]byte, 1200-len(d))...)
		w.server.Receive(address(elsewhere), forged)
	}
	w.run(10 * time.Millisecond)
	reset := append(append([]byte{0x0E, 5}, d[2:10]...), make([]byte, 16)...)
	for _, p := range w.logged("Reset") {
		require.NotEqual(t, reset[:10], p.data[:10], "the token that lives")
		c.Receive(append([]byte(nil), p.data...))
		c.Receive(append(append([]byte(nil), reset[:10]...), p.data[10:]...))
	}
	for i := range reset {
		reset[i]++
		c.Receive(append([]byte(nil), reset...))
	}
	require.NoError(t, c.Err())
}

// P-13.5.1.
func TestResetsAreRationed(t *testing.T) {
	w := newWorld(t, endpoint.ServerConfig{})
	d := make([]byte, 34)
	d[0], d[1] = 0x0C, 6
	resets := func() (n int) {
		for i := range 1000 {
			d[2]++
			w.server.Receive(netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, byte(i), 0, 1}), 1), append([]byte(nil), d...))
			for range w.server.Due(w.buf[:]) {
				n++
			}
		}
		return n
	}
	require.Equal(t, 256, resets())
	w.clock.Advance(100 * time.Millisecond)
	require.Equal(t, 100, resets())
	require.Equal(t, uint64(2000-356), w.server.Stats().ResetsHeld)
	w.server.Receive(address(elsewhere), append([]byte(nil), d[:33]...))
	d[0] = 0x0A // of a bare session
	w.clock.Advance(time.Second)
	w.server.Receive(address(elsewhere), append([]byte(nil), d...))
	for range w.server.Due(w.buf[:]) {
		t.Fatal("answered")
	}
}

// Who sends made up datagrams from one network leaves the Resets of others alone.
// P-13.5.1.
func TestResetsAreRationedForEachNetwork(t *testing.T) {
	w := newWorld(t, endpoint.ServerConfig{})
	d := make([]byte, 34)
	d[0], d[1] = 0x0C, 6
	resets := func(from string) (n int) {
		for range 300 {
			w.server.Receive(address(from), append([]byte(nil), d...))
			for range w.server.Due(w.buf[:]) {
				n++
			}
		}
		return n
	}
	require.Equal(t, 200, resets("203.0.113.9:9"))
	require.Zero(t, resets("203.0.113.200:9"), "the same /24")
	require.Zero(t, resets("[::ffff:203.0.113.10]:9"))
	require.Equal(t, 256-200, resets("203.0.112.9:9"), "what is left for all")
	w.clock.Advance(time.Second - 1)
	require.Zero(t, resets("203.0.113.9:9"), "the second is not over")
	w.clock.Advance(1)
	require.Equal(t, 200, resets("203.0.113.9:9"))
	w.clock.Advance(time.Second)
	require.Equal(t, 200, resets("[2001:db8::1]:9"))
	require.Zero(t, resets("[2001:db8::8000:0:0:1]:9"), "the same /64")
	require.Equal(t, 256-200, resets("[2001:db8:0:1::1]:9"))
}

// P-13.2.6.
func TestAcceptIsRepeatedUntilItsSessionIsHeard(t *testing.T) {
	w := newWorld(t, endpoint.ServerConfig{})
	c := w.join(home, knowing("ann"))
	accepts := 0
	for step := 0; c.Session() == nil && step < 600; step++ {
		if w.flush(); len(w.events) == 1 && accepts == 0 {
			w.events[0].Peer.Session().Send([]byte("before it knows")) // it has joined at the server
		}
		for _, p := range w.take() {
			if kindOf(p.data) == "Accept" {
				if accepts++; accepts < 5 {
					continue
				}
			}
			w.deliver(p)
		}
		w.clock.Advance(10 * time.Millisecond)
	}
	sent := w.logged("Accept")
	for _, p := range sent {
		require.Equal(t, sent[0].data, p.data, "the very same")
	}
	require.Len(t, w.events, 1)
	w.run(60 * time.Millisecond) // the client's first heartbeat confirms
	w.run(100 * time.Millisecond)
	require.Equal(t, []string{"before it knows"}, w.heard[address(home)])
	hellos := w.logged("Hello")
	w.deliver(hellos[len(hellos)-1])
	w.flush()
	require.NotContains(t, kinds(w.take()), "Accept")
	require.Equal(t, uint64(1), w.server.Stats().Hushed)
}

// The reason of a refusal comes from the other side of the network: as an error it holds
// nothing that a terminal or a log would act on.
func TestReasonIsPrintable(t *testing.T) {
	for reason, want := range map[string]string{
		"zu voll, später":      "zu voll, später",
		"a\x1b[2Jb\nc\x00d":    "a\uFFFD[2Jb\uFFFDc\uFFFDd",
		"\u202Eevil\u2028\xFF": "\uFFFDevil\uFFFD\uFFFD",
	} {
		err := &endpoint.RefusedError{Reason: reason}
		require.Equal(t, "endpoint: refused: "+want, err.Error())
	}
	require.ErrorIs(t, fmt.Errorf("%w", &endpoint.RefusedError{}), endpoint.ErrRefused)
}
