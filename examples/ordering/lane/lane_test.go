package lane

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ackbits/ackbits"
	"github.com/ackbits/ackbits/simnet"
)

// peer is a Conn on the simulated network that keeps what arrives.
type peer struct {
	*Conn
	events []string
	others int
}

func (p *peer) Receive(datagram []byte) {
	event, ok, in, err := p.Conn.Receive(datagram)
	if ok {
		p.events = append(p.events, string(event))
	}
	if err == nil && in.Type == ackbits.TypeSnapshot {
		p.others++
	}
}

func open(t *testing.T, lane ackbits.LaneConfig, link simnet.Config) (a, b *peer, pair *simnet.Pair) {
	clock := new(ackbits.ManualClock)
	clock.Set(time.Unix(0, 0))
	var peers [2]*peer
	for i := range peers {
		c, err := New(ackbits.Config{Token: 1, Clock: clock}, lane)
		require.NoError(t, err)
		peers[i] = &peer{Conn: c}
	}
	return peers[0], peers[1], simnet.NewPair(1, clock, peers[0], peers[1], link, link)
}

func TestBothDirectionsKeepTheirOrder(t *testing.T) {
	link := simnet.Config{Delay: 30 * time.Millisecond, Jitter: 40 * time.Millisecond, Loss: 0.2, Duplicate: 0.1}
	a, b, pair := open(t, ackbits.LaneConfig{}, link)
	var sentA, sentB []string
	pair.Every(20, time.Second, func() {
		if len(sentA) == 200 {
			return
		}
		sentA, sentB = append(sentA, fmt.Sprint("a", len(sentA))), append(sentB, fmt.Sprint("b", len(sentB)))
		require.NoError(t, a.Send([]byte(sentA[len(sentA)-1]), ackbits.Critical))
		require.NoError(t, b.Send([]byte(sentB[len(sentB)-1]), ackbits.Critical))
	})
	require.True(t, pair.RunUntil(func() bool {
		return len(sentA) == 200 && a.InFlight() == 0 && b.InFlight() == 0
	}, 10*time.Minute))
	require.Equal(t, sentA, b.events)
	require.Equal(t, sentB, a.events)
}

func TestOtherDatagramsPass(t *testing.T) {
	a, b, pair := open(t, ackbits.LaneConfig{}, simnet.Config{})
	datagram, _, err := a.AppendDatagram(nil, ackbits.TypeSnapshot, []byte("state"))
	require.NoError(t, err)
	pair.Send(simnet.AToB, datagram)
	pair.Run(time.Second)
	require.Equal(t, 1, b.others)
	require.Empty(t, b.events)
}

func TestEmptyAndLargestEvents(t *testing.T) {
	a, b, pair := open(t, ackbits.LaneConfig{}, simnet.Config{})
	largest := make([]byte, a.MaxPayload()-idSize)
	require.NoError(t, a.Send(nil, ackbits.Critical))
	require.NoError(t, a.Send(largest, ackbits.Critical))
	require.ErrorIs(t, a.Send(append(largest, 0), ackbits.Critical), ackbits.ErrEventTooLarge)
	pair.Run(time.Second)
	require.Equal(t, []string{"", string(largest)}, b.events)
	require.Zero(t, a.InFlight())
}

func TestMalformedPayloadsAreNotAcknowledged(t *testing.T) {
	a, b, _ := open(t, ackbits.LaneConfig{}, simnet.Config{})
	for _, bad := range []struct {
		t       ackbits.Type
		payload string
	}{{TypeEvent, "abc"}, {TypeAck, ""}, {TypeAck, "abcde"}} {
		datagram, _, err := a.AppendDatagram(nil, bad.t, []byte(bad.payload))
		require.NoError(t, err)
		_, ok, _, err := b.Conn.Receive(datagram)
		require.ErrorIs(t, err, ackbits.ErrRejected)
		require.False(t, ok)
	}
	require.Equal(t, uint64(3), b.Stats().Rejected)
}

// An acknowledgement of what was never sent can only be forged.
func TestForgedAck(t *testing.T) {
	a, b, _ := open(t, ackbits.LaneConfig{}, simnet.Config{})
	require.NoError(t, b.Send([]byte("x"), ackbits.Critical))
	datagram, _, err := a.AppendDatagram(nil, TypeAck, []byte{9, 0, 0, 0})
	require.NoError(t, err)
	_, _, _, err = b.Conn.Receive(datagram)
	require.ErrorIs(t, err, ackbits.ErrAck)
	require.Equal(t, 1, b.InFlight())
}

func TestTheLaneEndsTheConnection(t *testing.T) {
	full, _, _ := open(t, ackbits.LaneConfig{SoftLimit: 1, HardLimit: 3}, simnet.Config{Loss: 1})
	require.NoError(t, full.Send([]byte("1"), ackbits.Droppable))
	require.ErrorIs(t, full.Send([]byte("2"), ackbits.Droppable), ackbits.ErrLaneFull)
	require.NoError(t, full.Err())
	require.NoError(t, full.Send([]byte("2"), ackbits.Critical))
	require.ErrorIs(t, full.Send([]byte("3"), ackbits.Critical), ackbits.ErrLaneOverflow)
	require.ErrorIs(t, full.Err(), ackbits.ErrLaneOverflow)

	a, _, pair := open(t, ackbits.LaneConfig{}, simnet.Config{Loss: 1})
	pair.Run(10 * time.Second)
	require.ErrorIs(t, a.Err(), ackbits.ErrTimeout)
}

func TestConfigIsChecked(t *testing.T) {
	_, err := New(ackbits.Config{Heartbeat: -1}, ackbits.LaneConfig{})
	require.ErrorIs(t, err, ackbits.ErrConfig)
	_, err = New(ackbits.Config{}, ackbits.LaneConfig{ResendBudget: -1})
	require.ErrorIs(t, err, ackbits.ErrConfig)
}

func TestAcceptIsAskedAboutTheRest(t *testing.T) {
	asked := 0
	cfg := ackbits.Config{Accept: func(h ackbits.Header, _ []byte) error {
		require.Equal(t, ackbits.TypeSnapshot, h.Type)
		asked++
		return nil
	}}
	b, err := New(cfg, ackbits.LaneConfig{})
	require.NoError(t, err)
	a, err := New(ackbits.Config{}, ackbits.LaneConfig{})
	require.NoError(t, err)
	require.NoError(t, a.Send([]byte("x"), ackbits.Critical))
	datagram, _, err := a.AppendDatagram(nil, ackbits.TypeSnapshot, nil)
	require.NoError(t, err)
	_, _, _, err = b.Receive(datagram)
	require.NoError(t, err)
	a.Due(func(datagram []byte) { _, _, _, err = b.Receive(datagram) })
	require.NoError(t, err)
	require.Equal(t, 1, asked)
}
