package ackbits

// The payload of a Bundle: events ahead of an application's payload. The list of
// events itself is events.go's; what rides in bundles is session.go's to decide.

// bundleOverhead is the inner type.
const bundleOverhead = 1

// parseBundle reads the payload of a Bundle: the inner type, a list of events
// as in an Event datagram, then the application's payload (P-10.1.2).
func parseBundle(dst []Event, payload []byte) (inner Type, events []Event, rest []byte, err error) {
	if len(payload) == 0 || len(payload) > maxListSize || !Type(payload[0]).application() {
		return 0, dst, nil, ErrPayload
	}
	events, rest, ok := parseList(dst, payload[bundleOverhead:], true)
	if !ok {
		return 0, dst, nil, ErrPayload
	}
	return Type(payload[0]), events, rest, nil
}
