package endpoint

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"net/netip"
	"testing"
	"time"

	"github.com/ackbits/ackbits"
	"github.com/stretchr/testify/require"
)

func TestMemoryForgetsInTheOrderOfTheLastWord(t *testing.T) {
	m := newMemory(10, 10)
	at := placeOf(netip.MustParseAddr("192.0.2.1"))
	second := int64(time.Second)
	a := m.add([keySize]byte{1}, at, 0)
	b := m.add([keySize]byte{2}, at, second)
	m.touch(a, 10*second)
	m.sweep(21*second - 1)
	require.Len(t, m.byKey, 2)
	m.sweep(21 * second)
	require.Len(t, m.byKey, 1, "b is forgotten, a is not")
	require.Nil(t, m.byKey[b.key])

	m.settle(a, at)
	require.Equal(t, map[netip.Prefix]place{at: {clients: 1}}, m.places)
	m.begin(a, 7)
	m.touch(a, 11*second)
	m.sweep(1000 * second)
	require.Len(t, m.byKey, 1, "one that plays is not forgotten")
	require.True(t, m.end(7, 1000*second))
	require.False(t, m.end(7, 1000*second))
	m.sweep(1020*second - 1)
	require.Len(t, m.byKey, 1)
	m.sweep(1020 * second)
	require.Empty(t, m.byKey)
	require.Empty(t, m.byToken)
	require.Empty(t, m.places, "and its address")
	require.Empty(t, m.sites)
	require.Zero(t, m.fading.Len())
}

// forger is a client that seals what it likes.
type forger struct {
	clock ackbits.ManualClock
	gate  *Gate
	from  netip.AddrPort
	form  byte
	asked int // times that Admit was
}

func newForger(t *testing.T, answer error) *forger {
	f := &forger{from: addr("192.0.2.1:4000")}
	var err error
	f.gate, err = NewGate(ServerConfig{
		Key: sceneKey, Clock: &f.clock, Rand: rand.NewChaCha8([32]byte{1}),
		Admit: func(Request) ([]byte, error) { f.asked++; return nil, answer },
	})
	require.NoError(t, err)
	return f
}

// hello returns a Hello of a key and with a good cookie, whose box is sealed with a secret.
func (f *forger) hello(key, secret, plain []byte) []byte {
	h := hello{version: version, form: f.form, key: [keySize]byte(key)}
	answer, _ := f.gate.Receive(f.from, h.appendBare(nil), nil)
	copy(h.cookie[:], answer[3+2*keySize:])
	p := parties{form: f.form, clientKey: h.key, serverKey: f.gate.public}
	head := h.appendHead(nil)
	return sealBox(bytes.Clone(head), p.helloKey(secret, h.cookie[:]), plain, head)
}

// With a key of low order the secret is known to anybody, whose Hello would open.
func TestKeyOfLowOrderOpensNothing(t *testing.T) {
	for _, secret := range [][]byte{nil, make([]byte, keySize)} {
		f := newForger(t, nil)
		d := f.hello(make([]byte, keySize), secret, padHello([]byte("let me in")))
		for range 2 {
			answer, a := f.gate.Receive(f.from, d, nil)
			require.Empty(t, answer)
			require.Nil(t, a)
		}
		require.Zero(t, f.asked)
		require.Equal(t, uint64(2), f.gate.Stats().Forged)
	}
}

// What opens and makes no sense is dropped as well.
func TestHelloThatOpensAndMakesNoSense(t *testing.T) {
	private, err := newKey(rand.NewChaCha8([32]byte{2}))
	require.NoError(t, err)
	public := private.PublicKey().Bytes()
	secret, ok := exchange(private, sceneKey.PublicKey().Bytes())
	require.True(t, ok)
	long := padHello(make([]byte, MaxHello))
	long[0]++ // 513 bytes
	more := padHello([]byte("ann"))
	more[len(more)-1] = 1
	for _, plain := range [][]byte{long, more} {
		f := newForger(t, nil)
		answer, a := f.gate.Receive(f.from, f.hello(public, secret, plain), nil)
		require.Empty(t, answer)
		require.Nil(t, a)
		require.Zero(t, f.asked)
		require.Equal(t, uint64(1), f.gate.Stats().Malformed)
	}
	f := newForger(t, nil)
	_, a := f.gate.Receive(f.from, f.hello(public, secret, padHello([]byte("ann"))), nil)
	require.NotNil(t, a, "and this one would have been let in")
	require.Zero(t, f.gate.Stats().Malformed)
}

// One key has one hello: the answer to it is for that one alone.
func TestSameKeyWithAnotherHelloGetsNothing(t *testing.T) {
	private, err := newKey(rand.NewChaCha8([32]byte{2}))
	require.NoError(t, err)
	secret, _ := exchange(private, sceneKey.PublicKey().Bytes())
	for _, refusal := range []error{nil, errors.New("no")} {
		f := newForger(t, refusal)
		ann := f.hello(private.PublicKey().Bytes(), secret, padHello([]byte("ann")))
		bob := f.hello(private.PublicKey().Bytes(), secret, padHello([]byte("bob")))
		first, _ := f.gate.Receive(f.from, ann, nil)
		require.NotEmpty(t, first)
		answer, a := f.gate.Receive(f.from, bob, nil)
		require.Empty(t, answer)
		require.Nil(t, a)
		f.clock.Advance(100 * time.Millisecond)
		answer, a = f.gate.Receive(f.from, bob, nil)
		require.Empty(t, answer, "nor when the client is not hushed any more")
		require.Nil(t, a)
		again, a := f.gate.Receive(f.from, ann, nil)
		require.Equal(t, first, again)
		require.Nil(t, a)
		require.Equal(t, 1, f.asked)
		require.Equal(t, uint64(2), f.gate.Stats().Hushed)
		require.Equal(t, uint64(1), f.gate.Stats().Repeated)
	}
}

