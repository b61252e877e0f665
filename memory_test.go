package ackbits

import (
	"bytes"
	"runtime"
	"testing"
	"time"

	"github.com/ackbits/ackbits/internal/trim"
	"github.com/stretchr/testify/require"
)

// What the README says of memory, measured on the heap: what all sessions take
// together, divided by their number.
const (
	idleLimit  = 4 << 10
	quietLimit = 2 << 10 // the aim, where nothing was lost lately
	fullLimit  = 64 << 10
)

// couple is two sessions that talk over a perfect link.
type couple struct{ a, b *Session }

// couples makes n of them, on one clock, and returns how to measure what a
// session takes.
func couples(t *testing.T, n int, cfg Config) (all []couple, clock *ManualClock, perSession func() int) {
	t.Helper()
	clock = &ManualClock{}
	cfg.Clock = clock
	heap := func() int {
		var m runtime.MemStats
		runtime.GC()
		runtime.GC()
		runtime.ReadMemStats(&m)
		return int(m.HeapAlloc)
	}
	all = make([]couple, n)
	before := heap()
	for i := range all {
		var err error
		all[i].a, err = NewSession(cfg)
		require.NoError(t, err)
		all[i].b, err = NewSession(cfg)
		require.NoError(t, err)
	}
	return all, clock, func() int {
		used := heap() - before
		runtime.KeepAlive(all)
		return used / (2 * n)
	}
}

// talk hands what one end has to say to the other, and back.
func (c couple) talk(t *testing.T, buf []byte) {
	t.Helper()
	for _, way := range [2][2]*Session{{c.a, c.b}, {c.b, c.a}} {
		for datagram, ok := way[0].AppendDue(buf[:0]); ok; datagram, ok = way[0].AppendDue(buf[:0]) {
			if _, err := way[1].Receive(datagram); err != nil {
				require.NoError(t, err)
			}
		}
		for _, ok := way[0].NextOutcome(); ok; _, ok = way[0].NextOutcome() {
		}
	}
}

// quiet lets time pass in which only heartbeats flow: for one couple after the
// other, which is kinder to the processor's cache.
func quiet(t *testing.T, all []couple, clock *ManualClock, d time.Duration) {
	t.Helper()
	var buf [MaxDatagramSize]byte
	began := clock.Now()
	for _, c := range all {
		clock.Set(began)
		for range int(d / (50 * ms)) {
			clock.Advance(50 * ms)
			c.talk(t, buf[:])
		}
	}
}

// requireBytes logs how many bytes a session takes, which are to be at most limit.
func requireBytes(t *testing.T, bytes, limit int, when string) {
	t.Helper()
	t.Logf("%d bytes %s", bytes, when)
	require.LessOrEqual(t, bytes, limit, when)
}

func memoryForms(t *testing.T, test func(t *testing.T, cfg Config)) {
	for name, cfg := range map[string]Config{
		"narrow":           {},
		"wide":             {Wide: true},
		"everything":       {Wide: true, Ordered: true, Outcomes: true, Backlog: 1000, Adaptive: true, Bundle: true, EventRate: 50_000},
		"narrow, outcomes": {Outcomes: true},
	} {
		t.Run(name, func(t *testing.T) { test(t, cfg) })
	}
}

func TestIdleSessionTakesAtMost2KiB(t *testing.T) {
	memoryForms(t, func(t *testing.T, cfg Config) {
		n := 5000
		if testing.Short() || cfg.Wide || cfg.Outcomes {
			n = 250
		}
		all, clock, perSession := couples(t, n, cfg)
		requireBytes(t, perSession(), quietLimit, "when new")
		quiet(t, all, clock, 12*time.Second)
		requireBytes(t, perSession(), quietLimit, "after 12 s of heartbeats")
	})
}

// What sealing adds to an idle session, the AEADs apart.
func TestIdleSealedSessionTakes128BytesMore(t *testing.T) {
	per := func(cfg Config) int {
		all, clock, perSession := couples(t, 250, cfg)
		quiet(t, all, clock, 12*time.Second)
		return perSession()
	}
	aead := gcm(1)
	require.LessOrEqual(t, per(Config{Seal: aead, Open: aead}), per(Config{})+128)
}

func TestSessionWithAFullWindowTakesAtMost64KiBAndGivesItBack(t *testing.T) {
	memoryForms(t, func(t *testing.T, cfg Config) {
		all, clock, perSession := couples(t, 50, cfg)
		var buf [MaxDatagramSize]byte
		var event [64]byte
		for range 3 { // retransmitted, too
			for _, c := range all {
				for _, s := range []*Session{c.a, c.b} {
					for range eventWindow - s.InFlight() {
						_, err := s.Send(event[:])
						require.NoError(t, err)
					}
					for range s.Due(buf[:]) {
					}
				}
			}
			clock.Advance(100 * ms)
		}
		requireBytes(t, perSession(), fullLimit, "all on the wire")
		for _, c := range all { // all but the first datagram arrive, and wait for it with Ordered
			lost := true
			for datagram := range c.a.Due(buf[:]) {
				if lost {
					lost = false
					continue
				}
				_, err := c.b.Receive(datagram)
				require.NoError(t, err)
			}
		}
		requireBytes(t, perSession(), fullLimit, "most have arrived")
		quiet(t, all, clock, time.Second)
		for _, c := range all {
			require.Zero(t, c.a.InFlight()+c.b.InFlight())
		}
		quiet(t, all, clock, 10*time.Second)
		requireBytes(t, perSession(), idleLimit, "after 10 s of quiet")
	})
}

