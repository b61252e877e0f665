package transfer

import (
	"crypto/aes"
	"crypto/cipher"
	"encoding/hex"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"go/build"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ackbits/ackbits"
)

// vector is a payload and what it says, or that it is refused. Fields that its kind does
// not have are empty. Bytes are in hexadecimal.
type vector struct {
	About   string `json:"about"`
	Payload string `json:"payload"`
	Error   string `json:"error"` // "" or "message"
	Kind    int    `json:"kind"`
	ID      int    `json:"id"`
	Name    string `json:"name"`
	Size    string `json:"size"` // decimal
	Digest  string `json:"digest"`
	Serial  int    `json:"serial"`
	Offset  string `json:"offset"` // in units, decimal
	Data    string `json:"data"`
	Arrived string `json:"arrived"` // decimal
	Result  int    `json:"result"`
	Runs    string `json:"runs"` // "from-to" in units, to excluded, with spaces between
	Reason  string `json:"reason"`
}

// examples are the payloads that the vectors show.
func examples() (list []vector) {
	show := func(about string, payload []byte) {
		list = append(list, read(about, payload))
	}
	offer := Offer{ID: 258, Name: []byte("dust2"), Size: 300_000, Digest: [32]byte{0: 0xaa, 31: 0xbb}}
	show("an offer", offer.append(nil))
	offer.Name, offer.Size = nil, 0
	show("an offer of an empty file without a name", offer.append(nil))
	offer.Size = maxSize
	show("an offer of the largest file", offer.append(nil))
	offer.Size++
	show("a file that is too large", offer.append(nil))
	offer.Size = 1
	long := offer.append(nil)
	show("an offer that is too short", long[:len(long)-1])
	show("an offer that is too long", append(offer.append(nil), 0))
	long[offerSize-1] = 1
	show("something behind the name", long)
	show("an accept: nothing is there", appendHead(nil, kindAccept, 258))
	show("an accept: all but units 100, 101 and what follows 300", append(appendHead(nil, kindAccept, 1), 0, 100, 2, 0xc6, 1))
	show("a pair of runs that is not whole", append(appendHead(nil, kindAccept, 1), 5))
	show("an empty run", append(appendHead(nil, kindAccept, 1), 5, 0))
	show("two runs without a gap", append(appendHead(nil, kindAccept, 1), 0, 1, 0, 1))
	show("a number that is not in its shortest form", append(appendHead(nil, kindAccept, 1), 0x80, 0, 1))
	show("a refusal", append(appendHead(nil, kindRefuse, 3), "no room"...))
	show("a chunk of one unit", append(appendChunk(nil, false, 1, 2, 3), make([]byte, unit)...))
	show("an ask: the end of a file", append(appendChunk(nil, true, 1, 65535, 1<<32-1), 1, 2, 3))
	show("a chunk without data", appendChunk(nil, false, 1, 2, 3))
	show("a chunk of more than two units", append(appendChunk(nil, false, 1, 2, 3), make([]byte, 2*unit+1)...))
	show("an answer", appendAnswer(nil, 2, 0x01020304))
	show("an answer that is too long", append(appendAnswer(nil, 2, 0x01020304), 0))
	show("done", append(appendHead(nil, kindDone, 1), resultGood))
	show("done, with another digest", append(appendHead(nil, kindDone, 1), resultDiffer))
	show("a result that there is not", append(appendHead(nil, kindDone, 1), 2))
	show("a stop", append(appendHead(nil, kindStop, 1), "transfer: cancelled"...))
	show("a decline without a reason", appendHead(nil, kindDecline, 1))
	show("a reason that is too long", append(appendHead(nil, kindDecline, 1), strings.Repeat("x", maxText+1)...))
	show("no such kind", appendHead(nil, 10, 1))
	show("kind 0", appendHead(nil, 0, 1))
	show("nothing", nil)
	return list
}

// read says what a payload says.
func read(about string, payload []byte) vector {
	v := vector{About: about, Payload: hex.EncodeToString(payload)}
	m, err := parse(payload)
	var runs []run
	if err == nil && m.kind == kindAccept {
		runs, err = parseRuns(m.data, 1<<32-1)
	}
	if err != nil {
		v.Error = "message"
		return v
	}
	v.Kind, v.ID = int(m.kind), int(m.id)
	switch m.kind {
	case kindOffer:
		v.Name, v.Size, v.Digest = hex.EncodeToString(m.offer.Name), fmt.Sprint(m.offer.Size), hex.EncodeToString(m.offer.Digest[:])
	case kindAccept:
		var words []string
		for _, r := range runs {
			words = append(words, fmt.Sprintf("%d-%d", r.from, r.to))
		}
		v.Runs = strings.Join(words, " ")
	case kindChunk, kindAsk:
		v.Serial, v.Offset, v.Data = int(m.serial), fmt.Sprint(m.unit), hex.EncodeToString(m.data)
	case kindAnswer:
		v.Serial, v.Arrived = int(m.serial), fmt.Sprint(m.arrived)
	case kindDone:
		v.Result = int(m.result)
	default:
		v.Reason = hex.EncodeToString(m.data)
	}
	return v
}

