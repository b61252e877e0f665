package endpoint

import "errors"

// ErrPending is for ServerConfig.Admit to return while somebody else is asked
// about a client: nothing is answered, and the client's next Hello, within 250 ms,
// asks again.
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
	Reason string // the server's words; what they are is the server's business
}

func (e *RefusedError) Error() string        { return ErrRefused.Error() + ": " + e.Reason }
func (e *RefusedError) Is(target error) bool { return target == ErrRefused }
