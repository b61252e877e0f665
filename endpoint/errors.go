package endpoint

import (
	"errors"
	"strings"
	"unicode"
)

// The errors of this package. Those of a session are ackbits' own and are passed on.

// ErrPending is for ServerConfig.Admit to return while somebody else is asked
// about a client: nothing is answered, and the client's next Hello, after 250 ms,
// asks again. Copies of a Hello do not: a client is asked about once in 250 ms.
var ErrPending = errors.New("endpoint: not decided yet")

// Reasons for the end of a Client, besides those of its session.
var (
	// ErrRefused: the server refused the client. The error that Client.Err
	// returns is a *RefusedError, which has the reason.
	ErrRefused = errors.New("endpoint: refused")
	// ErrServerKey: until Timeout whoever answered at the server's address had
	// another key than ClientConfig.ServerKey. It was told nothing.
	ErrServerKey = errors.New("endpoint: the server has another key")
	// ErrVersion: until Timeout the server answered in another version of the
	// handshake only.
	ErrVersion = errors.New("endpoint: the server speaks another version of the handshake")
	// ErrNoAnswer: the server did not admit the client within Timeout, and said
	// nothing about it.
	ErrNoAnswer = errors.New("endpoint: no answer")
	// ErrReset: the server does not know the session, as it was restarted or
	// ended it by itself. A new Client may knock again.
	ErrReset = errors.New("endpoint: the server does not know the session any more")
)

// RefusedError is the refusal that a client got. It is ErrRefused.
type RefusedError struct {
	// Reason is the server's words, as they came: any bytes at all if the server is
	// not to be trusted. Show a player what Error says.
	Reason string
}

// Error returns the reason with the replacement character, U+FFFD, in the place of what
// is not printable UTF-8, line breaks and controls of terminals among it.
func (e *RefusedError) Error() string {
	return ErrRefused.Error() + ": " + strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return unicode.ReplacementChar
	}, e.Reason)
}

func (e *RefusedError) Is(target error) bool { return target == ErrRefused }
