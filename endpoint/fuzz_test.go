package endpoint_test

import (
	"bytes"
	"testing"
	"time"

	"github.com/ackbits/ackbits/endpoint"
	"github.com/stretchr/testify/require"
)

// corpus adds one message of each kind, and a session's datagram.
func corpus(f *testing.F) {
	f.Add([]byte{})
	for _, v := range given() {
		v.play(&testing.T{})
		for _, m := range []bits{v.Bare, v.Challenge, v.Sealed, v.Accept, v.Refuse, v.Datagram, v.Probe, v.ProbeReply, v.Reset} {
			f.Add([]byte(m))
		}
	}
}

// FuzzServer hands bytes to a server at which one client has joined and another
// has its Hello with a cookie in flight. They draw less than they are, and change nothing.
func FuzzServer(f *testing.F) {
	corpus(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		w, c, peer := joined(t, endpoint.ServerConfig{})
		second := w.join("198.51.100.8:1", knowing("bob"))
		w.flush()
		w.deliver(w.take()[0])
		w.flush()
		w.deliver(w.take()[0])
		w.clock.Advance(time.Second) // rates are no excuse
		for _, from := range []string{home, elsewhere, "198.51.100.8:1"} {
			in, err := w.server.Receive(address(from), bytes.Clone(data))
			require.Zero(t, in)
			if len(data) < 26 {
				require.Error(t, err)
			}
			drawn := 0
			for to, d := range w.server.Due(w.buf[:]) {
				if kindOf(d) != "session" {
					require.Equal(t, address(from), to)
					drawn += len(d)
				}
			}
			require.LessOrEqual(t, drawn, len(data))
		}
		s := w.server.Stats()
		require.Equal(t, uint64(1), s.Joins)
		require.Equal(t, 1, s.Peers)
		require.Zero(t, s.Moves)
		require.Equal(t, address(home), peer.Addr())
		w.run(300 * time.Millisecond)
		require.NoError(t, c.Err())
		require.NotNil(t, second.Session(), "and it joins as if nothing had been")
	})
}

// FuzzClient hands bytes to a client that has heard nothing, one that has a
// cookie, and one that has joined. They change nothing.
func FuzzClient(f *testing.F) {
	corpus(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		w := newWorld(t, endpoint.ServerConfig{})
		c := w.join(home, knowing("ann"))
		for range 3 {
			in, _ := c.Receive(bytes.Clone(data))
			require.Zero(t, in)
			require.NoError(t, c.Err())
			w.flush()
			for _, p := range w.take() {
				w.deliver(p)
			}
			w.flush()
			for _, p := range w.take() {
				w.deliver(p)
			}
		}
		require.NotNil(t, c.Session())
		in, _ := c.Receive(bytes.Clone(data))
		require.Zero(t, in)
		w.run(100 * time.Millisecond)
		require.NoError(t, c.Err())
		require.NoError(t, w.events[0].Peer.Session().Err())
	})
}
