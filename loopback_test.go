package ackbits

import (
	"errors"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// These are the tests on real sockets and the real clock.

// TestLoopOverASlowSocket: the loop of the README between two ends on loopback, one
// of which takes a millisecond for each datagram that it writes, with a full window
// of the largest events. It ends within seconds, however slow the machine is.
func TestLoopOverASlowSocket(t *testing.T) {
	var conns [2]*net.UDPConn
	for i := range conns {
		conn, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
		require.NoError(t, err)
		defer conn.Close()
		conns[i] = conn
	}
	turn := func(s *Session, i int, writing time.Duration) (events int) {
		var in, out [MaxDatagramSize + 1]byte
		flush := func() {
			for datagram := range s.Due(out[:]) {
				time.Sleep(writing)
				conns[i].WriteToUDPAddrPort(datagram, conns[1-i].LocalAddr().(*net.UDPAddr).AddrPort())
			}
		}
		conns[i].SetReadDeadline(time.Now().Add(time.Millisecond))
		for n, err := conns[i].Read(in[:]); err == nil; n, err = conns[i].Read(in[:]) {
			incoming, _ := s.Receive(in[:n])
			events += len(incoming.Events)
			flush()
		}
		flush()
		return events
	}
	slow, err := NewSession(Config{Timeout: 3 * time.Second})
	require.NoError(t, err)
	quick, err := NewSession(Config{Timeout: 3 * time.Second})
	require.NoError(t, err)
	got, stop := make(chan int), make(chan bool)
	go func() {
		n := 0
		for {
			select {
			case <-stop:
				got <- n
				return
			default:
				n += turn(quick, 1, 0)
			}
		}
	}()
	for range 256 {
		_, err := slow.Send(make([]byte, MaxEventSize))
		require.NoError(t, err)
	}
	for began := time.Now(); slow.InFlight() > 0 && time.Since(began) < 10*time.Second; {
		turn(slow, 0, time.Millisecond)
		require.NoError(t, slow.Err())
	}
	close(stop)
	require.Equal(t, 256, <-got)
	require.Zero(t, slow.InFlight())
}

// lucaspoffo/renet#181, teeworlds/teeworlds#2824: "as long as there is a packet"
// took as long as somebody sent. An expired deadline ends Read, and so the turn.
func TestScarSpammyPeerHoldsTheLoop(t *testing.T) {
	conn, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	require.NoError(t, err)
	defer conn.Close()
	spammer, err := net.DialUDP("udp", nil, conn.LocalAddr().(*net.UDPAddr))
	require.NoError(t, err)
	go func() {
		h := Header{Type: TypeInput, Ack: nothingYet}
		for !errors.Is(write(spammer, h.AppendTo(nil)), net.ErrClosed) {
			h.Sequence++
		}
	}()
	defer spammer.Close()
	s, err := NewSession(Config{})
	require.NoError(t, err)
	var in, out [MaxDatagramSize + 1]byte
	for range 30 {
		began, read := time.Now(), 0
		conn.SetReadDeadline(began.Add(time.Millisecond))
		for n, err := conn.Read(in[:]); err == nil; n, err = conn.Read(in[:]) {
			s.Receive(in[:n])
			for range s.Due(out[:]) {
			}
			if read++; read%1000 == 0 {
				require.Less(t, time.Since(began), 5*time.Second, "a turn does not end")
			}
		}
	}
	require.NotZero(t, s.Stats().DatagramsReceived)
}

func write(conn *net.UDPConn, datagram []byte) error {
	_, err := conn.Write(datagram)
	return err
}
