package ackbits_test

import (
	"fmt"
	"time"

	"github.com/ackbits/ackbits"
	"github.com/ackbits/ackbits/simnet"
)

// snapshots decides how many snapshots a second a server sends one client: half as
// many while a queue stands on the way, and all of them again once there was none for
// a while, longer each time that it was too soon.
type snapshots struct {
	good, bad int // a second
	slowUntil time.Time
	patience  time.Duration
}

func (s *snapshots) rate(stats ackbits.Stats, now time.Time) int {
	if stats.QueueDelay > 40*time.Millisecond {
		if now.After(s.slowUntil) { // a new one
			s.patience = min(max(2*s.patience, 2*time.Second), time.Minute)
		}
		s.slowUntil = now.Add(s.patience)
	}
	if now.Before(s.slowUntil) {
		return s.bad
	}
	return s.good
}

// narrowEnd is an end of the link; what arrives is not looked at.
type narrowEnd struct{ *ackbits.Session }

func (e narrowEnd) Receive(datagram []byte) { _, _ = e.Session.Receive(datagram) }

func (e narrowEnd) Due(send func([]byte)) {
	for datagram := range e.Session.Due(make([]byte, ackbits.MaxDatagramSize)) {
		send(datagram)
	}
}

// A server that looks at Stats sends a client half of its snapshots while the link is
// too narrow for all, and comes back: here it carries 40 KB/s, for ten seconds 15, and
// the snapshots take 20.
func ExampleStats_queueDelay() {
	clock := new(ackbits.ManualClock)
	clock.Set(time.Unix(0, 0))
	cfg := ackbits.Config{Clock: clock, Adaptive: true, PollInterval: time.Second / 60}
	server, client := narrowEnd{must(ackbits.NewSession(cfg))}, narrowEnd{must(ackbits.NewSession(cfg))}
	wide := simnet.Config{Delay: 30 * time.Millisecond, Rate: 40_000, Queue: 20_000}
	narrow := wide
	narrow.Rate = 15_000
	p := simnet.NewPair(1, clock, server, client, wide, wide)
	p.At(10*time.Second, func() { p.Link(simnet.AToB).SetConfig(p.Now(), narrow) })
	p.At(20*time.Second, func() { p.Link(simnet.AToB).SetConfig(p.Now(), wide) })

	state, input := make([]byte, 315), make([]byte, 20)
	pace := snapshots{good: 60, bad: 30}
	tick, second := 0, 0
	p.Every(60, time.Second, func() {
		if tick++; tick%(60/pace.rate(server.Stats(), clock.Now())) == 0 {
			second++
			if datagram, _, err := server.AppendDatagram(nil, ackbits.TypeSnapshot, state); err == nil {
				p.Send(simnet.AToB, datagram)
			}
		}
		if datagram, _, err := client.AppendDatagram(nil, ackbits.TypeInput, input); err == nil {
			p.Send(simnet.BToA, datagram)
		}
	})
	for _, at := range []int{9, 15, 19, 35} {
		p.Run(time.Duration(at-1) * time.Second)
		second = 0
		p.Run(time.Duration(at) * time.Second)
		fmt.Printf("second %d: %d snapshots, a queue of %v\n", at, second, server.Stats().QueueDelay.Round(10*time.Millisecond))
	}
	// Output:
	// second 9: 60 snapshots, a queue of 0s
	// second 15: 30 snapshots, a queue of 20ms
	// second 19: 30 snapshots, a queue of 20ms
	// second 35: 60 snapshots, a queue of 0s
}
