package ackbits

import (
	"encoding"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

var _ encoding.BinaryAppender = Header{}

// Headers and their bytes, written by hand from chapter 2 of docs/protocol.md.
var goldenHeaders = map[string]struct {
	header Header
	bytes  []byte
}{
	"narrow": {
		Header{Type: TypeSnapshot, Token: 0x8877665544332211, Sequence: 0x0102, Ack: 0xFFFE, AckBits: 0x8000000D},
		[]byte{
			0x0A, 4,
			0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88,
			0x02, 0x01,
			0xFE, 0xFF,
			0x0D, 0x00, 0x00, 0x80,
		},
	},
	"wide": {
		Header{Wide: true, Type: 255, Token: 1, Sequence: 65535, Ack: 0x0304, AckBits: 0x80000000_0000000D},
		[]byte{
			0x0B, 255,
			0x01, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
			0xFF, 0xFF,
			0x04, 0x03,
			0x0D, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x80,
		},
	},
	"first of a session": {
		Header{Type: TypeHeartbeat, Ack: 65535},
		[]byte{
			0x0A, 6,
			0, 0, 0, 0, 0, 0, 0, 0,
			0, 0,
			0xFF, 0xFF,
			0, 0, 0, 0,
		},
	},
}

func TestSizesAddUpToADatagram(t *testing.T) {
	require.Equal(t, 18, HeaderSize)
	require.Equal(t, 22, WideHeaderSize)
	require.Equal(t, 1200, MaxDatagramSize)
	require.Equal(t, 1177, MaxEventSize)
	require.Equal(t, 1173, MaxWideEventSize)
	require.Len(t, Header{}.AppendTo(nil), HeaderSize)
	require.Len(t, Header{Wide: true}.AppendTo(nil), WideHeaderSize)
}

// P-2.1.1, P-2.1.3.
func TestHeaderHasTheBytesOfTheLayout(t *testing.T) {
	for name, golden := range goldenHeaders {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, golden.bytes, golden.header.AppendTo(nil))
			b, err := golden.header.AppendBinary([]byte("before"))
			require.NoError(t, err)
			require.Equal(t, append([]byte("before"), golden.bytes...), b)

			h, payload, err := ParseHeader(append(golden.bytes[:len(golden.bytes):len(golden.bytes)], 7, 8))
			require.NoError(t, err)
			require.Equal(t, golden.header, h)
			require.Equal(t, []byte{7, 8}, payload)
		})
	}
}

func TestNarrowHeaderCarriesTheLow32Bits(t *testing.T) {
	h, _, err := ParseHeader(Header{Type: 1, AckBits: 0xFFFFFFFF_00000005}.AppendTo(nil))
	require.NoError(t, err)
	require.Equal(t, uint64(5), h.AckBits)
}

// Every prefix of a header.
func TestHeaderIsAppendedInPlaceIfItFits(t *testing.T) {
	for _, h := range []Header{{Type: 1}, {Type: 1, Wide: true}} {
		size := len(h.AppendTo(nil))
		for room := range 30 {
			dst := make([]byte, 1, 1+room)
			require.Equal(t, room >= size, &dst[0] == &h.AppendTo(dst)[0], room)
		}
	}
}

func TestHeaderCutAnywhereIsShort(t *testing.T) {
	for name, golden := range goldenHeaders {
		t.Run(name, func(t *testing.T) {
			for n := range golden.bytes {
				requireHeaderRefused(t, golden.bytes[:n], ErrShort)
			}
			_, payload, err := ParseHeader(golden.bytes)
			require.NoError(t, err)
			require.NotNil(t, payload)
			require.Empty(t, payload)
		})
	}
}

// P-2.1.2.
func TestDatagramHas1200BytesAtMost(t *testing.T) {
	for _, wide := range []bool{false, true} {
		full := Header{Wide: wide, Type: 1}.AppendTo(nil)
		size := len(full)
		full = append(full, make([]byte, 1200-size)...)
		_, payload, err := ParseHeader(full)
		require.NoError(t, err)
		require.Len(t, payload, 1200-size)
		requireHeaderRefused(t, append(full, 0), ErrOversize)
	}
}

// P-2.1.3.
func TestOnlyFourFormatsAreKnown(t *testing.T) {
	for format := range 256 {
		datagram := make([]byte, WideHeaderSize)
		datagram[0], datagram[1] = byte(format), 1
		if format >= 0x0A && format <= 0x0D {
			_, _, err := ParseHeader(datagram)
			require.NoError(t, err)
		} else {
			requireHeaderRefused(t, datagram, ErrFormat)
		}
	}
}

// ParseHeader refuses only what no reader could use: the reserved types pass.
// P-2.2.1.
func TestOnlyTypeZeroIsRefusedByTheHeader(t *testing.T) {
	for kind := range 256 {
		datagram := Header{Type: Type(kind)}.AppendTo(nil)
		if kind == 0 {
			requireHeaderRefused(t, datagram, ErrType)
			continue
		}
		h, _, err := ParseHeader(datagram)
		require.NoError(t, err)
		require.Equal(t, Type(kind), h.Type)
	}
}

