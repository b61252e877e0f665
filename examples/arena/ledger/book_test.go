package ledger

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"
)

// However many sessions end, a book stays below its limit, and says so.
func TestLimit(t *testing.T) {
	var out bytes.Buffer
	b := newBook(&out, 10_000)
	for token := range uint64(1000) {
		s := &Session{Token: token, Reason: "closed"}
		for i := range uint16(10) {
			s.NoteSent([]byte{byte(i)})
			s.NoteGot(i, []byte{byte(i)})
		}
		require.NoError(t, b.Add(s))
	}
	require.LessOrEqual(t, out.Len(), 10_000)
	require.Greater(t, out.Len(), 7_000)
	sessions, err := Read(&out)
	require.ErrorIs(t, err, ErrLimit)
	require.NotEmpty(t, sessions, "those before are there")
}
