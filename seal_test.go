package ackbits

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// gcm returns an AES-128-GCM whose key is one byte over and over.
func gcm(key byte) cipher.AEAD {
	block, err := aes.NewCipher(bytes.Repeat([]byte{key}, 16))
	if err != nil {
		panic(err)
	}
	aead, err := cipher.NewGCM(block)
	if err != nil {
		panic(err)
	}
	return aead
}

// sealedDuo begins a story of two sessions that have each other's keys.
func sealedDuo(tb storyTB, cfg Config) (a, b *actor) {
	tb.Helper()
	y := newStory(tb)
	cfg.Seal, cfg.Open = gcm('a'), gcm('b')
	a = y.enter("A", cfg)
	cfg.Seal, cfg.Open = cfg.Open, cfg.Seal
	b = y.enter("B", cfg)
	return a, b
}

// A sealed datagram is what AES-GCM makes of it, by hand.
// P-11.1.1, P-11.2.1.
func TestSealedDatagram(t *testing.T) {
	inBothForms(t, func(t *testing.T, wide bool) {
		a, b := sealedDuo(t, Config{Wide: wide, Token: 77})
		a.startAt(65535, 0)
		b.expectFrom(65535, 0)
		for n, payload := range []string{"first", "", "third"} {
			k := a.emitSealed(TypeInput, payload)
			h := Header{Wide: wide, Sealed: true, Type: TypeInput, Token: 77, Sequence: uint16(65535 + n), Ack: 65535}
			require.Equal(t, h, k.Header)
			require.EqualValues(t, 0x0C+b2i(wide), k.bytes[0])
			header := h.AppendTo(nil)
			nonce := binary.BigEndian.AppendUint64(make([]byte, 4), uint64(65535+n))
			require.Equal(t, gcm('a').Seal(header, nonce, []byte(payload), header), k.bytes)
			in := b.deliver(k)
			require.Equal(t, payload, string(in.Payload))
			require.NotNil(t, in.Payload)
			require.True(t, in.Sealed)
		}
		require.Equal(t, a.s.Stats().BytesSent, b.s.Stats().BytesReceived)
	})
}

// emitSealed sends a datagram of the application's from a sealed session.
func (p *actor) emitSealed(t Type, payload string) *packet {
	p.tb.Helper()
	out, seq, err := p.s.AppendDatagram([]byte("kept"), t, []byte(payload))
	require.NoError(p.tb, err)
	require.Equal(p.tb, "kept", string(out[:4]))
	k := p.packet(out[4:])
	require.Equal(p.tb, seq, k.Sequence)
	return k
}

// refuseSealed passes a datagram to Receive that must be refused as forged or replayed:
// beside the refusal and its kind, nothing may have changed.
func (p *actor) refuseSealed(reason error, datagram []byte) {
	p.tb.Helper()
	before, window := p.s.Stats(), *p.s.sealing
	want := before
	switch reason {
	case ErrForged:
		want.Forged++
	case ErrReplayed:
		want.Replayed++
	}
	want.Rejected++
	tracker, live := p.s.channel.receiver.tracker, p.s.live
	in, err := p.s.Receive(slices.Clone(datagram))
	require.Equal(p.tb, reason, err)
	require.Zero(p.tb, in)
	require.Equal(p.tb, want, p.s.Stats())
	require.Equal(p.tb, window, *p.s.sealing)
	require.Equal(p.tb, tracker, p.s.channel.receiver.tracker)
	require.Equal(p.tb, live, p.s.live)
}

