package peers

import (
	"testing"

	"github.com/ackbits/ackbits"
)

// TestAckbitsSendsOnce checks that the figures of ackbits are those of messages
// sent once: the round trip of Stream is as long as its resend delay, and an
// acknowledgement that came a tick late would double the work.
func TestAckbitsSendsOnce(t *testing.T) {
	pair, err := Ackbits(ackbits.Config{}).open()
	if err != nil {
		t.Fatal(err)
	}
	if err := pair.Single(100); err != nil {
		t.Fatal(err)
	}
	if err := pair.Stream(1000); err != nil {
		t.Fatal(err)
	}
	s := pair.(*machinePair).a.(*ackbitsEnd).Stats()
	if s.EventsSent != 1100 || s.EventsResent != 0 {
		t.Errorf("%d events sent, %d resent, want 1100 and 0", s.EventsSent, s.EventsResent)
	}
}
