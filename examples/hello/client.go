package main

import (
	"context"
	"errors"
	"net"
	"time"

	"github.com/ackbits/ackbits"
	"github.com/ackbits/ackbits/endpoint"
)

// README: begin hello-client

// join plays at the server that conn is connected to, until ctx is cancelled or the
// session ends. It returns why it ended.
func join(ctx context.Context, conn *net.UDPConn, cfg endpoint.ClientConfig, me *player) error {
	client, err := endpoint.NewClient(cfg)
	if err != nil {
		return err
	}
	in, out := make([]byte, ackbits.MaxDatagramSize+1), make([]byte, ackbits.MaxDatagramSize)
	for next := time.Now(); client.Err() == nil; {
		conn.SetReadDeadline(time.Now().Add(max(time.Until(next), time.Millisecond))) // in the past, it reads nothing
		if n, err := conn.Read(in); err == nil {
			incoming, _ := client.Receive(in[:n])
			for _, event := range incoming.Events {
				me.hear(string(event.Data))
			}
			if incoming.Latest && incoming.Type == ackbits.TypeSnapshot {
				me.see(incoming.Payload)
			}
		} else if errors.Is(err, net.ErrClosed) {
			return err
		}
		session := client.Session()               // nil until the server has admitted us
		if now := time.Now(); !now.Before(next) { // a tick
			next = now.Add(tick)
			me.move()
			if session != nil {
				if datagram, _, err := session.AppendDatagram(out[:0], ackbits.TypeInput, []byte{me.place}); err == nil {
					conn.Write(datagram) // state: sent once, the next one replaces it
				}
			}
			if session != nil && session.Room() > 0 {
				if line := me.typed(); line != "" {
					session.Send([]byte(line)) // an event: delivered exactly once
				}
			}
		}
		if ctx.Err() != nil && session == nil {
			return ctx.Err()
		} else if ctx.Err() != nil {
			session.Shutdown(time.Second)
		}
		for datagram := range client.Due(out) { // the handshake, events, acknowledgements
			conn.Write(datagram)
		}
	}
	return client.Err()
}

// README: end hello-client