// Every bit of a datagram flipped, every length, and the longest garbage: refused
// for the first thing that is wrong, and the true one is taken after all of that.
// P-11.3.2.
func TestEveryForgedBitAndLengthIsRefused(t *testing.T) {
	inBothForms(t, func(t *testing.T, wide bool) {
		size := headerSize(wide)
		a, b := sealedDuo(t, Config{Wide: wide, Token: 5})
		b.deliver(a.emitSealed(TypeInput, "before"))
		a.send("an event")
		k := a.flush()[0]
		for bit := range 8 * len(k.bytes) {
			forged := slices.Clone(k.bytes)
			forged[bit/8] ^= 1 << (bit % 8)
			want := ErrForged
			switch at := bit / 8; {
			case at == 0:
				want = ErrFormat
			case forged[1] == 0:
				want = ErrType
			case at >= 2 && at < 10:
				want = ErrToken
			case at == 10 || at == 11:
				if seq := binary.LittleEndian.Uint16(forged[10:]); b.s.sealing.opened.Classify(seq) >= Duplicate {
					want = ErrReplayed
				}
			}
			b.refuseSealed(want, forged)
		}
		for n := range MaxDatagramSize + 2 {
			forged := append(slices.Clone(k.bytes), make([]byte, MaxDatagramSize)...)[:n]
			switch {
			case n == len(k.bytes):
				continue
			case n < HeaderSize, n >= HeaderSize && n < size+16:
				b.refuseSealed(ErrShort, forged)
			case n > MaxDatagramSize:
				b.refuseSealed(ErrOversize, forged)
			default:
				b.refuseSealed(ErrForged, forged)
			}
		}
		b.deliver(k)
		b.wantEvents("an event")
	})
}

// The order of checks: a datagram that has every fault is refused for the first,
// and with each fault mended for the next.
// P-2.3.2.
func TestSealedOrderOfChecks(t *testing.T) {
	for _, wide := range []bool{false, true} {
		a, b := sealedDuo(t, Config{Wide: wide, Accept: func(Header, []byte) error { return errAcceptance }})
		b.take(a.flushOne(60 * ms).bytes)
		true0 := Header{Wide: wide, Sealed: true, Type: 1, Sequence: 1}
		h := Header{Wide: !wide, Type: 0, Token: 1, Sequence: 0}
		b.refuseSealed(ErrShort, make([]byte, HeaderSize-1))
		b.refuseSealed(ErrOversize, make([]byte, MaxDatagramSize+1))
		b.refuseSealed(ErrFormat, h.AppendTo(nil))
		h.Wide = wide
		b.refuseSealed(ErrFormat, h.AppendTo(nil)) // bare
		h.Sealed = true
		b.refuseSealed(ErrShort, append(h.AppendTo(nil), make([]byte, 15)...))
		tag := make([]byte, 16)
		none := h.AppendTo(nil)
		none[1] = 0
		b.refuseSealed(ErrType, append(none, tag...))
		h.Type = 15
		b.refuseSealed(ErrToken, append(h.AppendTo(nil), tag...))
		h.Token = 0
		b.refuseSealed(ErrReplayed, append(h.AppendTo(nil), tag...))
		h.Sequence = 1
		b.refuseSealed(ErrForged, append(h.AppendTo(nil), tag...))
		for seq, c := range []struct {
			t       Type
			payload []byte
			want    error
		}{
			{15, nil, ErrType},
			{TypeHeartbeat, []byte{1}, ErrPayload},
			{TypeEvent, eventList(Event{5000, nil}), ErrWindow},
			{TypeInput, nil, ErrRejected},
		} {
			h := true0
			h.Type, h.Sequence = c.t, uint16(1+seq)
			datagram := a.sealByHand(h, int64(h.Sequence), c.payload)
			require.ErrorIs(t, b.hand(datagram), c.want)
			b.refuseSealed(ErrReplayed, datagram) // it opened, and so it does not again
		}
	}
}

// hand passes a datagram to Receive and returns the error.
func (p *actor) hand(datagram []byte) error {
	_, err := p.s.Receive(slices.Clone(datagram))
	return err
}

// sealByHand makes a datagram of an actor's own key.
func (p *actor) sealByHand(h Header, number int64, payload []byte) []byte {
	header := h.AppendTo(nil)
	return p.cfg.Seal.Seal(header, modelNonce(p.cfg.Seal, number), payload, header)
}

// flushOne lets time pass and takes the one datagram that is due.
func (p *actor) flushOne(d time.Duration) *packet {
	p.tb.Helper()
	p.sleep(d)
	out := p.flush()
	require.Len(p.tb, out, 1)
	return out[0]
}

