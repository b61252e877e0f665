package sim

import (
	"encoding/binary"
	"strconv"

	"github.com/ackbits/ackbits"
)

// Part is a stretch of bytes of a datagram and what it means.
type Part struct {
	Name, Value, Note string
	From, To          int
	Event             int // the id of the event that it belongs to, or -1
}

// formats names the first byte.
var formats = map[byte]string{
	0x0A: "narrow: 33 acknowledgements", 0x0B: "wide: 65 acknowledgements",
	0x0C: "narrow and sealed", 0x0D: "wide and sealed",
}

// DecodeHeader splits the header of a datagram into its fields. It returns what
// ParseHeader says, and where the payload begins.
func DecodeHeader(datagram []byte) (parts []Part, h ackbits.Header, payload int, err error) {
	h, rest, err := ackbits.ParseHeader(datagram)
	if err != nil {
		return nil, h, 0, err
	}
	payload = len(datagram) - len(rest)
	add := func(name, value, note string, from, to int) {
		parts = append(parts, Part{name, value, note, from, to, -1})
	}
	add("format", "0x"+hex(uint64(datagram[0]), 2), formats[datagram[0]], 0, 1)
	add("type", strconv.Itoa(int(h.Type)), h.Type.String(), 1, 2)
	add("token", "0x"+hex(h.Token, 16), "names the session", 2, 10)
	add("sequence", strconv.Itoa(int(h.Sequence)), "of this datagram", 10, 12)
	if h.Ack == 65535 && h.AckBits == 0 {
		add("ack", "65535", "nothing received yet", 12, 14)
	} else {
		add("ack", strconv.Itoa(int(h.Ack)), "the newest sequence received from the peer", 12, 14)
	}
	bits := (payload - 14) * 8
	add("ack_bits", "0x"+hex(h.AckBits, bits/4), "bit n stands for "+strconv.Itoa(int(h.Ack))+" − 1 − n", 14, payload)
	return parts, h, payload, nil
}

// DecodePayload splits a payload that is not sealed, with offsets of its own. The
// inner type is that of a bundle, else 0.
func DecodePayload(t ackbits.Type, payload []byte) (parts []Part, inner ackbits.Type) {
	at := 0
	add := func(name, value, note string, n, event int) {
		parts = append(parts, Part{name, value, note, at, at + n, event})
		at += n
	}
	if t == ackbits.TypeBundle && len(payload) > 0 {
		inner = ackbits.Type(payload[0])
		add("inner type", strconv.Itoa(int(inner)), inner.String()+", with events before it", 1, -1)
	}
	if (t == ackbits.TypeBundle || t == ackbits.TypeEvent) && at < len(payload) {
		count := int(payload[at])
		add("count", strconv.Itoa(count), "events that follow", 1, -1)
		for range count {
			if len(payload) < at+4 {
				break
			}
			id := int(binary.LittleEndian.Uint16(payload[at:]))
			size := int(binary.LittleEndian.Uint16(payload[at+2:]))
			if len(payload) < at+4+size {
				break
			}
			add("event id", strconv.Itoa(id), "", 2, id)
			add("length", strconv.Itoa(size), "bytes", 2, id)
			add("event", text(payload[at:at+size]), "", size, id)
		}
	}
	if at < len(payload) {
		what := t
		if inner != 0 {
			what = inner
		}
		add("payload", text(payload[at:]), "of the application: "+what.String(), len(payload)-at, -1)
	}
	return parts, inner
}

// eventIDs appends the ids of the events among parts.
func eventIDs(dst []int, parts []Part) []int {
	for _, p := range parts {
		if p.Name == "event id" {
			dst = append(dst, p.Event)
		}
	}
	return dst
}

func hex(n uint64, digits int) string {
	s := strconv.FormatUint(n, 16)
	for len(s) < digits {
		s = "0" + s
	}
	return s
}

// text shows bytes that may not be text.
func text(b []byte) string {
	s := make([]byte, len(b))
	for i, c := range b {
		s[i] = c
		if c < ' ' || c > '~' {
			s[i] = '.'
		}
	}
	return string(s)
}
