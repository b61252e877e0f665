package proto_test

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/ackbits/ackbits"
	"github.com/ackbits/ackbits/examples/arena/game"
	"github.com/ackbits/ackbits/examples/arena/proto"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

var bodies = rapid.Custom(func(t *rapid.T) game.Body {
	if rapid.Bool().Draw(t, "empty") {
		return game.Body{}
	}
	x, y := rapid.Int16Range(0, game.Width-1), rapid.Int16Range(0, game.Height-1)
	return game.Body{
		Present: rapid.Bool().Draw(t, "present"), Alive: rapid.Bool().Draw(t, "alive"), Shot: rapid.Bool().Draw(t, "shot"),
		Facing: rapid.Uint8Max(7).Draw(t, "facing"), HP: rapid.Uint8Max(game.MaxHP).Draw(t, "hp"),
		X: x.Draw(t, "x"), Y: y.Draw(t, "y"), ShotX: x.Draw(t, "shotX"), ShotY: y.Draw(t, "shotY"),
	}
})

func states(t *rapid.T, name string) (s game.State) {
	for range rapid.IntRange(0, game.MaxPlayers).Draw(t, name) {
		s[rapid.IntRange(0, game.MaxPlayers-1).Draw(t, "slot")] = bodies.Draw(t, "body")
	}
	return s
}

// Any state can be told as a difference from any other.
func TestSnapshotRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		base, state := states(t, "base"), states(t, "state")
		age := rapid.Uint8Range(1, proto.MaxAge).Draw(t, "age")
		number := rapid.Uint32Min(uint32(age)).Draw(t, "number")
		payload := proto.AppendSnapshot(nil, number, age, &base, &state)
		require.LessOrEqual(t, len(payload), proto.MaxSnapshotSize)

		gotNumber, baseline, whole, err := proto.SnapshotNumbers(payload)
		require.NoError(t, err)
		require.False(t, whole)
		require.Equal(t, []uint32{number, number - uint32(age)}, []uint32{gotNumber, baseline})
		require.NoError(t, proto.ParseSnapshot(payload, &base))
		require.Equal(t, state, base)
	})
}

// The largest snapshot fits one datagram, and a step of everybody costs five
// bytes each.
func TestSnapshotSize(t *testing.T) {
	require.LessOrEqual(t, proto.MaxSnapshotSize, ackbits.MaxDatagramSize-ackbits.WideHeaderSize)
	var empty, full game.State
	for i := range full {
		full[i] = game.Body{Present: true, Alive: true, Shot: true, HP: 1, X: 1000, Y: 1000, ShotX: 999, ShotY: 999}
	}
	require.Len(t, proto.AppendSnapshot(nil, 1, 0, &empty, &full), proto.MaxSnapshotSize)
	moved := full
	for i := range moved {
		moved[i].X += 24
		moved[i].ShotY -= 72
	}
	require.Len(t, proto.AppendSnapshot(nil, 9, 3, &full, &moved), 13+5*game.MaxPlayers)
}

// Hostile snapshots end in an error or in a state that can be drawn.
func FuzzSnapshot(f *testing.F) {
	var empty, state game.State
	state[3] = game.Body{Present: true, Alive: true, HP: 3, X: 100, Y: 200}
	f.Add(proto.AppendSnapshot(nil, 7, 0, &empty, &state))
	f.Add(proto.AppendSnapshot(nil, 7, 2, &state, &empty))
	f.Add(bytes.Repeat([]byte{0xff}, 100))
	f.Add([]byte(nil))
	f.Fuzz(func(t *testing.T, payload []byte) {
		got := state
		if err := proto.ParseSnapshot(payload, &got); err != nil {
			require.ErrorIs(t, err, proto.ErrMalformed)
			return
		}
		for _, p := range got {
			require.True(t, p.X >= 0 && p.X < game.Width && p.Y >= 0 && p.Y < game.Height)
			require.True(t, p.ShotX >= 0 && p.ShotX < game.Width && p.ShotY >= 0 && p.ShotY < game.Height)
			require.True(t, p.HP <= game.MaxHP && p.Facing < 8)
		}
	})
}

var at = time.UnixMicro(1_700_000_000_123_456)

var examples = []proto.Event{
	{Kind: proto.Welcome, At: at, Slot: 63},
	{Kind: proto.Joined, At: at, Slot: 1, Text: "Zoë"},
	{Kind: proto.Left, At: at, Slot: 2, Text: "ackbits: timeout"},
	{Kind: proto.Spawned, At: at, Slot: 3},
	{Kind: proto.Died, At: at, Slot: 4, By: 5},
	{Kind: proto.Scored, At: at, Slot: 6, Score: 65535},
	{Kind: proto.Said, At: at, Slot: 7, Text: strings.Repeat("x", proto.MaxText)},
	{Kind: proto.Closing, At: at, Text: "bye"},
	{Kind: proto.Say, At: at, Text: ""},
}