// What was delivered is released, and so are the caller's buffers: 255 large events,
// one a datagram, each in memory of its own, of which the first is lost and comes
// last.
func TestQuietSessionHoldsOnToNothing(t *testing.T) {
	for _, cfg := range []Config{
		{Ordered: true},
		{Wide: true, Ordered: true, Outcomes: true, Adaptive: true, Bundle: true},
	} {
		all, clock, perSession := couples(t, 16, cfg)
		var buf [MaxDatagramSize]byte
		for _, c := range all {
			for range 255 {
				c.a.Send(buf[:1000])
			}
			lost := true
			for datagram := range c.a.Due(buf[:]) {
				if !lost {
					_, err := c.b.Receive(bytes.Clone(datagram))
					require.NoError(t, err)
				}
				lost = false
			}
		}
		quiet(t, all, clock, 13*time.Second)
		for _, c := range all {
			require.Zero(t, c.a.InFlight())
		}
		require.LessOrEqual(t, perSession(), idleLimit-512)
	}
}

// A game's rate, and one far beyond, leave nothing behind either.
func TestBusySessionGivesItsMemoryBack(t *testing.T) {
	memoryForms(t, func(t *testing.T, cfg Config) {
		all, clock, perSession := couples(t, 20, cfg)
		var buf [MaxDatagramSize]byte
		for range 400 {
			clock.Advance(ms)
			for _, c := range all {
				c.a.Send(buf[:100])
				datagram, _, err := c.a.AppendDatagram(buf[:0], TypeInput, nil)
				require.NoError(t, err)
				_ = datagram // lost
				c.a.AppendDatagram(buf[:0], TypeInput, nil)
				if c.a.InFlight() > 200 {
					c.talk(t, buf[:])
				}
			}
		}
		quiet(t, all, clock, 1100*ms)
		quiet(t, all, clock, 10*time.Second)
		requireBytes(t, perSession(), idleLimit, "after 10 s of quiet")
	})
}

// One side alone: nobody answers, and it lives by its own clock.
func TestEndedSessionTakesAtMost4KiB(t *testing.T) {
	all, clock, perSession := couples(t, 50, Config{Ordered: true})
	var buf [MaxDatagramSize]byte
	for _, c := range all {
		for range 256 {
			c.a.Send(buf[:64])
		}
		for range c.a.Due(buf[:]) {
		}
		var payload []byte
		for id := range uint16(200) { // events that wait for a gap
			payload = append(payload[:0], 1, byte(id+1), 0, 0, 0)
			c.a.Receive(append(Header{Type: TypeEvent, Sequence: id, Ack: nothingYet}.AppendTo(nil), payload...))
		}
		c.b.Close()
		for range c.b.Due(buf[:]) {
		}
	}
	clock.Advance(6 * time.Second)
	for _, c := range all {
		_, ok := c.a.AppendDue(nil)
		require.False(t, ok)
		require.Equal(t, ErrTimeout, c.a.Err())
	}
	const waiting = 256 * (64 + 32) / 2 // of one end, for Undelivered
	require.LessOrEqual(t, perSession(), idleLimit+waiting)
}

// What a burst leaves behind for a while in a session that is busy, and in the end.
func TestRoomAfterABurst(t *testing.T) {
	c, clock := newChannel(t, Config{Backlog: 1000})
	seq := uint16(0)
	exchange := func(n int) {
		for range n {
			c.Send(make([]byte, 60))
		}
		for c.EventsDue(1000) {
			h, _ := c.NextHeader(TypeEvent)
			c.AppendDueEvents(nil, h.Sequence, 100) // one each
			seq = h.Sequence
		}
		for back := uint16(0); back <= seq && back < 300; back += 33 {
			c.Receive(Header{Type: TypeInput, Sequence: c.receiver.tracker.Ack() + 1, Ack: seq - back, AckBits: 1<<32 - 1}, nil)
		}
		require.Zero(t, c.InFlight())
	}
	exchange(250)
	var events, bytes, runs []int
	for range 130 {
		clock.Advance(time.Duration(trim.Period))
		exchange(1)
		events = append(events, len(c.sender.outbox.events))
		bytes = append(bytes, c.sender.outbox.bytes.Size())
		runs = append(runs, len(c.sender.outbox.log.runs))
	}
	require.Len(t, c.sender.log.stamps, minRememberedSent)
	require.Len(t, c.sender.outbox.log.index.runs, minRememberedSent, "no more than the log remembers")
	for _, lengths := range [][]int{events, runs} {
		require.Equal(t, []int{256, 256, 128}, lengths[:3])
		require.Equal(t, []int{128, 64}, lengths[20:22])
		require.Equal(t, []int{32, 16, minEvents}, []int{lengths[60], lengths[61], lengths[129]})
	}
	require.Equal(t, []int{16384, 16384, 8192}, bytes[:3])
	require.Equal(t, []int{8192, 4096}, bytes[20:22])
}
