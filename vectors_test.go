package ackbits_test

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ackbits/ackbits"
)

// TestVectors reads testdata/vectors as any other implementation does, by chapter
// 19 of docs/protocol.md, and makes the library reproduce every value. A change of
// what is on the wire, or of when, fails it; if the change is meant, the document
// changes with it, and `go run ./internal/vectors` writes the files anew.
// P-3.1.4, P-5.2.5, P-6.5.1, P-8.4.6, P-10.1.4, P-10.1.6, P-11.3.3, P-17.1.5.
func TestVectors(t *testing.T) {
	names, err := filepath.Glob("testdata/vectors/*.json")
	require.NoError(t, err)
	require.NotEmpty(t, names)
	for _, name := range names {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".json"), func(t *testing.T) {
			t.Parallel()
			text, err := os.ReadFile(name)
			require.NoError(t, err)
			var steps []vectorStep
			require.NoError(t, json.Unmarshal(text, &steps))
			var v vectorEnd
			for i, want := range steps {
				got := v.play(t, want)
				for key, value := range want {
					if key != "about" && got[key] != value {
						require.Equal(t, value, got[key], "line %d of %s: %q of %v", i+2, name, key, want)
					}
				}
				require.Equal(t, len(want), len(got), "line %d of %s: %v has not all keys of %v", i+2, name, want, got)
			}
		})
	}
}

