// Package ledger records what the two ends of a session sent and delivered to the
// application, and finds out from both whether every event was delivered exactly once.
package ledger

import (
	"bufio"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"strings"
	"sync"
)

// Session is one end's record of a session.
type Session struct {
	Token    uint64
	Ordered  bool     // whether this end delivers events in order
	Sent     []uint32 // the checksum of each event, in the order of Send
	Got      []Entry  // what was delivered, in that order
	InFlight int      // events sent and not acknowledged at the end
	Reason   string   // why it ended
}

// Entry is an event that was delivered.
type Entry struct {
	ID  uint16
	Sum uint32
}

// NoteSent records an event for which Send returned no error.
func (s *Session) NoteSent(event []byte) { s.Sent = append(s.Sent, crc32.ChecksumIEEE(event)) }

// NoteGot records an event that was delivered.
func (s *Session) NoteGot(id uint16, event []byte) {
	s.Got = append(s.Got, Entry{id, crc32.ChecksumIEEE(event)})
}

// Limit is how large a ledger may become, in bytes: that of 1,000 players in ten
// minutes. Sessions that end later are left out. It keeps strangers who join a
// server from filling its disk.
const Limit = 256 << 20

// ErrLimit: a ledger has reached its limit, so that sessions are missing in it.
var ErrLimit = errors.New("ledger: reached its limit, sessions are missing")

// full is the last line of such a ledger.
const full = "full"

// Book writes sessions to a file as they end. It may be shared by goroutines.
type Book struct {
	mu   sync.Mutex
	out  *bufio.Writer
	room int // bytes that may still be written
}

// NewBook returns a book that writes at most Limit bytes to w.
func NewBook(w io.Writer) *Book { return newBook(w, Limit) }

func newBook(w io.Writer, limit int) *Book {
	return &Book{out: bufio.NewWriter(w), room: limit - len(full) - 1}
}

// Add writes a session that has ended:
//
//	session TOKEN ORDERED IN-FLIGHT REASON
//	s SUM
//	g ID SUM
//	end
func (b *Book) Add(s *Session) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.room < 0 {
		return nil
	}
	if b.room -= s.size(); b.room < 0 {
		fmt.Fprintln(b.out, full)
		return b.out.Flush()
	}
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

// size is the most that a session takes in a book.
func (s *Session) size() int {
	return 80 + len(s.Reason) + len("s 01234567\n")*len(s.Sent) + len("g 65535 01234567\n")*len(s.Got)
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
		case text == full && s == nil:
			err = ErrLimit
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
