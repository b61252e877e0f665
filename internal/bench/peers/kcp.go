package peers

import (
	"fmt"
	"time"
	_ "unsafe" // for go:linkname

	"github.com/xtaci/kcp-go/v5"
)

// kcpEpoch is the moment kcp-go counts its process-wide time from. Moving it
// back is moving KCP's time on; it still ticks with the real clock as well,
// which KCP reads several times a datagram, and those readings are part of its
// cost.
//
//go:linkname kcpEpoch github.com/xtaci/kcp-go/v5.refTime
var kcpEpoch time.Time

func advanceKCP(d time.Duration) { kcpEpoch = kcpEpoch.Add(-d) }

// KCP returns the state machine of kcp-go at its fast settings. With ackNow an
// acknowledgement leaves at each datagram, else on the receiver's next tick.
// The ends of all pairs share one time, the process's.
func KCP(ackNow bool) Machine {
	return func(clock *Clock, a, b Wire) (End, End, error) {
		clock.Follow(advanceKCP)
		return newKCP(a, ackNow), newKCP(b, ackNow), nil
	}
}

type kcpEnd struct {
	*kcp.KCP
	wire   Wire
	ackNow bool
}

func newKCP(wire Wire, ackNow bool) *kcpEnd {
	k := kcp.NewKCP(1, func(buf []byte, size int) { wire.Datagram(buf[:size]) })
	k.NoDelay(1, 10, 2, 1)
	k.WndSize(256, 256)
	return &kcpEnd{k, wire, ackNow}
}

func (e *kcpEnd) Send(msg []byte) error {
	if r := e.KCP.Send(msg); r < 0 {
		return fmt.Errorf("peers: kcp Send: %d", r)
	}
	return nil
}

func (e *kcpEnd) Receive(datagram []byte) error {
	if r := e.Input(datagram, kcp.IKCP_PACKET_REGULAR, e.ackNow); r < 0 {
		return fmt.Errorf("peers: kcp Input: %d", r)
	}
	for {
		n := e.Recv(e.wire.Buf)
		if n < 0 {
			return nil
		}
		e.wire.Message(e.wire.Buf[:n])
	}
}

func (e *kcpEnd) Tick() error  { e.Update(); return nil }
func (e *kcpEnd) Unacked() int { return e.WaitSnd() }

func kcpSubjects() []Subject {
	const does = "no encryption; reads the process's clock itself; congestion control off, as its fast settings have it"
	const module = "github.com/xtaci/kcp-go/v5"
	now, tick := KCP(true), KCP(false)
	return []Subject{{
		Name:     "kcp-go core",
		Module:   module,
		Settings: "`kcp.KCP`, NoDelay(1, 10, 2, 1), WndSize(256, 256), ack no-delay, Update each tick",
		Does:     does,
		New:      now.open,
		Idle:     now.idle,
	}, {
		Name:     "kcp-go core, acks on the tick",
		Module:   module,
		Settings: "the same without ack no-delay",
		Does:     does,
		New:      tick.open,
		Idle:     tick.idle,
	}}
}
