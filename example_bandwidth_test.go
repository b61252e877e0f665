package ackbits_test

import (
	"fmt"
	"time"

	"github.com/ackbits/ackbits"
	"github.com/ackbits/ackbits/simnet"
)

// What one player costs on the wire, sealed, IPv4 and UDP headers included: 60 inputs of
// 20 bytes and 20 snapshots of 200 bytes a second, and beside them events of 64 bytes
// each way. The last line is of loops that poll on ticks of 60 Hz: between two snapshots
// the server's sends a heartbeat, early, since the next tick would be late for it.
func ExampleStats_bandwidth() {
	for _, c := range []struct {
		events int // a second, each way
		loss   float64
		poll   time.Duration
	}{
		{0, 0, 0}, {5, 0, 0}, {5, 0.05, 0}, {20, 0, 0}, {20, 0.05, 0}, {0, 0, time.Second / 60},
	} {
		up, down := bandwidth(c.events, c.loss, c.poll)
		fmt.Printf("%d events a second, %.0f %% lost: %.1f kB/s up, %.1f down\n", c.events, 100*c.loss, up, down)
	}
	// Output:
	// 0 events a second, 0 % lost: 4.9 kB/s up, 5.2 down
	// 5 events a second, 0 % lost: 5.3 kB/s up, 5.6 down
	// 5 events a second, 5 % lost: 5.6 kB/s up, 6.3 down
	// 20 events a second, 0 % lost: 6.3 kB/s up, 6.6 down
	// 20 events a second, 5 % lost: 7.7 kB/s up, 9.4 down
	// 0 events a second, 0 % lost: 4.9 kB/s up, 6.5 down
}

// bandwidth plays a minute and returns how many kB a second the client and the server sent.
func bandwidth(events int, loss float64, poll time.Duration) (up, down float64) {
	clock := new(ackbits.ManualClock)
	clock.Set(time.Unix(0, 0))
	toServer, toClient, err := keys([]byte("a secret"), []byte("token 7"))
	if err != nil {
		panic(err)
	}
	cfg := ackbits.Config{Token: 7, Clock: clock, Adaptive: true, Bundle: true, PollInterval: poll, Seal: toServer, Open: toClient}
	client := narrowEnd{must(ackbits.NewSession(cfg))}
	cfg.Seal, cfg.Open = cfg.Open, cfg.Seal
	server := narrowEnd{must(ackbits.NewSession(cfg))}
	link := simnet.Config{Delay: 30 * time.Millisecond, Jitter: 5 * time.Millisecond, Loss: loss}
	pair := simnet.NewPair(1, clock, client, server, link, link)
	state := func(s *ackbits.Session, to simnet.Direction, size int) func() {
		return func() {
			if datagram, _, err := s.AppendDatagram(nil, ackbits.TypeSnapshot, make([]byte, size)); err == nil {
				pair.Send(to, datagram)
			}
		}
	}
	if events > 0 {
		pair.Every(events, time.Second, func() {
			must(client.Send(make([]byte, 64)))
			must(server.Send(make([]byte, 64)))
		})
	}
	pair.Every(60, time.Second, state(client.Session, simnet.AToB, 20))
	pair.Every(20, time.Second, state(server.Session, simnet.BToA, 200))
	pair.Run(time.Minute)
	perSecond := func(s ackbits.Stats) float64 {
		return float64(s.BytesSent+simnet.UDPOverIPv4*s.DatagramsSent) / 60 / 1000
	}
	return perSecond(client.Stats()), perSecond(server.Stats())
}
