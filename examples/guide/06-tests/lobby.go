// Package lobby is the sixth step of docs/guide.md: a small part of a game, and its test
// in virtual time. A lobby starts the game once everybody is ready, on both sides at the
// same tick.
//
//	go test -v ./examples/guide/06-tests
package lobby

import (
	"encoding/binary"
	"time"

	"github.com/ackbits/ackbits"
)

// README: begin guide-lobby

// Lobby is one player's side. It knows nothing of sockets, goroutines or the time of
// day: everything comes in by its methods.
type Lobby struct {
	session *ackbits.Session
	start   time.Time // of the game; zero: not known
}

// Ready says that this player is ready to start at a time.
func (l *Lobby) Ready(start time.Time) {
	if l.start.Before(start) {
		l.start = start
	}
	l.session.Send(binary.LittleEndian.AppendUint64(nil, uint64(start.UnixNano())))
}

// Receive handles what the other player says. Both start at the later of the two times.
func (l *Lobby) Receive(in ackbits.Incoming) {
	for _, event := range in.Events {
		if len(event.Data) != 8 {
			continue // the peer may send what it likes
		}
		start := time.Unix(0, int64(binary.LittleEndian.Uint64(event.Data)))
		if l.start.Before(start) {
			l.start = start
		}
	}
}

// README: end guide-lobby
