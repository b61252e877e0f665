package main

import (
	"time"

	"github.com/ackbits/ackbits"
	"github.com/ackbits/ackbits/simnet"
)

// states are what became of the game's state datagrams over a link that has a rate or a
// policer: events and their copies take its place there.
type states struct {
	ages []time.Duration // of those that arrived
	sent int
}

func (s *states) add(o states) {
	s.ages = append(s.ages, o.ages...)
	s.sent += o.sent
}

// lost is the share that did not arrive.
func (s *states) lost() float64 { return 1 - float64(len(s.ages))/float64(max(s.sent, 1)) }

// stateWatch watches those of ackbits on the links: the datagrams of the
// application's type, and those that carry one beside events. It does not see those that
// a policer drops.
type stateWatch struct {
	states
	sentAt [2]map[uint16]time.Duration // by direction and sequence
}

func newStateWatch() *stateWatch {
	return &stateWatch{sentAt: [2]map[uint16]time.Duration{{}, {}}}
}

func (w *stateWatch) observe(at time.Duration, d simnet.Direction, what simnet.What, datagram []byte) {
	h, _, err := ackbits.ParseHeader(datagram)
	if err != nil || h.Type != ackbits.TypeSnapshot && h.Type != ackbits.TypeBundle {
		return
	}
	switch what {
	case simnet.Sent:
		w.sentAt[d][h.Sequence] = at
	case simnet.Delivered:
		if from, ok := w.sentAt[d][h.Sequence]; ok { // else it is the network's own copy
			w.ages = append(w.ages, at-from)
			delete(w.sentAt[d], h.Sequence)
		}
	}
}
