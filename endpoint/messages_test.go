package endpoint

import (
	"bytes"
	"net/netip"
	"testing"
	"time"

	"github.com/ackbits/ackbits"
	"github.com/stretchr/testify/require"
)

func addr(s string) netip.AddrPort { return netip.MustParseAddrPort(s) }

// FuzzMessages: what a parser takes, it gives back byte for byte; so each message
// has one encoding.
// P-13.1.1.
func FuzzMessages(f *testing.F) {
	for k := range kind(9) {
		for _, n := range []int{0, 1, 26, 34, 76, 99, 640, 641} {
			d := make([]byte, n)
			if n > 2 {
				d[0], d[1], d[2] = format, byte(k), version
			}
			f.Add(d)
		}
	}
	f.Fuzz(func(t *testing.T, d []byte) {
		if h, err := parseHello(d); err == nil {
			require.Equal(t, d[2:], append(h.appendHead(nil), h.box...)[2:])
			require.True(t, helloSize <= len(d) && len(d) <= ackbits.MaxDatagramSize)
		}
		if c, err := parseChallenge(d); err == nil && c.version == version {
			require.Equal(t, d[2:], c.appendTo(nil)[2:])
		}
		if key, head, box, err := splitAccept(d); err == nil {
			require.Equal(t, d, append(bytes.Clone(head), box...))
			require.Len(t, key, keySize)
		}
		if salt, head, box, err := splitRefuse(d); err == nil {
			require.Equal(t, d, append(bytes.Clone(head), box...))
			require.Len(t, salt, saltSize)
		}
		if token, code, err := parseCode(d); err == nil {
			require.Equal(t, d[2:], appendCode(nil, kindReset, token, code)[2:])
		}
		if a, err := parseGrant(d); err == nil {
			require.Equal(t, d, a.appendTo(nil))
		}
		if app, err := unpadHello(d); err == nil {
			require.Equal(t, d[:2+len(app)], padHello(app)[:2+len(app)])
		}
	})
}

// P-13.1.1.
func TestSizesOfMessages(t *testing.T) {
	require.Equal(t, 99, challengeSize)
	require.Equal(t, 76, acceptOverhead)
	require.Equal(t, 588, acceptOverhead+MaxReply)
	require.Equal(t, 34, refuseOverhead)
	require.Equal(t, 290, refuseOverhead+MaxReason)
	require.Equal(t, 26, codeMessage)
	require.Equal(t, 34, sealedMin)
	require.Len(t, (&hello{}).appendBare(nil), 640)
	require.GreaterOrEqual(t, helloSize-helloHead-tagSize-2, MaxHello)
}

func TestMessagesOfOneByteTooMuchOrTooLittle(t *testing.T) {
	parsers := map[string]struct {
		parse       func([]byte) error
		least, most int
	}{
		"Hello":     {func(d []byte) error { _, err := parseHello(d); return err }, 640, 1200},
		"Accept":    {func(d []byte) error { _, _, _, err := splitAccept(d); return err }, 76, 588},
		"Refuse":    {func(d []byte) error { _, _, _, err := splitRefuse(d); return err }, 34, 290},
		"Reset":     {func(d []byte) error { _, _, err := parseCode(d); return err }, 26, 26},
		"Challenge": {func(d []byte) error { _, err := parseChallenge(d); return err }, 35, 1200}, // of another version
	}
	for name, p := range parsers {
		require.NoError(t, p.parse(make([]byte, p.least)), name)
		require.NoError(t, p.parse(make([]byte, p.most)), name)
		require.ErrorIs(t, p.parse(make([]byte, p.least-1)), ackbits.ErrShort, name)
		if name != "Challenge" {
			require.ErrorIs(t, p.parse(make([]byte, p.most+1)), ackbits.ErrOversize, name)
		}
	}
	terms := func(n, said int) []byte {
		plain := make([]byte, acceptPlain+n)
		plain[24], plain[25] = byte(said), byte(said>>8)
		return plain
	}
	_, err := parseGrant(terms(0, 0)[:25])
	require.ErrorIs(t, err, ackbits.ErrShort)
	for _, n := range []int{0, 1, 512} {
		a, err := parseGrant(terms(n, n))
		require.NoError(t, err)
		require.Len(t, a.reply, n)
		_, err = parseGrant(terms(n, n+1))
		require.ErrorIs(t, err, ackbits.ErrPayload)
	}
	_, err = parseGrant(terms(513, 513))
	require.ErrorIs(t, err, ackbits.ErrPayload)
}

