package ackbits

import "encoding/binary"

// Event is one message that is delivered exactly once.
type Event struct {
	ID   uint16 // 0 for a session's first, then 1 more for each, wrapping at 65535
	Data []byte
}

// The payload of an Event datagram (section 5.2): a count of 1 to 255, then for
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

func appendEvent(dst []byte, id uint16, data []byte) []byte {
	n := len(data)
	dst = append(dst, byte(id), byte(id>>8), byte(n), byte(n>>8))
	return append(dst, data...)
}

// ParseEvents appends the events of an Event datagram's payload to dst. It is
// all or nothing: a count of 0, an event past the end or bytes after the last
// one is ErrPayload, as is a payload longer than any datagram's, and dst comes
// back as it was. The events' Data is payload's, not a copy.
func ParseEvents(dst []Event, payload []byte) ([]Event, error) {
	if len(payload) > maxListSize {
		return dst, ErrPayload
	}
	size, ok := listSize(payload)
	if !ok || size != len(payload) {
		return dst, ErrPayload
	}
	return appendList(dst, payload), nil
}

// listSize returns how many bytes the list of events takes that payload begins
// with. It is looked at as a whole before anything is taken from it, so that a
// malformed one costs no memory.
func listSize(payload []byte) (size int, ok bool) {
	if len(payload) == 0 || payload[0] == 0 {
		return 0, false
	}
	rest := payload[listOverhead:]
	for range payload[0] {
		if len(rest) < eventOverhead {
			return 0, false
		}
		n := eventOverhead + int(binary.LittleEndian.Uint16(rest[2:]))
		if len(rest) < n {
			return 0, false
		}
		rest = rest[n:]
	}
	return len(payload) - len(rest), true
}

// appendList appends the events of a well-formed list to dst.
func appendList(dst []Event, list []byte) []Event {
	for list = list[listOverhead:]; len(list) > 0; {
		end := eventOverhead + int(binary.LittleEndian.Uint16(list[2:]))
		dst = append(dst, Event{binary.LittleEndian.Uint16(list), list[eventOverhead:end:end]})
		list = list[end:]
	}
	return dst
}
