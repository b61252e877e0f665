package main

import (
	"context"
	"crypto/ecdh"
	"errors"
	"net"
	"time"

	"github.com/ackbits/ackbits"
	"github.com/ackbits/ackbits/endpoint"
)

// README: begin hello-server

// serve runs the game on an open port until ctx is cancelled and everybody has left.
func serve(ctx context.Context, conn *net.UDPConn, key *ecdh.PrivateKey, host *player) error {
	server, err := endpoint.NewServer(endpoint.ServerConfig{Key: key, MaxPeers: 100})
	if err != nil {
		return err
	}
	tellAll := func(line string) {
		host.hear(line)
		for peer := range server.Peers() {
			if s := peer.Session(); s.Room() > 0 { // else it is 256 lines behind
				s.Send([]byte(line)) // an event: delivered exactly once
			}
		}
	}
	in, out := make([]byte, ackbits.MaxDatagramSize+1), make([]byte, ackbits.MaxDatagramSize)
	for next := time.Now(); ctx.Err() == nil || anybody(server.Peers()); {
		conn.SetReadDeadline(time.Now().Add(max(time.Until(next), time.Millisecond))) // in the past, it reads nothing
		if n, from, err := conn.ReadFromUDPAddrPort(in); err == nil {
			incoming, _ := server.Receive(from, in[:n]) // empty if it was of a handshake, or forged
			for _, event := range incoming.Events {
				tellAll(said(nameOf(incoming.Peer), string(event.Data)))
			}
			if incoming.Latest && incoming.Type == ackbits.TypeInput && len(incoming.Payload) == 1 {
				incoming.Peer.Value = incoming.Payload[0] // the place of its dot
			}
		} else if errors.Is(err, net.ErrClosed) {
			return err
		}
		for e, ok := server.NextEvent(); ok; e, ok = server.NextEvent() {
			tellAll(news(e)) // somebody has joined, moved to another address or left
		}
		if now := time.Now(); !now.Before(next) { // a tick
			next = now.Add(tick)
			if line := host.typed(); line != "" {
				tellAll(said(host.name, line))
			}
			dots := host.play(server.Peers())
			for peer := range server.Peers() {
				if datagram, _, err := peer.Session().AppendDatagram(out[:0], ackbits.TypeSnapshot, dots); err == nil {
					conn.WriteToUDPAddrPort(datagram, peer.Addr()) // state: sent once, the next one replaces it
				}
			}
		}
		if ctx.Err() != nil {
			server.Shutdown(time.Second)
		}
		for to, datagram := range server.Due(out) { // handshakes, events, acknowledgements
			conn.WriteToUDPAddrPort(datagram, to)
		}
	}
	return nil
}

// README: end hello-server