func TestDefaults(t *testing.T) {
	g, err := NewGate(ServerConfig{Key: sceneKey})
	require.NoError(t, err)
	require.Equal(t, 1024, g.cfg.MaxPeers)
	require.Equal(t, 16, g.cfg.MaxPerAddress)
	require.Equal(t, 4096, g.memory.capacity)
	g, err = NewGate(ServerConfig{Key: sceneKey, MaxPeers: 2000, MaxPerAddress: 3})
	require.NoError(t, err)
	require.Equal(t, 8000, g.memory.capacity)
	require.Equal(t, 3, g.memory.perPlace)
	c, err := NewClient(ClientConfig{})
	require.NoError(t, err)
	require.Equal(t, int64(5*time.Second), c.endsAt)
}

func TestHelloOfABoxThatIsTooShortForIt(t *testing.T) {
	for _, plain := range [][]byte{nil, {0}, {1, 0}, {3, 0, 1, 2}} {
		_, err := unpadHello(plain)
		require.ErrorIs(t, err, ackbits.ErrPayload, "%x", plain)
	}
	app, err := unpadHello([]byte{0, 0})
	require.NoError(t, err)
	require.Empty(t, app)
	app, err = unpadHello([]byte{2, 0, 1, 2})
	require.NoError(t, err)
	require.Equal(t, []byte{1, 2}, app)
}

func TestReasonIsCutBetweenCharacters(t *testing.T) {
	require.Equal(t, "", cut("", 3))
	require.Equal(t, "abc", cut("abc", 3))
	require.Equal(t, "abc", cut("abcd", 3))
	require.Equal(t, "ü", cut("üü", 3))
	require.Equal(t, "\uFFFDa", cut("\xffa", 5))
}

func TestPlacesAreAddressesOrNetworks(t *testing.T) {
	for _, pair := range [][2]string{
		{"192.0.2.1:1", "192.0.2.1:2"}, {"[::ffff:192.0.2.1]:1", "192.0.2.1:2"},
		{"[2001:db8::1]:1", "[2001:db8::ffff:0:0:1]:1"}, {"[fe80::1%a]:1", "[fe80::2%b]:1"},
	} {
		require.Equal(t, placeOf(unmap(addr(pair[0])).Addr()), placeOf(unmap(addr(pair[1])).Addr()), pair)
	}
	for _, pair := range [][2]string{{"192.0.2.2:1", "192.0.2.3:1"}, {"[2001:db8::1]:1", "[2001:db8:0:1::1]:1"}} {
		require.NotEqual(t, placeOf(addr(pair[0]).Addr()), placeOf(addr(pair[1]).Addr()), pair)
	}
	for address, site := range map[string]string{
		"192.0.2.3:1": "192.0.2.3/32", "[2001:db8:7:ffff::1]:1": "2001:db8:7::/48",
	} {
		require.Equal(t, netip.MustParsePrefix(site), siteOf(placeOf(addr(address).Addr())))
	}
}

func TestAllowanceIsABurstAndARate(t *testing.T) {
	a := newAllowance(1000, 4)
	taken := func(now int64) (n int) {
		for a.take(now) {
			n++
		}
		return n
	}
	require.Equal(t, 4, taken(0))
	require.Equal(t, 0, taken(999_999))
	require.Equal(t, 1, taken(1_000_000))
	require.Equal(t, 2, taken(3_000_000))
	require.Equal(t, 4, taken(1_000_000_000))
}

