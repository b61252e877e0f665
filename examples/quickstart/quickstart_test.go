package main

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ackbits/ackbits"
	"github.com/ackbits/ackbits/simnet"
)

const success = "Every line was delivered exactly once and unchanged, in both directions"

// result is what a run of the program shows.
type result struct {
	code     int
	out, err string
}

func runWith(ctx context.Context, spread time.Duration, args ...string) result {
	var out, errOut bytes.Buffer
	code := run(ctx, args, spread, &progress{out: &out}, &errOut)
	return result{code, out.String(), errOut.String()}
}

func TestVirtual(t *testing.T) {
	for _, conditions := range []string{
		"",
		"-loss 0 -jitter 0 -dup 0",
		"-loss 0 -rtt 0 -jitter 0 -dup 0",
		"-loss 0.5",
		"-loss 0.8 -rtt 30ms",
		"-rtt 400ms -jitter 300ms -dup 1",
		"-plain",
	} {
		for seed := range 5 {
			args := append(strings.Fields(conditions), "-virtual", "-seed", fmt.Sprint(seed))
			t.Run(strings.Join(args, " "), func(t *testing.T) {
				r := runWith(t.Context(), spread, args...)
				require.Zero(t, r.code, "%s%s", r.out, r.err)
				assert.Empty(t, r.err)
				assert.Contains(t, r.out, success)
				assert.Regexp(t, `events sent +144 +144\n`, r.out)
				assert.Regexp(t, `events received +144 +144\n`, r.out)
				assert.Regexp(t, `delivered twice +0 +0\n`, r.out)
			})
		}
	}
}

func TestVirtualDependsOnTheSeedAlone(t *testing.T) {
	first := runWith(t.Context(), spread, "-virtual", "-seed", "7")
	assert.Equal(t, first, runWith(t.Context(), spread, "-virtual", "-seed", "7"))
	assert.NotEqual(t, first, runWith(t.Context(), spread, "-virtual", "-seed", "8"))
}

// More than the session takes at once: Room must hold the lines back.
func TestVirtualManyEvents(t *testing.T) {
	r := runWith(t.Context(), spread, "-virtual", "-events", "20000")
	require.Zero(t, r.code, "%s%s", r.out, r.err)
	assert.Regexp(t, `events received +20000 +20000\n`, r.out)
}

func TestUDP(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	r := runWith(ctx, time.Second, "-events", "40")
	require.Zero(t, r.code, "%s%s", r.out, r.err)
	assert.Contains(t, r.out, success)
	assert.NotContains(t, r.out, "\r")
	assert.Regexp(t, `events received +40 +40\n`, r.out)
}

func TestInterruptOverUDP(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	begin := time.Now()
	r := runWith(ctx, 2*time.Second)
	assert.Equal(t, exitInterrupted, r.code)
	assert.Less(t, time.Since(begin), 4*time.Second, "the peers do not wait for the timeout of 5 s")
	assert.Regexp(t, `(?m)^Interrupted after`, r.err)
	assert.Regexp(t, `(?m)^client: the session ended \(ackbits: (session closed|peer left)\) when, of 144 lines, \d+ were sent but not acknowledged and \d+ were not sent$`, r.err)
	assert.Regexp(t, `(?m)^server: `, r.err)
}

func TestInterruptInVirtualTime(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	r := runWith(ctx, spread, "-virtual")
	assert.Equal(t, exitInterrupted, r.code)
	assert.Contains(t, r.err, "of 144 lines, 0 were sent but not acknowledged and 144 were not sent")
}

func TestNothingArrives(t *testing.T) {
	for _, args := range []string{"-loss 1", "-rtt 1m"} {
		r := runWith(t.Context(), spread, append(strings.Fields(args), "-virtual")...)
		assert.Equal(t, exitFailed, r.code)
		assert.Contains(t, r.err, "Failed after 5.0 s:\nclient: the session ended (ackbits: timeout) when, of 144 lines, 120 were sent but not acknowledged and 24 were not sent\nserver: ")
		assert.NotContains(t, r.out, success)
	}
}

