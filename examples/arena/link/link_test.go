package link_test

import (
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/ackbits/ackbits/examples/arena/link"
	"github.com/stretchr/testify/require"
)

// echo answers every datagram with itself until the test ends.
func echo(t *testing.T) netip.AddrPort {
	conn, err := net.ListenUDP("udp4", net.UDPAddrFromAddrPort(netip.MustParseAddrPort("127.0.0.1:0")))
	require.NoError(t, err)
	t.Cleanup(func() { conn.Close() })
	go func() {
		buf := make([]byte, 2048)
		for {
			n, from, err := conn.ReadFromUDPAddrPort(buf)
			if err != nil {
				return
			}
			conn.WriteToUDPAddrPort(buf[:n], from)
		}
	}()
	return conn.LocalAddr().(*net.UDPAddr).AddrPort()
}

func dial(t *testing.T, conditions link.Conditions) *link.Conn {
	c, err := link.Dial(netip.Addr{}, echo(t), conditions, 1)
	require.NoError(t, err)
	t.Cleanup(func() { c.Close() })
	return c
}

// wait polls the link until something arrives, and returns how long it took.
func wait(c *link.Conn, patience time.Duration) (datagram string, took time.Duration) {
	for start := time.Now(); time.Since(start) < patience; time.Sleep(time.Millisecond) {
		c.Flush(time.Now())
		if b, ok := c.Receive(time.Now(), nil); ok {
			return string(b), time.Since(start)
		}
	}
	return "", patience
}

func TestDelay(t *testing.T) {
	c := dial(t, link.Conditions{RTT: 80 * time.Millisecond})
	c.Send(time.Now(), []byte("there and back"))
	got, took := wait(c, 2*time.Second)
	require.Equal(t, "there and back", got)
	require.Greater(t, took, 78*time.Millisecond)
}

func TestLossAndMove(t *testing.T) {
	c := dial(t, link.Conditions{Loss: 1})
	c.Send(time.Now(), []byte("lost"))
	got, _ := wait(c, 50*time.Millisecond)
	require.Empty(t, got)

	c.SetConditions(link.Conditions{})
	require.NoError(t, c.Move())
	c.Send(time.Now(), []byte("from another port"))
	got, _ = wait(c, 2*time.Second)
	require.Equal(t, "from another port", got)
}
