package ackbits

import (
	"encoding/binary"
	"slices"
)

// The wire form of a list of events: writing and parsing. Delivery is not here:
// outbox.go keeps the events that we send, inbox.go those that we receive.

// Event is a piece of application data that is delivered exactly once.
type Event struct {
	ID   uint16 // 0 for the first of a session, then 1 more for each; 0 follows 65535
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

// AppendEvents appends the payload of an Event datagram to dst. The list must hold 1 to
// 255 events (else ErrPayload) of at most MaxEventSize bytes each (else
// ErrEventTooLarge), and take at most 1182 bytes, count and lengths included (else
// ErrDatagramTooLarge). On an error dst is returned unchanged.
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

// appendEvent appends an event in the only encoding that there is (P-5.1.4).
func appendEvent(dst []byte, id uint16, data []byte) []byte {
	n := len(data)
	dst = append(dst, byte(id), byte(id>>8), byte(n), byte(n>>8))
	return append(dst, data...)
}

// ParseEvents parses the payload of an Event datagram and appends its events to dst. It
// returns ErrPayload for a count of 0, an event that exceeds the payload, bytes after
// the last event, and a payload of more than 1182 bytes; dst is then returned
// unchanged, though its spare capacity may have been overwritten. The Data of the
// events are parts of payload, not copies.
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

// parseList parses the list that payload begins with. It appends the events to dst and
// returns the bytes after the list; if more is false there may be none. The whole list
// is checked before dst grows for it, so that a malformed one takes no memory
// (P-2.3.3).
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
