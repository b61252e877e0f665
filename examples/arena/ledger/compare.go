package ledger

import "fmt"

// Report is what Compare found.
type Report struct {
	Sessions int      // of which both ends are known
	OneSided int      // of which one end is, because the other was killed
	Events   int      // delivered
	Open     int      // undelivered, and the sender knew: the session ended before
	Problems []string // none, if all is well
}

func (r Report) String() string {
	return fmt.Sprintf("%d sessions, %d events delivered exactly once, %d undelivered when a session ended, %d sessions known from one end, %d problems",
		r.Sessions, r.Events, r.Open, r.OneSided, len(r.Problems))
}

// Compare checks the records of servers against those of clients, by token: in
// each direction, every event delivered is one that was sent, was delivered once and
// unchanged, in order if the receiver promises that, and every event sent was
// delivered unless its sender knew, when the session ended with a reason, that it was
// undelivered.
func Compare(servers, clients []*Session) Report {
	var r Report
	known := make(map[uint64]*Session, len(servers))
	for _, s := range servers {
		if known[s.Token] != nil {
			r.problem(s, "two server sessions with this token")
		}
		known[s.Token] = s
	}
	for _, c := range clients {
		if s := known[c.Token]; s != nil {
			delete(known, c.Token)
			r.Sessions++
			r.direction("to client", s, c)
			r.direction("to server", c, s)
		} else {
			r.alone(c)
		}
	}
	for _, s := range known {
		r.alone(s)
	}
	return r
}

// alone checks a session of which only one end is known.
func (r *Report) alone(s *Session) {
	r.OneSided++
	r.direction("from an unknown end", nil, s)
}

// direction checks what was delivered to receiver against what sender sent; of a nil
// sender nothing is known.
func (r *Report) direction(name string, sender, receiver *Session) {
	if receiver.Reason == "" {
		r.problem(receiver, "%s: ended without a reason", name)
	}
	seen := make(map[int]bool, len(receiver.Got))
	newest := -1
	for _, e := range receiver.Got {
		n := newest + int(int16(e.ID-uint16(newest))) // ids wrap; none strays far from the newest
		newest = max(newest, n)
		switch {
		case n < 0 || sender != nil && n >= len(sender.Sent):
			r.problem(receiver, "%s: event %d was never sent", name, n)
		case receiver.Ordered && n != len(seen):
			r.problem(receiver, "%s: event %d was delivered after %d others", name, n, len(seen))
		case seen[n]:
			r.problem(receiver, "%s: event %d was delivered twice", name, n)
		case sender != nil && sender.Sent[n] != e.Sum:
			r.problem(receiver, "%s: event %d was changed", name, n)
		}
		seen[n] = true
	}
	r.Events += len(seen)
	if sender == nil {
		return
	}
	missing := len(sender.Sent) - len(seen)
	r.Open += max(missing, 0)
	if receiver.Ordered && sender.InFlight > 0 {
		return // those behind the oldest one in flight may have arrived, and waited for it
	}
	if missing > sender.InFlight {
		r.problem(receiver, "%s: %d events missing, but only %d were in flight when it ended (%s)",
			name, missing, sender.InFlight, sender.Reason)
	}
}

func (r *Report) problem(s *Session, format string, args ...any) {
	r.Problems = append(r.Problems, fmt.Sprintf("session %016x: ", s.Token)+fmt.Sprintf(format, args...))
}
