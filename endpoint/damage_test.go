package endpoint_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/ackbits/ackbits/endpoint"
	"github.com/stretchr/testify/require"
)

// stage brings a world to the point at which a message of a kind is on the wire
// and nothing else, and returns it. The message is what the next step hangs on.
func stage(t *testing.T, kind string) (w *world, c *endpoint.Client, message packet) {
	cfg := endpoint.ServerConfig{}
	if kind == "Refuse" {
		cfg.Admit = func(endpoint.Request) ([]byte, error) { return nil, errors.New("no") }
	}
	w = newWorld(t, cfg)
	patient := knowing("ann")
	patient.Timeout = time.Hour
	c = w.join(home, patient)
	switch kind {
	case "Reset":
		w.run(time.Second)
		w.serve(endpoint.ServerConfig{Rand: seeded(99)})
	case "Probe", "ProbeReply":
		w.run(time.Second)
		c = w.rebind(home, elsewhere)
	}
	for range 100 {
		w.flush()
		for _, p := range w.take() {
			if kindOf(p.data) == kind && (kind != "Hello" || p.data[40] != 0) {
				w.take()
				return w, c, p
			}
			w.deliver(p)
		}
		w.clock.Advance(10 * time.Millisecond)
	}
	t.Fatal("no ", kind)
	return nil, nil, packet{}
}

// rebind has a client send from another address from now on.
func (w *world) rebind(from, to string) *endpoint.Client {
	c := w.clients[address(from)]
	delete(w.clients, address(from))
	w.clients[address(to)] = c
	w.order[slices.Index(w.order, address(from))] = address(to)
	return c
}

// refresh has a client that waits for an answer say its Hello again, which is
// lost: it computes for a few answers only between two of them.
func (w *world) refresh(kind string) {
	if kind == "Accept" || kind == "Refuse" {
		w.clock.Advance(250 * time.Millisecond)
		w.flush()
		w.take()
	}
}

// effect is what a message of a kind does when it arrives whole.
func effect(w *world, c *endpoint.Client, kind string) bool {
	switch kind {
	case "Hello":
		w.flush()
		return len(w.events) > 0
	case "Challenge": // the client answers with a hello that opens
		w.settle()
		return w.server.Stats().Joins > 0
	case "Accept":
		return c.Session() != nil
	case "Refuse", "Reset":
		return c.Err() != nil
	case "Probe":
		w.settle()
	}
	return w.server.Stats().Moves > 0
}

var messages = []string{"Hello", "Challenge", "Accept", "Refuse", "Reset", "Probe", "ProbeReply"}

// harmless tells the bits of a message that may change and still have its effect:
// a server answers with its key and cookie whatever a bare Hello holds, and so
// it does when a Challenge's cookie came damaged.
func harmless(kind string, bit int) bool { return kind == "Challenge" && bit/8 >= 3+64 }

// P-13.1.4.
func TestEveryFlippedBitIsAsGoodAsALoss(t *testing.T) {
	for _, kind := range messages {
		t.Run(kind, func(t *testing.T) {
			w, c, whole := stage(t, kind)
			for bit := range 8 * len(whole.data) {
				if harmless(kind, bit) {
					continue
				}
				w.refresh(kind)
				flipped := slices.Clone(whole.data)
				flipped[bit/8] ^= 1 << (bit % 8)
				w.deliver(packet{whole.from, whole.to, flipped})
				require.False(t, effect(w, c, kind), "bit %d of byte %d", bit%8, bit/8)
				w.take()
			}
			w.refresh(kind)
			w.deliver(whole)
			require.True(t, effect(w, c, kind), "the whole one, after all of that")
		})
	}
}

func TestEveryCutAndEveryAdditionIsAsGoodAsALoss(t *testing.T) {
	for _, kind := range messages {
		t.Run(kind, func(t *testing.T) {
			w, c, whole := stage(t, kind)
			for n := range len(whole.data) + 10 {
				if n == len(whole.data) {
					continue
				}
				w.refresh(kind)
				w.deliver(packet{whole.from, whole.to, append(slices.Clone(whole.data), make([]byte, 10)...)[:n]})
				require.False(t, effect(w, c, kind), "%d bytes", n)
				w.take()
			}
			w.refresh(kind)
			w.deliver(whole)
			require.True(t, effect(w, c, kind), "the whole one, after all of that")
		})
	}
}

// A message that comes back to who sent it does nothing.
func TestReflectedMessagesDoNothing(t *testing.T) {
	for _, kind := range messages {
		w, c, whole := stage(t, kind)
		before := fmt.Sprint(c.Err(), c.Session() != nil, len(w.events), w.server.Stats().Joins, w.server.Stats().Moves)
		w.deliver(packet{whole.to, whole.from, whole.data})
		w.flush()
		require.Equal(t, before, fmt.Sprint(c.Err(), c.Session() != nil, len(w.events), w.server.Stats().Joins, w.server.Stats().Moves), kind)
		w.take()
		w.deliver(whole)
		require.True(t, effect(w, c, kind), kind)
	}
}