func TestEvents(t *testing.T) {
	for _, e := range examples {
		got, err := proto.ParseEvent(proto.AppendEvent(nil, e))
		require.NoError(t, err)
		require.Equal(t, e, got)
	}
}

// Whatever is a valid event has one encoding and is fit for a terminal.
func FuzzEvent(f *testing.F) {
	for _, e := range examples {
		f.Add(proto.AppendEvent(nil, e))
	}
	f.Add(proto.AppendEvent(nil, proto.Event{Kind: proto.Say, Text: "\x1b[2J"}))
	f.Fuzz(func(t *testing.T, data []byte) {
		e, err := proto.ParseEvent(data)
		if err != nil {
			require.ErrorIs(t, err, proto.ErrMalformed)
			return
		}
		require.Equal(t, data, proto.AppendEvent(nil, e))
		require.Less(t, int(e.Slot), game.MaxPlayers)
		require.Less(t, int(e.By), game.MaxPlayers)
		require.Equal(t, e.Text, proto.Clip(e.Text, proto.MaxText))
	})
}

// What a terminal would not show as text is cut out: control characters, what shows
// nothing, stacks of marks, spaces at the ends.
func TestClip(t *testing.T) {
	for text, want := range map[string]string{
		"\x1b[2J\x00h\ni\xff":              "[2Jhi",
		"\u3164\u3164":                     "", // Hangul fillers: letters that show nothing
		"\uffa0\u115f\u2800\u00ad\u200b":   "",
		"\u202eevil":                       "evil", // right to left override
		"Z\u0301\u0302\u0303\u0304\u0305a": "Z\u0301\u0302a",
		"\u0301a":                          "a", // a mark with nothing to stand on
		" \u0301 b  ":                      "b",
		"a \u0301b":                        "a b",
		"\u200b  c":                        "c",
		"❤\ufe0f":                          "❤", // variation selectors change the width
		"e\u0301\u034f\u0302":              "e\u0301\u0302",
		"Zoë 漢字":                           "Zoë 漢字",
	} {
		got := proto.Clip(text, 16)
		require.Equal(t, want, got, "%q", text)
	}
	require.Equal(t, "ab", proto.Clip("abé", 3), "no half of a letter")
	require.Equal(t, "a", proto.Clip("a b", 2), "no space at the end")
	for _, text := range []string{"\x1b[2J", "\u3164", " a", "a ", "a\u0301\u0301\u0301"} {
		_, err := proto.ParseEvent(proto.AppendEvent(nil, proto.Event{Kind: proto.Say, Text: text}))
		require.ErrorIs(t, err, proto.ErrMalformed, "%q", text)
	}
}

// What Clip makes it leaves alone, so that what a client sends a server takes.
func TestClipTwice(t *testing.T) {
	odd := []rune{' ', 'a', '漢', '\u0301', '\u3164', '\u200b', '\ufe0f', '\u0e34', '\n', '\u00a0', 0x1F600}
	rapid.Check(t, func(t *rapid.T) {
		text := string(rapid.SliceOf(rapid.OneOf(rapid.SampledFrom(odd), rapid.Rune())).Draw(t, "text"))
		limit := rapid.IntRange(0, 30).Draw(t, "limit")
		once := proto.Clip(text, limit)
		require.LessOrEqual(t, len(once), limit)
		require.Equal(t, once, proto.Clip(once, limit))
	})
}

func TestInput(t *testing.T) {
	for b := range 256 {
		held, err := proto.ParseInput([]byte{byte(b)})
		if game.Buttons(b)&^game.AllButtons != 0 {
			require.ErrorIs(t, err, proto.ErrMalformed)
			continue
		}
		require.NoError(t, err)
		require.Equal(t, []byte{byte(b)}, proto.AppendInput(nil, held))
	}
	for _, payload := range [][]byte{nil, {1, 2}} {
		_, err := proto.ParseInput(payload)
		require.ErrorIs(t, err, proto.ErrMalformed)
	}
}

// A hello has one encoding, and its name is fit for a terminal.
func FuzzHello(f *testing.F) {
	f.Add(proto.AppendHello(nil, proto.Hello{Version: proto.HelloVersion, Name: "Zoë"}))
	f.Add(proto.AppendHello(nil, proto.Hello{Version: proto.HelloVersion, Name: "\u3164"}))
	f.Add(proto.AppendHello(nil, proto.Hello{Version: proto.HelloVersion, Map: true, Name: "Ann"}))
	f.Add([]byte{proto.HelloVersion, 2, 0})
	f.Add([]byte{99, 1, 2, 3})
	f.Fuzz(func(t *testing.T, data []byte) {
		h, err := proto.ParseHello(data)
		if err != nil {
			require.ErrorIs(t, err, proto.ErrMalformed)
			return
		}
		if h.Version != proto.HelloVersion {
			require.Empty(t, h.Name, "nothing is known of another version")
			return
		}
		require.Equal(t, data, proto.AppendHello(nil, h))
		require.Equal(t, h.Name, proto.Clip(h.Name, proto.MaxName))
	})
}
