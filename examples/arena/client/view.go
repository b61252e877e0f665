package client

import (
	"fmt"

	"github.com/ackbits/ackbits/examples/arena/game"
	"github.com/ackbits/ackbits/examples/arena/proto"
)

// logLines is how many lines of chat and news a View keeps.
const logLines = 8

// View is what the player sees.
type View struct {
	State   *game.State
	Self    game.Body // this player; once the map is there, as the server will have it: see prediction
	Names   [game.MaxPlayers]string
	Scores  [game.MaxPlayers]uint16
	Log     []string // the latest lines, oldest first
	Closing string   // the reason that the server gave before it ended the session

	slot    int // ours, once welcome
	welcome bool
}

// apply brings the view up to date with an event. It relies on their order: a
// slot that was left may be taken again at once. A player who is slow gets less
// events: who has joined a slot last, and the latest score.
func (v *View) apply(e proto.Event) {
	switch e.Kind {
	case proto.Welcome:
		v.slot, v.welcome = int(e.Slot), true
	case proto.Joined:
		if v.Names[e.Slot] != e.Text { // else a repetition for who has missed something
			v.Names[e.Slot], v.Scores[e.Slot] = e.Text, 0
			v.log("%s joined", e.Text)
		}
	case proto.Left:
		if v.Names[e.Slot] != "" { // else it came and went while we have missed something
			v.log("%s left: %s", v.name(e.Slot), e.Text)
		}
		v.Names[e.Slot], v.Scores[e.Slot] = "", 0
	case proto.Scored:
		v.Scores[e.Slot] = e.Score
	case proto.Died:
		v.log("%s shot %s", v.name(e.By), v.name(e.Slot))
	case proto.Said:
		v.log("<%s> %s", v.name(e.Slot), e.Text)
	case proto.Closing:
		v.Closing = e.Text
		v.log("server: %s", e.Text)
	}
}

// Me returns the slot of this player; ok is false before the Welcome.
func (v *View) Me() (slot int, ok bool) { return v.slot, v.welcome }

func (v *View) name(slot uint8) string {
	if name := v.Names[slot]; name != "" {
		return name
	}
	return fmt.Sprintf("player %d", slot)
}

func (v *View) log(format string, args ...any) {
	v.Log = append(v.Log, fmt.Sprintf(format, args...))
	if len(v.Log) > logLines {
		v.Log = append(v.Log[:0], v.Log[1:]...)
	}
}
