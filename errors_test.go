package ackbits

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var sentinels = []error{
	ErrShort, ErrOversize, ErrFormat, ErrToken, ErrType, ErrPayload, ErrWindow, ErrRejected,
	ErrWithhold,
	ErrEventTooLarge, ErrDatagramTooLarge, ErrReservedType, ErrConfig,
	ErrTimeout, ErrPeerLeft, ErrClosed, ErrUnacknowledged, ErrStalled,
	ErrLaneFull, ErrLaneOverflow, ErrAck,
}

func TestSentinelsAreToldApart(t *testing.T) {
	texts := map[string]bool{}
	for i, err := range sentinels {
		require.True(t, strings.HasPrefix(err.Error(), "ackbits: "), err)
		require.False(t, texts[err.Error()], "%v twice", err)
		texts[err.Error()] = true
		for j, other := range sentinels {
			require.Equal(t, i == j, errors.Is(err, other), "%v is %v", err, other)
		}
	}
}

func TestErrorOfAValueMatchesItsKindOnly(t *testing.T) {
	err := tooLarge(ErrDatagramTooLarge, 1183, 1182)
	require.EqualError(t, err, "ackbits: datagram too large: 1183 bytes, the limit is 1182")
	for _, sentinel := range sentinels {
		require.Equal(t, sentinel == ErrDatagramTooLarge, errors.Is(err, sentinel), sentinel)
	}
}

func TestRejectionMatchesWhatAcceptReturned(t *testing.T) {
	cause := errors.New("no such baseline")
	var err error = &rejection{fmt.Errorf("snapshot 7: %w", &valueError{cause, "7"})}
	require.EqualError(t, err, "ackbits: datagram rejected: snapshot 7: no such baseline: 7")
	require.ErrorIs(t, err, cause)
	for _, sentinel := range sentinels {
		require.Equal(t, sentinel == ErrRejected, errors.Is(err, sentinel), sentinel)
	}
	typed, ok := errors.AsType[*valueError](err)
	require.True(t, ok)
	require.Equal(t, "7", typed.detail)
}
