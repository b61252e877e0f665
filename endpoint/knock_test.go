package endpoint_test

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/ackbits/ackbits"
	"github.com/ackbits/ackbits/endpoint"
	"github.com/stretchr/testify/require"
)

// junkAccept is what somebody who sees nothing can send in the server's name.
func junkAccept() []byte { return append([]byte{0x0E, 3, 9}, make([]byte, 73)...) }

// attacked has a client knock over a path with a round trip of rtt, in steps of a
// millisecond, until it is admitted, has ended, or six seconds have passed. In each step the
// attacker is told of the Hello that it has seen last; what it returns arrives at once,
// before or after what else arrives in this step.
func (w *world) attacked(c *endpoint.Client, rtt time.Duration, attack func(ms int, hello []byte) [][]byte) {
	type arrival struct {
		at int
		packet
	}
	var path []arrival
	var seen []byte
	order := rand.New(seeded(7))
	for ms := 0; ms < 6000 && c.Session() == nil && c.Err() == nil; ms++ {
		w.flush()
		for _, p := range w.take() {
			if kindOf(p.data) == "Hello" {
				seen = p.data
			}
			if w.lost == nil || !w.lost(p) {
				path = append(path, arrival{ms + int(rtt.Milliseconds())/2, p})
			}
		}
		var forged [][]byte
		if seen != nil {
			forged = attack(ms, seen)
		}
		before := order.IntN(len(forged) + 1)
		for _, d := range forged[:before] {
			c.Receive(d)
		}
		for len(path) > 0 && path[0].at <= ms {
			w.deliver(path[0].packet)
			path = path[1:]
		}
		for _, d := range forged[before:] {
			c.Receive(d)
		}
		w.clock.Advance(time.Millisecond)
	}
}

// forgedChallenge echoes the key of a Hello; its cookie is good for nothing.
func forgedChallenge(hello []byte, n int) []byte {
	d := append([]byte{0x0E, 2, 1}, hello[4:36]...)
	d = append(d, serverKey.PublicKey().Bytes()...)
	d = binary.LittleEndian.AppendUint64(d, uint64(n)+1)
	return append(d, make([]byte, 24)...)
}

// Junk in the server's name, from somebody who sees nothing, does not keep a client out.
func TestJunkAcceptsKeepNobodyOut(t *testing.T) {
	for _, perSecond := range []int{100, 1000, 4000} {
		for _, rtt := range []time.Duration{20, 60, 200} {
			w := newWorld(t, endpoint.ServerConfig{})
			c := w.join(home, knowing("ann"))
			w.attacked(c, rtt*time.Millisecond, func(ms int, _ []byte) (junk [][]byte) {
				for range (ms+1)*perSecond/1000 - ms*perSecond/1000 {
					junk = append(junk, junkAccept(), append([]byte{0x0E, 4}, make([]byte, 32)...))
				}
				return junk
			})
			require.NotNil(t, c.Session(), "%d a second, RTT %d ms: %v", perSecond, rtt, c.Err())
		}
	}
}

// Nor do Challenges that an eavesdropper forges.
// P-13.2.3.
func TestForgedCookiesKeepNobodyOut(t *testing.T) {
	for _, perSecond := range []int{12, 100, 1000} {
		for _, rtt := range []time.Duration{20, 60, 100, 200} {
			w := newWorld(t, endpoint.ServerConfig{})
			c := w.join(home, knowing("ann"))
			start := w.clock.Now()
			w.attacked(c, rtt*time.Millisecond, func(ms int, hello []byte) (forged [][]byte) {
				for i := range (ms+1)*perSecond/1000 - ms*perSecond/1000 {
					forged = append(forged, forgedChallenge(hello, 10*ms+i))
				}
				return forged
			})
			require.NotNil(t, c.Session(), "%d a second, RTT %d ms: %v", perSecond, rtt, c.Err())
			if perSecond <= 100 {
				require.LessOrEqual(t, w.clock.Now().Sub(start), 2*rtt*time.Millisecond+5*time.Millisecond, "two round trips, as ever")
			}
			said := len(w.logged("Hello"))
			require.LessOrEqual(t, said, 32+128*5+21, "what they have the client say is bounded")
		}
	}
}

