package ackbits

// Parsing the payload of a Bundle: an inner type, events, then an application payload.
// The list of events itself is in events.go; session.go builds bundles.

// bundleOverhead is the size of the inner type, in bytes.
const bundleOverhead = 1

// parseBundle parses the payload of a Bundle: the type of the application's payload,
// a list of events as in an Event datagram, then that payload (P-10.1.2). It appends
// the events to dst.
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
