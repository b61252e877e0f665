package ackbits

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// drawLaneConfig keeps limits small, so that a short run meets them.
func drawLaneConfig(t *rapid.T) LaneConfig {
	cfg := LaneConfig{
		ResendBudget: rapid.IntRange(1, 6).Draw(t, "budget"),
		HardLimit:    rapid.IntRange(2, 40).Draw(t, "hard"),
		StallTimeout: time.Duration(rapid.IntRange(300, 15_000).Draw(t, "stall")) * laneUnit,
	}
	cfg.SoftLimit = rapid.IntRange(1, cfg.HardLimit).Draw(t, "soft")
	if rapid.Bool().Draw(t, "odd grid") {
		cfg.ResendDelay = time.Duration(rapid.IntRange(1, 400).Draw(t, "delay")) * laneUnit
		cfg.WakeInterval = time.Duration(rapid.IntRange(1, 400).Draw(t, "wake")) * laneUnit
	}
	return cfg
}

// TestLaneAgreesWithTheModel plays any order of calls on two lanes that send to
// each other over a path that loses, doubles and reorders in both directions.
func TestLaneAgreesWithTheModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		first := rapid.SampledFrom([]uint32{1, 1, 1, 1000, math.MaxUint32 - 20}).Draw(t, "first")
		p := newLanePair(t, drawLaneConfig(t), first)
		end := func() int { return rapid.IntRange(0, 1).Draw(t, "end") }
		packet := func() int { return rapid.IntRange(0, 9).Draw(t, "packet") }
		t.Repeat(map[string]func(*rapid.T){
			"send": func(t *rapid.T) {
				i, size := end(), rapid.IntRange(0, 300).Draw(t, "size")
				event := make([]byte, size)
				for k := range event {
					event[k] = byte(i + k + int(p.ends[i].lane.last))
				}
				p.send(i, event, rapid.SampledFrom([]Priority{Critical, Droppable}).Draw(t, "priority"))
			},
			"flush": func(t *rapid.T) {
				for i := end(); p.next(i, math.MaxInt); {
				}
			},
			"one":   func(t *rapid.T) { p.next(end(), rapid.IntRange(-1, 400).Draw(t, "max")) },
			"later": func(t *rapid.T) { p.advance(time.Duration(rapid.IntRange(0, 260).Draw(t, "ms")) * laneUnit) },
			"deadline": func(t *rapid.T) {
				if at, ok := p.ends[end()].lane.Deadline(); ok {
					p.advance(max(0, at.Sub(p.clock.Now())))
				}
			},
			"before": func(t *rapid.T) {
				if at, ok := p.ends[end()].lane.Deadline(); ok {
					p.advance(max(0, at.Sub(p.clock.Now())-1))
				}
			},
			"arrive":  func(t *rapid.T) { p.arrive(end(), 0, false) },
			"reorder": func(t *rapid.T) { p.arrive(end(), packet(), false) },
			"double":  func(t *rapid.T) { p.arrive(end(), packet(), true) },
			"lose":    func(t *rapid.T) { p.lose(end(), packet()) },
			"wild id": func(t *rapid.T) {
				// Not the expected one, which would take the peer's event away.
				if i, id := end(), rapid.Uint32().Draw(t, "id"); id != p.ends[i].model.delivered+1 {
					p.receive(i, id)
				}
			},
			"wild ack": func(t *rapid.T) {
				i := end()
				e := p.ends[i]
				highest := e.model.first - 1 + uint32(len(e.model.events))
				ack := rapid.OneOf(rapid.Uint32(), rapid.Uint32Range(highest-min(highest, 3), highest)).Draw(t, "ack")
				if other := p.ends[1-i].model; ack > other.delivered && ack <= highest {
					ack = other.delivered // a forged one that is not wild may clear the queue
				}
				p.ack(i, ack)
			},
			"": func(t *rapid.T) { p.check() },
		})
		p.settle()
	})
}