// A Refuse that is lost comes again while Challenges are forged, too: the client gets the
// true cookie again, although it has been told a thousand others since.
// P-13.2.2, P-13.2.6.
func TestLostRefusalComesAgainUnderAttack(t *testing.T) {
	for _, perSecond := range []int{0, 12, 100} {
		for _, rtt := range []time.Duration{20, 60, 200} {
			w := newWorld(t, endpoint.ServerConfig{Admit: func(endpoint.Request) ([]byte, error) { return nil, errors.New("banned") }})
			c := w.join(home, knowing("ann"))
			start := w.clock.Now()
			losses := 3
			w.lost = func(p packet) bool {
				if kindOf(p.data) == "Refuse" && losses > 0 {
					losses--
					return true
				}
				return false
			}
			w.attacked(c, rtt*time.Millisecond, func(ms int, hello []byte) (forged [][]byte) {
				for i := range (ms+1)*perSecond/1000 - ms*perSecond/1000 {
					forged = append(forged, forgedChallenge(hello, 10*ms+i))
				}
				return forged
			})
			require.ErrorIs(t, c.Err(), endpoint.ErrRefused, "%d a second, RTT %d ms", perSecond, rtt)
			require.Zero(t, losses)
			require.Less(t, w.clock.Now().Sub(start), 1500*time.Millisecond)
		}
	}
}

// Who was refused gets no cookie that outlives the memory of it.
// P-13.2.2.
func TestCookieOfARefusedClientDiesBeforeItIsForgotten(t *testing.T) {
	w := newWorld(t, endpoint.ServerConfig{Admit: func(endpoint.Request) ([]byte, error) { return nil, errors.New("banned") }})
	start := w.clock.Now()
	w.clock.Advance(3 * time.Second)
	c := w.join(home, knowing("ann"))
	w.settle()
	require.ErrorIs(t, c.Err(), endpoint.ErrRefused)
	hellos := w.logged("Hello")
	bare, shown := hellos[0], hellos[1]
	answer := func(at time.Duration, hello packet) []string {
		w.clock.Set(start.Add(at))
		w.deliver(hello)
		w.flush()
		return kinds(w.take())
	}
	const slot = 10 * time.Second
	require.Equal(t, []string{"Challenge"}, answer(slot-1, bare), "as good as the one it had: dead at 20 s, and it is remembered until 23 s")
	require.Empty(t, answer(slot, bare), "good until 30 s")
	require.Equal(t, []string{"Refuse"}, answer(slot, shown), "remembered until 30 s from now on")
	require.Equal(t, []string{"Challenge"}, answer(slot+100*time.Millisecond, bare))
	require.Equal(t, []string{"Challenge"}, answer(2*slot-1, bare))
	before := w.server.Stats().Hushed
	require.Empty(t, answer(2*slot, bare))
	require.Equal(t, before+1, w.server.Stats().Hushed)
	require.Empty(t, answer(2*slot, shown), "its cookie is dead")

	w.clock.Set(start.Add(3*slot - 1))
	w.join(elsewhere, knowing("bob"))
	w.settle()
	hellos = w.logged("Hello")
	require.Empty(t, answer(3*slot+100*time.Millisecond, hellos[len(hellos)-2]), "remembered until just before 50 s")
	w.clock.Set(start.Add(4 * slot))
	w.join("203.0.113.67:1", knowing("cem"))
	w.settle()
	hellos = w.logged("Hello")
	require.Equal(t, []string{"Challenge"}, answer(5*slot-1, hellos[len(hellos)-2]), "remembered until 60 s")
}

