package relay

import (
	"net"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// What any other program sends to the port is not for the session.
func TestSocketKnowsItsPeer(t *testing.T) {
	var sockets [3]*Socket
	for i := range sockets {
		s, err := newSocket()
		require.NoError(t, err)
		defer s.Close()
		sockets[i] = s
	}
	a, b, stranger := sockets[0], sockets[1], sockets[2]
	connect(a, b)
	stranger.peer = a.address()

	buf := make([]byte, 100)
	soon := time.Now().Add(10 * time.Second)
	stranger.Send([]byte("psst"))
	_, err := a.Receive(buf, soon)
	assert.ErrorIs(t, err, ErrStranger)
	b.Send([]byte("hello"))
	datagram, err := a.Receive(buf, soon)
	require.NoError(t, err)
	assert.Equal(t, "hello", string(datagram))

	_, err = a.Receive(buf, time.Now())
	assert.ErrorIs(t, err, os.ErrDeadlineExceeded)
	require.NoError(t, a.conn.Close())
	_, err = a.Receive(buf, soon)
	assert.ErrorIs(t, err, net.ErrClosed)
}
