package client_test

import (
	"testing"
	"time"

	"github.com/ackbits/ackbits"
	"github.com/ackbits/ackbits/examples/arena/client"
	"github.com/ackbits/ackbits/examples/arena/game"
	"github.com/ackbits/ackbits/examples/arena/proto"
	"github.com/stretchr/testify/require"
)

const nonce, token = 77, 99

// harness is a client and the server's end of its session, made by hand.
type harness struct {
	*testing.T
	clock  ackbits.ManualClock
	client *client.Client
	server *ackbits.Session
	sent   [][]byte // by the client, not yet looked at
	buf    []byte
}

func newHarness(t *testing.T) *harness {
	h := &harness{T: t}
	h.clock.Set(time.Unix(1_700_000_000, 0))
	h.client = client.New(client.Config{Name: "Ann\x1b", Nonce: nonce, Clock: &h.clock,
		Send: func(datagram []byte) { h.sent = append(h.sent, append([]byte(nil), datagram...)) }})
	return h
}

// take returns what the client has sent since the last take.
func (h *harness) take() [][]byte {
	sent := h.sent
	h.sent = nil
	return sent
}

func (h *harness) takeConnect() proto.Connect {
	sent := h.take()
	require.Len(h, sent, 1)
	header, payload, err := ackbits.ParseHeader(sent[0])
	require.NoError(h, err)
	c, err := proto.ParseConnect(header, payload)
	require.NoError(h, err)
	return c
}

func (h *harness) accept(a proto.Accept) { h.client.Receive(proto.AppendAccept(nil, a)) }

// join takes the client through the handshake.
func (h *harness) join() {
	h.client.Tick(0)
	h.take()
	h.accept(proto.Accept{Nonce: nonce, Verdict: proto.Granted, Token: token})
	require.True(h, h.client.Playing())
	require.EqualValues(h, token, h.client.Token())
	var err error
	h.server, err = ackbits.NewSession(ackbits.Config{Token: token, Clock: &h.clock, Outcomes: true})
	require.NoError(h, err)
}

// snapshot sends one and returns its sequence.
func (h *harness) snapshot(number uint32, age uint8, base, state *game.State) uint16 {
	out, seq, err := h.server.AppendDatagram(nil, ackbits.TypeSnapshot, proto.AppendSnapshot(nil, number, age, base, state))
	require.NoError(h, err)
	h.client.Receive(out)
	return seq
}

// outcomes ticks the client and returns which datagrams of the server's it has
// acknowledged.
func (h *harness) outcomes() (delivered []uint16) {
	h.client.Tick(game.Fire)
	for _, datagram := range h.take() {
		_, err := h.server.Receive(datagram)
		require.NoError(h, err)
	}
	for {
		o, ok := h.server.NextOutcome()
		if !ok {
			return delivered
		}
		if o.Delivered {
			delivered = append(delivered, o.Sequence)
		}
	}
}

// A Connect is sent again until answered, with the cookie once there is one;
// answers to others are not ours.
func TestJoining(t *testing.T) {
	h := newHarness(t)
	h.client.Tick(0)
	require.Equal(t, proto.Connect{Nonce: nonce, Name: "Ann"}, h.takeConnect())
	h.clock.Advance(249 * time.Millisecond)
	h.client.Tick(0)
	require.Empty(t, h.take())
	h.clock.Advance(time.Millisecond)
	h.client.Tick(0)
	h.takeConnect()

	cookie := proto.Cookie{1, 2, 3}
	h.accept(proto.Accept{Nonce: nonce + 1, Verdict: proto.Granted, Token: 1})
	h.accept(proto.Accept{Nonce: nonce, Verdict: proto.Challenge, Cookie: cookie})
	require.Equal(t, cookie, h.takeConnect().Cookie)
	h.accept(proto.Accept{Nonce: nonce, Verdict: proto.Challenge, Cookie: cookie})
	require.Empty(t, h.take(), "a second copy of the challenge is no reason to ask again")
	h.accept(proto.Accept{Nonce: nonce, Verdict: proto.Busy})
	require.NoError(t, h.client.Over())
	require.False(t, h.client.Playing())
	h.accept(proto.Accept{Nonce: nonce, Verdict: proto.Granted, Token: token})
	require.True(t, h.client.Playing())
}

// It is told why it may not play, or gives up.
func TestNotJoining(t *testing.T) {
	for _, v := range []proto.Verdict{proto.Full, proto.TooMany, proto.ShuttingDown} {
		h := newHarness(t)
		h.client.Tick(0)
		h.accept(proto.Accept{Nonce: nonce, Verdict: v})
		require.ErrorIs(t, h.client.Over(), client.ErrRefused)
		require.ErrorContains(t, h.client.Over(), v.String())
	}
	h := newHarness(t)
	h.client.Tick(0)
	h.clock.Advance(10 * time.Second)
	h.client.Tick(0)
	require.ErrorIs(t, h.client.Over(), client.ErrNoAnswer)
}