// A cookie that did not work is no obstacle to one that came later: after a burst of as
// many as are kept, the true one is answered when it comes again.
// P-13.2.3.
func TestBurstOfForgedCookiesDelaysTheTrueOne(t *testing.T) {
	w := newWorld(t, endpoint.ServerConfig{})
	c := w.join(home, knowing("ann"))
	w.attacked(c, 40*time.Millisecond, func(ms int, hello []byte) (forged [][]byte) {
		if ms == 10 {
			for i := range 100 {
				forged = append(forged, forgedChallenge(hello, i))
			}
		}
		return forged
	})
	require.NotNil(t, c.Session())
	require.Less(t, w.clock.Now().Sub(time.Unix(1_700_000_000, 0)), 300*time.Millisecond)
}

// knocker is a client that nobody answers but the test.
type knocker struct {
	t     *testing.T
	clock ackbits.ManualClock
	c     *endpoint.Client
	hello []byte // the first, which has its key
}

func newKnocker(t *testing.T, cfg endpoint.ClientConfig) *knocker {
	k := &knocker{t: t}
	cfg.Clock, cfg.Rand = &k.clock, seeded(5)
	var err error
	k.c, err = endpoint.NewClient(cfg)
	require.NoError(t, err)
	for d := range k.c.Due(make([]byte, 1200)) {
		k.hello = bytes.Clone(d)
	}
	return k
}

// offer hands in Challenges with cookies that begin with these bytes.
func (k *knocker) offer(cookies ...byte) {
	for _, n := range cookies {
		_, err := k.c.Receive(forgedChallenge(k.hello, int(n)-1))
		require.NoError(k.t, err)
	}
}

// shows returns which cookies the Hellos show that are due; 0 is none.
func (k *knocker) shows() (cookies []byte) {
	for d := range k.c.Due(make([]byte, 1200)) {
		cookies = append(cookies, d[36])
		require.Less(k.t, len(cookies), 100, "there is an end")
	}
	return cookies
}

// upTo returns the bytes from one to another.
func upTo(from, to byte) (all []byte) {
	for n := from; n <= to; n++ {
		all = append(all, n)
	}
	return all
}

// A cookie is shown at once when it comes, and again in its turn: one Hello in 250 ms, with
// the cookie that was shown the longest ago.
// P-13.2.1, P-13.2.3.
func TestCookiesHaveTheirTurns(t *testing.T) {
	k := newKnocker(t, knowing("ann"))
	k.offer(1, 2, 2, 3)
	require.Equal(t, []byte{1, 2, 3}, k.shows(), "each once, in the order in which they came")
	k.clock.Advance(250*time.Millisecond - 1)
	require.Empty(t, k.shows())
	k.offer(1, 2, 3)
	require.Empty(t, k.shows(), "shown within the last 250 ms")
	at, ok := k.c.Deadline()
	require.True(t, ok)
	require.Equal(t, time.Nanosecond, at.Sub(k.clock.Now()))
	k.clock.Advance(1)
	require.Equal(t, []byte{1}, k.shows())
	k.offer(2, 3, 1)
	require.Equal(t, []byte{2, 3}, k.shows(), "250 ms ago, so at once; the other just now")
	k.clock.Advance(100 * time.Millisecond)
	k.offer(9)
	require.Equal(t, []byte{9}, k.shows())
	for _, want := range []byte{1, 2, 3, 9, 1, 2} {
		k.clock.Advance(250*time.Millisecond - 1)
		require.Empty(t, k.shows())
		k.clock.Advance(1)
		require.Equal(t, []byte{want}, k.shows(), "the longest ago")
	}
	k.offer(3)
	require.Equal(t, []byte{3}, k.shows())
	k.clock.Advance(250 * time.Millisecond)
	require.Equal(t, []byte{9}, k.shows(), "which it has not lost")
}

