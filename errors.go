package ackbits

import (
	"errors"
	"strconv"
)

// The errors that this package returns. All begin with "ackbits: " and are compared
// with errors.Is. Where each is returned is said at the call, not here.

// Errors of input. Session.Receive and ReliableChannel.Receive return them for a
// datagram that was dropped: it is not acknowledged, the acknowledgements in its
// header are not read, and nothing but a counter changed (I5). All of them exist
// beforehand, so that hostile input causes no allocation.
var (
	// ErrShort: fewer bytes than the header.
	ErrShort = errors.New("ackbits: datagram shorter than its header")
	// ErrOversize: more than MaxDatagramSize bytes.
	ErrOversize = errors.New("ackbits: datagram longer than 1200 bytes")
	// ErrFormat: the first byte is not the format of this session, narrow or wide,
	// sealed or bare.
	ErrFormat = errors.New("ackbits: datagram of another format")
	// ErrToken: the datagram belongs to another session.
	ErrToken = errors.New("ackbits: datagram with another session's token")
	// ErrReplayed: a sealed datagram that was opened before, whether it was accepted
	// then or not, or one that is too old to tell (P-11.3.1).
	ErrReplayed = errors.New("ackbits: datagram replayed")
	// ErrForged: a sealed datagram that does not open: it was damaged, made up, or
	// sealed with another key.
	ErrForged = errors.New("ackbits: datagram forged")
	// ErrType: type 0, which is invalid, or one of 9 to 15, which are reserved. Type
	// 8, a Bundle, is accepted from every peer (P-2.2.1).
	ErrType = errors.New("ackbits: datagram of an unknown type")
	// ErrPayload: a malformed list of events (P-5.1.1), or a Heartbeat or Disconnect
	// with a payload.
	ErrPayload = errors.New("ackbits: malformed payload")
	// ErrWindow: an event id that is neither inside the receiver's window nor old
	// (P-5.3.1). To the peer the datagram is lost, and it retransmits the events.
	ErrWindow = errors.New("ackbits: event id outside the window")
	// ErrRejected: Config.Accept refused the datagram. The error that Receive
	// returns matches both ErrRejected and what Accept returned.
	ErrRejected = errors.New("ackbits: datagram rejected")
)

// ErrWithhold is only ever returned by Config.Accept, to the library: the datagram is
// valid but must not be acknowledged, like a snapshot whose baseline is missing
// (P-2.3.5). No method of this package returns it.
var ErrWithhold = errors.New("ackbits: datagram withheld")

// Errors of callers. The call changed nothing, and the error names the value.
var (
	// ErrEventTooLarge: an event of more bytes than MaxEvent.
	ErrEventTooLarge = errors.New("ackbits: event too large")
	// ErrDatagramTooLarge: a payload of more bytes than MaxPayload.
	ErrDatagramTooLarge = errors.New("ackbits: datagram too large")
	// ErrReservedType: AppendDatagram was asked for type 0 or one of 5 to 15.
	ErrReservedType = errors.New("ackbits: reserved datagram type")
	// ErrConfig: a Config value that is negative or contradicts another.
	ErrConfig = errors.New("ackbits: invalid configuration")
)

// Reasons for the end of a session or channel. Err returns the reason, and so does
// every later call that returns an error.
var (
	// ErrTimeout: for Config.Timeout no datagram arrived that was Newest or Late.
	ErrTimeout = errors.New("ackbits: timeout")
	// ErrPeerLeft: the peer sent a Disconnect.
	ErrPeerLeft = errors.New("ackbits: peer left")
	// ErrClosed: this side called Close or Shutdown.
	ErrClosed = errors.New("ackbits: session closed")
	// ErrUnacknowledged: more than 256 + Backlog events undelivered.
	ErrUnacknowledged = errors.New("ackbits: too many unacknowledged events")
	// ErrStalled: the oldest undelivered event made no progress for
	// Config.StallTimeout, or half of all sequences were sent since the newest
	// acknowledged one (P-3.1.4).
	ErrStalled = errors.New("ackbits: events stalled")
	// ErrKeyExhausted: Config.Seal has sealed 2²⁸ datagrams, or 2³⁶ did not open with
	// Config.Open: one key protects no more (P-11.4.1).
	ErrKeyExhausted = errors.New("ackbits: key exhausted")
)

// Errors of an OrderedLane, which also ends with ErrStalled.
var (
	// ErrLaneFull: a Droppable event was refused; it used no id.
	ErrLaneFull = errors.New("ackbits: lane full")
	// ErrLaneOverflow: a Critical event found the hard limit reached, which ends the
	// lane; or all ids are used up, which does not.
	ErrLaneOverflow = errors.New("ackbits: lane overflow")
	// ErrAck: an acknowledgement of an event that was never sent.
	ErrAck = errors.New("ackbits: acknowledgement of an event never sent")
)

// valueError is one of the errors above with the value that was wrong.
type valueError struct {
	kind   error
	detail string
}

func (e *valueError) Error() string { return e.kind.Error() + ": " + e.detail }
func (e *valueError) Unwrap() error { return e.kind }

// tooLarge returns an error of a kind that names a size and its limit, both in bytes.
func tooLarge(kind error, size, limit int) error {
	return &valueError{kind, strconv.Itoa(size) + " bytes, the limit is " + strconv.Itoa(limit)}
}

// rejection is what Receive returns for a datagram that Accept refused. Each session
// holds one and returns its address, so that a refusal causes no allocation. The next
// refusal overwrites it.
type rejection struct{ cause error }

func (r *rejection) Error() string        { return ErrRejected.Error() + ": " + r.cause.Error() }
func (r *rejection) Is(target error) bool { return target == ErrRejected }
func (r *rejection) Unwrap() error        { return r.cause }