// A snapshot whose baseline is missing is withheld: it is not acknowledged, so
// it never becomes a baseline, and the session goes on.
func TestMissingBaseline(t *testing.T) {
	h := newHarness(t)
	h.join()
	var empty, one, two game.State
	one[0] = game.Body{Present: true, X: 10}
	two[0] = game.Body{Present: true, X: 20}

	orphan := h.snapshot(5, 2, &one, &two)
	require.NotContains(t, h.outcomes(), orphan)
	require.EqualValues(t, 1, h.client.Network().Withheld)
	require.Equal(t, empty, *h.client.View().State)

	whole := h.snapshot(6, 0, &empty, &one)
	require.Contains(t, h.outcomes(), whole)
	require.Equal(t, one, *h.client.View().State)

	delta := h.snapshot(8, 2, &one, &two)
	require.Contains(t, h.outcomes(), delta)
	require.Equal(t, two, *h.client.View().State)

	// One that is late is kept as a baseline, but not shown.
	late := h.snapshot(7, 1, &one, &one)
	require.Contains(t, h.outcomes(), late)
	require.Equal(t, two, *h.client.View().State)

	// One too old to be kept would be a baseline that we do not have.
	h.snapshot(100, 0, &empty, &one)
	require.NotContains(t, h.outcomes(), h.snapshot(36, 0, &empty, &two))
	require.EqualValues(t, 2, h.client.Network().Withheld)
}

// Hostile payloads are dropped, and no type but Snapshot is the server's.
func TestHostileServer(t *testing.T) {
	h := newHarness(t)
	h.join()
	for _, typ := range []ackbits.Type{ackbits.TypeSnapshot, ackbits.TypeInput, ackbits.TypeAccept, 200} {
		out, seq, err := h.server.AppendDatagram(nil, typ, []byte{1, 2, 3})
		require.NoError(t, err)
		h.client.Receive(out)
		require.NotContains(t, h.outcomes(), seq)
	}
	require.EqualValues(t, 4, h.client.Network().Rejected)
	require.NoError(t, h.client.Over())
}

// Events make the names, the scores and the log; the end is told with what the
// server said about it.
func TestEventsAndEnd(t *testing.T) {
	h := newHarness(t)
	h.join()
	for _, e := range []proto.Event{
		{Kind: proto.Welcome, Slot: 4},
		{Kind: proto.Joined, Slot: 4, Text: "Ann"},
		{Kind: proto.Joined, Slot: 5, Text: "Bob"},
		{Kind: proto.Died, Slot: 5, By: 4},
		{Kind: proto.Scored, Slot: 4, Score: 1},
		{Kind: proto.Said, Slot: 5, Text: "ouch"},
		{Kind: proto.Left, Slot: 5, Text: "ackbits: peer left"},
		{Kind: proto.Closing, Text: "good night"},
	} {
		_, err := h.server.Send(proto.AppendEvent(nil, e))
		require.NoError(t, err)
	}
	h.server.Close()
	for datagram := range h.server.Due(h.buf) {
		h.client.Receive(datagram)
	}
	view := h.client.View()
	slot, ok := view.Me()
	require.True(t, ok)
	require.Equal(t, 4, slot)
	require.Equal(t, "Ann", view.Names[4])
	require.Empty(t, view.Names[5])
	require.EqualValues(t, 1, view.Scores[4])
	require.Equal(t, []string{"Ann joined", "Bob joined", "Ann shot Bob", "<Bob> ouch", "Bob left: ackbits: peer left", "server: good night"}, view.Log)
	require.ErrorIs(t, h.client.Over(), client.ErrGoodbye)
	require.ErrorIs(t, h.client.Over(), ackbits.ErrPeerLeft)
	require.ErrorContains(t, h.client.Over(), "good night")
	require.False(t, h.client.Say("too late"))
}

// Whoever leaves says goodbye three times, after what was still to be said.
func TestLeave(t *testing.T) {
	h := newHarness(t)
	h.join()
	require.True(t, h.client.Say("bye"))
	h.client.Leave()
	require.ErrorIs(t, h.client.Over(), ackbits.ErrClosed)
	sent := h.take()
	require.Len(t, sent, 4)
	for i, want := range []ackbits.Type{ackbits.TypeEvent, ackbits.TypeDisconnect, ackbits.TypeDisconnect, ackbits.TypeDisconnect} {
		header, _, err := ackbits.ParseHeader(sent[i])
		require.NoError(t, err)
		require.Equal(t, want, header.Type)
	}
	h.client.Tick(0)
	require.Empty(t, h.take())

	h = newHarness(t)
	h.client.Tick(0)
	h.client.Leave()
	require.ErrorIs(t, h.client.Over(), client.ErrLeft)
}