// P-13.2.2.
func TestCookieIsGoodInItsSlotAndTheNext(t *testing.T) {
	c := newCookies([]byte("secret"))
	from, key := addr("192.0.2.1:4000"), make([]byte, 32)
	for _, start := range []int64{0, 7} {
		now := start * int64(cookieSlot)
		_, cookie := c.check(from, key, make([]byte, 32), now)
		good := func(at int64) bool { ok, _ := c.check(from, key, cookie[:], at); return ok }
		require.True(t, good(now))
		require.True(t, good(now+2*int64(cookieSlot)-1))
		require.False(t, good(now+2*int64(cookieSlot)))
		require.Equal(t, false, start > 0 && good(now-1), "of the future")
		other := make([]byte, 32)
		other[31] = 1
		for _, from := range []string{"192.0.2.1:4001", "192.0.2.2:4000", "[2001:db8::1]:4000", "[fe80::1%eth0]:4000"} {
			ok, _ := c.check(addr(from), key, cookie[:], now)
			require.False(t, ok)
		}
		ok, _ := c.check(from, other, cookie[:], now)
		require.False(t, ok)
	}
	_, there := c.check(addr("[fe80::1%eth0]:4000"), key, key, 0)
	ok, _ := c.check(addr("[fe80::1%eth1]:4000"), key, there[:], 0)
	require.False(t, ok, "another link's fe80::1")
}

func TestOpenedIsTrueOfWhatOpened(t *testing.T) {
	for _, err := range []error{nil, ackbits.ErrType, ackbits.ErrPayload, ackbits.ErrWindow, ackbits.ErrRejected} {
		require.True(t, Opened(err), err)
	}
	for _, err := range []error{ackbits.ErrShort, ackbits.ErrOversize, ackbits.ErrFormat, ackbits.ErrToken, ackbits.ErrReplayed,
		ackbits.ErrForged, ackbits.ErrTimeout, ackbits.ErrPeerLeft, ackbits.ErrClosed} {
		require.False(t, Opened(err), err)
	}
}

func TestProbeReplyNamesItsSession(t *testing.T) {
	reply := appendCode(nil, kindProbeReply, 0x0807060504030201, make([]byte, 16))
	token, ok := ProbeReply(reply)
	require.True(t, ok)
	require.Equal(t, uint64(0x0807060504030201), token)
	for _, other := range [][]byte{nil, reply[:25], append(reply[:26:26], 0), appendCode(nil, kindProbe, 1, make([]byte, 16))} {
		_, ok := ProbeReply(other)
		require.False(t, ok)
	}
}

func TestAnswersWaitInOrderUpToALimit(t *testing.T) {
	q := answers{limit: 20}
	next, want := 0, 0
	for range 100 {
		for range 7 {
			if q.push(addr("192.0.2.1:1"), []byte{byte(next)}) {
				next++
			}
		}
		require.LessOrEqual(t, len(q.ring), 20)
		for range 5 {
			_, d, ok := q.pop(nil)
			require.True(t, ok)
			require.Equal(t, []byte{byte(want)}, d)
			want++
		}
	}
	require.Equal(t, 15, q.n)
}

// A caller that always leaves events for later gets them in order, and what was
// fetched takes no room.
func TestEventsThatAreFetchedTakeNoRoom(t *testing.T) {
	for backlog := range 5 {
		s := &Server{}
		told, fetched := 0, 0
		tell := func() {
			s.tell(Event{Kind: Joined, From: netip.AddrPortFrom(netip.IPv4Unspecified(), uint16(told))})
			told++
		}
		for range backlog {
			tell()
		}
		for range 1000 {
			tell()
			e, ok := s.NextEvent()
			require.True(t, ok)
			require.Equal(t, uint16(fetched), e.From.Port())
			fetched++
			require.LessOrEqual(t, len(s.events), 2*(backlog+2))
		}
		for range backlog {
			_, ok := s.NextEvent()
			require.True(t, ok)
		}
		_, ok := s.NextEvent()
		require.False(t, ok)
	}
}
