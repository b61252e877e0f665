package client_test

import (
	"bytes"
	"errors"
	"io"
	"testing"
	"time"

	"github.com/ackbits/ackbits/examples/arena/client"
	"github.com/ackbits/ackbits/examples/arena/game"
	"github.com/ackbits/ackbits/examples/arena/proto"
	"github.com/ackbits/ackbits/transfer"
	"github.com/stretchr/testify/require"
)

// joinFor takes a client that wants the map through the handshake.
func (h *harness) joinFor(level *client.Level) {
	h.client, h.server, h.sent = h.newClient(level), nil, nil
	h.join()
	require.Equal(h, level != nil, h.hello.Map)
	var err error
	h.files, err = transfer.New(h.server, transfer.Config{Type: proto.TypeMap, Clock: &h.clock})
	require.NoError(h, err)
}

// run lets client and server exchange all that is due until done, for so long at most.
func (h *harness) run(limit time.Duration, done func() bool) (ok bool) {
	for end := h.clock.Now().Add(limit); h.clock.Now().Before(end); h.clock.Advance(time.Millisecond) {
		if done() {
			return true
		}
		h.client.Tick(0)
		for _, datagram := range h.take() {
			_, _ = h.server.Receive(datagram) // after its end, too
		}
		for o, ok := h.server.NextOutcome(); ok; o, ok = h.server.NextOutcome() {
			h.files.Outcome(o)
		}
		for datagram := range h.files.Due(nil) {
			h.client.Receive(datagram)
		}
	}
	return false
}

// send offers the client a file and returns how that ended, at both ends.
func (h *harness) send(name string, file io.ReaderAt, size int64) (sender, receiver error) {
	out, err := h.files.Send([]byte(name), file, size)
	require.NoError(h, err)
	require.True(h, h.run(10*time.Second, func() bool { return out.Err() != nil || h.client.Over() != nil }))
	return out.Err(), h.client.Over()
}

// lie reads as a file of zeros that is another one each time.
type lie struct{ reads byte }

func (l *lie) ReadAt(b []byte, _ int64) (int, error) {
	l.reads++
	for i := range b {
		b[i] = l.reads
	}
	return len(b), nil
}

// A server gets nothing stored but one map, of the one size, and nothing that is no map
// is ever played on.
func TestHostileMap(t *testing.T) {
	ground := game.Generate(3).Bytes()
	h := newHarness(t)
	var level client.Level
	h.joinFor(&level)
	for _, size := range []int64{0, game.MapSize - 1, game.MapSize + 1, 4 * game.MapSize} {
		sender, receiver := h.send(proto.MapName, &lie{}, size)
		require.NoError(t, receiver)
		require.ErrorIs(t, sender, transfer.ErrRefused)
		h.joinFor(&level)
	}
	sender, receiver := h.send("../../etc/passwd", bytes.NewReader(ground), game.MapSize)
	require.ErrorIs(t, sender, transfer.ErrRefused)
	require.NoError(t, receiver)
	require.Nil(t, level.Arriving(), "no memory was taken")

	h.joinFor(&level)
	_, receiver = h.send(proto.MapName, bytes.NewReader(make([]byte, game.MapSize)), game.MapSize)
	require.ErrorIs(t, receiver, client.ErrMap, "it arrived, and is no map")
	require.ErrorIs(t, receiver, game.ErrMap)
	require.False(t, client.Lost(receiver), "another attempt does not help")
	require.Nil(t, level.Map())

	h.joinFor(&level)
	_, receiver = h.send(proto.MapName, &lie{}, game.MapSize)
	require.ErrorIs(t, receiver, client.ErrMap)
	require.ErrorIs(t, receiver, transfer.ErrDigest)
	require.Nil(t, level.Map())

	h.joinFor(&level)
	sender, receiver = h.send(proto.MapName, bytes.NewReader(ground), game.MapSize)
	require.NoError(t, receiver)
	require.Equal(t, io.EOF, sender)
	require.Equal(t, ground, level.Map().Bytes())

	sender, receiver = h.send(proto.MapName, bytes.NewReader(ground), game.MapSize)
	require.False(t, errors.Is(sender, io.EOF), "one map is enough")
	require.NoError(t, receiver)
}

// Who wants no map is sent none, whatever the server does.
func TestMapUnwanted(t *testing.T) {
	h := newHarness(t)
	h.joinFor(nil)
	_, err := h.files.Send([]byte(proto.MapName), &lie{}, game.MapSize)
	require.NoError(t, err)
	require.False(t, h.run(time.Second, func() bool { return h.client.Over() != nil }))
	require.Nil(t, h.client.Map())
	require.Positive(t, h.client.Network().Rejected)
}