// TestVectorsAreFlat holds the files to the form that a reader without a JSON
// library can take apart: an object a line, no nesting, no escapes.
func TestVectorsAreFlat(t *testing.T) {
	names, err := filepath.Glob("testdata/vectors/*.json")
	require.NoError(t, err)
	for _, name := range names {
		text, err := os.ReadFile(name)
		require.NoError(t, err)
		lines := strings.Split(string(text), "\n")
		require.Equal(t, []string{"[", "]", ""}, []string{lines[0], lines[len(lines)-2], lines[len(lines)-1]}, name)
		lines = lines[1 : len(lines)-2]
		for i, line := range lines {
			require.Less(t, len(line), 8192, name)
			require.True(t, strings.HasPrefix(line, `{"do":"`), line)
			body, comma := strings.CutSuffix(line, ",")
			require.Equal(t, i < len(lines)-1, comma, "line %d of %s", i+2, name)
			require.True(t, strings.HasSuffix(body, "}"), line)
			require.NotContains(t, body[1:], "{", name)
			require.NotContains(t, body, `\`, name)
		}
	}
}

type vectorStep map[string]any

func (s vectorStep) num(key string) int64              { return int64(s[key].(float64)) }
func (s vectorStep) duration(key string) time.Duration { return time.Duration(s.num(key)) }
func (s vectorStep) flag(key string) bool              { return s[key].(bool) }
func (s vectorStep) bytes(key string) []byte {
	b, err := hex.DecodeString(s[key].(string))
	if err != nil {
		panic(err)
	}
	return b
}

// vectorEnd is the session or the lane of a transcript.
type vectorEnd struct {
	clock   *ackbits.ManualClock
	session *ackbits.Session
	lane    *ackbits.OrderedLane
	tracker ackbits.AckTracker // of what the session accepted, by the document
}

// play makes the call of a step and returns what it holds, with the values that
// the library gives.
func (v *vectorEnd) play(t *testing.T, in vectorStep) vectorStep {
	out := vectorStep{"do": in["do"]}
	if at, ok := in["at"]; ok {
		out["at"] = at
		v.clock.Set(time.Time{}.Add(in.duration("at")))
	}
	take := func(names ...string) {
		for _, name := range names {
			out[name] = in[name]
		}
	}
	switch do := in["do"].(string); do {
	case "new":
		v.begin(t, in)
		return in
	case "lane":
		v.beginLane(t, in)
		return in
	case "receive":
		take("datagram")
		v.receive(in.bytes("datagram"), out)
	case "send", "sends":
		take("event")
		n := 1
		if do == "sends" {
			take("count")
			n = int(in.num("count"))
		}
		event := in.bytes("event")
		for range n {
			id, err := v.session.Send(event)
			out["error"], out["id"] = vectorError(err), float64(id)
		}
	case "append", "burst":
		take("type", "payload")
		n := 1
		if do == "burst" {
			take("count")
			n = int(in.num("count"))
		}
		v.append(ackbits.Type(in.num("type")), in.bytes("payload"), n, out)
	case "due":
		datagram, _ := v.session.AppendDue(nil)
		out["datagram"] = hex.EncodeToString(datagram)
	case "outcome":
		o, ok := v.session.NextOutcome()
		out["found"], out["seq"], out["type"], out["delivered"], out["rtt"] = ok, float64(o.Sequence), float64(o.Type), o.Delivered, float64(o.RTT)
	case "close":
		v.session.Close()
	case "shutdown":
		take("patience")
		v.session.Shutdown(in.duration("patience"))
	default:
		v.playLane(do, in, out, take)
		return out
	}
	v.state(out)
	return out
}

// append makes n datagrams of the application; the last one is in the transcript.
func (v *vectorEnd) append(t ackbits.Type, payload []byte, n int, out vectorStep) {
	var datagram []byte
	var seq uint16
	var err error
	for range n {
		datagram, seq, err = v.session.AppendDatagram(datagram[:0], t, payload)
	}
	out["error"], out["datagram"], out["seq"] = vectorError(err), hex.EncodeToString(datagram), float64(seq)
}

func (v *vectorEnd) begin(t *testing.T, in vectorStep) {
	token, err := strconv.ParseUint(in["token"].(string), 16, 64)
	require.NoError(t, err)
	*v = vectorEnd{clock: new(ackbits.ManualClock)}
	cfg := ackbits.Config{
		Token: token, Clock: v.clock,
		Wide: in.flag("wide"), Ordered: in.flag("ordered"), Bundle: in.flag("bundle"), Outcomes: in.flag("outcomes"),
		Heartbeat: in.duration("heartbeat"), Timeout: in.duration("timeout"), ResendDelay: in.duration("resend"),
		LossDelay: in.duration("loss"), StallTimeout: in.duration("stall"), PollInterval: in.duration("poll"),
		Backlog: int(in.num("backlog")), MaxDatagram: int(in.num("max_datagram")),
	}
	if in.flag("accept") {
		cfg.Accept = func(_ ackbits.Header, payload []byte) error {
			switch {
			case bytes.HasPrefix(payload, []byte{0xEE}):
				return errors.New("not this one")
			case bytes.HasPrefix(payload, []byte{0xDD}):
				return fmt.Errorf("not yet: %w", ackbits.ErrWithhold)
			}
			return nil
		}
	}
	if key := in.bytes("seal"); len(key) > 0 {
		cfg.Seal, cfg.Open = aesGCM(t, key), aesGCM(t, in.bytes("open"))
	}
	v.session, err = ackbits.NewSession(cfg)
	require.NoError(t, err)
}

func aesGCM(t *testing.T, key []byte) cipher.AEAD {
	block, err := aes.NewCipher(key)
	require.NoError(t, err)
	aead, err := cipher.NewGCM(block)
	require.NoError(t, err)
	return aead
}

func (v *vectorEnd) receive(datagram []byte, out vectorStep) {
	in, err := v.session.Receive(datagram)
	app := in.Type < ackbits.TypeEvent || in.Type >= 16
	if err == nil && (!app || in.Payload != nil) {
		v.tracker.Receive(in.Sequence)
	}
	out["error"], out["arrival"] = vectorError(err), ""
	if err == nil {
		out["arrival"] = strings.ToLower(in.Arrival.String())
	}
	events := make([]string, 0, len(in.Events))
	for _, e := range in.Events {
		events = append(events, strconv.Itoa(int(e.ID))+":"+hex.EncodeToString(e.Data))
	}
	out["type"], out["seq"], out["latest"], out["handed"] = float64(in.Type), float64(in.Sequence), in.Latest, in.Payload != nil
	out["payload"], out["events"] = hex.EncodeToString(in.Payload), strings.Join(events, ",")
}

// state adds what every step of a session ends with.
func (v *vectorEnd) state(out vectorStep) {
	stats := v.session.Stats()
	out["ack"], out["bits"] = float64(v.tracker.Ack()), fmt.Sprintf("%016x", v.tracker.WideAckBits())
	out["in_flight"], out["room"] = float64(v.session.InFlight()), float64(v.session.Room())
	out["srtt"], out["rttvar"] = float64(stats.RTT), float64(stats.RTTVar)
	out["deadline"], out["ended"] = v.deadline(v.session.Deadline()), vectorError(v.session.Err())
}

// deadline returns a deadline as the files have it.
func (v *vectorEnd) deadline(at time.Time, ok bool) float64 {
	if !ok {
		return -1
	}
	if now := v.clock.Now(); at.Before(now) {
		at = now
	}
	return float64(at.Sub(time.Time{}))
}

func (v *vectorEnd) beginLane(t *testing.T, in vectorStep) {
	*v = vectorEnd{clock: new(ackbits.ManualClock)}
	var err error
	v.lane, err = ackbits.NewOrderedLane(ackbits.LaneConfig{
		Clock: v.clock, ResendDelay: in.duration("resend"), WakeInterval: in.duration("wake"), ResendBudget: int(in.num("budget")),
		SoftLimit: int(in.num("soft")), HardLimit: int(in.num("hard")), StallTimeout: in.duration("stall"),
	})
	require.NoError(t, err)
}

func (v *vectorEnd) playLane(do string, in, out vectorStep, take func(...string)) {
	switch do {
	case "lane_send":
		take("event", "droppable")
		priority := ackbits.Critical
		if in.flag("droppable") {
			priority = ackbits.Droppable
		}
		id, err := v.lane.Send(in.bytes("event"), priority)
		out["error"], out["id"] = vectorError(err), float64(id)
	case "lane_next":
		take("max")
		e, ok := v.lane.NextDue(int(in.num("max")))
		out["found"], out["id"], out["event"] = ok, float64(e.ID), hex.EncodeToString(e.Data)
	case "lane_receive":
		take("id")
		deliver, answer := v.lane.Receive(uint32(in.num("id")))
		out["deliver"], out["answer"] = deliver, float64(answer)
	case "lane_ack":
		take("ack_in")
		out["error"] = vectorError(v.lane.ReceiveAck(uint32(in.num("ack_in"))))
	}
	out["in_flight"], out["ack"] = float64(v.lane.InFlight()), float64(v.lane.Ack())
	out["deadline"], out["ended"] = v.deadline(v.lane.Deadline()), vectorError(v.lane.Err())
}

// vectorError returns the document's name of an error.
func vectorError(err error) string {
	for name, sentinel := range map[string]error{
		"short": ackbits.ErrShort, "oversize": ackbits.ErrOversize, "format": ackbits.ErrFormat, "token": ackbits.ErrToken,
		"replayed": ackbits.ErrReplayed, "forged": ackbits.ErrForged, "type": ackbits.ErrType, "payload": ackbits.ErrPayload,
		"window": ackbits.ErrWindow, "rejected": ackbits.ErrRejected, "event-too-large": ackbits.ErrEventTooLarge,
		"datagram-too-large": ackbits.ErrDatagramTooLarge, "reserved-type": ackbits.ErrReservedType,
		"timeout": ackbits.ErrTimeout, "peer-left": ackbits.ErrPeerLeft, "closed": ackbits.ErrClosed,
		"unacknowledged": ackbits.ErrUnacknowledged, "stalled": ackbits.ErrStalled, "key-exhausted": ackbits.ErrKeyExhausted,
		"lane-full": ackbits.ErrLaneFull, "lane-overflow": ackbits.ErrLaneOverflow, "ack": ackbits.ErrAck,
	} {
		if errors.Is(err, sentinel) {
			return name
		}
	}
	if err != nil {
		return err.Error()
	}
	return ""
}
