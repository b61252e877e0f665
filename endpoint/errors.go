package endpoint

import (
	"errors"
	"strings"
	"unicode"
)

// The errors of this package. Those of a session are passed on as they are.

// ErrPending is for ServerConfig.Admit to return while the answer is still being looked
// up. The client gets no answer, and Admit is asked again at the client's next Hello, 250
// ms later at the earliest.
var ErrPending = errors.New("endpoint: not decided yet")

// Reasons for the end of a Client, besides those of its session.
var (
	// ErrRefused: the server refused the client. The error that Client.Err returns is a
	// *RefusedError, which has the reason.
	ErrRefused = errors.New("endpoint: refused")
	// ErrServerKey: until Timeout, every answer from the server's address came with
	// another key than ClientConfig.ServerKey. The client told it nothing.
	ErrServerKey = errors.New("endpoint: the server has another key")
	// ErrVersion: until Timeout, every answer was in another version of the handshake.
	ErrVersion = errors.New("endpoint: the server speaks another version of the handshake")
	// ErrNoAnswer: until Timeout, the server neither admitted nor refused the client.
	ErrNoAnswer = errors.New("endpoint: no answer")
	// ErrReset: the server does not know the session, because it was restarted or has
	// ended the session on its own. A new Client may join again.
	ErrReset = errors.New("endpoint: the server does not know the session any more")
)

// RefusedError is the refusal that a client got. It matches ErrRefused.
type RefusedError struct {
	// Reason is what the server wrote, unchanged: if the server is not to be trusted, it
	// may be any bytes. Show a player what Error returns.
	Reason string
}

// Error returns the reason with U+FFFD, the replacement character, in place of everything
// that is not printable UTF-8, such as line breaks and control characters.
func (e *RefusedError) Error() string {
	return ErrRefused.Error() + ": " + strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return unicode.ReplacementChar
	}, e.Reason)
}

// Is reports whether target is ErrRefused.
func (e *RefusedError) Is(target error) bool { return target == ErrRefused }
