package server

import (
	"net"
	"sync/atomic"

	"golang.org/x/net/ipv4"
)

// batchSize is how many datagrams one socket call moves: at 64 the call itself
// is a small part of the cost, and more would only hold more memory.
const batchSize = 64

// maxRead is one byte more than a datagram of ours may have, so that longer ones
// show.
const maxRead = 1201

// newMessages returns empty messages, with buffers of size bytes.
func newMessages(size int) []ipv4.Message {
	messages := make([]ipv4.Message, batchSize)
	for i := range messages {
		messages[i].Buffers = [][]byte{make([]byte, size)}
	}
	return messages
}

// outbox gathers datagrams and sends them with few calls. Each goroutine has its
// own; they share the socket.
type outbox struct {
	socket   *ipv4.PacketConn
	messages []ipv4.Message
	used     int
	counters *Counters
}

func newOutbox(socket *ipv4.PacketConn, counters *Counters) *outbox {
	return &outbox{socket: socket, messages: newMessages(maxRead), counters: counters}
}

// buffer returns where the next datagram may be built.
func (o *outbox) buffer() []byte { return o.messages[o.used].Buffers[0][:0] }

// send queues a datagram that was built in buffer.
func (o *outbox) send(datagram []byte, to *net.UDPAddr) {
	m := &o.messages[o.used]
	m.Buffers[0], m.Addr = datagram, to
	if o.used++; o.used == len(o.messages) {
		o.flush()
	}
}

// flush sends what is queued. A datagram that the kernel refuses is lost, as
// others are on the way: there is nothing better to do on UDP.
func (o *outbox) flush() {
	for rest := o.messages[:o.used]; len(rest) > 0; {
		n, err := o.socket.WriteBatch(rest, 0)
		if err != nil || n <= 0 {
			o.counters.Unsent.Add(1)
			n = 1
		}
		for i := range rest[:n] {
			o.counters.BytesOut.Add(uint64(len(rest[i].Buffers[0])))
		}
		o.counters.DatagramsOut.Add(uint64(n))
		rest = rest[n:]
	}
	o.used = 0
}

// Counters are what the server has done since it began.
type Counters struct {
	DatagramsIn, DatagramsOut, BytesIn, BytesOut, Unsent atomic.Uint64

	Foreign   atomic.Uint64 // from an address or with a token of no session
	Malformed atomic.Uint64 // of a session, and refused by it
	Connects  atomic.Uint64 // well-formed ones
	Answered  atomic.Uint64 // Accepts sent
	Granted   atomic.Uint64
	Refused   atomic.Uint64 // after the cookie: full, too many, busy or closing
	Ended     atomic.Uint64 // sessions that have ended

	Ticks     atomic.Uint64
	TickNanos atomic.Uint64 // spent in ticks
	LateTicks atomic.Uint64 // that took longer than there was time
}
