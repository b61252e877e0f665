package ackbits

import (
	"encoding/binary"
	"slices"
)

// The wire form of a list of events. How they are delivered once and in order is not
// here: outbox.go keeps those that we send, inbox.go those that come in.

// Event is one message that is delivered exactly once.
type Event struct {
	ID   uint16 // 0 for a session's first, then 1 more for each, wrapping at 65535
	Data []byte
}

// The payload of an Event datagram (P-5.1.1): a count of 1 to 255, then for
// each event its id, its length and its bytes.
const (
	listOverhead  = 1     // count u8
	eventOverhead = 2 + 2 // id u16, length u16
	maxListEvents = 255
	maxListSize   = MaxDatagramSize - HeaderSize
)

// AppendEvents appends the payload of an Event datagram to dst. The list holds
// 1 to 255 events (else ErrPayload), none over MaxEventSize bytes (else
// ErrEventTooLarge), 1182 bytes in all (else ErrDatagramTooLarge). On an error
// dst comes back as it was.
func AppendEvents(dst []byte, events ...Event) ([]byte, error) {
	if len(events) == 0 || len(events) > maxListEvents {
		return dst, ErrPayload
	}
	size := listOverhead
	for i := range events {
		n := len(events[i].Data)
		if n > MaxEventSize {
			return dst, tooLarge(ErrEventTooLarge, n, MaxEventSize)
		}
		size += eventOverhead + n
	}
	if size > maxListSize {
		return dst, tooLarge(ErrDatagramTooLarge, size, maxListSize)
	}
	dst = append(dst, byte(len(events)))
	for i := range events {
		dst = appendEvent(dst, events[i].ID, events[i].Data)
	}
	return dst, nil
}

// appendEvent appends an event, which has one encoding (P-5.1.4).
func appendEvent(dst []byte, id uint16, data []byte) []byte {
	n := len(data)
	dst = append(dst, byte(id), byte(id>>8), byte(n), byte(n>>8))
	return append(dst, data...)
}

// ParseEvents appends the events of an Event datagram's payload to dst. It is
// all or nothing: a count of 0, an event past the end or bytes after the last
// one is ErrPayload, as is a payload longer than any datagram's, and dst comes
// back as it was, but for its spare capacity. The events' Data is payload's, not a
// copy.
func ParseEvents(dst []Event, payload []byte) ([]Event, error) {
	if len(payload) > maxListSize {
		return dst, ErrPayload
	}
	events, _, ok := parseList(dst, payload, false)
	if !ok {
		return dst, ErrPayload
	}
	return events, nil
}

// parseList appends the events of the list that payload begins with, and returns
// what follows it, if something may. A list is looked at as a whole before dst
// grows for it, so that a malformed one costs no memory (P-2.3.3).
func parseList(dst []Event, payload []byte, more bool) (events []Event, rest []byte, ok bool) {
	if len(payload) == 0 || payload[0] == 0 {
		return nil, nil, false
	}
	count := int(payload[0])
	fits := cap(dst)-len(dst) >= count
	events, rest = dst, payload[listOverhead:]
	for range count {
		if len(rest) < eventOverhead {
			return nil, nil, false
		}
		end := eventOverhead + int(binary.LittleEndian.Uint16(rest[2:]))
		if len(rest) < end {
			return nil, nil, false
		}
		if fits {
			events = append(events, Event{binary.LittleEndian.Uint16(rest), rest[eventOverhead:end:end]})
		}
		rest = rest[end:]
	}
	if len(rest) > 0 && !more {
		return nil, nil, false
	}
	if !fits {
		return parseList(slices.Grow(dst, count), payload, more)
	}
	return events, rest, true
}
