// Deltas is the fourth step of docs/guide.md: snapshots that hold only what has changed
// since one that the client is known to have.
//
//	go run ./examples/guide/04-deltas
package main

import (
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/ackbits/ackbits"
	"github.com/ackbits/ackbits/examples/guide/sim"
	"github.com/ackbits/ackbits/simnet"
)

// world is a game of 100 things, of which a few change on each tick.
type world [100]byte

// step is one tick of the game.
func (w *world) step(tick int) {
	w[tick*7%100]++
	w[tick*tick%100]--
}

// A snapshot is its number, the number of its baseline, then the things that differ:
// place and value. The first baseline is number 0, the empty world.

// appendDelta appends what differs.
func appendDelta(dst []byte, number, baseline byte, from, to *world) []byte {
	dst = append(dst, number, baseline)
	for i := range to {
		if from[i] != to[i] {
			dst = append(dst, byte(i), to[i])
		}
	}
	return dst
}

// newer compares numbers, which wrap, as those of the library do.
func newer(a, b byte) bool { return int8(a-b) > 0 }

var errSnapshot = errors.New("not a snapshot")

// README: begin guide-server

// server keeps the snapshots that the client may have.
type server struct {
	now      world
	sent     map[uint16]byte // numbers of snapshots by the sequence that carried them
	worlds   map[byte]world  // by number
	baseline byte            // the newest that has arrived
}

// learn reads what became of the datagrams.
func (s *server) learn(session *ackbits.Session) {
	for o, ok := session.NextOutcome(); ok; o, ok = session.NextOutcome() {
		number, isSnapshot := s.sent[o.Sequence]
		delete(s.sent, o.Sequence)
		if isSnapshot && o.Delivered && newer(number, s.baseline) {
			s.baseline = number
		}
	}
}

// README: end guide-server

// client keeps the snapshots that later ones may build on.
type client struct {
	worlds map[byte]world
	newest byte
}

// README: begin guide-accept

// accept is the client's Config.Accept: what it accepts is acknowledged, so the server
// may build on it. What cannot be decoded must not be.
func (c *client) accept(h ackbits.Header, payload []byte) error {
	if h.Type != ackbits.TypeSnapshot {
		return nil
	}
	if len(payload) < 2 || len(payload)%2 != 0 {
		return errSnapshot // dropped whole
	}
	number, baseline, changes := payload[0], payload[1], payload[2:]
	w, ok := c.worlds[baseline]
	if !ok {
		return ackbits.ErrWithhold // late: its baseline is forgotten
	}
	for ; len(changes) > 0; changes = changes[2:] {
		if int(changes[0]) >= len(w) {
			return errSnapshot
		}
		w[changes[0]] = changes[1]
	}
	c.worlds[number] = w
	for old := range c.worlds { // the server never goes back behind this baseline
		if newer(baseline, old) {
			delete(c.worlds, old)
		}
	}
	return nil
}

// README: end guide-accept

func main() {
	clock := new(ackbits.ManualClock)
	s := &server{sent: map[uint16]byte{}, worlds: map[byte]world{0: {}}}
	c := &client{worlds: map[byte]world{0: {}}}
	wrong := 0
	serverSide := sim.NewPeer(ackbits.Config{Clock: clock, Outcomes: true}, func(ackbits.Incoming) {})
	clientSide := sim.NewPeer(ackbits.Config{Clock: clock, Accept: c.accept}, func(incoming ackbits.Incoming) {
		if incoming.Latest && incoming.Type == ackbits.TypeSnapshot {
			c.newest = incoming.Payload[0]
			if c.worlds[c.newest] != s.worlds[c.newest] {
				wrong++
			}
		}
	})
	bad := simnet.Config{Delay: 30 * time.Millisecond, Jitter: 90 * time.Millisecond, Loss: 0.1}
	outage := bad
	outage.Blackouts = []simnet.Window{{From: 5 * time.Second, To: 7 * time.Second}}
	pair := simnet.NewPair(1, clock, serverSide, clientSide, outage, bad)
	buf, bytes, ticks := make([]byte, ackbits.MaxDatagramSize), 0, 0
	stop := pair.Every(20, time.Second, func() {
		ticks++
		s.now.step(ticks)
		s.learn(serverSide.Session)
		// README: begin guide-tick
		number, baseline := byte(ticks), s.worlds[s.baseline]
		s.worlds[number] = s.now
		snapshot := appendDelta(nil, number, s.baseline, &baseline, &s.now)
		datagram, sequence, err := serverSide.AppendDatagram(buf[:0], ackbits.TypeSnapshot, snapshot)
		if err != nil {
			log.Fatal(err)
		}
		s.sent[sequence] = number
		if number-s.baseline > 100 {
			serverSide.Close() // nothing has arrived for five seconds; and numbers must not turn around
		}
		// README: end guide-tick
		bytes += len(snapshot)
		pair.Send(simnet.AToB, datagram)
	})
	pair.Run(15*time.Second - time.Nanosecond)
	stop()
	pair.Run(16 * time.Second)
	link, stats := pair.Link(simnet.AToB).Stats(), clientSide.Stats()
	fmt.Printf("%d snapshots, %.1f bytes each instead of %d\n", ticks, float64(bytes)/float64(ticks), len(s.now))
	fmt.Printf("%d datagrams lost, %d overtaken, %d snapshots withheld, %d wrong\n", link.Lost, link.Reordered, stats.Withheld, wrong)
	fmt.Println("the client has the world of the last tick:", c.worlds[byte(ticks)] == s.now)
}
