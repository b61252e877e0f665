//go:build tshark

package wireshark

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ackbits/ackbits"
	"github.com/ackbits/ackbits/simnet"
)

const (
	token     = 0x1122334455667788
	strangers = 52000 // the port of what is not ackbits
)

var captureFile = flag.String("capture", "", "write the capture that docs/wireshark shows to this `file`")

// names are the fields that are compared.
var names = []string{
	"type", "sealed", "token", "seq", "number", "ack", "ack_bits", "acked", "acked_frame", "first_acked", "first_acked_after",
	"acked_in", "acked_after", "duplicate_of", "inner_type", "count", "event.id", "event.length", "event.data", "event.copy",
	"event.resent", "event.first", "event.delivered_in", "payload", "sealed_payload",
	"handshake.kind", "handshake.version", "handshake.form", "handshake.client_key", "handshake.server_key", "handshake.cookie", "handshake.salt", "handshake.code", "handshake.box",
	"transfer.kind", "transfer.id", "transfer.size", "transfer.digest", "transfer.name", "transfer.serial", "transfer.offset", "transfer.arrived", "transfer.result", "transfer.reason", "transfer.runs", "transfer.data",
	"bad_kind", "bad_length", "bad_transfer", "short", "oversize", "cut", "bad_type", "not_empty", "no_events", "past_end", "left_over", "bad_inner_type", "never_sent", "duplicate", "resent",
}

// row is what tshark says of a frame: values by the fields' names, 1 for an expert
// info that is there.
type row map[string]string