// Of more cookies than are kept the one that was shown the longest ago gives way; those
// that were not shown yet stay, and a new one is dropped if there are no others.
// P-13.2.3.
func TestCookieShownTheLongestAgoGivesWay(t *testing.T) {
	k := newKnocker(t, knowing("ann"))
	k.offer(201, 202, 203)
	require.Equal(t, []byte{201, 202, 203}, k.shows())
	k.clock.Advance(time.Second)
	require.Equal(t, []byte{201}, k.shows())
	k.offer(upTo(1, 29)...) // 32 in all
	require.Equal(t, upTo(1, 29), k.shows())
	k.clock.Advance(time.Second)
	require.Equal(t, []byte{202}, k.shows(), "nobody has given way")
	k.offer(30)
	require.Equal(t, []byte{30}, k.shows())
	k.clock.Advance(250 * time.Millisecond)
	require.Equal(t, []byte{201}, k.shows(), "203 has given way")
	k.offer(31)
	require.Equal(t, []byte{31}, k.shows())
	k.clock.Advance(250 * time.Millisecond)
	require.Equal(t, []byte{2}, k.shows(), "1 has given way")

	k = newKnocker(t, knowing("ann"))
	k.offer(upTo(1, 32)...)
	k.clock.Advance(100 * time.Millisecond)
	k.offer(33)
	k.clock.Advance(100 * time.Millisecond)
	require.Equal(t, upTo(1, 32), k.shows(), "none of these was shown before the last came")
}

// P-13.2.1.
func TestCookiesShownAtOnceAreRationed(t *testing.T) {
	k := newKnocker(t, knowing("ann"))
	k.offer(upTo(1, 32)...)
	require.Equal(t, upTo(1, 32), k.shows())
	k.offer(upTo(33, 41)...)
	require.Empty(t, k.shows())
	const interval = time.Second / 128
	k.clock.Advance(interval - 1)
	k.offer(50)
	require.Empty(t, k.shows())
	k.clock.Advance(1)
	k.offer(51, 52)
	require.Equal(t, []byte{51}, k.shows())
	for n := range byte(20) {
		k.clock.Advance(interval)
		k.offer(60+2*n, 61+2*n)
		require.Equal(t, []byte{60 + 2*n}, k.shows())
	}
}

// Whoever breaks off leaves the rest due; an answer that is handed in meanwhile ends it.
func TestHellosStopWhenTheCallerDoes(t *testing.T) {
	k := newKnocker(t, knowing("ann"))
	k.offer(1, 2, 3)
	for d := range k.c.Due(make([]byte, 1200)) {
		require.Equal(t, byte(1), d[36])
		break
	}
	require.Equal(t, []byte{2, 3}, k.shows())

	for _, admit := range []func(endpoint.Request) ([]byte, error){
		nil, func(endpoint.Request) ([]byte, error) { return nil, errors.New("no") },
	} {
		w := newWorld(t, endpoint.ServerConfig{Admit: admit})
		c := w.join(home, knowing("ann"))
		w.flush()
		hello := w.take()[0]
		w.deliver(hello)
		w.flush()
		w.deliver(w.take()[0])
		for n := range 3 {
			c.Receive(forgedChallenge(hello.data, n))
		}
		said := 0
		for d := range c.Due(w.buf[:]) {
			said++
			w.server.Receive(address(home), bytes.Clone(d))
			for _, answer := range w.server.Due(make([]byte, 1200)) {
				c.Receive(bytes.Clone(answer))
			}
		}
		require.True(t, c.Session() != nil || c.Err() != nil)
		require.Equal(t, 1, said)
	}
}

// What is for a client that has joined is nothing to one that has not, and Due of a session
// may be broken off, too.
func TestProbeBeforeTheSessionIsNothing(t *testing.T) {
	w := newWorld(t, endpoint.ServerConfig{})
	c := w.join(home, knowing("ann"))
	for _, kind := range []byte{5, 6} {
		_, err := c.Receive(append([]byte{0x0E, kind}, make([]byte, 24)...)) // of token 0
		require.NoError(t, err)
	}
	w.settle()
	require.NotNil(t, c.Session())
	require.NoError(t, c.Err())
	require.Empty(t, w.logged("ProbeReply"))
	for range 100 {
		c.Session().Send(make([]byte, 1000))
	}
	said := 0
	for range c.Due(w.buf[:]) {
		said++
		break
	}
	for range c.Due(w.buf[:]) {
		said++
	}
	require.Equal(t, 100, said)
}

