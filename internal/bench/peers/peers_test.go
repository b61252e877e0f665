package peers

import (
	"testing"
)

// TestSubjects has every subject deliver messages in both workloads, twice over
// so that a run also sees what the one before it left. The tally in each driver
// checks that they arrive once and intact.
func TestSubjects(t *testing.T) {
	for _, s := range append(Subjects(), Driver()) {
		t.Run(s.Name, func(t *testing.T) {
			p, err := s.New()
			if err != nil {
				t.Fatal(err)
			}
			for range 2 {
				if err := p.Single(300); err != nil {
					t.Fatal("one in flight:", err)
				}
				if err := p.Stream(1005); err != nil {
					t.Fatal("ten a tick:", err)
				}
			}
			if err := p.Close(); err != nil {
				t.Error(err)
			}
			idle, err := s.Idle(3)
			if err != nil {
				t.Fatal(err)
			}
			if err := idle.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestInFlight checks that Stream is the workload it says it is.
func TestInFlight(t *testing.T) {
	for _, s := range Subjects() {
		p, err := s.New()
		if err != nil {
			t.Fatal(err)
		}
		if m, ok := p.(*machinePair); ok {
			for range 2 { // KCP learns of the peer's window in the first
				m.peak = 0
				if err := m.Stream(1000); err != nil {
					t.Fatal(s.Name, err)
				}
			}
			if m.peak < 90 || m.peak > 120 {
				t.Errorf("%s: %d messages in flight", s.Name, m.peak)
			}
		}
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestTally(t *testing.T) {
	at := func(i uint64) []byte {
		p := make([]byte, MessageSize)
		message((*[MessageSize]byte)(p), i)
		return p
	}
	tests := map[string]struct {
		give [][]byte
		ok   bool
	}{
		"all, in any order": {[][]byte{at(12), at(10), at(11)}, true},
		"one missing":       {[][]byte{at(12), at(10)}, false},
		"one twice":         {[][]byte{at(12), at(10), at(11), at(10)}, false},
		"one of before":     {[][]byte{at(9), at(10), at(11), at(12)}, false},
		"one too many":      {[][]byte{at(10), at(11), at(12), at(13)}, false},
		"a short one":       {[][]byte{at(10), at(11), at(12)[:63]}, false},
		"a changed byte":    {[][]byte{at(10), at(11), append(at(12)[:63:63], 1)}, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var tally tally
			tally.expect(10)
			tally.expect(3)
			for _, p := range test.give {
				tally.add(p)
			}
			if err := tally.result(); (err == nil) != test.ok {
				t.Errorf("result: %v", err)
			}
		})
	}
}

// TestLinkDelay checks that a Link lets datagrams go Delay ticks after they were
// sent, and not before.
func TestLinkDelay(t *testing.T) {
	l := NewLink()
	l.SetDelay(2)
	if _, err := l.A.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if l.B.in.size != 1 || l.B.in.slots[l.B.in.head].due <= l.now {
			t.Fatal("due too early")
		}
		l.Advance()
	}
	var buf [4]byte
	if n, err := l.B.Read(buf[:]); n != 1 || err != nil {
		t.Fatal(n, err)
	}
}
