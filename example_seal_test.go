package ackbits_test

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"time"

	"github.com/ackbits/ackbits"
)

// keys derives the two keys of a session from a secret that both ends share and that is
// fresh for this session: from a handshake, or from a ticket that a backend gave to both
// over TLS. Each direction has its own label and so its own key: with one key for both,
// nonces would be used twice. The salt is anything else that both know of this session,
// its token for example.
func keys(secret, salt []byte) (toServer, toClient cipher.AEAD, err error) {
	for _, direction := range []struct {
		label string
		aead  *cipher.AEAD
	}{{"my game, to the server", &toServer}, {"my game, to the client", &toClient}} {
		key, err := hkdf.Key(sha256.New, secret, salt, direction.label, 16)
		if err != nil {
			return nil, nil, err
		}
		block, err := aes.NewCipher(key)
		if err != nil {
			return nil, nil, err
		}
		if *direction.aead, err = cipher.NewGCM(block); err != nil {
			return nil, nil, err
		}
	}
	return toServer, toClient, nil
}

// Two sealed sessions. Someone who has seen all datagrams can read none of them, forge
// none, and replay none.
func ExampleConfig_seal() {
	clock := new(ackbits.ManualClock)
	toServer, toClient, err := keys([]byte("a secret of 32 random bytes, say"), []byte("token 7"))
	if err != nil {
		panic(err)
	}
	client := must(ackbits.NewSession(ackbits.Config{Token: 7, Clock: clock, Seal: toServer, Open: toClient}))
	server := must(ackbits.NewSession(ackbits.Config{Token: 7, Clock: clock, Seal: toClient, Open: toServer}))

	must(client.Send([]byte("buy the sword")))
	datagram, _ := client.AppendDue(nil)
	seen := bytes.Clone(datagram) // Receive opens in place
	in := must(server.Receive(datagram))
	fmt.Printf("%s\n", in.Events[0].Data)

	fmt.Println("readable:", bytes.Contains(seen, []byte("sword")))
	_, err = server.Receive(bytes.Clone(seen))
	fmt.Println(err)
	seen[1] = byte(ackbits.TypeDisconnect)
	seen[10]++ // the next sequence
	_, err = server.Receive(seen)
	fmt.Println(err)
	fmt.Println("alive:", server.Err() == nil)
	// Output:
	// buy the sword
	// readable: false
	// ackbits: datagram replayed
	// ackbits: datagram forged
	// alive: true
}

// A sealer seals datagrams under a header of your own, as a Session does under its own.
// The number of a datagram is its nonce. It is not on the wire: the receiver takes the
// number with the datagram's sequence that is nearest to the newest number opened. An
// AckTracker is the replay window.
type sealer struct {
	ours, theirs cipher.AEAD
	sent         int64 // the number of the next datagram
	newest       int64 // the newest number opened; −1 before any
	window       ackbits.AckTracker
}

func nonce(number int64) []byte {
	return binary.BigEndian.AppendUint64(make([]byte, 4), uint64(number))
}

// seal appends the sealed payload to a header. The header stays readable, but cannot be
// changed unnoticed. It must be the header of the next datagram.
func (s *sealer) seal(header, payload []byte) []byte {
	s.sent++
	return s.ours.Seal(header, nonce(s.sent-1), payload, header)
}

// open returns the payload of a datagram, which it overwrites.
func (s *sealer) open(header, sealed []byte, seq uint16) (payload []byte, ok bool) {
	number := s.newest + int64(int16(seq-uint16(s.newest)))
	arrival := s.window.Classify(seq)
	if number < 0 || arrival != ackbits.Newest && arrival != ackbits.Late {
		return nil, false // replayed, or too old to tell
	}
	payload, err := s.theirs.Open(sealed[:0], nonce(number), sealed, header)
	if err != nil {
		return nil, false // forged
	}
	s.window.Receive(seq)
	s.newest = max(s.newest, number)
	return payload, true
}

// A ReliableChannel handles no datagram bytes, so its user seals them. Only what has been
// opened may be passed to Receive.
func ExampleReliableChannel_sealed() {
	clock := new(ackbits.ManualClock)
	there, back, err := keys([]byte("a secret of 32 random bytes, say"), nil)
	if err != nil {
		panic(err)
	}
	alice := must(ackbits.NewReliableChannel(ackbits.Config{Clock: clock, MaxEvent: 400}))
	bob := must(ackbits.NewReliableChannel(ackbits.Config{Clock: clock, MaxEvent: 400}))
	alices := sealer{ours: there, theirs: back, newest: -1}
	bobs := sealer{ours: back, theirs: there, newest: -1}

	must(alice.Send([]byte("goal!")))
	h, _ := alice.NextHeader(ackbits.TypeEvent)
	payload := alice.AppendDueEvents(nil, h.Sequence, 400)
	datagram := alices.seal(appendOwnHeader(nil, h), payload)

	for range 2 { // it comes twice
		got := bytes.Clone(datagram)
		h, sealed, _ := parseOwnHeader(got)
		payload, ok := bobs.open(got[:ownHeader], sealed, h.Sequence)
		if !ok {
			fmt.Println("refused")
			continue
		}
		in, _ := bob.Receive(h, payload)
		fmt.Printf("%s\n", in.Events[0].Data)
	}
	// Output:
	// goal!
	// refused
}

// A connection was lost. Events that are not known to be delivered are sent again over
// the next session. Some of them may have arrived, because the last acknowledgements
// were lost with the session; a number in the application's own data tells.
func ExampleSession_Undelivered() {
	clock := new(ackbits.ManualClock)
	session := must(ackbits.NewSession(ackbits.Config{Token: 1, Clock: clock, Ordered: true}))
	for _, event := range []string{"1: build", "2: move", "3: attack"} {
		must(session.Send([]byte(event)))
	}
	session.AppendDue(nil) // never arrives, nor does anything else
	clock.Advance(5 * time.Second)
	session.AppendDue(nil)
	fmt.Println(session.Err())

	next := must(ackbits.NewSession(ackbits.Config{Token: 2, Clock: clock, Ordered: true}))
	for event := range session.Undelivered() {
		if next.Room() == 0 {
			break // the rest once there is room: they stay as they are
		}
		must(next.Send(event.Data)) // with a new id
	}
	fmt.Println("in flight:", next.InFlight())
	peer := must(ackbits.NewSession(ackbits.Config{Token: 2, Clock: clock, Ordered: true}))
	datagram, _ := next.AppendDue(nil)
	for _, event := range must(peer.Receive(datagram)).Events {
		fmt.Printf("%s\n", event.Data)
	}
	// Output:
	// ackbits: timeout
	// in flight: 3
	// 1: build
	// 2: move
	// 3: attack
}