func TestOneLineForBadArguments(t *testing.T) {
	empty := filepath.Join(t.TempDir(), "empty.txt")
	require.NoError(t, os.WriteFile(empty, nil, 0o600))
	for args, want := range map[string]string{
		"-loss 1.5":          "-loss 1.5 is not a probability from 0 to 1 (20 % is 0.2)",
		"-loss NaN":          "-loss NaN is not a probability",
		"-loss 20%":          `invalid value "20%" for flag -loss`,
		"-dup -1":            "-dup -1 is not a probability",
		"-rtt 60":            `invalid value "60" for flag -rtt`,
		"-rtt -1ms":          "-rtt -1ms is not from 0s to 1m",
		"-rtt 61s":           "-rtt 1m1s is not from 0s to 1m",
		"-jitter -1ms":       "-jitter -1ms is not from 0s to 1m",
		"-events -1":         "-events -1 is not from 1 to",
		"-events 1000000000": "-events 1000000000 is not from 1 to",
		"-seed -1":           `invalid value "-1" for flag -seed`,
		"-speed 1":           "not defined: -speed",
		"file.txt":           `unexpected argument "file.txt"`,
		"-in /no/such/file":  "/no/such/file",
		"-in " + empty:       "is empty: there is nothing to send",
		"-in .":              "read .",
	} {
		t.Run(args, func(t *testing.T) {
			r := runWith(t.Context(), spread, strings.Fields(args)...)
			assert.Equal(t, exitUsage, r.code)
			assert.Empty(t, r.out)
			assert.Contains(t, r.err, want)
			assert.Regexp(t, `^quickstart: [^\n]+\n$`, r.err)
		})
	}
}

func TestHelp(t *testing.T) {
	r := runWith(t.Context(), spread, "-h")
	assert.Zero(t, r.code)
	assert.Empty(t, r.err)
	for _, name := range []string{"-in", "-events", "-loss", "-rtt", "-jitter", "-dup", "-seed", "-virtual", "-plain"} {
		assert.Contains(t, r.out, "\n  "+name)
	}
}

func TestScript(t *testing.T) {
	longest := strings.Repeat("x", options{}.maxLine())
	for name, c := range map[string]struct {
		text  string
		count int
		want  []string
	}{
		"as it is":            {"a\nb\n", 0, []string{"a", "b"}},
		"no line feed at end": {"a\nb", 0, []string{"a", "b"}},
		"one line feed":       {"\n", 0, []string{""}},
		"empty lines":         {"\n\na\n\n", 0, []string{"", "", "a", ""}},
		"the same lines":      {"a\na\na\n", 0, []string{"a", "a", "a"}},
		"CRLF":                {"a\r\nb\r\n", 0, []string{"a\r", "b\r"}},
		"binary":              {"\x00\xff\n\xfe\r", 0, []string{"\x00\xff", "\xfe\r"}},
		"the longest":         {longest, 0, []string{longest}},
		"repeated":            {"a\nb\n", 5, []string{"a", "b", "a", "b", "a"}},
		"cut short":           {"a\nb\n" + longest + "x", 2, []string{"a", "b"}},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "text")
			require.NoError(t, os.WriteFile(file, []byte(c.text), 0o600))
			s, err := readScript(t.Context(), file, c.count, options{}.maxLine())
			require.NoError(t, err)
			var lines []string
			for i := range s.count {
				lines = append(lines, string(s.line(i)))
			}
			assert.Equal(t, c.want, lines)

			r := runWith(t.Context(), spread, "-virtual", "-in", file, "-events", fmt.Sprint(c.count))
			assert.Zero(t, r.code, "%s%s", r.out, r.err)
		})
	}
}

func TestScriptTooLongALine(t *testing.T) {
	for _, o := range []options{{}, {plain: true}} {
		client, _, err := newPeers(o, nil, script{}, spread)
		require.NoError(t, err)
		require.Equal(t, client.session.MaxEvent()-numberSize, o.maxLine())
		_, err = newScript("f", []byte("a\n"+strings.Repeat("x", o.maxLine()+1)+"\nb"), 0, o.maxLine())
		assert.EqualError(t, err, fmt.Sprintf("line 2 of f has %d bytes, but an event has room for a line of %d", o.maxLine()+1, o.maxLine()))
	}
}

