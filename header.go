package ackbits

import (
	"encoding/binary"
	"slices"
	"strconv"
)

// The header of a datagram on the wire: sizes, formats, types, writing and parsing. What
// its acknowledgements mean is in ack.go and acknowledge.go; sealing is in seal.go.

// Sizes in bytes. An event shares its datagram with the header, the count of
// events, its id and its length (P-5.1.2).
//
// MaxDatagramSize fits into a packet of 1280 bytes, the smallest MTU that IPv6 allows
// (RFC 8200, section 5), with 32 bytes to spare for tunnels after the IPv6 and UDP
// headers. IPv4 paths carry as much nearly everywhere; for those that do not, see
// Config.MaxDatagram.
const (
	HeaderSize       = 18
	WideHeaderSize   = 22
	MaxDatagramSize  = 1200
	MaxEventSize     = MaxDatagramSize - HeaderSize - listOverhead - eventOverhead
	MaxWideEventSize = MaxDatagramSize - WideHeaderSize - listOverhead - eventOverhead
)

// Formats, the first byte of a datagram: they say whether the header is narrow or wide,
// and whether the payload is sealed. All values lie outside the ranges of RFC 7983
// and RFC 9443, so that STUN, DTLS, RTP or QUIC can share the port.
const (
	formatNarrow       = 0x0A
	formatWide         = 0x0B
	formatNarrowSealed = 0x0C
	formatWideSealed   = 0x0D
)

// Type says what a datagram carries. Types 1 to 4 and 16 to 255 belong to the
// application, and their payload is opaque. Types 5 to 8 belong to the library, which
// builds and checks their payload; of a Bundle, type 8, the part that is the
// application's is opaque. 9 to 15 are reserved, and 0 is invalid (P-2.2.1).
type Type uint8

const (
	TypeConnect    Type = 1
	TypeAccept     Type = 2
	TypeInput      Type = 3
	TypeSnapshot   Type = 4
	TypeEvent      Type = 5 // a list of events, see AppendEvents
	TypeHeartbeat  Type = 6 // empty
	TypeDisconnect Type = 7 // empty
	TypeBundle     Type = 8 // events, then an application payload, see Config.Bundle

	firstOwnType Type = 16
)

var typeNames = [...]string{
	"Invalid", "Connect", "Accept", "Input", "Snapshot", "Event", "Heartbeat", "Disconnect", "Bundle",
}

// String returns the type's name, or "Type(n)" for one that has none.
func (t Type) String() string {
	if int(t) < len(typeNames) {
		return typeNames[t]
	}
	return "Type(" + strconv.Itoa(int(t)) + ")"
}

// application reports whether datagrams of the type carry the application's
// own payload (P-2.2.2).
func (t Type) application() bool {
	return TypeConnect <= t && t <= TypeSnapshot || t >= firstOwnType
}

// Header is the header that every datagram begins with: 18 bytes, or 22 in the wide
// form, all little-endian.
//
//	byte   0      1     2–9    10–11     12–13  14–17 (wide: 14–21)
//	       format type  token  sequence  ack    ack_bits
//
// See P-2.1.1 and P-2.1.3 of docs/protocol.md.
type Header struct {
	Wide     bool   // 64 bits of AckBits instead of 32
	Type     Type   // 1 to 255
	Token    uint64 // names the session
	Sequence uint16 // of this datagram
	Ack      uint16 // the newest sequence received from the peer; 65535 before any
	AckBits  uint64 // bit n: sequence Ack − 1 − n was received too; narrow: the low 32 bits
	Sealed   bool   // the payload is sealed, see Config.Seal
}

// AppendTo appends the header to dst. A narrow header carries the low 32 bits of
// AckBits. No field is checked.
func (h Header) AppendTo(dst []byte) []byte { return h.appendTo(dst) }

func (h *Header) appendTo(dst []byte) []byte {
	n := len(dst)
	if h.Wide {
		dst = slices.Grow(dst, WideHeaderSize)[:n+WideHeaderSize]
		h.put(dst[n:])
		binary.LittleEndian.PutUint64(dst[n+14:], h.AckBits)
	} else {
		dst = slices.Grow(dst, HeaderSize)[:n+HeaderSize]
		h.put(dst[n:])
	}
	return dst
}

// headerSize returns the length of a header in bytes.
func headerSize(wide bool) int {
	if wide {
		return WideHeaderSize
	}
	return HeaderSize
}

// format returns the first byte of a datagram.
func format(wide, sealed bool) byte {
	switch {
	case wide && sealed:
		return formatWideSealed
	case wide:
		return formatWide
	case sealed:
		return formatNarrowSealed
	}
	return formatNarrow
}

// put writes the 18 bytes that both forms have. A wide header has the low half of
// AckBits in the same place.
func (h *Header) put(b []byte) {
	_ = b[HeaderSize-1]
	b[0] = format(h.Wide, h.Sealed)
	b[1] = byte(h.Type)
	binary.LittleEndian.PutUint64(b[2:], h.Token)
	binary.LittleEndian.PutUint16(b[10:], h.Sequence)
	binary.LittleEndian.PutUint16(b[12:], h.Ack)
	binary.LittleEndian.PutUint32(b[14:], uint32(h.AckBits))
}

// AppendBinary is AppendTo in the form of encoding.BinaryAppender. Its error is
// always nil.
func (h Header) AppendBinary(dst []byte) ([]byte, error) { return h.AppendTo(dst), nil }

// ParseHeader reads the header of a datagram of any format. It returns ErrShort,
// ErrOversize or ErrFormat for what is no datagram of this protocol, and ErrType for
// type 0; it does not judge any other type. The payload is the rest of datagram, not a
// copy; if Sealed, it is still sealed.
func ParseHeader(datagram []byte) (h Header, payload []byte, err error) {
	if payload, err = h.parse(datagram); err != nil {
		h = Header{}
	}
	return h, payload, err
}

// parse fills in h, in the order of checks of P-2.3.2. After an error h is undefined.
func (h *Header) parse(datagram []byte) (payload []byte, err error) {
	if len(datagram) < HeaderSize {
		return nil, ErrShort
	}
	if len(datagram) > MaxDatagramSize { // P-2.1.2
		return nil, ErrOversize
	}
	size := HeaderSize
	switch datagram[0] {
	case formatNarrow, formatNarrowSealed:
		h.AckBits = uint64(binary.LittleEndian.Uint32(datagram[14:]))
	case formatWide, formatWideSealed:
		size = WideHeaderSize
		if len(datagram) < size {
			return nil, ErrShort
		}
		h.Wide = true
		h.AckBits = binary.LittleEndian.Uint64(datagram[14:])
	default:
		return nil, ErrFormat
	}
	h.Sealed = datagram[0] >= formatNarrowSealed
	if datagram[1] == 0 {
		return nil, ErrType
	}
	h.Type = Type(datagram[1])
	h.Token = binary.LittleEndian.Uint64(datagram[2:])
	h.Sequence = binary.LittleEndian.Uint16(datagram[10:])
	h.Ack = binary.LittleEndian.Uint16(datagram[12:])
	return datagram[size:len(datagram):len(datagram)], nil
}
