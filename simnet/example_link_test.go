package simnet_test

import (
	"encoding/binary"
	"fmt"
	"time"

	"github.com/ackbits/ackbits/simnet"
)

// A narrow link: 60 datagrams of 100 bytes a second take 7,680 bytes with their
// headers, the link carries 6,000. First its queue fills, and everything is late;
// then it is full, and the rest is lost.
func ExampleLink_narrow() {
	link := simnet.NewLink(1, simnet.Config{
		Delay: 20 * time.Millisecond,
		Rate:  6000, Queue: 3000, Overhead: simnet.UDPOverIPv4,
	})
	var late time.Duration // of the newest datagram that arrived
	datagram := make([]byte, 100)
	for tick := range 5*60 + 1 {
		now := time.Duration(tick) * time.Second / 60
		binary.LittleEndian.PutUint64(datagram, uint64(now))
		link.Send(now, datagram)
		for at, ok := link.Next(); ok && at <= now; at, ok = link.Next() {
			arrived, _ := link.Receive(at)
			late = at - time.Duration(binary.LittleEndian.Uint64(arrived))
		}
		if now > 0 && now%time.Second == 0 {
			fmt.Printf("after %v: %v late, %d lost\n", now, late.Round(time.Millisecond), link.Stats().LostInQueue)
		}
	}
	// Output:
	// after 1s: 247ms late, 0 lost
	// after 2s: 466ms late, 5 lost
	// after 3s: 502ms late, 18 lost
	// after 4s: 505ms late, 31 lost
	// after 5s: 507ms late, 44 lost
}