// A client that was not told the server's key keeps cookies of several, and is admitted by
// the one that holds its key, in whatever order they came.
// P-13.2.7.
func TestClientWithoutAKeyTriesThoseThatItWasTold(t *testing.T) {
	for order := range 3 {
		w := newWorld(t, endpoint.ServerConfig{})
		c := w.join(home, endpoint.ClientConfig{Hello: []byte("ann")})
		w.flush()
		hello := w.take()[0]
		w.deliver(hello)
		w.flush()
		own := w.take()[0].data
		var challenges [][]byte
		for n := range 2 { // other keys, the same cookie
			d := bytes.Clone(own)
			copy(d[35:67], bytes.Repeat([]byte{byte(9 + n)}, 32))
			challenges = append(challenges, d)
		}
		for _, d := range slices.Insert(challenges, order, own) {
			_, err := c.Receive(d)
			require.NoError(t, err)
		}
		w.flush()
		require.Equal(t, []string{"Hello", "Hello", "Hello"}, kinds(w.wire))
		w.settle()
		require.NotNil(t, c.Session(), "the server's was number %d: %v", order, c.Err())
	}
}

// What somebody sends before any cookie came is not looked at and uses up nothing. After
// that a client looks at 250 Accepts at once, and at one a millisecond.
// P-13.2.7.
func TestAcceptsAreRationed(t *testing.T) {
	for wait, admitted := range map[time.Duration]bool{time.Millisecond - 1: false, time.Millisecond: true} {
		for junk := 249; junk <= 250; junk++ {
			w := newWorld(t, endpoint.ServerConfig{})
			c := w.join(home, knowing("ann"))
			for range 300 {
				_, err := c.Receive(junkAccept())
				require.NoError(t, err)
				_, err = c.Receive(append([]byte{0x0E, 4}, make([]byte, 32)...))
				require.NoError(t, err)
			}
			w.flush()
			w.deliver(w.take()[0])
			w.flush()
			w.deliver(w.take()[0])
			for range junk - 1 { // one was for the server's key
				_, err := c.Receive(junkAccept())
				require.ErrorIs(t, err, ackbits.ErrForged)
			}
			w.flush()
			w.deliver(w.take()[0])
			w.clock.Advance(wait)
			w.flush()
			w.deliver(w.take()[0])
			require.Equal(t, admitted || junk == 249, c.Session() != nil)
		}
	}
}

// A server key that is new to the client costs as much as an Accept; one that it knows
// costs nothing.
// P-13.2.7.
func TestServerKeysAreRationed(t *testing.T) {
	k := newKnocker(t, endpoint.ClientConfig{})
	k.offer(1)
	require.Equal(t, []byte{1}, k.shows())
	for range 249 {
		k.c.Receive(junkAccept())
	}
	k.offer(2)
	other := forgedChallenge(k.hello, 2)
	other[40]++
	_, err := k.c.Receive(other)
	require.NoError(t, err)
	require.Equal(t, []byte{2}, k.shows())
	k.clock.Advance(time.Millisecond)
	k.c.Receive(other)
	require.Equal(t, []byte{3}, k.shows())
}

// Once a cookie came, a wrong key or version is not the reason any more.
// P-13.2.3.
func TestReasonOfSilence(t *testing.T) {
	wrong := func(k *knocker, at int) {
		d := forgedChallenge(k.hello, 1)
		d[at]++
		k.c.Receive(d)
	}
	for _, test := range []struct {
		hear func(*knocker)
		want error
	}{
		{func(k *knocker) { wrong(k, 2) }, endpoint.ErrVersion},
		{func(k *knocker) { wrong(k, 40); wrong(k, 2) }, endpoint.ErrServerKey},
		{func(k *knocker) { wrong(k, 40); wrong(k, 2); k.offer(1) }, endpoint.ErrNoAnswer},
		{func(*knocker) {}, endpoint.ErrNoAnswer},
	} {
		k := newKnocker(t, knowing("ann"))
		test.hear(k)
		k.clock.Advance(5*time.Second - 1)
		k.shows()
		require.NoError(t, k.c.Err())
		k.clock.Advance(1)
		require.Empty(t, k.shows())
		require.ErrorIs(t, k.c.Err(), test.want)
	}
}