// dissect lets tshark read a capture and returns a row for each frame.
func dissect(t *testing.T, frames []frame) []row {
	t.Helper()
	file := filepath.Join(t.TempDir(), "capture.pcap")
	if dir := os.Getenv("ACKBITS_CAPTURES"); dir != "" { // to look at
		file = filepath.Join(dir, strings.ReplaceAll(t.Name(), "/", "-")+".pcap")
	}
	require.NoError(t, os.WriteFile(file, pcap(frames), 0o644))
	args := []string{"-X", "lua_script:../../docs/wireshark/ackbits.lua", "-o", "ackbits.transfer_type:77", "-2", "-r", file, "-T", "fields", "-E", "separator=/t", "-E", "occurrence=a", "-E", "aggregator=,"}
	for _, name := range names {
		args = append(args, "-e", "ackbits."+name)
	}
	cmd := exec.Command("tshark", append(args, "-e", "_ws.lua.error", "-e", "_ws.malformed")...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	require.NoError(t, err, stderr.String())
	require.NotContains(t, stderr.String(), "ackbits.lua", "tshark complains of the dissector")
	lines := strings.Split(strings.TrimSuffix(string(out), "\n"), "\n")
	require.Len(t, lines, len(frames))
	rows := make([]row, len(lines))
	for i, line := range lines {
		values := strings.Split(line, "\t")
		require.Len(t, values, len(names)+2)
		require.Empty(t, values[len(names)], "a Lua error in frame %d", i+1)
		rows[i] = row{}
		if f := frames[i]; values[len(names)+1] != "" && f.port < strangers { // others' dissectors may well complain
			rows[i]["malformed"] = values[len(names)+1]
		}
		for k, value := range values[:len(names)] {
			if value != "" {
				rows[i][names[k]] = value
			}
		}
	}
	return rows
}

// knowledge is what a capture tells of one direction, by the library's own parser
// and a map for everything.
type knowledge struct {
	newest      int64
	sent        map[int64]*datagram
	newestEvent int64
	events      map[int64]*copies
}

type datagram struct {
	frame   int
	at      time.Duration
	ackedIn int
	ackedAt time.Duration
	events  []*copies
}

type copies struct{ first, n, deliveredIn int }

func know() *knowledge {
	return &knowledge{newest: -1, newestEvent: -1, sent: map[int64]*datagram{}, events: map[int64]*copies{}}
}

// expect says what must be shown of each frame of sound sessions.
func expect(t *testing.T, frames []frame) []row {
	rows := make([]row, len(frames))
	known := map[uint16][2]*knowledge{}
	var settle []func()
	for i, f := range frames {
		if known[f.port] == [2]*knowledge{} {
			known[f.port] = [2]*knowledge{know(), know()}
		}
		ours, theirs := known[f.port][0], known[f.port][1]
		if f.back {
			ours, theirs = theirs, ours
		}
		rows[i] = row{}
		settle = append(settle, expectFrame(t, rows[i], i+1, f, ours, theirs))
	}
	for _, fn := range settle {
		fn()
	}
	return rows
}

func expectFrame(t *testing.T, r row, number int, f frame, ours, theirs *knowledge) (settle func()) {
	h, payload, err := ackbits.ParseHeader(f.data)
	require.NoError(t, err)
	r["type"], r["token"], r["seq"], r["ack"] = strconv.Itoa(int(h.Type)), fmt.Sprintf("0x%016x", h.Token), strconv.Itoa(int(h.Sequence)), strconv.Itoa(int(h.Ack))
	r["ack_bits"], r["sealed"] = fmt.Sprintf("0x%016x", h.AckBits), truth(h.Sealed)
	n := h.Sequence
	at := ours.newest + int64(int16(n-uint16(ours.newest)))
	r["number"] = strconv.FormatInt(at, 10)
	events := expectPayload(t, r, h, payload)
	d := &datagram{frame: number, at: f.at}
	var shown []*copies
	if first := ours.sent[at]; first != nil {
		r["duplicate_of"], r["duplicate"] = strconv.Itoa(first.frame), "1"
	} else {
		ours.sent[at] = d
		ours.newest = max(ours.newest, at)
		for _, e := range events {
			id := ours.newestEvent + int64(int16(e.ID-uint16(ours.newestEvent)))
			ours.newestEvent = max(ours.newestEvent, id)
			c := ours.events[id]
			if c == nil {
				c = &copies{first: number}
				ours.events[id] = c
			}
			c.n++
			d.events = append(d.events, c)
			shown = append(shown, c)
			add(r, "event.copy", strconv.Itoa(c.n))
			add(r, "event.resent", truth(c.n > 1))
			if c.n > 1 {
				add(r, "event.first", strconv.Itoa(c.first))
				r["resent"] = "1"
			}
		}
	}
	expectAcks(r, h, number, f.at, theirs)
	return func() {
		if d.ackedIn > 0 && ours.sent[at] == d {
			r["acked_in"], r["acked_after"] = strconv.Itoa(d.ackedIn), seconds(d.ackedAt-d.at)
		}
		for _, c := range shown {
			if c.deliveredIn > 0 {
				add(r, "event.delivered_in", strconv.Itoa(c.deliveredIn))
			}
		}
	}
}

func expectPayload(t *testing.T, r row, h ackbits.Header, payload []byte) (events []ackbits.Event) {
	switch {
	case h.Sealed:
		r["sealed_payload"] = fmt.Sprintf("%x", payload)
		return nil
	case h.Type == ackbits.TypeBundle:
		r["inner_type"] = strconv.Itoa(int(payload[0]))
		end := 2
		for range payload[1] {
			end += 4 + int(payload[end+2]) + int(payload[end+3])<<8
		}
		events, payload = parse(t, payload[1:end]), payload[end:]
	case h.Type == ackbits.TypeEvent:
		events, payload = parse(t, payload), nil
	}
	if len(events) > 0 {
		r["count"] = strconv.Itoa(len(events))
		for _, e := range events {
			add(r, "event.id", strconv.Itoa(int(e.ID)))
			add(r, "event.length", strconv.Itoa(len(e.Data)))
			if len(e.Data) > 0 {
				add(r, "event.data", fmt.Sprintf("%x", e.Data))
			}
		}
	}
	if len(payload) > 0 {
		r["payload"] = fmt.Sprintf("%x", payload)
	}
	return events
}

func expectAcks(r row, h ackbits.Header, number int, at time.Duration, theirs *knowledge) {
	if theirs.newest < 0 {
		if h.Ack != 65535 {
			r["never_sent"] = "1"
		}
		return
	}
	age := uint16(theirs.newest) - h.Ack
	top := theirs.newest - int64(age)
	named := []int64{top}
	for n := range 64 {
		if h.AckBits>>n&1 != 0 {
			named = append(named, top-1-int64(n))
		}
	}
	var news []*datagram
	for i, n := range named {
		d := theirs.sent[n]
		if d == nil || age >= 1<<15 {
			if i == 0 && h.Ack != 65535 || age >= 1<<15 {
				r["never_sent"] = "1"
			}
			continue
		}
		add(r, "acked", strconv.Itoa(int(uint16(n))))
		add(r, "acked_frame", strconv.Itoa(d.frame))
		if d.ackedIn == 0 {
			news = append(news, d)
			d.ackedIn, d.ackedAt = number, at
			add(r, "first_acked", strconv.Itoa(d.frame))
			add(r, "first_acked_after", seconds(at-d.at))
		}
	}
	for _, d := range news {
		for _, c := range d.events {
			if c.deliveredIn == 0 {
				c.deliveredIn = number
			}
		}
	}
}

func parse(t *testing.T, payload []byte) []ackbits.Event {
	events, err := ackbits.ParseEvents(nil, payload)
	require.NoError(t, err)
	return events
}

func add(r row, name, value string) {
	if r[name] != "" {
		value = r[name] + "," + value
	}
	r[name] = value
}

func truth(b bool) string {
	if b {
		return "1"
	}
	return "0"
}

func seconds(d time.Duration) string {
	return fmt.Sprintf("%d.%09d", d/time.Second, d%time.Second)
}

// session plays two seconds over a bad link, seen from the first peer's machine.
func session(port uint16, a, b ackbits.Config, seed uint64) (frames []frame) {
	var clock ackbits.ManualClock
	a.Clock, b.Clock, a.Token, b.Token = &clock, &clock, token, token
	peers := [2]*ackbits.Session{must(ackbits.NewSession(a)), must(ackbits.NewSession(b))}
	network := simnet.Config{Delay: 20 * time.Millisecond, Jitter: 12 * time.Millisecond, Loss: 0.15, Duplicate: 0.05}
	links := [2]*simnet.Link{simnet.NewLink(seed, network), simnet.NewLink(seed+1, network)}
	var now time.Duration
	note := func(back bool, data []byte) {
		frames = append(frames, frame{at: now, back: back, port: port, data: bytes.Clone(data)})
	}
	send := func(from int, data []byte) {
		if from == 0 {
			note(false, data)
		}
		links[from].Send(now, data)
	}
	for n := range 240 {
		now = time.Duration(n) * 10 * time.Millisecond
		clock.Set(time.Time{}.Add(now))
		for i, s := range peers {
			for {
				data, ok := links[1-i].Receive(now)
				if !ok {
					break
				}
				if i == 0 {
					note(true, data)
				}
				s.Receive(data)
				for out := range s.Due(nil) {
					send(i, out)
				}
			}
			if n < 200 && n%(5+2*i) == 0 {
				s.Send(fmt.Appendf(nil, "%d", n))
				s.Send(nil)
			}
			if n%2 == i {
				send(i, must3(s.AppendDatagram(nil, ackbits.TypeInput, []byte{byte(n)})))
			}
			for out := range s.Due(nil) {
				send(i, out)
			}
		}
	}
	peers[0].Close()
	for out := range peers[0].Due(nil) {
		send(0, out)
	}
	return frames
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func must3(data []byte, _ uint16, err error) []byte { return must(data, err) }

func aesGCM(key byte) cipher.AEAD {
	return must(cipher.NewGCM(must(aes.NewCipher(bytes.Repeat([]byte{key}, 16)))))
}

// TestSessions compares all that is shown of sound sessions, of all forms.
func TestSessions(t *testing.T) {
	for i, form := range []struct {
		name string
		a, b ackbits.Config
	}{
		{"narrow", ackbits.Config{}, ackbits.Config{}},
		{"wide", ackbits.Config{Wide: true}, ackbits.Config{Wide: true}},
		{"bundle", ackbits.Config{Bundle: true}, ackbits.Config{Bundle: true, Adaptive: true}},
		{"sealed", ackbits.Config{Seal: aesGCM(1), Open: aesGCM(2)}, ackbits.Config{Seal: aesGCM(2), Open: aesGCM(1)}},
		{"sealed-wide", ackbits.Config{Wide: true, Seal: aesGCM(1), Open: aesGCM(2)}, ackbits.Config{Wide: true, Seal: aesGCM(2), Open: aesGCM(1)}},
	} {
		t.Run(form.name, func(t *testing.T) {
			frames := session(uint16(40000+2*i), form.a, form.b, uint64(10*i+1))
			if form.name == "bundle" && *captureFile != "" {
				require.NoError(t, os.WriteFile(*captureFile, pcap(frames), 0o644))
			}
			got, want := dissect(t, frames), expect(t, frames)
			resent, acked := 0, 0
			for i := range frames {
				require.Equal(t, want[i], got[i], "frame %d", i+1)
				if got[i]["resent"] != "" {
					resent++
				}
				if got[i]["acked_in"] != "" {
					acked++
				}
			}
			require.Greater(t, acked, len(frames)/2)
			if form.a.Seal == nil {
				require.Greater(t, resent, 2)
			}
		})
	}
}

// TestWrap follows sequences, ids and acknowledgements through 65535.
func TestWrap(t *testing.T) {
	var frames []frame
	emit := func(back bool, h ackbits.Header, payload ...byte) {
		h.Token = token
		frames = append(frames, frame{at: time.Duration(len(frames)) * time.Millisecond, back: back, port: 50000, data: append(h.AppendTo(nil), payload...)})
	}
	for n := range uint16(10) {
		seq := n - 5
		emit(false, ackbits.Header{Type: ackbits.TypeEvent, Sequence: seq, Ack: seq - 1}, 1, byte(seq), byte(seq>>8), 0, 0)
		emit(true, ackbits.Header{Type: ackbits.TypeHeartbeat, Sequence: seq, Ack: seq, AckBits: 1<<n - 1})
	}
	got := dissect(t, frames)
	require.Equal(t, "65535", got[8]["event.id"])
	require.Equal(t, "65535", got[8]["number"])
	require.Equal(t, "65536", got[10]["number"])
	require.Equal(t, "1,0,65535,65534,65533,65532,65531", got[13]["acked"])
	require.Equal(t, "13,11,9,7,5,3,1", got[13]["acked_frame"])
	require.Equal(t, "13", got[13]["first_acked"])
	require.Equal(t, "0.001000000", got[13]["first_acked_after"])
	require.Equal(t, "14", got[12]["acked_in"])
	require.Equal(t, "14", got[12]["event.delivered_in"])
	require.Empty(t, got[12]["never_sent"])
	require.NotEmpty(t, got[0]["never_sent"], "the capture began in the middle")
}

// TestHostile shows what is malformed as such, and goes on.
func TestHostile(t *testing.T) {
	header := func(ty ackbits.Type, seq uint16) []byte {
		return ackbits.Header{Type: ty, Token: token, Sequence: seq, Ack: 65535}.AppendTo(nil)
	}
	good := append(header(ackbits.TypeEvent, 0), 1, 0, 0, 1, 0, 9)
	cases := []struct {
		data   []byte
		snap   int
		expert string
	}{
		{good, 0, ""},
		{good[:17], 0, "short"},
		{append([]byte{0x0B}, good[1:21]...), 0, "short"},
		{good[:1], 0, "short"},
		{append(header(ackbits.TypeInput, 1), make([]byte, 1183)...), 0, "oversize"},
		{header(0, 1), 0, "bad_type"},
		{header(9, 1), 0, "bad_type"},
		{header(15, 1), 0, "bad_type"},
		{append(header(ackbits.TypeHeartbeat, 1), 0), 0, "not_empty"},
		{append(header(ackbits.TypeDisconnect, 1), 1, 2, 3), 0, "not_empty"},
		{header(ackbits.TypeEvent, 1), 0, "no_events"},
		{append(header(ackbits.TypeEvent, 1), 0), 0, "no_events"},
		{append(header(ackbits.TypeEvent, 1), 1), 0, "past_end"},
		{append(header(ackbits.TypeEvent, 1), 1, 0, 0, 1, 0), 0, "past_end"},
		{append(header(ackbits.TypeEvent, 1), 255, 0, 0, 0xFF, 0xFF), 0, "past_end"},
		{append(header(ackbits.TypeEvent, 1), 1, 0, 0, 0, 0, 7), 0, "left_over"},
		{header(ackbits.TypeBundle, 1), 0, "bad_inner_type"},
		{append(header(ackbits.TypeBundle, 1), 5, 1, 0, 0, 0, 0), 0, "bad_inner_type"},
		{append(header(ackbits.TypeBundle, 1), 3), 0, "no_events"},
		{append(header(ackbits.TypeBundle, 1), 3, 1, 0, 0, 9, 0), 0, "past_end"},
		{append(header(ackbits.TypeInput, 1), make([]byte, 1000)...), 40, "cut"},
		{append(header(ackbits.TypeEvent, 2), 1, 0, 0, 100, 0), 19, "cut"},
		{append(header(ackbits.TypeInput, 3), make([]byte, 1000)...), 17, "cut"},
		{append(header(ackbits.TypeInput, 4), make([]byte, 1000)...), 1, "cut"},
		{header(ackbits.TypeHeartbeat, 5), 0, ""},
	}
	var frames []frame
	for i, c := range cases {
		frames = append(frames, frame{at: time.Duration(i), port: 51000, data: c.data, snap: c.snap})
	}
	// And noise: every format byte, cut everywhere; nothing may break.
	for n := range 200 {
		noise := bytes.Clone(good)
		noise[n%len(noise)] ^= byte(n*37 + 1)
		frames = append(frames, frame{at: time.Duration(len(frames)), port: 51000, data: noise[:n%(len(noise)+1)]})
	}
	rows := dissect(t, frames)
	for i, c := range cases {
		for _, name := range []string{"short", "oversize", "cut", "bad_type", "not_empty", "no_events", "past_end", "left_over", "bad_inner_type"} {
			require.Equal(t, name == c.expert, rows[i][name] != "", "frame %d: %s", i+1, name)
		}
	}
	require.Equal(t, "5", rows[24]["seq"], "what follows is shown as ever")
}

// TestHandshake shows the messages of chapter 13.
func TestHandshake(t *testing.T) {
	fill := func(n int, with byte) []byte { return bytes.Repeat([]byte{with}, n) }
	hexed := func(n int, with byte) string { return fmt.Sprintf("%x", fill(n, with)) }
	join := func(parts ...[]byte) []byte { return bytes.Join(parts, nil) }
	token := []byte{8, 7, 6, 5, 4, 3, 2, 1}
	cases := []struct {
		data []byte
		back bool
		want row
	}{
		{join([]byte{0x0E, 1, 1, 0}, fill(32, 0xAA), fill(604, 0)), false, row{"handshake.kind": "1", "handshake.version": "1", "handshake.form": "0", "handshake.client_key": hexed(32, 0xAA), "handshake.cookie": hexed(32, 0), "handshake.box": hexed(572, 0)}},
		{join([]byte{0x0E, 2, 1}, fill(32, 0xAA), fill(32, 0xBB), fill(32, 0xCC)), true, row{"handshake.kind": "2", "handshake.version": "1", "handshake.client_key": hexed(32, 0xAA), "handshake.server_key": hexed(32, 0xBB), "handshake.cookie": hexed(32, 0xCC)}},
		{join([]byte{0x0E, 3}, fill(32, 0xBB), fill(42, 1)), true, row{"handshake.kind": "3", "handshake.server_key": hexed(32, 0xBB), "handshake.box": hexed(42, 1)}},
		{join([]byte{0x0E, 4}, fill(16, 0xDD), fill(16, 1)), true, row{"handshake.kind": "4", "handshake.salt": hexed(16, 0xDD), "handshake.box": hexed(16, 1)}},
		{join([]byte{0x0E, 5}, token, fill(16, 5)), true, row{"handshake.kind": "5", "token": "0x0102030405060708", "handshake.code": hexed(16, 5)}},
		{join([]byte{0x0E, 6}, token, fill(16, 5)), true, row{"handshake.kind": "6", "token": "0x0102030405060708", "handshake.code": hexed(16, 5)}},
		{join([]byte{0x0E, 7}, token, fill(16, 5)), false, row{"handshake.kind": "7", "token": "0x0102030405060708", "handshake.code": hexed(16, 5)}},
		{[]byte{0x0E, 8}, false, row{"handshake.kind": "8", "bad_kind": "1", "malformed": "_ws.malformed"}},
		{[]byte{0x0E}, false, row{"short": "1", "malformed": "_ws.malformed"}},
		{join([]byte{0x0E, 2}, fill(96, 0)), true, row{"handshake.kind": "2", "bad_length": "1", "malformed": "_ws.malformed"}},
	}
	var frames []frame
	for i, c := range cases {
		frames = append(frames, frame{at: time.Duration(i), back: c.back, port: 51500, data: c.data})
	}
	for i, r := range dissect(t, frames) {
		require.Equal(t, cases[i].want, r, "frame %d", i+1)
	}
}

// TestTransfer shows the messages of chapter 14, of the type that the preference names.
func TestTransfer(t *testing.T) {
	offer := append([]byte{1, 2, 0, 0, 4, 0, 0, 0, 0, 0, 0}, bytes.Repeat([]byte{0xAB}, 32)...)
	offer = append(append(offer, 3), "map"...)
	offer = append(offer, make([]byte, 512-len(offer))...)
	cases := []struct {
		payload []byte
		want    row
	}{
		{offer, row{"transfer.kind": "1", "transfer.id": "2", "transfer.size": "1024", "transfer.digest": strings.Repeat("ab", 32), "transfer.name": "map"}},
		{[]byte{2, 2, 0, 0, 5}, row{"transfer.kind": "2", "transfer.id": "2", "transfer.runs": "0005"}},
		{append([]byte{3, 2, 0}, "no room"...), row{"transfer.kind": "3", "transfer.id": "2", "transfer.reason": "no room"}},
		{[]byte{4, 2, 0, 7, 0, 1, 0, 0, 0, 0xDA, 0x7A}, row{"transfer.kind": "4", "transfer.id": "2", "transfer.serial": "7", "transfer.offset": "1", "transfer.data": "da7a"}},
		{[]byte{5, 2, 0, 8, 0, 2, 0, 0, 0, 0xDA}, row{"transfer.kind": "5", "transfer.id": "2", "transfer.serial": "8", "transfer.offset": "2", "transfer.data": "da"}},
		{[]byte{6, 8, 0, 0x10, 0x27, 0, 0}, row{"transfer.kind": "6", "transfer.serial": "8", "transfer.arrived": "10000"}},
		{[]byte{7, 2, 0, 1}, row{"transfer.kind": "7", "transfer.id": "2", "transfer.result": "1"}},
		{[]byte{8, 2, 0}, row{"transfer.kind": "8", "transfer.id": "2"}},
		{append([]byte{9, 2, 0}, "why"...), row{"transfer.kind": "9", "transfer.id": "2", "transfer.reason": "why"}},
		{[]byte{10, 2, 0}, row{"bad_transfer": "1"}},
		{[]byte{6, 8, 0, 0x10}, row{"transfer.kind": "6", "transfer.serial": "8", "bad_transfer": "1"}},
		{offer[:511], row{"transfer.kind": "1", "transfer.id": "2", "transfer.size": "1024", "transfer.digest": strings.Repeat("ab", 32), "bad_transfer": "1"}},
	}
	var frames []frame
	for i, c := range cases {
		h := ackbits.Header{Type: 77, Token: token, Sequence: uint16(i), Ack: 65535}
		frames = append(frames, frame{at: time.Duration(i), port: 51700, data: append(h.AppendTo(nil), c.payload...)})
	}
	for i, r := range dissect(t, frames) {
		got := row{}
		for name, value := range r {
			if strings.HasPrefix(name, "transfer.") || name == "bad_transfer" {
				got[name] = value
			}
		}
		require.Equal(t, cases[i].want, got, "frame %d", i+1)
	}
}

// TestStrangers are left alone: QUIC, STUN and DNS on a port of their own.
func TestStrangers(t *testing.T) {
	var frames []frame
	for i, data := range [][]byte{
		append([]byte{0xC3, 0, 0, 0, 1}, make([]byte, 40)...), append([]byte{0, 1, 0, 8, 0x21, 0x12, 0xA4, 0x42}, make([]byte, 20)...),
		append([]byte{0x0A, 0}, make([]byte, 30)...), append([]byte{0x0A, 6}, make([]byte, 30)...),
	} {
		frames = append(frames, frame{at: time.Duration(i), port: strangers, data: data})
	}
	for _, r := range dissect(t, frames) {
		require.Empty(t, r)
	}
}