// What a peer sends can be read on the wire with -plain, and only then.
func TestSealed(t *testing.T) {
	for _, o := range []options{{virtual: true}, {virtual: true, plain: true}} {
		client, _, err := newPeers(o, new(ackbits.ManualClock), embedded(t), time.Millisecond)
		require.NoError(t, err)
		var wire []byte
		client.tick(func(datagram []byte) {
			h, _, err := ackbits.ParseHeader(datagram)
			require.NoError(t, err)
			assert.Equal(t, !o.plain, h.Sealed)
			wire = append(wire, datagram...)
		})
		assert.Equal(t, o.plain, bytes.Contains(wire, []byte("We left before the harbour woke")))
	}
}

func TestScriptDue(t *testing.T) {
	s := script{count: maxEvents}
	assert.Zero(t, s.due(0, 360))
	assert.Equal(t, maxEvents/2, s.due(180, 360))
	assert.Equal(t, maxEvents, s.due(360, 360))
	assert.Equal(t, maxEvents, s.due(math.MaxUint32, 360))
}

// The checker must find what it is there to find.
func TestTally(t *testing.T) {
	s, err := newScript("", []byte("one\ntwo\none\n"), 0, 100)
	require.NoError(t, err)
	event := func(number uint32, text string) []byte { return appendLine(nil, int(number), []byte(text)) }
	for name, c := range map[string]struct {
		events [][]byte
		want   string
	}{
		"all":             {[][]byte{event(0, "one"), event(1, "two"), event(2, "one")}, ""},
		"another order":   {[][]byte{event(2, "one"), event(0, "one"), event(1, "two")}, ""},
		"nothing":         {nil, "lines were not delivered: 3 of 3, the first of them line 1"},
		"one missing":     {[][]byte{event(0, "one"), event(2, "one")}, "lines were not delivered: 1 of 3, the first of them line 2"},
		"one twice":       {[][]byte{event(0, "one"), event(0, "one"), event(1, "two"), event(2, "one")}, "1 events were lines that had been delivered before"},
		"another's twice": {[][]byte{event(0, "one"), event(0, "one"), event(1, "two")}, "1 events were lines that had been delivered before"},
		"tampered":        {[][]byte{event(0, "one"), event(1, "twO"), event(2, "one")}, "lines were changed"},
		"longer":          {[][]byte{event(0, "one"), event(1, "two "), event(2, "one")}, "lines were changed"},
		"swapped":         {[][]byte{event(0, "two"), event(1, "one"), event(2, "one")}, "lines were changed"},
		"beyond the end":  {[][]byte{event(0, "one"), event(1, "two"), event(2, "one"), event(3, "")}, "1 events were delivered that nobody sent"},
		"the highest":     {[][]byte{event(0, "one"), event(1, "two"), event(2, "one"), event(math.MaxUint32, "")}, "1 events were delivered that nobody sent"},
		"no number":       {[][]byte{event(0, "one"), event(1, "two"), event(2, "one"), {1, 0, 0}}, "1 events were delivered that nobody sent"},
	} {
		t.Run(name, func(t *testing.T) {
			tally := tally{seen: make([]bool, s.count)}
			for _, e := range c.events {
				tally.add(e)
			}
			err := tally.check(s.digest)
			if c.want == "" {
				assert.NoError(t, err)
			} else {
				assert.ErrorContains(t, err, c.want)
			}
		})
	}
}

