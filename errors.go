package ackbits

import (
	"errors"
	"strconv"
)

// Errors of input. Session.Receive and ReliableChannel.Receive return them for
// a datagram that was dropped: it is not acknowledged, its acknowledgements are
// not read, and nothing but a counter changed (I5). They are values that exist
// already, so that hostile bytes cost no allocation.
var (
	// ErrShort: fewer bytes than the header.
	ErrShort = errors.New("ackbits: datagram shorter than its header")
	// ErrOversize: more than MaxDatagramSize bytes.
	ErrOversize = errors.New("ackbits: datagram longer than 1200 bytes")
	// ErrFormat: the first byte is not the format that this side speaks.
	ErrFormat = errors.New("ackbits: datagram of another format")
	// ErrToken: the datagram belongs to another session.
	ErrToken = errors.New("ackbits: datagram with another session's token")
	// ErrReplayed: a sealed datagram that was taken in or refused before, or is
	// too old to tell (P-11.3.1).
	ErrReplayed = errors.New("ackbits: datagram replayed")
	// ErrForged: a sealed datagram that does not open: damaged, made up, or sealed
	// with another key.
	ErrForged = errors.New("ackbits: datagram forged")
	// ErrType: type 0, or one of 9 to 15, which are reserved.
	ErrType = errors.New("ackbits: datagram of an unknown type")
	// ErrPayload: a list of events that is malformed, or bytes where there may
	// be none.
	ErrPayload = errors.New("ackbits: malformed payload")
	// ErrWindow: an event id that is neither near the oldest missing one nor
	// old (P-5.3.1). The datagram counts as lost and its events come again.
	ErrWindow = errors.New("ackbits: event id outside the window")
	// ErrRejected: Config.Accept refused the datagram. The error that Receive
	// returns matches both ErrRejected and what Accept returned.
	ErrRejected = errors.New("ackbits: datagram rejected")
)

// ErrWithhold is for Config.Accept to return, never for a caller to receive:
// the datagram is sound but must not be acknowledged, like a snapshot whose
// baseline is missing (P-2.3.5).
var ErrWithhold = errors.New("ackbits: datagram withheld")

// Errors of callers. The call changed nothing.
var (
	// ErrEventTooLarge: an event longer than MaxEvent allows.
	ErrEventTooLarge = errors.New("ackbits: event too large")
	// ErrDatagramTooLarge: a payload longer than a datagram can carry.
	ErrDatagramTooLarge = errors.New("ackbits: datagram too large")
	// ErrReservedType: AppendDatagram sends types 1 to 4 and 16 to 255.
	ErrReservedType = errors.New("ackbits: reserved datagram type")
	// ErrConfig: a Config value that is negative or contradicts another.
	ErrConfig = errors.New("ackbits: invalid configuration")
)

// Reasons for the end of a session. Err returns the reason, and so does every
// later call that would do something.
var (
	// ErrTimeout: no datagram of the peer that was Newest or Late for
	// Config.Timeout.
	ErrTimeout = errors.New("ackbits: timeout")
	// ErrPeerLeft: the peer sent a Disconnect.
	ErrPeerLeft = errors.New("ackbits: peer left")
	// ErrClosed: this side called Close or Shutdown.
	ErrClosed = errors.New("ackbits: session closed")
	// ErrUnacknowledged: more than 256 + Backlog events undelivered.
	ErrUnacknowledged = errors.New("ackbits: too many unacknowledged events")
	// ErrStalled: the oldest undelivered event waited for the stall timeout, or
	// half of the sequences there are was sent without an acknowledgement.
	ErrStalled = errors.New("ackbits: events stalled")
	// ErrKeyExhausted: Config.Seal has sealed as many datagrams as one key may, or
	// Config.Open has refused as many.
	ErrKeyExhausted = errors.New("ackbits: key exhausted")
)

// Errors of an OrderedLane, which also ends with ErrStalled.
var (
	// ErrLaneFull: a droppable event was refused; it used up no id.
	ErrLaneFull = errors.New("ackbits: lane full")
	// ErrLaneOverflow: a critical event found the hard limit reached, which
	// ends the lane, or the ids are used up, which does not.
	ErrLaneOverflow = errors.New("ackbits: lane overflow")
	// ErrAck: an acknowledgement of an event that was never sent.
	ErrAck = errors.New("ackbits: acknowledgement of an event never sent")
)

// valueError says which value was wrong, beside the sentinel that says what
// kind of error it is.
type valueError struct {
	kind   error
	detail string
}

func (e *valueError) Error() string { return e.kind.Error() + ": " + e.detail }
func (e *valueError) Unwrap() error { return e.kind }

func tooLarge(kind error, size, limit int) error {
	return &valueError{kind, strconv.Itoa(size) + " bytes, the limit is " + strconv.Itoa(limit)}
}

// rejection is what Receive returns for a datagram that Accept refused. A
// session holds one and returns its address, so that a refusal costs nothing.
type rejection struct{ cause error }

func (r *rejection) Error() string        { return ErrRejected.Error() + ": " + r.cause.Error() }
func (r *rejection) Is(target error) bool { return target == ErrRejected }
func (r *rejection) Unwrap() error        { return r.cause }
