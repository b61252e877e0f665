package ackbits

import (
	_ "embed"
	"encoding/hex"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

//go:embed testdata/sealed.vectors
var sealedVectors string

var updateSealed = flag.Bool("update-sealed", false, "write testdata/sealed.vectors anew")

const sealedVectorsHead = `# Sealed datagrams (AES-128-GCM), as two sessions exchange them while the sequences
# wrap, with losses and one that is overtaken. In the file:
#
#   key END HEX                 END seals with it, the other end opens with it
#   END NUMBER HEADER PAYLOAD DATAGRAM FATE...
#                               END sends; the number is the datagram's, of which the
#                               sequence is the low 16 bits; header and payload are what
#                               goes in, datagram what leaves; - stands for nothing
#
# What becomes of it at the other end, in the order of the lines: "lost"; "taken";
# "held", and then a line "late END NUMBER" when it is taken after all. Every taken
# datagram must be refused when it comes again, and every one with a bit flipped.
`

func hexOrDash(b []byte) string {
	if len(b) == 0 {
		return "-"
	}
	return hex.EncodeToString(b)
}

// vectorStory plays what the file holds, and calls taken for each datagram that
// arrives, before it is received.
func vectorStory(t *testing.T, wide bool, taken func(to *actor, k *packet)) string {
	a, b := sealedDuo(t, Config{Wide: wide, Token: 0x0807060504030201})
	a.startAt(65533, 0)
	b.expectFrom(65533, 0)
	b.startAt(65535, 0)
	a.expectFrom(65535, 0)
	var out strings.Builder
	note := func(k *packet, outcome string) {
		number := k.from.s.channel.sender.log.count - 1
		number -= int64(uint16(number) - k.Sequence)
		n := headerSize(wide)
		plain, err := k.from.cfg.Seal.Open(nil, modelNonce(k.from.cfg.Seal, number), k.bytes[n:], k.bytes[:n])
		require.NoError(t, err)
		fmt.Fprintf(&out, "%s %d %x %s %x %s\n", strings.ToLower(k.from.name), number, k.bytes[:n], hexOrDash(plain), k.bytes, outcome)
	}
	take := func(k *packet) {
		to := b
		if k.from == b {
			to = a
		}
		taken(to, k)
		to.deliver(k)
	}
	arrive := func(k *packet) { note(k, "taken"); take(k) }
	due := func(p *actor) *packet {
		out := p.flush()
		require.Len(t, out, 1)
		return out[0]
	}

	arrive(a.emitSealed(TypeConnect, "hello")) // 65533
	arrive(b.emitSealed(TypeAccept, ""))       // 65535
	a.send("spawn", "")
	k := due(a)
	note(k, "lost") // 65534
	drop(k)
	held := a.emitSealed(TypeInput, "left") // 65535
	note(held, "held")
	arrive(a.emitSealed(TypeInput, "right")) // 65536: the sequence wraps
	arrive(b.emitSealed(200, "\x00\x01\x02"))
	fmt.Fprintln(&out, "late a 65535")
	take(held)
	a.sleep(100 * ms)
	arrive(due(a)) // the events again
	arrive(due(b)) // a heartbeat, which acknowledges them
	arrive(a.emitSealed(255, strings.Repeat("~", 40)))
	a.s.Close()
	for _, k := range a.flush() {
		note(k, map[bool]string{true: "taken", false: "lost"}[k.Sequence == 4])
		if k.Sequence == 4 {
			take(k)
		} else {
			drop(k)
		}
	}
	b.wantEvents("spawn", "")
	b.wantErr(ErrPeerLeft)
	return out.String()
}

// TestSealedVectors: what sessions exchange is what the file says, whose datagrams
// are what AES-GCM by hand makes of header and payload, and a session takes those
// and no others.
func TestSealedVectors(t *testing.T) {
	got := sealedVectorsHead
	for _, wide := range []bool{false, true} {
		past := map[*actor][][]byte{}
		got += fmt.Sprintf("\n# wide: %t\nkey a %x\nkey b %x\n", wide, vectorKey('a'), vectorKey('b'))
		got += vectorStory(t, wide, func(to *actor, k *packet) {
			for bit := range 8 * len(k.bytes) {
				forged := slices.Clone(k.bytes)
				forged[bit/8] ^= 1 << (bit % 8)
				require.Error(t, to.hand(forged), "bit %d", bit)
			}
			for _, datagram := range past[to] {
				to.refuseSealed(ErrReplayed, datagram)
			}
			past[to] = append(past[to], k.bytes)
		})
	}
	if *updateSealed {
		require.NoError(t, os.WriteFile("testdata/sealed.vectors", []byte(got), 0o644))
		return
	}
	require.Equal(t, sealedVectors, got)

	keys, lines := map[string]AEAD{}, 0
	for line := range strings.Lines(sealedVectors) {
		field := strings.Fields(line)
		switch {
		case len(field) == 0 || field[0] == "#" || field[0] == "late":
		case field[0] == "key":
			keys[field[1]] = gcm(unhex(t, field[2])[0])
		default:
			var number int64
			_, err := fmt.Sscan(field[1], &number)
			require.NoError(t, err)
			header, datagram := unhex(t, field[2]), unhex(t, field[4])
			nonce := modelNonce(keys[field[0]], number)
			require.Equal(t, datagram, keys[field[0]].Seal(header, nonce, unhex(t, field[3]), header))
			h, payload, err := ParseHeader(datagram)
			require.NoError(t, err)
			require.True(t, h.Sealed)
			require.EqualValues(t, uint16(number), h.Sequence)
			require.Equal(t, header, h.AppendTo(nil))
			require.Equal(t, datagram[len(header):], payload)
			lines++
		}
	}
	require.Equal(t, 2*12, lines)
}

func vectorKey(b byte) []byte { return slices.Repeat([]byte{b}, 16) }

func unhex(t *testing.T, s string) []byte {
	if s == "-" {
		return nil
	}
	b, err := hex.DecodeString(s)
	require.NoError(t, err)
	return b
}
