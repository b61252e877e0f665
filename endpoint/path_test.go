package endpoint

import (
	"net/netip"
	"testing"
	"time"

	"github.com/ackbits/ackbits"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// asked is a Probe that a path sent.
type asked struct {
	to   netip.AddrPort
	at   time.Time
	code []byte
}

// history is a path, and all that happened to it.
type history struct {
	clock  ackbits.ManualClock
	path   Path
	key    []byte
	at     netip.AddrPort // where the peer is, as was proved
	newest int
	probes []asked
	// open is what the latest Probe asks, while nothing has made it void: a
	// newer datagram from where the peer is, or another Probe.
	open *asked
}

var spots = []netip.AddrPort{addr("192.0.2.1:1"), addr("192.0.2.1:2"), addr("[2001:db8::1]:1")}

func (h *history) opened(t *rapid.T) {
	from := rapid.SampledFrom(spots).Draw(t, "from")
	n := max(0, h.newest+rapid.IntRange(-40, 40).Draw(t, "step"))
	h.path.Opened(from, uint16(n))
	newer := n > h.newest
	if newer {
		h.newest = n
		if from == h.at {
			h.open = nil
		}
	}
	out, to, ok := h.path.AppendDue([]byte("before"))
	if !ok {
		require.Equal(t, "before", string(out))
		late := len(h.probes) == 0 || h.clock.Now().Sub(h.probes[len(h.probes)-1].at) >= 100*time.Millisecond
		require.False(t, newer && from != h.at && late, "a newer datagram from elsewhere, and no Probe")
		return
	}
	require.True(t, newer, "an old datagram is no reason to ask")
	require.NotEqual(t, h.at, from)
	require.Equal(t, from, to)
	require.Len(t, out, 6+26)
	if n := len(h.probes); n > 0 {
		require.GreaterOrEqual(t, h.clock.Now().Sub(h.probes[n-1].at), 100*time.Millisecond)
	}
	p := asked{to, h.clock.Now(), append([]byte(nil), out[16:]...)}
	for _, older := range h.probes {
		if older.to != to {
			require.NotEqual(t, older.code, p.code, "what is asked of one does for another")
		}
	}
	h.probes = append(h.probes, p)
	h.open = &p
}

func (h *history) answer(t *rapid.T) {
	if len(h.probes) == 0 {
		return
	}
	p := h.probes[max(0, len(h.probes)-1-rapid.IntRange(0, 3).Draw(t, "which"))]
	from := rapid.SampledFrom(spots).Draw(t, "from")
	if rapid.Bool().Draw(t, "from there") {
		from = p.to
	}
	mac := shortMAC(h.key, p.code)
	reply := appendCode(nil, kindProbeReply, 7, mac[:])
	damaged := rapid.IntRange(0, 5*len(reply)).Draw(t, "damaged")
	if damaged < len(reply) {
		reply[damaged] ^= 1
	}
	moved := h.path.Answer(from, reply)
	right := h.open != nil && string(h.open.code) == string(p.code) && from == h.open.to && damaged >= len(reply)
	require.Equal(t, right, moved)
	if right {
		h.at, h.open = from, nil
	}
}

// A number that was heard before says nothing new.
func TestPathHearsANumberOnce(t *testing.T) {
	p := newPath(spots[0], 7, []byte("key"), []byte("probing"), nil)
	p.Opened(spots[0], 5)
	p.Opened(spots[1], 5)
	_, _, ok := p.AppendDue(nil)
	require.False(t, ok)
	p.Opened(spots[1], 6)
	_, to, ok := p.AppendDue(nil)
	require.True(t, ok)
	require.Equal(t, spots[1], to)
}

// A candidate is asked the same again, once in 100 ms; a newer datagram from where the peer is
// makes void what was asked.
// P-13.4.2.
func TestPathAsksACandidateOnceIn100ms(t *testing.T) {
	var clock ackbits.ManualClock
	p := newPath(spots[0], 7, []byte("key"), []byte("probing"), &clock)
	asks := func(from netip.AddrPort, sequence uint16) string {
		p.Opened(from, sequence)
		out, to, ok := p.AppendDue(nil)
		if ok {
			require.Equal(t, from, to)
		}
		return string(out)
	}
	require.Empty(t, asks(spots[0], 5))
	first := asks(spots[1], 6)
	require.NotEmpty(t, first)
	clock.Advance(100*time.Millisecond - 1)
	require.Empty(t, asks(spots[1], 7))
	clock.Advance(1)
	require.Equal(t, first, asks(spots[1], 8))
	mac := shortMAC([]byte("key"), []byte(first[10:]))
	reply := appendCode(nil, kindProbeReply, 7, mac[:])
	require.Empty(t, asks(spots[0], 9))
	require.False(t, p.Answer(spots[1], reply))
	clock.Advance(100 * time.Millisecond)
	second := asks(spots[1], 10)
	require.NotEqual(t, first, second)
	require.False(t, p.Answer(spots[1], reply))
	mac = shortMAC([]byte("key"), []byte(second[10:]))
	require.True(t, p.Answer(spots[1], appendCode(nil, kindProbeReply, 7, mac[:])))
	require.Equal(t, spots[1], p.Addr())
}

// Whatever is opened, asked and answered, in whatever order: a peer moves by the
// right answer to the latest Probe from where that went, and never else.
// P-13.4.3.
func TestPathMovesByARightAnswerAlone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := &history{key: []byte("the session's"), at: spots[0], newest: 65_480} // near the wrap
		h.clock.Set(time.Unix(1_700_000_000, 0))
		h.path = newPath(spots[0], 7, h.key, []byte("the server's"), &h.clock)
		h.path.Opened(spots[0], uint16(h.newest))
		t.Repeat(map[string]func(*rapid.T){
			"opened": h.opened,
			"answer": h.answer,
			"time": func(t *rapid.T) {
				h.clock.Advance(time.Duration(rapid.IntRange(0, 120_000_000).Draw(t, "nanoseconds")))
			},
			"": func(t *rapid.T) { require.Equal(t, h.at, h.path.Addr()) },
		})
	})
}
