package main

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ackbits/ackbits/simnet"
)

// A file beside the game: how long it takes, and how old the game's states and events
// get meanwhile, by package transfer and by what one would take instead. All carry the
// same: states of 100 bytes, at 60 Hz from the client and 20 Hz from the server, 20
// events of 64 bytes a second each way, and one file from the server to the client.

// carrier is a way to do that.
type carrier struct {
	name, about string
	open        func(g *fileGame) (fileConn, error)
}

// fileConn is a connection of one. The game calls it from one goroutine; 0 is the client.
type fileConn interface {
	state(from int, payload []byte) error // once
	event(from int, payload []byte) error // reliably
	file(content []byte) error            // begins to send it; the game's whole learns of its end
	tick()
	close()
}

var carriers = []carrier{
	{"ackbits transfer", "this library, Adaptive and Bundle, the file by package transfer", openTransfer},
	{"ackbits events", "this library, Adaptive and Bundle, the file as events of 1 KiB", openEvents},
	{"quic", "quic-go, one connection: states as datagrams, events on one stream, the file on another", openFileQUIC},
	{"kcp", "kcp-go's core, a conversation for events and one for the file, both NoDelay(1, 10, 2, 1); states bare", func(g *fileGame) (fileConn, error) { return openFileKCP(g, 1) }},
	{"kcp, with its window", "the same, but the file NoDelay(0, 10, 2, 0): with KCP's congestion control", func(g *fileGame) (fileConn, error) { return openFileKCP(g, 0) }},
	{"sctp", "pion/sctp, one association: states unordered and never repeated, events and the file on streams of their own", openFileSCTP},
}

// fileLinks are what the file goes over.
var fileLinks = []struct {
	name string
	link simnet.Config
	size int
}{
	{"1 Mbit/s, 60 ms, queue of 1 s; 512 KiB", simnet.Config{Delay: 30 * time.Millisecond, Rate: 125_000, Queue: 125_000}, 512 << 10},
	{"2 Mbit/s, 60 ms, 32 KiB, 1 % lost; 300 KiB", simnet.Config{Delay: 30 * time.Millisecond, Rate: 250_000, Queue: 32 << 10, Loss: 0.01}, 300 << 10},
	{"2 Mbit/s, 60 ms, 32 KiB, 1 % lost; 2 MiB", simnet.Config{Delay: 30 * time.Millisecond, Rate: 250_000, Queue: 32 << 10, Loss: 0.01}, 2 << 20},
	{"10 Mbit/s, 60 ms, 128 KiB; 8 MiB", simnet.Config{Delay: 30 * time.Millisecond, Rate: 1_250_000, Queue: 128 << 10}, 8 << 20},
	{"100 Mbit/s, 60 ms, 256 KiB; 300 KiB", simnet.Config{Delay: 30 * time.Millisecond, Rate: 12_500_000, Queue: 256 << 10}, 300 << 10},
}

// fileGame is one game of a carrier.
type fileGame struct {
	mu       sync.Mutex
	start    time.Time
	links    [2]*peerLink
	began    time.Time
	whole    time.Time // when the client had the file; zero before
	states   []time.Duration
	events   []time.Duration
	received []byte
	content  []byte
}

// fileResult is what it came to, all seeds together.
type fileResult struct {
	took           []time.Duration
	states, events []time.Duration // how old they were at the client, while the file was in flight
	err            error
}

// stamp returns a payload that carries the time.
func (g *fileGame) stamp(size int) []byte {
	return binary.LittleEndian.AppendUint64(make([]byte, 0, size), uint64(time.Since(g.start)))[:size]
}

// arrived counts a state or an event at an end. What the client receives counts, of the
// time when the file was on its way.
func (g *fileGame) arrived(at int, payload []byte, ages *[]time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	sent := time.Duration(binary.LittleEndian.Uint64(payload))
	if at == 0 && !g.began.IsZero() && sent >= g.began.Sub(g.start) && (g.whole.IsZero() || sent < g.whole.Sub(g.start)) {
		*ages = append(*ages, time.Since(g.start)-sent)
	}
}

func (g *fileGame) state(at int, payload []byte) { g.arrived(at, payload, &g.states) }
func (g *fileGame) event(at int, payload []byte) { g.arrived(at, payload, &g.events) }

// part counts the next bytes of the file.
func (g *fileGame) part(b []byte) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.received = append(g.received, b...); len(g.received) == len(g.content) {
		g.whole = time.Now()
	}
}

// read reads the file from a stream.
func (g *fileGame) read(r io.Reader) {
	buf := make([]byte, 16<<10)
	for {
		n, err := r.Read(buf)
		if g.part(buf[:n]); err != nil {
			return
		}
	}
}

// play plays the game with one carrier. The connection is made over a perfect link; the
// file begins two seconds later, and then all plays on until it is whole.
func (c *carrier) play(t *testing.T, seed uint64, link simnet.Config, size int, into *fileResult) {
	link.Overhead = simnet.UDPOverIPv4
	synctest.Test(t, func(*testing.T) {
		g := &fileGame{start: time.Now(), content: make([]byte, size)}
		for i := range g.content {
			g.content[i] = byte(i * 7 >> (i % 5))
		}
		for i := range g.links {
			g.links[i] = newPeerLink(i+1, simnet.NewLink(seed*2+uint64(i), simnet.Config{Delay: link.Delay}))
		}
		g.links[0].other, g.links[1].other = g.links[1], g.links[0]
		conn, err := c.open(g)
		if err == nil {
			for _, l := range g.links {
				l.become(link)
			}
			err = g.run(conn, seed)
			conn.close()
		}
		into.err = errors.Join(into.err, err)
		into.states, into.events = append(into.states, g.states...), append(into.events, g.events...)
		if !g.whole.IsZero() {
			into.took = append(into.took, g.whole.Sub(g.began))
		}
		time.Sleep(2 * time.Minute) // for goroutines that take their time to end
		synctest.Wait()
	})
}

const (
	fileBegins = 2 * time.Second
	fileLimit  = 2 * time.Minute
)

func (g *fileGame) run(conn fileConn, seed uint64) error {
	begins := fileBegins + time.Duration(seed*997%1000)*100*time.Microsecond // at any phase of the ticks
	g.start = time.Now()
	ended := time.Duration(0)
	for tick := range 60 * int(fileLimit/time.Second) {
		at := time.Duration(tick) * time.Second / 60
		if g.began.IsZero() && at > begins {
			time.Sleep(time.Until(g.start.Add(begins)))
			g.mu.Lock()
			g.began = time.Now()
			g.mu.Unlock()
			if err := conn.file(g.content); err != nil {
				return err
			}
		}
		time.Sleep(time.Until(g.start.Add(at)))
		synctest.Wait()
		g.mu.Lock()
		whole := !g.whole.IsZero()
		g.mu.Unlock()
		if whole && ended == 0 {
			ended = at
		}
		if ended > 0 && at > ended+2*time.Second { // what was in flight has arrived
			if !bytes.Equal(g.received, g.content) {
				return errors.New("the file differs")
			}
			return nil
		}
		for from := range g.links {
			if from == 0 || tick%3 == 0 {
				if err := conn.state(from, g.stamp(100)); err != nil {
					return err
				}
			}
			if tick%3 == 0 {
				if err := conn.event(from, g.stamp(64)); err != nil {
					return err
				}
			}
		}
		conn.tick()
	}
	return fmt.Errorf("not done within %v", fileLimit)
}
