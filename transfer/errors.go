package transfer

import (
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/ackbits/ackbits"
)

// The errors of this package, and the reasons that peers give.

// Reasons for the end of a transfer, see the methods Err. Words of the peer in them are
// printable UTF-8 of up to 255 bytes, and as little to be trusted as the peer.
var (
	// ErrDigest: what the receiver stored has another SHA-256 than the offer says.
	ErrDigest = errors.New("transfer: wrong digest")
	// ErrCancelled: Cancel was called at either end, or the source or the Sink of
	// the peer failed; the error says the peer's reason, which does not tell what the
	// source or the Sink said.
	ErrCancelled = errors.New("transfer: cancelled")
	// ErrRefused: the receiver's Accept refused the offer; the error says why.
	ErrRefused = errors.New("transfer: refused")
)

// ErrOutcomes: the receiver answers, and no outcome was handed to Transfers.Outcome,
// either never or for some seconds. Those that are missing now and then cost repeats
// only. The session needs Config.Outcomes, and whoever fetches its
// outcomes must hand all of them in.
var ErrOutcomes = errors.New("transfer: no outcomes of the session were handed in")

// Errors of calls.
var (
	// ErrMessage: a payload that is none of this package, or contradicts what was
	// offered. It changed nothing.
	ErrMessage = errors.New("transfer: malformed message")
	// ErrLimit: a name or a file that is too long to be offered.
	ErrLimit = errors.New("transfer: too long")
)

// What is refused now and may be accepted later.
var (
	errAhead = errors.New("transfer: chunk too far beyond the first that is missing")
	errBusy  = errors.New("transfer: too many incoming transfers")
)

// reasonError is an end with the peer's words.
type reasonError struct {
	kind   error
	reason string
}

func (e *reasonError) Error() string { return e.kind.Error() + ": " + e.reason }
func (e *reasonError) Unwrap() error { return e.kind }

// withReason returns kind with what the peer said, up to maxText bytes. Whatever does
// not print is a question mark: a log or a terminal would obey it, or show another order.
func withReason(kind error, reason []byte) error {
	printable := strings.Map(func(r rune) rune {
		if r == utf8.RuneError || !unicode.IsPrint(r) {
			return '?'
		}
		return r
	}, string(reason[:min(len(reason), maxText)]))
	return &reasonError{kind, printable}
}

// What the peer hears of errors that are not ours: their own words may name paths.
const (
	sinkFailed   = "the sink failed"
	sourceFailed = "the source failed"
)

// text returns the words of an error of Accept, as many as fit.
func text(err error) []byte {
	s := err.Error()
	return []byte(strings.ToValidUTF8(s[:min(len(s), maxText)], ""))
}

func configError(what string) error { return fmt.Errorf("%w: transfer: %s", ackbits.ErrConfig, what) }

func limitError(what string, value, limit int64) error {
	return fmt.Errorf("%w: %s of %d bytes, the limit is %d", ErrLimit, what, value, limit)
}
