package endpoint_test

import (
	"errors"
	"fmt"

	"github.com/ackbits/ackbits"
	"github.com/ackbits/ackbits/endpoint"
)

// The loop of a client. The connection's Read has a deadline of some milliseconds.
func ExampleClient() {
	var conn interface {
		Read([]byte) (int, error)
		Write([]byte) (int, error)
	}
	play := func(client *endpoint.Client, typed func() string) error {
		in, out := make([]byte, ackbits.MaxDatagramSize+1), make([]byte, ackbits.MaxDatagramSize)
		for client.Err() == nil {
			for n, err := conn.Read(in); err == nil; n, err = conn.Read(in) {
				incoming, _ := client.Receive(in[:n])
				for _, event := range incoming.Events {
					fmt.Printf("%s\n", event.Data)
				}
				for datagram := range client.Due(out) {
					conn.Write(datagram)
				}
			}
			if s := client.Session(); s != nil && s.Room() > 0 { // admitted, and not 256 lines ahead
				if line := typed(); line != "" {
					s.Send([]byte(line))
				}
			}
			for datagram := range client.Due(out) {
				conn.Write(datagram)
			}
		}
		var refused *endpoint.RefusedError
		switch err := client.Err(); {
		case errors.As(err, &refused):
			return fmt.Errorf("the server does not let us in: %s", refused.Reason)
		case errors.Is(err, endpoint.ErrReset):
			return errors.New("the server was restarted: knock again with a new Client")
		default:
			return err
		}
	}
	_ = play
}