var update = flag.Bool("update-vectors", false, "write testdata/messages.json anew")

// The vectors are flat: an array with one object a line, for readers without a JSON
// library.
// P-14.1.1.
func TestVectors(t *testing.T) {
	var lines []string
	for _, v := range examples() {
		line, err := json.Marshal(v)
		require.NoError(t, err)
		lines = append(lines, string(line))
	}
	const name = "testdata/messages.json"
	want := "[\n" + strings.Join(lines, ",\n") + "\n]\n"
	if *update {
		require.NoError(t, os.MkdirAll("testdata", 0o777))
		require.NoError(t, os.WriteFile(name, []byte(want), 0o666))
	}
	got, err := os.ReadFile(name)
	require.NoError(t, err)
	require.Equal(t, want, strings.ReplaceAll(string(got), "\r\n", "\n"))
}

func TestTheLongestMessages(t *testing.T) {
	for k, longest := range map[kind]int{
		kindAccept: offerSize, kindRefuse: 3 + maxText, kindStop: 3 + maxText, kindDecline: 3 + maxText,
		kindChunk: chunkHeader + 2*unit, kindAsk: chunkHeader + 2*unit,
	} {
		payload := append([]byte{byte(k)}, make([]byte, longest)...)
		_, err := parse(payload[:longest])
		require.NoError(t, err, k)
		_, err = parse(payload)
		require.Equal(t, ErrMessage, err, k)
	}
	require.Len(t, text(errors.New(strings.Repeat("x", 300))), maxText)
	require.Equal(t, strings.Repeat("x", maxText-1), string(text(errors.New(strings.Repeat("x", maxText-1)+"é"))), "no half letters")
	require.Equal(t, "transfer: refused: a?b", withReason(ErrRefused, []byte("a\xffb")).Error())
}

// A word is said again after the patience, each time twice as long, at once if it was
// lost, and no more once it is acknowledged.
func TestWordsAreRepeated(t *testing.T) {
	w := word{kind: kindDone}
	for i, wait := range []int64{100, 200, 400, 800, 1600, 2000, 2000} {
		now := int64(i) * second
		w.sent(int64(i), now, 100*msec)
		require.Equal(t, now+wait*msec, w.at)
	}
	w.outcome(5, true, 7*second)
	require.Equal(t, kindDone, w.kind, "not the latest")
	w.outcome(6, false, 7*second)
	require.Equal(t, 7*second, w.at)
	w.outcome(6, false, 8*second)
	require.Equal(t, 7*second, w.at)
	w.outcome(6, true, 8*second)
	require.Zero(t, w)
	w = word{kind: kindDone}
	w.outcome(0, true, second)
	require.Equal(t, kindDone, w.kind, "it was not sent yet")
}

// A sealed session, wide headers, and datagrams in which one unit fits, or none.
func TestSmallAndSealedDatagrams(t *testing.T) {
	block, err := aes.NewCipher(make([]byte, 16))
	require.NoError(t, err)
	gcm, err := cipher.NewGCM(block)
	require.NoError(t, err)
	// Both directions use one key, which is for tests alone.
	cfg := ackbits.Config{Wide: true, Seal: gcm, Open: gcm, MaxDatagram: ackbits.WideHeaderSize + chunkHeader + unit + 16}
	g := &game{seed: 1, up: bad, down: bad, session: cfg}
	g.start(t)
	file := content(1, 100_001)
	up, down := sendFile(t, g.a, file), sendFile(t, g.b, file)
	require.True(t, g.run(time.Minute, up, down))
	require.Equal(t, io.EOF, up.Err())
	require.Equal(t, file, g.a.sinks[0].data)
	require.Equal(t, file, g.b.sinks[0].data)

	cfg.MaxDatagram--
	cfg.Outcomes = true
	s, err := ackbits.NewSession(cfg)
	require.NoError(t, err)
	_, err = New(s, Config{Type: testType})
	require.ErrorIs(t, err, ackbits.ErrConfig)
}

// The package stands on the standard library and the core alone, and opens nothing.
func TestImports(t *testing.T) {
	pkg, err := build.ImportDir(".", 0)
	require.NoError(t, err)
	for _, path := range pkg.Imports {
		if strings.Contains(path, ".") {
			require.True(t, path == "github.com/ackbits/ackbits" || strings.HasPrefix(path, "github.com/ackbits/ackbits/internal/"), path)
		}
		require.NotContains(t, []string{"net", "os", "sync", "math/rand", "math/rand/v2", "log"}, path)
	}
}
