package ackbits_test

import (
	"bytes"
	"encoding/hex"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ackbits/ackbits"
)

// Rules of docs/protocol.md that speak of what two different implementations may do
// to each other, tried from outside.

const protocolFile = "docs/protocol.md"

// rig is a session whose peer is hand-made.
type rig struct {
	*ackbits.Session
	t     *testing.T
	clock ackbits.ManualClock
	seq   uint16
}

func newRig(t *testing.T, cfg ackbits.Config) *rig {
	r := &rig{t: t}
	cfg.Clock = &r.clock
	s, err := ackbits.NewSession(cfg)
	require.NoError(t, err)
	r.Session = s
	return r
}

// hear receives the peer's next datagram, with acknowledgements.
func (r *rig) hear(ty ackbits.Type, ack uint16, payload ...byte) ackbits.Incoming {
	r.t.Helper()
	h := ackbits.Header{Type: ty, Sequence: r.seq, Ack: ack}
	r.seq++
	in, err := r.Receive(append(h.AppendTo(nil), payload...))
	require.NoError(r.t, err)
	return in
}

func (r *rig) send(event string) {
	r.t.Helper()
	_, err := r.Send([]byte(event))
	require.NoError(r.t, err)
}

func (r *rig) emit(ty ackbits.Type, payload ...byte) []byte {
	r.t.Helper()
	datagram, _, err := r.AppendDatagram(nil, ty, payload)
	require.NoError(r.t, err)
	return datagram
}

// The examples of chapter 18 are what the library sends.
func TestDocumentShowsWhatTheLibrarySends(t *testing.T) {
	_, text, found := strings.Cut(read(t, protocolFile), "\n## 18 Examples\n")
	require.True(t, found)
	text, _, found = strings.Cut(text, "\n## 19 ")
	require.True(t, found)
	var shown []string
	for _, line := range regexp.MustCompile(`(?m)^(?:datagram )?((?:[0-9A-F]{2} +)*[0-9A-F]{2})$`).FindAllStringSubmatch(text, -1) {
		shown = append(shown, strings.ToLower(strings.ReplaceAll(line[1], " ", "")))
	}
	var sent []string
	note := func(datagram []byte) []byte {
		sent = append(sent, hex.EncodeToString(datagram))
		return datagram
	}
	var clock ackbits.ManualClock
	enter := func(cfg ackbits.Config) *ackbits.Session {
		cfg.Token, cfg.Clock = 0x1122334455667788, &clock
		s, err := ackbits.NewSession(cfg)
		require.NoError(t, err)
		return s
	}
	append1 := func(s *ackbits.Session, ty ackbits.Type, payload ...byte) []byte {
		datagram, _, err := s.AppendDatagram(nil, ty, payload)
		require.NoError(t, err)
		return datagram
	}
	a, b := enter(ackbits.Config{}), enter(ackbits.Config{Bundle: true})
	a.Send([]byte{0xAA, 0xBB})
	a.Send(nil)
	datagram, _ := a.AppendDue(nil)
	clock.Advance(20 * time.Millisecond)
	b.Receive(note(datagram))
	datagram = append1(b, ackbits.TypeSnapshot, 0xC0, 0xFF, 0xEE)
	clock.Advance(20 * time.Millisecond)
	a.Receive(note(datagram))
	require.Equal(t, 40*time.Millisecond, a.RTT())
	clock.Advance(10 * time.Millisecond)
	datagram, _ = a.AppendDue(nil)
	note(datagram)
	b.Send([]byte{1})
	note(append1(b, ackbits.TypeSnapshot, 0xC0, 0xFF, 0xEE))
	a.Close()
	for datagram := range a.Due(nil) {
		note(datagram)
	}
	heartbeat := ackbits.Header{Wide: true, Type: ackbits.TypeHeartbeat, Token: 0x1122334455667788, Sequence: 300, Ack: 65535}
	note(heartbeat.AppendTo(nil))
	var tracker ackbits.AckTracker
	for _, seq := range []uint16{0, 1, 4, 3} {
		tracker.Receive(seq)
	}
	heartbeat.Ack, heartbeat.AckBits = tracker.Ack(), tracker.WideAckBits()
	note(heartbeat.AppendTo(nil))
	key := []byte{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}
	sealed := enter(ackbits.Config{Seal: aesGCM(t, key), Open: aesGCM(t, key)})
	append1(sealed, ackbits.TypeInput)
	note(append1(sealed, ackbits.TypeInput, 0xCA, 0xFE))
	require.Equal(t, sent, shown[:len(sent)], "the example of number 65537 apart")
	require.Len(t, shown, len(sent)+1)
}

// A Bundle takes what is due as far as there is room, and no room is made for it.
// P-10.1.4.
func TestBundleTakesWhatIsDue(t *testing.T) {
	r := newRig(t, ackbits.Config{Bundle: true})
	for _, event := range []string{"one", strings.Repeat("x", 600), "three"} {
		r.send(event)
	}
	datagram := r.emit(ackbits.TypeInput, bytes.Repeat([]byte{7}, 600)...)
	require.Equal(t, []byte{8, 3}, []byte{datagram[1], datagram[18]})
	require.Equal(t, append([]byte{1, 0, 0, 3, 0}, "one"...), datagram[19:27], "the second does not fit and holds up the third")
	require.Len(t, datagram[27:], 600)
	require.EqualValues(t, ackbits.TypeBundle, r.emit(ackbits.TypeInput)[1], "the rest")
	require.EqualValues(t, ackbits.TypeInput, r.emit(ackbits.TypeInput)[1], "nothing is due any more")
	r.send("")
	require.EqualValues(t, ackbits.TypeInput, r.emit(ackbits.TypeInput, make([]byte, 1182-5)...)[1], "1 + 1 + 4 bytes are needed")
	require.EqualValues(t, ackbits.TypeBundle, r.emit(ackbits.TypeInput, make([]byte, 1182-6)...)[1])
	off := newRig(t, ackbits.Config{})
	off.send("own datagram")
	require.EqualValues(t, ackbits.TypeInput, off.emit(ackbits.TypeInput)[1])
}

