package ledger_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/ackbits/ackbits/examples/arena/ledger"
	"github.com/stretchr/testify/require"
)

// pair returns the records of a session in which the server sent n events and
// all arrived.
func pair(n int) (server, client *ledger.Session) {
	server = &ledger.Session{Token: 7, Reason: "closed"}
	client = &ledger.Session{Token: 7, Reason: "the peer left"}
	for i := range n {
		event := fmt.Append(nil, i)
		server.NoteSent(event)
		client.NoteGot(uint16(i), event)
	}
	return server, client
}

func compare(server, client *ledger.Session) ledger.Report {
	return ledger.Compare([]*ledger.Session{server}, []*ledger.Session{client})
}

// Ids wrap, and those of an unordered receiver come out of order.
func TestAllIsWell(t *testing.T) {
	server, client := pair(200_000)
	for i := 0; i+7 < len(client.Got); i += 5 {
		client.Got[i], client.Got[i+7] = client.Got[i+7], client.Got[i]
	}
	r := compare(server, client)
	require.Empty(t, r.Problems)
	require.Equal(t, 200_000, r.Events)
	require.Equal(t, 1, r.Sessions)
}

// Each thing that must never happen is found.
func TestProblems(t *testing.T) {
	for name, spoil := range map[string]func(server, client *ledger.Session){
		"missing":               func(_, c *ledger.Session) { c.Got = append(c.Got[:4], c.Got[5:]...) },
		"twice":                 func(_, c *ledger.Session) { c.Got = append(c.Got, c.Got[3]) },
		"changed":               func(_, c *ledger.Session) { c.Got[3].Sum++ },
		"never sent":            func(_, c *ledger.Session) { c.NoteGot(10, nil) },
		"without a reason":      func(_, c *ledger.Session) { c.Reason = "" },
		"after 4 others":        func(_, c *ledger.Session) { c.Ordered = true; c.Got[4], c.Got[5] = c.Got[5], c.Got[4] },
		"two server sessions":   nil,
		"but only 1 were in fl": func(s, c *ledger.Session) { s.InFlight = 1; c.Got = c.Got[:8] },
	} {
		server, client := pair(10)
		var r ledger.Report
		if spoil == nil {
			r = ledger.Compare([]*ledger.Session{server, server}, []*ledger.Session{client})
		} else {
			spoil(server, client)
			r = compare(server, client)
		}
		require.NotEmpty(t, r.Problems, name)
		require.Contains(t, r.Problems[0], name)
	}
}

// What the sender knew to be in flight when the session ended is no problem.
func TestOpenAtTheEnd(t *testing.T) {
	server, client := pair(10)
	server.InFlight, client.Got = 2, client.Got[:8]
	r := compare(server, client)
	require.Empty(t, r.Problems)
	require.Equal(t, 2, r.Open)

	// An ordered receiver may have acknowledged what waits behind a gap.
	server.InFlight, client.Ordered, client.Got = 1, true, client.Got[:5]
	require.Empty(t, compare(server, client).Problems)
	server.InFlight = 0
	require.NotEmpty(t, compare(server, client).Problems)
}

// Of a killed server only the client's end is known; it still shows what came
// twice.
func TestOneSided(t *testing.T) {
	_, client := pair(10)
	r := ledger.Compare(nil, []*ledger.Session{client})
	require.Empty(t, r.Problems)
	require.Equal(t, 1, r.OneSided)
	client.Got = append(client.Got, client.Got[0])
	require.NotEmpty(t, ledger.Compare(nil, []*ledger.Session{client}).Problems)
}

func TestFile(t *testing.T) {
	server, client := pair(3)
	client.InFlight, client.Ordered = 2, true
	client.NoteSent([]byte("hello"))
	var file bytes.Buffer
	book := ledger.NewBook(&file)
	require.NoError(t, book.Add(server))
	require.NoError(t, book.Add(client))
	file.WriteString("session 00000000000000ff false 0 cut off\ns 00000001\n")
	got, err := ledger.Read(&file)
	require.NoError(t, err)
	require.Equal(t, []*ledger.Session{server, client}, got)

	_, err = ledger.Read(strings.NewReader("session 1 true 0 x\ng 70000 1\nend\n"))
	require.ErrorContains(t, err, "line 2")
	_, err = ledger.Read(strings.NewReader("what\n"))
	require.ErrorContains(t, err, `unexpected "what"`)
}
