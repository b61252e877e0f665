package endpoint_test

import (
	"crypto/ecdh"
	"encoding/binary"
	"fmt"
	"net/netip"
	"testing"

	"github.com/ackbits/ackbits"
	"github.com/ackbits/ackbits/endpoint"
)

// crowd returns a server with n peers, and a datagram of each client.
func crowd(b *testing.B, n int) (*endpoint.Server, *ackbits.ManualClock, []packet, []*endpoint.Client) {
	var clock ackbits.ManualClock
	s, err := endpoint.NewServer(endpoint.ServerConfig{Key: serverKey, Clock: &clock, Rand: seeded(1), MaxPeers: n})
	if err != nil {
		b.Fatal(err)
	}
	clients := make([]*endpoint.Client, n)
	packets := make([]packet, n)
	buf := make([]byte, 0, ackbits.MaxDatagramSize)
	for i := range clients {
		c, err := endpoint.NewClient(endpoint.ClientConfig{ServerKey: serverKey.PublicKey(), Clock: &clock, Rand: seeded(2 + i)})
		if err != nil {
			b.Fatal(err)
		}
		join(s, c, host(i), buf)
		if c.Session() == nil {
			b.Fatal("client ", i, " has not joined")
		}
		clients[i] = c
		packets[i].from = host(i)
		clock.Advance(1e6)
	}
	return s, &clock, packets, clients
}

// join carries a handshake through.
func join(s *endpoint.Server, c *endpoint.Client, from netip.AddrPort, buf []byte) {
	for range 2 {
		for d := range c.Due(buf) {
			s.Receive(from, d)
		}
		for to, d := range s.Due(buf) {
			if to == from {
				c.Receive(d)
			}
		}
	}
	for _, ok := s.NextEvent(); ok; _, ok = s.NextEvent() {
	}
}

// What a join takes, both sides' cryptography and sessions included, and at the
// server alone.
func BenchmarkJoin(b *testing.B) {
	for _, side := range []string{"both", "server"} {
		b.Run(side, func(b *testing.B) {
			b.ReportAllocs()
			var clock ackbits.ManualClock
			gate, err := endpoint.NewGate(endpoint.ServerConfig{Key: serverKey, Clock: &clock, Rand: seeded(1), MaxPeers: 1 << 20, MaxPerAddress: 1 << 20})
			if err != nil {
				b.Fatal(err)
			}
			buf, out := make([]byte, 0, ackbits.MaxDatagramSize), make([]byte, 0, ackbits.MaxDatagramSize)
			from := host(1)
			for i := 0; b.Loop(); i++ {
				if side == "server" {
					b.StopTimer()
				}
				c, err := endpoint.NewClient(endpoint.ClientConfig{ServerKey: serverKey.PublicKey(), Clock: &clock, Rand: seeded(2 + i)})
				if err != nil {
					b.Fatal(err)
				}
				for d := range c.Due(buf) {
					answer, _ := gate.Receive(from, d, out)
					c.Receive(answer)
					break // the Hello with the cookie is the part that counts
				}
				shown := false
				for d := range c.Due(buf) {
					shown = true
					if side == "server" {
						b.StartTimer()
					}
					answer, a := gate.Receive(from, d, out)
					if a == nil {
						b.Fatal("not admitted")
					}
					if _, err := ackbits.NewSession(a.Config); err != nil {
						b.Fatal(err)
					}
					if side != "server" {
						c.Receive(answer)
					}
				}
				if !shown {
					b.Fatalf("no cookie at join %d: %+v", i, gate.Stats())
				}
				clock.Advance(1e6)
			}
		})
	}
}

// The least that a server's part of a join can take: two secrets and a key.
func BenchmarkJoinByHand(b *testing.B) {
	client, err := ecdh.X25519().NewPrivateKey(make([]byte, 32))
	if err != nil {
		b.Fatal(err)
	}
	seed := make([]byte, 32)
	for b.Loop() {
		seed[0]++
		ephemeral, _ := ecdh.X25519().NewPrivateKey(seed)
		ephemeral.ECDH(client.PublicKey())
		serverKey.ECDH(client.PublicKey())
	}
}

// What a stranger's Hello takes: a Challenge.
func BenchmarkChallenge(b *testing.B) {
	gate, err := endpoint.NewGate(endpoint.ServerConfig{Key: serverKey})
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	hello, out := make([]byte, 640), make([]byte, 0, 640)
	hello[0], hello[1], hello[2], hello[40] = 0x0E, 1, 1, 1
	for b.Loop() {
		gate.Receive(host(1), hello, out)
	}
}

// What a datagram of a session takes on its way through the table: the server's
// Receive, beside the same with a bare map from tokens to sessions.
func BenchmarkDatagram(b *testing.B) {
	for _, n := range []int{10, 1000} {
		for _, way := range []string{"server", "bare map"} {
			b.Run(fmt.Sprintf("%s of %d", way, n), func(b *testing.B) {
				s, clock, packets, clients := crowd(b, n)
				bare := map[uint64]*ackbits.Session{}
				for p := range s.Peers() {
					d, _, _ := p.Session().AppendDatagram(nil, ackbits.TypeSnapshot, nil)
					bare[binary.LittleEndian.Uint64(d[2:])] = p.Session()
				}
				b.ReportAllocs()
				payload := make([]byte, 100)
				i, rounds := 0, 0
				for b.Loop() {
					p := &packets[i]
					p.data, _, _ = clients[i].Session().AppendDatagram(p.data[:0], ackbits.TypeInput, payload)
					if way == "server" {
						if in, err := s.Receive(p.from, p.data); err != nil || in.Peer == nil {
							b.Fatal(err)
						}
					} else {
						h, _, _ := ackbits.ParseHeader(p.data)
						if _, err := bare[h.Token].Receive(p.data); err != nil {
							b.Fatal(err)
						}
					}
					if i++; i == n {
						i = 0
						clock.Advance(1e6)
						if rounds++; rounds%1000 == 0 {
							b.StopTimer()
							acknowledge(s, clients)
							b.StartTimer()
						}
					}
				}
			})
		}
	}
}

// acknowledge has every peer answer, so that the clients' sessions live on.
func acknowledge(s *endpoint.Server, clients []*endpoint.Client) {
	i := 0
	for p := range s.Peers() {
		if d, _, err := p.Session().AppendDatagram(nil, ackbits.TypeSnapshot, nil); err == nil {
			clients[i].Receive(d)
		}
		i++
	}
}

// What Due takes for 1,000 peers that have nothing to say.
func BenchmarkDueOfNothing(b *testing.B) {
	s, _, _, _ := crowd(b, 1000)
	buf := make([]byte, 0, ackbits.MaxDatagramSize)
	for range s.Due(buf) {
	}
	b.ReportAllocs()
	for b.Loop() {
		for range s.Due(buf) {
			b.Fatal("something is due")
		}
	}
}