// A cookie that is made for a client that is remembered would be good for
// longer than the client is.
func TestNoCookieIsMadeForWhoIsRemembered(t *testing.T) {
	for _, end := range []string{"refused", "admitted", "confirmed", "ended"} {
		var refusal error
		if end == "refused" {
			refusal = errors.New("no")
		}
		f := newForger(t, refusal)
		private, err := newKey(rand.NewChaCha8([32]byte{2}))
		require.NoError(t, err)
		secret, _ := exchange(private, sceneKey.PublicKey().Bytes())
		_, a := f.gate.Receive(f.from, f.hello(private.PublicKey().Bytes(), secret, padHello(nil)), nil)
		if end == "confirmed" || end == "ended" {
			f.gate.Confirm(a.Config.Token)
		}
		if end == "ended" {
			f.gate.End(a.Config.Token)
		}
		bare := (&hello{version: version, key: [keySize]byte(private.PublicKey().Bytes())}).appendBare(nil)
		f.clock.Advance(20*time.Second - 1)
		answer, _ := f.gate.Receive(f.from, bare, nil)
		require.Equal(t, end == "admitted", len(answer) > 0, "%s: only who may still want its Accept", end)
		f.clock.Advance(1)
		answer, _ = f.gate.Receive(f.from, bare, nil)
		require.Equal(t, end != "confirmed", len(answer) > 0, end)
	}
}

// A form that there is not is refused as such.
// P-13.2.5.
func TestUnknownFormIsRefused(t *testing.T) {
	private, err := newKey(rand.NewChaCha8([32]byte{2}))
	require.NoError(t, err)
	secret, _ := exchange(private, sceneKey.PublicKey().Bytes())
	for form, reason := range map[byte]string{formWide: reasonNarrow, formWide + 1: reasonForm, 255: reasonForm} {
		f := newForger(t, nil)
		f.form = form
		answer, _ := f.gate.Receive(f.from, f.hello(private.PublicKey().Bytes(), secret, padHello(nil)), nil)
		salt, head, box, err := splitRefuse(answer)
		require.NoError(t, err)
		p := parties{form: form, clientKey: [keySize]byte(private.PublicKey().Bytes()), serverKey: f.gate.public}
		said, ok := openBox(nil, p.refuseKey(secret, salt), box, head)
		require.True(t, ok)
		require.Equal(t, reason, string(said))
		require.Equal(t, uint64(1), f.gate.Stats().RefusedForm)
		require.Zero(t, f.asked)
	}
}

func TestBadCookiesAreCounted(t *testing.T) {
	f := newForger(t, nil)
	h := hello{version: version}
	f.gate.Receive(f.from, h.appendBare(nil), nil)
	require.Zero(t, f.gate.Stats().BadCookies, "none is not a bad one")
	h.cookie[0] = 1
	f.gate.Receive(f.from, h.appendBare(nil), nil)
	require.Equal(t, uint64(1), f.gate.Stats().BadCookies)
	answer, _ := f.gate.Receive(f.from, h.appendBare(nil), nil)
	copy(h.cookie[:], answer[3+2*keySize:])
	h.version = 2
	answer, _ = f.gate.Receive(f.from, h.appendBare(nil), nil)
	require.Equal(t, byte(kindChallenge), answer[1])
	s := f.gate.Stats()
	require.Equal(t, uint64(2), s.BadCookies, "of another version it is not looked at")
	require.Equal(t, uint64(4), s.Challenges)
	require.Equal(t, uint64(4), s.Hellos)
}

func TestGateDropsWhatIsNotForIt(t *testing.T) {
	f := newForger(t, nil)
	for _, d := range [][]byte{nil, {format}, {0x0C, 1}, appendCode(nil, kindProbeReply, 1, make([]byte, 16)), make([]byte, 640)} {
		answer, a := f.gate.Receive(f.from, d, nil)
		require.Empty(t, answer)
		require.Nil(t, a)
	}
	require.Equal(t, uint64(5), f.gate.Stats().Malformed)
	f.gate.Confirm(42)
	f.gate.End(42)
	require.Zero(t, f.gate.Stats().Peers)
}

// A gate refuses the Reset of what it admitted itself, and only until its end.
func TestGateResetsWhatHasEnded(t *testing.T) {
	f := newForger(t, nil)
	private, err := newKey(rand.NewChaCha8([32]byte{2}))
	require.NoError(t, err)
	secret, _ := exchange(private, sceneKey.PublicKey().Bytes())
	_, a := f.gate.Receive(f.from, f.hello(private.PublicKey().Bytes(), secret, padHello(nil)), nil)
	s, err := ackbits.NewSession(a.Config)
	require.NoError(t, err)
	d, _, err := s.AppendDatagram(nil, ackbits.TypeInput, nil)
	require.NoError(t, err)
	require.Len(t, d, 34)
	require.Empty(t, f.gate.Reset(nil, f.from, d))
	require.Empty(t, f.gate.Reset(nil, f.from, d[:33]))
	f.gate.End(a.Config.Token)
	require.Empty(t, f.gate.Reset(nil, f.from, d[:33]), "longer than this would not be")
	bare := append([]byte{0x0A}, d[1:]...)
	require.Empty(t, f.gate.Reset(nil, f.from, bare))
	require.Empty(t, f.gate.Reset(nil, f.from, append([]byte{0x0E}, d[1:]...)))
	require.Zero(t, f.gate.Stats().ResetsHeld)
	require.Len(t, f.gate.Reset(nil, f.from, d), 26)
	require.Equal(t, uint64(1), f.gate.Stats().Resets)
}
