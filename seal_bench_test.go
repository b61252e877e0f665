package ackbits

import (
	"testing"
	"time"
)

// BenchmarkSealedState is BenchmarkState with AES-128-GCM, beside the same bare and
// the AEAD alone on the same bytes. What a seal costs beyond its AEAD is sealed −
// bare − aead: take all three from one run.
func BenchmarkSealedState(b *testing.B) {
	run := func(name string, sealed bool) {
		b.Run(name, func(b *testing.B) {
			cfg := Config{}
			p := newBenchPair(b, cfg)
			x, y := p.a, p.b
			if sealed {
				cfg.Clock = &p.clock
				cfg.Seal, cfg.Open = gcm(1), gcm(2)
				x, _ = NewSession(cfg)
				cfg.Seal, cfg.Open = cfg.Open, cfg.Seal
				y, _ = NewSession(cfg)
			}
			b.ReportAllocs()
			for n := 0; b.Loop(); n++ {
				p.clock.Advance(time.Millisecond)
				datagram, _, _ := x.AppendDatagram(p.buf, TypeSnapshot, benchState)
				if in, _ := y.Receive(datagram); in.Payload == nil {
					b.Fatal("not delivered")
				}
				x, y = y, x
			}
		})
	}
	run("bare", false)
	run("sealed", true)
	b.Run("aead", func(b *testing.B) {
		aead, nonce := gcm(1), make([]byte, 12)
		buf := make([]byte, 0, MaxDatagramSize)
		header := Header{Sealed: true, Type: TypeSnapshot}.AppendTo(nil)
		b.ReportAllocs()
		for n := uint64(0); b.Loop(); n++ {
			out := append(append(buf, header...), benchState...)
			nonce[11]++
			out = aead.Seal(out[:HeaderSize], nonce, out[HeaderSize:], out[:HeaderSize])
			if _, err := aead.Open(out[HeaderSize:HeaderSize], nonce, out[HeaderSize:], out[:HeaderSize]); err != nil {
				b.Fatal(err)
			}
		}
	})
}
