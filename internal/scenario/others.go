package scenario

import (
	"math/rand/v2"
	"time"

	"github.com/ackbits/ackbits/simnet"
)

// Policer drops what exceeds a rate instead of queueing it, as many providers do: a bucket of
// Burst bytes that fills at Rate bytes a second. The zero value lets everything through.
type Policer struct{ Rate, Burst int }

// Bucket is the state of a Policer for one direction.
type Bucket struct {
	Policer
	tokens float64
	last   time.Duration
}

// Bucket returns a full one.
func (p Policer) Bucket() *Bucket { return &Bucket{Policer: p, tokens: float64(p.Burst)} }

// Passes reports whether a datagram of size bytes passes at now.
func (b *Bucket) Passes(now time.Duration, size int) bool {
	if b.Rate == 0 {
		return true
	}
	b.tokens = min(b.tokens+float64(b.Rate)*(now-b.last).Seconds(), float64(b.Burst))
	b.last = now
	if b.tokens < float64(size) {
		return false
	}
	b.tokens -= float64(size)
	return true
}

// Others is traffic of others on the link from the client: in each Period, Burst bytes come at
// once in datagrams of 1,200 bytes, at a moment of the period that the seed decides. The zero
// value is no traffic. It lasts for During, or if that is zero, as long as the game.
type Others struct {
	Burst  int
	Period time.Duration
	During simnet.Window
}

// foreignByte begins a datagram of others: no format of ackbits'.
const foreignByte = 0xFF

func foreign(datagram []byte) bool { return len(datagram) > 0 && datagram[0] == foreignByte }

// start schedules what the others send.
func (o Others) start(pair *simnet.Pair, seed uint64) {
	if o.Burst == 0 {
		return
	}
	random := rand.New(rand.NewPCG(seed, 11))
	datagram := make([]byte, 1200-udpIP)
	datagram[0] = foreignByte
	pair.Every(1, o.Period, func() {
		if now := pair.Now(); o.During != (simnet.Window{}) && (now < o.During.From || now >= o.During.To) {
			return
		}
		pair.At(pair.Now()+time.Duration(random.Int64N(int64(o.Period))), func() {
			for sent := 0; sent+1200 <= o.Burst; sent += 1200 {
				pair.Send(simnet.AToB, datagram)
			}
		})
	})
}
