package ackbits

import (
	"crypto/sha256"
	_ "embed"
	"encoding/binary"
	"encoding/hex"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ackbits/ackbits/simnet"
)

// The same calls at the same times give the same bytes, whatever the machine: a
// recording from a player's phone replays on a developer's computer. Each hash
// is of all that happened in two minutes of play: every datagram with its time and
// what became of it, every event delivered, every outcome and every counter. The file
// was written on a 64-bit machine; a 32-bit one and a browser's must agree.

//go:embed testdata/replay.golden
var replayGolden string

var updateReplay = flag.Bool("update-replay", false, "write testdata/replay.golden anew")

// replayForms leave nothing of the library out.
var replayForms = []struct {
	name string
	cfg  Config
}{
	{"protocol", Config{}},
	{"wide", Config{Wide: true, Outcomes: true, PollInterval: 16666667}},
	{"ordered", Config{Ordered: true, Backlog: 500, LossDelay: 300 * time.Millisecond, Outcomes: true}},
	{"bundle", Config{Bundle: true, EventRate: 3000}},
	{"adaptive", Config{Adaptive: true, Outcomes: true}},
	{"sealed", Config{Seal: gcm('a'), Open: gcm('b'), MaxDatagram: 900, Adaptive: true, Bundle: true}},
	{"all", Config{Wide: true, Ordered: true, Adaptive: true, Bundle: true, EventRate: 20_000, Outcomes: true, Backlog: 200}},
}

// TestReplay compares the transcripts' hashes with the file's.
func TestReplay(t *testing.T) {
	var out strings.Builder
	for _, form := range replayForms {
		for seed := range uint64(3) {
			fmt.Fprintf(&out, "%s %d %s\n", form.name, seed, replay(t, form.cfg, seed))
		}
	}
	if *updateReplay {
		require.NoError(t, os.WriteFile("testdata/replay.golden", []byte(out.String()), 0o644))
		return
	}
	require.Equal(t, replayGolden, out.String())
	require.Equal(t, replay(t, Config{}, 1), replay(t, Config{}, 1), "a replay of itself")
	require.NotEqual(t, replay(t, Config{}, 1), replay(t, Config{}, 2), "another seed is another story")
}

// replayer writes down all that happens at one end.
type replayer struct {
	*Session
	name   byte
	record func(what byte, numbers ...int64)
	write  func(b []byte)
	buf    [MaxDatagramSize]byte
}

func (r *replayer) Receive(datagram []byte) {
	in, err := r.Session.Receive(datagram)
	if err != nil {
		r.record('x', int64(r.name))
		r.write([]byte(err.Error()))
		return
	}
	latest := int64(0)
	if in.Latest {
		latest = 1
	}
	r.record('i', int64(r.name), int64(in.Type), int64(in.Sequence), int64(in.Arrival), latest, int64(len(in.Payload)))
	for _, event := range in.Events {
		r.record('e', int64(r.name), int64(event.ID))
		r.write(event.Data)
	}
}

func (r *replayer) Due(send func([]byte)) {
	for datagram := range r.Session.Due(r.buf[:]) {
		send(datagram)
	}
}

var replayConditions = simnet.Config{
	Delay: 25 * time.Millisecond, Jitter: 15 * time.Millisecond, Loss: 0.1,
	Burst:   simnet.Burst{MeanGood: 2 * time.Second, MeanBad: 60 * time.Millisecond, LossBad: 0.9},
	Reorder: 0.05, ReorderDelay: 70 * time.Millisecond, Duplicate: 0.03, Truncate: 0.01,
	Blackouts: []simnet.Window{{From: 40 * time.Second, To: 43 * time.Second}},
}

// replay plays a story and returns the hash of its transcript.
func replay(t *testing.T, cfg Config, seed uint64) string {
	length := 2 * time.Minute
	hash := sha256.New()
	write := func(b []byte) {
		_, err := hash.Write(b)
		require.NoError(t, err)
	}
	var line []byte
	record := func(what byte, numbers ...int64) {
		line = append(line[:0], what)
		for _, n := range numbers {
			line = binary.LittleEndian.AppendUint64(line, uint64(n))
		}
		write(line)
	}
	var clock ManualClock
	clock.Set(time.Unix(1_700_000_000, 0))
	cfg.Clock = &clock
	var ends [2]*replayer
	for i := range ends {
		s, err := NewSession(cfg)
		require.NoError(t, err)
		cfg.Seal, cfg.Open = cfg.Open, cfg.Seal
		ends[i] = &replayer{Session: s, name: "ab"[i], record: record, write: write}
	}
	p := simnet.NewPair(seed, &clock, ends[0], ends[1], replayConditions, replayConditions)
	p.Observe(func(at time.Duration, d simnet.Direction, what simnet.What, datagram []byte) {
		record('w', int64(at), int64(d), int64(what))
		write(datagram)
	})
	r := rand.New(rand.NewPCG(seed, 99))
	p.Every(60, time.Second, func() {
		for i, s := range ends {
			for n := min(r.IntN(24)-20, s.Room()); n > 0; n-- {
				event := make([]byte, r.IntN(1+r.IntN(200)))
				for k := range event {
					event[k] = byte(r.Uint32())
				}
				id, err := s.Send(event)
				require.NoError(t, err)
				record('s', int64(i), int64(id))
			}
			if r.IntN(3) > 0 {
				out, seq, err := s.AppendDatagram(s.buf[:0], Type(1+r.IntN(4)), make([]byte, r.IntN(600)))
				require.NoError(t, err)
				record('d', int64(i), int64(seq))
				p.Send(simnet.Direction(i), out)
			}
			for o, ok := s.NextOutcome(); ok; o, ok = s.NextOutcome() {
				record('o', int64(i), int64(o.Sequence), int64(o.Type), int64(b2i(o.Delivered)), int64(o.RTT))
			}
		}
	})
	p.Run(length)
	for _, s := range ends {
		require.NoError(t, s.Err())
		write(fmt.Appendf(nil, "%+v", s.Stats()))
	}
	return hex.EncodeToString(hash.Sum(nil))
}
