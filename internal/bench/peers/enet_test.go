//go:build enet

package peers

import "testing"

// TestENetInFlight is TestInFlight for the loop in C: ENet counts the bytes of
// reliable data in flight.
func TestENetInFlight(t *testing.T) {
	pair, err := openENet()
	if err != nil {
		t.Fatal(err)
	}
	if err := pair.Stream(1000); err != nil {
		t.Fatal(err)
	}
	if n := enetPeak(pair) / MessageSize; n < 80 || n > 120 {
		t.Errorf("%d messages in flight", n)
	}
	if b, err := enetServer(10); err != nil || b < 100 || b > 20000 {
		t.Errorf("%v bytes a connection at a server: %v", b, err)
	}
	if err := pair.Close(); err != nil {
		t.Error(err)
	}
}