// Bundles are understood without being sent, whatever rides in them.
// P-10.1.1, P-10.1.3.
func TestBundlesAreAlwaysUnderstood(t *testing.T) {
	r := newRig(t, ackbits.Config{})
	for _, inner := range []byte{1, 2, 3, 4, 16, 255} {
		in := r.hear(ackbits.TypeBundle, 65535, inner, 1, inner, 0, 0, 0, 0xAB)
		require.EqualValues(t, inner, in.Type)
		require.Equal(t, []byte{0xAB}, in.Payload)
		require.Len(t, in.Events, 1)
		require.True(t, in.Latest)
	}
}

// What is acknowledged by a Disconnect was delivered before the session ended.
// P-2.3.6.
func TestDisconnectIsReadBeforeItEnds(t *testing.T) {
	r := newRig(t, ackbits.Config{Outcomes: true})
	r.send("the last word")
	r.AppendDue(nil)
	r.hear(ackbits.TypeDisconnect, 0)
	require.ErrorIs(t, r.Err(), ackbits.ErrPeerLeft)
	require.Zero(t, r.InFlight())
	o, ok := r.NextOutcome()
	require.True(t, ok)
	require.True(t, o.Delivered)
}

// Events are delivered unseen: one that is malformed to the application holds up
// none that came with it, and none of its own.
// P-5.3.5.
func TestContentsOfEventsAreNotJudged(t *testing.T) {
	r := newRig(t, ackbits.Config{Accept: func(ackbits.Header, []byte) error { return ackbits.ErrPayload }})
	in := r.hear(ackbits.TypeEvent, 65535, 2, 0, 0, 1, 0, 0xFF, 1, 0, 0, 0)
	require.Len(t, in.Events, 2)
	require.EqualValues(t, 0, r.emit(ackbits.TypeInput)[12], "and acknowledged")
}

// A sender may list events in any order, twice, and in as many datagrams as it likes.
// P-17.1.2.
func TestAnyOrderOfEventsIsTaken(t *testing.T) {
	for _, ordered := range []bool{false, true} {
		r := newRig(t, ackbits.Config{Ordered: ordered})
		var got int
		for _, list := range [][]uint16{{5}, {3, 3, 1}, {4, 0, 5}, {2, 7}, {6}} {
			payload := []byte{byte(len(list))}
			for _, id := range list {
				payload = append(payload, byte(id), byte(id>>8), 0, 0)
			}
			got += len(r.hear(ackbits.TypeEvent, 65535, payload...).Events)
		}
		require.Equal(t, 8, got, "ordered: %v", ordered)
	}
}

// Nothing of a session's times and limits is on the wire: peers may differ in them,
// in the order of delivery, in what they bundle and in their patience with a stall.
// P-17.1.1, P-17.1.3, P-17.1.4, P-17.1.5.
func TestPeersMayDiffer(t *testing.T) {
	var clock ackbits.ManualClock
	mine := ackbits.Config{Clock: &clock, Heartbeat: 20 * time.Millisecond, ResendDelay: 30 * time.Millisecond, Bundle: true, StallTimeout: -1, Backlog: 100}
	theirs := ackbits.Config{Clock: &clock, Heartbeat: 200 * time.Millisecond, Timeout: time.Second, Ordered: true, Adaptive: true, MaxDatagram: 200, LossDelay: time.Minute}
	a, err := ackbits.NewSession(mine)
	require.NoError(t, err)
	b, err := ackbits.NewSession(theirs)
	require.NoError(t, err)
	got := map[string]int{}
	for n := range 300 {
		if n < 100 {
			for _, s := range []*ackbits.Session{a, b} {
				_, err := s.Send([]byte{byte(n)})
				require.NoError(t, err)
			}
		}
		for from, to := range map[*ackbits.Session]*ackbits.Session{a: b, b: a} {
			datagrams := [][]byte{}
			if datagram, _, err := from.AppendDatagram(nil, ackbits.TypeInput, []byte{1}); err == nil && n < 200 {
				datagrams = append(datagrams, datagram)
			}
			for datagram := range from.Due(nil) {
				datagrams = append(datagrams, bytes.Clone(datagram))
			}
			for i, datagram := range datagrams {
				if (n+i)%5 == 0 {
					continue // lost
				}
				in, err := to.Receive(datagram)
				require.NoError(t, err)
				if to == b {
					got["b"] += len(in.Events)
				} else {
					got["a"] += len(in.Events)
				}
			}
		}
		clock.Advance(10 * time.Millisecond)
	}
	require.Equal(t, map[string]int{"a": 100, "b": 100}, got)
	require.Zero(t, a.InFlight()+b.InFlight())
}

// What comes due while datagrams are written waits for the next call.
// P-6.1.3.
func TestDueEndsHoweverSlowWritingIs(t *testing.T) {
	r := newRig(t, ackbits.Config{})
	for range 3 {
		r.send(strings.Repeat("x", 1000))
	}
	sent := 0
	for range r.Due(nil) {
		r.clock.Advance(200 * time.Millisecond)
		sent++
		require.LessOrEqual(t, sent, 3, "the events of before are due again")
	}
	require.Equal(t, 3, sent)
}
