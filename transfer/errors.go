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

// Reasons for the end of a transfer, which the Err methods return. Where they quote the
// peer, the text is printable UTF-8 of up to 255 bytes. Trust it as little as the peer.
var (
	// ErrDigest: the SHA-256 of what the receiver stored is not that of the offer.
	ErrDigest = errors.New("transfer: wrong digest")
	// ErrCancelled: Cancel was called at either end, or the peer's source or Sink failed.
	// The error has the peer's reason, which does not quote the error of a source or
	// Sink.
	ErrCancelled = errors.New("transfer: cancelled")
	// ErrRefused: the receiver's Accept refused the offer; the error says why.
	ErrRefused = errors.New("transfer: refused")
)

// ErrOutcomes: the receiver answers, but for some seconds, or since the very start, no
// outcome was passed to Transfers.Outcome. The session needs Config.Outcomes, and whoever
// fetches its outcomes must pass all of them on. A few that are missing cost only
// retransmissions.
var ErrOutcomes = errors.New("transfer: no outcomes of the session were handed in")

// Errors of calls.
var (
	// ErrMessage: a payload that is no message of this package, or that contradicts what
	// was offered, or a chunk that has overtaken its offer and will come again. It changed
	// nothing.
	ErrMessage = errors.New("transfer: malformed message")
	// ErrLimit: a name of more than 255 bytes, or a size that is negative or above 2 TiB.
	ErrLimit = errors.New("transfer: too long")
)

// Errors of chunks and offers that are refused now and may be accepted later.
var (
	errAhead = errors.New("transfer: chunk too far beyond the first that is missing")
	errBusy  = errors.New("transfer: too many incoming transfers")
)

// reasonError is the end of a transfer with the reason that the peer gave.
type reasonError struct {
	kind   error
	reason string
}

func (e *reasonError) Error() string { return e.kind.Error() + ": " + e.reason }
func (e *reasonError) Unwrap() error { return e.kind }

// withReason returns kind with the reason that the peer gave, up to maxText bytes. What
// is not printable becomes a question mark: terminals and logs obey control characters,
// and some reorder the text.
func withReason(kind error, reason []byte) error {
	printable := strings.Map(func(r rune) rune {
		if r == utf8.RuneError || !unicode.IsPrint(r) {
			return '?'
		}
		return r
	}, string(reason[:min(len(reason), maxText)]))
	return &reasonError{kind, printable}
}

// What the peer gets instead of the text of such an error, which may name a path.
const (
	sinkFailed   = "the sink failed"
	sourceFailed = "the source failed"
)

// text returns the text of an error of Accept, cut to what fits.
func text(err error) []byte {
	s := err.Error()
	return []byte(strings.ToValidUTF8(s[:min(len(s), maxText)], ""))
}

func configError(what string) error { return fmt.Errorf("%w: transfer: %s", ackbits.ErrConfig, what) }

func limitError(what string, value, limit int64) error {
	return fmt.Errorf("%w: %s of %d bytes, the limit is %d", ErrLimit, what, value, limit)
}