// TestLaneDeadlineIsExact: nothing at Deadline - 1 ns, an event or the end at
// Deadline, wherever the lane is.
// P-12.2.7.
func TestLaneDeadlineIsExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := newLanePair(t, drawLaneConfig(t), 1)
		lane := p.ends[0].lane
		t.Repeat(map[string]func(*rapid.T){
			"send":  func(t *rapid.T) { p.send(0, nil, Droppable) },
			"later": func(t *rapid.T) { p.advance(time.Duration(rapid.Int64Range(0, int64(100*laneUnit)).Draw(t, "ns"))) },
			"next":  func(t *rapid.T) { p.next(0, 0) },
			"ack": func(t *rapid.T) {
				p.ack(0, rapid.Uint32Range(0, lane.sent).Draw(t, "ack"))
			},
			"": func(t *rapid.T) {
				at, ok := lane.Deadline()
				if !ok {
					require.False(t, p.next(0, 0))
					return
				}
				if wait := at.Sub(p.clock.Now()); wait > 0 {
					p.advance(wait - 1)
					require.False(t, p.next(0, 0))
					require.NoError(t, lane.Err())
					after, _ := lane.Deadline()
					require.Equal(t, at, after)
					p.advance(1)
				}
				require.True(t, p.next(0, 0) || lane.Err() != nil)
				require.Equal(t, p.ends[0].model.err, lane.Err())
			},
		})
	})
}

// FuzzLane reads bytes as calls on a pair of lanes and checks every answer
// against the model.
func FuzzLane(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte("\x00\x10\x02\x00\x85\x00\x05\x00"))                                                         // an event and its acknowledgement
	f.Add([]byte("\x00\x10\x00\x10\x02\x00\x88\x00\x85\x00\x05\x00\x04\xfa\x02\x00\x85\x00"))                 // the first lost, then retransmitted
	f.Add([]byte("\x00\x01\x00\x01\x00\x01\x00\x01\x00\x01\x00\x01\x00\x01\x00\x01"))                         // overflow
	f.Add([]byte("\x00\x01\x02\x00\x04\xff\x04\xff\x04\xff\x04\xff\x04\xff\x04\xff\x04\xff\x04\xff\x02\x00")) // stall
	f.Add([]byte("\x09\xff\x0a\xff\x00\x10\x02\x00\x09\x02\x0a\x01"))                                         // wild numbers
	f.Fuzz(func(t *testing.T, ops []byte) {
		if len(ops) > 1000 {
			return // the model is slow, and shorter ones say more
		}
		p := newLanePair(t, LaneConfig{ResendBudget: 3, SoftLimit: 5, HardLimit: 8, StallTimeout: 2 * time.Second}, 1)
		for k := 0; k+1 < len(ops); k += 2 {
			i, arg := int(ops[k]>>7), int(ops[k+1])
			switch ops[k] & 0x7F % 11 {
			case 0:
				p.send(i, make([]byte, arg*arg/16), Critical)
			case 1:
				p.send(i, make([]byte, arg), Droppable)
			case 2:
				for p.next(i, math.MaxInt) {
				}
			case 3:
				p.next(i, arg)
			case 4:
				p.advance(time.Duration(arg) * laneUnit)
			case 5:
				p.arrive(i, 0, false)
			case 6:
				p.arrive(i, arg, false)
			case 7:
				p.arrive(i, arg, true)
			case 8:
				p.lose(i, arg)
			case 9:
				// Ids near 0 and near the end, except the one expected.
				if id := uint32(int32(int8(arg))); id != p.ends[i].model.delivered+1 {
					p.receive(i, id)
				}
			case 10:
				// Acknowledgements that are old or above all that was sent.
				e := p.ends[i]
				ack := uint32(int32(int8(arg)))
				if highest := uint32(len(e.model.events)); ack > p.ends[1-i].model.delivered && ack <= highest {
					ack = highest + 1
				}
				p.ack(i, ack)
			}
			p.check()
		}
		p.settle()
	})
}