// shortNonce is an AEAD that no session takes.
type shortNonce struct{ cipher.AEAD }

func (shortNonce) NonceSize() int { return 4 }

// An AEAD that fails when its keys are there ends the client with its error.
func TestClientEndsWhenItsAEADFails(t *testing.T) {
	broken := errors.New("no such cipher")
	for fails, want := range map[int]error{2: broken, 3: broken, 0: ackbits.ErrConfig} {
		calls := 0
		w := newWorld(t, endpoint.ServerConfig{})
		cfg := knowing("ann")
		cfg.AEAD = func(key []byte) (cipher.AEAD, error) {
			block, err := aes.NewCipher(key)
			require.NoError(t, err)
			box, err := cipher.NewGCM(block)
			switch calls++; {
			case calls == fails:
				return nil, broken
			case fails == 0 && calls > 1:
				return shortNonce{box}, nil
			}
			return box, err
		}
		c := w.join(home, cfg)
		w.settle()
		require.ErrorIs(t, c.Err(), want)
		require.Nil(t, c.Session())
	}
}

// A server whose AEAD no session takes, which shows when the keys are there, admits nobody and
// gives the seat back.
func TestSessionThatCannotBeMadeTakesNoSeat(t *testing.T) {
	unfit := true
	calls := 0
	w := newWorld(t, endpoint.ServerConfig{MaxPeers: 1, AEAD: func(key []byte) (cipher.AEAD, error) {
		block, err := aes.NewCipher(key)
		require.NoError(t, err)
		box, err := cipher.NewGCM(block)
		if calls++; calls > 1 && unfit {
			return shortNonce{box}, nil
		}
		return box, err
	}})
	require.Nil(t, w.shake(host(1), knowing("ann")).Session())
	require.Equal(t, uint64(1), w.server.Stats().Failed)
	require.Zero(t, w.server.Stats().Peers)
	require.Empty(t, w.events)
	unfit = false
	require.NotNil(t, w.shake(host(2), knowing("bob")).Session())
	w.clock.Advance(20 * time.Second)
	require.ErrorContains(t, w.shake(host(3), knowing("cem")).Err(), "full")
	require.Equal(t, 2, w.server.Stats().Remembered, "the one that could not be admitted is forgotten")
}

// An Accept that opens and does not say how long its reply is begins nothing.
// P-13.1.4.
func TestAcceptSaysHowLongItsReplyIs(t *testing.T) {
	own, ephemeral := count(32, 32), count(64, 32)
	cfg := knowing("ann")
	var clock ackbits.ManualClock
	cfg.Clock, cfg.Rand = &clock, bytes.NewReader(own)
	c, err := endpoint.NewClient(cfg)
	require.NoError(t, err)
	for d := range c.Due(make([]byte, 1200)) {
		_, err := c.Receive(forgedChallenge(d, 1))
		require.NoError(t, err)
		break
	}
	client, server, fresh := public(t, own), serverKey.PublicKey().Bytes(), public(t, ephemeral)
	secret := append(x25519(t, own, server), x25519(t, own, fresh)...)
	said := sha256.Sum256([]byte("ann"))
	key := hkdf(secret, nil, []byte("ackbits endpoint accept\x00\x01\x00"), client, server, fresh, said[:])
	block, err := aes.NewCipher(key)
	require.NoError(t, err)
	box, err := cipher.NewGCM(block)
	require.NoError(t, err)
	accept := func(length byte, reply string) []byte {
		head := append([]byte{0x0E, 3}, fresh...)
		plain := append(make([]byte, 24), length, 0)
		return box.Seal(bytes.Clone(head), make([]byte, 12), append(plain, reply...), head)
	}
	for _, length := range []byte{0, 3, 5} {
		_, err := c.Receive(accept(length, "four"))
		require.ErrorIs(t, err, ackbits.ErrPayload)
		require.Nil(t, c.Session())
	}
	_, err = c.Receive(accept(4, "four"))
	require.NoError(t, err)
	require.Equal(t, "four", string(c.Reply()))
}
