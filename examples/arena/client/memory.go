package client

import (
	"github.com/ackbits/ackbits"
	"github.com/ackbits/ackbits/examples/arena/game"
	"github.com/ackbits/ackbits/examples/arena/proto"
)

// memory keeps the states of the latest snapshots: each may be the baseline of a
// later one. An acknowledgement is the promise to have it.
type memory struct {
	states [proto.MaxAge + 1]remembered
	top    uint32 // the number of the newest
	some   bool   // whether there is one
	work   game.State
}

type remembered struct {
	number uint32
	known  bool
	state  game.State
}

func (m *memory) at(number uint32) *remembered { return &m.states[number%uint32(len(m.states))] }

// take decodes a snapshot and keeps it. It withholds one whose baseline is
// missing, and one so old that it cannot be kept: acknowledged, either would
// become the baseline of snapshots that nobody can read. It reports whether the
// snapshot is the newest.
func (m *memory) take(payload []byte) (newest bool, err error) {
	number, baseline, whole, err := proto.SnapshotNumbers(payload)
	if err != nil {
		return false, err
	}
	if m.some && number < m.top && m.top-number > proto.MaxAge {
		return false, ackbits.ErrWithhold
	}
	if whole {
		m.work = game.State{}
	} else {
		base := m.at(baseline)
		if !base.known || base.number != baseline {
			return false, ackbits.ErrWithhold
		}
		m.work = base.state
	}
	if err := proto.ParseSnapshot(payload, &m.work); err != nil {
		return false, err
	}
	*m.at(number) = remembered{number, true, m.work}
	newest = !m.some || number >= m.top
	m.top, m.some = max(m.top, number), true
	return newest, nil
}

// newest returns the state of the newest snapshot, or the empty one.
func (m *memory) newest() *game.State { return &m.at(m.top).state }
