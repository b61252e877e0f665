// Package ledger writes down what the two ends of a session sent and handed
// over, and finds out from both whether every event arrived exactly once.
package ledger

import (
	"bufio"
	"fmt"
	"hash/crc32"
	"io"
	"strings"
	"sync"
)

// Session is one end's record of a session.
type Session struct {
	Token    uint64
	Ordered  bool     // whether this end hands events over in order
	Sent     []uint32 // the checksum of each event, in the order of Send
	Got      []Entry  // what was handed over, in that order
	InFlight int      // events sent and not acknowledged at the end
	Reason   string   // why it ended
}

// Entry is an event that was handed over.
type Entry struct {
	ID  uint16
	Sum uint32
}

// NoteSent records an event for which Send returned no error.
func (s *Session) NoteSent(event []byte) { s.Sent = append(s.Sent, crc32.ChecksumIEEE(event)) }

// NoteGot records an event that was handed over.
func (s *Session) NoteGot(id uint16, event []byte) {
	s.Got = append(s.Got, Entry{id, crc32.ChecksumIEEE(event)})
}

// Book writes sessions to a file as they end. It may be shared by goroutines.
type Book struct {
	mu  sync.Mutex
	out *bufio.Writer
}

// NewBook returns a book that writes to w.
func NewBook(w io.Writer) *Book { return &Book{out: bufio.NewWriter(w)} }

// Add writes a session that has ended:
//
//	session TOKEN ORDERED IN-FLIGHT REASON
//	s SUM
//	g ID SUM
//	end
func (b *Book) Add(s *Session) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	fmt.Fprintf(b.out, "session %016x %t %d %s\n", s.Token, s.Ordered, s.InFlight, s.Reason)
	for _, sum := range s.Sent {
		fmt.Fprintf(b.out, "s %08x\n", sum)
	}
	for _, e := range s.Got {
		fmt.Fprintf(b.out, "g %d %08x\n", e.ID, e.Sum)
	}
	fmt.Fprintln(b.out, "end")
	return b.out.Flush() // also tells of errors before
}

// Read reads what a Book has written. A session cut off in the middle, because
// the writer was killed, is left out.
func Read(r io.Reader) ([]*Session, error) {
	var sessions []*Session
	var s *Session
	lines := bufio.NewScanner(r)
	for n := 1; lines.Scan(); n++ {
		text := lines.Text()
		var err error
		switch {
		case text == "end" && s != nil:
			sessions = append(sessions, s)
			s = nil
		case strings.HasPrefix(text, "session "):
			s = new(Session)
			if fields := strings.SplitN(text, " ", 5); len(fields) == 5 {
				s.Reason = fields[4]
			}
			_, err = fmt.Sscanf(text, "session %x %t %d", &s.Token, &s.Ordered, &s.InFlight)
		case s != nil && strings.HasPrefix(text, "s "):
			var sum uint32
			_, err = fmt.Sscanf(text, "s %x", &sum)
			s.Sent = append(s.Sent, sum)
		case s != nil && strings.HasPrefix(text, "g "):
			var e Entry
			_, err = fmt.Sscanf(text, "g %d %x", &e.ID, &e.Sum)
			s.Got = append(s.Got, e)
		default:
			err = fmt.Errorf("unexpected %q", text)
		}
		if err != nil {
			return sessions, fmt.Errorf("ledger: line %d: %w", n, err)
		}
	}
	return sessions, lines.Err()
}