// Each datagram is accepted at most once: what was accepted, withheld or refused
// does not come again, whenever it is replayed.
// P-11.2.2, P-11.3.1, P-11.3.3.
func TestReplaysAreRefused(t *testing.T) {
	outcome := error(nil)
	a, b := sealedDuo(t, Config{Accept: func(Header, []byte) error { return outcome }})
	var past [][]byte
	for n := range 65_536 + 300 {
		switch n % 50 {
		case 0:
			outcome = ErrWithhold
		case 1:
			outcome = errAcceptance
		default:
			outcome = nil
		}
		out, _, err := a.s.AppendDatagram(nil, TypeInput, []byte{byte(n)})
		require.NoError(t, err)
		past = append(past, slices.Clone(out))
		if err := b.hand(out); outcome == errAcceptance {
			require.ErrorIs(t, err, errAcceptance)
		} else {
			require.NoError(t, err)
		}
		outcome = nil
		for _, back := range []int{0, 1, 32, 63, 64, 65, 66, 200, 32767, 32768, 32769, 65535} {
			if back > n || n%256 != 0 && n%50 > 1 {
				continue
			}
			if err := b.hand(past[n-back]); err != ErrReplayed && err != ErrForged {
				t.Fatalf("datagram %d replayed %d later: %v", n-back, back, err)
			}
		}
		if n >= 65_536 { // the same sequence, a turn later
			want := ErrReplayed
			require.Equal(t, want, b.hand(past[n-65_536]))
		}
		if n%20 == 0 {
			b.clock.Advance(60 * ms)
			for dg := range b.s.Due(make([]byte, MaxDatagramSize)) {
				require.NoError(t, a.hand(dg))
			}
		}
	}
	heard := b.s.live.heardAt
	// One turn later, and newer than all: only its number tells, so it does not open.
	b.clock.Advance(time.Second)
	require.Equal(t, ErrForged, b.hand(past[301]))
	require.Equal(t, heard, b.s.live.heardAt)
	a.outcomes, b.outcomes = nil, nil
	b.s.Close()
	for range b.s.Due(nil) {
	}
	require.Equal(t, ErrClosed, b.hand(past[0]), "after the end")
}

// What comes back to its sender does not open.
// P-2.1.6, P-11.1.2.
func TestReflectionDoesNotOpen(t *testing.T) {
	a, b := sealedDuo(t, Config{})
	b.deliver(a.emitSealed(TypeInput, "x"))
	k := a.emitSealed(TypeInput, "y")
	a.refuseSealed(ErrForged, k.bytes)
	drop(k)
}

// A sealed session takes no bare datagram, and the other way round.
// P-2.1.4.
func TestSealedAndBareDoNotMix(t *testing.T) {
	a, b := sealedDuo(t, Config{})
	bare := a.enter("C", Config{})
	k := bare.emit(TypeInput, 1)
	b.refuse(ErrFormat, k.bytes)
	k = a.emitSealed(TypeInput, "x")
	bare.refuse(ErrFormat, k.bytes)
}

// A datagram before the session's first cannot be.
// P-11.2.2, P-11.3.1.
func TestNoNumberIsNegative(t *testing.T) {
	a, b := sealedDuo(t, Config{})
	k := a.emitSealed(TypeInput, "0")
	drop(k)
	b.deliver(a.emitSealed(TypeInput, "1"))
	h := k.Header
	h.Sequence = 65535 // two before the newest, were there a number for it
	b.refuseSealed(ErrReplayed, a.sealByHand(h, -1, nil))
	b.take(k.bytes)
}

// recorder is an AEAD that only writes down the nonces that it was given: each of
// them once.
type recorder struct {
	cipher.AEAD
	t    *testing.T
	next uint64
}

func (r *recorder) Overhead() int { return 0 }

func (r *recorder) Seal(dst, nonce, plaintext, _ []byte) []byte {
	if binary.BigEndian.Uint32(nonce) != 0 || binary.BigEndian.Uint64(nonce[4:]) != r.next {
		r.t.Fatalf("nonce %x for datagram %d", nonce, r.next)
	}
	r.next++
	return append(dst, plaintext...)
}