// A whole run that goes wrong at one end is found out, ends, and fails.
func TestTamperedRunFails(t *testing.T) {
	for name, c := range map[string]struct {
		tamper func(client, server *peer)
		want   string
	}{
		"missing": {
			func(client, server *peer) { // which expects one more than is sent
				server.tally.seen = append(server.tally.seen, false)
			},
			"from client to server: lines were not delivered: 1 of 145, the first of them line 145",
		},
		"twice": {
			func(client, server *peer) {
				client.tally.add(appendLine(nil, 1, server.script.line(1)))
			},
			"from server to client: 1 events were lines that had been delivered before",
		},
		"changed": {
			func(client, server *peer) { client.script.text = [][]byte{[]byte("something else")} },
			"from client to server: lines were changed",
		},
	} {
		t.Run(name, func(t *testing.T) {
			client, server, clock := testPeers(t, embedded(t))
			c.tamper(client, server)
			traffic := inVirtualTime(t.Context(), client, server, clock, 1, simnet.Config{Loss: 0.2, Delay: 30 * time.Millisecond})
			assert.Less(t, traffic.took, 15*time.Second)
			var out, errOut bytes.Buffer
			assert.Equal(t, exitFailed, conclude(t.Context(), client, server, traffic, &out, &errOut))
			assert.Contains(t, errOut.String(), c.want)
			assert.Empty(t, out.String())
		})
	}
}

// A peer whose three Disconnects were all lost leaves the other to its timeout,
// but nothing is missing.
func TestLostDisconnects(t *testing.T) {
	client, server, clock := testPeers(t, script{}) // no lines, so that both are drained from the start
	nowhere := func([]byte) {}
	client.theirs.drained = true
	client.tick(nowhere)
	require.ErrorIs(t, client.session.Err(), ackbits.ErrClosed)

	for !server.over() {
		clock.Advance(50 * time.Millisecond)
		server.tick(nowhere)
	}
	require.ErrorIs(t, server.session.Err(), ackbits.ErrTimeout)
	assert.NoError(t, problem(client, server))
	assert.NoError(t, problem(server, client))
}

func testPeers(t *testing.T, s script) (client, server *peer, clock *ackbits.ManualClock) {
	t.Helper()
	clock = new(ackbits.ManualClock)
	client, server, err := newPeers(options{virtual: true}, clock, s, spread)
	require.NoError(t, err)
	return client, server, clock
}

func embedded(t *testing.T) script {
	t.Helper()
	s, err := readScript(t.Context(), "", 0, options{}.maxLine())
	require.NoError(t, err)
	return s
}

func TestProgress(t *testing.T) {
	client, server, _ := testPeers(t, embedded(t))
	const line = "  0.0 s  up 0, down 0 of 144  rtt -  loss -  retransmitted 0  in flight 0"
	draw := func(columns func() int) string {
		var out bytes.Buffer
		p := &progress{out: &out, columns: columns, last: line + "and more"}
		p.draw(client, server)
		p.draw(client, server)
		p.end(client, server)
		return out.String()
	}
	assert.Equal(t, line+"\n", draw(nil))
	assert.Equal(t, "\r"+line+"        \r"+line+"\r"+line+"\n", draw(func() int { return 100 }))

	// In a narrow terminal nothing may reach the last column, while it is made
	// narrower neither, and no number is cut in two.
	width := 38
	narrow := draw(func() int { width--; return width })
	const short = "  0.0 s  up 0, down 0 of 144"
	assert.Equal(t, "\r"+short+"  rtt - \r"+short+"  rtt -\r"+short+"      \n", narrow)
	assert.Equal(t, "\r\r\r\n", draw(func() int { return 1 }))
}

// fullDisk takes so many bytes, then nothing more can be written.
type fullDisk struct{ left int }

func (d *fullDisk) Write(b []byte) (int, error) {
	if d.left -= len(b); d.left < 0 {
		return 0, syscall.ENOSPC
	}
	return len(b), nil
}

func TestFullDisk(t *testing.T) {
	for name, c := range map[string]struct {
		left int
		args []string
	}{
		"at the start": {0, []string{"-virtual"}},
		"in the table": {400, []string{"-virtual"}},
		"in the help":  {300, []string{"-h"}},
	} {
		t.Run(name, func(t *testing.T) {
			var errOut bytes.Buffer
			assert.Equal(t, exitFailed, run(t.Context(), c.args, spread, &progress{out: &fullDisk{c.left}}, &errOut))
			assert.Regexp(t, `^quickstart: [^\n]*no space left on device\n$`, errOut.String())
		})
	}
}