// The order of the checks, for datagrams with more than one fault.
// P-2.3.2.
func TestFirstFaultOfADatagramCounts(t *testing.T) {
	datagram := func(size int, format, kind byte) []byte {
		b := make([]byte, size)
		b[0], b[1] = format, kind
		return b
	}
	for name, tc := range map[string]struct {
		datagram []byte
		want     error
	}{
		"short before format":     {datagram(17, 0x20, 0), ErrShort},
		"oversize before format":  {datagram(1201, 0x20, 0), ErrOversize},
		"oversize before type":    {datagram(1201, 0x0A, 0), ErrOversize},
		"format before type":      {datagram(18, 0x20, 0), ErrFormat},
		"wide short before type":  {datagram(21, 0x0B, 0), ErrShort},
		"type of a wide datagram": {datagram(22, 0x0B, 0), ErrType},
	} {
		t.Run(name, func(t *testing.T) { requireHeaderRefused(t, tc.datagram, tc.want) })
	}
}

func TestPayloadIsTheDatagramsAndCannotGrowIntoWhatFollows(t *testing.T) {
	for _, wide := range []bool{false, true} {
		buf := Header{Wide: wide, Type: 1}.AppendTo(nil)
		size := len(buf)
		buf = append(buf, 1, 2, 99)
		_, payload, err := ParseHeader(buf[:size+2])
		require.NoError(t, err)
		require.Same(t, &buf[size], &payload[0])
		_ = append(payload, 3)
		require.Equal(t, byte(99), buf[size+2])
	}
}

func TestTypeNames(t *testing.T) {
	for kind, want := range map[Type]string{
		0: "Invalid", TypeConnect: "Connect", TypeAccept: "Accept", TypeInput: "Input", TypeSnapshot: "Snapshot",
		TypeEvent: "Event", TypeHeartbeat: "Heartbeat", TypeDisconnect: "Disconnect", TypeBundle: "Bundle",
		9: "Type(9)", 255: "Type(255)",
	} {
		require.Equal(t, want, kind.String())
	}
}

// P-2.2.2.
func TestTypesOfTheApplication(t *testing.T) {
	for kind := range 256 {
		want := kind >= 1 && kind <= 4 || kind >= 16
		require.Equal(t, want, Type(kind).application(), kind)
	}
}

func TestHeaderSurvivesTheWire(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := Header{
			Wide:     rapid.Bool().Draw(t, "wide"),
			Type:     Type(rapid.Uint8Min(1).Draw(t, "type")),
			Token:    rapid.Uint64().Draw(t, "token"),
			Sequence: rapid.Uint16().Draw(t, "sequence"),
			Ack:      rapid.Uint16().Draw(t, "ack"),
			AckBits:  uint64(rapid.Uint32().Draw(t, "bits")),
		}
		if h.Wide {
			h.AckBits |= rapid.Uint64().Draw(t, "wide bits")
		}
		got, payload, err := ParseHeader(append(h.AppendTo(nil), "payload"...))
		require.NoError(t, err)
		require.Equal(t, h, got)
		require.Equal(t, "payload", string(payload))
	})
}

func TestHeadersCostNoAllocation(t *testing.T) {
	buf := make([]byte, 0, MaxDatagramSize+1)
	inputs := [][]byte{nil, make([]byte, 17), make([]byte, 18), make([]byte, 1201), {21: 0, 0: 0x0B}, {20: 0, 0: 0x0B}}
	for _, golden := range goldenHeaders {
		inputs = append(inputs, golden.bytes)
	}
	require.Zero(t, testing.AllocsPerRun(10, func() {
		for _, in := range inputs {
			h, payload, _ := ParseHeader(in)
			buf = append(h.AppendTo(buf[:0]), payload...)
		}
	}))
}

func FuzzParseHeader(f *testing.F) {
	for _, golden := range goldenHeaders {
		f.Add(golden.bytes)
		f.Add(golden.bytes[:len(golden.bytes)-1])
		f.Add(append(golden.bytes[:len(golden.bytes):len(golden.bytes)], goldenList...))
	}
	f.Fuzz(func(t *testing.T, datagram []byte) {
		h, payload, err := ParseHeader(datagram)
		if err != nil {
			require.Equal(t, Header{}, h)
			require.Nil(t, payload)
			return
		}
		// One legal encoding per value.
		require.Equal(t, datagram, append(h.AppendTo(nil), payload...))
	})
}

func requireHeaderRefused(t *testing.T, datagram []byte, want error) {
	t.Helper()
	h, payload, err := ParseHeader(datagram)
	require.Equal(t, want, err)
	require.Equal(t, Header{}, h)
	require.Nil(t, payload)
}