func (r *recorder) Open(dst, nonce, ciphertext, _ []byte) ([]byte, error) {
	return append(dst, ciphertext...), nil
}

// Two million datagrams of all kinds, through thirty wraps of the sequence: no
// nonce twice, none left out.
// P-11.1.2, P-11.2.1.
func TestNoNonceIsUsedTwice(t *testing.T) {
	total := uint64(2_000_000)
	if testing.Short() {
		total = 200_000
	}
	clock := &ManualClock{}
	ours, theirs := &recorder{AEAD: gcm(1), t: t}, &recorder{AEAD: gcm(2), t: t}
	a, err := NewSession(Config{Clock: clock, Bundle: true, Seal: ours, Open: theirs})
	require.NoError(t, err)
	b, err := NewSession(Config{Clock: clock, Bundle: true, Seal: theirs, Open: ours})
	require.NoError(t, err)
	var buf [MaxDatagramSize]byte
	ends := [2]*Session{a, b}
	for n := 0; ours.next < total; n++ {
		clock.Advance(7 * ms)
		for i, s := range ends {
			if n%3 == 0 && s.Room() > 0 {
				_, err := s.Send(buf[:n%20])
				require.NoError(t, err)
			}
			if n%2 == i {
				out, _, err := s.AppendDatagram(buf[:0], Type(16+n%4), buf[:n%9])
				require.NoError(t, err)
				if n%11 != 0 {
					if _, err := ends[1-i].Receive(out); err != nil {
						t.Fatal(err)
					}
				}
			}
			for out := range s.Due(buf[:]) {
				if n%13 != 0 {
					if _, err := ends[1-i].Receive(out); err != nil {
						t.Fatal(err)
					}
				}
			}
		}
	}
	require.Equal(t, a.Stats().DatagramsSent, ours.next)
	require.Equal(t, b.Stats().DatagramsSent, theirs.next)
	require.Zero(t, a.Stats().Forged+a.Stats().Replayed)
}

// After 2²⁸ datagrams a key is at its end, whatever would be the next.
// P-11.4.1.
func TestKeyIsExhausted(t *testing.T) {
	for name, next := range map[string]func(p *actor){
		"AppendDatagram": func(p *actor) { p.emitFails(ErrKeyExhausted) },
		"event":          func(p *actor) { p.send("x"); p.wantNothing() },
		"heartbeat":      func(p *actor) { p.sleep(50 * ms); p.wantNothing() },
	} {
		t.Run(name, func(t *testing.T) {
			a, _ := sealedDuo(t, Config{})
			c := &a.s.channel
			c.sender.log.first, c.sender.log.open, c.sender.log.count, c.sender.log.top = 1<<28-1, 1<<28-1, 1<<28-1, 1<<28-2
			c.sender.stats.DatagramsSent, c.sender.stats.Delivered = 1<<28-1, 1<<28-1
			drop(a.emitSealed(TypeInput, "the last"))
			a.wantAlive()
			next(a)
			a.wantErr(ErrKeyExhausted)
			a.sendFails(ErrKeyExhausted)
		})
	}
	t.Run("leaving", func(t *testing.T) {
		a, _ := sealedDuo(t, Config{})
		c := &a.s.channel
		c.sender.log.first, c.sender.log.open, c.sender.log.count, c.sender.log.top = 1<<28-2, 1<<28-2, 1<<28-2, 1<<28-3
		c.sender.stats.DatagramsSent, c.sender.stats.Delivered = 1<<28-2, 1<<28-2
		a.s.Close()
		require.Len(t, a.flush(), 2, "of three Disconnects")
		a.wantErr(ErrClosed)
	})
	t.Run("forged", func(t *testing.T) {
		a, b := sealedDuo(t, Config{})
		k := a.emitSealed(TypeInput, "x")
		forged := slices.Clone(k.bytes)
		forged[20]++
		b.s.channel.receiver.stats.Forged = 1<<36 - 2
		require.Equal(t, ErrForged, b.hand(forged))
		b.wantAlive()
		require.Equal(t, ErrForged, b.hand(forged))
		b.wantErr(ErrKeyExhausted)
		require.Equal(t, ErrKeyExhausted, b.hand(k.bytes))
	})
}

