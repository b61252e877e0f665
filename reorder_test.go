package ackbits

import (
	"bytes"
	"testing"

	"github.com/ackbits/ackbits/internal/arena"
	"github.com/ackbits/ackbits/internal/trim"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// What was released stays as it is until reclaim, whatever is kept meanwhile.
func TestReleasedCopyIsNotWrittenTo(t *testing.T) {
	for _, n := range []int{arena.MinSize / 2, arena.MinSize - 5, arena.MinSize, 1000} { // in the room that is left, or in new
		r := newReorder()
		r.keep(Event{7, []byte("seven")}, 6)
		seven := r.release(7)
		r.keep(Event{9, bytes.Repeat([]byte("9"), n)}, 8)
		require.Equal(t, "seven", string(seven), n)
		require.Equal(t, len(seven), cap(seven))
	}
}

func TestReclaimedRoomIsUsedAgain(t *testing.T) {
	r := newReorder()
	for id := uint16(1); id < 1000; id += 2 {
		r.keep(Event{id, make([]byte, arena.MinSize)}, id-1)
		r.release(id)
		r.reclaim(id + 1)
	}
	require.Equal(t, arena.MinSize, r.bytes.Size())
	require.Len(t, r.order, minEvents)
}

func TestReorderNeedsNoMoreThanWhatWaits(t *testing.T) {
	r := newReorder()
	r.keep(Event{1, make([]byte, 50)}, 0)
	id := uint16(1)
	turn := func() {
		r.keep(Event{id + 1, r.bytes.Piece(0, 50)}, id-1)
		r.release(id)
		id++
		r.reclaim(id)
	}
	require.Zero(t, allocations(1000, turn))
	require.Equal(t, 1, r.waiting)
	require.LessOrEqual(t, r.bytes.Size(), 256)
}

// Its room halves once a minute; when nothing of it is left, all is freed.
func TestReorderIsIdleWhenNothingWasKeptLately(t *testing.T) {
	r := newReorder()
	for id := uint16(1); id < 200; id++ {
		r.keep(Event{id, make([]byte, 100)}, 0)
	}
	require.Equal(t, 32768, r.bytes.Size())
	require.False(t, r.trim(0, true))
	require.False(t, r.trim(0, true))
	require.False(t, r.trim(0, false), "they wait")
	for id := uint16(1); id < 200; id++ {
		r.release(id)
	}
	var room []int
	for range 400 {
		room = append(room, r.bytes.Size())
		if r.trim(200, true) {
			break
		}
	}
	require.Equal(t, []int{32768, 32768, 32768, 8192}, room[:4])
	require.Equal(t, []int{8192, 4096}, room[21:23])
	require.Equal(t, arena.MinSize, room[len(room)-1])
	require.Len(t, room, 2+13*20, "minutes until 4096 are halved to nothing")

	r.keep(Event{202, nil}, 201)
	require.False(t, r.trim(201, false), "an empty one waits")
	r.release(202)
	require.False(t, r.trim(203, false), "one did in this period")
	require.False(t, r.trim(203, false), "and in the one before")
	require.True(t, r.trim(203, false))
}

// What moves while others that were released lie before it is not lost.
func TestWhatWaitsBehindWhatWasReleasedMoves(t *testing.T) {
	r := newReorder()
	r.keep(Event{1, bytes.Repeat([]byte("1"), 200)}, 0)
	r.keep(Event{3, bytes.Repeat([]byte("3"), 50)}, 0)
	r.release(1)
	r.keep(Event{4, bytes.Repeat([]byte("4"), 60)}, 2)
	require.Equal(t, 512, r.bytes.Size())
	r.reclaim(2)
	r.keep(Event{5, bytes.Repeat([]byte("5"), 402)}, 2) // up to the end
	r.keep(Event{6, bytes.Repeat([]byte("6"), 10)}, 2)
	require.Equal(t, bytes.Repeat([]byte("3"), 50), r.release(3))
	require.Equal(t, bytes.Repeat([]byte("4"), 60), r.release(4))
}

func TestReorderGrows(t *testing.T) {
	r := newReorder()
	wait := func(size int) {
		r.keep(Event{1, make([]byte, size)}, 0)
		r.release(1)
		r.reclaim(2)
	}
	wait(arena.MinSize)
	require.Equal(t, arena.MinSize, r.bytes.Size())
	wait(700) // and 350
	require.Equal(t, 2048, r.bytes.Size())
	wait(2000)
	require.Equal(t, 2048, r.bytes.Size())
	wait(2049) // and 1024, twice what there was
	require.Equal(t, trim.ModestBytes, r.bytes.Size())
	wait(trim.ModestBytes + 1) // and 2048
	require.Equal(t, 2*trim.ModestBytes, r.bytes.Size())

	r.keep(Event{1, make([]byte, 2*trim.ModestBytes/3-10)}, 0)
	r.keep(Event{2, make([]byte, 2*trim.ModestBytes/3)}, 0)
	r.release(1)
	r.keep(Event{4, nil}, 2)
	r.keep(Event{5, make([]byte, 2*trim.ModestBytes/3)}, 2) // what waits is two thirds
	require.Equal(t, 2*trim.ModestBytes, r.bytes.Size(), "more than modest: room behind what was released is found")
}

// The room of what was released is found when it is needed, even behind an event that
// waits for long.
func TestRoomBehindAnOldEventIsFound(t *testing.T) {
	r := newReorder()
	r.keep(Event{255, []byte("old event")}, 0)
	for id := uint16(1); id < 255; id++ {
		r.keep(Event{id, make([]byte, 50)}, id-1)
		r.release(id)
		r.reclaim(id + 1)
	}
	require.Equal(t, trim.ModestBytes, r.bytes.Size(), "then room is found by keeping only what waits")
	require.LessOrEqual(t, len(r.order), 128)
	require.Equal(t, "old event", string(r.release(255)))
	require.Zero(t, r.waiting)
}

// Empty events take places, if no bytes.
func TestEmptyEventsKeepTheReorderBusy(t *testing.T) {
	var b inbox
	b.init(true)
	id := uint16(0)
	turn := func() {
		b.accept([]Event{{ID: id + 1}})
		b.accept([]Event{{ID: id}})
		id += 2
		b.trim(true, 0)
	}
	require.Zero(t, allocations(10, turn))
}

func TestEmptyEventThatWaitsIsNotNil(t *testing.T) {
	r := newReorder()
	r.keep(Event{1, nil}, 0)
	require.NotNil(t, r.release(1))
}

// The dumb model: a map of copies.
func TestReorderIsAMap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		base := rapid.SampledFrom(edgeStarts).Draw(t, "start")
		r := newReorder()
		model := map[uint16][]byte{}
		var released []Event // since the last datagram
		contents := map[uint16]string{}
		t.Repeat(map[string]func(*rapid.T){
			"keep": func(t *rapid.T) {
				id := base + rapid.Uint16Range(1, eventWindow-1).Draw(t, "ahead")
				if model[id] != nil {
					return
				}
				data := make([]byte, rapid.SampledFrom([]int{0, 1, 60, 64, 300, MaxEventSize}).Draw(t, "size"))
				for i := range data {
					data[i] = byte(id) + byte(i)
				}
				r.keep(Event{id, data}, base)
				model[id] = bytes.Clone(data)
				clear(data)
			},
			"gap filled": func(t *rapid.T) {
				for base++; model[base] != nil; base++ {
					released = append(released, Event{base, r.release(base)})
					contents[base] = string(model[base])
					delete(model, base)
				}
			},
			"next": func(t *rapid.T) {
				r.reclaim(base)
				released = nil
			},
			"trim": func(t *rapid.T) {
				r.trim(base, rapid.Bool().Draw(t, "busy"))
				for _, e := range released {
					require.Equal(t, contents[e.ID], string(e.Data))
				}
				released = nil // nothing is kept before the next datagram
			},
			"": func(t *rapid.T) {
				require.Equal(t, len(model), r.waiting)
				require.LessOrEqual(t, len(r.order), 2*eventWindow)
				for _, e := range released {
					require.Equal(t, contents[e.ID], string(e.Data))
				}
				for id, want := range model {
					p := r.places[id%eventWindow]
					require.Equal(t, string(want), string(r.bytes.Piece(p.start, p.size)))
				}
			},
		})
	})
}