// aead is one whose sizes are chosen.
type aead struct {
	cipher.AEAD
	nonce, overhead int
}

func (a aead) NonceSize() int { return a.nonce }
func (a aead) Overhead() int  { return a.overhead }

func TestSealConfig(t *testing.T) {
	good := aead{gcm(1), 8, 0}
	for _, c := range []struct {
		seal, open AEAD
		names      string
	}{
		{good, nil, "Open"},
		{nil, good, "Seal"},
		{aead{gcm(1), 7, 16}, good, "Seal"},
		{good, aead{gcm(1), 7, 16}, "Open"},
		{aead{gcm(1), 12, -1}, good, "Seal"},
		{good, aead{gcm(1), 12, 65}, "Open"},
	} {
		_, err := NewSession(Config{Seal: c.seal, Open: c.open})
		require.ErrorIs(t, err, ErrConfig)
		require.ErrorContains(t, err, c.names)
		_, err = NewReliableChannel(Config{Seal: c.seal, Open: c.open})
		require.NoError(t, err, "it has no bytes")
	}
	for _, wide := range []bool{false, true} {
		for _, overhead := range []int{0, 16, 64} {
			for _, size := range []int{0, 128, 500, 1200} {
				s, err := NewSession(Config{Wide: wide, MaxDatagram: size, Seal: aead{gcm(1), 24, overhead}, Open: aead{gcm(2), 8, 64 - overhead}})
				require.NoError(t, err)
				if size == 0 {
					size = 1200
				}
				require.Equal(t, size-headerSize(wide)-overhead, s.MaxPayload(), "by Seal's overhead")
				require.Equal(t, s.MaxPayload()-5, s.MaxEvent())
			}
		}
	}
}

// AEADs of other sizes of nonce, and one that does not work in place.
// P-11.2.1.
func TestSealWithOtherAEADs(t *testing.T) {
	for _, sizes := range [][2]int{{12, 12}, {8, 24}, {24, 8}} {
		y := newStory(t)
		one, two := elsewhere{aead{nil, sizes[0], 3}}, elsewhere{aead{nil, sizes[1], 7}}
		a := y.enter("A", Config{Seal: one, Open: two})
		b := y.enter("B", Config{Seal: two, Open: one})
		for n := range 5 {
			in := b.deliver(a.emitSealed(TypeInput, fmt.Sprint("there ", n)))
			require.Equal(t, fmt.Sprint("there ", n), string(in.Payload))
			in = a.deliver(b.emitSealed(TypeInput, fmt.Sprint("back ", n)))
			require.Equal(t, fmt.Sprint("back ", n), string(in.Payload))
		}
	}
}

// elsewhere "seals" with the end of the nonce, into memory of its own.
type elsewhere struct{ aead }

func (e elsewhere) Seal(dst, nonce, plaintext, _ []byte) []byte {
	out := append(slices.Clone(dst), plaintext...)
	return append(out, nonce[len(nonce)-e.overhead:]...)
}

func (e elsewhere) Open(dst, nonce, ciphertext, _ []byte) ([]byte, error) {
	plain, tag := ciphertext[:len(ciphertext)-e.overhead], ciphertext[len(ciphertext)-e.overhead:]
	if len(nonce) != e.nonce || !bytes.Equal(tag, nonce[len(nonce)-e.overhead:]) {
		return nil, errors.New("no")
	}
	return append(slices.Clone(dst), plain...), nil
}

// What a key may seal is no limit to a bare session.
func TestBareSessionIsNeverExhausted(t *testing.T) {
	p := solo(t, Config{})
	log := &p.s.channel.sender.log
	log.first, log.open, log.count, log.top = maxSealed, maxSealed, maxSealed, maxSealed-1
	p.s.channel.sender.stats.DatagramsSent, p.s.channel.sender.stats.Delivered = maxSealed, maxSealed
	p.emit(TypeInput)
	p.send("0")
	p.wantEventsOut(0)
	p.wantAlive()
}
